// A merge leaves room for rows: what only makes something faster does not take it.
#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "flugs/database.h"
#include "flugs/pool_check.h"
#include "test/support/random.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

constexpr std::uint64_t kMegabyte = std::uint64_t{1} << 20;
constexpr std::uint64_t kRowsPerBatch = 200;

/// A table in a small pool whose groups have records, as it has many columns of numbers that cannot
/// be packed.
class WideTable {
 public:
  explicit WideTable(const TemporaryPath& path) {
    options_.path = path.string();
    options_.max_bytes = 16 * kMegabyte;
    options_.segment_bytes = kMegabyte;
    options_.tuning.grow_ahead_bytes = 0;
    options_.slots_max = 4;
    options_.merge_policy.automatic = false;
    database_.emplace(must(Database::open(options_)));
    TableSchema schema("wide");
    schema.column("id", Type::kInt64).primary_key({"id"});
    for (int i = 0; i < 9; ++i)
      schema.column("c" + std::to_string(i), Type::kInt64,
                    {.not_null = true, .encoding = Encoding::kDirect});
    table_ = must(database_->create_table(schema));
  }

  static std::vector<Value> row(std::uint64_t number) {
    Random drawn(number);
    std::vector<Value> values{Value::int64(static_cast<std::int64_t>(number))};
    for (int c = 0; c < 9; ++c)
      values.push_back(Value::int64(static_cast<std::int64_t>(drawn.next())));
    return values;
  }
  Status insert_batch() {
    Transaction t = must(database_->begin());
    for (std::uint64_t i = 0; i < kRowsPerBatch; ++i) {
      if (Status s = t.insert(table_, row(count_ + i)).status(); !s.ok()) return s;
    }
    if (Status s = t.commit(); !s.ok()) return s;
    count_ += kRowsPerBatch;
    return {};
  }
  /// One transaction that fails for lack of room, and is undone.
  Status insert_without_end() {
    Transaction t = must(database_->begin());
    for (std::uint64_t i = 0;; ++i)
      if (Status s = t.insert(table_, row(i)).status(); !s.ok()) return s;
  }
  /// Until the pool has no room, and two merges make none either.
  std::uint64_t fill_with_merges() {
    for (int merges = 0;;) {
      const Status inserted = insert_batch();
      if (inserted.ok()) continue;
      REQUIRE(inserted.code() == StatusCode::kOutOfSpace);
      if (merges++ == 2) return count_;
      static_cast<void>(merge());
    }
  }
  MergeReport merge() {
    MergeOptions everything;
    everything.scope = MergeScope::kEverything;
    everything.threads = 1;
    return must(database_->merge(table_, everything));
  }
  Statistics statistics() const { return database_->statistics(); }
  TableStatistics table_statistics() const { return must(database_->table_statistics(table_)); }
  std::uint64_t count() const noexcept { return count_; }
  void reopen() {
    database_.reset();
    database_.emplace(must(Database::open(options_)));
    table_ = must(database_->find_table("wide"));
  }
  void remove_all() {
    Transaction t = must(database_->begin());
    for (std::uint64_t i = 0; i < count_; ++i)
      must(t.remove({table_, 0}, {Value::int64(static_cast<std::int64_t>(i))}));
    must(t.commit());
  }
  void check() {
    must(database_->check());
    Transaction t = must(database_->begin(AccessMode::kReadOnly));
    for (std::uint64_t i = 0; i < count_; i += 7) {
      const Row row = must(t.get({table_, 0}, {Value::int64(static_cast<std::int64_t>(i))}));
      Random drawn(i);
      REQUIRE(must(row.get(ColumnId{1})).as_int64() == static_cast<std::int64_t>(drawn.next()));
    }
  }

 private:
  OpenOptions options_;
  std::optional<Database> database_;
  TableId table_;
  std::uint64_t count_ = 0;
};

TEST_CASE("a table that was merged early holds as many rows as one that was not", "[space]") {
  const TemporaryPath path;
  std::uint64_t unmerged = 0;
  {
    WideTable table(path);
    while (table.insert_batch().ok()) {
    }
    unmerged = table.count();
  }
  const TemporaryPath other;
  WideTable merged(other);
  while (merged.statistics().pool_left_bytes > 6 * kMegabyte) REQUIRE(merged.insert_batch().ok());
  const std::uint64_t delta = merged.table_statistics().delta_bytes;
  static_cast<void>(merged.merge());
  CHECK(merged.table_statistics().main_bytes > delta);  // with records
  CHECK(merged.fill_with_merges() >= unmerged / 100 * 97);
  const TableStatistics full = merged.table_statistics();
  CHECK(full.main_bytes < full.group_rows * 90);  // ten numbers of 8 bytes each, without records
  merged.check();
}

TEST_CASE("a merge of a full pool leaves no less room than before", "[space]") {
  const TemporaryPath path;
  WideTable table(path);
  while (table.insert_batch().ok()) {
  }
  const std::uint64_t left = table.statistics().pool_left_bytes;
  static_cast<void>(table.merge());
  CHECK(table.statistics().pool_left_bytes >= left);
  table.check();
}

// Its rows were in chunks that nothing else uses. After a restart these lie behind the table's
// rows.
TEST_CASE("a merge gives back what an undone transaction took", "[space]") {
  const TemporaryPath path;
  WideTable table(path);
  const std::uint64_t left = table.statistics().pool_left_bytes;
  REQUIRE(table.insert_without_end().code() == StatusCode::kOutOfSpace);
  REQUIRE(table.statistics().pool_left_bytes < kMegabyte);
  if (GENERATE(false, true)) table.reopen();
  static_cast<void>(table.merge());
  // Hash indexes do not shrink, and some free rows stay.
  CHECK(table.statistics().pool_left_bytes + 4 * kMegabyte > left);
  CHECK(table.table_statistics().delta_bytes < 2 * kMegabyte);
  while (table.insert_batch().ok()) {
  }
  CHECK(table.count() > 60'000);
  table.check();
}

TEST_CASE("index runs without rows go, also if they serve", "[space]") {
  const TemporaryPath path;
  WideTable table(path);
  for (int i = 0; i < 20; ++i) must(table.insert_batch());
  static_cast<void>(table.merge());
  REQUIRE(table.table_statistics().index_run_bytes > 0);
  const bool serves = GENERATE(false, true);
  if (serves) table.reopen();
  table.remove_all();
  static_cast<void>(table.merge());
  CHECK(table.table_statistics().group_rows == 0);
  CHECK(table.table_statistics().index_run_bytes == 0);
  table.reopen();
  must(table.insert_batch());
}

}  // namespace
}  // namespace flugs::test
