#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "columns/main/main_kernels.h"
#include "test/query/naive.h"
#include "test/support/random.h"
#include "test/support/temporary_database.h"

using namespace flugs;
using namespace flugs::query;
using namespace flugs::test;
using columns::KernelRoute;

namespace {

constexpr std::size_t kRowsPerGroup = 1000;

/// A table in several row groups. Some have the same codes and others do not, some have deleted
/// rows and others none, and the delta has rows. Also has what a transaction must see.
class GroupedTable {
 public:
  explicit GroupedTable(std::uint64_t seed) : random_(seed) {
    schema_.column("id", Type::kInt64).column("k", Type::kInt32).not_null();
    schema_.column("n", Type::kInt64).direct().column("s", Type::kString).column("b", Type::kBool);
    schema_.column("v", Type::kInt32).not_null().column("w", Type::kInt32).direct();
    schema_.column("wide", Type::kInt64).direct().column("r", Type::kDouble);
    schema_.column("x", Type::kDecimal).scale(2).column("day", Type::kDate).not_null();
    schema_.column("u", Type::kString).direct().primary_key({"id"});
    table_ = must(database_->create_table(schema_));
    for (const ColumnSchema& column : schema_.columns) {
      relation_.names.push_back(column.name);
      relation_.types.push_back({column.type, column.scale});
    }
    for (int i = 0; i < 12; ++i)
      texts_.push_back((i % 2 == 0 ? "text " : "a text of more than fifteen bytes ") +
                       std::to_string(i));
    // Groups 0 to 2 have the same keys, 3 has others, 4 and 5 have NULLs.
    for (group_ = 0; group_ < 6; ++group_) {
      insert(kRowsPerGroup);
      MergeOptions options;
      options.scope = MergeScope::kEverything;
      must(database_->merge(table_, options));
    }
    remove_some(2 * kRowsPerGroup, 3 * kRowsPerGroup);
    group_ = 7;
    insert(300);
    reader_.emplace(must(database_->begin()));
    const Relation seen = relation_;
    remove_some(0, kRowsPerGroup);  // the reader still sees them
    relation_ = seen;
  }

  const Transaction& reader() const { return *reader_; }

  /// Runs the query with one and two threads, and naively; returns the last text of explain().
  std::string check(const Query& query, bool ordered = false) {
    const std::string expected =
        text_of(run_naively(*query.node(),
                            [&](const std::string&) -> const Relation& { return relation_; }),
                ordered);
    std::string how;
    for (const std::uint32_t threads : {1u, 2u}) {
      RunOptions options;
      options.threads = threads;
      const QueryResult result = must(query.run(*reader_, options));
      how = result.explain();
      INFO(how);
      REQUIRE(text_of(relation_of(result), ordered) == expected);
    }
    return how;
  }

 private:
  Value value_of(const ColumnSchema& column) {
    const std::int64_t step = group_ == 3 ? 5 : 0;
    const auto small = static_cast<std::int64_t>(random_.below(9)) + step;
    if (column.nullable && group_ >= 4 && random_.chance(8)) return Value::null();
    if (column.name == "k") return Value::int32(static_cast<std::int32_t>(small) - 3);
    if (column.name == "n") return Value::int64(small * 7);
    if (column.name == "s") return Value::string(texts_[static_cast<std::size_t>(small) % 12]);
    if (column.name == "b") return Value::boolean(small % 2 == 0);
    if (column.name == "v") return Value::int32(static_cast<std::int32_t>(random_.below(100'000)));
    if (column.name == "w") return Value::int32(static_cast<std::int32_t>(random_.below(40'000)));
    if (column.name == "r") return Value::real(static_cast<double>(small) / 4 - 1);
    if (column.name == "x")
      return Value::decimal_units(static_cast<std::int64_t>(random_.below(1u << 30)) << group_);
    if (column.name == "day")
      return Value::date(static_cast<std::int32_t>(relation_.rows.size() / 100));
    if (column.name == "u") return Value::string(texts_[random_.below(12)]);
    return Value::int64(static_cast<std::int64_t>(random_.next() >> 4));
  }

  void insert(std::size_t rows) {
    Transaction writer = must(database_->begin());
    for (std::size_t i = 0; i < rows; ++i) {
      std::vector<Value> values{Value::int64(static_cast<std::int64_t>(ids_.size()))};
      std::vector<Cell> cells;
      for (std::size_t c = 1; c < schema_.columns.size(); ++c)
        values.push_back(value_of(schema_.columns[c]));
      for (std::size_t c = 0; c < values.size(); ++c)
        cells.push_back(Cell::of({schema_.columns[c].type, schema_.columns[c].scale}, values[c]));
      relation_.rows.push_back(std::move(cells));
      ids_.push_back(must(writer.insert(table_, values)));
    }
    must(std::move(writer).commit());
  }

  // Removes one row in ten, by number; numbers count all rows ever inserted.
  void remove_some(std::size_t first, std::size_t end) {
    Transaction writer = must(database_->begin());
    for (std::size_t row = end; row-- > first;) {
      if (!random_.chance(10)) continue;
      must(writer.remove(table_, ids_[row]));
      relation_.rows.erase(relation_.rows.begin() + static_cast<std::ptrdiff_t>(row));
    }
    must(std::move(writer).commit());
  }

  TemporaryDatabase database_;
  Random random_;
  TableSchema schema_{"t"};
  TableId table_;
  std::vector<std::string> texts_;
  int group_ = 0;
  std::vector<RowId> ids_;
  Relation relation_;
  std::optional<Transaction> reader_;
};

Query t() { return Query::table("t"); }

bool says(const std::string& how, const std::string& what) {
  return how.find(what) != std::string::npos;
}

// Calls `body` for every route of this processor.
template <typename Body>
void for_routes(const Body& body) {
  const KernelRoute best = columns::kernel_route();
  for (const KernelRoute route : {KernelRoute::kPlain, KernelRoute::kAvx2, KernelRoute::kAvx512}) {
    if (!columns::force_kernel_route(route)) continue;
    INFO("route " << static_cast<int>(route));
    body();
  }
  columns::force_kernel_route(best);
}

}  // namespace

TEST_CASE("grouping by the codes of row groups and by value gives the same") {
  GroupedTable table(1);
  const std::vector<Aggregate> all = {count(),    sum("v"), count("w"), sum("w"), sum("x"),
                                      min("v"),   max("w"), sum("r"),   sum("n"), min("day"),
                                      count("s"), avg("r"), max("wide")};
  for_routes([&] {
    for (const char* key : {"k", "n", "s", "b", "r", "day", "u"}) {
      INFO(key);
      CHECK(says(table.check(t().group_by({key}, all)), "rows by codes of their row groups"));
      table.check(t().group_by({key}, {count()}));
      table.check(t().where(col("v") < 50'000).group_by({key}, all));
      table.check(t().where(col("v") < 300).group_by({key, col("b").as("b2")}, all));
      table.check(t().where(col("v") % 3 == 1).group_by({key}, {sum("v"), count("w")}));
      table.check(t().select({key}).distinct());
    }
    table.check(t().group_by({"k", "s", "b"}, all));
    table.check(t().group_by({"w"}, {count(), sum("v")}));
    // Aggregates that are not computed by code.
    table.check(t().group_by({"k"}, {count_distinct("v"), variance("w"), min("s")}));
    table.check(t().group_by({"k"}, {sum(col("v") + 1), sum("w")}));
  });
}

TEST_CASE("sums by codes do not overflow, and very wide values are not summed by codes") {
  GroupedTable table(2);
  CHECK(says(table.check(t().group_by({"k"}, {sum("x"), count("x")})), "rows by codes"));
  // Values of 60 bits have no room for a count beside them.
  CHECK_FALSE(says(table.check(t().group_by({"k"}, {avg("wide")})), "rows by codes"));
}

TEST_CASE("distinct values are counted by marks, bits or hashes") {
  GroupedTable table(3);
  for_routes([&] {
    for (const char* column : {"id", "k", "n", "s", "b", "v", "w", "wide", "r", "x", "day", "u"}) {
      INFO(column);
      table.check(t().group_by({}, {count_distinct(column)}));
      table.check(t().group_by({}, {count_distinct(column), sum("v"), count()}));
      table.check(t().where(col("w") < 9000).group_by({}, {count_distinct(column)}));
      table.check(t().where(col("w") % 7 == 2).group_by({}, {count_distinct(column)}));
      table.check(t().where(col("id") < 0).group_by({}, {count_distinct(column)}));
    }
  });
  CHECK(says(table.check(t().group_by({}, {count_distinct("v")})), "a bit for each of"));
  CHECK(says(table.check(t().group_by({}, {count_distinct("w")})), "integers"));
  CHECK_FALSE(says(table.check(t().group_by({}, {count_distinct("wide")})), "a bit for each of"));
}

TEST_CASE("a row group whose rows are all wanted is taken as a whole") {
  GroupedTable table(4);
  const std::string how = table.check(
      t().group_by({}, {count(), count("w"), min("v"), max("w"), min("s"), max("r"), min("wide")}));
  INFO(how);
  CHECK(says(how, "8 row groups as a whole"));  // two of them have deletions
  CHECK(says(table.check(t().where(col("day") >= date(1970, 1, 1)).group_by({}, {max("v")})),
             "8 row groups as a whole"));
  CHECK_FALSE(
      says(table.check(t().where(col("v") > 50'000).group_by({}, {max("v")})), "as a whole"));
}

TEST_CASE("the search for the first rows begins with the best row groups") {
  GroupedTable table(5);
  for_routes([&] {
    for (const char* key : {"id", "v", "day", "wide", "w", "b"}) {
      INFO(key);
      for (const std::uint64_t limit : {10u, 900u}) {
        for (const bool down : {false, true}) {
          const Query sorted = t().order_by({SortKey(key, down)}).limit(limit).select({key});
          table.check(sorted, true);
          table.check(t().order_by({SortKey(key, down), "id"}).limit(limit, 3), true);
        }
      }
      table.check(t().where(col("v") > 500 && col("w") % 5 == 1)
                      .select({col(key).as("renamed"), "id"})
                      .where(col("id") % 2 == 0)
                      .order_by({desc("renamed"), "id"})
                      .limit(20),
                  true);
    }
  });
  CHECK(says(table.check(t().order_by({desc("day"), "id"}).limit(5), true), "skipped"));
  // Some rows are taken before any bound is known.
  RunOptions one;
  one.threads = 1;
  const QueryResult first = must(t().order_by({desc("id")}).limit(5).run(table.reader(), one));
  CHECK(first.statistics().rows_skipped >= 3 * kRowsPerGroup);
  const QueryResult last =
      must(t().select({"id"}).order_by({"id"}).limit(5).run(table.reader(), one));
  CHECK(last.statistics().rows_skipped >= 3 * kRowsPerGroup);
  // NULL comes first, wherever it is.
  const QueryResult nulls = must(t().order_by({"w"}).limit(5).run(table.reader()));
  CHECK(nulls.get_unchecked(4, *nulls.find("w")).is_null());
}
