#include "query/scan/delta_scan_unit.h"

#include <array>
#include <catch2/catch.hpp>
#include <limits>

#include "engine/database/database_access.h"
#include "flugs/query.h"
#include "query/scan/table_view.h"
#include "query/vectors/failure.h"
#include "test/support/temporary_database.h"

using namespace flugs;
using namespace flugs::query;
using namespace flugs::test;

namespace {

/// A table of one integer column with a dictionary. A transaction sees it after whose snapshot
/// others went on writing into the same chunk.
class LateRows {
 public:
  static constexpr std::int64_t kSeen = 10;
  static constexpr std::int64_t kLater = 20;

  explicit LateRows(DeltaLayout layout, std::vector<std::vector<std::string>> groups = {}) {
    TableSchema schema("t");
    schema.column("n", Type::kInt64).column("m", Type::kInt64);
    schema.delta_layout = layout;
    schema.column_groups = std::move(groups);
    table_id_ = must(database_->create_table(schema));
    insert(0, kSeen);
    const engine::Table& table = *engine::DatabaseAccess::core(*database_).table(table_id_);
    const auto end = table.rows().rows_end();
    const auto* first =
        reinterpret_cast<const mvcc::VersionLayout*>(table.rows().chunk(0, end).rows);
    visibility_ = mvcc::Visibility({}, mvcc::load_stamp(first->created), mvcc::kNoStamp);
    view_ = std::make_unique<TableView>(table.data(), visibility_);
    insert(kSeen, kLater);
    unit_ = view_->units().at(0).get();
    seen_ = unit_->visible(0, unit_->row_count(), &mask_);
  }

  const ScanUnit& unit() const { return *unit_; }
  std::size_t seen() const { return seen_; }
  const std::uint64_t& mask() const { return mask_; }
  std::uint32_t rows() const { return unit_->row_count(); }

 private:
  void insert(std::int64_t first, std::int64_t end) {
    Transaction writer = must(database_->begin());
    for (std::int64_t n = first; n < end; ++n)
      must(writer.insert(table_id_,
                         std::vector<Value>{Value::int64(n * 1000), Value::int64(n % 3)}));
    must(writer.commit());
  }

  TemporaryDatabase database_;
  TableId table_id_;
  mvcc::Visibility visibility_;
  std::unique_ptr<TableView> view_;
  const ScanUnit* unit_ = nullptr;
  std::uint64_t mask_ = 0;
  std::size_t seen_ = 0;
};

/// A table in columns with a full chunk, and what snapshots see of its first part.
class FullChunk {
 public:
  static constexpr std::uint32_t kRows = engine::SeenParts::kRows;
  static constexpr std::int64_t kAll = 9 * kRows;
  using Mask = std::array<std::uint64_t, engine::SeenParts::kWords>;

  FullChunk() {
    TableSchema schema("t");
    schema.column("n", Type::kInt64).primary_key({"n"});
    table_id_ = must(database_->create_table(schema.in_columns()));
    Transaction writer = must(database_->begin());
    for (std::int64_t n = 0; n < kAll; ++n)
      must(writer.insert(table_id_, std::vector<Value>{Value::int64(n)}));
    must(writer.commit());
    while (rows().chunk(chunk_, rows().rows_end(), true).seen == nullptr) ++chunk_;
  }

  /// Whether an answer for the snapshot is kept.
  bool is_kept(Mask& mask, std::uint64_t snapshot = mvcc::kTimestampMax) {
    return rows().chunk(chunk_, rows().rows_end(), true).seen->find(0, snapshot, mask.data());
  }
  /// By a query.
  static std::int64_t count(const Transaction& transaction) {
    const QueryResult result =
        must(Query::table("t").group_by({}, {query::count()}).run(transaction));
    return must(result.get<std::int64_t>(0, 0));
  }
  RowId row(std::uint32_t place) { return RowId(rows().first_row_of(chunk_) + place); }
  std::uint64_t deleted_at(RowId row) {
    return mvcc::load_stamp(rows().version(row.value()).deleted);
  }
  Transaction begin(AccessMode mode = AccessMode::kReadWrite) {
    return must(database_->begin(mode));
  }
  TableId id() const { return table_id_; }

 private:
  const engine::RowStore& rows() {
    return engine::DatabaseAccess::core(*database_).table(table_id_)->data().rows;
  }

  TemporaryDatabase database_;
  TableId table_id_;
  std::size_t chunk_ = 0;
};

RangeCondition within(std::int64_t low, std::int64_t high) {
  RangeCondition range;
  range.low = Value::int64(low);
  range.high = Value::int64(high);
  return range;
}

}  // namespace

TEST_CASE("values newer than the snapshot disturb no block of rows", "[query]") {
  const int layout = GENERATE(0, 1, 2);
  LateRows late(layout == 0 ? DeltaLayout::kRows : DeltaLayout::kColumns,
                layout == 2 ? std::vector<std::vector<std::string>>{{"m", "n"}}
                            : std::vector<std::vector<std::string>>{});
  REQUIRE(late.rows() >= LateRows::kLater);
  REQUIRE(late.seen() == LateRows::kSeen);
  Totals totals;
  REQUIRE(late.unit().add_up(0, 0, late.rows(), &late.mask(), totals));
  CHECK(totals.count == LateRows::kSeen);
  CHECK(totals.sum == 45'000);
  Value least;
  Value greatest;
  const std::uint64_t mask = late.mask();
  REQUIRE(late.unit().extremes(0, 0, late.rows(), &mask, least, greatest));
  CHECK(least.raw() == 0);
  CHECK(greatest.raw() == 9'000);
  std::uint64_t some = mask;
  REQUIRE(late.unit().narrow(late.unit().range_of(within(3'000, 7'500)), 0, late.rows(), &some));
  CHECK(some == (std::uint64_t{0b11111} << 3));
  std::uint64_t one = mask;
  REQUIRE(late.unit().narrow(late.unit().range_of(within(4'000, 4'000)), 0, late.rows(), &one));
  CHECK(one == std::uint64_t{1} << 4);
  std::uint64_t later = mask;  // a value of rows that are not seen
  REQUIRE(late.unit().narrow(late.unit().range_of(within(15'000, 15'000)), 0, late.rows(), &later));
  CHECK(later == 0);
}

TEST_CASE("what a query sees of a part is kept until a transaction writes there", "[query]") {
  FullChunk full;
  FullChunk::Mask all;
  all.fill(~std::uint64_t{0});
  FullChunk::Mask kept;
  const Transaction old = full.begin(AccessMode::kReadOnly);
  CHECK_FALSE(full.is_kept(kept));
  CHECK(FullChunk::count(old) == FullChunk::kAll);
  REQUIRE(full.is_kept(kept));
  CHECK(kept == all);

  // A deletion takes the answer back as soon as it is written. A query that finds its tag keeps
  // none.
  Transaction writer = full.begin();
  must(writer.remove(full.id(), full.row(70)));
  CHECK_FALSE(full.is_kept(kept));
  CHECK(FullChunk::count(full.begin(AccessMode::kReadOnly)) == FullChunk::kAll);
  CHECK_FALSE(full.is_kept(kept));
  must(writer.commit());
  const std::uint64_t deleted_at = full.deleted_at(full.row(70));
  // An older snapshot sees the row, and keeps nothing: a later one does not see it.
  CHECK(FullChunk::count(old) == FullChunk::kAll);
  CHECK_FALSE(full.is_kept(kept));
  FullChunk::Mask without = all;
  without[70 / 64] &= ~(std::uint64_t{1} << (70 % 64));
  CHECK(FullChunk::count(full.begin(AccessMode::kReadOnly)) == FullChunk::kAll - 1);
  REQUIRE(full.is_kept(kept));
  CHECK(kept == without);
  CHECK_FALSE(full.is_kept(kept, deleted_at - 1));
  CHECK(FullChunk::count(old) == FullChunk::kAll);

  // A deletion that is undone changes no row, but its tag was there.
  {
    Transaction undone = full.begin();
    must(undone.remove(full.id(), full.row(3)));
    undone.abort();
  }
  CHECK_FALSE(full.is_kept(kept));
  CHECK(FullChunk::count(full.begin(AccessMode::kReadOnly)) == FullChunk::kAll - 1);
  REQUIRE(full.is_kept(kept));
  CHECK(kept == without);
}

TEST_CASE("a ValueID out of range is damage if the row counts, for every reader", "[query]") {
  const int layout = GENERATE(0, 1, 2);
  LateRows late(layout == 0 ? DeltaLayout::kRows : DeltaLayout::kColumns,
                layout == 2 ? std::vector<std::vector<std::string>>{{"m", "n"}}
                            : std::vector<std::vector<std::string>>{});
  std::uint64_t all = (std::uint64_t{1} << LateRows::kLater) - 1;
  Totals totals;
  CHECK_THROWS_AS(late.unit().add_up(0, 0, late.rows(), &all, totals), Failure);
  Value least;
  Value greatest;
  CHECK_THROWS_AS(late.unit().extremes(0, 0, late.rows(), &all, least, greatest), Failure);
  CHECK_THROWS_AS(late.unit().narrow(late.unit().range_of(within(0, 5)), 0, late.rows(), &all),
                  Failure);
  CHECK_THROWS_AS(late.unit().narrow(late.unit().range_of(within(0, 0)), 0, late.rows(), &all),
                  Failure);
  Vec out;
  CHECK_THROWS_AS(late.unit().values(0, {0, nullptr, LateRows::kLater}, out, nullptr), Failure);
}

TEST_CASE("bounds at the ends of the integers exclude the right values", "[query]") {
  const int layout = GENERATE(0, 1, 2);
  LateRows late(layout == 0 ? DeltaLayout::kRows : DeltaLayout::kColumns,
                layout == 2 ? std::vector<std::vector<std::string>>{{"m", "n"}}
                            : std::vector<std::vector<std::string>>{});
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kGreatest = std::numeric_limits<std::int64_t>::max();
  const auto left = [&](RangeCondition range) {
    std::uint64_t mask = late.mask();
    REQUIRE(late.unit().narrow(late.unit().range_of(range), 0, late.rows(), &mask));
    return std::popcount(mask);
  };
  RangeCondition range = within(kLeast, kGreatest);
  CHECK(left(range) == LateRows::kSeen);
  range.low_excluded = range.high_excluded = true;
  CHECK(left(range) == LateRows::kSeen);
  range = within(kGreatest, kGreatest);
  range.low_excluded = true;
  range.high.reset();
  CHECK(left(range) == 0);
  range = within(kLeast, kLeast);
  range.high_excluded = true;
  range.low.reset();
  CHECK(left(range) == 0);
  range = within(3'000, 5'000);
  range.low_excluded = range.high_excluded = true;
  CHECK(left(range) == 1);
  range = within(5'000, 3'000);
  CHECK(left(range) == 0);
}
