#include <catch2/catch.hpp>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "flugs/query.h"
#include "test/support/temporary_database.h"

using namespace flugs;
using namespace flugs::query;
using Catch::Matchers::Contains;
using flugs::test::must;

namespace {

constexpr std::int64_t kNumberRows = 60'000;

/// Table `numbers`: n from 0 on (direct), its remainder by 100 (dictionary), one of 50 names.
class Numbers {
 public:
  Numbers() : database_([](OpenOptions& options) { options.max_bytes = 1u << 30; }) {
    TableSchema schema("numbers");
    schema.column("n", Type::kInt64).direct().column("rest", Type::kInt32);
    schema.column("name", Type::kString);
    table_ = must(database_->create_table(schema));
    std::vector<std::string> names;
    for (int i = 0; i < 50; ++i) names.push_back("name " + std::to_string(i));
    Transaction writer = must(database_->begin());
    std::vector<Value> values;
    for (std::int64_t n = 0; n < kNumberRows; ++n) {
      values.push_back(Value::int64(n));
      values.push_back(Value::int32(static_cast<std::int32_t>(n % 100)));
      values.push_back(Value::string(names[static_cast<std::size_t>(n % 50)]));
    }
    std::vector<RowId> ids(kNumberRows);
    must(writer.insert_rows(table_, values, ids));
    must(writer.commit());
    reader_ = must(database_->begin(AccessMode::kReadOnly));
  }

  test::TemporaryDatabase& database() { return database_; }
  Transaction& reader() { return reader_; }
  TableId table() const { return table_; }
  Result<QueryResult> run(const Query& query, const RunOptions& options = {}) {
    return query.run(reader_, options);
  }

 private:
  test::TemporaryDatabase database_;
  TableId table_;
  Transaction reader_;
};

Query numbers() { return Query::table("numbers"); }

void check_failure(const Result<QueryResult>& result, StatusCode code, const std::string& text) {
  CHECK(result.code() == code);
  CHECK_THAT(std::string(result.status().message()), Contains(text));
}

}  // namespace

TEST_CASE("errors in a query are reported") {
  Numbers n;
  const auto wrong = StatusCode::kInvalidArgument;
  check_failure(n.run(Query::table("nothing")), StatusCode::kNotFound, "nothing");
  check_failure(n.run(numbers().where(col("m") == 1)), wrong, "no column m; there are: ");
  check_failure(n.run(numbers().group_by({"m"}, {})), wrong, "m");
  check_failure(n.run(numbers().where(col("n"))), wrong, "condition");
  check_failure(n.run(numbers().select({"n", "n"})), wrong, "two columns named n");
  check_failure(n.run(numbers().join(numbers(), {{"n", "n"}})), wrong, "two columns named n");
  check_failure(n.run(numbers().join(numbers().as("r"), {{"n", "r.name"}})), wrong, "compare");
  check_failure(n.run(numbers().join(numbers().as("r"), {})), wrong, "without keys");
  check_failure(n.run(numbers().group_by({}, {sum("name")})), wrong, "number");
  check_failure(n.run(numbers().group_by({}, {avg("name")})), wrong, "number");
  check_failure(n.run(numbers().group_by({}, {variance("name")})), wrong, "name");
  check_failure(n.run(numbers().group_by({}, {median("name")})), wrong, "number");
  for (const double q : {-0.1, 1.1, std::numeric_limits<double>::quiet_NaN()})
    check_failure(n.run(numbers().group_by({}, {quantile("n", q)})), wrong, "0 to 1");
  check_failure(n.run(numbers().order_by({})), wrong, "order by");
  Transaction ended = must(n.database()->begin());
  ended.abort();
  check_failure(numbers().run(ended), wrong, "ended");
  CHECK(numbers().explain(ended).code() == wrong);
}

TEST_CASE("threads share a regular expression, and bring lists and sketches together") {
  Numbers n;
  const Expr text = concat({col("name"), constant(Value::string(" ")), to_text(col("n"))});
  const Expr chosen = regexp_replace(text, "^(\\w+) (\\d+)", "\\2", Replace::kAll);
  const Query query = numbers()
                          .where(text.matches("[37] \\d+5[0-4]{2}$"))
                          .group_by({}, {count(), median("n"), quantile(chosen, 0.5),
                                         approx_count_distinct(chosen)});
  const QueryResult alone = must(n.run(query, {.threads = 1}));
  CHECK(must(alone.get<std::int64_t>(0, 0)) == 59 * 5);  // from 1503 on
  CHECK(must(alone.get<std::int64_t>(0, 3)) > 285);
  for (int round = 0; round < 3; ++round) {
    const QueryResult found = must(n.run(query, {.threads = 3}));
    for (std::size_t column = 0; column < 4; ++column)
      CHECK(found.get_unchecked(0, column) == alone.get_unchecked(0, column));
  }
}

TEST_CASE("a sum that does not fit is an error, whatever the order of its parts") {
  Numbers n;
  const Query large = numbers().select({(col("n") * 300'000'000'000).as("n")});
  for (const std::uint32_t threads : {1u, 2u}) {
    RunOptions options;
    options.threads = threads;
    check_failure(n.run(large.group_by({}, {sum("n").as("total")}), options), StatusCode::kOverflow,
                  "total");
    // The same sum in 128 bits: the average does not overflow.
    const QueryResult mean = must(n.run(large.group_by({}, {avg("n")}), options));
    CHECK(mean.get_unchecked(0, 0).as_double() == Approx(3e11 * (kNumberRows - 1) / 2));
    // Large parts that nearly cancel out.
    const Expr part = col("n") * 300'000'000'000;
    const QueryResult little =
        must(n.run(numbers()
                       .select({case_when({{col("n") % 2 == 0, part}}, 0 - part).as("n")})
                       .group_by({}, {sum("n")}),
                   options));
    CHECK(little.get_unchecked(0, 0) == Value::int64(-300'000'000'000 * (kNumberRows / 2)));
  }
}

TEST_CASE("memory is bounded, and the message names the operator that asked for more") {
  Numbers n;
  RunOptions small;
  small.memory_bytes_max = 100'000;
  const Query other = numbers().as("r");
  const auto code = StatusCode::kOutOfMemory;
  check_failure(n.run(numbers(), small), code, "result");
  check_failure(n.run(numbers().group_by({"n"}, {count()}), small), code, "group by");
  check_failure(n.run(numbers().order_by({"n"}), small), code, "order by");
  check_failure(n.run(numbers().join(other, {{"n", "r.n"}}).group_by({}, {count()}), small), code,
                "join, right side");
  RunOptions smaller;  // with more, pairs wait in a file
  smaller.memory_bytes_max = 20'000;
  check_failure(n.run(numbers().group_by({}, {count_distinct(col("n") * 1'000'003)}), smaller),
                code, "group by");
  CHECK(n.run(numbers().group_by({}, {count_distinct("n")}), small).ok());  // a bit each
  CHECK(n.run(numbers().group_by({"rest"}, {sum("n")}), small).ok());
  small.memory_bytes_max = 4'000'000;
  CHECK(n.run(numbers().order_by({desc("n")}).limit(5), small).ok());
}

TEST_CASE("a query stops when it is asked to") {
  Numbers n;
  std::stop_source stop;
  RunOptions options;
  options.stop = stop.get_token();
  CHECK(n.run(numbers().group_by({}, {count()}), options).ok());
  // A join of some hundred million pairs, stopped from another thread.
  const Query long_one = numbers()
                             .join(numbers().as("r"), {{"rest", "r.rest"}}, col("n") < col("r.n"))
                             .group_by({}, {count()});
  options.memory_bytes_max = std::uint64_t{1} << 30;
  std::thread other([&stop] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    stop.request_stop();
  });
  CHECK(n.run(long_one, options).code() == StatusCode::kCancelled);
  other.join();
  CHECK(n.run(numbers(), options).code() == StatusCode::kCancelled);
  CHECK(n.run(numbers()).ok());
}

TEST_CASE("a result outlives its transaction and its database") {
  std::optional<QueryResult> result;
  {
    Numbers n;
    result = must(n.run(numbers().where(col("n") < 5000).order_by({"n"})));
  }
  REQUIRE(result->row_count() == 5000);
  CHECK(result->get_unchecked(4321, 2) == Value::string("name 21"));
  CHECK(result->find("name") == 2u);
  CHECK(!result->find("nothing"));
  std::size_t rows = 0;
  for (std::size_t b = 0; b < result->batch_count(); ++b) {
    const ResultBatch batch = result->batch(b);
    CHECK(batch.nulls(0).empty());
    for (std::size_t i = 0; i < batch.row_count(); ++i, ++rows) {
      CHECK(batch.column_unchecked<std::int64_t>(0)[i] == static_cast<std::int64_t>(rows));
      CHECK(batch.column_unchecked<std::string_view>(2)[i] == "name " + std::to_string(rows % 50));
    }
  }
  CHECK(rows == 5000);
}

TEST_CASE("the explanation says how conditions ran, what was scanned, how groups were found") {
  Numbers n;
  const Query query =
      numbers()
          .where(col("name").ends_with("7") && col("n") >= 30'000 && col("n") + col("rest") >= 0)
          .group_by({"rest"}, {sum("n")});
  const std::string plan = must(query.explain(n.reader()));
  CHECK_THAT(plan, Contains("group by rest: sum(n)"));
  CHECK_THAT(plan, Contains("name ends with '7': on codes, 50 dictionary entries"));
  CHECK_THAT(plan, Contains("by value"));
  const QueryResult result = must(n.run(query));
  CHECK_THAT(result.explain(), Contains("60032 rows block by block"));
  CHECK_THAT(result.explain(), Contains("30000 rows on codes (50 dictionary entries evaluated)"));
  CHECK_THAT(result.explain(), Contains("3000 rows by value"));
  CHECK_THAT(result.explain(), Contains("10 groups, found by indexing an array"));
  CHECK(result.statistics().rows_selected == 3000);
  CHECK(result.statistics().rows_scanned >= static_cast<std::uint64_t>(kNumberRows));
  CHECK(result.row_count() == 10);
}

TEST_CASE("a query sees its transaction's own writes, and no others that came later") {
  Numbers n;
  const Query query = numbers().group_by({}, {count(), max("n"), count_distinct("name")});
  Transaction writer = must(n.database()->begin());
  must(writer.insert(n.table(), {Value::int64(kNumberRows), Value::null(), Value::string("new")}));
  const QueryResult own = must(query.run(writer));
  CHECK(own.get_unchecked(0, 0) == Value::int64(kNumberRows + 1));
  CHECK(own.get_unchecked(0, 1) == Value::int64(kNumberRows));
  CHECK(own.get_unchecked(0, 2) == Value::int64(51));
  must(writer.commit());
  CHECK(must(n.run(query)).get_unchecked(0, 0) == Value::int64(kNumberRows));
}

TEST_CASE("an expression that fails for an unused dictionary entry does not fail the query") {
  Numbers n;
  Transaction writer = must(n.database()->begin());
  TableSchema schema("leftover");
  schema.column("k", Type::kInt64).column("v", Type::kInt64).primary_key({"k"});
  const TableId table = must(n.database()->create_table(schema));
  const RowId row =
      must(writer.insert(table, {Value::int64(1), Value::int64(9'000'000'000'000'000'000)}));
  must(writer.insert(table, {Value::int64(2), Value::int64(21)}));
  must(writer.commit());
  writer = must(n.database()->begin());
  must(writer.remove(table, row));
  const QueryResult found = must(Query::table("leftover").where(col("v") * 2 == 42).run(writer));
  CHECK(found.row_count() == 1);
}
