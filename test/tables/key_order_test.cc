// Rules of the order of keys, each on a few rows: what tests of random keys have let pass.
#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "flugs/expression.h"
#include "flugs/merge.h"
#include "tables/catalog/schema_codec.h"
#include "tables/data/table_data.h"
#include "tables/keys/key_compare.h"
#include "tables/keys/key_prefix.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

/// Streets whose names agree in all bytes that a prefix has room for.
struct Streets {
  explicit Streets(IndexPlace mode = test_index_place()) : database(std::size_t{16} << 20, mode) {
    TableSchema schema("streets");
    schema.column("name", Type::kString).not_null();
    table = must(database->create_table(schema.unique_key("by_name", {"name"}).ordered()));
  }
  /// Every third street from that one on, the last one first.
  void insert(int first) {
    Transaction t = must(database->begin(AccessMode::kReadWrite));
    for (int i = 87 + first; i >= first; i -= 3) {
      names.insert("Dresden an der Elbe " + std::to_string(100 + i));
      must(t.insert(table, {Value::string(std::string_view("Dresden an der Elbe " +
                                                           std::to_string(100 + i)))}));
    }
    must(t.commit());
  }
  void merge_and_reopen() {
    MergeOptions options;
    options.scope = MergeScope::kEverything;
    must(database->merge(table, options));
    database.reopen();
  }
  using Names = std::vector<std::string>;
  Names walk(const KeyBound& lower, const KeyBound& upper) {
    Names found;
    Transaction t = must(database->begin(AccessMode::kReadOnly));
    must(t.rows({table, 0}, lower, upper, [&](const Row& row) {
      found.emplace_back(row.get_unchecked<std::string_view>(ColumnId(0)));
      return true;
    }));
    return found;
  }
  /// Walks over all of them, and from the third to the last but one, with these and without.
  void check() {
    const Names all(names.begin(), names.end());
    CHECK(walk({}, {}) == all);
    const std::array low{Value::string(all[2])};
    const std::array high{Value::string(all[all.size() - 2])};
    CHECK(walk({low, true}, {high, true}) == Names(all.begin() + 2, all.end() - 1));
    CHECK(walk({low, false}, {high, false}) == Names(all.begin() + 3, all.end() - 2));
    CHECK(walk({low, true}, {low, true}) == Names{all[2]});
    must(database->verify({}));
  }

  MemoryDatabase database;
  TableId table;
  std::set<std::string> names;
};

}  // namespace

TEST_CASE("keys that agree in all bytes of their prefixes are walked in their order", "[engine]") {
  Streets streets(GENERATE(IndexPlace::kPool, IndexPlace::kDram));
  streets.insert(0);
  streets.check();
  streets.database.reopen();
  streets.check();
  streets.merge_and_reopen();
  streets.check();
  streets.insert(1);  // in DRAM, between those of an index run
  streets.check();
  streets.merge_and_reopen();
  streets.check();
  streets.insert(2);
  streets.check();
}

TEST_CASE("a look-up of NULL finds no 0 in a key column that is never NULL", "[engine]") {
  MemoryDatabase database;
  TableSchema schema("t");
  schema.column("a", Type::kInt32).not_null().direct();
  schema.column("b", Type::kInt32).not_null().direct();
  const TableId table =
      must(database->create_table(schema.unique_key("k", {"a", "b"}).hash_prefix(1)));
  Transaction t = must(database->begin(AccessMode::kReadWrite));
  must(t.insert(table, {Value::int32(7), Value::int32(0)}));
  std::size_t rows = 0;
  const auto count = [&](const Row&) {
    ++rows;
    return true;
  };
  must(t.rows({table, 0}, {Value::int32(7), Value::null()}, count));
  CHECK(rows == 0);
  CHECK(t.get({table, 0}, {Value::int32(7), Value::null()}).code() == StatusCode::kNotFound);
  must(t.rows({table, 0}, {Value::int32(7), Value::int32(0)}, count));
  CHECK(rows == 1);
}

TEST_CASE("an old snapshot finds a row once whose key changed behind its hashed columns",
          "[engine]") {
  MemoryDatabase database(std::size_t{16} << 20, GENERATE(IndexPlace::kPool, IndexPlace::kDram));
  TableSchema schema("t");
  schema.column("a", Type::kInt32).column("b", Type::kInt32);
  const TableId table =
      must(database->create_table(schema.unique_key("k", {"a", "b"}).hash_prefix(1)));
  Transaction t = must(database->begin(AccessMode::kReadWrite));
  RowId row = must(t.insert(table, {Value::int32(7), Value::int32(1)}));
  must(t.commit());
  const auto check = [&](Transaction& reader, int b) {
    std::vector<std::int32_t> found;
    must(reader.rows({table, 0}, {Value::int32(7)}, [&](const Row& seen) {
      found.push_back(seen.get_unchecked<std::int32_t>(ColumnId(1)));
      return true;
    }));
    CHECK(found == std::vector<std::int32_t>{b});
  };
  Transaction old = must(database->begin(AccessMode::kReadOnly));
  for (const int b : {2, 3}) {
    Transaction change = must(database->begin(AccessMode::kReadWrite));
    row = must(change.update(table, row, {{ColumnId(1), Value::int32(b)}}));
    must(change.commit());
    check(old, 1);
    Transaction now = must(database->begin(AccessMode::kReadOnly));
    check(now, b);
  }
}

TEST_CASE("a foreign key refuses a decimal column of another scale", "[engine]") {
  MemoryDatabase database;
  TableSchema parents("parents");
  parents.column("price", Type::kDecimal).scale(2).primary_key({"price"});
  must(database->create_table(parents));
  TableSchema children("children");
  children.column("price", Type::kDecimal).scale(3);
  const Status refused =
      database->create_table(children.foreign_key("of_price", {"price"}, "parents")).status();
  INFO(refused.to_string());
  CHECK(refused.code() == StatusCode::kInvalidArgument);
  CHECK(refused.message().find("scale 3") != std::string::npos);
  CHECK(refused.message().find("scale 2") != std::string::npos);
}

TEST_CASE("a check refuses to compare decimal columns of different scales", "[engine]") {
  TableSchema schema("t");
  schema.column("paid", Type::kDecimal).scale(2).column("due", Type::kDecimal).scale(3);
  schema.column("limit", Type::kDecimal).scale(2);
  CHECK(engine::complete_schema(
            TableSchema(schema).check("c", query::col("paid") <= query::col("limit")))
            .ok());
  const Status refused = engine::complete_schema(TableSchema(schema).check(
                                                     "c", query::col("paid") <= query::col("due")))
                             .status();
  INFO(refused.to_string());
  CHECK(refused.code() == StatusCode::kInvalidArgument);
  CHECK(refused.message().find("cannot be compared with due") != std::string::npos);
}

TEST_CASE("0.0 and -0.0 are one value in the order of keys", "[engine]") {
  CHECK(engine::compare_values(Value::real(0.0), Value::real(-0.0)) == 0);
  CHECK(engine::compare_values(Value::real(-0.0), Value::real(0.0)) == 0);
  CHECK(engine::compare_values(Value::real(-0.0), Value::real(-1e-300)) > 0);
  CHECK(engine::compare_values(Value::real(-0.0), Value::real(1e-300)) < 0);
}

TEST_CASE("the prefix of NaN is the greatest", "[engine][format]") {
  engine::KeyPrefix prefix;
  prefix.add(Value::real(std::numeric_limits<double>::quiet_NaN()), Type::kDouble);
  CHECK(prefix.bits() == ~std::uint64_t{0});
}

TEST_CASE("cells of a dropped column make no difference between keys", "[engine]") {
  MemoryDatabase database;
  TableSchema schema("t");
  schema.column("kept", Type::kInt32).column("code", Type::kInt32).dictionary();
  schema.column("number", Type::kInt64).direct().column("text", Type::kString).direct();
  const TableId table = must(database->create_table(schema));
  Transaction t = must(database->begin(AccessMode::kReadWrite));
  std::vector<std::uint32_t> rows;
  for (const int i : {1, 2})
    rows.push_back(must(t.insert(table, {Value::int32(5), Value::int32(i), Value::int64(i),
                                         Value::string(std::string_view(
                                             std::string(20, static_cast<char>('a' + i))))}))
                       .row.value());
  must(t.commit());
  const engine::TableData& now = *database->table_data(table);
  for (const std::uint16_t column : {1, 2, 3}) {
    const engine::KeyCompare compare(now.columns, {0, column});
    const engine::RowView a = now.rows.view(rows[0]);
    const engine::RowView b = now.rows.view(rows[1]);
    CHECK_FALSE(compare.is_same(a, b));
    CHECK(compare.order(a, b) < 0);
    must(database->drop_column(table, ColumnId(column)));
    CHECK(compare.is_same(a, b));
    CHECK(compare.order(a, b) == 0);
    CHECK(compare.order(a, std::array{Value::int32(5), Value::null()}) == 0);
  }
}

}  // namespace flugs::test
