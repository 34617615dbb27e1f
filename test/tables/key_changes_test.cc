// Keys are added to tables with rows, and dropped, while transactions go on.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "engine/database/transaction_access.h"
#include "flugs/pool_check.h"
#include "tables/table/key_build.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

constexpr std::int64_t kPeople = 3000;

KeySchema key_of(std::string name, std::vector<std::string> columns, bool unique,
                 bool ordered = false) {
  KeySchema key;
  key.name = std::move(name);
  key.columns = std::move(columns);
  key.unique = unique;
  key.ordered = ordered;
  return key;
}

std::string mail_of(std::int64_t id) { return "someone" + std::to_string(id) + "@example.org"; }

struct Registry {
  TemporaryDatabase database;
  TableId table;

  explicit Registry(std::int64_t rows = kPeople) {
    TableSchema schema("people");
    schema.column("id", Type::kInt64).column("mail", Type::kString).column("age", Type::kInt32);
    schema.column("code", Type::kInt64)
        .direct()
        .primary_key({"id"})
        .unique_key("by_code", {"code"});
    table = must(database->create_table(schema));
    insert(0, rows);
  }
  Transaction begin(Isolation isolation = Isolation::kSnapshot) {
    return must(database->begin(AccessMode::kReadWrite, isolation));
  }
  static std::vector<Value> row(std::int64_t id) {
    static std::vector<std::string> kept;
    kept.clear();
    kept.push_back(mail_of(id));
    return {Value::int64(id), Value::string(kept.back()),
            id % 10 == 0 ? Value::null() : Value::int32(static_cast<std::int32_t>(id % 50)),
            Value::int64(-id)};
  }
  void insert(std::int64_t first, std::int64_t end) {
    Transaction t = begin();
    for (std::int64_t id = first; id < end; ++id) must(t.insert(table, row(id)));
    must(t.commit());
  }
  RowId find(Transaction& t, std::int64_t id) {
    return must(t.get({table, 0}, {Value::int64(id)})).id();
  }
  /// The id of a mail address, by the unique key on it.
  std::int64_t id_of(Transaction& t, KeyId key, const std::string& mail) {
    const Result<Row> found = t.get(key, {Value::string(mail)});
    return found.ok() ? found->get_unchecked<std::int64_t>(ColumnId(0)) : -1;
  }
  /// Number of rows with at least this age, by the ordered key on it.
  std::size_t count_from(Transaction& t, KeyId key, std::int32_t age) {
    std::size_t count = 0;
    const Value lower = Value::int32(age);
    must(t.rows(key, {std::span(&lower, 1), true}, {}, [&](const Row&) {
      ++count;
      return true;
    }));
    return count;
  }
};

std::string said(const Status& status) { return std::string(status.message()); }

}  // namespace

TEST_CASE("an added unique key finds every row, and refuses duplicates", "[engine]") {
  Registry people;
  const KeyId key = must(people.database->add_key(people.table, key_of("by_mail", {"mail"}, true)));
  CHECK(key == KeyId{people.table, 2});
  CHECK(must(people.database->find_key(people.table, "by_mail")) == key);
  for (int opened = 0; opened < 3; ++opened) {
    Transaction t = people.begin();
    for (std::int64_t id = 0; id < kPeople; id += 7) CHECK(people.id_of(t, key, mail_of(id)) == id);
    CHECK(people.id_of(t, key, "nobody") == -1);
    const Result<RowId> refused = t.insert(
        people.table, {Value::int64(kPeople + 5), Value::string(std::string_view(mail_of(77))),
                       Value::null(), Value::int64(5)});
    CHECK(refused.code() == StatusCode::kAlreadyExists);
    CHECK(said(refused.status()) ==
          "table people, key by_mail: mail = 'someone77@example.org' exists");
    // The entry goes with its row.
    const std::int64_t moved = 100 + opened;
    must(t.update(
        people.table, people.find(t, moved),
        {{ColumnId(1), Value::string(std::string_view("moved" + std::to_string(moved)))}}));
    CHECK(people.id_of(t, key, mail_of(moved)) == -1);
    must(t.remove(people.table, people.find(t, 200 + opened)));
    must(t.commit());
    Transaction after = people.begin();
    CHECK(people.id_of(after, key, "moved" + std::to_string(moved)) == moved);
    CHECK(people.id_of(after, key, mail_of(200 + opened)) == -1);
    after.abort();
    must(people.database->check());
    people.database.reopen();
    must(people.database->finish_opening());
    CHECK(must(people.database->schema(people.table)).keys[2].unique);
  }
}

TEST_CASE("an added ordered key walks every row", "[engine]") {
  Registry people;
  const KeyId key =
      must(people.database->add_key(people.table, key_of("by_age", {"age", "id"}, false)));
  for (int opened = 0; opened < 2; ++opened) {
    Transaction t = people.begin();
    CHECK(people.count_from(t, key, 0) == kPeople - kPeople / 10 - (opened != 0 ? 1 : 0));
    CHECK(people.count_from(t, key, 49) == kPeople / 50);
    if (opened == 0) must(t.remove(people.table, people.find(t, 1)));
    must(t.commit());
    must(people.database->check());
    people.database.reopen();
  }
}

TEST_CASE("duplicate rows prevent a unique key, which then leaves nothing behind", "[engine]") {
  Registry people;
  {
    Transaction t = people.begin();
    must(t.update(people.table, people.find(t, 2500),
                  {{ColumnId(1), Value::string(std::string_view(mail_of(30)))}}));
    must(t.commit());
  }
  const KeySchema by_mail = key_of("by_mail", {"mail"}, true);
  for (int i = 0; i < 20; ++i) {  // more often than a table has places
    const Result<KeyId> refused = people.database->add_key(people.table, by_mail);
    CHECK(refused.code() == StatusCode::kConstraintViolated);
    CHECK(said(refused.status()) ==
          "table people, key by_mail: more than one row has mail = 'someone30@example.org'");
  }
  CHECK(must(people.database->schema(people.table)).keys.size() == 2);
  CHECK(people.database->find_key(people.table, "by_mail").code() == StatusCode::kNotFound);
  Transaction t = people.begin();
  CHECK(t.get({people.table, 2}, {Value::string("x")}).code() == StatusCode::kInvalidArgument);
  must(t.insert(people.table, {Value::int64(-1), Value::string(std::string_view(mail_of(30))),
                               Value::null(), Value::int64(1)}));
  must(t.remove(people.table, people.find(t, 30)));
  must(t.remove(people.table, people.find(t, 2500)));
  must(t.commit());
  must(people.database->add_key(people.table, by_mail));
  must(people.database->check());
  // NULL may repeat.
  must(people.database->add_key(people.table, key_of("by_age", {"age", "id"}, true, true)));
  must(people.database->check());
}

TEST_CASE("a dropped key is gone, other keys keep their places", "[engine]") {
  Registry people;
  const KeyId by_mail =
      must(people.database->add_key(people.table, key_of("by_mail", {"mail"}, true)));
  const KeyId by_code{people.table, 1};
  must(people.database->drop_key(by_code));
  for (int opened = 0; opened < 2; ++opened) {
    CHECK(people.database->find_key(people.table, "by_code").code() == StatusCode::kNotFound);
    CHECK(people.database->find_key(people.table, "").code() == StatusCode::kNotFound);
    CHECK(must(people.database->find_key(people.table, "by_mail")) == by_mail);
    CHECK(must(people.database->schema(people.table)).keys[1].dropped);
    CHECK(said(people.database->drop_key(by_code)) == "table people: no key 1");
    CHECK(people.database->rename_key(by_code, "x").code() == StatusCode::kNotFound);
    Transaction t = people.begin();
    CHECK(said(t.get(by_code, {Value::int64(-5)}).status()) == "table people: no key 1");
    CHECK(people.id_of(t, by_mail, mail_of(5)) == 5);
    // Rows that it forbade are allowed.
    must(t.insert(people.table, {Value::int64(10000 + opened),
                                 Value::string(std::string_view("x" + std::to_string(opened))),
                                 Value::null(), Value::int64(-5)}));
    must(t.commit());
    must(people.database->check());
    people.database.reopen();
  }
  // Another key with other columns takes its place.
  const KeyId by_age =
      must(people.database->add_key(people.table, key_of("by_age", {"age"}, false)));
  CHECK(by_age == by_code);
  for (int opened = 0; opened < 2; ++opened) {
    Transaction t = people.begin();
    CHECK(people.count_from(t, by_age, 49) == kPeople / 50);
    CHECK(people.id_of(t, by_mail, mail_of(5)) == 5);
    t.abort();
    must(people.database->check());
    people.database.reopen();
  }
  const std::string path = people.database.options.path;
  people.database.close();
  CHECK(must(check_pool({path, {}})).damages == 0);
}

TEST_CASE("a needed key is not dropped", "[engine]") {
  Registry people(10);
  TableSchema bills("bills");
  bills.column("id", Type::kInt64).column("person", Type::kInt64).primary_key({"id"});
  bills.foreign_key("of", {"person"}, "people");
  bills.foreign_keys[0].key = "by_code";
  const TableId table = must(people.database->create_table(bills));
  const auto refused = [&](KeyId key, const std::string& why) {
    const Status status = people.database->drop_key(key);
    CHECK(status.code() == StatusCode::kConstraintViolated);
    CHECK(said(status) == why);
  };
  refused({people.table, 0}, "table people, key primary: is the primary key");
  refused({people.table, 1},
          "table people, key by_code: foreign key of of table bills refers to it");
  refused({table, 1}, "table bills, key of: foreign key of uses it to find its rows");
  CHECK(people.database->drop_key({TableId(99), 0}).code() == StatusCode::kNotFound);
}

TEST_CASE("an impossible key is refused before any work", "[engine]") {
  Registry people(10);
  const auto refused = [&](const KeySchema& key, const std::string& why) {
    const Result<KeyId> added = people.database->add_key(people.table, key);
    CHECK(added.code() == StatusCode::kInvalidArgument);
    CHECK(said(added.status()) == why);
  };
  refused(key_of("by_code", {"age"}, false), "table people: key 'by_code' occurs twice");
  refused(key_of("x", {"height"}, false), "table people, key x: no column 'height'");
  refused(key_of("x", {}, true), "table people, key x: 0 columns, allowed are 1 to 16");
  for (int i = 2; i < 16; ++i)
    must(people.database->add_key(people.table, key_of("k" + std::to_string(i), {"age"}, false)));
  refused(key_of("x", {"age"}, false), "table people, key x: 16 keys, at most 16");
  must(people.database->drop_key({people.table, 9}));
  CHECK(must(people.database->add_key(people.table, key_of("x", {"age"}, false))).index == 9);
  must(people.database->check());
}

TEST_CASE("open transactions go on when a key is dropped, and no other key takes its place",
          "[engine]") {
  Registry people(50);
  const KeyId key = must(people.database->add_key(people.table, key_of("by_mail", {"mail"}, true)));
  Transaction commits = people.begin();
  Transaction aborts = people.begin();
  Transaction serializable = people.begin(Isolation::kSerializable);
  CHECK(people.id_of(serializable, key, "nobody") == -1);
  must(serializable.insert(people.table, Registry::row(70)));
  must(commits.insert(people.table, Registry::row(60)));
  must(commits.remove(people.table, people.find(commits, 6)));
  must(aborts.update(people.table, people.find(aborts, 5), {{ColumnId(1), Value::string("five")}}));
  must(people.database->drop_key(key));
  // The key has entries of open transactions.
  const Result<KeyId> busy =
      people.database->add_key(people.table, key_of("again", {"mail"}, true));
  CHECK(busy.code() == StatusCode::kBusy);
  CHECK_THAT(said(busy.status()),
             Catch::Matchers::StartsWith("table people, key again: transaction "));
  must(commits.update(people.table, people.find(commits, 7),
                      {{ColumnId(1), Value::string(std::string_view(mail_of(8)))}}));
  must(commits.commit());
  aborts.abort();
  CHECK(serializable.commit().code() == StatusCode::kConflict);
  must(people.database->check());
  CHECK(people.database->add_key(people.table, key_of("again", {"mail"}, true)).code() ==
        StatusCode::kConstraintViolated);
  people.insert(100, 200);
  must(people.database->check());
}

TEST_CASE("rows with one key that are in flight are checked again", "[engine]") {
  MemoryDatabase database;
  TableSchema schema("t");
  schema.column("id", Type::kInt64).column("value", Type::kInt64).primary_key({"id"});
  const TableId id = must(database->create_table(schema));
  engine::Table& table = *database->table(id);
  const auto begin = [&] { return must(database->begin(AccessMode::kReadWrite)); };
  const auto change = [&](Transaction& t, std::int64_t row, std::int64_t value) {
    const RowId found = must(t.get({id, 0}, {Value::int64(row)})).id();
    must(t.update(id, found, {{ColumnId(1), Value::int64(value)}}));
  };
  {
    Transaction t = begin();
    for (std::int64_t row = 0; row < 10; ++row)
      must(t.insert(id, {Value::int64(row), Value::int64(row)}));
    must(t.commit());
  }
  const bool commits = GENERATE(true, false);
  table.table_columns().begin_key(1, key_of("by_value", {"value"}, true));
  Transaction writer = begin();
  change(writer, 1, 8);  // row 8 has it, and is not in
  change(writer, 2, 2);  // the new version of one that is not in
  Transaction snapshot = begin();
  const mvcc::Visibility& sees = engine::TransactionAccess::context(snapshot)->visibility;
  engine::KeyBuild build(table.data(), table.index_build(), 1);
  const std::atomic<bool> stops{false};
  must(build.enter_rows(sees, stops));
  CHECK(build.has_doubts());
  if (commits) {
    must(writer.commit());
  } else {
    writer.abort();
  }
  snapshot.abort();
  Transaction now = begin();
  const Status settled = build.settle_doubts(engine::TransactionAccess::context(now)->visibility);
  now.abort();
  CHECK(said(settled) == (commits ? "table t, key by_value: more than one row has value = 8" : ""));
  if (!commits) must(database->verify({}));
}

// Statements of one transaction write one row, some of them before the key exists: their entries
// leave the index when they are undone.
TEST_CASE("a key has every row, whatever an earlier transaction undoes", "[engine]") {
  MemoryDatabase database;
  TableSchema schema("t");
  schema.column("id", Type::kInt64).column("value", Type::kInt64).column("note", Type::kInt64);
  schema.primary_key({"id"});
  const TableId id = must(database->create_table(schema));
  engine::Table& table = *database->table(id);
  const auto begin = [&] { return must(database->begin(AccessMode::kReadWrite)); };
  const auto change = [&](Transaction& t, std::int64_t note) {
    const RowId found = must(t.get({id, 0}, {Value::int64(1)})).id();
    must(t.update(id, found, {{ColumnId(2), Value::int64(note)}}));
  };
  {
    Transaction t = begin();
    for (std::int64_t row = 0; row < 3; ++row)
      must(t.insert(id, {Value::int64(row), Value::int64(row), Value::null()}));
    must(t.commit());
  }
  enum class Undone { kAll, kAllBySavepoint, kSecond, kSecondOfThree, kNothing };
  const Undone undone = GENERATE(Undone::kAll, Undone::kAllBySavepoint, Undone::kSecond,
                                 Undone::kSecondOfThree, Undone::kNothing);
  Transaction writer = begin();
  const Savepoint before_all = must(writer.savepoint());
  change(writer, 1);
  const Savepoint before_second = must(writer.savepoint());
  const KeySchema by_value = key_of("by_value", {"value"}, true);
  table.table_columns().begin_key(1, by_value);
  change(writer, 2);
  if (undone == Undone::kAllBySavepoint) must(writer.rollback_to(before_all));
  if (undone == Undone::kSecond || undone == Undone::kSecondOfThree)
    must(writer.rollback_to(before_second));
  if (undone == Undone::kSecondOfThree) change(writer, 3);
  if (undone == Undone::kAll) {
    writer.abort();
  } else {
    must(writer.commit());
  }
  Transaction snapshot = begin();
  engine::KeyBuild build(table.data(), table.index_build(), 1);
  const std::atomic<bool> stops{false};
  must(build.enter_rows(engine::TransactionAccess::context(snapshot)->visibility, stops));
  CHECK_FALSE(build.has_doubts());
  snapshot.abort();
  engine::StoredSchema next = table.table_columns().stored();
  next.schema.keys.push_back(by_value);
  must(table.table_columns().finish_key(1, std::move(next)));
  must(database->verify({}));
  Transaction after = begin();
  CHECK(must(after.get({id, 1}, {Value::int64(1)})).get_unchecked<std::int64_t>(ColumnId(0)) == 1);
  change(after, 4);
  must(after.commit());
  must(database->verify({}));
}

TEST_CASE("an added key that is not unique is always ordered", "[engine]") {
  Registry registry;
  const KeyId key =
      must(registry.database->add_key(registry.table, key_of("by_age", {"age"}, false)));
  CHECK(must(registry.database->schema(registry.table)).keys[key.index].ordered);
  MergeOptions everything;
  everything.scope = MergeScope::kEverything;
  for (int opened = 0; opened < 2; ++opened) {
    static_cast<void>(must(registry.database->merge(registry.table, everything)));
    Transaction t = registry.begin();
    CHECK(registry.count_from(t, key, 49) == kPeople / 50);
    t.abort();
    must(registry.database->check());
    registry.database.reopen();
  }
}

TEST_CASE("keys are added to rows of main, and dropped, beside index runs", "[engine]") {
  Registry people;
  MergeOptions options;
  options.scope = MergeScope::kEverything;
  const auto merge = [&] { must(people.database->merge(people.table, options)); };
  merge();
  people.database.reopen();
  people.insert(kPeople, kPeople + 100);  // in the delta
  const KeyId by_mail =
      must(people.database->add_key(people.table, key_of("by_mail", {"mail"}, true)));
  const KeyId by_age =
      must(people.database->add_key(people.table, key_of("by_age", {"age", "id"}, false)));
  const auto check = [&](std::size_t from_49) {
    Transaction t = people.begin();
    for (std::int64_t id = 3; id < kPeople + 100; id += 11) {
      CHECK(people.id_of(t, by_mail, mail_of(id)) == id);
      CHECK(must(t.get({people.table, 0}, {Value::int64(id)}))
                .get_unchecked<std::int64_t>(ColumnId(3)) == -id);
    }
    CHECK(people.count_from(t, by_age, 49) == from_49);
    t.abort();
    must(people.database->check());
  };
  check(kPeople / 50 + 2);
  people.database.reopen();  // runs have the first keys, not these
  check(kPeople / 50 + 2);
  Transaction t = people.begin();
  must(t.remove(people.table, people.find(t, 49)));
  must(t.update(people.table, people.find(t, 99), {{ColumnId(2), Value::int32(7)}}));
  must(t.commit());
  check(kPeople / 50);
  merge();  // makes runs with all keys
  check(kPeople / 50);
  people.database.reopen();
  check(kPeople / 50);
  must(people.database->drop_key({people.table, 1}));
  check(kPeople / 50);
  merge();
  people.database.reopen();
  check(kPeople / 50);
  CHECK(must(people.database->add_key(people.table, key_of("code", {"code"}, true))).index == 1);
  people.database.reopen();
  check(kPeople / 50);
  const std::string path = people.database.options.path;
  people.database.close();
  CHECK(must(check_pool({path, {}})).damages == 0);
}

}  // namespace flugs::test
