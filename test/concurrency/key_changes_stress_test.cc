// Keys are added and dropped while other threads write. An existing key finds what a scan of the
// same snapshot finds, and a unique key holds.
#include <fmt/format.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "test/support/complaint.h"
#include "test/support/random.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

constexpr std::int64_t kRecords = 300;
constexpr int kKeyWriters = 3;
constexpr int kKeyRounds = 4 * kEffort;

/// Each record has its own value, and now and then the value of another.
struct Records {
  TemporaryDatabase database;
  TableId table;

  Records() {
    TableSchema schema("records");
    schema.column("id", Type::kInt64).column("value", Type::kInt64).column("text", Type::kString);
    schema.primary_key({"id"});
    table = must(database->create_table(schema));
    Transaction t = must(database->begin());
    for (std::int64_t id = 0; id < kRecords; ++id)
      must(t.insert(table, {Value::int64(id), Value::int64(id), Value::string("first")}));
    must(t.commit());
  }
};

Value drawn_value(Random& random, std::int64_t id) {
  const std::int64_t whose = random.below(400) == 0 ? (id + 1) % kRecords : id;
  if (random.below(50) == 0) return Value::null();
  return Value::int64(whose + kRecords * static_cast<std::int64_t>(random.below(8)));
}

Status change_record(Transaction& t, TableId table, std::int64_t id, Random& random) {
  const Result<Row> row = t.get({table, 0}, {Value::int64(id)});
  if (!row.ok() && row.code() != StatusCode::kNotFound) return row.status();
  const std::string text = fmt::format("text {}", random.below(100));
  if (!row.ok())
    return t.insert(table, {Value::int64(id), drawn_value(random, id), Value::string(text)})
        .status();
  switch (random.below(4)) {
    case 0:
      return t.remove(table, row->id());
    case 1:
      return t.update(table, row->id(), {{ColumnId(2), Value::string(text)}}).status();
    default:
      return t.update(table, row->id(), {{ColumnId(1), drawn_value(random, id)}}).status();
  }
}

void write_records(Records& records, std::uint64_t seed, const std::atomic<bool>& stops,
                   Complaint& complaint) {
  Random random(seed);
  while (!stops.load() && !complaint.failed()) {
    Result<Transaction> t = records.database->begin();
    if (!complaint.expect(t.ok(), t.status().to_string())) return;
    Status s;
    const std::uint64_t writes = 1 + random.below(6);
    for (std::uint64_t i = 0; i < writes && s.ok(); ++i) {
      const auto id = static_cast<std::int64_t>(random.below(kRecords));
      const Result<Savepoint> before = t->savepoint();
      s = change_record(*t, records.table, id, random);
      if (s.ok() && random.below(5) == 0) s = t->rollback_to(*before);
      if (s.code() == StatusCode::kAlreadyExists) s = {};
    }
    if (s.ok() && random.below(6) != 0) s = t->commit();
    complaint.expect(s.ok() || s.code() == StatusCode::kConflict, s.to_string());
  }
}

/// Compares, in one snapshot, reads by the keys with a scan.
void compare_records(Records& records, KeyId by_value, KeyId by_text) {
  Transaction t = must(records.database->begin(AccessMode::kReadOnly));
  std::map<std::int64_t, std::int64_t> values;
  std::size_t rows = 0;
  must(t.scan(records.table, {ColumnId(0), ColumnId(1)}, [&](const ScanBatch& batch) {
    for (std::size_t r = 0; r < batch.row_count(); ++r) {
      ++rows;
      if (batch.get_unchecked(1, r).is_null()) continue;
      CHECK(
          values.emplace(batch.get_unchecked(1, r).as_int64(), batch.get_unchecked(0, r).as_int64())
              .second);
    }
    return true;
  }));
  for (const auto& [value, id] : values) {
    const Result<Row> found = t.get(by_value, {Value::int64(value)});
    INFO(value << ": " << found.status().to_string());
    REQUIRE(found.ok());
    CHECK(found->get_unchecked<std::int64_t>(ColumnId(0)) == id);
  }
  std::size_t walked = 0;
  must(t.rows(by_text, {}, {}, [&](const Row&) {
    ++walked;
    return true;
  }));
  CHECK(walked == rows);
}

KeySchema record_key(std::string name, std::string column, bool unique) {
  KeySchema key;
  key.name = std::move(name);
  key.columns = {std::move(column)};
  key.unique = unique;
  key.ordered = !unique;
  return key;
}

}  // namespace

TEST_CASE("keys that are added while others write have every row", "[keys]") {
  Records records;
  Complaint complaint;
  std::atomic<bool> stops{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < kKeyWriters; ++i)
    threads.emplace_back(
        [&, i] { write_records(records, static_cast<std::uint64_t>(i + 1), stops, complaint); });
  MergeOptions everything;
  everything.scope = MergeScope::kEverything;
  int added = 0;
  int refused = 0;
  for (int round = 0; round < kKeyRounds && !complaint.failed(); ++round) {
    const Result<KeyId> by_value =
        records.database->add_key(records.table, record_key("by_value", "value", true));
    const Result<KeyId> by_text =
        records.database->add_key(records.table, record_key("by_text", "text", false));
    INFO(by_value.status().to_string() << "; " << by_text.status().to_string());
    CHECK((by_value.ok() || by_value.code() == StatusCode::kConstraintViolated));
    REQUIRE(by_text.ok());
    if (round % 5 == 4) CHECK(records.database->merge(records.table, everything).ok());
    ++(by_value.ok() ? added : refused);
    if (by_value.ok()) {
      compare_records(records, *by_value, *by_text);
      compare_records(records, *by_value, *by_text);
      must(records.database->drop_key(*by_value));
    }
    must(records.database->drop_key(*by_text));
  }
  stops.store(true);
  for (std::thread& thread : threads) thread.join();
  INFO(complaint.what());
  REQUIRE_FALSE(complaint.failed());
  CHECK(added > 0);
  CHECK(added + refused == kKeyRounds);
  must(records.database->check());
  const KeyId last =
      must(records.database->add_key(records.table, record_key("by_text", "text", false)));
  must(records.database->check());
  records.database.reopen();
  must(records.database->check());
  CHECK(must(records.database->find_key(records.table, "by_text")) == last);
}

}  // namespace flugs::test
