// Checks, NOT NULL and defaults of tables that have rows: added, refused, dropped, while
// transactions go on.
#include <catch2/catch.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "flugs/expression.h"
#include "flugs/pool_check.h"
#include "test/support/held_up.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

using Catch::Matchers::StartsWith;
using engine::KeyIndex;
using query::col;

constexpr ColumnId kGuestAge(1);
constexpr ColumnId kGuestCode(2);
constexpr ColumnId kGuestCity(3);

std::string guest_words(const Status& status) { return std::string(status.message()); }
template <typename T>
std::string guest_words(const Result<T>& result) {
  return std::string(result.status().message());
}

CheckSchema age_from(std::int32_t least, std::string name = "grown") {
  return {std::move(name),
          Condition::compare("age", Condition::Kind::kGreaterEqual, Constant(Value::int32(least)))};
}

/// Ten guests: id, age from 20 on, a code that is NOT NULL and unique, a city that may be NULL.
struct Guests {
  TemporaryDatabase database;
  TableId table;

  Guests() {
    TableSchema schema("guests");
    schema.column("id", Type::kInt64).column("age", Type::kInt32);
    schema.column("code", Type::kInt64).not_null().column("city", Type::kString);
    schema.primary_key({"id"}).unique_key("by_code", {"code"}).key("by_city", {"city", "id"});
    table = must(database->create_table(schema));
    Transaction t = begin();
    for (std::int64_t id = 0; id < 10; ++id) must(insert(t, id, 20 + static_cast<int>(id)));
    must(t.commit());
  }
  Transaction begin() { return must(database->begin()); }
  Status insert(Transaction& t, std::int64_t id, std::optional<std::int32_t> age) const {
    const Value of_age = age ? Value::int32(*age) : Value::null();
    return t.insert(table, {Value::int64(id), of_age, Value::int64(-id), "Kiel"}).status();
  }
  Status insert(std::int64_t id, std::optional<std::int32_t> age) {
    Transaction t = begin();
    if (Status s = insert(t, id, age); !s.ok()) return s;
    return t.commit();
  }
  Status set(std::int64_t id, ColumnId column, const Value& value) {
    Transaction t = begin();
    const Result<RowId> row =
        t.update(table, must(t.get({table, 0}, {Value::int64(id)})).id(), {{column, value}});
    return row.ok() ? t.commit() : row.status();
  }
  Value get(std::int64_t id, ColumnId column) {
    Transaction t = begin();
    return must(t.get({table, 0}, {Value::int64(id)})).get_unchecked(column);
  }
  TableSchema schema() { return must(database->schema(table)); }
  void merge() {
    MergeOptions everything;
    everything.scope = MergeScope::kEverything;
    must(database->merge(table, everything));
  }
  void reopen() {
    must(database->check());
    const std::string path = database->path();
    database.close();
    const PoolCheckReport report = must(check_pool({path, {}}));
    INFO((report.findings.empty() ? std::string() : report.findings.front().message));
    CHECK(report.is_clean());
    database.reopen();
    must(database->finish_opening());
    must(database->check());
  }
};

}  // namespace

TEST_CASE("a check that all rows fulfil holds for all later ones", "[engine]") {
  Guests guests;
  guests.merge();
  must(guests.insert(10, std::nullopt));  // unknown is not false
  must(guests.database->add_check(guests.table, age_from(20)));
  must(guests.database->add_check(guests.table,
                                  {"in_town", col("city") == "Kiel" || col("city").is_null()}));
  for (int opened = 0; opened < 2; ++opened) {
    CHECK(guests.schema().checks.size() == 2);
    CHECK(guest_words(guests.insert(11, 19)) ==
          "table guests, check grown: age >= 20 does not hold for age = 19");
    CHECK(guests.set(3, kGuestAge, Value::int32(2)).code() == StatusCode::kConstraintViolated);
    CHECK(guests.set(3, kGuestCity, "Rome").code() == StatusCode::kConstraintViolated);
    must(guests.set(3, kGuestAge, Value::int32(50 + opened)));
    must(guests.insert(20 + opened, 20));
    guests.reopen();
  }
  must(guests.database->rename_column(guests.table, kGuestAge, "years"));
  must(guests.database->drop_check(guests.table, "grown"));
  must(guests.insert(12, 1));
  CHECK(guests.set(3, kGuestCity, "Rome").code() == StatusCode::kConstraintViolated);
  must(guests.database->drop_check(guests.table, "in_town"));
  must(guests.set(3, kGuestCity, "Rome"));
  CHECK(guests.schema().checks.empty());
  guests.reopen();
  must(guests.insert(13, 1));
}

TEST_CASE("a check that a row breaks is refused, and leaves nothing behind", "[engine]") {
  Guests guests;
  for (int round = 0; round < 2; ++round) {
    const Status refused = guests.database->add_check(guests.table, age_from(21));
    CHECK(refused.code() == StatusCode::kConstraintViolated);
    CHECK(guest_words(refused) ==
          "table guests, check grown: age >= 21 does not hold for age = 20 in the row with id = 0");
    CHECK(guests.schema().checks.empty());
    must(guests.insert(30 + round, 1));
    must(guests.set(30 + round, kGuestAge, Value::int32(20)));
    guests.merge();
    guests.reopen();
  }
  // Rows that are gone do not count.
  Transaction t = guests.begin();
  for (const std::int64_t id : {0, 30, 31})
    must(t.remove(guests.table, must(t.get({guests.table, 0}, {Value::int64(id)})).id()));
  must(t.commit());
  must(guests.database->add_check(guests.table, age_from(21)));
}

TEST_CASE("checks with mistakes in them are refused", "[engine]") {
  Guests guests;
  Database& database = *guests.database;
  must(database.add_check(guests.table, age_from(1)));
  const auto fails = [&](const CheckSchema& check, StatusCode code, const std::string& message) {
    const Status refused = database.add_check(guests.table, check);
    CHECK(refused.code() == code);
    CHECK(guest_words(refused) == message);
  };
  fails(age_from(2), StatusCode::kAlreadyExists, "table guests: check 'grown' exists");
  fails({"bad", col("shoe") > 1}, StatusCode::kInvalidArgument,
        "table guests, check bad: no column 'shoe'");
  fails({"", col("age") > 1}, StatusCode::kInvalidArgument,
        "check name '' has 0 bytes, allowed are 1 to 63");
  fails({"none", Condition()}, StatusCode::kInvalidArgument,
        "table guests, check none: 0 comparisons and combinations, allowed are 1 to 64");
  CHECK(database.add_check(TableId(99), age_from(1)).code() == StatusCode::kNotFound);
  CHECK(database.drop_check(TableId(99), "grown").code() == StatusCode::kNotFound);
  CHECK(guest_words(database.drop_check(guests.table, "none")) == "table guests: no check 'none'");
  CHECK(database.drop_check(guests.table, "none").code() == StatusCode::kNotFound);
  for (int i = 1; i < 64; ++i)
    must(database.add_check(guests.table, age_from(1, "c" + std::to_string(i))));
  fails(age_from(1, "c64"), StatusCode::kInvalidArgument, "table guests: 65 checks, at most 64");
  guests.reopen();
  CHECK(guests.schema().checks.size() == 64);
}

TEST_CASE("a column without NULL becomes NOT NULL", "[engine]") {
  Guests guests;
  must(guests.insert(10, std::nullopt));
  guests.merge();
  const Status refused = guests.database->set_not_null(guests.table, kGuestAge);
  CHECK(refused.code() == StatusCode::kConstraintViolated);
  CHECK(guest_words(refused) ==
        "table guests, column age: NULL is not allowed, but the row with id = 10 has it");
  CHECK(guests.schema().columns[1].nullable);
  must(guests.insert(11, std::nullopt));
  must(guests.set(10, kGuestAge, Value::int32(1)));
  must(guests.set(11, kGuestAge, Value::int32(1)));
  for (int opened = 0; opened < 2; ++opened) {
    must(guests.database->set_not_null(guests.table, kGuestAge));  // again: nothing to do
    CHECK_FALSE(guests.schema().columns[1].nullable);
    CHECK(guest_words(guests.insert(12, std::nullopt)) ==
          "table guests, column age: NULL is not allowed");
    CHECK(guest_words(guests.set(3, kGuestAge, Value::null())) ==
          "table guests, column age: NULL is not allowed");
    Transaction t = guests.begin();
    CHECK(
        guest_words(t.insert(guests.table,
                             {{ColumnId(0), Value::int64(40)}, {kGuestCode, Value::int64(40)}})) ==
        "table guests, column age: no value is given, it has no default, and NULL is not allowed");
    t.abort();
    guests.merge();
    guests.reopen();
  }
  must(guests.database->change_type(guests.table, kGuestAge, Type::kInt64));
  must(guests.database->set_not_null(guests.table, kGuestAge, false));
  must(guests.set(3, kGuestAge, Value::null()));
  guests.reopen();
  CHECK(guests.get(3, kGuestAge).is_null());
}

TEST_CASE("a column that was NOT NULL from the beginning admits NULL", "[engine]") {
  Guests guests;
  must(guests.database->set_not_null(guests.table, kGuestCode, false));
  must(guests.set(1, kGuestCode, Value::null()));
  must(guests.set(2, kGuestCode, Value::null()));  // unique keys admit any number of these
  CHECK(guests.set(3, kGuestCode, Value::int64(-4)).code() == StatusCode::kAlreadyExists);
  const KeyId by_code{guests.table, 1};
  for (int opened = 0; opened < 4; ++opened) {
    INFO("opened " << opened);
    CHECK(guests.schema().columns[2].nullable);
    CHECK(guests.get(1, kGuestCode).is_null());
    CHECK(guests.get(0, kGuestCode) == Value::int64(0));
    Transaction t = guests.begin();
    CHECK(must(t.get(by_code, {Value::int64(-4)})).get_unchecked(ColumnId(0)) == Value::int64(4));
    const Result<Row> other = t.get(by_code, {Value::int64(-1)});
    CHECK(other.code() == StatusCode::kNotFound);
    t.abort();
    if (opened == 1) guests.merge();
    must(guests.set(5, kGuestCode, opened % 2 == 0 ? Value::null() : Value::int64(-5)));
    guests.reopen();
  }
  CHECK(guest_words(guests.database->set_not_null(guests.table, kGuestCode)) ==
        "table guests, column code: NULL is not allowed, but the row with id = 1 has it");
  must(guests.set(1, kGuestCode, Value::int64(-1)));
  must(guests.set(2, kGuestCode, Value::int64(-2)));
  must(guests.database->set_not_null(guests.table, kGuestCode));
  guests.merge();
  guests.reopen();
  CHECK(guests.set(1, kGuestCode, Value::null()).code() == StatusCode::kConstraintViolated);
}

TEST_CASE("rows with NULL in a column that admits it have no entry under a hash", "[engine]") {
  MemoryDatabase database;
  TableSchema schema("things");
  schema.column("id", Type::kInt64).primary_key({"id"});
  schema.column("code", Type::kInt64).not_null().column("part", Type::kInt64).not_null();
  schema.unique_key("by_code", {"code", "part"}).hash_prefix(1);
  const TableId table = must(database->create_table(schema));
  const KeyIndex& by_code = *database->table(table)->keys()[1];
  must(database->set_not_null(table, ColumnId(2), false));
  Transaction t = must(database->begin(AccessMode::kReadWrite));
  const RowId part = must(t.insert(table, {1, 1, Value::null()}));
  CHECK(by_code.is_hashed(part.value()));  // by its code
  must(t.commit());
  must(database->set_not_null(table, ColumnId(1), false));
  Transaction u = must(database->begin(AccessMode::kReadWrite));
  for (std::int64_t id = 2; id < 5; ++id) {
    const RowId row = must(u.insert(table, {id, Value::null(), 1}));
    CHECK_FALSE(by_code.is_hashed(row.value()));
  }
  must(u.commit());
  must(database->verify({}));
  database.reopen();
  must(database->verify({}));
}

TEST_CASE("columns that give numbers, and those of the primary key, stay NOT NULL", "[engine]") {
  TemporaryDatabase database;
  TableSchema schema("bills");
  schema.column("id", Type::kInt64).column("number", Type::kInt64).auto_increment();
  schema.column("of", Type::kInt64).column("kind", Type::kInt32).with_default(Value::null());
  schema.primary_key({"id"}).foreign_key("follows", {"of"}, "bills", ReferenceAction::kSetNull);
  const TableId table = must(database->create_table(schema));
  const auto fails = [&](std::uint16_t column, bool not_null, StatusCode code,
                         const std::string& message) {
    const Status refused = database->set_not_null(table, ColumnId(column), not_null);
    CHECK(refused.code() == code);
    CHECK(guest_words(refused) == message);
  };
  fails(0, false, StatusCode::kConstraintViolated,
        "table bills, column id: the primary key uses it");
  fails(1, false, StatusCode::kConstraintViolated,
        "table bills, column number: it gives rows numbers");
  fails(2, true, StatusCode::kInvalidArgument,
        "table bills, foreign key follows: sets column of to NULL, but the column is NOT NULL");
  fails(3, true, StatusCode::kInvalidArgument,
        "table bills, default: column kind: NULL is not allowed");
  fails(7, true, StatusCode::kNotFound, "table bills: no column 7, it has 4");
  must(database->set_default(table, ColumnId(3), std::nullopt));
  must(database->set_not_null(table, ColumnId(3)));
  must(database->drop_column(table, ColumnId(3)));
  fails(3, true, StatusCode::kNotFound, "table bills: column 3 was dropped");
  fails(3, false, StatusCode::kNotFound, "table bills: column 3 was dropped");
  CHECK(database->set_not_null(TableId(99), ColumnId(0)).code() == StatusCode::kNotFound);
}

TEST_CASE("a default that is set is that of later inserts", "[engine]") {
  Guests guests;
  const auto inserted = [&](std::int64_t id) {
    Transaction t = guests.begin();
    must(t.insert(guests.table, {{ColumnId(0), Value::int64(id)}, {kGuestCode, Value::int64(id)}}));
    must(t.commit());
    return guests.get(id, kGuestAge);
  };
  CHECK(inserted(100).is_null());
  must(guests.database->set_default(guests.table, kGuestAge, 7));
  CHECK(inserted(101) == Value::int32(7));
  CHECK(guests.get(100, kGuestAge).is_null());
  guests.reopen();
  CHECK(inserted(102) == Value::int32(7));
  must(guests.database->set_default(guests.table, kGuestAge, Value::null()));
  CHECK(inserted(103).is_null());
  must(guests.database->set_default(guests.table, kGuestAge, std::nullopt));
  CHECK(inserted(104).is_null());
  // Rows from before a column was added keep its first default.
  ColumnSchema late;
  late.name = "late";
  late.type = Type::kInt32;
  late.nullable = false;
  late.default_value = Constant(Value::int32(1));
  const ColumnId added = must(guests.database->add_column(guests.table, late));
  must(guests.database->set_default(guests.table, added, 2));
  inserted(105);
  guests.reopen();
  CHECK(guests.get(104, added) == Value::int32(1));
  CHECK(guests.get(105, added) == Value::int32(2));
  CHECK(guest_words(guests.database->set_default(guests.table, added, Value::null())) ==
        "table guests, default: column late: NULL is not allowed");
  CHECK(guest_words(guests.database->set_default(guests.table, added, "two")) ==
        "table guests, default: column late of type int32: string 'two' does not fit");
  CHECK(guests.database->set_default(guests.table, ColumnId(9), 1).code() == StatusCode::kNotFound);
  CHECK(guests.database->set_default(TableId(99), added, 1).code() == StatusCode::kNotFound);
}

TEST_CASE("an added column that rows lack becomes NOT NULL, and may be NULL again", "[engine]") {
  Guests guests;
  ColumnSchema late;
  late.name = "late";
  late.type = Type::kString;
  const ColumnId added = must(guests.database->add_column(guests.table, late));
  CHECK(guests.database->set_not_null(guests.table, added).code() ==
        StatusCode::kConstraintViolated);
  for (std::int64_t id = 0; id < 10; ++id) must(guests.set(id, added, "a value of some length"));
  must(guests.database->set_not_null(guests.table, added));  // dead rows have NULL
  guests.reopen();
  must(guests.database->change_type(guests.table, added, Type::kBytes));
  guests.merge();
  guests.reopen();
  CHECK(guests.set(4, added, Value::null()).code() == StatusCode::kConstraintViolated);
  must(guests.database->set_not_null(guests.table, added, false));
  must(guests.set(4, added, Value::null()));
  guests.merge();
  guests.reopen();
  CHECK(guests.get(4, added).is_null());
}

// ------------------------------------------------------------------------- beside transactions

TEST_CASE("an open transaction keeps a constraint from being added", "[engine]") {
  Guests guests;
  Transaction open = guests.begin();
  const Status checked = guests.database->add_check(guests.table, age_from(1));
  CHECK(checked.code() == StatusCode::kBusy);
  const std::string who = "transaction " + std::to_string(open.id().value()) +
                          " began before the call and is still open: open for ";
  CHECK_THAT(guest_words(checked), StartsWith("table guests, check grown: " + who));
  const Status demanded = guests.database->set_not_null(guests.table, kGuestAge);
  CHECK(demanded.code() == StatusCode::kBusy);
  CHECK_THAT(guest_words(demanded), StartsWith("table guests, column age: " + who));
  CHECK(guests.schema().checks.empty());
  CHECK(guests.schema().columns[1].nullable);
  must(guests.insert(open, 10, std::nullopt));
  must(guests.insert(open, 11, 0));
  must(open.commit());
  // These need nothing of the rows.
  Transaction again = guests.begin();
  must(guests.database->set_not_null(guests.table, kGuestCode, false));
  must(guests.database->set_default(guests.table, kGuestAge, 5));
  must(again.insert(guests.table, {{ColumnId(0), Value::int64(12)}}));
  must(again.commit());
  CHECK(guests.get(12, kGuestCode).is_null());
  CHECK(guests.get(12, kGuestAge) == Value::int32(5));
  guests.reopen();
}

TEST_CASE("writers obey a check while it is added, also if it is refused", "[engine]") {
  Guests guests;
  const auto adds = [&] { return guests.database->add_check(guests.table, age_from(20)); };
  const Status added = held_up(*guests.database, adds, [&] {
    CHECK(guests.schema().checks.empty());
    CHECK(guest_words(guests.insert(10, 19)) ==
          "table guests, check grown: age >= 20 does not hold for age = 19");
    CHECK(guests.set(1, kGuestAge, Value::int32(1)).code() == StatusCode::kConstraintViolated);
    must(guests.insert(11, 33));
    must(guests.database->rename_column(guests.table, kGuestAge, "years"));
    CHECK(guest_words(guests.insert(10, 19)) ==
          "table guests, check grown: years >= 20 does not hold for years = 19");
    CHECK(guest_words(guests.database->drop_column(guests.table, kGuestAge)) ==
          "table guests, column years: check grown uses it");
    CHECK(guests.database->drop_check(guests.table, "grown").code() == StatusCode::kNotFound);
    must(guests.database->rename_table(guests.table, "visitors"));
    must(guests.database->add_column(guests.table, {"more"}));
  });
  must(added);
  CHECK(guests.schema().checks.size() == 1);
  CHECK(guest_words(guests.insert(10, 19)) ==
        "table visitors, check grown: years >= 20 does not hold for years = 19");
  guests.reopen();
  CHECK(guests.schema().checks[0].condition.to_string() == "years >= 20");
  must(guests.database->drop_check(guests.table, "grown"));
  must(guests.insert(12, 5));
  const auto adds_again = [&] {
    return guests.database->add_check(guests.table, {"grown", col("years") >= 20});
  };
  const Status refused = held_up(*guests.database, adds_again, [&] {
    CHECK(guests.insert(13, 6).code() == StatusCode::kConstraintViolated);
  });
  CHECK(refused.code() == StatusCode::kConstraintViolated);
  must(guests.insert(13, 6));
}

TEST_CASE("no transaction sees a constraint and a row that breaks it", "[engine]") {
  Guests guests;
  must(guests.insert(10, 1));
  const auto adds = [&] { return guests.database->add_check(guests.table, age_from(20)); };
  // It obeys the check, but sees a row from before that breaks it.
  std::optional<Transaction> reads;
  const Status refused = held_up(*guests.database, adds, [&] {
    reads.emplace(guests.begin());
    must(guests.set(10, kGuestAge, Value::int32(20)));
    CHECK(must(reads->get({guests.table, 0}, {Value::int64(10)})).get_unchecked(kGuestAge) ==
          Value::int32(1));
  });
  CHECK(refused.code() == StatusCode::kBusy);
  CHECK(guests.schema().checks.empty());
  reads.reset();
  must(guests.database->add_check(guests.table, age_from(20)));
}

TEST_CASE("writers obey NOT NULL while it is demanded", "[engine]") {
  Guests guests;
  const auto demands = [&] { return guests.database->set_not_null(guests.table, kGuestAge); };
  must(held_up(*guests.database, demands, [&] {
    CHECK(guests.schema().columns[1].nullable);
    CHECK(guest_words(guests.insert(10, std::nullopt)) ==
          "table guests, column age: NULL is not allowed");
    must(guests.insert(11, 1));
  }));
  const auto demands_city = [&] { return guests.database->set_not_null(guests.table, kGuestCity); };
  must(guests.database->drop_key({guests.table, 2}));
  const Status gone = held_up(*guests.database, demands_city, [&] {
    must(guests.database->drop_column(guests.table, kGuestCity));
  });
  CHECK(gone.code() == StatusCode::kNotFound);
  guests.reopen();
}

TEST_CASE("a table that is dropped while a constraint is added ends the call", "[engine]") {
  Guests guests;
  Status dropped;
  std::thread dropper;
  const auto adds = [&] { return guests.database->add_check(guests.table, age_from(20)); };
  const Status added = held_up(*guests.database, adds, [&] {
    dropper = std::thread([&] { dropped = guests.database->drop_table(guests.table); });
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  });
  dropper.join();
  must(dropped);
  CHECK(added.code() == StatusCode::kNotFound);
}

}  // namespace flugs::test
