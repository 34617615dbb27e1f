// Chunks that a merge of a full pool leaves as they are take new rows again.
#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <vector>

#include "flugs/database.h"
#include "test/support/random.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

/// Each row has a text of its own, so it takes more space in a group than beside a dictionary.
class OwnTexts {
 public:
  OwnTexts()
      : database_([](OpenOptions& options) {
          options.max_bytes = std::uint64_t{8} << 20;
          options.segment_bytes = std::uint64_t{1} << 20;
          options.tuning.grow_ahead_bytes = 0;
          options.slots_max = 4;
          options.index_place = IndexPlace::kDram;
          options.merge_policy.automatic = false;
        }) {
    TableSchema schema("texts");
    schema.column("id", Type::kInt64).column("text", Type::kString).primary_key({"id"});
    table_ = must(database_->create_table(schema));
  }

  /// Rows [first, end), 100 to a transaction.
  Status insert(std::int64_t first, std::int64_t end) {
    for (std::int64_t id = first; id < end;) {
      Transaction t = must(database_->begin());
      for (const std::int64_t last = std::min(end, id + 100); id < last; ++id) {
        const std::string own = text(id);
        if (Status s = t.insert(table_, {Value::int64(id), Value::string(own)}).status(); !s.ok())
          return s;
      }
      if (Status s = t.commit(); !s.ok()) return s;
      for (; count_ < id;) live_.insert(count_++);
    }
    return {};
  }
  /// Until little room is left, but no write was refused.
  void fill() {
    while (database_->statistics().pool_left_bytes > std::uint64_t{400} << 10)
      must(insert(count_, count_ + 100));
  }
  /// Every third row of those that live, 50 to a transaction.
  void remove_each_third() {
    std::vector<std::int64_t> gone;
    for (const std::int64_t id : live_)
      if (id % 3 == 0) gone.push_back(id);
    for (std::size_t i = 0; i < gone.size();) {
      Transaction t = must(database_->begin());
      for (const std::size_t last = std::min(gone.size(), i + 50); i < last; ++i) {
        must(t.remove({table_, 0}, {Value::int64(gone[i])}));
        live_.erase(gone[i]);
      }
      must(t.commit());
    }
  }
  MergeReport merge() {
    MergeOptions everything;
    everything.scope = MergeScope::kEverything;
    everything.threads = 1;
    return must(database_->merge(table_, everything));
  }
  TableStatistics statistics() { return must(database_->table_statistics(table_)); }
  std::int64_t count() const noexcept { return count_; }
  void check() {
    must(database_->check());
    const Transaction t = must(database_->begin(AccessMode::kReadOnly));
    std::size_t wrong = 0;
    for (std::int64_t id = 0; id < count_; ++id) {
      const Result<Row> row = t.get({table_, 0}, {Value::int64(id)});
      wrong += row.ok() != live_.contains(id) ||
                       (row.ok() && row->get_unchecked<std::string_view>(ColumnId{1}) != text(id))
                   ? 1
                   : 0;
    }
    CHECK(wrong == 0);
  }

 private:
  static std::string text(std::int64_t id) {
    return std::to_string(id) + Random(static_cast<std::uint64_t>(id)).noise(60);
  }

  TemporaryDatabase database_;
  TableId table_;
  std::int64_t count_ = 0;
  std::set<std::int64_t> live_;
};

}  // namespace

TEST_CASE("free rows of chunks that a merge leaves take new rows", "[space]") {
  OwnTexts texts;
  texts.fill();
  texts.remove_each_third();
  // Now the slot has a list of free rows, some of them in chunks that the merge freezes.
  must(texts.insert(texts.count(), texts.count() + 10));
  const MergeReport report = texts.merge();
  CHECK(report.chunks_left > 0);
  const TableStatistics before = texts.statistics();
  CHECK(before.rows_free > 1000);
  must(texts.insert(texts.count(), texts.count() + std::int64_t(before.rows_free)));
  CHECK(texts.statistics().rows_reserved == before.rows_reserved);
  texts.check();
  // Once more, with rows that die in a thawed chunk.
  texts.remove_each_third();
  CHECK(texts.merge().chunks_left > 0);
  must(texts.insert(texts.count(), texts.count() + 1000));
  texts.check();
}

}  // namespace flugs::test
