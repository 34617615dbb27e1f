#include "bench/support/table_stream.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "bench/support/json.h"
#include "test/support/temporary_database.h"

namespace flugs::bench {

namespace {

/// Reads a stream according to its description.
class StreamReader {
 public:
  explicit StreamReader(std::string bytes) : bytes_(std::move(bytes)) {}

  bool at_end() const { return at_ == bytes_.size(); }

  /// The next batch: for each row, its cells.
  std::vector<std::vector<Json>> batch(Json& header) {
    const std::size_t end = bytes_.find('\n', at_);
    header = Json::parse(take(end - at_));
    take(1);
    std::vector<std::vector<Json>> rows(header["rows"].get<std::size_t>());
    for (const Json& column : header["columns"]) read_column(column, rows);
    return rows;
  }

 private:
  std::string take(std::size_t count) {
    REQUIRE(at_ + count <= bytes_.size());
    std::string taken = bytes_.substr(at_, count);
    at_ += count;
    return taken;
  }
  template <typename Number>
  std::vector<Number> numbers(std::size_t count) {
    std::vector<Number> numbers(count);
    const std::string bytes = take(count * sizeof(Number));
    if (count > 0) std::memcpy(numbers.data(), bytes.data(), bytes.size());
    return numbers;
  }
  template <typename Number>
  std::vector<Json> cells(std::size_t rows) {
    std::vector<Json> cells;
    for (const Number number : numbers<Number>(rows)) cells.emplace_back(number);
    return cells;
  }
  std::vector<Json> text_cells(const Json& column, std::size_t rows) {
    const std::vector<std::uint32_t> of_rows = numbers<std::uint32_t>(rows);
    const std::vector<std::uint32_t> lengths =
        numbers<std::uint32_t>(column["strings"].get<std::size_t>());
    std::vector<Json> strings;
    std::size_t bytes = 0;
    for (const std::uint32_t length : lengths) {
      strings.emplace_back(take(length));
      bytes += length;
    }
    CHECK(column["string_bytes"].get<std::size_t>() == bytes);
    std::vector<Json> cells;
    for (const std::uint32_t number : of_rows) cells.push_back(strings.at(number));
    return cells;
  }
  void read_column(const Json& column, std::vector<std::vector<Json>>& rows) {
    std::vector<std::uint8_t> nulls(rows.size(), 0);
    if (column["nulls"].get<bool>()) nulls = numbers<std::uint8_t>(rows.size());
    const auto kind = column["kind"].get<std::string>();
    const std::vector<Json> values = kind == "bool"     ? cells<std::uint8_t>(rows.size())
                                     : kind == "int32"  ? cells<std::int32_t>(rows.size())
                                     : kind == "int64"  ? cells<std::int64_t>(rows.size())
                                     : kind == "double" ? cells<double>(rows.size())
                                                        : text_cells(column, rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i)
      rows[i].push_back(nulls[i] != 0 ? Json() : values[i]);
  }

  std::string bytes_;
  std::size_t at_ = 0;
};

TableSchema all_types() {
  TableSchema schema("t");
  schema.column("flag", Type::kBool).column("small", Type::kInt32).column("large", Type::kInt64);
  schema.column("real", Type::kDouble).column("money", Type::kDecimal).scale(2);
  schema.column("day", Type::kDate).column("time", Type::kTimestamp).column("text", Type::kString);
  schema.column("bytes", Type::kBytes);
  return schema;
}

std::vector<Value> row_of(std::int32_t i, const std::string& text) {
  return {Value::boolean(i % 2 == 1),
          Value::int32(-i),
          Value::int64(i * -5'000'000'000),
          Value::real(i * 0.25),
          Value::decimal_units(i * 100),
          Value::date(i),
          Value::timestamp(i * 7),
          Value::string(text),
          Value::bytes("\0\n")};
}

std::vector<std::string> names_of(const TableSchema& schema) {
  std::vector<std::string> names;
  for (const ColumnSchema& column : schema.columns) names.push_back(column.name);
  return names;
}

void fill(Database& database, TableId table, std::int32_t rows) {
  Result<Transaction> transaction = database.begin();
  REQUIRE(transaction.ok());
  for (std::int32_t i = 0; i < rows; ++i) {
    const std::string text = "text " + std::to_string(i % 5);
    std::vector<Value> row = row_of(i, text);
    if (i % 3 == 0) row[static_cast<std::size_t>(i / 3) % row.size()] = Value::null();
    REQUIRE(transaction->insert(table, row).ok());
  }
  REQUIRE(transaction->commit().ok());
}

}  // namespace

TEST_CASE("a table's stream holds its rows, NULL and every type among them", "[api]") {
  constexpr std::int32_t kRows = 3000;
  test::TemporaryDatabase temporary;
  Database& database = *temporary;
  const Result<TableId> table = database.create_table(all_types());
  REQUIRE(table.ok());
  fill(database, *table, kRows);
  const Result<Transaction> snapshot = database.begin(AccessMode::kReadOnly);
  REQUIRE(snapshot.ok());
  std::string bytes;
  const auto sink = [&](std::span<const char> piece) {
    bytes.append(piece.data(), piece.size());
    return Status();
  };
  REQUIRE(stream_table(database, *snapshot, "t", names_of(all_types()), sink).ok());

  StreamReader reader(bytes);
  Json header;
  const std::vector<std::vector<Json>> rows = reader.batch(header);
  CHECK(reader.at_end());
  CHECK(header["table"] == "t");
  REQUIRE(rows.size() == kRows);
  for (std::int32_t i = 0; i < kRows; ++i) {
    const std::string text = "text " + std::to_string(i % 5);
    std::vector<Json> wanted = {i % 2, -i,   i * -5'000'000'000, i * 0.25, i * 100, i,
                                i * 7, text, std::string("")};
    if (i % 3 == 0) wanted[static_cast<std::size_t>(i / 3) % wanted.size()] = nullptr;
    REQUIRE(rows[static_cast<std::size_t>(i)] == wanted);
  }
}

TEST_CASE("a stream ends where its sink fails, with the sink's reason", "[api]") {
  test::TemporaryDatabase temporary;
  Database& database = *temporary;
  const Result<TableId> table = database.create_table(all_types());
  REQUIRE(table.ok());
  fill(database, *table, 10);
  const Result<Transaction> snapshot = database.begin(AccessMode::kReadOnly);
  REQUIRE(snapshot.ok());
  int calls = 0;
  const auto sink = [&](std::span<const char>) {
    return ++calls < 4 ? Status() : Status(StatusCode::kIoError, "full");
  };
  const Status status = stream_table(database, *snapshot, "t", names_of(all_types()), sink);
  CHECK(status.code() == StatusCode::kIoError);
  CHECK(calls == 4);
  const auto any = [](std::span<const char>) { return Status(); };
  CHECK(stream_table(database, *snapshot, "u", {"text"}, any).code() == StatusCode::kNotFound);
  CHECK(stream_table(database, *snapshot, "t", {"no"}, any).code() == StatusCode::kNotFound);
}

}  // namespace flugs::bench
