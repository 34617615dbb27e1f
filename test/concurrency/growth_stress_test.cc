// Threads run while a structure grows, fills up, or is removed.
#include <atomic>
#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/hash.h"
#include "columns/index/hash_index.h"
#include "test/support/complaint.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

TableSchema rows_schema(const std::string& name) {
  TableSchema schema(name);
  schema.column("id", Type::kInt64).column("text", Type::kString).column("n", Type::kInt32);
  schema.primary_key({"id"});
  return schema;
}

std::string long_text(std::uint64_t number) {
  return "a text that does not fit into a cell, number " + std::to_string(number);
}

}  // namespace

TEST_CASE("the same values from many threads get one ValueID each", "[engine][columns]") {
  TemporaryDatabase database;
  const TableId table = must(database->create_table(rows_schema("rows")));
  Complaint complaint;
  constexpr std::uint64_t kThreads = 4;
  constexpr std::uint64_t kRows = 3000;
  constexpr std::uint64_t kValues = 1000;
  std::vector<std::thread> threads;
  for (std::uint64_t thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([&, thread] {
      for (std::uint64_t i = 0; i < kRows && !complaint.failed(); ++i) {
        auto t = database->begin();
        if (!complaint.expect(t.ok(), "begin")) return;
        const std::string text = long_text(i % kValues);
        const auto n = static_cast<std::int32_t>(i % 300);
        const auto id = static_cast<std::int64_t>(thread * kRows + i);
        const auto row = t->insert(table, {Value::int64(id), Value::string(text), Value::int32(n)});
        complaint.expect(row.ok() && t->commit().ok(), "insert");
      }
    });
  for (std::thread& thread : threads) thread.join();
  REQUIRE(complaint.what() == "");
  for (int opened = 0; opened < 2; ++opened) {
    const auto statistics = must(database->table_statistics(table));
    CHECK(statistics.columns[1].dictionary_entries == kValues);
    CHECK(statistics.columns[2].dictionary_entries == 300);
    must(database->check());
    std::map<std::string, std::size_t> counts;
    must(must(database->begin()).scan(table, {ColumnId{1}}, [&](const ScanBatch& batch) {
      for (const std::string_view text : batch.column_unchecked<std::string_view>(0))
        ++counts[std::string(text)];
      return true;
    }));
    CHECK(counts.size() == kValues);
    CHECK(counts[long_text(7)] == kThreads * kRows / kValues);
    database.reopen();
  }
}

TEST_CASE("rows, cell widths and the pool grow under writers and readers", "[engine]") {
  TemporaryDatabase database(
      [](OpenOptions& o) { o.tuning.grow_ahead_bytes = std::uint64_t{8} << 20; });
  const TableId table = must(database->create_table(rows_schema("rows")));
  Complaint complaint;
  constexpr std::int64_t kRows = 12000;
  std::atomic<int> writers{2};
  std::vector<std::atomic<std::int64_t>> written(2);
  const auto write = [&](std::size_t thread) {
    for (std::int64_t i = 0; i < kRows && !complaint.failed(); ++i) {
      auto t = database->begin();
      if (!complaint.expect(t.ok(), "begin")) break;
      const std::int64_t id = i * 2 + static_cast<std::int64_t>(thread);
      const std::string text = long_text(static_cast<std::uint64_t>(id));
      const auto row = t->insert(table, {Value::int64(id), Value::string(text),
                                         Value::int32(static_cast<std::int32_t>(id))});
      if (complaint.expect(row.ok(), "insert: " + row.status().to_string()))
        complaint.expect(t->commit().ok(), "commit");
      written[thread].store(i + 1);
    }
    writers.fetch_sub(1);
  };
  const auto read = [&] {
    while (writers.load() != 0 && !complaint.failed()) {
      const std::int64_t least = written[0].load() + written[1].load();
      auto t = database->begin(AccessMode::kReadOnly);
      if (!complaint.expect(t.ok(), "begin to read")) return;
      const std::int64_t id = (written[0].load() - 1) * 2;
      if (id >= 0 && id / 2 < least / 2) {
        const auto row = t->get({table, 0}, {Value::int64(0)});
        complaint.expect(
            row.ok() && row->get_unchecked<std::string_view>(ColumnId{1}) == long_text(0), "row 0");
      }
      std::int64_t rows = 0;
      const Status status = t->scan(table, {ColumnId{0}, ColumnId{1}}, [&](const ScanBatch& batch) {
        for (std::size_t i = 0; i < batch.row_count(); ++i)
          complaint.expect(
              batch.column_unchecked<std::string_view>(1)[i] ==
                  long_text(static_cast<std::uint64_t>(batch.column_unchecked<std::int64_t>(0)[i])),
              "a row is torn");
        rows += static_cast<std::int64_t>(batch.row_count());
        return true;
      });
      complaint.expect(status.ok() && rows >= least, "rows are missing in a scan");
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 2; ++i) threads.emplace_back(write, i);
  threads.emplace_back(read);
  for (std::thread& thread : threads) thread.join();
  CHECK(complaint.what() == "");
  CHECK(must(database->table_statistics(table)).chunks > 1);
  must(database->check());
  database.reopen();
  must(database->check());
}

TEST_CASE("a hash index that splits hides nothing from look-ups", "[columns]") {
  columns::HashIndex index;
  Complaint complaint;
  constexpr std::uint32_t kEntries = 200000;
  std::atomic<std::uint32_t> inserted{0};
  std::thread writer([&] {
    for (std::uint32_t i = 0; i < kEntries && !complaint.failed(); ++i) {
      index.edit(hash_integer(i), [&](columns::HashIndex::Editor& editor) {
        editor.insert(i);
        return true;
      });
      inserted.store(i + 1, std::memory_order_release);
    }
  });
  const auto read = [&] {
    columns::Candidates candidates;
    std::uint64_t state = 1;
    for (std::uint32_t known = 0; known < kEntries && !complaint.failed();) {
      known = inserted.load(std::memory_order_acquire);
      if (known == 0) continue;
      state = mix64(state + 1);
      const auto wanted = static_cast<std::uint32_t>(state % known);
      index.lookup(hash_integer(wanted), candidates);
      std::size_t found = 0;
      for (const std::uint32_t candidate : candidates.view()) found += candidate == wanted ? 1 : 0;
      complaint.expect(found == 1, "entry " + std::to_string(wanted) + " is found " +
                                       std::to_string(found) + " times");
    }
  };
  std::thread first(read);
  std::thread second(read);
  writer.join();
  first.join();
  second.join();
  CHECK(complaint.what() == "");
  CHECK(index.size() == kEntries);
}

TEST_CASE("when all slots are taken, begin says so and the others go on", "[engine]") {
  TemporaryDatabase database([](OpenOptions& o) { o.slots_max = 2; });
  const TableId table = must(database->create_table(rows_schema("rows")));
  Complaint complaint;
  std::atomic<std::uint64_t> refused{0};
  std::atomic<std::int64_t> committed{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 6; ++thread)
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 1500 && !complaint.failed();) {
        auto t = database->begin();
        if (!t.ok()) {
          complaint.expect(t.code() == StatusCode::kTooManyTransactions, t.status().to_string());
          refused.fetch_add(1);
          std::this_thread::yield();
          continue;
        }
        const auto row =
            t->insert(table, {Value::int64(thread * 10000 + i), Value::null(), Value::int32(1)});
        if (i % 8 == 0) std::this_thread::yield();
        complaint.expect(row.ok() && t->commit().ok(), "insert: " + row.status().to_string());
        committed.fetch_add(1);
        ++i;
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(complaint.what() == "");
  CHECK(refused > 0);
  CHECK(committed == 9000);
  CHECK(database->statistics().transactions_committed == 9000);
  CHECK(database->statistics().transactions_open == 0);
  must(database->check());
}

// Others use a dropped table's space at once: no thread may touch it any more.
TEST_CASE("tables are dropped while readers and writers use them", "[engine]") {
  TemporaryDatabase database;
  Complaint complaint;
  std::atomic<bool> stop{false};
  std::atomic<std::uint32_t> current{must(database->create_table(rows_schema("t0"))).value()};
  std::atomic<std::uint64_t> reads{0};
  const auto work = [&](int thread) {
    for (std::int64_t i = 0; !stop.load() && !complaint.failed(); ++i) {
      const TableId table{current.load()};
      auto t = database->begin();
      if (!complaint.expect(t.ok(), "begin")) return;
      if (thread % 2 == 0) {
        const auto id = Value::int64(i % 50 * 10 + thread);
        const auto row = t->get({table, 0}, {id});
        const Status changed =
            row.ok() ? t->update(*row, {{ColumnId{1}, "x"}}).status()
                     : t->insert(table, {id, std::string_view(long_text(7)), 1}).status();
        if (changed.ok()) complaint.expect(t->commit().ok(), "commit");
      } else {
        const Status status = t->scan(table, {ColumnId{0}}, [&](const ScanBatch& batch) {
          reads.fetch_add(batch.row_count());
          return true;
        });
        complaint.expect(status.ok() || status.code() == StatusCode::kNotFound, status.to_string());
      }
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back(work, i);
  std::size_t failures = 0;
  for (int round = 1; round <= 40; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const TableId old{current.load()};
    const auto fresh = database->create_table(rows_schema("t" + std::to_string(round)));
    failures += fresh.ok() ? 0 : 1;
    if (!fresh.ok()) break;
    current.store(fresh->value());
    failures += database->drop_table(old).ok() ? 0 : 1;
  }
  stop.store(true);
  for (std::thread& thread : threads) thread.join();
  CHECK(failures == 0);
  CHECK(complaint.what() == "");
  CHECK(reads > 0);
  must(database->check());
  const std::uint64_t used = database->statistics().pool_used_bytes;
  database.reopen();
  CHECK(database->statistics().pool_used_bytes == used);
  must(database->check());
}

}  // namespace flugs::test
