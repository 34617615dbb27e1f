// Transactions right after opening, while a thread sweeps the rows of earlier lives.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdint>
#include <thread>
#include <vector>

#include "test/support/complaint.h"
#include "test/support/random.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

constexpr std::int64_t kIds = 60'000;
constexpr int kWriters = 2;
constexpr int kLives = 3;
constexpr int kStepsPerLife = 2'000 * kEffort;

struct Meadow {
  TemporaryDatabase database{[](OpenOptions& o) { o.index_place = IndexPlace::kPool; }};
  TableId table;
  KeyId key;

  Meadow() {
    TableSchema schema("meadow");
    schema.column("id", Type::kInt64).column("count", Type::kInt64).direct().primary_key({"id"});
    table = must(database->create_table(schema));
    key = {table, 0};
    Transaction t = must(database->begin());
    for (std::int64_t id = 0; id < kIds; ++id)
      must(t.insert(table, {Value::int64(id), Value::int64(0)}));
    must(t.commit());
  }
  /// Sum over ids and counts of all rows that the transaction sees; -1: failed.
  std::int64_t sum(const Transaction& t) const {
    std::int64_t total = 0;
    const Status scanned = t.scan(table, {ColumnId(0), ColumnId(1)}, [&](const ScanBatch& batch) {
      for (const std::int64_t id : batch.column_unchecked<std::int64_t>(0)) total += id;
      for (const std::int64_t count : batch.column_unchecked<std::int64_t>(1)) total += count << 20;
      return true;
    });
    return scanned.ok() ? total : -1;
  }
};

/// Owns the ids that are `number` modulo kWriters: no other thread writes them.
class Gardener {
 public:
  Gardener(Meadow& meadow, int number) : meadow_(meadow), number_(number) {
    for (std::int64_t id = number; id < kIds; id += kWriters) counts_.push_back(0);
  }

  void work(std::uint64_t seed, Complaint& complaint) {
    Random random(seed);
    for (int step = 0; step < kStepsPerLife; ++step) {
      const std::size_t place = random.below(counts_.size());
      const Status s = change(place, random.chance(33));
      if (!complaint.expect(s.ok(), s.to_string())) return;
    }
  }
  /// Every id is as this gardener left it.
  void check(const Transaction& t) const {
    for (std::size_t place = 0; place < counts_.size(); ++place) {
      const Result<Row> row = t.get(meadow_.key, {Value::int64(id_at(place))});
      if (counts_[place] == kGone) {
        REQUIRE(row.code() == StatusCode::kNotFound);
      } else {
        REQUIRE(row.ok());
        REQUIRE(row->get_unchecked<std::int64_t>(ColumnId(1)) == counts_[place]);
      }
    }
  }
  std::size_t present() const {
    return counts_.size() -
           static_cast<std::size_t>(std::count(counts_.begin(), counts_.end(), kGone));
  }

 private:
  static constexpr std::int64_t kGone = -1;

  std::int64_t id_at(std::size_t place) const {
    return number_ + static_cast<std::int64_t>(place) * kWriters;
  }
  Status change(std::size_t place, bool removes) {
    Result<Transaction> t = meadow_.database->begin();
    if (!t.ok()) return t.status();
    const std::int64_t id = id_at(place);
    const std::int64_t next = counts_[place] + 1;
    std::int64_t left = next;
    if (counts_[place] == kGone) {
      if (const auto row = t->insert(meadow_.table, {Value::int64(id), Value::int64(next)});
          !row.ok())
        return row.status();
    } else {
      const Result<Row> row = t->get(meadow_.key, {Value::int64(id)});
      if (!row.ok()) return row.status();
      Status s;
      if (removes) {
        s = t->remove(meadow_.table, row->id());
        left = kGone;
      } else {
        s = t->update(meadow_.table, row->id(), {{ColumnId(1), Value::int64(next)}}).status();
      }
      if (!s.ok()) return s;
    }
    if (Status s = t->commit(); !s.ok()) return s;
    counts_[place] = left;
    return {};
  }

  Meadow& meadow_;
  int number_;
  std::vector<std::int64_t> counts_;
};

}  // namespace

TEST_CASE("transactions go on while rows of earlier lives are swept", "[concurrency]") {
  Meadow meadow;
  std::vector<Gardener> gardeners;
  for (int i = 0; i < kWriters; ++i) gardeners.emplace_back(meadow, i);
  for (int life = 0; life < kLives; ++life) {
    meadow.database.reopen();
    Complaint complaint;
    std::vector<std::thread> threads;
    for (int i = 0; i < kWriters; ++i)
      threads.emplace_back([&, i] {
        gardeners[static_cast<std::size_t>(i)].work(static_cast<std::uint64_t>(life * 10 + i),
                                                    complaint);
      });
    std::atomic<bool> ends{false};
    std::thread reader([&] {
      while (!ends.load()) {
        const Result<Transaction> t = meadow.database->begin(AccessMode::kReadOnly);
        if (!complaint.expect(t.ok(), "begin")) return;
        const std::int64_t first = meadow.sum(*t);
        if (!complaint.expect(meadow.sum(*t) == first && first >= 0, "a snapshot that changes"))
          return;
      }
    });
    for (std::thread& thread : threads) thread.join();
    ends.store(true);
    reader.join();
    INFO(complaint.what());
    REQUIRE_FALSE(complaint.failed());
    {
      const Transaction t = must(meadow.database->begin(AccessMode::kReadOnly));
      for (const Gardener& gardener : gardeners) gardener.check(t);
      std::size_t rows = 0;
      must(t.scan(meadow.table, {ColumnId(0)}, [&](const ScanBatch& batch) {
        rows += batch.row_count();
        return true;
      }));
      REQUIRE(rows == gardeners[0].present() + gardeners[1].present());
    }
    must(meadow.database->check());
  }
  must(meadow.database->finish_opening());
  CHECK(meadow.database->statistics().rows_unswept == 0);
}

}  // namespace flugs::test
