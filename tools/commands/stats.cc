#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/support/environment.h"
#include "bindings/fields/statistics_fields.h"
#include "tools/report/pool_report.h"
#include "tools/support/command.h"
#include "tools/support/text_table.h"

namespace flugs::tools {

namespace {

struct StatsOptions {
  std::string pool;
  bool verbose = false;
  std::string json;
};

/// A table, and the figures that the library does not count itself.
struct TableFigures {
  TableStatistics statistics;
  MergeStatus merge;
  std::uint64_t rows_live = 0;

  std::uint64_t dictionary_bytes() const {
    std::uint64_t bytes = 0;
    for (const ColumnStatistics& column : statistics.columns) bytes += column.dictionary_bytes;
    return bytes;
  }
};

Result<TableFigures> figures_of(Database& database, TableId table) {
  Result<TableStatistics> statistics = database.table_statistics(table);
  if (!statistics.ok()) return std::move(statistics).status();
  const Result<MergeStatus> merge = database.merge_status(table);
  if (!merge.ok()) return merge.status();
  const Result<std::uint64_t> rows = live_rows(database, statistics->name);
  if (!rows.ok()) return rows.status();
  return TableFigures{*std::move(statistics), *merge, *rows};
}

template <typename Struct>
void add_fields(bench::Json& json, const Struct& figures) {
  fields::each_field(figures, [&](const char* name, auto value) { json[name] = value; });
}

bench::Json to_json(const TableFigures& figures) {
  bench::Json json = {{"rows_live", figures.rows_live}};
  add_fields(json, figures.statistics);
  json["columns"] = bench::Json::array();
  for (const ColumnStatistics& column : figures.statistics.columns)
    add_fields(json["columns"].emplace_back(bench::Json::object()), column);
  return json;
}

void print_summary(const std::vector<TableFigures>& tables) {
  TextTable table(
      {"table", "rows", "positions", "free", "delta", "main", "dictionaries", "key indexes"});
  for (const TableFigures& f : tables)
    table.add({f.statistics.name, fmt::format("{}", f.rows_live),
               fmt::format("{}", f.statistics.rows_reserved),
               fmt::format("{}", f.statistics.rows_free), format_bytes(f.merge.delta_bytes),
               format_bytes(f.merge.main_bytes), format_bytes(f.dictionary_bytes()),
               format_bytes(f.statistics.index_run_bytes + f.statistics.key_index_bytes)});
  fmt::print("{}", table.to_string());
  fmt::print(
      "rows: what a new transaction sees; positions: places of rows, used at any time; free: those "
      "of them\nthat are ready for use; key indexes: in DRAM, and those of main in the pool\n");
}

void print_details(const TableFigures& figures) {
  const TableStatistics& table = figures.statistics;
  fmt::print("\ntable {}\nchunks: {}, {}; a new row: {} bytes; key indexes in DRAM: {}\n",
             table.name, table.chunks, format_bytes(table.chunk_bytes), table.row_bytes,
             format_bytes(table.key_index_bytes));
  if (table.groups != 0)
    fmt::print("of the chunks in main: {}, {} rows, {}; index runs: {}, {}\n", table.groups,
               table.group_rows, format_bytes(table.group_bytes), table.index_runs,
               format_bytes(table.index_run_bytes));
  TextTable columns({"column", "type", "bits", "dictionary entries", "bytes", "reusable"}, {0, 1});
  for (const ColumnStatistics& column : table.columns)
    columns.add({column.name, std::string(to_string(column.type)),
                 fmt::format("{}", column.cell_bits),
                 column.dictionary_encoded ? fmt::format("{}", column.dictionary_entries) : "-",
                 column.dictionary_bytes != 0 ? format_bytes(column.dictionary_bytes) : "-",
                 column.text_bytes_reusable != 0 ? format_bytes(column.text_bytes_reusable) : "-"});
  fmt::print("{}", columns.to_string());
}

bench::Json to_json(const Database& database, const Statistics& statistics) {
  bench::Json json = {{"commit", bench::environment().commit},
                      {"pool", database.path()},
                      {"pool_bytes", statistics.pool_allocated_bytes},
                      {"dram_bytes", bench::dram_bytes()}};
  add_fields(json, statistics);
  return json;
}

/// Names the command that can look at a pool which cannot be opened.
Status cannot_look(const Status& why) {
  if (why.code() != StatusCode::kBusy) return why;
  return Status(why.code(), fmt::format("{}; 'flugs pool info' describes it without opening it",
                                        why.message()));
}

int run_stats(const StatsOptions& options) {
  Result<Database> database = open_to_look(options.pool);
  if (!database.ok()) return could_not_run(cannot_look(database.status()));
  const Statistics statistics = database->statistics();
  bench::Json json = to_json(*database, statistics);
  json["tables"] = bench::Json::array();
  std::vector<TableFigures> tables;
  for (const TableId table : database->tables()) {
    Result<TableFigures> figures = figures_of(*database, table);
    if (!figures.ok()) return could_not_run(figures.status());
    json["tables"].push_back(to_json(*figures));
    tables.push_back(*std::move(figures));
  }
  print_head(*database, statistics);
  print_summary(tables);
  if (options.verbose) {
    for (const TableFigures& figures : tables) print_details(figures);
    fmt::print("\nsince it was opened: {} lines flushed, {} fences, {} written\n",
               statistics.lines_flushed, statistics.fences, format_bytes(statistics.bytes_written));
  } else {
    fmt::print("\n-v shows the columns\n");
  }
  return finish_with_json(options.json, json, kExitOk);
}

}  // namespace

void add_stats(CLI::App& app, Action& action) {
  auto options = std::make_shared<StatsOptions>();
  CLI::App* command =
      app.add_subcommand("stats", "Shows how full a pool is: rows, tables, dictionaries, indexes");
  add_pool_argument(*command, options->pool);
  add_verbose_flag(*command, options->verbose);
  add_json_option(*command, options->json);
  command->callback([options, &action] { action = [options] { return run_stats(*options); }; });
}

}  // namespace flugs::tools
