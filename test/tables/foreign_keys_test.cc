// Foreign keys: which statements they refuse, what they change in addition, alone and concurrently.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "engine/audit/pool_audit.h"
#include "flugs/expression.h"
#include "tables/catalog/schema_codec.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

using Action = ReferenceAction;

constexpr ColumnId kId(0);
constexpr ColumnId kParent(1);

TableSchema parents() {
  TableSchema schema("parents");
  schema.column("id", Type::kInt64).column("code", Type::kString).column("note", Type::kInt32);
  return schema.primary_key({"id"}).unique_key("by_code", {"code", "id"});
}

TableSchema children(Action on_delete, Action on_update = Action::kRestrict,
                     const std::string& name = "children", const std::string& table = "parents") {
  TableSchema schema(name);
  schema.column("id", Type::kInt64).column("parent", Type::kInt64).direct();
  schema.primary_key({"id"});
  return schema.foreign_key("of_parent", {"parent"}, table, on_delete, on_update);
}

/// A table of parents and one of children, `ids` of each, child i of parent i.
struct Family {
  explicit Family(Action on_delete, Action on_update = Action::kRestrict) {
    parent = must(database->create_table(parents()));
    child = must(database->create_table(children(on_delete, on_update)));
    Transaction t = begin();
    for (std::int64_t id = 1; id <= 3; ++id) {
      add_parent(t, id);
      add_child(t, id, Value::int64(id));
    }
    must(t.commit());
  }

  Transaction begin(Isolation isolation = Isolation::kSnapshot) {
    return must(database->begin(AccessMode::kReadWrite, isolation));
  }
  void add_parent(Transaction& t, std::int64_t id) {
    must(t.insert(parent, {{kId, Value::int64(id)}}));
  }
  void add_child(Transaction& t, std::int64_t id, const Value& of) {
    must(t.insert(child, {Value::int64(id), of}));
  }
  RowId row(Transaction& t, TableId table, std::int64_t id) const {
    return must(t.get({table, 0}, {Value::int64(id)})).id();
  }
  Status remove_parent(Transaction& t, std::int64_t id) const {
    return t.remove(parent, row(t, parent, id));
  }
  /// "1:1 2:NULL": children and the parents that they refer to.
  std::string found(Transaction& t) const {
    std::vector<std::string> words;
    must(t.scan(child, {kId, kParent}, [&](const ScanBatch& batch) {
      for (std::size_t i = 0; i < batch.row_count(); ++i)
        words.push_back(batch.get_unchecked(0, i).to_string() + ":" +
                        batch.get_unchecked(1, i).to_string());
      return true;
    }));
    std::sort(words.begin(), words.end());
    std::string all;
    for (const std::string& word : words) all += (all.empty() ? "" : " ") + word;
    return all;
  }
  std::string found() {
    Transaction t = begin();
    return found(t);
  }

  MemoryDatabase database;
  TableId parent;
  TableId child;
};

void check_violated(const Status& found, const std::string& message) {
  INFO(found.to_string());
  CHECK(found.code() == StatusCode::kConstraintViolated);
  CHECK(found.message() == message);
}

const std::string kMissing =
    "table children, foreign key of_parent: parent = 9 is not in table parents, key primary";
const std::string kReferred =
    "table children, foreign key of_parent: rows with parent = 2 refer to table parents, key "
    "primary";

}  // namespace

TEST_CASE("a row must refer to an existing row, or to NULL", "[engine]") {
  Family family(Action::kRestrict);
  for (int opened = 0; opened < 3; ++opened) {
    Transaction t = family.begin();
    const Value none = Value::int64(9);
    check_violated(t.insert(family.child, {Value::int64(7), none}).status(), kMissing);
    check_violated(t.insert_rows(family.child, std::vector<Value>{Value::int64(7), Value::int64(1),
                                                                  Value::int64(8), none}),
                   kMissing);
    const RowId row = family.row(t, family.child, 1);
    check_violated(t.update(family.child, row, {{kParent, none}}).status(), kMissing);
    CHECK(family.found(t) == "1:1 2:2 3:3");
    const RowId free = must(t.update(family.child, row, {{kParent, Value::null()}}));
    check_violated(t.update(family.child, free, {{kParent, none}}).status(), kMissing);
    must(t.update(family.child, free, {{kParent, Value::int64(3)}}));
    family.add_child(t, 4, Value::null());
    CHECK(family.found(t) == "1:3 2:2 3:3 4:NULL");
    // A later statement may write the row that was refused.
    family.add_parent(t, 9);
    family.add_child(t, 9, none);
    must(t.remove(family.child, family.row(t, family.child, 9)));
    must(family.remove_parent(t, 9));
    must(t.commit());
    Transaction back = family.begin();
    must(
        back.update(family.child, family.row(back, family.child, 1), {{kParent, Value::int64(1)}}));
    must(back.remove(family.child, family.row(back, family.child, 4)));
    must(back.commit());
    must(family.database->verify({}));
    if (opened == 0) family.database.reopen();
    if (opened == 1) {
      must(family.database->merge(family.parent, {}).status());
      must(family.database->merge(family.child, {}).status());
    }
  }
}

TEST_CASE("restrict: a referenced row stays, with its key", "[engine]") {
  Family family(Action::kRestrict);
  Transaction t = family.begin();
  check_violated(family.remove_parent(t, 2), kReferred);
  const RowId two = family.row(t, family.parent, 2);
  check_violated(t.update(family.parent, two, {{kId, Value::int64(20)}}).status(), kReferred);
  const RowId noted = must(t.update(family.parent, two, {{ColumnId(2), Value::int32(5)}}));
  CHECK(must(t.update(family.parent, noted, {{kId, Value::int64(2)}})) != noted);
  must(t.remove(family.child, family.row(t, family.child, 2)));
  must(family.remove_parent(t, 2));
  CHECK(family.found(t) == "1:1 3:3");
  must(t.commit());
  must(family.database->verify({}));
}

TEST_CASE("cascade and set null: referring rows are deleted, updated, or set to NULL", "[engine]") {
  {
    Family family(Action::kCascade, Action::kCascade);
    Transaction t = family.begin();
    family.add_child(t, 22, Value::int64(2));
    must(family.remove_parent(t, 2));
    CHECK(family.found(t) == "1:1 3:3");
    must(t.update(family.parent, family.row(t, family.parent, 1), {{kId, Value::int64(10)}}));
    CHECK(family.found(t) == "1:10 3:3");
    must(t.commit());
    must(family.database->verify({}));
    family.database.reopen();
    CHECK(family.found() == "1:10 3:3");
    must(family.database->verify({}));
  }
  Family family(Action::kSetNull, Action::kSetNull);
  Transaction t = family.begin();
  must(family.remove_parent(t, 2));
  must(t.update(family.parent, family.row(t, family.parent, 1), {{kId, Value::int64(10)}}));
  CHECK(family.found(t) == "1:NULL 2:NULL 3:3");
  must(t.commit());
  must(family.database->verify({}));
}

TEST_CASE("rows of one table may refer to each other, in rings and to themselves", "[engine]") {
  MemoryDatabase database(std::size_t{64} << 20);
  const Action action = GENERATE(Action::kCascade, Action::kSetNull);
  const TableId table =
      must(database->create_table(children(action, Action::kCascade, "nodes", "nodes")));
  Transaction t = must(database->begin(AccessMode::kReadWrite));
  const auto node = [&](std::int64_t id) { return must(t.get({table, 0}, {Value::int64(id)})); };
  // In any order within a statement; a long chain follows, which no stack could hold.
  std::vector<Value> rows = {Value::int64(1), Value::int64(3), Value::int64(2), Value::int64(1),
                             Value::int64(3), Value::int64(2), Value::int64(4), Value::int64(4)};
  for (std::int64_t id = 100; id < 20'100; ++id)
    rows.insert(rows.end(), {Value::int64(id), id == 100 ? Value::int64(3) : Value::int64(id - 1)});
  must(t.insert_rows(table, rows));
  const RowId own = must(t.update(table, node(4).id(), {{kId, Value::int64(5)}}));
  CHECK(node(5).id() == own);  // the row that its own cascade has made of it
  CHECK(node(5).get_unchecked<std::int64_t>(kParent) == 5);
  must(t.remove(table, own));
  must(t.remove(table, node(2).id()));
  std::size_t left = 0;
  must(t.scan(table, {kId}, [&](const ScanBatch& batch) {
    left += batch.row_count();
    return true;
  }));
  CHECK(left == (action == Action::kCascade ? 0 : 20'002));
  if (action == Action::kSetNull) CHECK(node(3).is_null_unchecked(kParent));
  must(t.commit());
  must(database->verify({}));
}

TEST_CASE("a cascade that fails half way leaves nothing behind", "[engine]") {
  Family family(Action::kCascade);
  TableSchema grandchildren = children(Action::kRestrict, Action::kRestrict, "grand", "children");
  const TableId grand = must(family.database->create_table(grandchildren));
  TableSchema notes = children(Action::kSetNull, Action::kRestrict, "notes");
  notes.check("kept", query::col("id") < 10 || query::col("parent").is_not_null());
  const TableId note = must(family.database->create_table(notes));
  Transaction t = family.begin();
  for (std::int64_t id = 20; id < 120; ++id) family.add_child(t, id, Value::int64(2));
  must(t.insert(grand, {Value::int64(1), Value::int64(119)}));
  must(t.insert(note, {Value::int64(1), Value::int64(2)}));
  must(t.insert(note, {Value::int64(2), Value::int64(1)}));
  must(t.insert(note, {Value::int64(11), Value::int64(1)}));
  const std::string before = family.found(t);
  check_violated(family.remove_parent(t, 2),
                 "table grand, foreign key of_parent: rows with parent = 119 refer to table "
                 "children, key primary");
  check_violated(family.remove_parent(t, 1),
                 "table notes, foreign key of_parent: table notes, check kept: id < 10 or parent "
                 "is not null does not hold for id = 11, parent = NULL");
  CHECK(family.found(t) == before);
  CHECK(must(t.get({note, 0}, {Value::int64(1)})).get_unchecked<std::int64_t>(kParent) == 2);
  CHECK(must(t.get({note, 0}, {Value::int64(2)})).get_unchecked<std::int64_t>(kParent) == 1);
  // All of it can be written again.
  must(t.remove(grand, family.row(t, grand, 1)));
  must(t.remove(note, family.row(t, note, 11)));
  must(family.remove_parent(t, 2));
  CHECK(family.found(t) == "1:1 3:3");
  CHECK(must(t.get({note, 0}, {Value::int64(1)})).is_null_unchecked(kParent));
  must(t.commit());
  must(family.database->verify({}));
  family.database.reopen();
  must(family.database->verify({}));
  CHECK(family.found() == "1:1 3:3");
}

TEST_CASE("rows that a cascade deletes restrict nothing at the end of the statement", "[engine]") {
  Family family(Action::kCascade);
  TableSchema grand = children(Action::kRestrict, Action::kRestrict, "grand", "children");
  grand.column("top", Type::kInt64);
  grand.foreign_key("of_top", {"top"}, "parents", Action::kCascade);
  const TableId table = must(family.database->create_table(grand));
  Transaction t = family.begin();
  must(t.insert(table, {Value::int64(1), Value::int64(2), Value::int64(2)}));
  must(family.remove_parent(t, 2));
  CHECK(t.get({table, 0}, {Value::int64(1)}).code() == StatusCode::kNotFound);
  must(t.commit());
  must(family.database->verify({}));
}

TEST_CASE("rows of a range that refer to each other are removed together", "[engine]") {
  const Action action = GENERATE(Action::kRestrict, Action::kCascade, Action::kSetNull);
  MemoryDatabase database;
  TableSchema schema = children(action, Action::kRestrict, "nodes", "nodes");
  const TableId table = must(database->create_table(schema.key("by_id", {"id"})));
  const KeyId by_id{table, 1};  // the foreign key's own comes last
  const bool reads_anew = GENERATE(false, true);
  Transaction t = must(database->begin(
      AccessMode::kReadWrite, reads_anew ? Isolation::kReadCommitted : Isolation::kSnapshot));
  std::vector<Value> rows;
  for (std::int64_t id = 0; id < 50; ++id)
    rows.insert(rows.end(), {Value::int64(id), Value::int64(id == 0 ? 39 : id - 1)});
  must(t.insert_rows(table, rows));
  const auto range = [&](std::int64_t from, std::int64_t to) {
    const std::array<Value, 1> low = {Value::int64(from)};
    const std::array<Value, 1> high = {Value::int64(to)};
    return t.remove_range(by_id, {low, true}, {high, true});
  };
  const Result<std::uint64_t> part = range(0, 39);  // 40 refers to the last of them
  CHECK(part.ok() == (action != Action::kRestrict));
  if (!part.ok())
    check_violated(part.status(),
                   "table nodes, foreign key of_parent: rows with parent = 39 refer to table "
                   "nodes, key primary");
  if (part.ok()) CHECK(*part == 40);
  CHECK(t.get({table, 0}, {Value::int64(49)}).ok() == (action != Action::kCascade));
  const std::uint64_t left = action == Action::kRestrict ? 50 : 10;
  CHECK(must(range(0, 49)) == (action == Action::kCascade ? 0 : left));
  must(t.commit());
  must(database->verify({}));
}

TEST_CASE("keys of several columns, one of them text, and NULL in one of them", "[engine]") {
  MemoryDatabase database;
  const TableId parent = must(database->create_table(parents()));
  TableSchema schema("c");
  schema.column("number", Type::kInt64).column("code", Type::kString).column("id", Type::kInt64);
  schema.primary_key({"id"}).unique_key("once", {"code", "number"}).hash_prefix(1);
  schema.foreign_key("by_code", {"code", "number"}, "parents", Action::kCascade, Action::kCascade);
  schema.foreign_keys[0].key = "by_code";
  const TableId child = must(database->create_table(schema));
  CHECK(database->table(child)->keys().size() == 2);  // no other key was needed
  CHECK(database->table(child)->schema().foreign_keys[0].key == "by_code");
  Transaction t = must(database->begin(AccessMode::kReadWrite));
  const std::string text(100, 'x');
  const RowId row = must(t.insert(parent, {Value::int64(1), Value::string(text), Value::null()}));
  must(t.insert(child, {Value::int64(1), Value::string(text), Value::int64(10)}));
  must(t.insert(child, {Value::int64(7), Value::null(), Value::int64(11)}));
  must(t.insert(child, {Value::null(), Value::string("none"), Value::int64(12)}));
  check_violated(t.insert(child, {Value::int64(2), Value::string(text), Value::int64(13)}).status(),
                 "table c, foreign key by_code: code = '" + std::string(40, 'x') +
                     "'... of 100 bytes, number = 2 is not in table parents, key by_code");
  const RowId next = must(t.update(parent, row, {{ColumnId(1), Value::string("b")}}));
  CHECK(must(t.get({child, 0}, {10})).get_unchecked<std::string_view>(ColumnId(1)) == "b");
  const RowId nulled = must(t.update(parent, next, {{ColumnId(1), Value::null()}}));
  CHECK(must(t.get({child, 0}, {Value::int64(10)})).is_null_unchecked(ColumnId(1)));
  must(t.remove(parent, nulled));
  must(t.commit());
  must(database->verify({}));
}

TEST_CASE("deleting a row conflicts with a concurrent new reference to it", "[engine]") {
  const Isolation isolation =
      GENERATE(Isolation::kSnapshot, Isolation::kSerializable, Isolation::kReadCommitted);
  const bool deletes_first = GENERATE(true, false);
  const Action action = GENERATE(Action::kRestrict, Action::kCascade, Action::kSetNull);
  Family family(action);
  Transaction setup = family.begin();
  family.add_parent(setup, 5);
  must(setup.commit());
  Transaction deletes = family.begin(isolation);
  Transaction refers = family.begin(isolation);
  must(family.remove_parent(deletes, 5));
  family.add_child(refers, 50, Value::int64(5));
  const Status first = deletes_first ? deletes.commit() : refers.commit();
  const Status second = deletes_first ? refers.commit() : deletes.commit();
  must(first);
  INFO(second.to_string());
  CHECK(second.code() == StatusCode::kConflict);
  if (isolation != Isolation::kSerializable || deletes_first)
    CHECK(second.message().find("table children, foreign key of_parent: ") == 0);
  CHECK(family.found() == (deletes_first ? "1:1 2:2 3:3" : "1:1 2:2 3:3 50:5"));
  must(family.database->verify({}));
}

TEST_CASE("changing a row without its key blocks no referring transaction", "[engine]") {
  Family family(Action::kRestrict);
  Transaction changes = family.begin();
  Transaction refers = family.begin();
  Transaction moves = family.begin();
  const RowId one = family.row(changes, family.parent, 1);
  must(changes.update(family.parent, one, {{ColumnId(2), Value::int32(8)}}));
  family.add_child(refers, 50, Value::int64(1));
  must(moves.update(family.child, family.row(moves, family.child, 2), {{kId, Value::int64(77)}}));
  must(changes.commit());
  must(refers.commit());
  must(moves.commit());
  CHECK(family.found() == "1:1 3:3 50:1 77:2");
}

TEST_CASE("a key that returns in the same transaction keeps its references", "[engine]") {
  Family family(Action::kRestrict);
  Transaction setup = family.begin();
  family.add_parent(setup, 5);
  must(setup.commit());
  Transaction deletes = family.begin();
  must(family.remove_parent(deletes, 5));
  Transaction refers = family.begin();
  family.add_child(refers, 50, Value::int64(5));
  must(refers.commit());
  family.add_parent(deletes, 5);
  must(deletes.commit());
  must(family.database->verify({}));
  // A row whose key changes meanwhile no longer counts.
  Transaction moves = family.begin();
  Transaction late = family.begin();
  must(moves.remove(family.child, family.row(moves, family.child, 50)));
  must(moves.update(family.parent, family.row(moves, family.parent, 5), {{kId, Value::int64(6)}}));
  must(moves.commit());
  family.add_child(late, 51, Value::int64(5));
  CHECK(late.commit().code() == StatusCode::kConflict);
  must(family.database->verify({}));
}

TEST_CASE("serializable: a refusal by a foreign key counts as a read", "[engine]") {
  Family family(Action::kRestrict);
  Transaction child = family.begin(Isolation::kSerializable);
  check_violated(child.insert(family.child, {Value::int64(7), Value::int64(9)}).status(), kMissing);
  family.add_parent(child, 100);
  Transaction parent = family.begin(Isolation::kSerializable);
  check_violated(family.remove_parent(parent, 2), kReferred);
  family.add_parent(parent, 101);
  Transaction other = family.begin();
  family.add_parent(other, 9);
  must(other.remove(family.child, family.row(other, family.child, 2)));
  must(other.commit());
  CHECK(child.commit().code() == StatusCode::kConflict);
  CHECK(parent.commit().code() == StatusCode::kConflict);
}

TEST_CASE("a row written twice keeps its first reference", "[engine]") {
  Family family(Action::kRestrict);
  Transaction setup = family.begin();
  family.add_parent(setup, 5);
  must(setup.commit());
  Transaction refers = family.begin();
  family.add_child(refers, 50, Value::int64(5));
  must(
      refers.update(family.child, family.row(refers, family.child, 50), {{kId, Value::int64(51)}}));
  Transaction deletes = family.begin();
  must(family.remove_parent(deletes, 5));
  must(deletes.commit());
  CHECK(refers.commit().code() == StatusCode::kConflict);
  must(family.database->verify({}));
}

TEST_CASE("a cascade that meets a row of another transaction has a conflict", "[engine]") {
  Family family(Action::kCascade);
  Transaction other = family.begin();
  must(other.remove(family.child, family.row(other, family.child, 2)));
  Transaction t = family.begin();
  CHECK(family.remove_parent(t, 2).code() == StatusCode::kConflict);
  CHECK(family.found(t) == "1:1 2:2 3:3");
  must(family.remove_parent(t, 3));
  must(t.commit());
  must(other.commit());
  CHECK(family.found() == "1:1");
  must(family.database->verify({}));
}

TEST_CASE("writes undone to a savepoint block no other transaction", "[engine]") {
  Family family(Action::kCascade, Action::kCascade);
  Transaction t = family.begin();
  family.add_child(t, 4, Value::int64(1));
  const Savepoint before = must(t.savepoint());
  must(family.remove_parent(t, 2));
  must(t.update(family.parent, family.row(t, family.parent, 1), {{kId, Value::int64(10)}}));
  family.add_child(t, 5, Value::int64(3));
  CHECK(family.found(t) == "1:10 3:3 4:10 5:3");
  must(t.rollback_to(before));
  CHECK(family.found(t) == "1:1 2:2 3:3 4:1");
  Transaction other = family.begin();
  family.add_child(other, 6, Value::int64(2));
  must(family.remove_parent(other, 3));  // an undone row had referred to it
  must(other.commit());
  must(t.commit());
  CHECK(family.found() == "1:1 2:2 4:1 6:2");
  must(family.database->verify({}));
}

TEST_CASE("foreign keys make the indexes that opening has left", "[engine]") {
  MemoryDatabase database(std::size_t{96} << 20);
  database.options.tuning.sweeps_in_background = false;
  const TableId parent = must(database->create_table(parents()));
  const TableId child = must(database->create_table(children(Action::kCascade)));
  constexpr std::int64_t kRows = 20'000;  // more than opening indexes itself
  Transaction t = must(database->begin(AccessMode::kReadWrite));
  for (std::int64_t id = 0; id < kRows; ++id) must(t.insert(parent, {{kId, Value::int64(id)}}));
  for (std::int64_t id = 0; id < kRows; ++id)
    must(t.insert(child, {Value::int64(id), Value::int64(id)}));
  must(t.commit());
  database.reopen();
  t = must(database->begin(AccessMode::kReadWrite));
  CHECK(database->statistics().index_entries_left != 0);
  must(t.remove(parent, RowId(77)));  // the first row is the first one that was inserted
  CHECK(t.get({child, 0}, {Value::int64(77)}).code() == StatusCode::kNotFound);
  must(t.commit());
  database.reopen();
  t = must(database->begin(AccessMode::kReadWrite));
  CHECK(t.insert(child, {Value::int64(kRows), Value::int64(77)}).code() ==
        StatusCode::kConstraintViolated);
  must(t.insert(child, {Value::int64(kRows), Value::int64(78)}));
  must(t.commit());
  must(database->verify({}));
}

TEST_CASE("foreign keys that fit no table are refused with the reason", "[engine]") {
  MemoryDatabase database;
  must(database->create_table(parents()));
  const auto refused = [&](const auto& change) {
    TableSchema schema = children(Action::kRestrict);
    change(schema, schema.foreign_keys[0]);
    const Status found = database->create_table(schema).status();
    CHECK(found.code() == StatusCode::kInvalidArgument);
    return std::string(found.message());
  };
  using F = ForeignKeySchema;
  const std::string where = "table children, foreign key of_parent: ";
  CHECK(refused([](TableSchema&, F& f) { f.table = "x"; }) == where + "no table 'x'");
  CHECK(refused([](TableSchema&, F& f) { f.key = "x"; }) == where + "table parents has no key 'x'");
  CHECK(refused([](TableSchema&, F& f) { f.key = "by_code"; }) ==
        where + "1 columns, expected the 2 of key by_code of table parents");
  CHECK(refused([](TableSchema&, F& f) { f.columns = {"x"}; }) == where + "no column 'x'");
  CHECK(refused([](TableSchema&, F& f) { f.columns = {}; }) ==
        where + "0 columns, allowed are 1 to 16");
  CHECK(refused([](TableSchema&, F& f) { f.columns = {"id", "id"}; }) ==
        where + "column 'id' occurs twice");
  CHECK(refused([](TableSchema& s, F&) { s.columns[1].type = Type::kInt32; }) ==
        where +
            "column parent is of type int32, scale 0, but column id of table parents is of type "
            "int64, scale 0");
  CHECK(refused([](TableSchema& s, F& f) {
          s.columns[1].nullable = false;
          f.on_update = Action::kSetNull;
        }) == where + "sets column parent to NULL, but the column is NOT NULL");
  CHECK(refused([](TableSchema&, F& f) { f.on_delete = Action{3}; }) ==
        where + "actions 3 and 0, allowed are 0 to 2");
  CHECK(refused([](TableSchema& s, F&) { s.unique_key("of_parent", {"id"}); }) ==
        where + "a key of the same name does not begin with the foreign key's columns");
  CHECK(refused([](TableSchema& s, F&) { s.foreign_keys.push_back(s.foreign_keys[0]); }) ==
        where + "the name occurs twice");
  CHECK(refused([](TableSchema&, F& f) { f.name = ""; }).find("foreign key name") == 0);
  TableSchema keyed("keyed");
  keyed.column("a", Type::kInt64).key("k", {"a"});
  must(database->create_table(keyed));
  CHECK(refused([](TableSchema&, F& f) {
          f.table = "keyed";
          f.key = "k";
        }) == where + "key k of table keyed is not unique");
  CHECK(database->tables().size() == 2);
}

TEST_CASE("a table is not dropped before the tables that refer to it", "[engine]") {
  Family family(Action::kRestrict);
  check_violated(family.database->drop_table(family.parent),
                 "table parents: foreign key of_parent of table children refers to it");
  family.database.reopen();
  check_violated(family.database->drop_table(family.parent),
                 "table parents: foreign key of_parent of table children refers to it");
  must(family.database->drop_table(family.child));
  Transaction t = family.begin();
  must(family.remove_parent(t, 2));
  must(t.commit());
  const TableId own = must(family.database->create_table(
      children(Action::kRestrict, Action::kRestrict, "nodes", "nodes")));
  must(family.database->drop_table(own));
  must(family.database->drop_table(family.parent));
  CHECK(family.database->tables().empty());
}

TEST_CASE("creating a referring table waits for transactions that may have deleted rows",
          "[engine]") {
  MemoryDatabase database;
  const TableId parent = must(database->create_table(parents()));
  Transaction t = must(database->begin(AccessMode::kReadWrite));
  const RowId row = must(t.insert(parent, {{kId, Value::int64(1)}}));
  const Status busy = database->create_table(children(Action::kRestrict)).status();
  CHECK(busy.code() == StatusCode::kBusy);
  CHECK(database->find_table("children").code() == StatusCode::kNotFound);
  must(t.remove(parent, row));  // no row refers to it any more
  must(t.commit());
  const std::uint64_t used = database->statistics().pool_used_bytes;
  const TableId child = must(database->create_table(children(Action::kRestrict)));
  must(database->drop_table(child));
  CHECK(database->statistics().pool_used_bytes == used);
  must(database->create_table(children(Action::kRestrict)));
  database.reopen();
  CHECK(database->tables().size() == 2);
}

TEST_CASE("foreign keys survive encoding, and damage to them is found", "[engine]") {
  const TableSchema complete =
      must(engine::complete_schema(children(Action::kCascade, Action::kSetNull)));
  CHECK(complete.keys.size() == 2);
  CHECK(complete.keys[1].name == "of_parent");
  const std::string bytes = engine::encode_schema(complete);
  const TableSchema back = must(engine::decode_schema(bytes));
  CHECK(engine::encode_schema(back) == bytes);
  CHECK(back.foreign_keys[0].on_delete == Action::kCascade);
  CHECK(back.foreign_keys[0].on_update == Action::kSetNull);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    CHECK(engine::decode_schema(bytes.substr(0, size)).code() == StatusCode::kCorrupt);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    for (const int bit : {0, 1, 4, 7}) {
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      const auto result = engine::decode_schema(damaged);
      if (!result.ok()) CHECK(result.code() == StatusCode::kCorrupt);
    }
}

TEST_CASE("audits find a row that refers to nothing", "[engine]") {
  Family family(Action::kRestrict);
  engine::Table& table = *family.database->table(family.child);
  Transaction t = family.begin();
  const std::uint32_t row = family.row(t, family.child, 2).value();
  t.abort();
  // As if another program had written it.
  table.rows().layout(row).store(table.rows().address(row), 1, columns::Cell{8, 0, false});
  PoolBuffer copy(family.database.span().size());
  std::copy(family.database.span().begin(), family.database.span().end(), copy.span().begin());
  const PoolCheckReport report = must(engine::check_pool_in_memory(copy.span()));
  REQUIRE(report.findings.size() == 1);
  CHECK(report.findings[0].part == "table children, foreign key of_parent");
  const std::string words = "parent = 8 is not in table parents, key primary";
  CHECK(report.findings[0].message.find(words) != std::string::npos);
  family.database.reopen();
  const Status verified = family.database->verify({});
  INFO(verified.to_string());
  CHECK(verified.code() == StatusCode::kCorrupt);
  CHECK(verified.message().find(words) != std::string_view::npos);
}

}  // namespace flugs::test
