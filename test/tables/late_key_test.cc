// Unique keys without their index in DRAM are still found, kept unique and written.

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "test/support/temporary_database.h"

namespace flugs::test {

namespace {

constexpr std::int32_t kGuests = 20'000;  // more than opening indexes itself
constexpr std::size_t kHotelBytes = std::size_t{96} << 20;

/// Unique keys: the number; the name, which may be NULL; the room within a house.
struct Hotel {
  MemoryDatabase database;
  TableId table;
  KeyId by_number;
  KeyId by_name;
  KeyId by_room;

  explicit Hotel(bool holds_directly = false) : database(kHotelBytes, IndexPlace::kDram) {
    database.options.tuning.sweeps_in_background = false;
    TableSchema schema("guests");
    schema.column("number", Type::kInt64).column("name", Type::kString);
    schema.column("house", Type::kInt32).column("room", Type::kInt32);
    schema.column("visits", Type::kInt32);
    if (holds_directly)
      for (ColumnSchema& column : schema.columns) column.encoding = Encoding::kDirect;
    schema.primary_key({"number"}).unique_key("by_name", {"name"});
    schema.unique_key("by_room", {"house", "room"});
    schema.keys.back().hashed_columns = 1;
    table = must(database->create_table(schema));
    set_keys();
    insert(0, kGuests);
  }
  void set_keys() {
    by_number = {table, 0};
    by_name = {table, 1};
    by_room = {table, 2};
  }
  static std::string name_of(std::int32_t id) {
    return id % 5 == 0 ? fmt::format("N {}", id) : fmt::format("the guest of number {}", id);
  }
  static std::vector<Value> guest(std::int32_t id, std::string& name) {
    name = name_of(id);
    return {Value::int64(id), id % 10 == 3 ? Value::null() : Value::string(name),
            Value::int32(id / 4), Value::int32(id % 4), Value::int32(0)};
  }
  void insert(std::int32_t first, std::int32_t end) {
    Transaction t = begin();
    std::string name;
    for (std::int32_t id = first; id < end; ++id) must(t.insert(table, guest(id, name)));
    must(t.commit());
  }
  /// A thread would make indexes, but never gets to it.
  void reopen() {
    database.reopen();
    hold_back();
  }
  void hold_back() { database->table(table)->index_build().set_builds_later(true); }
  Transaction begin(AccessMode mode = AccessMode::kReadWrite,
                    Isolation isolation = Isolation::kSnapshot) {
    return must(database->begin(mode, isolation));
  }
  bool is_made() {
    return !database->table(table)->index_build().is_deferred(
        engine::DeferredIndexes::kHashIndexes);
  }
  void make() { must(database->finish_opening()); }
};

std::vector<Value> number(std::int64_t n) { return {Value::int64(n)}; }

RowId guest_row(Hotel& hotel, Transaction& t, std::int64_t n) {
  return must(t.get(hotel.by_number, number(n))).id();
}

bool is_there(Hotel& hotel, Transaction& t, std::int64_t n) {
  const Result<Row> found = t.get(hotel.by_number, number(n));
  if (!found.ok()) CHECK(found.code() == StatusCode::kNotFound);
  if (found.ok()) CHECK(found->get_unchecked(ColumnId(0)) == Value::int64(n));
  return found.ok();
}

std::vector<std::int64_t> guests_of(Hotel& hotel, Transaction& t, std::int32_t house) {
  std::vector<std::int64_t> guests;
  const std::vector<Value> wanted = {Value::int32(house)};
  must(t.rows(hotel.by_room, wanted, [&](const Row& row) {
    guests.push_back(row.get_unchecked(ColumnId(0)).raw());
    return true;
  }));
  std::sort(guests.begin(), guests.end());
  return guests;
}

}  // namespace

TEST_CASE("a key is looked up before its index is made", "[engine]") {
  Hotel hotel(GENERATE(false, true));
  hotel.reopen();
  Transaction t = hotel.begin(AccessMode::kReadOnly);
  for (const std::int32_t id : {0, 1, 4095, 4096, 12'345, kGuests - 1}) {
    CHECK(is_there(hotel, t, id));
    const std::string name = Hotel::name_of(id);
    if (id % 10 == 3) continue;
    const std::vector<Value> wanted = {Value::string(name)};
    CHECK(must(t.get(hotel.by_name, wanted)).get_unchecked(ColumnId(0)) == Value::int64(id));
  }
  CHECK_FALSE(is_there(hotel, t, kGuests));
  CHECK_FALSE(is_there(hotel, t, -1));
  CHECK_FALSE(is_there(hotel, t, std::int64_t{1} << 40));
  const std::vector<Value> stranger = {Value::string("the guest of number X")};
  CHECK(t.get(hotel.by_name, stranger).code() == StatusCode::kNotFound);
  CHECK(guests_of(hotel, t, 1000) == std::vector<std::int64_t>{4000, 4001, 4002, 4003});
  CHECK(guests_of(hotel, t, kGuests).empty());
  CHECK_FALSE(hotel.is_made());
  hotel.make();
  CHECK(hotel.is_made());
  CHECK(is_there(hotel, t, 12'345));
  CHECK_FALSE(is_there(hotel, t, kGuests));
  CHECK(guests_of(hotel, t, 1000).size() == 4);
  t.abort();
  must(hotel.database->verify({}));
}

TEST_CASE("rows written before a key's index is made are found", "[engine]") {
  Hotel hotel(GENERATE(false, true));
  hotel.reopen();
  Transaction before = hotel.begin(AccessMode::kReadOnly);
  {
    Transaction t = hotel.begin();
    must(t.update(hotel.table, guest_row(hotel, t, 10), {{ColumnId(4), Value::int32(1)}}));
    must(t.update(hotel.table, guest_row(hotel, t, 10), {{ColumnId(4), Value::int32(2)}}));
    must(t.remove(hotel.table, guest_row(hotel, t, 11)));
    must(t.update(hotel.table, guest_row(hotel, t, 12), {{ColumnId(0), Value::int64(30'012)}}));
    must(t.update(hotel.table, guest_row(hotel, t, 14), {{ColumnId(0), Value::int64(30'014)}}));
    must(t.update(hotel.table, guest_row(hotel, t, 30'014), {{ColumnId(0), Value::int64(14)}}));
    std::string name;
    must(t.insert(hotel.table, Hotel::guest(kGuests, name)));
    CHECK_FALSE(is_there(hotel, t, 11));
    CHECK(is_there(hotel, t, 14));
    must(t.commit());
  }
  const auto check_before = [&] {
    CHECK(must(before.get(hotel.by_number, number(10))).get_unchecked(ColumnId(4)) ==
          Value::int32(0));
    CHECK(is_there(hotel, before, 11));
    CHECK(is_there(hotel, before, 12));
    CHECK(is_there(hotel, before, 14));
    CHECK_FALSE(is_there(hotel, before, 30'012));
    CHECK_FALSE(is_there(hotel, before, kGuests));
    CHECK(guests_of(hotel, before, 2) == std::vector<std::int64_t>{8, 9, 10, 11});
    CHECK(guests_of(hotel, before, 3) == std::vector<std::int64_t>{12, 13, 14, 15});
  };
  const auto check_after = [&] {
    Transaction t = hotel.begin();
    CHECK(must(t.get(hotel.by_number, number(10))).get_unchecked(ColumnId(4)) == Value::int32(2));
    CHECK_FALSE(is_there(hotel, t, 11));
    CHECK_FALSE(is_there(hotel, t, 12));
    CHECK(is_there(hotel, t, 14));
    CHECK(is_there(hotel, t, 30'012));
    CHECK_FALSE(is_there(hotel, t, 30'014));
    CHECK(is_there(hotel, t, kGuests));
    CHECK(guests_of(hotel, t, 2) == std::vector<std::int64_t>{8, 9, 10});
    CHECK(guests_of(hotel, t, 3) == std::vector<std::int64_t>{13, 14, 15, 30'012});
  };
  check_before();
  check_after();
  CHECK_FALSE(hotel.is_made());
  hotel.make();
  // A row that this snapshot sees was deleted before the index was made, and is not in it.
  check_before();
  check_after();
  before.abort();
  check_after();
  must(hotel.database->verify({}));
  check_after();
}

TEST_CASE("keys stay unique before their index is made", "[engine]") {
  Hotel hotel(GENERATE(false, true));
  hotel.reopen();
  std::string name;
  Transaction t = hotel.begin();
  CHECK(t.insert(hotel.table, Hotel::guest(7, name)).code() == StatusCode::kAlreadyExists);
  const auto other = [&](std::int32_t like, std::int64_t n) {
    std::vector<Value> row = Hotel::guest(like, name);
    row[0] = Value::int64(n);
    return row;
  };
  CHECK(t.insert(hotel.table, other(7, 50'000)).code() == StatusCode::kAlreadyExists);  // the name
  CHECK(t.insert(hotel.table, other(3, 50'000)).code() == StatusCode::kAlreadyExists);  // the room
  const RowId eight = guest_row(hotel, t, 8);
  CHECK(t.update(hotel.table, eight, {{ColumnId(0), Value::int64(7)}}).code() ==
        StatusCode::kAlreadyExists);
  must(t.remove(hotel.table, guest_row(hotel, t, 7)));
  const RowId seven = must(t.insert(hotel.table, Hotel::guest(7, name)));
  CHECK(t.insert(hotel.table, Hotel::guest(7, name)).code() == StatusCode::kAlreadyExists);
  must(t.update(hotel.table, seven, {{ColumnId(0), Value::int64(60'000)}}));
  must(t.update(hotel.table, eight, {{ColumnId(0), Value::int64(7)}}));
  CHECK(must(t.insert_if_absent(hotel.by_number, Hotel::guest(9, name))).inserted == false);
  std::vector<Value> nine = Hotel::guest(9, name);
  nine[4] = Value::int32(9);
  CHECK(must(t.upsert(hotel.by_number, nine)).inserted == false);
  CHECK(must(t.upsert(hotel.by_number, Hotel::guest(kGuests, name))).inserted);
  CHECK(must(t.lock(hotel.by_number, number(15))).get_unchecked(ColumnId(0)).raw() == 15);
  must(t.commit());
  CHECK_FALSE(hotel.is_made());
  const auto check = [&] {
    Transaction reader = hotel.begin();
    CHECK(must(reader.get(hotel.by_number, number(9))).get_unchecked(ColumnId(4)) ==
          Value::int32(9));
    CHECK(must(reader.get(hotel.by_number, number(7))).get_unchecked(ColumnId(3)) ==
          Value::int32(0));
    CHECK(is_there(hotel, reader, 60'000));
    CHECK_FALSE(is_there(hotel, reader, 8));
    CHECK(reader.insert(hotel.table, Hotel::guest(9, name)).code() == StatusCode::kAlreadyExists);
  };
  check();
  hotel.make();
  check();
  must(hotel.database->verify({}));
}

TEST_CASE("one of two writers of a key without its index gets a conflict", "[engine]") {
  Hotel hotel;
  hotel.reopen();
  std::string name;
  Transaction a = hotel.begin();
  Transaction b = hotel.begin();
  SECTION("a new key") {
    must(a.insert(hotel.table, Hotel::guest(kGuests, name)));
    CHECK(b.insert(hotel.table, Hotel::guest(kGuests, name)).code() == StatusCode::kConflict);
  }
  SECTION("a key of a row that is being deleted") {
    must(a.remove(hotel.table, guest_row(hotel, a, 7)));
    CHECK(b.insert(hotel.table, Hotel::guest(7, name)).code() == StatusCode::kConflict);
  }
  SECTION("a key of a row deleted since") {
    must(a.remove(hotel.table, guest_row(hotel, a, 7)));
    must(a.commit());
    if (GENERATE(false, true)) hotel.make();
    CHECK(b.insert(hotel.table, Hotel::guest(7, name)).code() == StatusCode::kConflict);
    Transaction later = hotel.begin();
    must(later.insert(hotel.table, Hotel::guest(7, name)));
    must(later.commit());
  }
  SECTION("a key that is given up") {
    must(a.update(hotel.table, guest_row(hotel, a, 7), {{ColumnId(0), Value::int64(70'000)}}));
    std::vector<Value> row = Hotel::guest(kGuests, name);
    row[0] = Value::int64(7);
    CHECK(b.insert(hotel.table, row).code() == StatusCode::kConflict);
    a.abort();
    CHECK(b.insert(hotel.table, row).code() == StatusCode::kAlreadyExists);
  }
  if (a.id().value() != 0) must(a.commit());
  b.abort();
  hotel.make();
  must(hotel.database->verify({}));
}

TEST_CASE("writes before a key's index is made can be undone", "[engine]") {
  Hotel hotel;
  hotel.reopen();
  std::string name;
  const bool is_savepoint = GENERATE(false, true);
  const bool is_made_between = GENERATE(false, true);
  Transaction t = hotel.begin();
  const Savepoint savepoint = must(t.savepoint());
  must(t.update(hotel.table, guest_row(hotel, t, 20), {{ColumnId(4), Value::int32(1)}}));
  must(t.update(hotel.table, guest_row(hotel, t, 21), {{ColumnId(0), Value::int64(40'021)}}));
  must(t.remove(hotel.table, guest_row(hotel, t, 22)));
  must(t.insert(hotel.table, Hotel::guest(22, name)));
  must(t.insert(hotel.table, Hotel::guest(kGuests, name)));
  if (is_made_between) hotel.make();
  if (is_savepoint) {
    must(t.rollback_to(savepoint));
    must(t.commit());
  } else {
    t.abort();
  }
  const auto check = [&] {
    Transaction reader = hotel.begin();
    CHECK(must(reader.get(hotel.by_number, number(20))).get_unchecked(ColumnId(4)) ==
          Value::int32(0));
    CHECK(is_there(hotel, reader, 21));
    CHECK_FALSE(is_there(hotel, reader, 40'021));
    CHECK(is_there(hotel, reader, 22));
    CHECK_FALSE(is_there(hotel, reader, kGuests));
  };
  check();
  {
    Transaction again = hotel.begin();
    must(again.update(hotel.table, guest_row(hotel, again, 20), {{ColumnId(4), Value::int32(5)}}));
    must(again.remove(hotel.table, guest_row(hotel, again, 21)));
    must(again.commit());
  }
  hotel.make();
  Transaction reader = hotel.begin();
  CHECK(must(reader.get(hotel.by_number, number(20))).get_unchecked(ColumnId(4)) ==
        Value::int32(5));
  CHECK_FALSE(is_there(hotel, reader, 21));
  reader.abort();
  must(hotel.database->verify({}));
}

TEST_CASE("a serializable transaction validates a key whose index is made meanwhile", "[engine]") {
  Hotel hotel;
  hotel.reopen();
  std::string name;
  const bool is_made_between = GENERATE(false, true);
  const bool is_changed = GENERATE(false, true);
  Transaction reader = hotel.begin(AccessMode::kReadWrite, Isolation::kSerializable);
  CHECK_FALSE(is_there(hotel, reader, kGuests));
  CHECK(guests_of(hotel, reader, 2).size() == 4);
  must(reader.update(hotel.table, guest_row(hotel, reader, 100), {{ColumnId(4), Value::int32(1)}}));
  {
    Transaction writer = hotel.begin();
    if (is_changed) must(writer.remove(hotel.table, guest_row(hotel, writer, 11)));
    must(writer.insert(hotel.table, Hotel::guest(kGuests + 1, name)));
    must(writer.commit());
  }
  if (is_made_between) hotel.make();
  CHECK(reader.commit().code() == (is_changed ? StatusCode::kConflict : StatusCode::kOk));
  must(hotel.database->verify({}));
}

TEST_CASE("a crash before a key's index is made leaves what was committed", "[engine]") {
  Hotel hotel;
  hotel.reopen();
  std::string name;
  {
    Transaction t = hotel.begin();
    must(t.update(hotel.table, guest_row(hotel, t, 30), {{ColumnId(4), Value::int32(1)}}));
    must(t.remove(hotel.table, guest_row(hotel, t, 31)));
    must(t.update(hotel.table, guest_row(hotel, t, 32), {{ColumnId(0), Value::int64(40'032)}}));
    must(t.commit());
  }
  Transaction open = hotel.begin();
  must(open.remove(hotel.table, guest_row(hotel, open, 33)));
  must(open.insert(hotel.table, Hotel::guest(kGuests, name)));
  PoolBuffer copy(kHotelBytes);
  std::memcpy(copy.span().data(), hotel.database.span().data(), kHotelBytes);
  OpenOptions options = hotel.database.options;
  const auto crashed = must(engine::DatabaseCore::open(
      must(pmem::Pool::open_in_memory(copy.span(), pmem::PoolOptions{})), false, options));
  crashed->table(hotel.table)->index_build().set_builds_later(true);
  for (const bool is_made : {false, true}) {
    if (is_made) must(crashed->finish_opening());
    Transaction t = must(crashed->begin(AccessMode::kReadWrite));
    CHECK(must(t.get(hotel.by_number, number(30))).get_unchecked(ColumnId(4)) == Value::int32(1));
    CHECK_FALSE(is_there(hotel, t, 31));
    CHECK_FALSE(is_there(hotel, t, 32));
    CHECK(is_there(hotel, t, 40'032));
    CHECK(is_there(hotel, t, 33));
    CHECK_FALSE(is_there(hotel, t, kGuests));
    CHECK(t.insert(hotel.table, Hotel::guest(33, name)).code() == StatusCode::kAlreadyExists);
  }
  must(crashed->verify({}));
  open.abort();
  must(hotel.database->verify({}));
}

TEST_CASE("rows that died before opening are used again before a key's index is made", "[engine]") {
  Hotel hotel;
  {
    Transaction t = hotel.begin();
    for (std::int32_t id = 0; id < kGuests; id += 2)
      must(t.remove(hotel.table, guest_row(hotel, t, id)));
    must(t.commit());
  }
  hotel.reopen();
  std::string name;
  const auto end = hotel.database->table(hotel.table)->rows().rows_end();
  for (std::int32_t id = 0; id < 600; id += 2) {
    Transaction t = hotel.begin();
    CHECK_FALSE(is_there(hotel, t, id));
    must(t.insert(hotel.table, Hotel::guest(id, name)));
    must(t.commit());
  }
  CHECK(hotel.database->table(hotel.table)->rows().rows_end() == end);
  CHECK_FALSE(hotel.is_made());
  for (const bool is_made : {false, true}) {
    if (is_made) hotel.make();
    Transaction t = hotel.begin();
    for (std::int32_t id = 590; id < 610; ++id)
      CHECK(is_there(hotel, t, id) == (id < 600 || id % 2 == 1));
  }
  must(hotel.database->verify({}));
}

TEST_CASE("keys and foreign keys of tables without their indexes", "[engine]") {
  Hotel hotel;
  TableSchema bookings("bookings");
  bookings.column("id", Type::kInt64).column("guest", Type::kInt64);
  bookings.primary_key({"id"}).key("by_guest", {"guest"});
  bookings.foreign_key("of_guest", {"guest"}, "guests");
  const TableId table = must(hotel.database->create_table(bookings));
  {
    Transaction t = hotel.begin();
    for (std::int64_t i = 0; i < kGuests; ++i)
      must(t.insert(table, {Value::int64(i), Value::int64(i / 2 * 2)}));
    must(t.commit());
  }
  hotel.reopen();
  hotel.database->table(table)->index_build().set_builds_later(true);
  Transaction t = hotel.begin();
  CHECK(t.insert(table, {Value::int64(kGuests), Value::int64(-5)}).code() ==
        StatusCode::kConstraintViolated);
  must(t.insert(table, {Value::int64(kGuests), Value::int64(5)}));
  CHECK(t.remove(hotel.table, guest_row(hotel, t, 5)).code() == StatusCode::kConstraintViolated);
  CHECK(t.remove(hotel.table, guest_row(hotel, t, 6)).code() == StatusCode::kConstraintViolated);
  must(t.remove(hotel.table, guest_row(hotel, t, 7)));
  must(t.commit());
  CHECK_FALSE(hotel.is_made());
  must(hotel.database->verify({}));
}

TEST_CASE("the table that is needed first gets its indexes first", "[engine]") {
  Hotel hotel;
  hotel.reopen();
  engine::Table& table = *hotel.database->table(hotel.table);
  CHECK(table.index_build().asked_at() == 0);
  {
    Transaction t = hotel.begin(AccessMode::kReadOnly);
    CHECK(is_there(hotel, t, 1));
  }
  const std::int64_t asked_at = table.index_build().asked_at();
  CHECK(asked_at != 0);
  CHECK(table.keys()[0]->entries().deferred_rows()->asked_at() != 0);
  CHECK(table.keys()[1]->entries().deferred_rows()->asked_at() == 0);
  {
    Transaction t = hotel.begin(AccessMode::kReadOnly);
    CHECK(is_there(hotel, t, 2));
  }
  CHECK(table.index_build().asked_at() == asked_at);
  hotel.make();
  CHECK(table.index_build().asked_at() == 0);
  CHECK(table.keys()[0]->entries().deferred_rows() == nullptr);
}

}  // namespace flugs::test
