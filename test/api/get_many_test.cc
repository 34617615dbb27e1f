// Transaction::get_many: rows of many keys in one call.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "test/support/complaint.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

using FoundRows = std::vector<std::optional<Row>>;

constexpr ColumnId kShelfId{0};
constexpr ColumnId kShelfSize{2};
constexpr std::int64_t kShelfRows = 3000;

/// Rows whose ids are no guess for their places, a third of them in main.
struct Shelf {
  TemporaryDatabase database;
  TableId table;
  KeyId primary;
  KeyId by_name;
  KeyId by_size;

  explicit Shelf(bool is_merged) {
    TableSchema schema("shelf");
    schema.column("id", Type::kInt64).column("name", Type::kString).column("size", Type::kInt32);
    schema.primary_key({"id"}).unique_key("by_name", {"name", "size"}).key("by_size", {"size"});
    table = must(database->create_table(schema));
    primary = KeyId{table, 0};
    by_name = KeyId{table, 1};
    by_size = KeyId{table, 2};
    for (std::int64_t part = 0; part < 3; ++part) {
      Transaction t = must(database->begin());
      for (std::int64_t i = 0; i < kShelfRows / 3; ++i) {
        const std::int64_t id = id_of(part * (kShelfRows / 3) + i);
        const std::string name = name_of(id);
        must(t.insert(table, {id, name, size_of(id)}));
      }
      must(t.commit());
      if (is_merged && part == 0) static_cast<void>(must(database->merge(table)));
    }
  }

  std::int32_t size_at(std::int64_t id) {
    const Transaction t = must(database->begin());
    return must(must(t.get(primary, {Value::int64(id)})).get<std::int32_t>(kShelfSize));
  }
  static std::int64_t id_of(std::int64_t place) { return place * 7919 % kShelfRows; }
  static std::string name_of(std::int64_t id) { return "name " + std::to_string(id / 10); }
  static std::int32_t size_of(std::int64_t id) { return static_cast<std::int32_t>(id % 10); }
};

/// Calls get_many again and again, while another thread cancels the transaction. Returns whether
/// the call that was under way then was the one that failed.
bool is_cut_short(Shelf& shelf, Transaction& t, const std::vector<Value>& ids, FoundRows& found) {
  std::atomic<std::uint64_t> calls{0};
  std::uint64_t calls_when_cancelled = 0;
  std::thread canceller([&, id = t.id()] {
    while (calls.load() == 0) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    static_cast<void>(shelf.database->cancel(id));
    calls_when_cancelled = calls.load();
  });
  Status status;
  while (status.ok()) {
    calls.fetch_add(1);
    status = t.get_many(shelf.primary, ids, found);
  }
  canceller.join();
  CHECK(status.code() == StatusCode::kCancelled);
  CHECK(status.message().find("the transaction was ended: it was cancelled") == 0);
  return calls_when_cancelled == calls.load();
}

}  // namespace

TEST_CASE("get_many finds what get finds, in the order of its keys") {
  const bool is_merged = GENERATE(false, true);
  Shelf shelf(is_merged);
  Transaction t = must(shelf.database->begin());
  std::vector<Value> ids;
  std::vector<Value> names;
  std::vector<std::string> texts;
  for (std::int64_t id = -5; id < kShelfRows + 5; ++id) texts.push_back(Shelf::name_of(id));
  for (std::int64_t id = -5; id < kShelfRows + 5; ++id) {
    ids.push_back(Value::int64(id));
    names.push_back(Value::string(texts[static_cast<std::size_t>(id + 5)]));
    names.push_back(Value::int32(id < 0 ? 100 : Shelf::size_of(id)));
  }
  FoundRows by_id(ids.size());
  FoundRows by_name(ids.size());
  REQUIRE(t.get_many(shelf.primary, ids, by_id).ok());
  REQUIRE(t.get_many(shelf.by_name, names, by_name).ok());
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::int64_t id = ids[i].raw();
    const bool is_there = id >= 0 && id < kShelfRows;
    wrong += by_id[i].has_value() == is_there && by_name[i].has_value() == is_there ? 0 : 1;
    if (!is_there || !by_id[i] || !by_name[i]) continue;
    wrong += must(by_id[i]->get<std::int64_t>(kShelfId)) == id ? 0 : 1;
    wrong += by_id[i]->id() == by_name[i]->id() ? 0 : 1;
  }
  CHECK(wrong == 0);
}

TEST_CASE("get_many sees what its transaction sees, and a key as often as it is asked for") {
  Shelf shelf(false);
  Transaction before = must(shelf.database->begin());
  Transaction t = must(shelf.database->begin());
  must(t.remove(shelf.primary, {Value::int64(5)}));
  must(t.insert(shelf.table, {kShelfRows, "new", 1}));
  must(t.update(shelf.primary, {Value::int64(7)}, {{kShelfId, Value::int64(-7)}}));
  const std::vector<Value> ids = {Value::int64(5),  Value::int64(kShelfRows), Value::int64(7),
                                  Value::int64(-7), Value::int64(8),          Value::int64(8)};
  const auto seen = [&](const Transaction& by) {
    FoundRows found(ids.size());
    must(by.get_many(shelf.primary, ids, found));
    std::string text;
    for (const std::optional<Row>& row : found) text += row ? 'x' : '-';
    return text;
  };
  CHECK(seen(t) == "-x-xxx");
  CHECK(seen(before) == "x-x-xx");
  must(t.commit());
  CHECK(seen(before) == "x-x-xx");
}

TEST_CASE("get_many says what is wrong, and gives no row then") {
  Shelf shelf(false);
  Transaction t = must(shelf.database->begin());
  FoundRows found(2);
  const auto refused = [&](KeyId key, const std::vector<Value>& values, std::string_view message) {
    must(t.get_many(shelf.primary, std::vector<Value>{Value::int64(1), Value::int64(2)}, found));
    const Status status = t.get_many(key, values, found);
    CAPTURE(status.to_string());
    CHECK(status.code() == StatusCode::kInvalidArgument);
    CHECK(status.message().find(message) != std::string_view::npos);
    CHECK_FALSE(found[1].has_value());
    return !found[0].has_value();
  };
  CHECK(refused(shelf.primary, {Value::int64(1)},
                "table shelf, key primary: get_many needs 2 values for 2 rows, found 1"));
  CHECK(refused(shelf.by_name, {Value::string("name 1"), Value::int32(1)}, "needs 4 values"));
  CHECK(refused(shelf.by_size, {Value::int32(1), Value::int32(2)}, "not unique"));
  CHECK(refused(KeyId{shelf.table, 9}, {Value::int64(1), Value::int64(2)}, "no key 9"));
  CHECK(refused(shelf.primary, {Value::string("1"), Value::int64(2)}, "primary"));
  // The second key alone is wrong.
  CHECK_FALSE(refused(shelf.primary, {Value::int64(1), Value::string("2")}, "primary"));
  must(t.get_many(shelf.primary, {}, {}));
  must(t.commit());
  CHECK(t.get_many(shelf.primary, std::vector<Value>{Value::int64(1), Value::int64(2)}, found)
            .code() == StatusCode::kInvalidArgument);
}

TEST_CASE("a serializable transaction has read the rows of get_many, and those it did not find") {
  Shelf shelf(false);
  for (const bool is_insert : {false, true}) {
    Transaction reader =
        must(shelf.database->begin(AccessMode::kReadWrite, Isolation::kSerializable));
    FoundRows found(2);
    must(reader.get_many(shelf.primary,
                         std::vector<Value>{Value::int64(1), Value::int64(kShelfRows + 1)}, found));
    must(reader.update(shelf.primary, {Value::int64(2)}, {{ColumnId(2), Value::int32(77)}}));
    Transaction writer = must(shelf.database->begin());
    if (is_insert)
      must(writer.insert(shelf.table, {kShelfRows + 1, "late", 1}));
    else
      must(writer.update(shelf.primary, {Value::int64(1)}, {{ColumnId(2), Value::int32(78)}}));
    must(writer.commit());
    CHECK(reader.commit().code() == StatusCode::kConflict);
  }
}

TEST_CASE("cancelling a transaction cuts short its call of get_many, and undoes its writes") {
  constexpr std::int64_t kKeys = 200'000;
  constexpr int kRounds = 20;
  Shelf shelf(true);
  std::vector<Value> ids;
  for (std::int64_t i = 0; i < kKeys; ++i) ids.push_back(Value::int64(Shelf::id_of(i)));
  FoundRows found(ids.size());
  const auto is_there = [](const std::optional<Row>& row) { return row.has_value(); };
  int cut_short = 0;
  for (int round = 0; round < kRounds; ++round) {
    Transaction t = must(shelf.database->begin());
    must(t.get_many(shelf.primary, ids, found));
    REQUIRE(std::all_of(found.begin(), found.end(), is_there));
    must(t.update(shelf.primary, {Value::int64(3)}, {{kShelfSize, Value::int32(33)}}));
    cut_short += is_cut_short(shelf, t, ids, found) ? 1 : 0;
    CHECK(std::none_of(found.begin(), found.end(), is_there));
    CHECK(shelf.size_at(3) == Shelf::size_of(3));
    // The transaction has ended, and another one may write the row.
    Transaction other = must(shelf.database->begin());
    must(other.update(shelf.primary, {Value::int64(3)}, {{kShelfSize, Value::int32(34)}}));
    other.abort();
    CHECK(t.get_many(shelf.primary, ids, found).code() == StatusCode::kCancelled);
    CHECK(t.is_open());
    CHECK(t.commit().code() == StatusCode::kCancelled);
    CHECK_FALSE(t.is_open());
  }
  // In the other rounds the request came between two calls, or met the last keys of a call.
  CHECK(cut_short >= kRounds / 2);
  CHECK(shelf.size_at(3) == Shelf::size_of(3));
  must(shelf.database->check());
}

TEST_CASE("get_many reads one snapshot, also with kReadCommitted") {
  // Few, because the snapshot of a call keeps the versions that are written meanwhile, and each
  // look-up passes them.
  constexpr std::int64_t kKeys = 512;
  constexpr int kCalls = 400;
  Shelf shelf(false);
  std::vector<Value> ids;
  for (std::int64_t i = 0; i < kKeys; ++i) ids.push_back(Value::int64(i % 2 * 10));
  FoundRows found(ids.size());
  std::atomic<bool> ends{false};
  Complaint complaint;
  // Each commit gives both rows the same size.
  std::thread writer([&] {
    for (std::int32_t size = 100; !ends.load(); ++size) {
      Result<Transaction> t = shelf.database->begin();
      Status done = t.status();
      for (std::int64_t id = 0; done.ok() && id <= 10; id += 10)
        done = t->update(shelf.primary, {Value::int64(id)}, {{kShelfSize, Value::int32(size)}})
                   .status();
      if (done.ok()) done = t->commit();
      if (!complaint.expect(done.ok(), done.to_string())) return;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  });
  Transaction t = must(shelf.database->begin(AccessMode::kReadOnly, Isolation::kReadCommitted));
  while (shelf.size_at(0) < 100 && !complaint.failed()) std::this_thread::yield();
  std::size_t torn = 0;
  for (int call = 0; call < kCalls; ++call) {
    must(t.get_many(shelf.primary, ids, found));
    const std::int32_t size = must(found[0]->get<std::int32_t>(kShelfSize));
    torn += std::all_of(found.begin(), found.end(),
                        [&](const std::optional<Row>& row) {
                          return row && row->get_unchecked<std::int32_t>(kShelfSize) == size;
                        })
                ? 0
                : 1;
  }
  ends.store(true);
  writer.join();
  CHECK(complaint.what() == "");
  CHECK(torn == 0);
}

}  // namespace flugs::test
