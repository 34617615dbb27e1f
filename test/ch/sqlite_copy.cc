#include "test/ch/sqlite_copy.h"

#include <sqlite3.h>

#include "test/support/temporary_database.h"

namespace flugs::test {

namespace {

void bind(sqlite3_stmt* statement, int parameter, const Value& value) {
  if (value.is_null()) {
    sqlite3_bind_null(statement, parameter);
  } else if (value.type() == Type::kString || value.type() == Type::kBytes) {
    const std::string_view text = value.as_string();
    sqlite3_bind_text(statement, parameter, text.data(), static_cast<int>(text.size()),
                      SQLITE_TRANSIENT);
  } else if (value.type() == Type::kDouble) {
    sqlite3_bind_double(statement, parameter, value.as_double());
  } else {
    sqlite3_bind_int64(statement, parameter, value.raw());
  }
}

Cell cell_of(sqlite3_stmt* statement, int column) {
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER:
      return std::int64_t{sqlite3_column_int64(statement, column)};
    case SQLITE_FLOAT:
      return sqlite3_column_double(statement, column);
    case SQLITE_TEXT:
      return std::string(reinterpret_cast<const char*>(sqlite3_column_text(statement, column)),
                         static_cast<std::size_t>(sqlite3_column_bytes(statement, column)));
    default:
      return {};
  }
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

std::string to_string(const Cell& cell) {
  if (const auto* integer = std::get_if<std::int64_t>(&cell)) return std::to_string(*integer);
  if (const auto* real = std::get_if<double>(&cell)) return std::to_string(*real);
  if (const auto* text = std::get_if<std::string>(&cell)) return "'" + *text + "'";
  return "NULL";
}

SqliteCopy::SqliteCopy(const Database& database, const Transaction& transaction,
                       const std::vector<std::string>& tables) {
  REQUIRE(sqlite3_open(":memory:", &sqlite_) == SQLITE_OK);
  execute("pragma case_sensitive_like = on");
  execute("begin");
  for (const std::string& table : tables)
    copy_table(database, transaction, must(database.find_table(table)));
  execute("commit");
}

SqliteCopy::~SqliteCopy() { sqlite3_close(sqlite_); }

void SqliteCopy::execute(const std::string& sql) const {
  const int result = sqlite3_exec(sqlite_, sql.c_str(), nullptr, nullptr, nullptr);
  INFO(sql << ": " << sqlite3_errmsg(sqlite_));
  REQUIRE(result == SQLITE_OK);
}

sqlite3_stmt* SqliteCopy::prepare(std::string_view sql) const {
  sqlite3_stmt* statement = nullptr;
  const int result =
      sqlite3_prepare_v2(sqlite_, sql.data(), static_cast<int>(sql.size()), &statement, nullptr);
  INFO(sql << ": " << sqlite3_errmsg(sqlite_));
  REQUIRE(result == SQLITE_OK);
  return statement;
}

void SqliteCopy::copy_table(const Database& database, const Transaction& transaction,
                            TableId table) const {
  const TableSchema schema = must(database.schema(table));
  std::vector<std::string> names;
  std::vector<ColumnId> columns;
  for (const ColumnSchema& column : schema.columns) {
    columns.emplace_back(static_cast<std::uint16_t>(names.size()));
    names.push_back(column.name);
  }
  std::string definition = joined(names);
  if (schema.has_primary_key)
    definition += ", primary key (" + joined(schema.keys[0].columns) + ")";
  execute("create table " + schema.name + " (" + definition + ")");
  const std::vector<std::string> marks(names.size(), "?");
  sqlite3_stmt* statement =
      prepare("insert into " + schema.name + " values (" + joined(marks) + ")");
  bool is_good = true;
  must(transaction.scan(table, columns, Predicate::all(), [&](const ScanBatch& batch) {
    for (std::size_t row = 0; row < batch.row_count(); ++row) {
      for (std::size_t i = 0; i < columns.size(); ++i)
        bind(statement, static_cast<int>(i) + 1, batch.get_unchecked(i, row));
      is_good = is_good && sqlite3_step(statement) == SQLITE_DONE;
      sqlite3_reset(statement);
    }
    return true;
  }));
  sqlite3_finalize(statement);
  REQUIRE(is_good);
}

Rows SqliteCopy::rows(std::string_view sql, const bench::ChPeriod& period) const {
  sqlite3_stmt* statement = prepare(sql);
  for (const auto& [name, value] :
       {std::pair{"$since", period.since_us}, std::pair{"$until", period.until_us}}) {
    const int parameter = sqlite3_bind_parameter_index(statement, name);
    if (parameter > 0) sqlite3_bind_int64(statement, parameter, value);
  }
  Rows rows;
  int result = 0;
  while ((result = sqlite3_step(statement)) == SQLITE_ROW) {
    rows.emplace_back();
    for (int i = 0; i < sqlite3_column_count(statement); ++i)
      rows.back().push_back(cell_of(statement, i));
  }
  sqlite3_finalize(statement);
  REQUIRE(result == SQLITE_DONE);
  return rows;
}

std::int64_t SqliteCopy::number(std::string_view sql) const {
  const Rows found = rows(sql);
  INFO(sql);
  REQUIRE(found.size() == 1);
  REQUIRE(std::holds_alternative<std::int64_t>(found[0].at(0)));
  return std::get<std::int64_t>(found[0][0]);
}

}  // namespace flugs::test
