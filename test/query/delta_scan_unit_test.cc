#include "query/scan/delta_scan_unit.h"

#include <catch2/catch.hpp>
#include <limits>

#include "engine/database/database_access.h"
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

  explicit LateRows(DeltaLayout layout) {
    TableSchema schema("t");
    schema.column("n", Type::kInt64);
    schema.delta_layout = layout;
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
      must(writer.insert(table_id_, std::vector<Value>{Value::int64(n * 1000)}));
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

RangeCondition within(std::int64_t low, std::int64_t high) {
  RangeCondition range;
  range.low = Value::int64(low);
  range.high = Value::int64(high);
  return range;
}

}  // namespace

TEST_CASE("values newer than the snapshot disturb no block of rows", "[query]") {
  LateRows late(GENERATE(DeltaLayout::kRows, DeltaLayout::kColumns));
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

TEST_CASE("a ValueID out of range is damage if the row counts, for every reader", "[query]") {
  LateRows late(GENERATE(DeltaLayout::kRows, DeltaLayout::kColumns));
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
  CHECK_THROWS_AS(late.unit().values(0, {0, nullptr, LateRows::kLater}, out), Failure);
}

TEST_CASE("bounds at the ends of the integers exclude the right values", "[query]") {
  LateRows late(GENERATE(DeltaLayout::kRows, DeltaLayout::kColumns));
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
