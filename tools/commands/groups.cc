#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/groups/group_load.h"
#include "bench/groups/group_queries.h"
#include "bench/support/clock.h"
#include "bench/support/environment.h"
#include "flugs/merge.h"
#include "tools/report/query_report.h"
#include "tools/support/command.h"
#include "tools/support/pool_file.h"
#include "tools/support/progress_bar.h"
#include "tools/support/tatp_options.h"
#include "tools/support/text_table.h"

namespace flugs::tools {

namespace {

struct GroupsOptions {
  QueryOptions query;
  std::uint64_t rows = 1'000'000;
  std::uint64_t groups = 500'000;
  std::string side = "main";
  std::vector<std::string> queries;  ///< by name; empty: all
  std::uint32_t load_threads = default_load_threads();
  std::uint64_t seed = 1;
  std::uint64_t duckdb_memory = 0;  ///< 0: its own limit

  std::uint64_t groups_in_rows() const noexcept { return std::min(groups, rows); }
  std::uint64_t pool_bytes() const noexcept {
    // A row of delta has 64 bytes, a text with its place in a dictionary about 100, and main less.
    return 64 * rows + 128 * groups_in_rows() + (std::uint64_t{768} << 20);
  }
  std::uint64_t duckdb_bytes() const noexcept { return 64 * rows + (std::uint64_t{256} << 20); }
};

struct GroupsFigures {
  std::string pool_path;
  double load_seconds = 0;
  double merge_seconds = 0;
  QueryReport report;
  Statistics statistics;
  std::uint64_t dram_bytes = 0;
};

double seconds_of_load(std::uint64_t begin_ns) {
  return static_cast<double>(bench::monotonic_ns() - begin_ns) * 1e-9;
}

class GroupsCommand {
 public:
  explicit GroupsCommand(const GroupsOptions& options)
      : options_(options), data_(options.rows, options.groups_in_rows(), options.seed) {}

  Status run(GroupsFigures& figures) {
    Status status = choose();
    if (status.ok()) status = open(figures);
    if (status.ok()) status = fill(figures);
    if (status.ok()) status = query(figures);
    if (status.ok() && !options_.query.duckdb.empty()) status = copy_to_duckdb();
    if (status.ok()) figures.statistics = database_.statistics();
    figures.dram_bytes = bench::dram_bytes();
    // Closes the database: DuckDB must not share memory with a pool that is not read any more.
    database_ = Database();
    pool_.reset();
    if (status.ok() && duckdb_.has_value()) {
      bar_.update("DuckDB", 0, 0);
      Result<DuckdbAnswer> answer = duckdb_->answer();
      if (!answer.ok()) return std::move(answer).status();
      figures.report.compare(*std::move(answer));
    }
    bar_.clear();
    return status;
  }

 private:
  // The queries asked for, in the benchmark's order.
  Status choose() {
    queries_ = bench::group_queries(data_);
    const std::vector<std::string>& names = options_.queries;
    const auto has = [](const auto& all, std::string_view name, auto&& of) {
      return std::any_of(all.begin(), all.end(), [&](const auto& one) { return of(one) == name; });
    };
    for (const std::string& name : names)
      if (!has(queries_, name, [](const auto& query) { return query.name; }))
        return Status(StatusCode::kInvalidArgument, "--query " + name + ": unknown query");
    if (names.empty()) return {};
    std::erase_if(queries_, [&](const bench::GroupQuery& query) {
      return !has(names, query.name, [](const std::string& name) { return name; });
    });
    return {};
  }

  Status open(GroupsFigures& figures) {
    const std::uint64_t bytes = options_.pool_bytes();
    const std::uint64_t needed =
        bytes + (options_.query.duckdb.empty() ? 0 : options_.duckdb_bytes());
    if (options_.query.pool.empty() && shared_memory_free_bytes() < needed)
      return Status(StatusCode::kOutOfSpace,
                    fmt::format("about {} are needed on /dev/shm, {} are free there: ask for fewer "
                                "--rows, or name a place with --pool",
                                format_bytes(needed), format_bytes(shared_memory_free_bytes())));
    Result<PoolFile> pool = PoolFile::choose(options_.query.pool, options_.query.keep, bytes);
    if (!pool.ok()) return std::move(pool).status();
    pool_ = std::move(*pool);
    if (!pool_->remark().empty()) fmt::print("{}\n", pool_->remark());
    figures.pool_path = pool_->path();
    OpenOptions open;
    open.path = pool_->path();
    open.index_place = options_.query.index_place;
    open.merge_policy.automatic = false;
    if (!pool_->existed()) open.max_bytes = 2 * bytes;
    Result<Database> database = Database::open(open);
    if (!database.ok()) return std::move(database).status();
    database_ = std::move(*database);
    return {};
  }

  Status fill(GroupsFigures& figures) {
    const std::uint64_t begin = bench::monotonic_ns();
    const Result<TableId> table = bench::load_groups(
        database_, data_, options_.load_threads, [this](std::uint64_t done, std::uint64_t total) {
          bar_.update("loading", done, total, "rows");
        });
    if (table.code() == StatusCode::kAlreadyExists)
      return Status(StatusCode::kAlreadyExists,
                    "the pool already holds a table g: name a different pool, or none");
    if (!table.ok()) return table.status();
    figures.load_seconds = seconds_of_load(begin);
    if (options_.side == "delta") return {};
    MergeOptions merge;
    merge.scope = MergeScope::kEverything;
    merge.threads = options_.load_threads;
    merge.progress = [this](const Progress& progress) {
      bar_.update("merging", progress.done, progress.total, "chunks");
    };
    const Result<MergeReport> merged = database_.merge(*table, merge);
    if (!merged.ok()) return merged.status();
    figures.merge_seconds = merged->merge_us * 1e-6;
    return {};
  }

  Status query(GroupsFigures& figures) {
    bar_.update("what should come out", 0, 0);
    const bench::Json expected = data_.expected();
    for (const bench::GroupQuery& query : queries_) {
      bar_.update("queries", figures.report.queries.size(), queries_.size());
      Result<bench::QueryFigures> result =
          bench::run_query(database_, query.name, query.question, query.query, options_.query.run);
      if (!result.ok()) return std::move(result).status();
      figures.report.differences.push_back(
          difference(*result->result, expected.at(std::string(query.name)), "as added up"));
      figures.report.queries.push_back(*std::move(result));
    }
    return {};
  }

  Status copy_to_duckdb() {
    bar_.update("to DuckDB", 0, 0);
    DuckdbJob job = duckdb_job(options_.query);
    job.file_bytes = options_.duckdb_bytes();
    job.memory_bytes_max = options_.duckdb_memory;
    job.tables = {{"g", {"k", "t", "v", "few"}}};
    job.parameters = bench::Json::object();
    for (const bench::GroupQuery& query : queries_)
      job.queries.push_back({std::string(query.name), query.sql});
    Result<DuckdbProcess> process = DuckdbProcess::start(database_, job);
    if (!process.ok()) return std::move(process).status();
    duckdb_.emplace(std::move(*process));
    const Result<Transaction> snapshot = database_.begin(AccessMode::kReadOnly);
    if (!snapshot.ok()) return snapshot.status();
    return duckdb_->copy(database_, *snapshot);
  }

  const GroupsOptions& options_;
  bench::GroupData data_;
  std::vector<bench::GroupQuery> queries_;
  std::optional<PoolFile> pool_;
  Database database_;
  std::optional<DuckdbProcess> duckdb_;
  ProgressBar bar_;
};

bench::Json groups_json(const GroupsOptions& options, const GroupsFigures& figures) {
  bench::Json json = query_header(options.query, figures.statistics);
  json["rows"] = options.rows;
  json["groups"] = options.groups_in_rows();
  json["side"] = options.side;
  json["seed"] = options.seed;
  json["memory_bytes_max"] = options.query.run.memory_bytes_max;
  json["queries"] = queries_json(figures.report);
  json["load_seconds"] = figures.load_seconds;
  json["merge_seconds"] = figures.merge_seconds;
  if (figures.report.has_duckdb())
    json["duckdb"] = {{"version", figures.report.duckdb.version},
                      {"load_seconds", figures.report.duckdb.load_seconds},
                      {"file_bytes", figures.report.duckdb.file_bytes},
                      {"memory_bytes_max", options.duckdb_memory}};
  json["pool_bytes"] = figures.statistics.pool_allocated_bytes;
  json["dram_bytes"] = figures.dram_bytes;
  json["machine"] = bench::to_json(bench::environment());
  return json;
}

void print_groups(const GroupsOptions& options, const GroupsFigures& figures) {
  fmt::print("groups: {} rows, {} groups, all in {}, {} thread{}, {} a query\n", options.rows,
             options.groups_in_rows(), options.side, options.query.run.threads,
             options.query.run.threads == 1 ? "" : "s",
             format_bytes(options.query.run.memory_bytes_max));
  fmt::print("pool: {}, medium {}: {}\n", figures.pool_path, figures.statistics.medium,
             figures.statistics.guarantee);
  fmt::print("loaded in {:.2f} s, merged in {:.2f} s\n", figures.load_seconds,
             figures.merge_seconds);
  const auto& queries = figures.report.queries;
  std::vector<ReportColumn> columns = {
      {"memory",
       [](const bench::QueryFigures& query) {
         return format_bytes(query.result->statistics().memory_bytes_peak);
       }},
      {"resident",
       [](const bench::QueryFigures& query) { return format_bytes(query.resident_bytes); }}};
  if (figures.report.has_duckdb())
    columns.push_back({"DuckDB's", [&](const bench::QueryFigures& query) {
                         const auto at = static_cast<std::size_t>(&query - queries.data());
                         return format_bytes(figures.report.duckdb.queries[at].resident_bytes);
                       }});
  print_queries(options.query, figures.report, columns);
  fmt::print("results: {}\n", figures.report.all_held() ? "correct" : "WRONG");
  print_query_problems(figures.report);
}

int run_command(const GroupsOptions& options) {
  GroupsFigures figures;
  const Status status = GroupsCommand(options).run(figures);
  if (!status.ok()) return could_not_run(status);
  print_groups(options, figures);
  return finish_with_json(options.query.json, groups_json(options, figures),
                          figures.report.all_held() ? kExitOk : kExitCheckFailed);
}

}  // namespace

void add_groups(CLI::App& app, Action& action) {
  auto options = std::make_shared<GroupsOptions>();
  options->query.run.measures_resident = true;
  CLI::App* command =
      app.add_subcommand("groups", "Groups by keys of many values, and sorts all rows");
  add_query_options(*command, options->query);
  command->add_option("--rows", options->rows, "Rows of the table")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1'000'000'000}))
      ->capture_default_str();
  command->add_option("--groups", options->groups, "Values of its key, all rows at most")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1'000'000'000}))
      ->capture_default_str();
  command->add_option("--side", options->side, "Place of the rows: all merged, or none")
      ->check(CLI::IsMember({"main", "delta"}))
      ->capture_default_str();
  command
      ->add_option("--query", options->queries, "Run only this query; may be given several times")
      ->type_name("NAME");
  command
      ->add_option("--memory", options->query.run.memory_bytes_max,
                   "Memory that a query may take, also with a unit, such as 256MiB; beyond it "
                   "temporary files are used")
      ->transform(CLI::AsSizeValue(true).description(""))
      ->type_name("BYTES")
      ->default_str("4GiB");
  command->add_option("--duckdb-memory", options->duckdb_memory, "Memory that DuckDB may take")
      ->transform(CLI::AsSizeValue(true).description(""))
      ->type_name("BYTES")
      ->default_str("its own limit");
  command
      ->add_option("--temporary-folder", options->query.run.temporary_folder,
                   "Folder of the temporary files")
      ->type_name("DIR")
      ->default_str("the system's");
  command->add_option("--load-threads", options->load_threads, "Threads that load and merge")
      ->check(CLI::Range(1u, 256u))
      ->capture_default_str();
  command->add_option("--seed", options->seed, "Seed of all values")->capture_default_str();
  run_when_chosen(*command, action, [options] { return run_command(*options); });
}

}  // namespace flugs::tools
