// Comparisons of values with different units, at the ends of their types: they are exact, and none
// fails.

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "flugs/query.h"
#include "query/vectors/data_type.h"
#include "test/support/temporary_database.h"

using namespace flugs;
using namespace flugs::query;
using flugs::test::must;

namespace {

__extension__ using Int128 = __int128;
using Limits = std::numeric_limits<std::int64_t>;
constexpr std::int64_t kMicrosecondsPerDay = 86'400'000'000;
constexpr std::int64_t kE18 = 1'000'000'000'000'000'000;
constexpr std::int64_t kLastDay = 106'751'991;  // 64 bits of microseconds reach this day

struct Compared {
  const char* name;
  DataType type;
};
const std::vector<Compared> kNumbers = {{"i", {Type::kInt32, 0}},    {"n", {Type::kInt64, 0}},
                                        {"x2", {Type::kDecimal, 2}}, {"y2", {Type::kDecimal, 2}},
                                        {"x9", {Type::kDecimal, 9}}, {"x18", {Type::kDecimal, 18}}};
const std::vector<Compared> kTimes = {
    {"d", {Type::kDate, 0}}, {"e", {Type::kDate, 0}}, {"ts", {Type::kTimestamp, 0}}};

std::vector<Value> values_of(DataType type) {
  std::vector<Value> values{Value::null()};
  std::vector<std::int64_t> raws = {0, 1, -1, 9, 10, -10, 12'345, kLastDay, kLastDay + 1};
  if (type.type != Type::kInt32 && type.type != Type::kDate)
    raws.insert(raws.end(), {Limits::min(), Limits::min() + 1, -kE18, kE18 - 1, kE18, 9 * kE18,
                             Limits::max() - 1, Limits::max(), 1'000, -1'001, 1'234'500'000'000,
                             kLastDay * kMicrosecondsPerDay, -kLastDay * kMicrosecondsPerDay,
                             kMicrosecondsPerDay * 9, kMicrosecondsPerDay * 9 + 1});
  else
    raws.insert(raws.end(), {std::numeric_limits<std::int32_t>::min(), -kLastDay, -kLastDay - 1,
                             std::numeric_limits<std::int32_t>::max()});
  for (const std::int64_t raw : raws) values.push_back(Value::from_raw(type.type, raw));
  return values;
}

/// The value in the smallest unit of all.
Int128 exact(DataType type, const Value& value) {
  if (type.type == Type::kDate) return Int128{value.raw()} * kMicrosecondsPerDay;
  if (type.type == Type::kTimestamp) return value.raw();
  return Int128{value.raw()} * power_of_ten(18u - type.scale);
}

/// Row k has the k-th value of each column; columns with fewer values start again.
class Ends {
 public:
  explicit Ends(bool in_main) {
    TableSchema schema("ends");
    schema.column("id", Type::kInt64).column("i", Type::kInt32).column("n", Type::kInt64);
    schema.column("x2", Type::kDecimal).scale(2).column("y2", Type::kDecimal).scale(2).direct();
    schema.column("x9", Type::kDecimal).scale(9).column("x18", Type::kDecimal).scale(18).direct();
    schema.column("d", Type::kDate).column("e", Type::kDate).direct();
    schema.column("ts", Type::kTimestamp).primary_key({"id"});
    const TableId table = must(database_->create_table(schema));
    Transaction writer = must(database_->begin());
    for (std::size_t k = 0; k < kCount; ++k) {
      std::vector<Value> row{Value::int64(static_cast<std::int64_t>(k))};
      for (const auto* columns : {&kNumbers, &kTimes})
        for (const Compared& column : *columns) row.push_back(at(column, k));
      must(writer.insert(table, row));
    }
    must(writer.commit());
    MergeOptions everything;
    everything.scope = MergeScope::kEverything;
    if (in_main) static_cast<void>(must(database_->merge(table, everything)));
    reader_ = must(database_->begin(AccessMode::kReadOnly));
  }

  static constexpr std::size_t kCount = 29;
  static Value at(const Compared& column, std::size_t row) {
    const std::vector<Value> values = values_of(column.type);
    // A different order for each column, so that unlike values meet.
    return values[(row * (1 + static_cast<std::size_t>(column.name[0]) % 5)) % values.size()];
  }
  QueryResult run(const Query& query) {
    RunOptions options;
    options.threads = 1;
    return must(query.run(reader_, options));
  }
  std::vector<std::int64_t> ids(const Query& query) {
    const QueryResult result = run(query);
    std::vector<std::int64_t> found;
    for (std::size_t row = 0; row < result.row_count(); ++row)
      found.push_back(result.get_unchecked(row, *result.find("id")).raw());
    std::sort(found.begin(), found.end());
    return found;
  }

 private:
  test::TemporaryDatabase database_;
  Transaction reader_;
};

using Holds = std::function<bool(Int128, Int128)>;
struct Operator {
  std::function<Expr(const Expr&, const Expr&)> expr;
  Holds holds;
};
const std::vector<Operator> kOperators = {
    {[](const Expr& a, const Expr& b) { return a == b; }, std::equal_to<>()},
    {[](const Expr& a, const Expr& b) { return a != b; }, std::not_equal_to<>()},
    {[](const Expr& a, const Expr& b) { return a < b; }, std::less<>()},
    {[](const Expr& a, const Expr& b) { return a <= b; }, std::less_equal<>()},
    {[](const Expr& a, const Expr& b) { return a > b; }, std::greater<>()},
    {[](const Expr& a, const Expr& b) { return a >= b; }, std::greater_equal<>()},
};

/// Ids of the rows whose value satisfies `holds`; NULL does not.
std::vector<std::int64_t> expected(const Compared& column,
                                   const std::function<bool(std::size_t, Int128)>& holds) {
  std::vector<std::int64_t> ids;
  for (std::size_t k = 0; k < Ends::kCount; ++k)
    if (const Value value = Ends::at(column, k);
        !value.is_null() && holds(k, exact(column.type, value)))
      ids.push_back(static_cast<std::int64_t>(k));
  return ids;
}

Query ends() { return Query::table("ends"); }

// As filters, which units may test on packed codes.
void check_filters(Ends& world, const Compared& column, const Compared& other) {
  for (const Value& value : values_of(other.type)) {
    const Expr k = constant(value.with_scale(other.type.scale));
    const bool null = value.is_null();
    const Int128 with = null ? 0 : exact(other.type, value);
    INFO(column.name << " and " << k.to_string() << " as " << other.name);
    for (const Operator& op : kOperators)
      CHECK(world.ids(ends().where(op.expr(col(column.name), k))) ==
            expected(column, [&](auto, Int128 v) { return !null && op.holds(v, with); }));
  }
}

// As values, all at once: column on the left, on the right, lists, between.
void check_values(Ends& world, const Compared& column, const Compared& other) {
  const Expr c = col(column.name);
  for (const Value& value : values_of(other.type)) {
    const Expr k = constant(value.with_scale(other.type.scale));
    std::vector<Expr> outputs{c.in({k, k}), c.between(k, k)};
    std::vector<Holds> holds(2, std::equal_to<>());
    for (const Operator& op : kOperators) {
      outputs.push_back(op.expr(c, k));
      holds.push_back(op.holds);
      outputs.push_back(op.expr(k, c));
      holds.push_back([&op](Int128 v, Int128 with) { return op.holds(with, v); });
    }
    std::vector<Item> items{"id"};
    for (std::size_t o = 0; o < outputs.size(); ++o)
      items.emplace_back(outputs[o].as("o" + std::to_string(o)));
    const QueryResult result = world.run(ends().select(items));
    REQUIRE(result.row_count() == Ends::kCount);
    for (std::size_t row = 0; row < Ends::kCount; ++row) {
      const Value v =
          Ends::at(column, static_cast<std::size_t>(result.get_unchecked(row, 0).raw()));
      for (std::size_t o = 0; o < outputs.size(); ++o) {
        INFO(outputs[o].to_string() << " for " << v.to_string());
        const Value truth = result.get_unchecked(row, 1 + o);
        const bool null = v.is_null() || value.is_null();
        REQUIRE(truth.is_null() == null);
        if (!null)
          REQUIRE(truth.as_bool() == holds[o](exact(column.type, v), exact(other.type, value)));
      }
    }
  }
}

void check_columns(Ends& world, const Compared& column, const Compared& other) {
  INFO(column.name << " and " << other.name);
  const auto with_other = [&](const Holds& holds) {
    return expected(column, [&](std::size_t k, Int128 v) {
      const Value value = Ends::at(other, k);
      return !value.is_null() && holds(v, exact(other.type, value));
    });
  };
  const auto has_partner = [&](auto, Int128 v) {
    for (std::size_t k = 0; k < Ends::kCount; ++k)
      if (const Value value = Ends::at(other, k); !value.is_null() && exact(other.type, value) == v)
        return true;
    return false;
  };
  for (const Operator& op : kOperators)
    CHECK(world.ids(ends().where(op.expr(col(column.name), col(other.name)))) ==
          with_other(op.holds));
  const Query right = ends().as("o");
  const std::vector<JoinKey> on = {{column.name, std::string("o.") + other.name}};
  const std::vector<std::int64_t> partners = expected(column, has_partner);
  CHECK(world.ids(ends().semi_join(right, on)) == partners);
  CHECK(world.ids(ends().anti_join(right, on)).size() == Ends::kCount - partners.size());
  CHECK(world.ids(ends().join(right, on).select({"id"}).distinct()) == partners);
  CHECK(
      world.ids(
          ends().left_join(right, on).where(col("o.id").is_not_null()).select({"id"}).distinct()) ==
      partners);
}

}  // namespace

TEST_CASE("numbers of all scales and times compare exactly, and none overflows") {
  Ends delta(false);
  Ends main(true);
  for (const auto* columns : {&kNumbers, &kTimes})
    for (const Compared& column : *columns)
      for (const Compared& other : *columns) {
        check_values(delta, column, other);
        check_columns(delta, column, other);
        if (has_other_unit(column.type, other.type)) check_filters(main, column, other);
      }
}

TEST_CASE("a constant of another unit becomes a range that row groups can test") {
  Ends world(true);
  for (const Expr& condition :
       {col("x18") < 10, col("x2") < constant(Value::decimal(12'345, 4)), col("x9") >= -10,
        col("ts") > date(1970, 1, 9), col("e") < timestamp(1970, 1, 9, 12),
        col("y2") == constant(Value::decimal(10'000, 3))}) {
    INFO(condition.to_string());
    CHECK(world.run(ends().where(condition)).explain().find("on packed codes") !=
          std::string::npos);
  }
}

TEST_CASE("a list of doubles and exact numbers compares like single constants") {
  Ends world(false);
  const std::int64_t odd = (std::int64_t{1} << 53) + 1;
  const Expr n = col("n") * 0 + odd;
  CHECK(world.ids(ends().where(n.in({odd, 2.5}))).size() ==
        expected(kNumbers[1], [](auto, auto) { return true; }).size());
  CHECK(world.ids(ends().where(n.in({odd - 1, 2.5}))).empty());
  CHECK(world.ids(ends().where(!n.in({odd - 1, 2.5, constant(Value::null())}))).empty());
  CHECK(world.ids(ends().where(constant(Value::null()).in({"a"}))).empty());
}
