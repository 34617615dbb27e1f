// Columns of numbers give up their dictionaries while other threads write, read, query and merge.
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "bench/support/random.h"
#include "flugs/merge.h"
#include "flugs/query.h"
#include "test/support/complaint.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

constexpr std::int64_t kBatch = 50;
// Distinct values per writer; a dictionary is judged from 2^16 on.
constexpr std::int64_t kRowsOfWriter = kEffort == 1 ? 40'000 : 120'000;

/// Rows (id, a, b) with a = 3 id and b = -a, so that each sum of b is that of a, below zero.
class GrowingTable {
 public:
  GrowingTable() {
    TableSchema schema("growing");
    schema.column("id", Type::kInt64).column("a", Type::kInt64).not_null();
    schema.column("b", Type::kInt32).primary_key({"id"});
    schema.key("by_a", {"a"});
    table = must(database->create_table(schema));
  }

  static std::vector<Value> row_of(std::int64_t id) {
    return {Value::int64(id), Value::int64(3 * id),
            Value::int32(static_cast<std::int32_t>(-3 * id))};
  }

  // Each transaction inserts rows, and writes the same values to an older row; some are undone.
  void write(std::int64_t first, bench::Random& random, Complaint& complaint) {
    for (std::int64_t id = first; id < first + kRowsOfWriter && !complaint.failed(); id += kBatch) {
      for (bool is_in = false; !is_in && !complaint.failed();) {
        auto t = database->begin();
        if (!complaint.expect(t.ok(), "begin")) return;
        Status done = write_batch(*t, first, id, random);
        complaint.expect(done.ok() || done.code() == StatusCode::kConflict,
                         "write: " + done.to_string());
        is_in = done.ok() && random.between(0, 9) != 0 && t->commit().ok();
        if (!is_in) t->abort();
      }
    }
  }

  Status write_batch(Transaction& t, std::int64_t first, std::int64_t id, bench::Random& random) {
    std::vector<Value> values;
    for (std::int64_t n = id; n < id + kBatch - 1; ++n)
      for (const Value& value : row_of(n)) values.push_back(value);
    if (Status s = t.insert_rows(table, values); !s.ok()) return s;
    const auto last = t.insert(table, row_of(id + kBatch - 1));
    if (!last.ok() || id == first) return last.status();
    const auto n = static_cast<std::int64_t>(random.between(first, id - 1));
    const auto row = t.get({table, 0}, {Value::int64(n)});
    if (!row.ok()) return row.status();
    return t.update(table, row->id(), {{ColumnId(1), Value::int64(3 * n)}}).status();
  }

  void read(bench::Random& random, Complaint& complaint) {
    const auto t = database->begin(AccessMode::kReadOnly);
    if (!t.ok()) return;
    using namespace query;
    const auto sums = Query::table("growing")
                          .where(col("a") >= 0)
                          .group_by({}, {sum("a"), sum("b"), count(), count_distinct("a")})
                          .run(*t);
    if (!complaint.expect(sums.ok(), "query: " + sums.status().to_string())) return;
    const std::int64_t rows = sums->get_unchecked(0, 2).raw();
    complaint.expect(
        rows == 0 || sums->get_unchecked(0, 0).raw() == -sums->get_unchecked(0, 1).raw(), "sums");
    complaint.expect(rows % kBatch == 0 && sums->get_unchecked(0, 3).raw() == rows, "rows");
    const auto id = static_cast<std::int64_t>(random.between(0, kRowsOfWriter - 1));
    const auto row = t->get({table, 0}, {Value::int64(id)});
    if (!row.ok()) return;
    complaint.expect(row->get_unchecked<std::int64_t>(ColumnId(1)) == 3 * id &&
                         row->get_unchecked<std::int32_t>(ColumnId(2)) == -3 * id,
                     "a row");
    std::int64_t found = 0;
    const std::vector<Value> a = {Value::int64(3 * id)};
    complaint.expect(t->rows({table, 1}, a,
                             [&](const Row& other) {
                               found += other.id() == row->id() ? 1 : 1000;
                               return true;
                             })
                         .ok(),
                     "rows");
    complaint.expect(found == 1, "by a");
  }

  TemporaryDatabase database;
  TableId table;
};

}  // namespace

TEST_CASE("columns turn direct while others write, read, query and merge", "[concurrency]") {
  GrowingTable world;
  Complaint complaint;
  std::atomic<int> writing{2};
  std::vector<std::thread> threads;
  for (std::int64_t writer = 0; writer < 2; ++writer)
    threads.emplace_back([&, writer] {
      bench::Random random(static_cast<std::uint64_t>(writer) + 1);
      world.write(writer * kRowsOfWriter, random, complaint);
      --writing;
    });
  threads.emplace_back([&] {
    bench::Random random(7);
    while (writing != 0 && !complaint.failed()) world.read(random, complaint);
  });
  threads.emplace_back([&] {
    MergeOptions everything;
    everything.scope = MergeScope::kEverything;
    while (writing != 0 && !complaint.failed()) {
      const auto merged = world.database->merge(world.table, everything);
      complaint.expect(merged.ok() || merged.code() == StatusCode::kBusy,
                       "merge: " + merged.status().to_string());
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  });
  for (std::thread& thread : threads) thread.join();
  // A writer does not wait for a merge before it judges a dictionary, and merges may have been
  // running all the time.
  bench::Random later(3);
  for (std::int64_t more = 2; more < 4; ++more) world.write(more * kRowsOfWriter, later, complaint);
  INFO(complaint.what());
  CHECK_FALSE(complaint.failed());
  const auto statistics = must(world.database->table_statistics(world.table));
  CHECK_FALSE(statistics.columns[1].dictionary_encoded);
  CHECK_FALSE(statistics.columns[2].dictionary_encoded);
  bench::Random random(8);
  world.read(random, complaint);
  must(world.database->check());
  world.database.reopen();
  must(world.database->check());
  world.read(random, complaint);
  CHECK_FALSE(complaint.failed());
}

}  // namespace flugs::test
