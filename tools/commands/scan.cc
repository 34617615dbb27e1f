#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/loads/merge_load.h"
#include "bench/scan/scan_changes.h"
#include "bench/scan/scan_load.h"
#include "bench/scan/scan_queries.h"
#include "bench/scan/scan_updates.h"
#include "bench/support/clock.h"
#include "bench/support/environment.h"
#include "flugs/merge.h"
#include "tools/report/query_report.h"
#include "tools/report/scan_figures.h"
#include "tools/report/scan_states.h"
#include "tools/support/command.h"
#include "tools/support/pool_file.h"
#include "tools/support/progress_bar.h"
#include "tools/support/tatp_options.h"
#include "tools/support/text_table.h"

namespace flugs::tools {

namespace {

// States of the table that DuckDB's has too.
constexpr const char* kAfterUpdates = "after updates";
constexpr const char* kAfterDeletions = "after deletions";
constexpr const char* kMerged = "after a default merge";

Encoding encoding_of(const std::string& name) {
  if (name == "auto") return Encoding::kAuto;
  return name == "direct" ? Encoding::kDirect : Encoding::kDictionary;
}

/// Memory that a run takes at most, roughly.
struct ScanSpace {
  std::uint64_t pool = 0;
  std::uint64_t duckdb_file = 0;
  std::uint64_t dram = 0;

  explicit ScanSpace(const ScanOptions& options) {
    constexpr std::uint64_t kMegabyte = std::uint64_t{1} << 20;
    const std::uint64_t distinct = bench::kScanIntegers * options.distinct_in_rows();
    // A row of delta has 64 bytes at most, one of main 20 at most, and chunk by chunk the one takes
    // the place of the other; an entry of a dictionary has 8 bytes in the pool and 24 in its index.
    pool = 72 * options.rows + 12 * distinct + 768 * kMegabyte;
    // An updated row is in the delta once more, and its entry in main has 16 bytes.
    const double changed = options.states.updated + options.states.deleted;
    const auto rows_changed =
        static_cast<std::uint64_t>(changed / 100 * static_cast<double>(options.rows));
    pool += 88 * rows_changed;
    dram = 24 * distinct + 160 * options.distinct_in_rows() + 64 * rows_changed + 256 * kMegabyte;
    if (options.query.duckdb.empty()) return;
    duckdb_file = 24 * options.rows + 256 * kMegabyte;
    dram += 1024 * kMegabyte;
  }
};

/// The queries asked for, in the benchmark's order. Fails with kInvalidArgument.
Result<std::vector<bench::ScanQuery>> chosen_queries(const std::vector<std::string>& names,
                                                     const bench::ScanData& data) {
  const std::vector<bench::ScanQuery> all = bench::scan_queries(data);
  if (names.empty()) return all;
  for (const std::string& name : names)
    if (std::none_of(all.begin(), all.end(), [&](const auto& query) { return query.name == name; }))
      return Status(StatusCode::kInvalidArgument, "--query " + name + ": unknown query");
  std::vector<bench::ScanQuery> chosen;
  std::copy_if(all.begin(), all.end(), std::back_inserter(chosen), [&](const auto& query) {
    return std::find(names.begin(), names.end(), query.name) != names.end();
  });
  return chosen;
}

double seconds_from(std::uint64_t begin_ns) {
  return static_cast<double>(bench::monotonic_ns() - begin_ns) * 1e-9;
}

/// Refuses runs that would swap, or that the kernel would end in the middle.
Status check_memory(const ScanOptions& options) {
  const ScanSpace space(options);
  const std::uint64_t free = shared_memory_free_bytes();
  if (options.query.pool.empty() && free < space.pool + space.duckdb_file)
    return Status(StatusCode::kOutOfSpace,
                  fmt::format("about {} are needed on /dev/shm, {} are free there: ask for fewer "
                              "--rows, or name a place with --pool",
                              format_bytes(space.pool + space.duckdb_file), format_bytes(free)));
  const std::uint64_t needed =
      space.dram + (options.query.pool.empty() ? space.pool + space.duckdb_file : 0);
  const std::uint64_t available = bench::available_memory_bytes();
  if (available < needed)
    return Status(StatusCode::kOutOfMemory,
                  fmt::format("about {} of memory are needed, /dev/shm included, {} are available: "
                              "ask for fewer --rows",
                              format_bytes(needed), format_bytes(available)));
  return {};
}

class ScanCommand {
 public:
  explicit ScanCommand(const ScanOptions& options)
      : options_(options),
        data_(options.rows, options.distinct_in_rows(), options.seed),
        totals_(data_) {}

  Status run(ScanFigures& figures) {
    Result<std::vector<bench::ScanQuery>> queries = chosen_queries(options_.queries, data_);
    if (!queries.ok()) return std::move(queries).status();
    queries_ = *std::move(queries);
    Status status = check_memory(options_);
    if (status.ok()) status = open(figures);
    if (status.ok()) status = fill(figures);
    if (status.ok()) status = query(figures);
    if (status.ok() && options_.states.changes_rows()) status = plan_changes(figures);
    if (status.ok() && !options_.query.duckdb.empty()) status = copy_to_duckdb();
    if (status.ok() && changes_.has_value()) status = change(figures.states);
    if (status.ok()) status = measure(figures);
    // Closes the database: DuckDB must not share memory with a pool that is not read any more.
    database_ = Database();
    pool_.reset();
    if (status.ok() && duckdb_.has_value()) status = ask(figures);
    bar_.clear();
    return status;
  }

 private:
  Status open(ScanFigures& figures) {
    const std::uint64_t bytes = ScanSpace(options_).pool;
    Result<PoolFile> pool = PoolFile::choose(options_.query.pool, options_.query.keep, bytes);
    if (!pool.ok()) return std::move(pool).status();
    pool_ = std::move(*pool);
    if (!pool_->remark().empty()) fmt::print("{}\n", pool_->remark());
    figures.pool_path = pool_->path();
    OpenOptions open;
    open.path = pool_->path();
    open.index_place = options_.query.index_place;
    if (options_.side != "main")
      open.merge_policy.delta_scans = 0;  // the delta is what is measured
    if (!pool_->existed()) open.max_bytes = std::max(std::uint64_t{64} << 30, 2 * bytes);
    options_.scm.put_into(open);
    Result<Database> database = Database::open(open);
    if (!database.ok()) return std::move(database).status();
    database_ = std::move(*database);
    return {};
  }

  Status fill(ScanFigures& figures) {
    Result<TableId> table = bench::create_scan_table(database_, encoding_of(options_.encoding));
    if (table.code() == StatusCode::kAlreadyExists)
      return Status(StatusCode::kAlreadyExists,
                    "the pool already holds a table r: name a different pool, or none");
    if (!table.ok()) return std::move(table).status();
    if (Status s = lay_out_table(database_, *table, options_.query.layout); !s.ok()) return s;
    table_ = *table;
    const std::uint64_t merged = options_.rows_merged();
    Status status = load(0, merged, figures);
    if (status.ok() && merged > 0) status = merge(figures.merge);
    if (status.ok()) status = load(merged, options_.rows, figures);
    return status;
  }

  Status load(std::uint64_t begin, std::uint64_t end, ScanFigures& figures) {
    if (begin == end) return {};
    const std::uint64_t start = bench::monotonic_ns();
    const bench::ScanLoad load{begin, end, options_.load_threads,
                               [this](std::uint64_t done, std::uint64_t total) {
                                 bar_.update("loading", done, total, "rows");
                               }};
    Status status = bench::load_scan_rows(database_, table_, data_, load, totals_);
    figures.load_seconds += seconds_from(start);
    return status;
  }

  Status merge(std::optional<MergeReport>& merged) {
    MergeOptions merge;
    merge.scope = MergeScope::kEverything;
    merge.threads = options_.load_threads;
    merge.progress = [this](const Progress& progress) {
      bar_.update("merging", progress.done, progress.total, "chunks");
    };
    Result<MergeReport> report = database_.merge(table_, merge);
    if (!report.ok()) return std::move(report).status();
    merged = *report;
    return {};
  }

  Status query(ScanFigures& figures) {
    return run_all(totals_, figures.report.queries, figures.report.differences);
  }

  // Each query's times, and how what it found differs from what it should find.
  Status run_all(const bench::ScanTotals& totals, std::vector<bench::QueryFigures>& times,
                 std::vector<std::string>& differences) {
    const bench::Json expected = totals.expected();
    for (const bench::ScanQuery& query : queries_) {
      bar_.update("queries", times.size(), queries_.size());
      Result<bench::QueryFigures> result =
          bench::run_query(database_, query.name, query.question, query.query, options_.query.run);
      if (!result.ok()) return std::move(result).status();
      times.push_back(std::move(*result));
      differences.push_back(
          difference(*times.back().result, expected.at(std::string(query.name)), "as added up"));
    }
    return {};
  }

  Status plan_changes(ScanFigures& figures) {
    bar_.update("choosing rows", 0, 0);
    figures.clean.name = "clean";
    figures.clean.queries = figures.report.queries;
    if (Status status = look(figures.clean); !status.ok()) return status;
    changes_.emplace(data_, options_.states.changes());
    return changes_->plan(database_, table_);
  }

  // Where the rows are.
  Status look(ScanState& state) {
    const Result<MergeStatus> merges = database_.merge_status(table_);
    if (!merges.ok()) return merges.status();
    state.delta_rows = merges->delta_rows;
    state.main_rows = merges->main_rows;
    state.merges = merges->merges;
    return {};
  }

  // Runs the queries in a new state of the table.
  Status run_state(ScanState state, const bench::ScanTotals& totals, ScanStateFigures& figures) {
    std::vector<std::string> differences;
    Status status = run_all(totals, state.queries, differences);
    if (status.ok()) status = look(state);
    for (std::size_t i = 0; i < differences.size(); ++i)
      if (!differences[i].empty())
        figures.differences.push_back(
            fmt::format("{}: {}: {}", state.name, state.queries[i].name, differences[i]));
    figures.states.push_back(std::move(state));
    return status;
  }

  Status change(ScanStateFigures& figures) {
    const bench::ScanTotals* totals = &totals_;
    const auto run = [&](const char* name, Result<std::uint64_t> rows) {
      if (!rows.ok()) return std::move(rows).status();
      return run_state(ScanState(name, *rows), *totals, figures);
    };
    Status status;
    if (options_.states.updated > 0) {
      totals = &changes_->after_updates();
      bar_.update("updating", 0, 0);
      status = run(kAfterUpdates, changes_->update(database_, table_));
    }
    if (status.ok() && options_.states.deleted > 0) {
      totals = &changes_->after_deletions();
      bar_.update("deleting", 0, 0);
      status = run(kAfterDeletions, changes_->remove(database_, table_));
    }
    if (status.ok() && options_.states.updater != 0) status = run_beside_updater(*totals, figures);
    if (status.ok() && options_.states.wait_seconds > 0) {
      bar_.update("waiting for the policy", 0, 0);
      std::this_thread::sleep_for(std::chrono::duration<double>(options_.states.wait_seconds));
      status = run("left to the policy", 0);
    }
    return status.ok() ? run_merged(*totals, figures) : status;
  }

  Status run_merged(const bench::ScanTotals& totals, ScanStateFigures& figures) {
    std::optional<MergeReport> merged;
    if (Status status = merge(merged); !status.ok()) return status;
    ScanState state(kMerged);
    state.merge_seconds = merged->merge_us * 1e-6;
    return run_state(std::move(state), totals, figures);
  }

  Status run_beside_updater(const bench::ScanTotals& totals, ScanStateFigures& figures) {
    auto updater = bench::ScanUpdater::start(database_, table_, options_.states.updater);
    if (!updater.ok()) return std::move(updater).status();
    Status status = run_state(ScanState("beside updater"), totals, figures);
    Result<std::uint64_t> updated = (*updater)->stop();
    if (!updated.ok()) return std::move(updated).status();
    figures.states.back().rows = *updated;
    return status;
  }

  Status copy_to_duckdb() {
    bar_.update("to DuckDB", 0, 0);
    DuckdbJob job = duckdb_job(options_.query);
    job.file_bytes = ScanSpace(options_).duckdb_file;
    job.tables = {{"r", {"a", "b", "c", "d", "lc", "s"}}};
    job.parameters = bench::scan_parameters(data_);
    if (changes_.has_value()) {
      job.parameters.update(bench::scan_change_parameters(data_));
      if (options_.states.updated > 0)
        job.changes.push_back({kAfterUpdates, changes_->update_sql()});
      if (options_.states.deleted > 0)
        job.changes.push_back({kAfterDeletions, changes_->delete_sql()});
      job.changes.push_back({kMerged, "checkpoint"});
    }
    for (const bench::ScanQuery& query : queries_)
      job.queries.push_back({std::string(query.name), std::string(query.sql)});
    Result<DuckdbProcess> process = DuckdbProcess::start(database_, job);
    if (!process.ok()) return std::move(process).status();
    duckdb_.emplace(std::move(*process));
    const Result<Transaction> snapshot = database_.begin(AccessMode::kReadOnly);
    if (!snapshot.ok()) return snapshot.status();
    return duckdb_->copy(database_, *snapshot);
  }

  Status measure(ScanFigures& figures) {
    figures.statistics = database_.statistics();
    figures.dram_bytes = bench::dram_bytes();
    Result<TableStatistics> table = database_.table_statistics(table_);
    if (!table.ok()) return std::move(table).status();
    figures.table = *std::move(table);
    return {};
  }

  Status ask(ScanFigures& figures) {
    bar_.update("DuckDB", 0, 0);
    Result<DuckdbAnswer> answer = duckdb_->answer();
    if (!answer.ok()) return std::move(answer).status();
    figures.report.compare(std::move(*answer));
    figures.states.compare(figures.report.duckdb);
    return {};
  }

  const ScanOptions& options_;
  bench::ScanData data_;
  bench::ScanTotals totals_;
  std::vector<bench::ScanQuery> queries_;
  std::optional<PoolFile> pool_;
  Database database_;
  TableId table_;
  std::optional<bench::ScanChanges> changes_;
  std::optional<DuckdbProcess> duckdb_;
  ProgressBar bar_;
};

int run_command(const ScanOptions& options) {
  ScanFigures figures;
  Status status = ScanCommand(options).run(figures);
  if (!status.ok()) return could_not_run(status);
  print_scan(options, figures);
  return finish_with_json(options.query.json, scan_json(options, figures),
                          figures.have_held() ? kExitOk : kExitCheckFailed);
}

}  // namespace

void add_scan(CLI::App& app, Action& action) {
  auto options = std::make_shared<ScanOptions>();
  CLI::App* command =
      app.add_subcommand("scan", "Runs sums, filters, groups and look-ups on one large table");
  add_query_options(*command, options->query);
  command->add_option("--rows", options->rows, "Rows of the table")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{2'000'000'000}))
      ->capture_default_str();
  command
      ->add_option("--distinct", options->distinct,
                   "Distinct values in each of its 4 integer columns, all rows at most")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{2'000'000'000}))
      ->capture_default_str();
  command
      ->add_option("--side", options->side,
                   "Place of the rows: all merged, none merged, or the first half merged")
      ->check(CLI::IsMember({"main", "delta", "half"}))
      ->capture_default_str();
  command
      ->add_option(
          "--encoding", options->encoding,
          "Encoding of the 4 integer columns in the delta: codes, values, or the engine's choice")
      ->check(CLI::IsMember({"auto", "dictionary", "direct"}))
      ->capture_default_str();
  command
      ->add_option("--query", options->queries, "Run only this query; may be given several times")
      ->type_name("NAME");
  command->add_option("--load-threads", options->load_threads, "Threads that load and merge")
      ->check(CLI::Range(1u, 256u))
      ->capture_default_str();
  add_scm_options(*command, options->scm);
  command->add_option("--seed", options->seed, "Seed of all values")->capture_default_str();
  add_scan_state_options(*command, options->states);
  run_when_chosen(*command, action, [options] { return run_command(*options); });
}

}  // namespace flugs::tools
