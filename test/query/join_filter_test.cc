// Rows of a join's left side without a partner are dropped by the scan that reads them.
#include <catch2/catch.hpp>
#include <string>

#include "flugs/query.h"
#include "test/support/temporary_database.h"

using namespace flugs;
using namespace flugs::query;
using flugs::test::must;

namespace {

constexpr std::int64_t kParts = 200'000;

/// `parts`: id, `kind`, of which there are 50,000 and NULL, and `weight`; half of them in main.
/// `few`: kinds 100, 200 and so on up to 1000, one of them twice. The tests only read it.
class Warehouse {
 public:
  Warehouse() {
    TableSchema parts("parts");
    parts.column("id", Type::kInt64).column("kind", Type::kInt32).column("weight", Type::kDouble);
    const TableId table = must(database_->create_table(parts.primary_key({"id"})));
    fill(table, 0, kParts / 2);
    MergeOptions everything;
    everything.scope = MergeScope::kEverything;
    static_cast<void>(must(database_->merge(table, everything)));
    fill(table, kParts / 2, kParts);
    TableSchema few("few");
    few.column("wanted", Type::kInt64).column("name", Type::kString);
    const TableId wanted = must(database_->create_table(few));
    Transaction writer = must(database_->begin());
    for (std::int64_t i = 1; i <= 11; ++i)
      must(writer.insert(
          wanted, {Value::int64(std::min<std::int64_t>(i, 10) * 100), Value::string("wanted")}));
    must(writer.insert(wanted, {Value::null(), Value::string("NULL")}));
    must(writer.commit());
    reader_ = must(database_->begin(AccessMode::kReadOnly));
  }

  QueryResult run(const Query& query) {
    RunOptions options;
    options.threads = 2;
    return must(query.run(reader_, options));
  }

 private:
  void fill(TableId table, std::int64_t first, std::int64_t end) {
    Transaction writer = must(database_->begin());
    for (std::int64_t id = first; id < end; ++id)
      must(writer.insert(table, {Value::int64(id), kind(id), Value::real(double(id % 7))}));
    must(writer.commit());
  }
  static Value kind(std::int64_t id) {
    return id % 10 == 9 ? Value::null() : Value::int32(static_cast<std::int32_t>(id % 50'000));
  }

  test::TemporaryDatabase database_;
  Transaction reader_;
};

Warehouse& the_house() {
  static Warehouse house;
  return house;
}

Query every_part() { return Query::table("parts"); }
Query wanted_kinds() { return Query::table("few"); }
const std::vector<JoinKey> kOn = {{"kind", "wanted"}};

bool is_filtered(const QueryResult& result) {
  return result.explain().find("keys of a join") != std::string::npos;
}

}  // namespace

TEST_CASE("an inner and a semi join drop rows without a partner where they are read") {
  Warehouse& house = the_house();
  const QueryResult pairs = house.run(every_part().join(wanted_kinds(), kOn));
  CHECK(pairs.row_count() == 4 * 11);  // each kind has four parts
  CHECK(is_filtered(pairs));
  CHECK(pairs.statistics().rows_selected < 100);
  const QueryResult some = house.run(every_part().semi_join(wanted_kinds(), kOn));
  CHECK(some.row_count() == 4 * 10);
  CHECK(some.statistics().rows_selected < 100);
}

TEST_CASE("a left and an anti join need the rows without a partner") {
  Warehouse& house = the_house();
  const QueryResult all = house.run(every_part().left_join(wanted_kinds(), kOn));
  CHECK(all.row_count() == kParts + 4);
  CHECK_FALSE(is_filtered(all));
  const QueryResult others = house.run(every_part().anti_join(wanted_kinds(), kOn));
  CHECK(others.row_count() == kParts - 4 * 10);
  CHECK_FALSE(is_filtered(others));
}

TEST_CASE("the filter goes through what passes the column on, and not through what changes it") {
  Warehouse& house = the_house();
  const Query behind = every_part()
                           .select({col("kind").as("k"), "id"})
                           .where(col("id") % 2 == 0)
                           .join(wanted_kinds().select({col("wanted").as("w")}), {{"k", "w"}});
  const QueryResult passed = house.run(behind);
  CHECK(passed.row_count() == 4 * 11);
  CHECK(is_filtered(passed));
  const Query chain =
      every_part().join(every_part().select({col("id").as("other")}), {{"id", "other"}});
  const QueryResult chained = house.run(chain.join(wanted_kinds(), kOn));
  CHECK(chained.row_count() == 4 * 11);
  CHECK(is_filtered(chained));
  const Query changed = every_part().select({(col("kind") + 100).as("k")});
  const QueryResult computed = house.run(changed.join(wanted_kinds(), {{"k", "wanted"}}));
  CHECK(computed.row_count() == 4 * 11);
  CHECK_FALSE(is_filtered(computed));
  const QueryResult limited = house.run(every_part().limit(kParts).join(wanted_kinds(), kOn));
  CHECK(limited.row_count() == 4 * 11);
  CHECK_FALSE(is_filtered(limited));
}

TEST_CASE("a right side without rows, or with nearly all keys, needs no filter to be right") {
  Warehouse& house = the_house();
  const Query nothing = wanted_kinds().where(col("wanted") < 0);
  CHECK(house.run(every_part().join(nothing, kOn)).row_count() == 0);
  const Query all = every_part().select({col("id").as("every")});
  const QueryResult joined = house.run(every_part().semi_join(all, {{"kind", "every"}}));
  CHECK(joined.row_count() == kParts / 10 * 9);
  CHECK_FALSE(is_filtered(joined));
}

TEST_CASE("a scan leaves a filter out that drops few rows") {
  Warehouse& house = the_house();
  // Each part that the filter tests has a partner.
  const Query right =
      every_part().where(col("id") < 50'000 && col("id") % 5 != 4).select({col("id").as("every")});
  const Query left = every_part().where(col("kind") % 5 != 4);
  const QueryResult found = house.run(left.semi_join(right, {{"kind", "every"}}));
  CHECK(found.row_count() == kParts / 5 * 4);
  CHECK(found.statistics().rows_selected <= kParts);
}

TEST_CASE("keys of several columns are filtered by each, and their NULLs have no partner") {
  Warehouse& house = the_house();
  const Query right =
      every_part().where(col("id") < 1000).select({col("kind").as("k"), col("id").as("other")});
  const QueryResult found = house.run(every_part().join(right, {{"kind", "k"}, {"id", "other"}}));
  CHECK(found.row_count() == 900);
  CHECK(found.statistics().rows_selected < 3 * 1000);
}
