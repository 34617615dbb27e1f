// Cascades of an update come to an end: no column of a row gets two values in one statement.
#include <catch2/catch.hpp>
#include <vector>

#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

constexpr ColumnId kA{0};
constexpr ColumnId kB{1};
constexpr ColumnId kD{3};

/// Rows have the key (a, b, c) and refer by (b, a, d), so that a row whose a and b change places
/// may refer to what it was before.
TableSchema turning() {
  TableSchema schema("turning");
  schema.column("a", Type::kInt64).column("b", Type::kInt64).column("c", Type::kInt64);
  schema.column("d", Type::kInt64);
  schema.columns.back().nullable = true;
  return schema.primary_key({"a", "b", "c"})
      .foreign_key("of_other", {"b", "a", "d"}, "turning", ReferenceAction::kRestrict,
                   ReferenceAction::kCascade);
}

}  // namespace

TEST_CASE("an update whose cascade would go on for ever is refused", "[engine]") {
  MemoryDatabase database;
  const TableId table = must(database->create_table(turning()));
  Transaction t = must(database->begin(AccessMode::kReadWrite));
  const RowId row =
      must(t.insert(table, {Value::int64(1), Value::int64(2), Value::int64(7), Value::null()}));
  const std::vector<ColumnValue> turn = {
      {kA, Value::int64(2)}, {kB, Value::int64(1)}, {kD, Value::int64(7)}};
  const Status refused = t.update(table, row, turn).status();
  CHECK(refused.code() == StatusCode::kConstraintViolated);
  CHECK(refused.message() ==
        "table turning, foreign key of_other: one statement would change column b from 2 to 1 and "
        "to 2");
  // Nothing has changed. Later statements begin anew: each may change what the former one did.
  const Row found = must(t.get({table, 0}, {Value::int64(1), Value::int64(2), Value::int64(7)}));
  CHECK(found.is_null_unchecked(kD));
  must(t.update(table, found.id(), {{kB, Value::int64(3)}}));
  must(t.commit());
  must(database->verify({}));
}

// Root, left and right, and a leaf that refers to both: what the root's key becomes reaches the
// leaf on two ways, and one column of it on each.
TEST_CASE("a cascade may come to a row twice", "[engine]") {
  MemoryDatabase database;
  TableSchema roots("roots");
  roots.column("id", Type::kInt64).primary_key({"id"});
  const TableId root = must(database->create_table(roots));
  const auto add = [&](TableSchema schema) { return must(database->create_table(schema)); };
  const auto cascade = ReferenceAction::kCascade;
  TableSchema middle("left");
  middle.column("id", Type::kInt64).primary_key({"id"});
  middle.foreign_key("of_root", {"id"}, "roots", cascade, cascade);
  const TableId left = add(middle);
  middle.name = "right";
  const TableId right = add(middle);
  TableSchema pairs("pairs");
  pairs.column("l", Type::kInt64).column("r", Type::kInt64).primary_key({"l", "r"});
  pairs.foreign_key("of_left", {"l"}, "left", cascade, cascade);
  pairs.foreign_key("of_right", {"r"}, "right", cascade, cascade);
  const TableId pair = add(pairs);
  TableSchema leaves("leaves");
  leaves.column("l", Type::kInt64).column("r", Type::kInt64).column("n", Type::kInt64);
  leaves.primary_key({"n"});
  const TableId leaf = add(leaves.foreign_key("of_pair", {"l", "r"}, "pairs", cascade, cascade));
  Transaction t = must(database->begin(AccessMode::kReadWrite));
  for (const TableId table : {root, left, right}) must(t.insert(table, {Value::int64(1)}));
  must(t.insert(pair, {Value::int64(1), Value::int64(1)}));
  must(t.insert(leaf, {Value::int64(1), Value::int64(1), Value::int64(5)}));
  for (std::int64_t id = 1; id < 4; ++id)
    must(t.update(root, must(t.get({root, 0}, {Value::int64(id)})).id(),
                  {{kA, Value::int64(id + 1)}}));
  const Row found = must(t.get({leaf, 0}, {Value::int64(5)}));
  CHECK(found.get_unchecked<std::int64_t>(kA) == 4);
  CHECK(found.get_unchecked<std::int64_t>(kB) == 4);
  must(t.commit());
  must(database->verify({}));
}

}  // namespace flugs::test
