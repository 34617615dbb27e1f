#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/support/environment.h"
#include "flugs/database.h"
#include "tools/support/command.h"
#include "tools/support/tatp_options.h"
#include "tools/support/text_table.h"

namespace flugs::tools {

namespace {

struct PoolOptions {
  std::string pool;
  std::string json;
};

const char* name_of(Encoding encoding) {
  switch (encoding) {
    case Encoding::kAuto:
      return "auto";
    case Encoding::kDictionary:
      return "dictionary";
    case Encoding::kDirect:
      return "direct";
  }
  return "unknown";
}

const char* name_of(ReferenceAction action) {
  switch (action) {
    case ReferenceAction::kRestrict:
      return "restrict";
    case ReferenceAction::kCascade:
      return "cascade";
    case ReferenceAction::kSetNull:
      return "set null";
  }
  return "unknown";
}

std::string list_of(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return list;
}

bench::Json to_json(const TableSchema& schema) {
  bench::Json json;
  json["name"] = schema.name;
  json["columns"] = bench::Json::array();
  for (const ColumnSchema& column : schema.columns) {
    bench::Json entry = {{"name", column.name},
                         {"type", to_string(column.type)},
                         {"nullable", column.nullable},
                         {"encoding", name_of(column.encoding)}};
    if (column.type == Type::kDecimal) entry["scale"] = column.scale;
    if (column.default_value.has_value()) entry["default"] = column.default_value->to_string();
    if (column.auto_increment) entry["auto_increment"] = true;
    json["columns"].push_back(entry);
  }
  json["keys"] = bench::Json::array();
  for (const KeySchema& key : schema.keys) {
    if (key.dropped) continue;
    json["keys"].push_back({{"name", key.name},
                            {"columns", key.columns},
                            {"unique", key.unique},
                            {"ordered", key.ordered},
                            {"hashed_columns", key.hashed_columns}});
  }
  json["checks"] = bench::Json::array();
  for (const CheckSchema& check : schema.checks)
    json["checks"].push_back({{"name", check.name}, {"condition", check.condition.to_string()}});
  json["foreign_keys"] = bench::Json::array();
  for (const ForeignKeySchema& foreign : schema.foreign_keys)
    json["foreign_keys"].push_back({{"name", foreign.name},
                                    {"columns", foreign.columns},
                                    {"table", foreign.table},
                                    {"key", foreign.key},
                                    {"on_delete", name_of(foreign.on_delete)},
                                    {"on_update", name_of(foreign.on_update)}});
  return json;
}

bench::Json to_json(const TableStatistics& table) {
  bench::Json json = {{"name", table.name},
                      {"rows_reserved", table.rows_reserved},
                      {"rows_free", table.rows_free},
                      {"chunks", table.chunks},
                      {"chunk_bytes", table.chunk_bytes},
                      {"groups", table.groups},
                      {"group_rows", table.group_rows},
                      {"group_bytes", table.group_bytes},
                      {"row_bytes", table.row_bytes},
                      {"key_index_bytes", table.key_index_bytes},
                      {"index_runs", table.index_runs},
                      {"index_run_bytes", table.index_run_bytes}};
  json["columns"] = bench::Json::array();
  for (const ColumnStatistics& column : table.columns)
    json["columns"].push_back({{"name", column.name},
                               {"type", to_string(column.type)},
                               {"dictionary_encoded", column.dictionary_encoded},
                               {"dictionary_entries", column.dictionary_entries},
                               {"dictionary_bytes", column.dictionary_bytes},
                               {"cell_bits", column.cell_bits}});
  return json;
}

void print_head(const Database& database, const Statistics& statistics) {
  fmt::print("pool: {}, medium {} ({}): {}\n", database.path(), statistics.medium, statistics.flush,
             statistics.guarantee);
  fmt::print(
      "{} in use, {} taken from the medium, can grow to {}; index mode {}: indexes in DRAM {}, in "
      "the pool {}\n\n",
      format_bytes(statistics.pool_used_bytes), format_bytes(statistics.pool_allocated_bytes),
      format_bytes(statistics.pool_reserved_bytes), to_string(statistics.index_place),
      format_bytes(statistics.dram_index_bytes), format_bytes(statistics.hint_index_bytes));
}

void print_schema(const TableSchema& schema) {
  fmt::print("table {}\n", schema.name);
  TextTable columns({"column", "type", "null", "encoding", "default"});
  for (const ColumnSchema& column : schema.columns) {
    std::string type(to_string(column.type));
    if (column.type == Type::kDecimal) type += fmt::format("(18,{})", column.scale);
    const std::string by_default = column.default_value.has_value()
                                       ? column.default_value->to_string()
                                   : column.auto_increment ? "a number"
                                                           : "";
    columns.add(
        {column.name, type, column.nullable ? "yes" : "no", name_of(column.encoding), by_default});
  }
  fmt::print("{}", columns.to_string());
  for (const KeySchema& key : schema.keys)
    if (!key.dropped)
      fmt::print("key {} ({}){}{}\n", key.name, list_of(key.columns), key.unique ? ", unique" : "",
                 key.ordered ? ", ordered" : "");
  for (const CheckSchema& check : schema.checks)
    fmt::print("check {}: {}\n", check.name, check.condition.to_string());
  for (const ForeignKeySchema& foreign : schema.foreign_keys)
    fmt::print("foreign key {} ({}) to table {}, key {}; on delete {}, on update {}\n",
               foreign.name, list_of(foreign.columns), foreign.table, foreign.key,
               name_of(foreign.on_delete), name_of(foreign.on_update));
}

bench::Json halves_json(const MergeStatus& status) {
  return {{"delta_rows", status.delta_rows},
          {"delta_bytes", status.delta_bytes},
          {"main_rows", status.main_rows},
          {"main_bytes", status.main_bytes}};
}

void print_halves(const MergeStatus& status) {
  fmt::print("delta: room for {} rows, dead and unused ones too, {}; main: {} rows, {}\n\n",
             status.delta_rows, format_bytes(status.delta_bytes), status.main_rows,
             format_bytes(status.main_bytes));
}

void print_report(const RecoveryReport& report) {
  TextTable table({"opening it", "ms", "items"});
  for (const RecoveryReport::Phase& phase : report.phases)
    table.add({phase.name, fmt::format("{:.3f}", phase.duration_us * 1e-3),
               fmt::format("{}", phase.items)});
  table.add({"in all", fmt::format("{:.3f}", report.total_us * 1e-3), ""});
  fmt::print("{}", table.to_string());
  fmt::print(
      "transactions completed {}, undone {}; dictionary entries looked at {} ({} dropped); of rows "
      "looked at {} live, {} ready for reuse; {} threads\n",
      report.transactions_completed, report.transactions_undone, report.dictionary_entries,
      report.dictionary_entries_dropped, report.rows_live, report.rows_recycled, report.threads);
}

Result<Database> open_existing(const std::string& path) {
  OpenOptions options;
  options.path = path;
  options.mode = OpenMode::kOpen;
  options.grow_ahead_bytes = 0;  // only looked at
  return Database::open(options);
}

int run_info(const PoolOptions& options) {
  const Result<Database> database = open_existing(options.pool);
  if (!database.ok()) return could_not_run(database.status());
  const Statistics statistics = database.value().statistics();
  print_head(database.value(), statistics);
  bench::Json json = {{"commit", bench::environment().commit},
                      {"pool", database.value().path()},
                      {"medium", statistics.medium},
                      {"flush", statistics.flush},
                      {"guarantee", statistics.guarantee},
                      {"pool_reserved_bytes", statistics.pool_reserved_bytes},
                      {"pool_bytes", statistics.pool_allocated_bytes},
                      {"pool_used_bytes", statistics.pool_used_bytes},
                      {"index", to_string(statistics.index_place)},
                      {"clock", to_string(statistics.clock)},
                      {"dram_index_bytes", statistics.dram_index_bytes},
                      {"hint_index_bytes", statistics.hint_index_bytes}};
  json["tables"] = bench::Json::array();
  for (const TableId table : database.value().tables()) {
    const Result<TableSchema> schema = database.value().schema(table);
    if (!schema.ok()) return could_not_run(schema.status());
    const Result<MergeStatus> halves = database.value().merge_status(table);
    if (!halves.ok()) return could_not_run(halves.status());
    print_schema(schema.value());
    print_halves(halves.value());
    json["tables"].push_back(to_json(schema.value()));
    json["tables"].back().update(halves_json(halves.value()));
  }
  print_report(database.value().recovery_report());
  json["recovery"] = bench::to_json(database.value().recovery_report());
  return finish_with_json(options.json, json, kExitOk);
}

void print_table_statistics(const TableStatistics& table) {
  fmt::print("table {}: {} rows reserved, {} free; {} chunks, {}; {} bytes a row; key indexes {}\n",
             table.name, table.rows_reserved, table.rows_free, table.chunks,
             format_bytes(table.chunk_bytes), table.row_bytes, format_bytes(table.key_index_bytes));
  if (table.groups != 0)
    fmt::print("in main: {} of the chunks, {} rows, {}; {} index runs, {}\n", table.groups,
               table.group_rows, format_bytes(table.group_bytes), table.index_runs,
               format_bytes(table.index_run_bytes));
  TextTable columns({"column", "type", "bits", "dictionary entries", "bytes"});
  for (const ColumnStatistics& column : table.columns)
    columns.add({column.name, std::string(to_string(column.type)),
                 fmt::format("{}", column.cell_bits),
                 column.dictionary_encoded ? fmt::format("{}", column.dictionary_entries) : "-",
                 column.dictionary_encoded ? format_bytes(column.dictionary_bytes) : "-"});
  fmt::print("{}\n", columns.to_string());
}

int run_stats(const PoolOptions& options) {
  const Result<Database> database = open_existing(options.pool);
  if (!database.ok()) return could_not_run(database.status());
  const Statistics statistics = database.value().statistics();
  print_head(database.value(), statistics);
  bench::Json json = {{"commit", bench::environment().commit},
                      {"pool", database.value().path()},
                      {"medium", statistics.medium},
                      {"flush", statistics.flush},
                      {"pool_bytes", statistics.pool_allocated_bytes},
                      {"pool_used_bytes", statistics.pool_used_bytes},
                      {"dram_index_bytes", statistics.dram_index_bytes},
                      {"dram_bytes", bench::dram_bytes()},
                      {"lines_flushed", statistics.lines_flushed},
                      {"fences", statistics.fences},
                      {"bytes_written", statistics.bytes_written},
                      {"transactions_committed", statistics.transactions_committed},
                      {"transactions_aborted", statistics.transactions_aborted},
                      {"conflicts", statistics.conflicts}};
  json["tables"] = bench::Json::array();
  for (const TableId table : database.value().tables()) {
    const Result<TableStatistics> found = database.value().table_statistics(table);
    if (!found.ok()) return could_not_run(found.status());
    print_table_statistics(found.value());
    json["tables"].push_back(to_json(found.value()));
  }
  fmt::print("since it was opened: {} lines flushed, {} fences, {} written\n",
             statistics.lines_flushed, statistics.fences, format_bytes(statistics.bytes_written));
  return finish_with_json(options.json, json, kExitOk);
}

void add_pool_command(CLI::App& app, Action& action, const char* name, const char* description,
                      int (*run)(const PoolOptions&)) {
  auto options = std::make_shared<PoolOptions>();
  CLI::App* command = app.add_subcommand(name, description);
  add_pool_argument(*command, options->pool);
  add_json_option(*command, options->json);
  command->callback([options, &action, run] { action = [options, run] { return run(*options); }; });
}

}  // namespace

void add_info(CLI::App& app, Action& action) {
  add_pool_command(app, action, "info",
                   "Describes a pool: schema, medium, sizes, work done by opening", run_info);
}

void add_stats(CLI::App& app, Action& action) {
  add_pool_command(app, action, "stats", "Shows how full a pool is: tables, dictionaries, counters",
                   run_stats);
}

}  // namespace flugs::tools
