#include "query/scan/main_scan_unit.h"

#include <catch2/catch.hpp>
#include <memory>
#include <vector>

#include "engine/database/database_access.h"
#include "query/scan/table_scan.h"
#include "query/scan/table_view.h"
#include "test/support/main_column_group.h"
#include "test/support/temporary_database.h"

using namespace flugs;
using namespace flugs::query;
using namespace flugs::test;

namespace {

constexpr std::size_t kGroupRows = 5000;

class EveryRow : public MainScanUnit::Rows {
 public:
  std::size_t visible(std::uint32_t, std::size_t count, std::uint64_t* mask) override {
    std::fill_n(mask, (count + 63) / 64, ~std::uint64_t{0});
    return count;
  }
  std::uint32_t id(std::uint32_t place) const noexcept override { return place; }
  bool are_all_visible() const noexcept override { return true; }
  std::uint64_t entries_read() const noexcept override { return 0; }
};

/// A table whose values are also in a row group: integers, a date, a double, two texts.
class GroupWorld {
 public:
  explicit GroupWorld(std::uint64_t seed) : random_(seed) {
    TableSchema schema("t");
    schema.column("i", Type::kInt32).column("n", Type::kInt64).column("many", Type::kInt64);
    schema.column("d", Type::kDate).column("r", Type::kDouble).column("s", Type::kString);
    schema.column("few", Type::kString).column("one", Type::kInt64);
    const TableId id = must(database_->create_table(schema));
    Transaction writer = must(database_->begin());
    for (const ColumnSchema& column : schema.columns) values_.push_back(random_column(column));
    std::vector<Value> rows;
    for (std::size_t row = 0; row < kGroupRows; ++row)
      for (const auto& column : values_) rows.push_back(column[row].view());
    std::vector<RowId> ids(kGroupRows);
    must(writer.insert_rows(id, rows, ids));
    must(writer.commit());
    const engine::Table& table = *engine::DatabaseAccess::core(*database_).table(id);
    view_ = std::make_unique<TableView>(table.data(), visibility_);
    std::vector<const columns::MainColumn*> columns;
    for (std::size_t c = 0; c < values_.size(); ++c) {
      groups_.push_back(std::make_unique<MainColumnGroup>(schema.columns[c].type, values_[c]));
      columns_.push_back(std::make_unique<columns::MainColumn>(groups_.back()->column()));
      columns.push_back(columns_.back().get());
    }
    for (const ColumnInfo& column : view_->schema())
      plain_.push_back({column.name, column.type, nullptr});
    unit_ = std::make_unique<MainScanUnit>("t", view_->schema(), columns,
                                           static_cast<std::uint32_t>(kGroupRows),
                                           std::make_unique<EveryRow>());
  }

  const MainScanUnit& unit() const { return *unit_; }
  const Schema& schema() const { return view_->schema(); }
  const Schema& plain() const { return plain_; }
  const ModelValue& value(std::size_t column, std::size_t row) const {
    return values_[column][row];
  }
  Random& random() { return random_; }

  /// Ascending positions within a range, few or many; empty: all.
  std::vector<std::uint32_t> positions(std::size_t count) {
    std::vector<std::uint32_t> chosen;
    const unsigned percent = random_.chance(50) ? 3 : 60;
    for (std::uint32_t i = 0; i < count; ++i)
      if (random_.chance(percent)) chosen.push_back(i);
    return chosen;
  }

 private:
  std::vector<ModelValue> random_column(const ColumnSchema& column) {
    std::vector<ModelValue> values;
    for (std::size_t row = 0; row < kGroupRows; ++row) {
      const std::int64_t small = static_cast<std::int64_t>(random_.below(60)) - 20;
      Value value = Value::null();
      const std::string text =
          column.name == "few" ? "few " + std::to_string(row / 900)
                               : "a text that can be long " + std::to_string(random_.below(300));
      if (column.name == "many") value = Value::int64(static_cast<std::int64_t>(random_.next()));
      if (column.name == "one") value = Value::int64(42);
      if (column.name == "i") value = Value::int32(static_cast<std::int32_t>(small));
      if (column.name == "n") value = Value::int64(small * 1'000'000'007);
      if (column.name == "d") value = Value::date(static_cast<std::int32_t>(row / 100));
      if (column.name == "r") value = Value::real(static_cast<double>(small) / 8);
      if (column.type == Type::kString) value = Value::string(text);
      if (column.name != "one" && random_.chance(10)) value = Value::null();
      values.push_back(ModelValue::of(column.type, value));
    }
    return values;
  }

  TemporaryDatabase database_;
  Random random_;
  mvcc::Visibility visibility_;
  std::vector<std::vector<ModelValue>> values_;
  std::unique_ptr<TableView> view_;
  Schema plain_;
  std::vector<std::unique_ptr<MainColumnGroup>> groups_;
  std::vector<std::unique_ptr<columns::MainColumn>> columns_;
  std::unique_ptr<MainScanUnit> unit_;
};

/// Describes a difference between a group's totals or extremes and those of its rows.
std::string wrong_totals(GroupWorld& world, std::uint32_t column, std::uint32_t first,
                         std::size_t count, const std::uint64_t* mask) {
  Totals expected;
  ModelValue least;
  ModelValue greatest;
  for (std::uint32_t i = 0; i < count; ++i) {
    const ModelValue& value = world.value(column, first + i);
    if (value.null || (mask != nullptr && (mask[i / 64] >> (i % 64) & 1) == 0)) continue;
    expected.sum += value.raw;
    expected.real_sum += value.view().as_double();
    ++expected.count;
    if (least.null || compare(value, least) < 0) least = value;
    if (greatest.null || compare(greatest, value) < 0) greatest = value;
  }
  const Type type = world.schema()[column].type.type;
  Totals totals;
  Value found_least;
  Value found_greatest;
  const bool adds = world.unit().add_up(column, first, count, mask, totals);
  if (adds == (lane_of(type) == Lane::kText)) return "adds up";
  if (adds && totals.count != expected.count) return "count";
  if (adds && type == Type::kDouble && totals.real_sum != expected.real_sum) return "real sum";
  if (adds && type != Type::kDouble && totals.sum != expected.sum) return "sum";
  if (!world.unit().extremes(column, first, count, mask, found_least, found_greatest))
    return "extremes";
  if (!(ModelValue::of(type, found_least) == least)) return "least";
  if (!(ModelValue::of(type, found_greatest) == greatest)) return "greatest";
  return {};
}

/// Describes a row for which a condition gives another result in the group than by value.
std::string first_difference(GroupWorld& world, const BoundExpr& bound, std::uint32_t slots,
                             std::size_t& narrowed) {
  std::vector<std::uint32_t> columns;
  collect_columns(bound, columns);
  const std::optional<RangeCondition> range = query::range_of(bound);
  Evaluator evaluator(slots);
  for (std::uint32_t first = 0; first < kGroupRows; first += kBatchRows) {
    const std::size_t count = std::min<std::size_t>(kBatchRows, kGroupRows - first);
    Vec memory;
    Batch batch;
    batch.rows = count;
    batch.columns.resize(world.schema().size());
    batch.columns[columns[0]] =
        world.unit().values(columns[0], {first, nullptr, count}, memory, nullptr);
    std::vector<std::uint32_t> chosen(kBatchRows);
    chosen.resize(evaluator.select(bound, batch, chosen.data()));
    std::vector<std::uint64_t> expected(kBatchRows / 64);
    for (const std::uint32_t i : chosen) expected[i / 64] |= std::uint64_t{1} << (i % 64);
    for (const bool by_range : {true, false}) {
      std::vector<std::uint64_t> mask(kBatchRows / 64);
      for (std::size_t i = 0; i < count; ++i) mask[i / 64] |= std::uint64_t{1} << (i % 64);
      const bool done =
          by_range
              ? range &&
                    world.unit().narrow(world.unit().range_of(*range), first, count, mask.data())
              : world.unit().narrow_by_entries(bound, columns[0], slots, first, count, mask.data());
      narrowed += done ? 1 : 0;
      if (done && mask != expected)
        return (by_range ? "by range, rows from " : "by entries, rows from ") +
               std::to_string(first);
    }
    if (range && world.unit().reach(world.unit().range_of(*range)) == ScanUnit::Reach::kNone &&
        !chosen.empty())
      return "a group that was ruled out has rows";
  }
  return {};
}

}  // namespace

TEST_CASE("a group's values and codes are those of its rows") {
  GroupWorld world(1);
  std::size_t wrong = 0;
  for (std::uint32_t first = 0; first < kGroupRows; first += kBatchRows) {
    const std::size_t count = std::min<std::size_t>(kBatchRows, kGroupRows - first);
    for (int round = 0; round < 3; ++round) {
      const std::vector<std::uint32_t> chosen = world.positions(count);
      const bool all = round == 0;
      const RowSelection rows{first, all ? nullptr : chosen.data(), all ? count : chosen.size()};
      for (std::uint32_t c = 0; c < world.schema().size(); ++c) {
        Vec values_memory;
        Vec codes_memory;
        const ColumnView values = world.unit().values(c, rows, values_memory, nullptr);
        const ColumnView codes = world.unit().codes(c, rows, codes_memory);
        const CodeDomain& domain = *world.schema()[c].domain;
        const bool is_text = lane_of(world.schema()[c].type) == Lane::kText;
        for (std::size_t i = 0; i < rows.count; ++i) {
          const ModelValue& expected = world.value(c, first + (all ? i : chosen[i]));
          const bool null = values.nulls != nullptr && values.nulls[i] != 0;
          wrong += null != expected.null;
          wrong += (codes.nulls != nullptr && codes.nulls[i] != 0) != expected.null;
          if (expected.null) continue;
          wrong += is_text ? values.texts()[i] != expected.text : values.ints()[i] != expected.raw;
          wrong += is_text ? domain.text(codes.codes()[i]) != expected.text
                           : domain.integer(codes.codes()[i]) != expected.raw;
        }
      }
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("conditions tested in a group hold for the same rows as by value") {
  GroupWorld world(2);
  const std::vector<Expr> conditions = {col("i") < 5,
                                        col("i") >= 1'000'000'000'000,
                                        col("i") > -1'000'000'000'000,
                                        col("i") != 3,
                                        col("i").is_null(),
                                        col("i").is_not_null(),
                                        7 <= col("i"),
                                        col("n") == 5'000'000'035,
                                        col("n") != 5'000'000'035,
                                        col("many") > 0,
                                        col("many").is_null(),
                                        col("d") <= date(1970, 2, 1),
                                        col("d") == date(2000, 1, 1),
                                        col("r") < 0.5,
                                        col("r") > 1,
                                        col("s") == "a text that can be long 7",
                                        col("s") < "a text that can be long 2",
                                        col("s").ends_with("7"),
                                        col("few").contains("3"),
                                        col("few") != "few 1",
                                        col("one") == 42,
                                        col("one") > 42,
                                        col("i") % 7 == 2,
                                        col("i").in({1, 5, 9}),
                                        year(col("d")) == 1970,
                                        col("s").is_null() || col("s").starts_with("b"),
                                        !(col("r") == 1.5)};
  std::size_t narrowed = 0;
  // ScanUnits recognise conditions by their addresses.
  std::vector<BoundPtr> kept;
  TextStore texts;
  for (const Expr& condition : conditions) {
    INFO(condition.to_string());
    Binder binder(texts, world.plain());
    kept.push_back(binder.bind_condition(condition));
    CHECK(first_difference(world, *kept.back(), binder.slot_count(), narrowed) == "");
  }
  CHECK(narrowed > 60);
}

TEST_CASE("a group adds up its columns, and knows the least and the greatest value") {
  GroupWorld world(3);
  std::vector<std::uint64_t> mask((kGroupRows + 63) / 64);
  for (int round = 0; round < 6; ++round) {
    for (std::uint64_t& word : mask) word = round < 3 ? world.random().next() : 0;
    for (std::uint32_t column = 0; column < world.schema().size(); ++column) {
      INFO(world.schema()[column].name << ", round " << round);
      CHECK(wrong_totals(world, column, 0, kGroupRows, nullptr) == "");
      CHECK(wrong_totals(world, column, 0, kGroupRows, mask.data()) == "");
      CHECK(wrong_totals(world, column, 2048, 1000, mask.data()) == "");
      CHECK(wrong_totals(world, column, 64, 777, nullptr) == "");
    }
  }
}
