#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>
#include <utility>

#include "bindings/duckdb/arguments.h"
#include "bindings/duckdb/scan.h"
#include "bindings/duckdb/vectors.h"

namespace flugs::duckdb {

namespace {

// More than a morsel of rows for each: waking a thread costs more than a few rows.
constexpr std::uint64_t kRowsPerThread = 32768;

std::uint32_t threads_for(std::uint64_t rows) noexcept {
  const std::uint64_t wanted = 1 + rows / kRowsPerThread;
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(wanted, std::max(1U, std::thread::hardware_concurrency())));
}

// DuckDB does not say how many threads will come to a scan. A number costs a few bytes.
std::uint32_t numbers_of_threads() noexcept {
  return std::clamp(2 * std::thread::hardware_concurrency(), 64U, 1024U);
}

/// What the threads of a running scan share: DuckDB's global state.
class ScanRun {
 public:
  ScanRun(SharedBind bind, std::vector<ScanColumn> columns)
      : bind_(std::move(bind)),
        columns_(std::move(columns)),
        stream_(std::make_shared<GuestStream>()) {}
  ~ScanRun();
  ScanRun(const ScanRun&) = delete;
  ScanRun& operator=(const ScanRun&) = delete;

  Status begin();
  /// A number for a thread that begins to pull.
  std::uint32_t thread_number() noexcept { return threads_.fetch_add(1); }
  /// The thread's next batch; an empty one at the end. It must have let go of the former one.
  Result<query::StreamBatch> next(std::uint32_t thread);
  const ScanBind& bind() const noexcept { return *bind_; }
  const std::vector<ScanColumn>& columns() const noexcept { return columns_; }
  double progress() const noexcept {
    const double total = static_cast<double>(total_.load(std::memory_order_relaxed));
    return total == 0 ? 0 : static_cast<double>(done_.load(std::memory_order_relaxed)) / total;
  }

 private:
  Status check_table(const Database& database) const;
  Status check_columns(const std::vector<query::ResultColumn>& columns) const;
  Result<query::StreamBatch> next_in_turn();

  const SharedBind bind_;
  const std::vector<ScanColumn> columns_;
  std::shared_ptr<Guest> guest_;
  const std::shared_ptr<GuestStream> stream_;
  std::atomic<std::uint32_t> threads_{0};
  std::atomic<std::uint64_t> done_{0};
  std::atomic<std::uint64_t> total_{0};
};

/// What one thread has: DuckDB's local state.
struct ScanThread {
  explicit ScanThread(const ScanRun& run) : writer(run.bind().table, run.columns()) {}
  std::optional<std::uint32_t> number;  // since it pulls
  query::StreamBatch batch;
  std::size_t done = 0;  // rows of the batch that DuckDB has
  VectorWriter writer;
};

Status ScanRun::check_table(const Database& database) const {
  const Result<Table> table = database.table(bind_->table);
  const std::string what = "table " + bind_->table;
  if (!table.ok() || table->id() != bind_->id)
    return Status(StatusCode::kNotFound,
                  what + " was dropped or renamed after the query was planned");
  const std::vector<ScanColumn> now = columns_of(table->schema());
  for (const ScanColumn& column : bind_->columns) {
    const auto found = std::find_if(
        now.begin(), now.end(), [&](const ScanColumn& other) { return other.name == column.name; });
    if (found == now.end() || found->type != column.type || found->scale != column.scale)
      return Status(StatusCode::kNotFound,
                    what + ", column " + column.name + ": was changed after the query was planned");
  }
  return {};
}

ScanRun::~ScanRun() {
  if (guest_ == nullptr) return;
  guest_->finish(*stream_);
  guest_.reset();
  bind_->moment->leave();
}

Status ScanRun::begin() {
  FLUGS_ASSIGN(guest_, bind_->moment->enter(bind_.get()));
  return guest_->use([&](Database& database, Transaction& transaction) -> Status {
    FLUGS_TRY(check_table(database));
    query::Query rows = query::Query::table(bind_->table);
    for (const query::Expr& filter : bind_->filters) rows = rows.where(filter);
    for (const query::Expr& helper : bind_->helpers) rows = rows.where(helper);
    std::vector<query::Item> wanted;
    for (const ScanColumn& column : columns_) wanted.emplace_back(column.name);
    query::RunOptions options;
    options.progress = [this](const Progress& progress) {
      total_.store(progress.total, std::memory_order_relaxed);
      done_.store(progress.done, std::memory_order_relaxed);
    };
    options.stop = guest_->pool()->stop();
    rows = rows.select(std::move(wanted));
    if (guest_->is_held()) {
      FLUGS_ASSIGN(query::ResultStream stream, rows.stream(transaction, options));
      FLUGS_TRY(check_columns(stream.columns()));
      stream_->rows_in_turn.emplace(std::move(stream));
    } else {
      options.threads = numbers_of_threads();
      FLUGS_ASSIGN(query::SharedStream stream, rows.share(transaction, options));
      FLUGS_TRY(check_columns(stream.columns()));
      stream_->rows.emplace(std::move(stream));
    }
    guest_->add(stream_);
    return {};
  });
}

Status ScanRun::check_columns(const std::vector<query::ResultColumn>& columns) const {
  for (std::size_t c = 0; c < columns_.size(); ++c)
    if (columns[c].type != columns_[c].type || columns[c].scale != columns_[c].scale)
      return Status(StatusCode::kNotFound,
                    "table " + bind_->table + " was changed while the query began");
  return {};
}

Result<query::StreamBatch> ScanRun::next_in_turn() {
  query::StreamBatch batch;
  FLUGS_TRY(guest_->use([&](Database& /*database*/, Transaction& /*transaction*/) -> Status {
    if (!stream_->rows_in_turn) return {};
    if (const query::StreamBatch* const found = stream_->rows_in_turn->next()) {
      batch = *found;
      return {};
    }
    Status end = stream_->rows_in_turn->status();
    stream_->rows_in_turn.reset();
    return end;
  }));
  return batch;
}

Result<query::StreamBatch> ScanRun::next(std::uint32_t thread) {
  if (guest_->is_held()) return next_in_turn();
  query::StreamBatch batch;
  FLUGS_TRY(guest_->read([&]() -> Status {
    if (!stream_->rows) return Status(StatusCode::kCancelled, "the scan has ended");
    FLUGS_ASSIGN(const query::StreamBatch* const found, stream_->rows->next(thread));
    if (found != nullptr) batch = *found;
    return {};
  }));
  return batch;
}

Status write_rows(duckdb_v2_table_function_exec_info_handle info) {
  FLUGS_ASSIGN(ScanRun* const run,
               kept<ScanRun>(duckdb_v2_table_function_exec_get_global_state, info));
  FLUGS_ASSIGN(ScanThread* const thread,
               kept<ScanThread>(duckdb_v2_table_function_exec_get_local_state, info));
  duckdb_v2_data_chunk_handle chunk = nullptr;
  FLUGS_TRY(ask(duckdb_v2_table_function_exec_get_output_chunk, info, &chunk));
  idx_t capacity = 0;
  FLUGS_TRY(ask(duckdb_v2_data_chunk_get_capacity, chunk, &capacity));
  if (thread->done == thread->batch.row_count()) {
    if (!thread->number) thread->number = run->thread_number();
    thread->batch = query::StreamBatch();
    thread->done = 0;
    FLUGS_ASSIGN(thread->batch, run->next(*thread->number));
  }
  const std::size_t count =
      std::min<std::size_t>(capacity, thread->batch.row_count() - thread->done);
  for (std::size_t c = 0; c < run->columns().size(); ++c) {
    duckdb_v2_vector_handle vector = nullptr;
    FLUGS_TRY(ask(duckdb_v2_data_chunk_get_vector, chunk, idx_t{c}, &vector));
    if (count == 0)
      FLUGS_TRY(ask(duckdb_v2_vector_set_size, vector, idx_t{0}));
    else
      FLUGS_TRY(thread->writer.write(vector, thread->batch, c, thread->done, count));
  }
  thread->done += count;
  return {};
}

}  // namespace

void begin_scan(duckdb_v2_table_function_init_global_info_handle info,
                duckdb_v2_context_handle /*context*/, duckdb_v2_error_info_handle* err) {
  guarded(err, [&]() -> Status {
    FLUGS_ASSIGN(SharedBind* const kept_bind,
                 kept<SharedBind>(duckdb_v2_table_function_init_global_get_bind_data, info));
    const SharedBind& bind = *kept_bind;
    idx_t count = 0;
    FLUGS_TRY(ask(duckdb_v2_table_function_init_global_get_column_count, info, &count));
    std::vector<ScanColumn> columns;
    for (idx_t i = 0; i < count; ++i) {
      idx_t index = 0;
      FLUGS_TRY(ask(duckdb_v2_table_function_init_global_get_column_index, info, i, &index));
      if (index >= bind->columns.size())
        return Status(StatusCode::kInvalidArgument, "DuckDB wants a column that the scan has not");
      columns.push_back(bind->columns[index]);
    }
    auto run = std::make_unique<ScanRun>(bind, std::move(columns));
    FLUGS_TRY(run->begin());
    const idx_t threads = threads_for(bind->rows);
    FLUGS_TRY(ask(duckdb_v2_table_function_init_global_set_max_threads, info, threads));
    duckdb_v2_opaque data = opaque_of(run.release());
    return ask(duckdb_v2_table_function_init_global_set_global_state, info, &data);
  });
}

void begin_thread(duckdb_v2_table_function_init_local_info_handle info,
                  duckdb_v2_context_handle /*context*/, duckdb_v2_error_info_handle* err) {
  guarded(err, [&]() -> Status {
    FLUGS_ASSIGN(ScanRun* const run,
                 kept<ScanRun>(duckdb_v2_table_function_init_local_get_global_state, info));
    duckdb_v2_opaque data = opaque_of(new ScanThread(*run));
    return ask(duckdb_v2_table_function_init_local_set_local_state, info, &data);
  });
}

void run_scan(duckdb_v2_table_function_exec_info_handle info, duckdb_v2_context_handle /*context*/,
              duckdb_v2_error_info_handle* err) {
  guarded(err, [&] { return write_rows(info); });
}

void tell_progress(duckdb_v2_table_function_progress_info_handle info,
                   duckdb_v2_context_handle /*context*/, duckdb_v2_error_info_handle* err) {
  guarded(err, [&]() -> Status {
    FLUGS_ASSIGN(ScanRun* const run,
                 kept<ScanRun>(duckdb_v2_table_function_progress_get_global_state, info));
    return ask(duckdb_v2_table_function_progress_set_progress, info, run->progress());
  });
}

}  // namespace flugs::duckdb
