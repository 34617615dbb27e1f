// Values at the bounds of their types: stored, found, ordered, and there after a restart.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

constexpr ColumnId kValue{1};

template <typename T>
constexpr T kMin = std::numeric_limits<T>::min();
template <typename T>
constexpr T kMax = std::numeric_limits<T>::max();

double infinity() { return std::numeric_limits<double>::infinity(); }

// For each type, its values in order, without NULL. Views of texts that outlive the tests.
std::vector<std::vector<Value>> values_by_type() {
  static const std::string kZeros(3, '\0');
  static const std::string kInside("a\0b", 3);
  static const std::string kHigh(16, '\xff');
  static const std::string kLongText(5000, 'b');
  using V = Value;
  const auto texts = [](auto make) {
    return std::vector<Value>{make(""),        make(std::string_view(kZeros).substr(0, 1)),
                              make(kZeros),    make("a"),
                              make(kInside),   make("b15 letters ...."),
                              make(kLongText), make("c16 letters ....."),
                              make(kHigh)};
  };
  return {
      {V::boolean(false), V::boolean(true)},
      {V::int32(kMin<std::int32_t>), V::int32(-1), V::int32(0), V::int32(kMax<std::int32_t>)},
      {V::int64(kMin<std::int64_t>), V::int64(-1), V::int64(0), V::int64(0xFFFFFFFF),
       V::int64(0x100000000), V::int64(kMax<std::int64_t>)},
      {V::real(-infinity()), V::real(-kMax<double>), V::real(-kMin<double>), V::real(0.0),
       V::real(std::numeric_limits<double>::denorm_min()), V::real(0.1), V::real(kMax<double>),
       V::real(infinity()), V::real(std::nan(""))},
      {V::decimal_units(kMin<std::int64_t>), V::decimal_units(-1), V::decimal_units(0),
       V::decimal_units(kMax<std::int64_t>)},
      {V::date(kMin<std::int32_t>), V::date(0), V::date(kMax<std::int32_t>)},
      {V::timestamp(kMin<std::int64_t>), V::timestamp(-1), V::timestamp(kMax<std::int64_t>)},
      texts([](std::string_view v) { return Value::string(v); }),
      texts([](std::string_view v) { return Value::bytes(v); }),
  };
}

TableSchema schema_of(Type type, Encoding encoding) {
  TableSchema schema("t" + std::string(to_string(type)));
  schema.column("id", Type::kInt64).column("value", type);
  schema.columns[1].encoding = encoding;
  schema.primary_key({"id"}).unique_key("by_value", {"value"}).ordered();
  return schema;
}

// NULL first, then the values in their order; each is found by its key and by a scan.
void check_stored(Database& database, const std::vector<Value>& values) {
  const std::string name = "t" + std::string(to_string(values[0].type()));
  const TableId table = must(database.find_table(name));
  const Transaction t = must(database.begin(AccessMode::kReadOnly));
  std::vector<Value> walked;
  must(t.rows({table, 1}, {}, {}, [&](const Row& row) {
    walked.push_back(row.get_unchecked(kValue));
    return true;
  }));
  std::vector<Value> expected = values;
  expected.insert(expected.begin(), Value::null());
  CHECK(walked == expected);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    INFO(name << ": " << expected[i].to_string().substr(0, 40));
    const Row row = must(t.get({table, 1}, {expected[i]}));
    CHECK(row.get_unchecked(kValue) == expected[i]);
    CHECK(row.is_null_unchecked(kValue) == (i == 0));
    std::size_t found = 0;
    must(t.scan(table, std::vector<ColumnId>{kValue}, Predicate::equal(kValue, expected[i]),
                [&](const ScanBatch& batch) {
                  for (std::size_t r = 0; r < batch.row_count(); ++r)
                    found += batch.get_unchecked(0, r) == expected[i] ? 1 : 100;
                  return true;
                }));
    CHECK(found == 1);
  }
}

}  // namespace

TEST_CASE("extreme values of every type come back, in order, also after a restart", "[api]") {
  const Encoding encoding = GENERATE(Encoding::kDictionary, Encoding::kDirect);
  TemporaryDatabase database;
  for (const std::vector<Value>& values : values_by_type()) {
    const TableId table = must(database->create_table(schema_of(values[0].type(), encoding)));
    Transaction t = must(database->begin());
    must(t.insert(table, {Value::int64(-1), Value::null()}));
    for (std::size_t i = values.size(); i > 0; --i)
      must(t.insert(table, {Value::int64(static_cast<std::int64_t>(i)), values[i - 1]}));
    for (const Value& value : values)
      CHECK(t.insert(table, {Value::int64(99), value}).code() == StatusCode::kAlreadyExists);
    must(t.commit());
    check_stored(*database, values);
  }
  must(database->check());
  database.reopen();
  must(database->check());
  for (const std::vector<Value>& values : values_by_type()) check_stored(*database, values);
}

TEST_CASE("zeros of both signs are one value, and so are all NaNs", "[api]") {
  const Encoding encoding = GENERATE(Encoding::kDictionary, Encoding::kDirect);
  TemporaryDatabase database;
  const TableId table = must(database->create_table(schema_of(Type::kDouble, encoding)));
  Transaction t = must(database->begin());
  must(t.insert(table, {Value::int64(1), Value::real(-0.0)}));
  must(t.insert(table, {Value::int64(2), Value::real(std::nan("1"))}));
  CHECK(t.insert(table, {Value::int64(3), Value::real(0.0)}).code() == StatusCode::kAlreadyExists);
  CHECK(t.insert(table, {Value::int64(3), Value::real(-std::nan("2"))}).code() ==
        StatusCode::kAlreadyExists);
  const Row zero = must(t.get({table, 1}, {Value::real(0.0)}));
  CHECK(zero.get_unchecked(kValue) == Value::real(0.0));
  CHECK_FALSE(std::signbit(zero.get_unchecked<double>(kValue)));
  CHECK(must(t.get({table, 1}, {Value::real(-0.0)})).id() == zero.id());
  const Row nan = must(t.get({table, 1}, {Value::real(-std::nan("3"))}));
  CHECK(nan.get_unchecked<std::int64_t>(ColumnId(0)) == 2);
  CHECK(std::isnan(nan.get_unchecked<double>(kValue)));
  must(t.commit());
  must(database->check());
}

TEST_CASE("an int32 may stand for an int64 wherever a value is given", "[api]") {
  const Encoding encoding = GENERATE(Encoding::kDictionary, Encoding::kDirect);
  TemporaryDatabase database;
  const TableId table = must(database->create_table(schema_of(Type::kInt64, encoding)));
  Transaction t = must(database->begin());
  RowId row = must(t.insert(table, {Value::int32(1), Value::int32(-5)}));
  CHECK(must(t.get(table, row)).get_unchecked(kValue) == Value::int64(-5));
  CHECK(must(t.get({table, 1}, {Value::int64(-5)})).id() == row);
  CHECK(t.insert(table, {Value::int64(2), Value::int64(-5)}).code() == StatusCode::kAlreadyExists);
  row = must(t.update(table, row, {{kValue, Value::int32(7)}}));
  CHECK(must(t.get({table, 1}, {Value::int32(7)})).get_unchecked(kValue) == Value::int64(7));
  const std::vector<Value> many = {Value::int32(3), Value::int32(kMin<std::int32_t>)};
  must(t.insert_rows(table, many));
  std::size_t found = 0;
  const std::vector<Value> low = {Value::int32(kMin<std::int32_t>)};
  must(t.rows({table, 1}, {low}, {}, [&](const Row&) { return ++found != 0; }));
  CHECK(found == 2);
  must(t.commit());
}

TEST_CASE("a string of ten megabytes is a value like any other", "[api]") {
  const Encoding encoding = GENERATE(Encoding::kDictionary, Encoding::kDirect);
  TemporaryDatabase database;
  std::string text(10'000'000, 'x');
  for (std::size_t i = 0; i < text.size(); i += 997) text[i] = static_cast<char>(i);
  const TableId table = must(database->create_table(schema_of(Type::kString, encoding)));
  const auto check = [&] {
    const Transaction t = must(database->begin(AccessMode::kReadOnly));
    const Row row = must(t.get({table, 1}, {Value::string(text)}));
    CHECK((row.get_unchecked<std::string_view>(kValue) == text));  // without printing it
    CHECK(t.get({table, 1}, {Value::string(std::string_view(text).substr(1))}).code() ==
          StatusCode::kNotFound);
  };
  Transaction t = must(database->begin());
  must(t.insert(table, {Value::int64(1), Value::string(text)}));
  must(t.insert(table, {Value::int64(2), Value::string("short")}));
  must(t.commit());
  check();
  database.reopen();
  check();
  must(database->check());
}

}  // namespace flugs::test
