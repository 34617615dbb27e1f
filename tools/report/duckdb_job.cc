#include "tools/report/duckdb_job.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <utility>

#include "bench/support/table_stream.h"
#include "tools/support/pool_file.h"

namespace flugs::tools {

namespace {

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

/// Describes a table to the program.
Result<bench::Json> describe_table(const Database& database, const DuckdbJob::Table& table) {
  const Result<TableId> id = database.find_table(table.name);
  if (!id.ok()) return id.status();
  const Result<TableSchema> schema = database.schema(*id);
  if (!schema.ok()) return schema.status();
  bench::Json types = bench::Json::object();
  for (const std::string& name : table.columns) {
    const Result<ColumnId> column = database.find_column(*id, name);
    if (!column.ok()) return column.status();
    types[name] = duckdb_type(schema->columns[column->value()].type);
  }
  return bench::Json{{"name", table.name}, {"columns", types}};
}

Result<DuckdbAnswer> read_answer(const std::string& path, std::size_t queries) {
  std::ifstream file(path);
  const bench::Json json = bench::Json::parse(file, nullptr, false);
  if (!json.is_object() || !json.contains("queries") || json["queries"].size() != queries)
    return Status(StatusCode::kIoError, path + " is not an answer of tools/duckdb");
  DuckdbAnswer answer;
  answer.version = json.value("version", "unknown");
  answer.load_seconds = json.value("load_seconds", 0.0);
  answer.file_bytes = json.value("file_bytes", std::uint64_t{0});
  const auto take = [](const bench::Json& from, std::vector<DuckdbAnswer::Query>& into) {
    for (const bench::Json& query : from)
      into.push_back({query["first_ms"].get<double>(), query["ms"].get<std::vector<double>>(),
                      query["cpu_ms"].get<std::vector<double>>(),
                      query["resident_bytes"].get<std::uint64_t>(), query["rows"]});
  };
  take(json["queries"], answer.queries);
  if (!json.contains("states")) return answer;
  for (const bench::Json& state : json["states"]) {
    answer.states.push_back({state["name"].get<std::string>(), {}});
    take(state["queries"], answer.states.back().queries);
  }
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

Result<DuckdbProcess> DuckdbProcess::start(const Database& database, const DuckdbJob& job) {
  DuckdbProcess process;
  process.job_ = job;
  const std::string prefix = fresh_shared_path(".duckdb", job.file_bytes);
  const auto file = [&](const std::string& name) {
    process.files_.emplace_back(prefix + "-" + name);
    return process.files_.back().path();
  };
  bench::Json json = {{"database", file("database")},
                      {"threads", job.threads},
                      {"runs", job.runs},
                      {"memory_bytes_max", job.memory_bytes_max},
                      {"parameters", job.parameters},
                      {"tables", bench::Json::array()},
                      {"queries", bench::Json::array()},
                      {"changes", bench::Json::array()}};
  file("database.wal");
  for (const DuckdbJob::Table& table : job.tables) {
    Result<bench::Json> words = describe_table(database, table);
    if (!words.ok()) return std::move(words).status();
    json["tables"].push_back(std::move(*words));
  }
  for (const DuckdbJob::Query& query : job.queries)
    json["queries"].push_back({{"name", query.name}, {"sql", query.sql}});
  for (const DuckdbJob::Query& change : job.changes)
    json["changes"].push_back({{"name", change.name}, {"sql", change.sql}});
  const std::string job_path = file("job.json");
  process.answer_path_ = file("answer.json");
  Status written = bench::write_json(job_path, json);
  if (!written.ok()) return written;
  // A socket, since writing to one whose reader is gone can be an error instead of a signal.
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return Status(StatusCode::kIoError, std::string("socketpair: ") + std::strerror(errno));
  process.input_ = ends[0];
  Result<ChildProcess> child = ChildProcess::start_program(
      job.program, {job.program, job_path, process.answer_path_}, ends[1]);
  close(ends[1]);
  if (!child.ok()) return std::move(child).status();
  process.child_ = std::move(*child);
  return process;
}

DuckdbProcess::DuckdbProcess(DuckdbProcess&& other) noexcept
    : job_(std::move(other.job_)),
      files_(std::move(other.files_)),
      answer_path_(std::move(other.answer_path_)),
      input_(std::exchange(other.input_, -1)),
      child_(std::move(other.child_)) {}

DuckdbProcess::~DuckdbProcess() { close_input(); }

void DuckdbProcess::close_input() noexcept {
  if (input_ >= 0) close(std::exchange(input_, -1));
}

Status DuckdbProcess::send(std::span<const char> bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(input_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EPIPE || errno == ECONNRESET)) return describe_end();
    if (sent < 0)
      return Status(StatusCode::kIoError,
                    "cannot write to " + job_.program + ": " + std::strerror(errno));
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
  return {};
}

Status DuckdbProcess::copy(const Database& database, const Transaction& transaction) {
  for (const DuckdbJob::Table& table : job_.tables) {
    Status status =
        bench::stream_table(database, transaction, table.name, table.columns,
                            [this](std::span<const char> bytes) { return send(bytes); });
    if (!status.ok()) return status;
  }
  return {};
}

Status DuckdbProcess::describe_end() {
  close_input();
  child_.wait();
  return Status(StatusCode::kIoError, job_.program + " " + child_.describe_end());
}

Result<DuckdbAnswer> DuckdbProcess::answer() {
  close_input();
  child_.wait();
  if (child_.exit_status() != 0) return describe_end();
  return read_answer(answer_path_, job_.queries.size());
}

Result<DuckdbAnswer> ask_duckdb(const Database& database, const Transaction& transaction,
                                const DuckdbJob& job) {
  Result<DuckdbProcess> process = DuckdbProcess::start(database, job);
  if (!process.ok()) return std::move(process).status();
  Status copied = process->copy(database, transaction);
  if (!copied.ok()) return copied;
  return process->answer();
}

std::string difference(const query::QueryResult& result, const bench::Json& rows,
                       std::string_view whose) {
  if (rows.size() != result.row_count())
    return fmt::format("{} rows, {} {}", result.row_count(), whose, rows.size());
  for (std::size_t row = 0; row < rows.size(); ++row)
    for (std::size_t i = 0; i < result.columns().size(); ++i) {
      if (rows[row].size() != result.columns().size()) return "a different number of columns";
      const Value value = result.get_unchecked(row, i);
      if (!is_equal(value, rows[row][i]))
        return fmt::format("row {}, {}: {}, {} {}", row, result.columns()[i].name,
                           value.to_string(), whose, rows[row][i].dump());
    }
  return {};
}

}  // namespace flugs::tools
