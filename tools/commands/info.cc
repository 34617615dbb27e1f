#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/support/environment.h"
#include "flugs/pool_description.h"
#include "tools/report/pool_report.h"
#include "tools/report/schema_text.h"
#include "tools/support/command.h"
#include "tools/support/tatp_options.h"
#include "tools/support/text_table.h"

namespace flugs::tools {

namespace {

struct InfoOptions {
  std::string pool;
  bool verbose = false;
  std::string json;
};

bench::Json halves_json(const MergeStatus& status) {
  return {{"delta_rows", status.delta_rows},
          {"delta_bytes", status.delta_bytes},
          {"main_rows", status.main_rows},
          {"main_bytes", status.main_bytes}};
}

void print_report(const RecoveryReport& report) {
  TextTable table({"opening it", "ms", "items"});
  for (const RecoveryReport::Phase& phase : report.phases)
    table.add({phase.name, fmt::format("{:.3f}", phase.duration_us * 1e-3),
               fmt::format("{}", phase.items)});
  table.add({"in all", fmt::format("{:.3f}", report.total_us * 1e-3), ""});
  fmt::print("{}", table.to_string());
  fmt::print(
      "{} threads; transactions: {} completed, {} undone; dictionary entries: {} looked at, {} "
      "dropped\nrows looked at: {} live, {} ready for use again\n",
      report.threads, report.transactions_completed, report.transactions_undone,
      report.dictionary_entries, report.dictionary_entries_dropped, report.rows_live,
      report.rows_recycled);
}

std::size_t columns_of(const TableSchema& schema) {
  std::size_t columns = 0;
  for (const ColumnSchema& column : schema.columns) columns += column.dropped ? 0 : 1;
  return columns;
}

std::size_t keys_of(const TableSchema& schema) {
  std::size_t keys = 0;
  for (const KeySchema& key : schema.keys) keys += key.dropped ? 0 : 1;
  return keys;
}

bench::Json space_json(const TableStatistics& space, const MergeEstimate& estimate) {
  return {{"pool_bytes", space.pool_bytes},
          {"delta_bytes", space.delta_bytes},
          {"main_bytes", space.main_bytes},
          {"dictionary_bytes", space.dictionary_bytes},
          {"hint_index_bytes", space.hint_index_bytes},
          {"index_run_bytes", space.index_run_bytes},
          {"catalog_bytes", space.catalog_bytes},
          {"replaced_bytes", space.replaced_bytes},
          {"dead_bytes_estimate",
           {{"rows_dead", estimate.rows_dead},
            {"dead_bytes", estimate.dead_bytes},
            {"unused_bytes", estimate.unused_bytes},
            {"unneeded_bytes", estimate.unneeded_bytes},
            {"bytes", estimate.bytes()}}}};
}

/// Adds a table to what is printed and written.
Status describe_table(Database& database, TableId id, TextTable& table, bench::Json& json) {
  const Result<TableSchema> schema = database.schema(id);
  if (!schema.ok()) return schema.status();
  const Result<MergeStatus> halves = database.merge_status(id);
  if (!halves.ok()) return halves.status();
  const Result<TableStatistics> space = database.table_statistics(id);
  if (!space.ok()) return space.status();
  const Result<MergeEstimate> estimate = database.estimate_merge(id);
  if (!estimate.ok()) return estimate.status();
  const Result<std::uint64_t> rows = live_rows(database, schema->name);
  if (!rows.ok()) return rows.status();
  table.add({schema->name, fmt::format("{}", *rows), fmt::format("{}", halves->main_rows),
             format_bytes(space->delta_bytes), format_bytes(space->main_bytes),
             format_bytes(space->dictionary_bytes),
             format_bytes(space->hint_index_bytes + space->index_run_bytes),
             format_bytes(space->pool_bytes), format_bytes(estimate->bytes())});
  json.push_back(schema_json(*schema));
  json.back().update(halves_json(*halves));
  json.back()["space"] = space_json(*space, *estimate);
  json.back()["rows_live"] = *rows;
  return {};
}

bench::Json head_json(const Database& database, const Statistics& statistics) {
  return {{"commit", bench::environment().commit},
          {"pool", database.path()},
          {"opened", true},
          {"medium", statistics.medium},
          {"flush", statistics.flush},
          {"dirty_shutdowns", statistics.dirty_shutdowns},
          {"guarantee", statistics.guarantee},
          {"pool_reserved_bytes", statistics.pool_reserved_bytes},
          {"pool_bytes", statistics.pool_allocated_bytes},
          {"pool_used_bytes", statistics.pool_used_bytes},
          {"pool_free_bytes", statistics.pool_free_bytes},
          {"pool_overhead_bytes", statistics.pool_overhead_bytes},
          {"pool_hole_bytes", statistics.pool_hole_bytes},
          {"pool_reserve_bytes", statistics.pool_reserve_bytes},
          {"pool_left_bytes", statistics.pool_left_bytes},
          {"index", to_string(statistics.index_place)},
          {"clock", to_string(statistics.clock)},
          {"dram_index_bytes", statistics.dram_index_bytes},
          {"hint_index_bytes", statistics.hint_index_bytes}};
}

int describe_opened(const InfoOptions& options, Database& database) {
  const Statistics statistics = database.statistics();
  bench::Json json = head_json(database, statistics);
  json["tables"] = bench::Json::array();
  TextTable tables({"table", "rows", "rows of main", "delta", "main", "dictionaries", "indexes",
                    "in all", "dead"});
  for (const TableId id : database.tables())
    if (const Status s = describe_table(database, id, tables, json["tables"]); !s.ok())
      return could_not_run(s);
  print_head(database, statistics);
  fmt::print("{}", tables.to_string());
  fmt::print(
      "bytes in the pool; dead: of these, about what merges of everything would give back\n\n");
  if (options.verbose) fmt::print("{}\n", schema_text(schemas_of(database)));
  print_report(database.recovery_report());
  if (!options.verbose) fmt::print("\n-v shows the schema\n");
  json["recovery"] = bench::to_json(database.recovery_report());
  return finish_with_json(options.json, json, kExitOk);
}

/// What can be said of a pool that could not be opened: header, sizes, and schemas unless another
/// process may change them.
int describe_unopened(const InfoOptions& options, const Status& why) {
  const Result<PoolDescription> found = describe_pool(options.pool);
  if (!found.ok()) return could_not_run(why);
  const PoolDescription& pool = *found;
  bench::Json json = {{"commit", bench::environment().commit},
                      {"pool", options.pool},
                      {"opened", false},
                      {"why", std::string(why.message())},
                      {"open_for_writing", pool.is_open_for_writing},
                      {"medium", pool.medium},
                      {"guarantee", pool.guarantee},
                      {"format_version", pool.format_version},
                      {"pool_reserved_bytes", pool.max_bytes},
                      {"pool_bytes", pool.pool_bytes},
                      {"medium_bytes", pool.medium_bytes},
                      {"index", to_string(pool.index_place)},
                      {"tables", nullptr}};
  fmt::print("pool: {}, medium {}: {}\n", options.pool, pool.medium, pool.guarantee);
  fmt::print("{} taken from the medium, can grow to {}; format {}; indexes in {}\n",
             format_bytes(pool.pool_bytes), format_bytes(pool.max_bytes), pool.format_version,
             pool.index_place == IndexPlace::kPool ? "the pool" : "DRAM");
  if (pool.is_open_for_writing) {
    fmt::print("\nanother process has the pool open: only its header was read\n");
    return finish_with_json(options.json, json, kExitOk);
  }
  fmt::print("\nnot opened, because it cannot be written: rows are not counted\n\n");
  const std::vector<TableSchema> schemas = pool.tables.value_or(std::vector<TableSchema>());
  TextTable tables({"table", "columns", "keys"});
  json["tables"] = bench::Json::array();
  for (const TableSchema& schema : schemas) {
    tables.add(
        {schema.name, fmt::format("{}", columns_of(schema)), fmt::format("{}", keys_of(schema))});
    json["tables"].push_back(schema_json(schema));
  }
  fmt::print("{}", tables.to_string());
  if (options.verbose) fmt::print("\n{}", schema_text(schemas));
  return finish_with_json(options.json, json, kExitOk);
}

int run_info(const InfoOptions& options) {
  Result<Database> database = open_to_look(options.pool);
  if (database.ok()) return describe_opened(options, *database);
  return database.code() == StatusCode::kBusy ? describe_unopened(options, database.status())
                                              : could_not_run(database.status());
}

}  // namespace

void add_info(CLI::App& app, Action& action) {
  auto options = std::make_shared<InfoOptions>();
  CLI::App* command =
      app.add_subcommand("info", "Shows medium, sizes, tables and rows; also of a pool in use");
  command->add_option("POOL", options->pool, "A pool; one in use is not opened")->required();
  add_verbose_flag(*command, options->verbose);
  add_json_option(*command, options->json);
  command->callback([options, &action] { action = [options] { return run_info(*options); }; });
}

}  // namespace flugs::tools
