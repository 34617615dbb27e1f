// The cost of a transaction at the medium, counted. A change that costs more must change the
// numbers here, and say why it is worth it.
#include <catch2/catch.hpp>
#include <functional>
#include <string>

#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

// Two whole cycles of looking for the oldest snapshot, so that dead rows leave as fast as they
// come.
constexpr std::uint64_t kRounds = 4096;
constexpr std::uint64_t kRoundsBefore = 3 * 4096;

struct Cost {
  double fences = 0;
  double lines = 0;
};

// A table of 32-byte rows (two in a line) and one of long rows, warmed up so that nothing grows
// while counting: slots have their generation, dictionaries their values, and rows come from
// existing chunks.
struct Budget {
  // Without the thread that keeps hints, which has fences of its own.
  MemoryDatabase database{std::size_t{64} << 20, test_index_place(), std::chrono::milliseconds(0)};
  TableId narrow = create("narrow", 1);
  TableId wide = create("wide", 30);
  KeyId narrow_key{narrow, 0};
  std::int64_t next = 0;

  bool has_hints() const { return database.options.index_place == IndexPlace::kPool; }
  /// Expects two fences, and `lines`. Indexes in the pool add a line for each entry, and some more
  /// for full lines on the way to it and for divided segments: 130 lines and three or four fences
  /// for some 200 entries.
  void check(const Cost& cost, double lines, double entries) const {
    if (has_hints()) {
      CHECK(cost.fences >= 2);
      CHECK(cost.fences <= 2 + 0.05 * entries);
      CHECK(cost.lines >= lines + entries);
      CHECK(cost.lines <= lines + 2.25 * entries);
    } else {
      CHECK(cost.fences == 2);
      CHECK(cost.lines == lines);
    }
  }

  Budget() {
    for (int i = 0; i < 100; ++i)
      commit([&](Transaction& t) { insert(t, narrow), insert(t, wide); });
  }

  TableId create(const std::string& name, int values) {
    TableSchema schema(name);
    schema.column("id", Type::kInt64).primary_key({"id"});
    for (int i = 0; i < values; ++i)
      schema.column("v" + std::to_string(i), Type::kInt64).direct().not_null();
    return must(database->create_table(schema));
  }
  RowId insert(Transaction& t, TableId table) {
    std::vector<Value> values(table == narrow ? 2 : 31, Value::int64(1));
    values[0] = Value::int64(next++);
    return must(t.insert(table, values));
  }
  void commit(const std::function<void(Transaction&)>& work) {
    Transaction t = must(database->begin(AccessMode::kReadWrite));
    work(t);
    must(t.commit());
  }
  /// Cost per round after warming up. Rounds in which the pool's used space grows (a chunk, now and
  /// then) are not counted.
  Cost cost(const std::function<void()>& round) {
    std::uint64_t fences = 0;
    std::uint64_t lines = 0;
    std::uint64_t counted = 0;
    for (std::uint64_t i = 0; i < kRoundsBefore; ++i) round();
    for (std::uint64_t i = 0; i < kRounds; ++i) {
      const auto before = database->pool().medium().counters();
      const auto used = database->pool().allocator().space().used_bytes;
      round();
      const auto after = database->pool().medium().counters();
      if (database->pool().allocator().space().used_bytes != used) continue;
      fences += after.fences - before.fences;
      lines += after.lines_flushed - before.lines_flushed;
      ++counted;
    }
    REQUIRE(counted > kRounds / 2);
    const auto n = static_cast<double>(counted);
    return {static_cast<double>(fences) / n, static_cast<double>(lines) / n};
  }
};

}  // namespace

// Lines of every commit: 1 for the intents before the first fence, 1 for the commit record before
// the second; the written rows; the locked MVCC entries; and, in the slot's next commit, the
// entries once more with their time-stamps. Two flushes of one line count twice unless the commit
// joins them, which it does for adjacent rows.
TEST_CASE("an insert takes two fences and four lines", "[budget]") {
  Budget budget;
  const Cost cost =
      budget.cost([&] { budget.commit([&](Transaction& t) { budget.insert(t, budget.narrow); }); });
  budget.check(cost, 2 + 1 + 1, 1);  // record; row; its stamp
}

TEST_CASE("an insert of a long row flushes all lines of it", "[budget]") {
  Budget budget;
  const Cost cost =
      budget.cost([&] { budget.commit([&](Transaction& t) { budget.insert(t, budget.wide); }); });
  // id 32 bits, 30 values of 32 bits and 16 bytes of stamps: 140 bytes, 3 lines; then the stamp's.
  budget.check(cost, 2 + 3 + 1, 1);
}

TEST_CASE("an update takes two fences and seven lines", "[budget]") {
  Budget budget;
  RowId row;
  budget.commit([&](Transaction& t) { row = budget.insert(t, budget.narrow); });
  std::int64_t value = 0;
  const Cost cost = budget.cost([&] {
    budget.commit([&](Transaction& t) {
      row = must(t.update(budget.narrow, row, {{ColumnId{1}, Value::int64(++value % 100)}}));
    });
  });
  CHECK(cost.fences == 2);
  // Record 2; new row 1, old entry 1; both stamps 2; an older version that leaves the indexes 1.
  // Versions side by side share lines: a little less.
  const int hint = budget.has_hints() ? 1 : 0;  // of the new row
  CHECK(cost.lines > 6.5 + hint);
  CHECK(cost.lines <= 2 + 2 + 2 + 1 + hint);
}

TEST_CASE("a deletion takes two fences and five lines", "[budget]") {
  Budget budget;
  std::vector<RowId> rows;
  for (std::uint64_t i = 0; i < kRoundsBefore + kRounds; ++i)
    budget.commit([&](Transaction& t) { rows.push_back(budget.insert(t, budget.narrow)); });
  const Cost cost = budget.cost([&] {
    budget.commit([&](Transaction& t) { must(t.remove(budget.narrow, rows.back())); });
    rows.pop_back();
  });
  CHECK(cost.fences == 2);
  // Record 2, the row's entry 1, its stamp 1, and 1 for a row deleted earlier that leaves the
  // indexes.
  CHECK(cost.lines == Approx(2 + 1 + 1 + 1).margin(0.01));
}

TEST_CASE("many rows in several tables take two fences", "[budget]") {
  Budget budget;
  for (const int rows : {2, 4, 5, 20, 64, 65, 200}) {
    // Blocks for the intents of so many rows are made at the first two.
    for (int i = 0; i < 4; ++i)
      budget.commit([&](Transaction& t) {
        for (int r = 0; r < rows; ++r) budget.insert(t, r % 2 == 0 ? budget.narrow : budget.wide);
      });
    Budget& b = budget;
    const auto before = b.database->pool().medium().counters();
    const auto used = b.database->pool().allocator().space().used_bytes;
    b.commit([&](Transaction& t) {
      for (int r = 0; r < rows; ++r) b.insert(t, r % 2 == 0 ? b.narrow : b.wide);
    });
    INFO(rows << " rows");
    if (b.database->pool().allocator().space().used_bytes == used)
      CHECK(b.database->pool().medium().counters().fences - before.fences == 2);
  }
}

TEST_CASE("a new dictionary value adds its entry to the first fence", "[budget]") {
  Budget budget;
  TableSchema schema("texts");
  schema.column("text", Type::kString).column("number", Type::kInt64);
  const TableId texts = must(budget.database->create_table(schema));
  std::int64_t value = 0;
  const auto insert = [&](bool fresh) {
    budget.commit([&](Transaction& t) {
      const std::string text = fresh ? "t" + std::to_string(++value) : "t1";
      must(t.insert(texts, {Value::string(text), Value::int64(fresh ? value : 1)}));
    });
  };
  for (int i = 0; i < 300; ++i) insert(true);
  const Cost known = budget.cost([&] { insert(false); });
  CHECK(known.fences == 2);
  CHECK(known.lines == 2 + 1 + 1);
  const Cost fresh = budget.cost([&] { insert(true); });
  // Entries of 32 and of 16 bytes, a line each. Their hints are made durable later, by a thread.
  budget.check(fresh, 2 + 1 + 1 + 2, 2);
}

TEST_CASE("a transaction that writes nothing costs no flush", "[budget]") {
  Budget budget;
  RowId row;
  budget.commit([&](Transaction& t) { row = budget.insert(t, budget.narrow); });
  budget.commit([&](Transaction& t) { budget.insert(t, budget.narrow); });
  const Cost reading = budget.cost([&] {
    Transaction t = must(budget.database->begin(AccessMode::kReadOnly));
    must(t.get(budget.narrow_key, {Value::int64(0)}));
    must(t.get(budget.narrow, row));
    must(t.commit());
  });
  CHECK(reading.fences == 0);
  CHECK(reading.lines == 0);
  const Cost empty =
      budget.cost([&] { must(must(budget.database->begin(AccessMode::kReadWrite)).commit()); });
  CHECK(empty.fences == 0);
  CHECK(empty.lines == 0);
  const Cost aborted = budget.cost([&] {
    Transaction t = must(budget.database->begin(AccessMode::kReadWrite));
    budget.insert(t, budget.narrow);
    must(t.update(budget.narrow, row, {{ColumnId{1}, Value::int64(5)}}));
    t.abort();
  });
  CHECK(aborted.fences == 0);
  CHECK(aborted.lines == 0);
  const Cost refused = budget.cost([&] {
    Transaction t = must(budget.database->begin(AccessMode::kReadWrite));
    CHECK(t.insert(budget.narrow, {Value::int64(0), Value::int64(1)}).code() ==
          StatusCode::kAlreadyExists);
  });
  CHECK(refused.fences == 0);
}

}  // namespace flugs::test
