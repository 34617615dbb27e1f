#include "tools/report/pool_report.h"

#include <fmt/format.h>

#include "flugs/query.h"
#include "tools/support/text_table.h"

namespace flugs::tools {

namespace {

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

}  // namespace

Result<Database> open_to_look(const std::string& path) {
  OpenOptions options;
  options.path = path;
  options.mode = OpenMode::kOpen;
  options.tuning.grow_ahead_bytes = 0;
  Result<Database> database = Database::open(options);
  if (database.code() != StatusCode::kReadOnly) return database;
  options.mode = OpenMode::kReadOnly;
  return Database::open(options);
}

Result<std::uint64_t> live_rows(Database& database, const std::string& table) {
  const Result<Transaction> snapshot = database.begin(AccessMode::kReadOnly);
  if (!snapshot.ok()) return snapshot.status();
  const query::Query rows = query::Query::table(table).group_by({}, {query::count().as("rows")});
  const Result<query::QueryResult> result = rows.run(*snapshot);
  if (!result.ok()) return result.status();
  const Result<std::int64_t> count = result->get<std::int64_t>(0, "rows");
  if (!count.ok()) return count.status();
  return static_cast<std::uint64_t>(*count);
}

void print_head(const Database& database, const Statistics& statistics) {
  fmt::print("pool: {}, medium {} ({}): {}\n", database.path(), statistics.medium, statistics.flush,
             statistics.guarantee);
  if (statistics.medium == "dax")
    fmt::print("shutdowns of its devices without power for their queues: {}\n",
               statistics.dirty_shutdowns);
  fmt::print(
      "{} in use, {} taken from the medium, can grow to {}; indexes: {} in the pool, {} in DRAM\n",
      format_bytes(statistics.pool_used_bytes), format_bytes(statistics.pool_allocated_bytes),
      format_bytes(statistics.pool_reserved_bytes), format_bytes(statistics.hint_index_bytes),
      format_bytes(statistics.dram_index_bytes));
  fmt::print(
      "{} free, {} in holes, {} for the pool itself; {} in reserve; at most {} left for rows\n\n",
      format_bytes(statistics.pool_free_bytes), format_bytes(statistics.pool_hole_bytes),
      format_bytes(statistics.pool_overhead_bytes), format_bytes(statistics.pool_reserve_bytes),
      format_bytes(statistics.pool_left_bytes));
}

std::vector<TableSchema> schemas_of(const Database& database) {
  std::vector<TableSchema> schemas;
  for (const TableId table : database.tables())
    if (Result<TableSchema> schema = database.schema(table); schema.ok())
      schemas.push_back(*std::move(schema));
  return schemas;
}

bench::Json schema_json(const TableSchema& schema) {
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
                                    {"on_delete", to_string(foreign.on_delete)},
                                    {"on_update", to_string(foreign.on_update)}});
  return json;
}

}  // namespace flugs::tools
