// Parts of a query that several steps read are computed once, with the same rows.
#include <catch2/catch.hpp>
#include <cstdint>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "flugs/query.h"
#include "test/query/naive.h"
#include "test/support/complaint.h"
#include "test/support/temporary_database.h"

using namespace flugs;
using namespace flugs::query;
using flugs::test::must;

namespace {

constexpr std::int32_t kSales = 60'000;
constexpr std::int32_t kDeals = 5'000;

/// `sale`: l_id, l_of (a deal, or NULL), l_name (some NULL), l_note (held directly), l_price; the
/// first half in main. `deal`: o_id, o_name. The tests only read it.
class Market {
 public:
  Market() {
    TableSchema sale("sale");
    sale.column("l_id", Type::kInt32).column("l_of", Type::kInt32);
    sale.column("l_name", Type::kString).column("l_note", Type::kString).direct();
    sale.column("l_price", Type::kDecimal).scale(2);
    const TableId sales = must(database_->create_table(sale.primary_key({"l_id"})));
    fill(sales, 0, kSales / 2);
    MergeOptions everything;
    everything.scope = MergeScope::kEverything;
    static_cast<void>(must(database_->merge(sales, everything)));
    fill(sales, kSales / 2, kSales);
    TableSchema deal("deal");
    deal.column("o_id", Type::kInt32).column("o_name", Type::kString);
    const TableId deals = must(database_->create_table(deal.primary_key({"o_id"})));
    Transaction writer = must(database_->begin());
    for (std::int32_t i = 0; i < kDeals; ++i) {
      const std::string name = "deal " + std::to_string(i % 97);
      must(writer.insert(deals, {Value::int32(i), Value::string(name)}));
    }
    must(writer.commit());
    reader_ = must(database_->begin(AccessMode::kReadOnly));
  }

  const Transaction& reader() const noexcept { return reader_; }
  QueryResult run(const Query& query, bool as_written = false, std::uint32_t threads = 2) const {
    RunOptions options;
    options.threads = threads;
    options.runs_as_written = as_written;
    return must(query.run(reader_, options));
  }
  std::string explain(const Query& query) const { return must(query.explain(reader_)); }

  /// Runs the query as written and in all other ways: all must give the same rows. Gives the plan.
  std::string check(const Query& query, bool ordered = false) const {
    const QueryResult written = run(query, true);
    const std::string expected = test::text_of(test::relation_of(written), ordered);
    CHECK(written.explain().find("part 1") == std::string::npos);
    std::string plan;
    for (const std::uint32_t threads : {1u, 2u, 4u}) {
      const QueryResult result = run(query, false, threads);
      plan = result.explain();
      INFO(plan);
      CHECK(test::text_of(test::relation_of(result), ordered) == expected);
      for (std::size_t i = 0; i < written.columns().size(); ++i)
        CHECK(result.columns()[i].name == written.columns()[i].name);
      RunOptions options;
      options.threads = threads;
      ResultStream stream = must(query.stream(reader_, options));
      CHECK(test::text_of(test::relation_of(stream), ordered) == expected);
      CHECK(stream.status().ok());
    }
    return plan;
  }

 private:
  void fill(TableId table, std::int32_t first, std::int32_t end) {
    Transaction writer = must(database_->begin());
    for (std::int32_t i = first; i < end; ++i) {
      const std::string name = "a name with the number " + std::to_string(i % 19);
      const std::string note = "note " + std::to_string(i % 1'003);
      must(writer.insert(
          table, {Value::int32(i), i % 13 == 0 ? Value::null() : Value::int32(i % kDeals),
                  i % 7 == 0 ? Value::null() : Value::string(name), Value::string(note),
                  i % 11 == 0 || i % 13 == 0 ? Value::null() : Value::decimal(i % 977, 2)}));
    }
    must(writer.commit());
  }

  test::TemporaryDatabase database_;
  Transaction reader_;
};

const Market& market() {
  static const Market made;
  return made;
}

Query sale() { return Query::table("sale"); }
Query deal() { return Query::table("deal"); }

std::size_t times(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}
bool has_parts(const std::string& plan) { return times(plan, "part 1, read") != 0; }

/// The revenue of each deal.
Query revenue() { return sale().group_by({"l_of"}, {sum("l_price").as("total")}); }
/// Deals with the largest revenue: TPC-H's query 15.
Query best_deals(const Query& totals) {
  const Query best = totals.group_by({}, {max("total").as("best")});
  return deal().join(totals, {{"o_id", "l_of"}}).join(best, {{"total", "best"}});
}

}  // namespace

TEST_CASE("groups that two steps read are computed once") {
  const Query query = best_deals(revenue());
  const QueryResult once = market().run(query);
  const QueryResult twice = market().run(query, true);
  INFO(once.explain());
  CHECK(once.row_count() > 0);
  const std::uint64_t sales = market().run(revenue()).statistics().rows_scanned;
  const std::uint64_t deals = market().run(deal()).statistics().rows_scanned;
  CHECK(once.statistics().rows_scanned == sales + deals);
  CHECK(twice.statistics().rows_scanned == 2 * sales + deals);
  CHECK(once.statistics().rows_selected < twice.statistics().rows_selected);
  CHECK(times(once.explain(), "scan sale") == 1);
  CHECK(times(once.explain(), "part 1, read 2 times") == 1);
  CHECK(times(once.explain(), "rows of part 1") == 1);
  CHECK(times(once.explain(), "5001 rows kept") == 1);
  market().check(query);
  // The plan that no run has made says the same.
  const std::string plan = market().explain(query);
  INFO(plan);
  CHECK(times(plan, "scan sale") == 1);
  CHECK(times(plan, "part 1, read 2 times") == 1);
  CHECK(times(plan, "rows of part 1") == 1);
}

TEST_CASE("parts of every kind give the rows of queries as written") {
  const Query groups = sale().group_by(
      {"l_name", "l_note"}, {count().as("n"), sum("l_price").as("sum"), min("l_note").as("least"),
                             count_distinct("l_of").as("orders"), max(col("l_name")).as("most")});
  const Query many = groups.where(col("n") > 5);
  const Query names = sale().select({"l_name", "l_of"}).distinct();
  const Query first = groups.order_by({desc("sum"), "l_note", "l_name"}).limit(40, 3);
  const std::vector<JoinKey> notes = {{"a.l_note", "b.l_note"}};
  int number = 0;
  for (const Query& part : {groups, many, names.select({"l_name", col("l_of").as("l_note")}), first,
                            groups.distinct(), groups.limit(100'000)}) {
    const Query a = part.as("a");
    const Query b = part.as("b");
    for (const Query& query :
         {a.join(b, notes), a.left_join(b, {{"a.l_name", "b.l_name"}, {"a.l_note", "b.l_note"}}),
          a.semi_join(b, {{"a.l_name", "b.l_name"}}), a.anti_join(b, {{"a.l_name", "b.l_name"}}),
          a.join(b, {{"a.l_note", "b.l_note"}, {"a.l_name", "b.l_name"}},
                 col("a.l_name") >= col("b.l_name")),
          a.join(part.group_by({}, {count().as("all"), max("l_note").as("last")}),
                 {{"a.l_note", "last"}})}) {
      if (number++ % test::rounds_of(1, 5) != 0) continue;  // each kind, each part
      const Query rows = query.group_by({"a.l_name"}, {count().as("rows"), min("a.l_note")});
      const std::string plan = market().check(rows);
      INFO(plan);
      CHECK(has_parts(plan));
      CHECK(times(plan, "scan sale") == 1);
    }
  }
}

TEST_CASE("the rows of a part leave the query, in their order") {
  const Query first = revenue().order_by({desc("total"), "l_of"}).limit(50);
  const Query counted = first.group_by({"total"}, {count().as("n")}).where(col("n") > 0);
  const Query query = first.semi_join(counted.select({col("total").as("t")}), {{"total", "t"}});
  CHECK(has_parts(market().check(query, true)));
  CHECK(has_parts(market().check(query.select({"l_of", (col("total") * 2).as("twice")}), true)));
  SharedStream stream = must(query.share(market().reader(), {}));
  std::size_t rows = 0;
  while (const StreamBatch* batch = must(stream.next(0))) rows += batch->row_count();
  CHECK(rows == market().run(query).row_count());
}

TEST_CASE("threads that share a stream read a part") {
  const Query groups = sale().group_by({"l_note", "l_name"}, {count().as("n")});
  const Query query = groups.as("a").join(groups.as("b"), {{"a.l_note", "b.l_note"}});
  RunOptions options;
  options.threads = 3;
  SharedStream stream = must(query.share(market().reader(), options));
  std::vector<std::size_t> rows(options.threads);
  std::vector<std::jthread> threads;
  for (std::uint32_t i = 0; i < options.threads; ++i)
    threads.emplace_back([&, i] {
      while (const StreamBatch* batch = stream.next(i).value()) rows[i] += batch->row_count();
    });
  threads.clear();
  CHECK(rows[0] + rows[1] + rows[2] == market().run(query, true).row_count());
}

TEST_CASE("steps that are written in the same way are one part") {
  const auto grouped = [](const char* name, int least) {
    return sale()
        .where(col("l_id") >= least)
        .group_by({col("l_of").as("of")}, {sum("l_price").as(name)});
  };
  const auto joined = [](const Query& left, const Query& right) {
    return left.as("a").join(right.as("b"), {{"a.of", "b.of"}}).group_by({}, {count().as("rows")});
  };
  CHECK(has_parts(market().check(joined(grouped("s", 9), grouped("s", 9)))));
  CHECK_FALSE(has_parts(market().check(joined(grouped("s", 9), grouped("s", 10)))));
  CHECK_FALSE(has_parts(market().check(joined(grouped("s", 9), grouped("other", 9)))));
  // Different limits, on the same groups.
  const std::string plan =
      market().check(joined(grouped("s", 9).limit(10'000), grouped("s", 9).limit(20'000)));
  CHECK(times(plan, "scan sale") == 1);
}

TEST_CASE("tables, projections and joins with many rows are read as often as before") {
  const Query projected = sale().select({"l_id", "l_of", (col("l_price") + 1).as("p")});
  const Query joined = sale().join(deal(), {{"l_of", "o_id"}});
  for (const Query& part :
       {sale().where(col("l_id") < 5'000), projected, joined, joined.where(col("l_id") > 9)}) {
    const Query counted =
        part.group_by({"l_of"}, {count().as("n")}).select({col("l_of").as("of"), "n"});
    CHECK_FALSE(has_parts(market().explain(part.join(counted, {{"l_of", "of"}}))));
  }
  // A join with few rows for what it reads.
  const Query few = sale().join(deal().where(col("o_id") == 77), {{"l_of", "o_id"}});
  const Query counted = few.group_by({"o_name"}, {count().as("n")});
  const Query query =
      few.join(counted.select({col("o_name").as("name"), "n"}), {{"o_name", "name"}})
          .select({"l_id", "l_note", "n"});
  const std::string plan = market().check(query);
  INFO(plan);
  CHECK(has_parts(plan));
  CHECK(times(plan, "scan sale") == 1);
}

TEST_CASE("a part is refused if each reader wants some of its rows only") {
  const Query totals = revenue();
  const auto of = [&](int deal) { return totals.where(col("l_of") == deal); };
  const auto joined = [](const Query& left, const Query& right) {
    return left.as("a").join(right.as("b"), {{"a.total", "b.total"}});
  };
  const std::string apart = market().check(joined(of(5), of(82)));
  INFO(apart);
  CHECK_FALSE(has_parts(apart));
  CHECK(times(apart, "l_of = 82") >= 1);
  // One reader needs all rows anyway. A condition on an aggregate says nothing to the table.
  CHECK(has_parts(market().check(joined(of(5), totals))));
  CHECK(has_parts(
      market().check(joined(totals.where(col("total") > 40), totals.where(col("total") < 5)))));
}

TEST_CASE("a part is refused if keys of joins leave out most of it for each reader") {
  const Query totals = revenue();
  const auto of_few = [&](int first, const char* name) {
    return deal()
        .where(col("o_id").between(first, first + 9))
        .join(totals, {{"o_id", "l_of"}})
        .select({"o_name", col("total").as(name)})
        .group_by({"o_name"}, {max(name).as(name)});
  };
  const Query apart = of_few(10, "x").as("a").join(of_few(300, "y").as("b"), {{"a.x", "b.y"}});
  const std::string plan = market().check(apart);
  INFO(plan);
  CHECK_FALSE(has_parts(plan));
  CHECK(plan.find("keys of a join") != std::string::npos);
  const Query best = totals.group_by({}, {max("total").as("best")});
  CHECK(has_parts(market().check(of_few(10, "x").left_join(best, {{"x", "best"}}))));
}

TEST_CASE("each reader has the columns that it needs") {
  const Query many = sale().group_by({"l_of"}, {count().as("n"), sum("l_price").as("sum")});
  const Query part = deal()
                         .join(many, {{"o_id", "l_of"}})
                         .where(col("n") > 11)
                         .order_by({desc("sum"), "o_id"})
                         .limit(30);
  const Query names = part.select({col("o_name").as("name")}).distinct();
  const Query sums = part.select({(col("sum") * 2).as("twice"), col("o_id").as("id")});
  const Query query = names.join(part, {{"name", "o_name"}})
                          .join(sums, {{"o_id", "id"}})
                          .select({"name", "n", "twice"});
  const std::string plan = market().check(query);
  INFO(plan);
  CHECK(times(plan, "part") >= 3);
  CHECK(times(plan, "scan sale") == 1);
  CHECK(times(plan, "scan deal") == 1);
  // No reader needs any column.
  const Query all = part.select({}).group_by({}, {count().as("a")});
  const Query three = part.select({}).limit(3).group_by({}, {count().as("b")});
  CHECK(has_parts(market().check(all.left_join(three, {{"a", "b"}}))));
}

TEST_CASE("a part in a part") {
  const Query inner = revenue();
  const Query outer = inner.as("a")
                          .join(inner.as("b"), {{"a.total", "b.total"}})
                          .group_by({"a.total"}, {count().as("n")});
  const Query query =
      outer.as("x")
          .join(outer.as("y"), {{"x.n", "y.n"}})
          .join(inner.group_by({}, {max("total").as("best")}), {{"x.a.total", "best"}});
  const std::string plan = market().check(query);
  INFO(plan);
  CHECK(times(plan, "scan sale") == 1);
  CHECK(times(plan, ", read") == 2);
}

TEST_CASE("a result is read by a part") {
  const QueryResult result = market().run(sale().where(col("l_id") < 9'000));
  CHECK(has_parts(market().check(
      best_deals(Query::of(result).group_by({"l_of"}, {sum("l_price").as("total")})))));
}

TEST_CASE("a part that is larger than expected is made for each reader") {
  // Nearly all groups meet the condition, of which one in twenty was expected to.
  const Query inner = sale().group_by({"l_id"}, {count().as("n"), min("l_note").as("note")});
  const Query part = inner.where(col("n") >= 1);
  const Query query = part.as("a")
                          .join(part.as("b"), {{"a.l_id", "b.l_id"}})
                          .group_by({}, {count().as("rows"), max("a.note"), min("b.note")});
  RunOptions options;
  options.threads = 2;
  for (const std::uint64_t megabytes : {6, 7, 9, 64}) {
    options.memory_bytes_max = megabytes << 20;
    const Result<QueryResult> result = query.run(market().reader(), options);
    INFO(megabytes << " MB: " << result.status().to_string());
    if (!result.ok()) {
      CHECK(result.code() == StatusCode::kOutOfMemory);
      options.runs_as_written = true;
      CHECK(query.run(market().reader(), options).code() == StatusCode::kOutOfMemory);
      options.runs_as_written = false;
      continue;
    }
    INFO(result->explain());
    CHECK(result->get(0, 0).value().as_int64() == kSales);
    CHECK(result->statistics().memory_bytes_peak <= options.memory_bytes_max);
    CHECK((times(result->explain(), "made for one reader") == 2) == (megabytes < 9));
  }
}

TEST_CASE("a query with a part tells its progress, and stops when it is asked") {
  const Query query = best_deals(revenue());
  for (int last = 0; last < 12; ++last) {
    std::stop_source stop;
    RunOptions options;
    options.threads = 2;
    options.stop = stop.get_token();
    int calls = 0;
    Progress known{};
    options.progress = [&](const Progress& progress) {
      if (progress.done < known.done || progress.done > progress.total) calls = 1'000'000;
      known = progress;
      if (++calls == last * 5) stop.request_stop();
    };
    const Result<QueryResult> result = query.run(market().reader(), options);
    CHECK((result.ok() || result.code() == StatusCode::kCancelled));
    if (result.ok()) CHECK(known.done == known.total);
    CHECK(calls < 1'000'000);
  }
}

TEST_CASE("a failure in a part is that of the query as written") {
  const Query fails =
      sale().group_by({"l_of"}, {sum(constant(std::int64_t{1} << 62) * col("l_id")).as("total")});
  const Query wrong = sale().group_by({"l_of"}, {sum("nothing").as("total")});
  for (const Query& part : {fails, wrong}) {
    RunOptions options;
    const Status arranged = best_deals(part).run(market().reader(), options).status();
    options.runs_as_written = true;
    CHECK(!arranged.ok());
    CHECK(best_deals(part).run(market().reader(), options).status().to_string() ==
          arranged.to_string());
  }
}
