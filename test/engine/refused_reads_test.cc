// A refusal counts as a read: a serializable transaction answers for it at its commit.
#include <catch2/catch.hpp>
#include <functional>

#include "flugs/expression.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

constexpr ColumnId kCode{1};
constexpr ColumnId kParent{1};

/// Parents 1 to 9 with the codes 10 to 90. Child 3 refers to parent 3, and a check forbids NULL for
/// it. Heir 4 is deleted with parent 4, but a grandchild refers to it.
struct Family {
  Family() {
    TableSchema parents("parents");
    parents.column("id", Type::kInt64).column("code", Type::kInt64).column("kind", Type::kString);
    parents.primary_key({"id"}).unique_key("by_code", {"kind", "code"});
    parent = must(database->create_table(parents));
    child = make("children", "parents", ReferenceAction::kSetNull, true);
    heir = make("heirs", "parents", ReferenceAction::kCascade, false);
    grand = make("grandchildren", "heirs", ReferenceAction::kRestrict, false);
    Transaction t = must(database->begin(AccessMode::kReadWrite));
    for (std::int64_t id = 1; id <= 9; ++id) add_parent(t, id);
    must(t.insert(child, {Value::int64(3), Value::int64(3)}));
    must(t.insert(heir, {Value::int64(4), Value::int64(4)}));
    must(t.insert(grand, {Value::int64(4), Value::int64(4)}));
    must(t.commit());
  }
  TableId make(const char* name, const char* of, ReferenceAction on_delete, bool must_refer) {
    TableSchema schema(name);
    schema.column("id", Type::kInt64).column("parent", Type::kInt64).primary_key({"id"});
    schema.columns.back().nullable = true;
    schema.foreign_key("of_parent", {"parent"}, of, on_delete);
    if (must_refer) schema.check("kept", query::col("parent").is_not_null());
    return must(database->create_table(schema));
  }
  void add_parent(Transaction& t, std::int64_t id) const {
    must(t.insert(parent, {Value::int64(id), Value::int64(10 * id), Value::string("a long kind")}));
  }
  static RowId row(Transaction& t, TableId table, std::int64_t id) {
    return must(t.get({table, 0}, {Value::int64(id)})).id();
  }
  /// The commit status of a transaction that is refused something and then writes rows that no
  /// other one touches, when another transaction commits `change` in between.
  StatusCode refused_then(const std::function<StatusCode(Transaction&)>& attempt,
                          StatusCode refusal, const std::function<void(Transaction&)>& change) {
    Transaction t = must(database->begin(AccessMode::kReadWrite, Isolation::kSerializable));
    CHECK(attempt(t) == refusal);
    Transaction other = must(database->begin(AccessMode::kReadWrite));
    change(other);
    must(other.commit());
    add_parent(t, 100);
    return t.commit().code();
  }

  MemoryDatabase database;
  TableId parent, child, heir, grand;
};

}  // namespace

TEST_CASE("a refused update has read its row", "[engine]") {
  const auto change = [](Family& family) {
    return [&](Transaction& t) {
      must(t.update(family.parent, Family::row(t, family.parent, 1), {{kCode, Value::int64(11)}}));
    };
  };
  const auto attempt = [](Family& family, RowId row, ColumnValue what) {
    return [&family, row, what](Transaction& t) {
      return t.update(family.parent, row, {what}).code();
    };
  };
  const auto row_of = [](Family& family, std::int64_t id) {
    Transaction scout = must(family.database->begin(AccessMode::kReadWrite));
    return Family::row(scout, family.parent, id);
  };
  const ColumnValue wrong{kCode, Value::boolean(true)};
  for (const std::int64_t id : {1, 2}) {
    const StatusCode expected = id == 1 ? StatusCode::kConflict : StatusCode::kOk;
    Family family;
    CHECK(family.refused_then(attempt(family, row_of(family, id), wrong),
                              StatusCode::kConstraintViolated, change(family)) == expected);
    Family other;
    CHECK(other.refused_then(attempt(other, row_of(other, id), {ColumnId(9), Value::null()}),
                             StatusCode::kInvalidArgument, change(other)) == expected);
  }
}

TEST_CASE("an update refused for a key has read the row with the key", "[engine]") {
  for (const std::int64_t id : {2, 3}) {
    Family family;
    CHECK(family.refused_then(
              [&](Transaction& t) {
                return t
                    .update(family.parent, Family::row(t, family.parent, 1),
                            {{kCode, Value::int64(20)}})
                    .code();
              },
              StatusCode::kAlreadyExists,
              [&](Transaction& t) {
                must(t.update(family.parent, Family::row(t, family.parent, id),
                              {{kCode, Value::int64(10 * id + 5)}}));
              }) == (id == 2 ? StatusCode::kConflict : StatusCode::kOk));
  }
}

TEST_CASE("a refused cascade has read the rows that it reached", "[engine]") {
  for (const bool is_child : {false, true})
    for (const bool is_freed : {false, true}) {
      Family family;
      const TableId table = is_child ? family.child : family.heir;
      const std::int64_t id = is_child ? 3 : 4;
      const StatusCode expected = is_freed ? StatusCode::kConflict : StatusCode::kOk;
      CHECK(family.refused_then(
                [&](Transaction& t) {
                  return t.remove(family.parent, Family::row(t, family.parent, id)).code();
                },
                StatusCode::kConstraintViolated,
                [&](Transaction& t) {
                  if (is_freed)
                    must(t.update(table, Family::row(t, table, id), {{kParent, Value::int64(5)}}));
                  else
                    must(t.insert(table, {Value::int64(id + 50), Value::int64(5)}));
                }) == expected);
    }
}

// A child with NULL in one column refers to nothing, so its other column may have a value without a
// parent.
TEST_CASE("a cascade refused for a key has read the row with the key", "[engine]") {
  for (const std::int64_t id : {2, 3}) {
    Family family;
    TableSchema pairs("pairs");
    pairs.column("id", Type::kInt64).column("a", Type::kInt64).column("b", Type::kInt64);
    pairs.primary_key({"id"}).unique_key("both", {"a", "b"});
    const TableId pair = must(family.database->create_table(pairs));
    TableSchema of_pairs("of_pairs");
    of_pairs.column("id", Type::kInt64).column("a", Type::kInt64).column("b", Type::kInt64);
    of_pairs.columns.back().nullable = true;
    of_pairs.primary_key({"id"}).unique_key("by_a", {"a"});
    of_pairs.foreign_key("of_pair", {"a", "b"}, "pairs", ReferenceAction::kRestrict,
                         ReferenceAction::kCascade);
    of_pairs.foreign_keys.back().key = "both";
    const TableId of_pair = must(family.database->create_table(of_pairs));
    Transaction t = must(family.database->begin(AccessMode::kReadWrite));
    must(t.insert(pair, {Value::int64(1), Value::int64(1), Value::int64(1)}));
    must(t.insert(of_pair, {Value::int64(1), Value::int64(1), Value::int64(1)}));
    must(t.insert(of_pair, {Value::int64(2), Value::int64(5), Value::null()}));
    must(t.insert(of_pair, {Value::int64(3), Value::int64(6), Value::null()}));
    must(t.commit());
    CHECK(family.refused_then(
              [&](Transaction& u) {
                return u.update(pair, Family::row(u, pair, 1), {{ColumnId(1), Value::int64(5)}})
                    .code();
              },
              StatusCode::kAlreadyExists,
              [&](Transaction& u) { must(u.remove(of_pair, Family::row(u, of_pair, id))); }) ==
          (id == 2 ? StatusCode::kConflict : StatusCode::kOk));
  }
}

}  // namespace flugs::test
