// Threads insert and delete rows of a full pool, in chunks that merges freeze, cannot merge, and
// thaw.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "test/support/complaint.h"
#include "test/support/random.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

constexpr std::int64_t kIdsPerThread = 1'000'000;
constexpr std::size_t kRowsMin = 200;

/// Each row has a text of its own, so it takes more space in a group than beside a dictionary.
class OwnTextsOfThreads {
 public:
  OwnTextsOfThreads()
      : database_([](OpenOptions& options) {
          options.max_bytes = std::uint64_t{8} << 20;
          options.segment_bytes = std::uint64_t{1} << 20;
          options.tuning.grow_ahead_bytes = 0;
          options.slots_max = 8;
          options.merge_policy.automatic = false;
        }) {
    TableSchema schema("texts");
    schema.column("id", Type::kInt64).column("text", Type::kString).primary_key({"id"});
    table_ = must(database_->create_table(schema));
  }
  Database& database() { return *database_; }
  TableId table() const noexcept { return table_; }

  Status insert(Transaction& t, std::int64_t id) const {
    const std::string own = text(id);
    return t.insert(table_, {Value::int64(id), Value::string(own)}).status();
  }
  Status remove(Transaction& t, std::int64_t id) const {
    return t.remove({table_, 0}, {Value::int64(id)});
  }
  bool is_right(const Transaction& t, std::int64_t id) const {
    const Result<Row> row = t.get({table_, 0}, {Value::int64(id)});
    return row.ok() && row->get_unchecked<std::string_view>(ColumnId{1}) == text(id);
  }

 private:
  // Few texts, which come again and again: the dictionary does not grow.
  static std::string text(std::int64_t id) {
    return "the text of row " + std::to_string(id % 15'000) + ", which is a long one";
  }

  TemporaryDatabase database_;
  TableId table_;
};

/// A thread's rows, the oldest first.
class Writer {
 public:
  Writer(OwnTextsOfThreads& texts, int number)
      : texts_(texts), random_(static_cast<std::uint64_t>(number)), next_(number * kIdsPerThread) {}

  /// None if the pool has no room for them.
  void insert(std::size_t rows) {
    Transaction t = must_begin();
    std::vector<std::int64_t> ids;
    for (std::size_t i = 0; i < rows; ++i) {
      ids.push_back(next_++);
      if (!texts_.insert(t, ids.back()).ok()) return;
    }
    if (t.commit().ok()) live_.insert(live_.end(), ids.begin(), ids.end());
  }
  /// Some rows go, and about as many come.
  void change(Complaint& complaint) {
    const std::size_t rows = 1 + random_.below(60);
    Transaction t = must_begin();
    std::vector<std::int64_t> gone;
    for (std::size_t i = 0; i < rows && i + kRowsMin < live_.size(); ++i) {
      if (!complaint.expect(texts_.is_right(t, live_[i]), "a row is gone or another")) return;
      if (!texts_.remove(t, live_[i]).ok()) return;
      gone.push_back(live_[i]);
    }
    if (!complaint.expect(t.commit().ok(), "commit of deletions")) return;
    live_.erase(live_.begin(), live_.begin() + static_cast<std::ptrdiff_t>(gone.size()));
    if (random_.chance(90)) insert(rows + rows / 8);
  }
  std::size_t wrong() {
    const Transaction t = must_begin();
    return static_cast<std::size_t>(
        std::ranges::count_if(live_, [&](std::int64_t id) { return !texts_.is_right(t, id); }));
  }
  std::size_t rows() const noexcept { return live_.size(); }

 private:
  Transaction must_begin() { return texts_.database().begin().value(); }
  OwnTextsOfThreads& texts_;
  Random random_;
  std::int64_t next_;
  std::deque<std::int64_t> live_;
};

}  // namespace

TEST_CASE("no free row of a thawed chunk is given out twice", "[concurrency]") {
  OwnTextsOfThreads texts;
  Complaint complaint;
  std::vector<Writer> writers;
  for (int number = 1; number <= 3; ++number) writers.emplace_back(texts, number);
  while (texts.database().statistics().pool_left_bytes > std::uint64_t{300} << 10)
    for (Writer& writer : writers) writer.insert(100);
  std::atomic<bool> ends{false};
  std::atomic<int> running{3};
  std::vector<std::thread> threads;
  for (Writer& writer : writers)
    threads.emplace_back([&] {
      for (int i = 0; i < rounds_of(40000, 2000) && !complaint.failed(); ++i)
        writer.change(complaint);
      if (running.fetch_sub(1) == 1) ends = true;
    });
  std::uint64_t chunks_left = 0;
  threads.emplace_back([&] {
    MergeOptions everything;
    everything.scope = MergeScope::kEverything;
    everything.threads = 1;
    while (!ends) {
      const Result<MergeReport> report = texts.database().merge(texts.table(), everything);
      complaint.expect(report.ok() || report.code() == StatusCode::kBusy, "merge");
      if (report.ok()) chunks_left += report->chunks_left;
    }
  });
  for (std::thread& thread : threads) thread.join();
  CHECK(complaint.what() == "");
  CHECK(chunks_left > 0);
  for (Writer& writer : writers) {
    CHECK(writer.rows() >= kRowsMin);
    CHECK(writer.wrong() == 0);
  }
  must(texts.database().check());
}

}  // namespace flugs::test
