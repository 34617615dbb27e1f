// Keys of rows are compared by their cells if the cells are of one edition. The result must equal
// that of comparing Values, for cells of all kinds, editions, and rows in chunks and in groups.
#include "tables/keys/key_compare.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "test/support/model_value.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

using engine::KeyCompare, engine::RowView;

constexpr std::size_t kTypes = 9;

/// A table with two columns of each type, dictionary and direct. It has few distinct values, so
/// many are equal, some are NULL, some texts long.
struct Mixed {
  Mixed() : database(std::size_t{64} << 20) {
    TableSchema schema("mixed");
    for (const Encoding encoding : {Encoding::kDictionary, Encoding::kDirect})
      for (std::size_t type = 1; type <= kTypes; ++type) {
        schema.column("c" + std::to_string(schema.columns.size()), static_cast<Type>(type));
        schema.columns.back().encoding = encoding;
        schema.columns.back().nullable = true;
      }
    table = must(database->create_table(schema));
  }

  Type type_of(std::size_t column) { return columns()[column]->type(); }
  const columns::ColumnArray& columns() { return database->table(table)->columns(); }
  const engine::RowStore& rows() { return database->table(table)->rows(); }

  Value value(Type type) {
    if (random.chance(15)) return Value::null();
    const double inf = std::numeric_limits<double>::infinity();
    const std::int64_t wide[] = {0, 1, -1, INT64_MIN, INT64_MAX, std::int64_t{1} << 32};
    const std::int32_t narrow[] = {0, 1, -1, INT32_MIN, INT32_MAX, 1 << 25};
    const double reals[] = {
        0.0, -0.0, 1.5, -1.5, inf, -inf, std::numeric_limits<double>::quiet_NaN(), -1e-300};
    switch (type) {
      case Type::kBool:
        return Value::boolean(random.chance(50));
      case Type::kInt32:
      case Type::kDate:
        return Value::from_raw(type, narrow[random.below(std::size(narrow))]);
      case Type::kDouble:
        return Value::real(reals[random.below(std::size(reals))]);
      case Type::kString:
      case Type::kBytes: {
        std::string text(random.below(3) * 9, 't');
        if (random.chance(50)) text += std::string(1, static_cast<char>(random.below(3)));
        if (random.chance(20)) text += '\xff';
        return Value::from_bytes(type, *texts.insert(text).first);
      }
      default:
        return Value::from_raw(type, wide[random.below(std::size(wide))]);
    }
  }

  void insert(int count) {
    Transaction t = must(database->begin(AccessMode::kReadWrite));
    for (int i = 0; i < count; ++i) {
      std::vector<Value> values;
      for (std::size_t column = 0; column < columns().size(); ++column)
        values.push_back(value(type_of(column)));
      ids.push_back(must(t.insert(table, values)).row.value());
    }
    must(t.commit());
  }

  /// Compares all pairs, by random keys of one to four columns.
  void check() {
    for (int round = 0; round < 60; ++round) {
      std::vector<std::uint16_t> key;
      for (std::size_t i = 0; i < 1 + random.below(4); ++i)
        key.push_back(static_cast<std::uint16_t>(random.below(columns().size())));
      const KeyCompare compare(columns(), key);
      for (int pair = 0; pair < 2000; ++pair)
        check_pair(compare, key, ids[random.below(ids.size())], ids[random.below(ids.size())]);
    }
    CHECK(wrong == 0);
    CHECK(equal > 1000);
  }
  void check_pair(const KeyCompare& compare, const std::vector<std::uint16_t>& key, std::uint32_t a,
                  std::uint32_t b) {
    const RowView left = rows().view(a);
    const RowView right = rows().view(b);
    int order = 0;
    std::vector<Value> values;
    for (const std::uint16_t column : key) {
      values.push_back(right.value(*columns()[column], column));
      if (order == 0)
        order = engine::compare_values(left.value(*columns()[column], column), values.back());
    }
    equal += order == 0 ? 1 : 0;
    const auto sign = [](int of) { return (of > 0 ? 1 : 0) - (of < 0 ? 1 : 0); };
    wrong += sign(compare.order(left, right)) != sign(order) ? 1 : 0;
    wrong += sign(compare.order(left, values)) != sign(order) ? 1 : 0;
    wrong += compare.is_same(left, right) != (order == 0) ? 1 : 0;
    wrong += compare.is_equal(left, values) != (order == 0) ? 1 : 0;
  }

  MemoryDatabase database;
  TableId table;
  Random random{11};
  std::set<std::string> texts;
  std::vector<std::uint32_t> ids;
  std::size_t wrong = 0;
  std::size_t equal = 0;
};

/// Changes int32 to int64 and string to bytes, for both encodings.
void change_types(Mixed& t) {
  for (const std::size_t first : {std::size_t{0}, kTypes}) {
    must(t.database->change_type(t.table, ColumnId(static_cast<std::uint16_t>(first + 1)),
                                 Type::kInt64));
    must(t.database->change_type(t.table, ColumnId(static_cast<std::uint16_t>(first + 7)),
                                 Type::kBytes));
  }
}

void add_columns(Mixed& t) {
  TableSchema schema("more");
  schema.column("more_numbers", Type::kInt32).with_default(Value::int32(-1));
  schema.column("more_texts", Type::kString).with_default(Value::string("tttttttttttttttttt"));
  schema.column("more_nothing", Type::kDouble);
  for (ColumnSchema& column : schema.columns) {
    column.nullable = true;
    must(t.database->add_column(t.table, column));
  }
}

}  // namespace

TEST_CASE("comparing keys by cells and by values gives the same", "[engine]") {
  Mixed t;
  t.insert(150);
  t.check();
  SECTION("columns whose type has changed") {
    change_types(t);
    t.check();
    t.insert(150);
    t.check();
  }
  SECTION("columns that old rows lack") {
    add_columns(t);
    t.insert(150);
    t.check();
  }
  SECTION("rows in groups") {
    MergeOptions options;
    options.scope = MergeScope::kEverything;
    must(t.database->merge(t.table, options));
    t.insert(150);
    t.check();
    change_types(t);
    add_columns(t);
    t.insert(150);
    t.check();
  }
}

}  // namespace flugs::test
