// Locks of Transaction::lock in tables whose keys are dropped and added, with and without a primary
// key.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

constexpr ColumnId kRoomPlace{1};
constexpr ColumnId kRoomGuest{3};
constexpr LockWait kNoWait{std::chrono::milliseconds(0)};

/// Rooms 0 to 3, each with a place and a unique key on it, which is dropped later. Without a
/// primary key, a unique key on the number finds rooms.
struct Rooms {
  TemporaryDatabase database;
  TableId table;
  KeyId by_place;
  KeyId by_number;

  explicit Rooms(bool has_primary_key) {
    TableSchema schema("rooms");
    schema.column("number", Type::kInt64).column("place", Type::kInt64);
    schema.column("code", Type::kInt64).column("guest", Type::kInt64);
    if (has_primary_key) schema.primary_key({"number"});
    schema.unique_key("by_place", {"place"});
    if (!has_primary_key) schema.unique_key("by_number", {"number"});
    table = must(database->create_table(schema));
    by_place = must(database->find_key(table, "by_place"));
    by_number = must(database->find_key(table, has_primary_key ? "primary" : "by_number"));
    for (std::int64_t number = 0; number < 4; ++number) add_room(number, 100 + number);
  }
  Transaction begin() { return must(database->begin()); }
  RowId add_room(std::int64_t number, std::int64_t place) {
    Transaction t = begin();
    const RowId id = must(t.insert(table, {Value::int64(number), Value::int64(place),
                                           Value::int64(-number), Value::int64(0)}));
    must(t.commit());
    return id;
  }
  Result<Row> lock(Transaction& t, std::int64_t number) const {
    return t.lock(by_number, {Value::int64(number)}, kNoWait);
  }
  RowId find(Transaction& t, std::int64_t number) const {
    return must(t.get(by_number, {Value::int64(number)})).id();
  }
  Status write(Transaction& t, RowId row) const {
    return t.update(table, row, {{kRoomGuest, Value::int64(1)}}).status();
  }
};

KeySchema room_key(const std::string& name, const std::string& column) {
  KeySchema key;
  key.name = name;
  key.columns = {column};
  key.unique = true;
  return key;
}

}  // namespace

TEST_CASE("rows with equal values in a dropped key are locked one by one", "[api]") {
  const bool has_primary_key = GENERATE(true, false);
  const bool is_replaced = GENERATE(false, true);
  Rooms rooms(has_primary_key);
  must(rooms.database->drop_key(rooms.by_place));
  if (is_replaced) {
    const KeyId by_code = must(rooms.database->add_key(rooms.table, room_key("by_code", "code")));
    CHECK(by_code == rooms.by_place);  // another key in its place
  }
  rooms.add_room(7, 100);
  rooms.add_room(8, 100);
  Transaction first = rooms.begin();
  Transaction second = rooms.begin();
  must(rooms.lock(first, 7));
  must(rooms.write(second, rooms.find(second, 8)));
  must(rooms.lock(second, 0));
  CHECK(rooms.lock(second, 7).code() == StatusCode::kBusy);
  CHECK(rooms.write(second, rooms.find(second, 7)).code() == StatusCode::kConflict);
  CHECK(rooms.lock(first, 0).code() == StatusCode::kBusy);
  CHECK(rooms.write(first, rooms.find(first, 0)).code() == StatusCode::kConflict);
  must(rooms.write(first, rooms.find(first, 7)));
  must(first.commit());
  must(second.commit());
  CHECK(rooms.database->statistics().rows_locked == 0);
  must(rooms.database->check());
}

TEST_CASE("a lock outlives the key by which its row was found", "[api]") {
  const bool has_primary_key = GENERATE(true, false);
  const bool by_dropped_key = GENERATE(true, false);
  Rooms rooms(has_primary_key);
  Transaction holder = rooms.begin();
  const RowId another = rooms.find(holder, 1);
  const KeyId key = by_dropped_key ? rooms.by_place : rooms.by_number;
  const RowId locked =
      must(holder.lock(key, {Value::int64(by_dropped_key ? 102 : 2)}, kNoWait)).id();
  const auto check_locked = [&] {
    Transaction other = rooms.begin();
    CHECK(rooms.write(other, locked).code() == StatusCode::kConflict);
    CHECK(other.remove(rooms.table, locked).code() == StatusCode::kConflict);
    CHECK(rooms.write(other, another).ok());
  };
  check_locked();
  must(rooms.database->drop_key(rooms.by_place));
  check_locked();
  Transaction other = rooms.begin();
  CHECK(rooms.lock(other, 2).code() == StatusCode::kBusy);
  must(rooms.database->drop_column(rooms.table, kRoomPlace));
  check_locked();
  CHECK(rooms.lock(other, 2).code() == StatusCode::kBusy);
  if (!has_primary_key) {
    must(rooms.database->drop_key(rooms.by_number));  // none is left
    check_locked();
  }
  must(rooms.write(holder, locked));
  must(holder.commit());
  CHECK(rooms.write(other, locked).code() == StatusCode::kConflict);
  CHECK(rooms.database->statistics().rows_locked == 0);
  other.abort();
  must(rooms.database->check());
}

// Without a primary key a lock names a version. A transaction that wants the record gets an error
// or goes on to the next version, at each level as with a primary key.
TEST_CASE("a newer version of a locked record is locked like the first one", "[api]") {
  const bool has_primary_key = GENERATE(true, false);
  Rooms rooms(has_primary_key);
  Transaction late = rooms.begin();
  CHECK(late.get(rooms.by_number, {Value::int64(3)}).ok());
  Transaction again = must(rooms.database->begin(AccessMode::kReadWrite,  //
                                                 Isolation::kReadCommitted));
  Transaction holder = rooms.begin();
  must(rooms.lock(holder, 3));
  must(rooms.write(holder, rooms.find(holder, 3)));
  must(rooms.lock(holder, 3));  // its own version
  CHECK(rooms.lock(again, 3).code() == StatusCode::kBusy);
  must(holder.commit());
  must(rooms.lock(again, 3));
  const StatusCode refused = rooms.lock(late, 3).code();
  CHECK((refused == StatusCode::kBusy || refused == StatusCode::kConflict));
  Transaction other = rooms.begin();
  CHECK(rooms.lock(other, 3).code() == StatusCode::kBusy);
  CHECK(rooms.write(other, rooms.find(other, 3)).code() == StatusCode::kConflict);
  must(rooms.write(again, rooms.find(again, 3)));
  must(again.commit());
  CHECK(rooms.lock(late, 3).code() == StatusCode::kConflict);
  CHECK(rooms.database->statistics().rows_locked == 0);
}

}  // namespace flugs::test
