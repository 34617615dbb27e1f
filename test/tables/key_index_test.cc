#include "tables/keys/key_index.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>
#include <string>
#include <vector>

#include "test/support/model_value.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

using engine::compare_values;

std::vector<Value> ascending(Type type) {
  const double inf = std::numeric_limits<double>::infinity();
  static const std::string zero("\0", 1);
  static const std::string a_zero("a\0", 2);
  static const std::string a_zero_b("a\0b", 3);
  static const std::string a_one("a\1", 2);
  switch (type) {
    case Type::kBool:
      return {Value::null(), Value::boolean(false), Value::boolean(true)};
    case Type::kInt32:
    case Type::kDate:
      return {Value::null(),
              Value::from_raw(type, INT32_MIN),
              Value::from_raw(type, -1),
              Value::from_raw(type, 0),
              Value::from_raw(type, 1),
              Value::from_raw(type, INT32_MAX)};
    case Type::kDouble:
      return {Value::null(),
              Value::real(-inf),
              Value::real(-1.5),
              Value::real(-1e-300),
              Value::real(0.0),
              Value::real(1e-300),
              Value::real(7),
              Value::real(inf),
              Value::real(std::numeric_limits<double>::quiet_NaN())};
    case Type::kString:
    case Type::kBytes: {
      std::vector<Value> values = {Value::null()};
      for (const std::string_view text :
           {std::string_view(), std::string_view(zero), std::string_view("a"),
            std::string_view(a_zero), std::string_view(a_zero_b), std::string_view(a_one),
            std::string_view("ab"), std::string_view("abcdefgh"), std::string_view("abcdefgha"),
            std::string_view("abcdefghijklmnopq"), std::string_view("b"), std::string_view("\x7f"),
            std::string_view("\xff")})
        values.push_back(Value::from_bytes(type, text));
      return values;
    }
    default:
      return {Value::null(),
              Value::from_raw(type, INT64_MIN),
              Value::from_raw(type, -(std::int64_t{1} << 32)),
              Value::from_raw(type, -1),
              Value::from_raw(type, 0),
              Value::from_raw(type, 1),
              Value::from_raw(type, std::int64_t{1} << 32),
              Value::from_raw(type, INT64_MAX)};
  }
}

}  // namespace

TEST_CASE("values of a type have one order", "[engine]") {
  for (int type = 1; type <= 9; ++type) {
    const std::vector<Value> values = ascending(static_cast<Type>(type));
    for (std::size_t i = 0; i < values.size(); ++i)
      for (std::size_t k = 0; k < values.size(); ++k) {
        const int order = compare_values(values[i], values[k]);
        INFO(values[i].to_string() << " and " << values[k].to_string());
        CHECK((order < 0) == (i < k));
        CHECK((order > 0) == (i > k));
      }
  }
}

// Also for pairs, whose bytes share the prefix of an entry.
TEST_CASE("an ordered key is walked in the order of its values", "[engine]") {
  for (int first = 1; first <= 9; ++first)
    for (int second = 1; second <= 9; ++second) {
      MemoryDatabase database(std::size_t{4} << 20);
      TableSchema schema("t");
      schema.column("a", static_cast<Type>(first)).column("b", static_cast<Type>(second));
      schema.key("k", {"a", "b"});
      const TableId table = must(database->create_table(schema));
      const std::vector<Value> as = ascending(static_cast<Type>(first));
      const std::vector<Value> bs = ascending(static_cast<Type>(second));
      Transaction t = must(database->begin(AccessMode::kReadWrite));
      for (std::size_t i = 0; i < as.size(); ++i)
        for (std::size_t k = 0; k < bs.size(); ++k)  // in some other order
          must(t.insert(table, {as[as.size() - 1 - i], bs[(k + i) % bs.size()]}));
      std::vector<std::pair<Value, Value>> found;
      must(t.rows({table, 0}, {}, [&](const Row& row) {
        found.emplace_back(row.get_unchecked(ColumnId{0}), row.get_unchecked(ColumnId{1}));
        return true;
      }));
      const bool sorted =
          std::is_sorted(found.begin(), found.end(), [](const auto& x, const auto& y) {
            const int order = compare_values(x.first, y.first);
            return order != 0 ? order < 0 : compare_values(x.second, y.second) < 0;
          });
      INFO(schema.columns[0].name << " " << first << ", " << second);
      CHECK(sorted);
      CHECK(found.size() == as.size() * bs.size());
      // Every prefix finds all its rows.
      for (const Value& a : as) {
        std::size_t rows = 0;
        must(t.rows({table, 0}, {a}, [&](const Row& row) {
          rows += compare_values(row.get_unchecked(ColumnId{0}), a) == 0 ? 1 : 0;
          return true;
        }));
        CHECK(rows == bs.size());
      }
    }
}

TEST_CASE("bounds include or exclude values equal to them", "[engine]") {
  MemoryDatabase database;
  TableSchema schema("t");
  schema.column("a", Type::kInt32).column("b", Type::kInt32).key("k", {"a", "b"});
  const TableId table = must(database->create_table(schema));
  Transaction t = must(database->begin(AccessMode::kReadWrite));
  for (int a = 0; a < 10; ++a)
    for (int b = 0; b < 10; ++b) must(t.insert(table, {Value::int32(a), Value::int32(b)}));
  const auto count = [&](std::vector<Value> low, bool low_in, std::vector<Value> high,
                         bool high_in) {
    std::size_t rows = 0;
    must(t.rows({table, 0}, {low, low_in}, {high, high_in}, [&](const Row&) {
      ++rows;
      return true;
    }));
    return rows;
  };
  const auto v = [](int x) { return Value::int32(x); };
  CHECK(count({}, true, {}, true) == 100);
  CHECK(count({v(3)}, true, {v(5)}, true) == 30);
  CHECK(count({v(3)}, false, {v(5)}, true) == 20);
  CHECK(count({v(3)}, false, {v(5)}, false) == 10);
  CHECK(count({v(3), v(5)}, true, {v(4)}, false) == 5);
  CHECK(count({v(3), v(5)}, false, {v(3), v(8)}, true) == 3);
  CHECK(count({v(5)}, true, {v(3)}, true) == 0);
  CHECK(count({v(9), v(9)}, false, {}, true) == 0);
  CHECK(count({}, true, {v(0), v(0)}, true) == 1);
  CHECK(count({Value::null()}, true, {v(0)}, false) == 0);
  std::size_t visits = 0;
  must(t.rows({table, 0}, {}, {}, [&](const Row&) { return ++visits < 7; }));
  CHECK(visits == 7);
}

}  // namespace flugs::test
