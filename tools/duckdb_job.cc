#include "tools/duckdb_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <utility>

#include "tools/child_process.h"
#include "tools/cleanup.h"
#include "tools/pool_file.h"

namespace flugs::tools {

namespace {

constexpr std::uint64_t kFilesBytes = std::uint64_t{2} << 30;  // more than any job's should take

const char* duckdb_type(Type type) noexcept {
  switch (type) {
    case Type::kBool:
      return "boolean";
    case Type::kInt32:
    case Type::kDate:
      return "integer";
    case Type::kDouble:
      return "double";
    case Type::kString:
      return "varchar";
    case Type::kBytes:
      return "blob";
    default:
      return "bigint";
  }
}

/// As RFC 4180 has it; nothing at all is NULL, a text always quoted.
void append_csv(std::string& line, const Value& value) {
  if (value.is_null()) return;
  if (value.type() == Type::kDouble) {
    line += fmt::format("{}", value.as_double());
  } else if (value.type() != Type::kString && value.type() != Type::kBytes) {
    line += std::to_string(value.raw());
  } else {
    line += '"';
    for (const char letter : value.as_string())
      line += letter == '"' ? "\"\"" : std::string(1, letter);
    line += '"';
  }
}

/// Writes the columns to `path`; gives the job's words for the table.
Result<bench::Json> export_table(const Database& database, const Transaction& transaction,
                                 const DuckdbJob::Table& table, const std::string& path) {
  const Result<TableId> id = database.find_table(table.name);
  if (!id.ok()) return id.status();
  const Result<TableSchema> schema = database.schema(*id);
  if (!schema.ok()) return schema.status();
  bench::Json types = bench::Json::object();
  std::vector<ColumnId> columns;
  for (const std::string& name : table.columns) {
    const Result<ColumnId> column = database.find_column(*id, name);
    if (!column.ok()) return column.status();
    columns.push_back(*column);
    types[name] = duckdb_type(schema->columns[column->value()].type);
  }
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  std::string text;
  Status status = transaction.scan(*id, columns, Predicate::all(), [&](const ScanBatch& batch) {
    text.clear();
    for (std::size_t row = 0; row < batch.row_count(); ++row)
      for (std::size_t i = 0; i < columns.size(); ++i) {
        append_csv(text, batch.value(i, row));
        text += i + 1 < columns.size() ? ',' : '\n';
      }
    file << text;
    return file.good();
  });
  file.close();
  if (!status.ok()) return status;
  if (!file) return Status(StatusCode::kIoError, "cannot write " + path);
  return bench::Json{{"name", table.name}, {"file", path}, {"columns", types}};
}

/// Runs the program; what it says when it fails goes to standard error.
Status run_program(const std::string& program, const std::string& job, const std::string& answer) {
  Result<ChildProcess> child = ChildProcess::start_program(program, {program, job, answer});
  if (!child.ok()) return std::move(child).status();
  child->wait();
  if (child->exit_status() == 0) return {};
  return Status(StatusCode::kIoError, program + " " + child->describe_end());
}

Result<DuckdbAnswer> read_answer(const std::string& path, std::size_t queries) {
  std::ifstream file(path);
  const bench::Json json = bench::Json::parse(file, nullptr, false);
  if (!json.is_object() || !json.contains("queries") || json["queries"].size() != queries)
    return Status(StatusCode::kIoError, path + " is not what tools/duckdb writes");
  DuckdbAnswer answer;
  answer.version = json.value("version", "unknown");
  answer.load_seconds = json.value("load_seconds", 0.0);
  for (const bench::Json& query : json["queries"])
    answer.queries.push_back({query["ms"].get<std::vector<double>>(), query["rows"]});
  return answer;
}

bool is_equal(const Value& value, const bench::Json& cell) {
  if (value.is_null()) return cell.is_null();
  if (value.type() == Type::kString)
    return cell.is_string() && cell.get_ref<const std::string&>() == value.as_string();
  if (value.type() != Type::kDouble)
    return cell.is_number_integer() && cell.get<std::int64_t>() == value.raw();
  if (!cell.is_number()) return false;
  constexpr double kRounding = 1e-12;
  const double ours = value.as_double();
  const double theirs = cell.get<double>();
  return std::abs(ours - theirs) <= kRounding * std::max(std::abs(ours), std::abs(theirs));
}

}  // namespace

double DuckdbAnswer::Query::median_ms() const {
  if (ms.empty()) return 0;
  std::vector<double> sorted = ms;
  std::sort(sorted.begin(), sorted.end());
  return (sorted[(sorted.size() - 1) / 2] + sorted[sorted.size() / 2]) / 2;
}

Result<DuckdbAnswer> ask_duckdb(const Database& database, const Transaction& transaction,
                                const DuckdbJob& job) {
  const std::string prefix = fresh_shared_path(".duckdb", kFilesBytes);
  std::vector<TemporaryFile> files;
  const auto file = [&files, &prefix](const std::string& name) {
    files.emplace_back(prefix + "-" + name);
    return files.back().path();
  };
  bench::Json json = {{"database", file("database")},
                      {"threads", job.threads},
                      {"runs", job.runs},
                      {"parameters", job.parameters},
                      {"tables", bench::Json::array()},
                      {"queries", bench::Json::array()}};
  file("database.wal");
  for (const DuckdbJob::Table& table : job.tables) {
    Result<bench::Json> words =
        export_table(database, transaction, table, file(table.name + ".csv"));
    if (!words.ok()) return std::move(words).status();
    json["tables"].push_back(std::move(*words));
  }
  for (const DuckdbJob::Query& query : job.queries)
    json["queries"].push_back({{"name", query.name}, {"sql", query.sql}});
  const std::string job_path = file("job.json");
  const std::string answer_path = file("answer.json");
  Status status = bench::write_json(job_path, json);
  if (status.ok()) status = run_program(job.program, job_path, answer_path);
  if (!status.ok()) return status;
  return read_answer(answer_path, job.queries.size());
}

std::string difference(const query::QueryResult& result, const bench::Json& rows) {
  if (rows.size() != result.row_count())
    return fmt::format("{} rows, DuckDB {}", result.row_count(), rows.size());
  for (std::size_t row = 0; row < rows.size(); ++row)
    for (std::size_t i = 0; i < result.columns().size(); ++i) {
      if (rows[row].size() != result.columns().size()) return "another number of columns";
      const Value value = result.value(row, i);
      if (!is_equal(value, rows[row][i]))
        return fmt::format("row {}, {}: {}, DuckDB {}", row, result.columns()[i].name,
                           value.to_string(), rows[row][i].dump());
    }
  return {};
}

}  // namespace flugs::tools
