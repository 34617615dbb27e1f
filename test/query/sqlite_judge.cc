#include "test/query/sqlite_judge.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <catch2/catch.hpp>

namespace flugs::test {

namespace {

Cell judged_cell(sqlite3_stmt* statement, int column, query::DataType type) {
  Cell cell;
  cell.type = type;
  const int found = sqlite3_column_type(statement, column);
  cell.null = found == SQLITE_NULL;
  if (cell.null) return cell;
  if (found == SQLITE_TEXT) {
    cell.type = {Type::kString, 0};
    cell.s.assign(reinterpret_cast<const char*>(sqlite3_column_text(statement, column)),
                  static_cast<std::size_t>(sqlite3_column_bytes(statement, column)));
  } else if (type.type == Type::kDouble || found == SQLITE_FLOAT) {
    // An integer that became a real has overflowed: no exact value equals it.
    cell.type = {Type::kDouble, 0};
    cell.r = sqlite3_column_double(statement, column) + 0.0;
  } else {
    cell.i = sqlite3_column_int64(statement, column);
  }
  return cell;
}

Value value_of(const Cell& cell) {
  if (cell.null) return Value::null();
  switch (query::lane_of(cell.type)) {
    case query::Lane::kText:
      return Value::from_bytes(cell.type.type, cell.s);
    case query::Lane::kReal:
      return Value::real(cell.r);
    case query::Lane::kInt:
      break;
  }
  return Value::from_raw(cell.type.type, cell.i);
}

}  // namespace

SqliteJudge::SqliteJudge() {
  REQUIRE(sqlite3_open(":memory:", &sqlite_) == SQLITE_OK);
  // Otherwise an unknown name would be a text.
  sqlite3_db_config(sqlite_, SQLITE_DBCONFIG_DQS_DML, 0, nullptr);
}

SqliteJudge::~SqliteJudge() { sqlite3_close(sqlite_); }

void SqliteJudge::execute(const std::string& sql) const {
  const int result = sqlite3_exec(sqlite_, sql.c_str(), nullptr, nullptr, nullptr);
  INFO(sql << ": " << sqlite3_errmsg(sqlite_));
  REQUIRE(result == SQLITE_OK);
}

void SqliteJudge::add_table(const std::string& name, const Relation& rows) {
  execute("begin");
  std::string names;
  for (const std::string& column : rows.names) names += (names.empty() ? "" : ", ") + column;
  execute(fmt::format("create table {} ({})", name, names));
  for (const std::vector<Cell>& row : rows.rows) {
    std::string values;
    for (const Cell& cell : row)
      values += (values.empty() ? "" : ", ") + sql_literal(cell.type, value_of(cell));
    execute(fmt::format("insert into {} values ({})", name, values));
  }
  execute("commit");
}

Relation SqliteJudge::rows(const SqlQuery& query) const {
  sqlite3_stmt* statement = nullptr;
  int result = sqlite3_prepare_v2(sqlite_, query.sql.data(), static_cast<int>(query.sql.size()),
                                  &statement, nullptr);
  INFO(sqlite3_errmsg(sqlite_));
  REQUIRE(result == SQLITE_OK);
  Relation relation;
  for (const SqlQuery::Column& column : query.columns) relation.names.push_back(column.name);
  while ((result = sqlite3_step(statement)) == SQLITE_ROW) {
    std::vector<Cell> row;
    for (std::size_t c = 0; c < query.columns.size(); ++c)
      row.push_back(judged_cell(statement, static_cast<int>(c), query.columns[c].type));
    relation.rows.push_back(std::move(row));
  }
  sqlite3_finalize(statement);
  REQUIRE(result == SQLITE_DONE);
  return relation;
}

}  // namespace flugs::test
