// Code of docs/howto/queries.md.
#include <chrono>
#include <cstdint>
#include <iostream>
#include <optional>
#include <span>
#include <stop_token>
#include <string>

#include "shop.h"

using namespace flugs;
using namespace flugs::query;

namespace snippets {

namespace {

Status totals(const Database& database, const Transaction& reader) {
  // --8<-- [start:sum]
  const Query paid =
      Query::table("orders")
          .where(col("state") == "new" && col("total") > Value::decimal("1.00"))
          .group_by({}, {count().as("orders"), sum("total").as("euros")});
  FLUGS_ASSIGN(const QueryResult result, paid.run(reader));
  FLUGS_ASSIGN(const std::int64_t orders,
               result.get<std::int64_t>(0, "orders"));
  FLUGS_ASSIGN(const auto euros,
               result.get<std::optional<Decimal>>(0, "euros"));
  // --8<-- [end:sum]
  return expect(database.is_open() && orders == 1 && euros.has_value(),
                "one paid order");
}

Status top(const Transaction& reader) {
  // --8<-- [start:top]
  const Query best =
      Query::table("orders")  // the large input on the left
          .join(Query::table("customers")
                    .select({col("id").as("customer_id"), "name", "city"}),
                {{"customer", "customer_id"}})
          .group_by({"name"}, {sum("total").as("euros"), count().as("orders")})
          .having(col("orders") > 1)
          .order_by({desc("euros"), "name"})
          .limit(10);
  FLUGS_ASSIGN(const QueryResult result, best.run(reader));
  for (std::size_t row = 0; row < result.row_count(); ++row) {
    FLUGS_ASSIGN(const std::string name, result.get<std::string>(row, "name"));
    FLUGS_ASSIGN(const Value euros, result.get(row, "euros"));
    std::cout << name << ": " << euros.to_string() << '\n';
  }
  // --8<-- [end:top]
  return expect(result.row_count() > 0, "customers with orders");
}

Status without_partner(const Transaction& reader) {
  // --8<-- [start:anti]
  const Query idle =
      Query::table("customers")
          .anti_join(Query::table("orders"), {{"id", "customer"}})
          .group_by({"city"}, {count().as("customers")});
  // --8<-- [end:anti]
  // --8<-- [start:same]
  const Query pairs =
      Query::table("customers")
          .as("a")
          .join(Query::table("customers").as("b"), {{"a.city", "b.city"}},
                col("a.id") < col("b.id"));
  // --8<-- [end:same]
  FLUGS_ASSIGN(const QueryResult result, idle.run(reader));
  FLUGS_TRY(expect(result.row_count() > 0, "customers without orders"));
  FLUGS_ASSIGN(const std::string plan, pairs.explain(reader));
  return expect(!plan.empty(), "a plan");
}

Status by_column(const Transaction& reader) {
  const Query query = Query::table("orders").select({"id", "total"});
  FLUGS_ASSIGN(const QueryResult result, query.run(reader));
  std::int64_t sum = 0;
  // --8<-- [start:columns]
  for (std::size_t i = 0; i < result.batch_count(); ++i) {
    const ResultBatch batch = result.batch(i);
    FLUGS_ASSIGN(const std::span<const std::int64_t> cents,
                 batch.column<std::int64_t>(1));
    const std::span<const std::uint8_t> nulls = batch.nulls(1);  // empty: none
    for (std::size_t row = 0; row < batch.row_count(); ++row)
      if (nulls.empty() || nulls[row] == 0) sum += cents[row];
  }
  // --8<-- [end:columns]
  return expect(sum > 0, "a sum");
}

Status by_stream(const Transaction& reader) {
  const Query query = Query::table("orders").select({"state", "total"});
  std::int64_t sum = 0;
  // --8<-- [start:stream]
  FLUGS_ASSIGN(ResultStream stream, query.stream(reader));
  for (const StreamBatch& batch : stream) {
    FLUGS_ASSIGN(const TextColumn states, batch.texts(0));
    FLUGS_ASSIGN(const auto cents, batch.column<std::int64_t>(1));
    for (std::size_t row = 0; row < batch.row_count(); ++row)
      if (states[row] == "paid") sum += cents[row];
  }
  FLUGS_TRY(stream.status());  // ok at the end of the rows
  // --8<-- [end:stream]
  return expect(sum >= 0, "a sum");
}

Status to_other_libraries(const Transaction& reader) {
  const Query query = Query::table("orders").select({"state", "total"});
  // --8<-- [start:arrow]
  FLUGS_ASSIGN(ResultStream stream, query.stream(reader));
  ArrowArrayStream arrow;
  to_arrow(std::move(stream), arrow);  // any library that reads Arrow takes it
  // --8<-- [end:arrow]
  ArrowSchema schema;
  const int failed = arrow.get_schema(&arrow, &schema);
  if (failed == 0) schema.release(&schema);
  arrow.release(&arrow);
  return expect(failed == 0, "a schema");
}

Status bounded(const Transaction& reader) {
  const Query query = Query::table("orders").distinct();
  // --8<-- [start:bounded]
  std::stop_source source;  // any thread may call source.request_stop()
  const Result<QueryResult> result =
      query.run(reader, {.threads = 2,
                         .memory_bytes_max = 256 << 20,
                         .stop = source.get_token()});
  if (result.code() == StatusCode::kOutOfMemory) {
    // the message names the operator that needs more than 256 MB
  }
  // --8<-- [end:bounded]
  FLUGS_TRY(result);
  // --8<-- [start:explain]
  FLUGS_ASSIGN(const std::string plan, query.explain(reader));
  std::cout << plan << '\n' << result->explain() << '\n';
  // --8<-- [end:explain]
  return {};
}

Status report(Database& database) {
  // --8<-- [start:report]
  FLUGS_ASSIGN(const Transaction reader, database.begin(AccessMode::kReadOnly));
  const Query by_state =
      Query::table("orders").group_by({"state"}, {sum("total").as("euros")});
  FLUGS_ASSIGN(const QueryResult states, by_state.run(reader));
  const Query all = Query::of(states).group_by({}, {sum("euros").as("euros")});
  FLUGS_ASSIGN(const QueryResult total, all.run(reader));
  // --8<-- [end:report]
  // --8<-- [start:scalar]
  const Query average =
      Query::table("orders").group_by({}, {avg("total").as("average")});
  FLUGS_ASSIGN(const QueryResult mean, average.run(reader));
  const Query above = Query::table("orders").where(to_double(col("total")) >
                                                   mean.constant(0, 0));
  // --8<-- [end:scalar]
  FLUGS_ASSIGN(const QueryResult large, above.run(reader));
  return expect(total.row_count() == 1 && large.row_count() > 0, "a report");
}

Status expressions(const Transaction& reader) {
  // --8<-- [start:expressions]
  const Query by_month =
      Query::table("orders")
          .where(col("at").is_null() || col("at") >= date(2026, 1, 1))
          .select(
              {year(col("at")).as("year"), month(col("at")).as("month"),
               case_when({{col("total") >= 100, "large"}}, "small").as("size"),
               "total"})
          .group_by({"year", "month", "size"}, {sum("total").as("euros")});
  // --8<-- [end:expressions]
  FLUGS_ASSIGN(const QueryResult result, by_month.run(reader));
  return expect(result.row_count() == 1, "one group");
}

Status some(const Transaction& reader) {
  // --8<-- [start:some]
  const Query of_weekdays = Query::table("orders").group_by(
      {weekday(col("at")).as("weekday")},
      {count(), sum("total").where(col("total") >= 100).as("of_large_ones")});
  // --8<-- [end:some]
  FLUGS_ASSIGN(const QueryResult result, of_weekdays.run(reader));
  return expect(result.row_count() >= 1, "a weekday");
}

Status scan(const Database& database, const Transaction& reader) {
  FLUGS_ASSIGN(const Table orders, database.table("orders"));
  FLUGS_ASSIGN(const ColumnId total, orders.column("total"));
  std::int64_t cents = 0;
  // --8<-- [start:scan]
  FLUGS_TRY(reader.scan(orders, {total}, [&](const ScanBatch& batch) {
    for (const std::int64_t value : batch.column_unchecked<std::int64_t>(0))
      cents += value;
    return true;  // false: enough
  }));
  // --8<-- [end:scan]
  return expect(cents > 0, "cents");
}

}  // namespace

Status queries(Database& database) {
  FLUGS_ASSIGN(const Transaction reader, database.begin(AccessMode::kReadOnly));
  FLUGS_TRY(totals(database, reader));
  FLUGS_TRY(top(reader));
  FLUGS_TRY(without_partner(reader));
  FLUGS_TRY(by_column(reader));
  FLUGS_TRY(by_stream(reader));
  FLUGS_TRY(to_other_libraries(reader));
  FLUGS_TRY(bounded(reader));
  FLUGS_TRY(expressions(reader));
  FLUGS_TRY(some(reader));
  FLUGS_TRY(scan(database, reader));
  return report(database);
}

}  // namespace snippets
