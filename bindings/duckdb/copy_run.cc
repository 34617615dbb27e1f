// COPY ... TO 'x.pool/table' (FORMAT flugs): rows on their way into the table.

#include <charconv>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "bindings/duckdb/arguments.h"
#include "bindings/duckdb/copy.h"
#include "bindings/duckdb/names.h"
#include "flugs/query.h"

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

/// The tables that running COPYs of this process write to, once for each COPY. A COPY that fails
/// drops the table that it has made, but not while another COPY writes to it.
struct CopiedTables {
  // Protects `tables`, and is held while a COPY makes or drops its table. Rank: behind Pool::use.
  std::mutex mutex;
  std::multiset<std::pair<const Pool*, TableId>> tables;
};

/// Never destroyed: DuckDB may be in use after the destructors of this library.
CopiedTables& copied_tables() {
  static CopiedTables& instance = *new CopiedTables;
  return instance;
}

/// A COPY that runs: DuckDB's init data. One thread at a time.
class CopyRun {
 public:
  explicit CopyRun(const CopyBind& bind)
      : bind_(bind),
        vectors_(bind.columns.size()),
        batch_(bind.columns.size()),
        scales_(bind.columns.size()) {}
  ~CopyRun();
  CopyRun(const CopyRun&) = delete;
  CopyRun& operator=(const CopyRun&) = delete;

  Status begin();
  Status write(duckdb_v2_factory_handle factory, duckdb_v2_column_data_collection_handle rows);
  Status finish();

 private:
  Status choose_table(Database& database);
  Status check_key(const Table& table) const;
  bool leave_table() const;
  Status drop_if_empty(Database& database) const;
  Result<TableId> make_table(Database& database);
  Status find_columns(const Table& table);
  Status check_digits(std::size_t column, std::size_t rows) const;
  Status with_row_of_copy(Status status) const;
  Status write_chunk(duckdb_v2_data_chunk_handle chunk);
  Status commit();

  const CopyBind& bind_;
  std::shared_ptr<Pool> pool_;
  std::shared_ptr<Guest> guest_;
  std::optional<TableId> table_;  // when it is one of copied_tables()
  bool has_made_table_ = false;
  bool has_committed_ = false;
  std::uint64_t rows_ = 0;       // written
  std::uint64_t rows_open_ = 0;  // of these, not committed
  std::vector<CopiedVector> vectors_;
  std::vector<BatchColumn> batch_;
  std::vector<std::uint8_t> scales_;  // of the table's columns that are decimals
};

// A COPY that has failed drops the table that it has made, if no transaction has committed rows to
// it. While another transaction is open that is not possible: then the table stays, empty.
CopyRun::~CopyRun() {
  guest_.reset();
  if (!table_) return;
  bool has_left = false;
  static_cast<void>(pool_->use([&](Database& database) {
    const std::lock_guard lock(copied_tables().mutex);
    has_left = true;
    const bool is_last = leave_table();
    return is_last && has_made_table_ && !has_committed_ ? drop_if_empty(database) : Status();
  }));
  if (has_left) return;  // else the pool was taken back
  const std::lock_guard lock(copied_tables().mutex);
  leave_table();
}

// Whether no other COPY writes to the table. With the lock of copied_tables.
bool CopyRun::leave_table() const {
  std::multiset<std::pair<const Pool*, TableId>>& tables = copied_tables().tables;
  const std::pair<const Pool*, TableId> key(pool_.get(), *table_);
  tables.erase(tables.find(key));
  return !tables.contains(key);
}

Status CopyRun::drop_if_empty(Database& database) const {
  {
    FLUGS_ASSIGN(const Transaction reader, database.begin(AccessMode::kReadOnly));
    FLUGS_ASSIGN(const query::QueryResult first,
                 query::Query::table(bind_.table).limit(1).run(reader));
    if (first.row_count() != 0) return {};
  }
  return database.drop_table(*table_);
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

// Columns are found by name, in DuckDB's sense if there is none of exactly this name.
Status CopyRun::find_columns(const Table& table) {
  for (std::size_t c = 0; c < bind_.columns.size(); ++c) {
    const std::string& name = bind_.columns[c].name;
    Result<ColumnId> found = table.column(name);
    for (const ColumnSchema& column : table.schema().columns)
      if (!found.ok() && !column.dropped && lower_case(column.name) == lower_case(name))
        found = table.column(column.name);
    if (!found.ok()) return std::move(found).status();
    batch_[c].column = *found;
    scales_[c] = table.schema().columns[found->value()].scale;
  }
  return {};
}

// KEY says what the primary key of a table is that exists already.
Status CopyRun::check_key(const Table& table) const {
  if (bind_.key.empty()) return {};
  for (const KeySchema& key : table.schema().keys)
    if (!key.dropped && key.name == "primary" && key.columns == bind_.key) return {};
  return Status(StatusCode::kAlreadyExists,
                "table " + bind_.table + " exists, with another primary key than KEY");
}

Status CopyRun::choose_table(Database& database) {
  CopiedTables& copied = copied_tables();
  const std::lock_guard lock(copied.mutex);
  Result<Table> table = database.table(bind_.table);
  if (table.code() == StatusCode::kNotFound) {
    FLUGS_TRY(make_table(database).status());
    has_made_table_ = true;
    table = database.table(bind_.table);
  }
  if (!table.ok()) return std::move(table).status();
  copied.tables.emplace(pool_.get(), table->id());
  table_ = table->id();
  FLUGS_TRY(check_key(*table));
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

// flugs takes decimals of 19 digits, which DuckDB could not read again.
Status CopyRun::check_digits(std::size_t column, std::size_t rows) const {
  const CopyColumn& of = bind_.columns[column];
  const ValueArray& array = batch_[column].values;
  if (of.form != ArrayForm::kInt128 || of.scale != scales_[column]) return {};
  const auto* const units = static_cast<const std::int64_t*>(array.values);  // low half, high half
  for (std::size_t row = 0; row < rows; ++row) {
    const std::int64_t low = units[2 * row];
    const bool is_null =
        array.validity != nullptr && (array.validity[row / 8] >> (row % 8) & 1) == 0;
    const bool is_long = units[2 * row + 1] == (low < 0 ? -1 : 0) &&
                         (low > kDecimalUnitsMax || low < -kDecimalUnitsMax);
    if (is_long && !is_null)
      return Status(StatusCode::kOverflow,
                    "row " + std::to_string(rows_ + row) + ": table " + bind_.table + ", column " +
                        of.name + ": " + Value::decimal(low, of.scale).to_string() +
                        " has more digits than a DECIMAL(18), and DuckDB reads no others from "
                        "flugs; cast it to one");
  }
  return {};
}

Status CopyRun::write_chunk(duckdb_v2_data_chunk_handle chunk) {
  idx_t rows = 0;
  FLUGS_TRY(ask(duckdb_v2_data_chunk_get_size, chunk, &rows));
  for (std::size_t c = 0; c < bind_.columns.size(); ++c) {
    duckdb_v2_vector_handle vector = nullptr;
    FLUGS_TRY(ask(duckdb_v2_data_chunk_get_vector, chunk, idx_t{c}, &vector));
    FLUGS_ASSIGN(batch_[c].values, vectors_[c].read(bind_.columns[c], vector, rows));
    FLUGS_TRY(check_digits(c, rows));
  }
  FLUGS_TRY(guest_->use([&](Database& /*database*/, Transaction& transaction) {
    return with_row_of_copy(transaction.insert_columns(*table_, {.rows = rows, .columns = batch_},
                                                       {}, {.stop = pool_->stop()}));
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
    everything.stop = pool_->stop();
    const Status merged = database.merge(*table_, everything).status();
    // The query may have read this pool, and DuckDB not have ended it; or the program closes the
    // pool. The rows are durable, and the database merges them by itself later.
    const bool is_put_off =
        merged.code() == StatusCode::kBusy || merged.code() == StatusCode::kCancelled;
    return is_put_off ? Status() : merged;
  });
}

// DuckDB writes to another file and renames it to the one that exists, or removes the file when
// COPY fails. 'x.pool/table' is no file.
Status check_file(duckdb_v2_copy_to_init_info_handle info, const CopyBind& bind) {
  duckdb_v2_str path = {nullptr, 0};
  FLUGS_TRY(ask(duckdb_v2_copy_to_init_get_file_path, info, &path));
  if (view_of(path) == bind.file) return {};
  return Status(StatusCode::kInvalidArgument,
                "DuckDB made another path of " + bind.file +
                    "; COPY to flugs has no options of DuckDB for files");
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
