// The answers of public functions to wrong calls. Public headers only, except for helpers of the
// tests.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "flugs/database.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

TableSchema people_schema() {
  TableSchema schema("people");
  schema.column("id", Type::kInt64).column("name", Type::kString).not_null();
  schema.column("born", Type::kDate).column("mail", Type::kString);
  schema.primary_key({"id"}).unique_key("by_mail", {"mail"}).key("by_name", {"name", "born"});
  return schema;
}

struct People {
  TemporaryDatabase database;
  TableId table = must(database->create_table(people_schema()));
  KeyId primary = must(database->find_key(table, "primary"));
  KeyId by_mail = must(database->find_key(table, "by_mail"));
  KeyId by_name = must(database->find_key(table, "by_name"));
  RowId ada;

  People() {
    Transaction t = must(database->begin());
    ada = must(t.insert(table, ada_values()));
    must(t.commit());
  }
  static std::vector<Value> ada_values() {
    return {Value::int64(1), Value::string("Ada"), Value::date(-56270), Value::null()};
  }
};

const TableId kNoTable{77};
const auto kVisitNothing = [](const auto&) { return true; };

template <typename T>
void check_refused(const Result<T>& result, StatusCode code, const std::string& part = "") {
  INFO(result.status().to_string());
  CHECK(result.code() == code);
  CHECK(result.status().message().find(part) != std::string::npos);
}
void check_refused(const Status& status, StatusCode code, const std::string& part = "") {
  INFO(status.to_string());
  CHECK(status.code() == code);
  CHECK(status.message().find(part) != std::string::npos);
}

}  // namespace

TEST_CASE("values that do not fit the schema are refused by name", "[api]") {
  People people;
  Transaction t = must(people.database->begin());
  const auto insert = [&](std::size_t column, Value value) {
    std::vector<Value> values = People::ada_values();
    values[0] = Value::int64(2);
    values[column] = value;
    return t.insert(people.table, values);
  };
  const auto broken = StatusCode::kConstraintViolated;
  check_refused(insert(0, Value::null()), broken, "column id");
  check_refused(insert(1, Value::null()), broken, "column name");
  check_refused(insert(1, Value::bytes("x")), broken, "expected string, found bytes");
  check_refused(insert(2, Value::int32(1)), broken, "expected date, found int32");
  check_refused(insert(0, Value::real(1)), broken, "expected int64, found double");
  CHECK(insert(0, Value::int32(9)).ok());  // widened
  std::vector<Value> values = People::ada_values();
  values.pop_back();
  check_refused(t.insert(people.table, values), StatusCode::kInvalidArgument, "3 values for 4");
  values.resize(5);
  check_refused(t.insert(people.table, values), StatusCode::kInvalidArgument, "5 values for 4");
  check_refused(t.insert(people.table, {}), StatusCode::kInvalidArgument);
  check_refused(t.update(people.table, people.ada, {{ColumnId{1}, Value::null()}}), broken, "name");
  check_refused(t.update(people.table, people.ada, {{ColumnId{2}, Value::real(1)}}), broken);
  check_refused(t.update(people.table, people.ada, {{ColumnId{4}, Value::null()}}),
                StatusCode::kInvalidArgument, "no column 4");
  CHECK(t.update(people.table, people.ada, {}).ok());  // nothing to change, but a new version
  must(t.commit());
  must(people.database->check());
}

TEST_CASE("unknown tables, columns, keys and rows are refused", "[api]") {
  People people;
  Database& database = *people.database;
  const auto missing = StatusCode::kNotFound;
  check_refused(database.find_table("nobody"), missing, "nobody");
  check_refused(database.schema(kNoTable), missing);
  check_refused(database.find_column(people.table, "nobody"), missing, "nobody");
  check_refused(database.find_column(kNoTable, "id"), missing);
  check_refused(database.find_key(people.table, "nobody"), missing, "nobody");
  check_refused(database.find_key(kNoTable, "primary"), missing);
  check_refused(database.table_statistics(kNoTable), missing);
  check_refused(database.drop_table(kNoTable), missing);
  check_refused(database.drop_table(TableId{~0u}), missing);
  Transaction t = must(database.begin());
  for (const TableId table : {kNoTable, TableId{0}, TableId{1u << 22}, TableId{~0u}}) {
    check_refused(t.insert(table, {Value::int64(1)}), missing);
    check_refused(t.update(table, people.ada, {}), missing);
    check_refused(t.remove(table, people.ada), missing);
    check_refused(t.get(table, people.ada), missing);
    check_refused(t.get({table, 0}, {Value::int64(1)}), missing);
    check_refused(t.rows({table, 0}, {}, kVisitNothing), missing);
    check_refused(t.rows({table, 0}, {}, {}, kVisitNothing), missing);
    check_refused(t.scan(table, {}, kVisitNothing), missing);
    t.prefetch({table, 0}, {Value::int64(1)});
  }
  for (const RowId row : {RowId{5}, RowId{100000}, RowId{~0u}}) {
    check_refused(t.get(people.table, row), missing);
    check_refused(t.update(people.table, row, {}), missing);
    check_refused(t.remove(people.table, row), missing);
  }
}

TEST_CASE("a key refuses look-ups that it cannot answer", "[api]") {
  People people;
  const Transaction t = must(people.database->begin(AccessMode::kReadOnly));
  const auto invalid = StatusCode::kInvalidArgument;
  const KeyId none{people.table, 9};
  check_refused(t.get(none, {Value::int64(1)}), invalid, "no key 9");
  check_refused(t.rows(none, {}, kVisitNothing), invalid);
  check_refused(t.rows(none, {}, {}, kVisitNothing), invalid);
  check_refused(t.get(people.primary, {}), invalid, "1 value, found 0");
  check_refused(t.get(people.primary, {Value::int64(1), Value::int64(1)}), invalid);
  check_refused(t.get(people.primary, {Value::string("1")}), invalid, "column id");
  check_refused(t.get(people.by_name, {Value::string("Ada"), Value::null()}), invalid, "unique");
  check_refused(t.rows(people.primary, {}, kVisitNothing), invalid, "not ordered");
  check_refused(t.rows(people.primary, {}, {}, kVisitNothing), invalid, "not ordered");
  const std::vector<Value> three(3, Value::string("x"));
  check_refused(t.rows(people.by_name, three, kVisitNothing), invalid);
  check_refused(t.rows(people.by_name, {three, true}, {}, kVisitNothing), invalid, "3 values");
  const std::vector<Value> wrong = {Value::int64(1)};
  check_refused(t.rows(people.by_name, {}, {wrong, true}, kVisitNothing), invalid, "name");
  const std::vector<ColumnId> columns = {ColumnId{0}, ColumnId{4}};
  check_refused(t.scan(people.table, columns, Predicate::all(), kVisitNothing), invalid, "4");
  check_refused(
      t.scan(people.table, {}, Predicate::equal(ColumnId{9}, Value::null()), kVisitNothing),
      invalid, "9");
  check_refused(
      t.scan(people.table, {}, Predicate::equal(ColumnId{0}, Value::string("1")), kVisitNothing),
      invalid);
  CHECK(t.scan(people.table, {}, Predicate::equal(ColumnId{0}, Value::null()), kVisitNothing).ok());
  CHECK_FALSE(t.get(people.by_mail, {Value::string("nobody")}).ok());
  CHECK(must(t.get(people.by_mail, {Value::null()})).id() == people.ada);  // any row with NULL
}

TEST_CASE("an ended transaction refuses every call", "[api]") {
  People people;
  const auto refuses = [&](Transaction& t) {
    const auto invalid = StatusCode::kInvalidArgument;
    CHECK_FALSE(t.is_open());
    CHECK(t.snapshot() == 0);
    check_refused(t.insert(people.table, People::ada_values()), invalid, "ended");
    check_refused(t.update(people.table, people.ada, {}), invalid);
    check_refused(t.remove(people.table, people.ada), invalid);
    check_refused(t.get(people.table, people.ada), invalid);
    check_refused(t.get(people.primary, {Value::int64(1)}), invalid);
    check_refused(t.rows(people.by_name, {}, kVisitNothing), invalid);
    check_refused(t.rows(people.by_name, {}, {}, kVisitNothing), invalid);
    check_refused(t.scan(people.table, {}, kVisitNothing), invalid);
    check_refused(t.commit(), invalid);
    t.prefetch(people.primary, {Value::int64(1)});
    t.abort();
  };
  Transaction never;
  refuses(never);
  Transaction committed = must(people.database->begin());
  must(committed.commit());
  refuses(committed);
  Transaction aborted = must(people.database->begin());
  aborted.abort();
  refuses(aborted);
  Transaction source = must(people.database->begin());
  const Transaction target = std::move(source);
  refuses(source);  // the moved-from transaction counts as ended
  CHECK(target.is_open());
  committed = must(people.database->begin());
  CHECK(committed.is_open());
}

TEST_CASE("a read-only transaction writes nothing", "[api]") {
  People people;
  Transaction t = must(people.database->begin(AccessMode::kReadOnly));
  check_refused(t.insert(people.table, People::ada_values()), StatusCode::kReadOnly);
  check_refused(t.update(people.table, people.ada, {}), StatusCode::kReadOnly);
  check_refused(t.remove(people.table, people.ada), StatusCode::kReadOnly);
  CHECK(t.get(people.table, people.ada).ok());
  must(t.commit());
  CHECK(people.database->statistics().transactions_committed == 1);
}

TEST_CASE("every call on a database that is not open fails and says so", "[api]") {
  Database database;
  CHECK_FALSE(database.is_open());
  const auto invalid = StatusCode::kInvalidArgument;
  check_refused(database.create_table(people_schema()), invalid);
  check_refused(database.drop_table(TableId{1}), invalid);
  check_refused(database.find_table("x"), invalid);
  check_refused(database.schema(TableId{1}), invalid);
  check_refused(database.find_column(TableId{1}, "x"), invalid);
  check_refused(database.find_key(TableId{1}, "x"), invalid);
  check_refused(database.begin(), invalid);
  check_refused(database.check(), invalid);
  check_refused(database.table_statistics(TableId{1}), invalid);
  CHECK(database.tables().empty());
  CHECK(database.path().empty());
  CHECK(database.statistics().medium.empty());
  CHECK(database.recovery_report().phases.empty());
}

TEST_CASE("no two tables have the same name at one time", "[api]") {
  People people;
  check_refused(people.database->create_table(people_schema()), StatusCode::kAlreadyExists,
                "people");
  const std::uint64_t used = people.database->statistics().pool_used_bytes;
  must(people.database->drop_table(people.table));
  CHECK(people.database->statistics().pool_used_bytes < used);
  CHECK(people.database->tables().empty());
  const TableId again = must(people.database->create_table(people_schema()));
  CHECK(again != people.table);
  CHECK(people.database->find_table("people").value() == again);
  check_refused(people.database->schema(people.table), StatusCode::kNotFound);
  check_refused(must(people.database->begin()).get(people.table, people.ada),
                StatusCode::kNotFound);
  people.database.reopen();
  CHECK(people.database->find_table("people").value() == again);
}

TEST_CASE("a table in use is not dropped", "[api]") {
  People people;
  Transaction t = must(people.database->begin());
  CHECK(t.get(people.table, people.ada).ok());
  check_refused(people.database->drop_table(people.table), StatusCode::kBusy, "people");
  CHECK(t.get(people.table, people.ada).ok());
  must(t.update(people.table, people.ada, {{ColumnId{3}, Value::string("a@b")}}));
  must(t.commit());
  must(people.database->check());
  must(people.database->drop_table(people.table));
}

TEST_CASE("check fails while a transaction is open", "[api]") {
  People people;
  {
    const Transaction t = must(people.database->begin(AccessMode::kReadOnly));
    check_refused(people.database->check(), StatusCode::kBusy,
                  "check needs that no transaction is open; 1 is open");
  }
  std::size_t calls = 0;
  must(people.database->check({.progress = [&](const Progress& progress) {
    CHECK(progress.phase == "check");
    ++calls;
  }}));
  CHECK(calls >= 2);
}

TEST_CASE("extreme values come back as they were", "[api]") {
  TemporaryDatabase database;
  TableSchema schema("extremes");
  for (int type = 1; type <= 9; ++type)
    for (const char* encoding : {"a", "d"}) {
      schema.column(encoding + std::to_string(type), static_cast<Type>(type));
      if (*encoding == 'd') schema.direct();
    }
  const TableId table = must(database->create_table(schema));
  const std::string zeros("\0\0a\0", 4);
  const std::string large(std::size_t{10} << 20, 'L');
  const std::string text16(16, 'x');
  const std::vector<std::vector<Value>> values = {
      {},
      {Value::boolean(false), Value::boolean(true)},
      {Value::int32(INT32_MIN), Value::int32(INT32_MAX), Value::int32(-1), Value::int32(0)},
      {Value::int64(INT64_MIN), Value::int64(INT64_MAX), Value::int64(-1), Value::int64(1LL << 32)},
      {Value::real(-0.0), Value::real(std::numeric_limits<double>::infinity()), Value::real(NAN),
       Value::real(std::numeric_limits<double>::denorm_min())},
      {Value::decimal_units(INT64_MIN), Value::decimal_units(INT64_MAX)},
      {Value::date(INT32_MIN), Value::date(INT32_MAX)},
      {Value::timestamp(INT64_MIN), Value::timestamp(INT64_MAX)},
      {Value::string(""), Value::string(zeros), Value::string(large), Value::string(text16)},
      {Value::bytes(""), Value::bytes(zeros), Value::bytes(large), Value::bytes(text16)}};
  std::vector<RowId> rows;
  for (std::size_t i = 0; i < 4; ++i) {
    Transaction t = must(database->begin());
    std::vector<Value> row;
    for (std::size_t type = 1; type <= 9; ++type)
      for (int k = 0; k < 2; ++k) row.push_back(values[type][i % values[type].size()]);
    rows.push_back(must(t.insert(table, row)));
    must(t.commit());
  }
  for (int opened = 0; opened < 2; ++opened) {
    Transaction t = must(database->begin(AccessMode::kReadOnly));
    for (std::size_t i = 0; i < 4; ++i) {
      const Row row = must(t.get(table, rows[i]));
      for (std::size_t type = 1; type <= 9; ++type)
        for (std::size_t k = 0; k < 2; ++k) {
          const Value wanted = values[type][i % values[type].size()];
          const Value found =
              row.get_unchecked(ColumnId{static_cast<std::uint16_t>((type - 1) * 2 + k)});
          INFO("row " << i << ", " << to_string(static_cast<Type>(type)) << ", " << k);
          if (type == 4 && std::isnan(wanted.as_double())) {
            CHECK(std::isnan(found.as_double()));
          } else if (type == 4) {
            CHECK(found.as_double() == wanted.as_double());
            CHECK_FALSE((found.as_double() == 0 && std::signbit(found.as_double())));
          } else {
            CHECK((found == wanted));
          }
        }
    }
    t.abort();
    database.reopen();
  }
}

}  // namespace flugs::test
