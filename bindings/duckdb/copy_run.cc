// COPY ... TO 'x.pool/table' (FORMAT flugs): rows on their way into the table.

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "bindings/duckdb/arguments.h"
#include "bindings/duckdb/copy.h"

namespace flugs::duckdb {

namespace {

struct DestroyCollection {
  void operator()(duckdb_v2_column_data_collection_handle* h) const noexcept {
    duckdb_v2_column_data_collection_destroy(h);
  }
};
struct DestroySharedScan {
  void operator()(duckdb_v2_column_data_collection_shared_scan_state_handle* h) const noexcept {
    duckdb_v2_column_data_collection_shared_scan_state_destroy(h);
  }
};
struct DestroyWorkerScan {
  void operator()(duckdb_v2_column_data_collection_worker_scan_state_handle* h) const noexcept {
    duckdb_v2_column_data_collection_worker_scan_state_destroy(h);
  }
};
struct DestroyChunk {
  void operator()(duckdb_v2_data_chunk_handle* h) const noexcept {
    duckdb_v2_data_chunk_destroy(h);
  }
};
struct DestroyCopy {
  void operator()(duckdb_v2_copy_function_handle* h) const noexcept {
    duckdb_v2_copy_function_destroy(h);
  }
};
/// Rows that one thread of DuckDB has collected: the batch data.
using OwnedCollection = Owned<duckdb_v2_column_data_collection_handle, DestroyCollection>;

/// A COPY that runs: DuckDB's init data. One thread at a time.
class CopyRun {
 public:
  explicit CopyRun(const CopyBind& bind)
      : bind_(bind), vectors_(bind.columns.size()), batch_(bind.columns.size()) {}
  ~CopyRun();
  CopyRun(const CopyRun&) = delete;
  CopyRun& operator=(const CopyRun&) = delete;

  Status begin();
  Status write(duckdb_v2_factory_handle factory, duckdb_v2_column_data_collection_handle rows);
  Status finish();

 private:
  Status choose_table(Database& database);
  Result<TableId> make_table(Database& database);
  Status find_columns(const Table& table);
  Status with_row_of_copy(Status status) const;
  Status write_chunk(duckdb_v2_data_chunk_handle chunk);
  Status commit();

  const CopyBind& bind_;
  std::shared_ptr<Pool> pool_;
  std::shared_ptr<Guest> guest_;
  TableId table_ = {};
  bool has_made_table_ = false;
  bool has_committed_ = false;
  std::uint64_t rows_ = 0;       // written
  std::uint64_t rows_open_ = 0;  // of these, not committed
  std::vector<CopiedVector> vectors_;
  std::vector<BatchColumn> batch_;
};

// A COPY that has failed leaves no table behind that it has made, unless rows were committed.
CopyRun::~CopyRun() {
  guest_.reset();
  if (pool_ == nullptr || !has_made_table_ || has_committed_) return;
  static_cast<void>(pool_->use([&](Database& database) { return database.drop_table(table_); }));
}

Result<TableId> CopyRun::make_table(Database& database) {
  TableSchema schema(bind_.table);
  for (const CopyColumn& column : bind_.columns) {
    schema.column(column.name, column.type);
    if (column.type == Type::kDecimal) schema.scale(column.scale);
  }
  if (!bind_.key.empty()) schema.primary_key(bind_.key);
  return database.create_table(schema);
}

// Columns are found by name. SQL takes names that differ in case for the same one.
Status CopyRun::find_columns(const Table& table) {
  const auto is_same = [](std::string_view a, std::string_view b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
      const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; };
      return lower(x) == lower(y);
    });
  };
  for (std::size_t c = 0; c < bind_.columns.size(); ++c) {
    const std::string& name = bind_.columns[c].name;
    Result<ColumnId> found = table.column(name);
    for (const ColumnSchema& column : table.schema().columns)
      if (!found.ok() && !column.dropped && is_same(column.name, name))
        found = table.column(column.name);
    if (!found.ok()) return std::move(found).status();
    batch_[c].column = *found;
  }
  return {};
}

Status CopyRun::choose_table(Database& database) {
  Result<Table> table = database.table(bind_.table);
  if (table.ok() && !bind_.key.empty())
    return Status(StatusCode::kAlreadyExists,
                  "table " + bind_.table + " exists; KEY is for a table that COPY makes");
  if (table.code() == StatusCode::kNotFound) {
    FLUGS_ASSIGN(table_, make_table(database));
    has_made_table_ = true;
    table = database.table(bind_.table);
  }
  if (!table.ok()) return std::move(table).status();
  table_ = table->id();
  return find_columns(*table);
}

Status CopyRun::begin() {
  FLUGS_ASSIGN(pool_, bind_.instance->pool(bind_.pool, OpenMode::kOpenOrCreate, bind_.max_bytes));
  FLUGS_TRY(pool_->use([&](Database& database) { return choose_table(database); }));
  FLUGS_ASSIGN(guest_, pool_->begin(AccessMode::kReadWrite));
  return {};
}

// The message of insert_columns begins with the row's number in the chunk; here, with that in COPY.
Status CopyRun::with_row_of_copy(Status status) const {
  constexpr std::string_view kBefore = "row ";
  constexpr std::string_view kBehind = " of the batch";
  const std::string_view message = status.message();
  const std::size_t end = message.find(kBehind);
  if (status.ok() || !message.starts_with(kBefore) || end == std::string_view::npos) return status;
  std::uint64_t row = 0;
  const std::string_view number = message.substr(kBefore.size(), end - kBefore.size());
  if (std::from_chars(number.data(), number.data() + number.size(), row).ec != std::errc())
    return status;
  return Status(status.code(), std::string(kBefore) + std::to_string(rows_ + row) +
                                   std::string(message.substr(end + kBehind.size())));
}

Status CopyRun::write_chunk(duckdb_v2_data_chunk_handle chunk) {
  idx_t rows = 0;
  FLUGS_TRY(ask(duckdb_v2_data_chunk_get_size, chunk, &rows));
  for (std::size_t c = 0; c < bind_.columns.size(); ++c) {
    duckdb_v2_vector_handle vector = nullptr;
    FLUGS_TRY(ask(duckdb_v2_data_chunk_get_vector, chunk, idx_t{c}, &vector));
    FLUGS_ASSIGN(batch_[c].values, vectors_[c].read(bind_.columns[c], vector, rows));
  }
  FLUGS_TRY(guest_->use([&](Database& /*database*/, Transaction& transaction) {
    return with_row_of_copy(transaction.insert_columns(table_, {.rows = rows, .columns = batch_},
                                                       {}, {.stop = guest_->stop()}));
  }));
  rows_ += rows;
  rows_open_ += rows;
  if (bind_.commit_rows == 0 || rows_open_ < bind_.commit_rows) return {};
  FLUGS_TRY(commit());
  FLUGS_ASSIGN(guest_, pool_->begin(AccessMode::kReadWrite));
  return {};
}

Status CopyRun::commit() {
  FLUGS_TRY(guest_->use(
      [](Database& /*database*/, Transaction& transaction) { return transaction.commit(); }));
  has_committed_ = true;
  rows_open_ = 0;
  return {};
}

Status CopyRun::write(duckdb_v2_factory_handle factory,
                      duckdb_v2_column_data_collection_handle rows) {
  std::vector<duckdb_v2_logical_type_handle> types;
  for (const CopyColumn& column : bind_.columns) types.push_back(column.duckdb_type.get());
  Owned<duckdb_v2_data_chunk_handle, DestroyChunk> chunk;
  FLUGS_TRY(
      ask(duckdb_v2_data_chunk_create, factory, types.data(), idx_t{types.size()}, chunk.out()));
  Owned<duckdb_v2_column_data_collection_shared_scan_state_handle, DestroySharedScan> shared;
  FLUGS_TRY(ask(duckdb_v2_column_data_collection_shared_scan_state_create, rows, shared.out()));
  Owned<duckdb_v2_column_data_collection_worker_scan_state_handle, DestroyWorkerScan> own;
  FLUGS_TRY(ask(duckdb_v2_column_data_collection_worker_scan_state_create, rows, own.out()));
  for (;;) {
    bool is_there = false;
    FLUGS_TRY(ask(duckdb_v2_column_data_collection_scan, rows, shared.get(), own.get(), chunk.get(),
                  &is_there));
    if (!is_there) return {};
    FLUGS_TRY(write_chunk(chunk.get()));
  }
}

Status CopyRun::finish() {
  FLUGS_TRY(commit());
  guest_.reset();
  if (!bind_.is_merged) return {};
  return pool_->use([&](Database& database) {
    MergeOptions everything;
    everything.scope = MergeScope::kEverything;
    return database.merge(table_, everything).status();
  });
}

// DuckDB renames what it has written to the name of a file that exists, and the pool would be gone.
Status check_file(duckdb_v2_copy_to_init_info_handle info, const CopyBind& bind) {
  duckdb_v2_str path = {nullptr, 0};
  FLUGS_TRY(ask(duckdb_v2_copy_to_init_get_file_path, info, &path));
  if (view_of(path) == bind.file) return {};
  return Status(StatusCode::kInvalidArgument,
                bind.pool + " exists, and DuckDB would replace the file; write TO '" + bind.pool +
                    "/" + bind.table + "', and no options of DuckDB for files");
}

void begin_copy(duckdb_v2_copy_to_init_info_handle info, duckdb_v2_context_handle /*context*/,
                duckdb_v2_error_info_handle* err) {
  guarded(err, [&]() -> Status {
    FLUGS_ASSIGN(CopyBind* const bind, kept<CopyBind>(duckdb_v2_copy_to_init_get_bind_data, info));
    FLUGS_TRY(check_file(info, *bind));
    auto run = std::make_unique<CopyRun>(*bind);
    FLUGS_TRY(run->begin());
    duckdb_v2_opaque data = opaque_of(run.release());
    return ask(duckdb_v2_copy_to_init_set_init_data, info, &data);
  });
}

// Threads only hand their rows over: the transaction is for one thread at a time.
void take_batch(duckdb_v2_copy_to_batch_info_handle info, duckdb_v2_context_handle /*context*/,
                duckdb_v2_error_info_handle* err) {
  guarded(err, [&]() -> Status {
    auto rows = std::make_unique<OwnedCollection>();
    FLUGS_TRY(ask(duckdb_v2_copy_to_batch_take_input, info, rows->out()));
    duckdb_v2_opaque data = opaque_of(rows.release());
    return ask(duckdb_v2_copy_to_batch_set_batch_data, info, &data);
  });
}

void write_batch(duckdb_v2_copy_to_flush_info_handle info, duckdb_v2_context_handle context,
                 duckdb_v2_error_info_handle* err) {
  guarded(err, [&]() -> Status {
    FLUGS_ASSIGN(const duckdb_v2_factory_handle factory, factory_of(context));
    FLUGS_ASSIGN(CopyRun* const run, kept<CopyRun>(duckdb_v2_copy_to_flush_get_init_data, info));
    FLUGS_ASSIGN(OwnedCollection* const rows,
                 kept<OwnedCollection>(duckdb_v2_copy_to_flush_get_batch_data, info));
    return run->write(factory, rows->get());
  });
}

void finish_copy(duckdb_v2_copy_to_finalize_info_handle info, duckdb_v2_context_handle /*context*/,
                 duckdb_v2_error_info_handle* err) {
  guarded(err, [&]() -> Status {
    FLUGS_ASSIGN(CopyRun* const run, kept<CopyRun>(duckdb_v2_copy_to_finalize_get_init_data, info));
    return run->finish();
  });
}

}  // namespace

Status register_copy(duckdb_v2_extension_handle extension, duckdb_v2_factory_handle factory,
                     const SharedInstance& instance) {
  Owned<duckdb_v2_copy_function_handle, DestroyCopy> copy;
  FLUGS_TRY(ask(duckdb_v2_copy_function_create, factory, copy.out()));
  const duckdb_v2_identifier_t name = str_of("flugs");
  FLUGS_TRY(ask(duckdb_v2_copy_function_set_name, copy.get(), &name));
  duckdb_v2_opaque share = share_of(instance);
  FLUGS_TRY(ask(duckdb_v2_copy_function_set_user_data, copy.get(), &share));
  FLUGS_TRY(ask(duckdb_v2_copy_to_set_bind_callback, copy.get(), &bind_copy));
  FLUGS_TRY(ask(duckdb_v2_copy_to_set_init_callback, copy.get(), &begin_copy));
  FLUGS_TRY(ask(duckdb_v2_copy_to_set_batch_callback, copy.get(), &take_batch));
  FLUGS_TRY(ask(duckdb_v2_copy_to_set_flush_callback, copy.get(), &write_batch));
  FLUGS_TRY(ask(duckdb_v2_copy_to_set_finalize_callback, copy.get(), &finish_copy));
  return ask(duckdb_v2_extension_register_copy_function, extension, copy.get());
}

}  // namespace flugs::duckdb
