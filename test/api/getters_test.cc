// Checked getters: a wrong column, a wrong type and an unexpected NULL are errors with names.
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "flugs/query.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

using namespace std::chrono_literals;
using query::Query;

constexpr ColumnId kId{0};
constexpr ColumnId kState{3};
constexpr ColumnId kTotal{4};
constexpr ColumnId kAt{6};
constexpr ColumnId kGone{8};

TableSchema orders_schema() {
  TableSchema schema("orders");
  schema.column("id", Type::kInt64).column("lines", Type::kInt32).column("open", Type::kBool);
  schema.column("state", Type::kString).column("total", Type::kDecimal).scale(2);
  schema.column("day", Type::kDate).column("at", Type::kTimestamp).column("rate", Type::kDouble);
  schema.column("gone", Type::kInt64);
  schema.primary_key({"id"});
  return schema;
}

struct Orders {
  TemporaryDatabase database;
  TableId table = must(database->create_table(orders_schema()));
  KeyId primary{table, 0};

  Orders() {
    Transaction t = must(database->begin());
    must(t.insert(table, {1, 3, true, "paid", Value::decimal("12.50"), 2024y / 2 / 29,
                          std::chrono::sys_days(2024y / 2 / 29) + 1s, 0.25, 9}));
    must(t.insert(table, {2, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, 9}));
    must(t.commit());
    must(database->drop_column(table, kGone));
  }
};

template <typename T>
std::string refusal(const Result<T>& result) {
  REQUIRE(
      (result.code() == StatusCode::kInvalidArgument || result.code() == StatusCode::kNotFound));
  return std::string(result.status().message());
}

void check_row(const Row& row) {
  CHECK(must(row.get<std::int64_t>(kId)) == 1);
  CHECK(must(row.get<std::int64_t>("lines")) == 3);
  CHECK(must(row.get<std::int32_t>("lines")) == 3);
  CHECK(must(row.get<bool>("open")));
  CHECK(must(row.get<std::string_view>(kState)) == "paid");
  CHECK(must(row.get<std::string>("state")) == "paid");
  CHECK(must(row.get<Decimal>(kTotal)) == Decimal{1250, 2});
  CHECK(must(row.get<Decimal>("lines")) == Decimal{3, 0});
  CHECK(must(row.get(kTotal)).to_string() == "12.50");
  CHECK(must(row.get<std::chrono::year_month_day>("day")) == 2024y / 2 / 29);
  CHECK(must(row.get<std::chrono::sys_days>("day")) == std::chrono::sys_days(2024y / 2 / 29));
  CHECK(must(row.get<std::chrono::sys_time<std::chrono::microseconds>>(kAt)) ==
        std::chrono::sys_days(2024y / 2 / 29) + 1s);
  CHECK(must(row.get<double>("rate")) == 0.25);
  CHECK(must(row.get<std::optional<std::int64_t>>(kId)) == 1);
  CHECK(!must(row.is_null(kId)));
  CHECK(refusal(row.get<std::int64_t>(kState)) ==
        "table orders, column 3 (state): is of type string, read as int64");
  CHECK(refusal(row.get<std::int32_t>(kId)).find("is of type int64, read as int32") !=
        std::string::npos);
  CHECK(refusal(row.get<std::string>(kTotal)).find("is of type decimal, read as string") !=
        std::string::npos);
  CHECK(refusal(row.get<std::optional<double>>(kId)).find("read as double") != std::string::npos);
}

}  // namespace

TEST_CASE("getters give a row's values as types that fit, and refuse others", "[api]") {
  Orders orders;
  for (const bool is_merged : {false, true}) {
    INFO((is_merged ? "in main" : "in the delta"));
    if (is_merged) must(orders.database->merge(orders.table, {.scope = MergeScope::kEverything}));
    const Transaction t = must(orders.database->begin());
    check_row(must(t.get(orders.primary, {1})));
    const Row empty = must(t.get(orders.primary, {2}));
    CHECK(must(empty.get<std::optional<std::string>>(kState)) == std::nullopt);
    CHECK(must(empty.get(kState)).is_null());
    CHECK(must(empty.is_null(kState)));
    CHECK(refusal(empty.get<std::string>(kState)) ==
          "table orders, column 3 (state): holds NULL, read as string: read it as std::optional or "
          "Value");
    CHECK(refusal(empty.get<std::int64_t>(ColumnId(500))).find("orders") != std::string::npos);
    CHECK(refusal(empty.get<std::int64_t>(kGone)).find("dropped") != std::string::npos);
    CHECK(empty.get<std::int64_t>("gone").code() == StatusCode::kNotFound);
    CHECK(refusal(empty.get<std::int64_t>("State")) ==
          "table orders: no column 'State', it has id, lines, open, state, total, day, at, rate");
    CHECK(empty.table() == orders.table);
  }
  CHECK(refusal(Row().get<std::int64_t>(kId)).find("no call has returned") != std::string::npos);
  CHECK(!Row().get("id").ok());
  CHECK(Row().table() == TableId());
}

TEST_CASE("batches of a scan refuse columns that do not exist, or of another type", "[api]") {
  Orders orders;
  const Transaction t = must(orders.database->begin());
  std::size_t batches = 0;
  must(t.scan(orders.table, {kId, kState}, [&](const ScanBatch& batch) {
    ++batches;
    CHECK(must(batch.column<std::int64_t>(0))[0] == 1);
    CHECK(must(batch.column<std::string_view>(1))[0] == "paid");
    CHECK(batch.nulls(1)[1] == 1);
    CHECK(batch.nulls(7).empty());
    CHECK(refusal(batch.column<std::int64_t>(1)).find("is of type string, read as int64") !=
          std::string::npos);
    CHECK(refusal(batch.column<double>(0)).find("is of type int64, read as double") !=
          std::string::npos);
    CHECK(refusal(batch.column<double>(2)) == "requested column 2 of a batch with 2 columns");
    return true;
  }));
  CHECK(batches == 1);
}

TEST_CASE("results of queries refuse rows and columns that do not exist, and other types",
          "[api]") {
  Orders orders;
  const Transaction t = must(orders.database->begin());
  const query::QueryResult result =
      must(Query::table("orders").order_by({"id"}).select({"id", "state", "total", "rate"}).run(t));
  CHECK(must(result.get<std::int64_t>(0, 0)) == 1);
  CHECK(must(result.get<std::string>(0, "state")) == "paid");
  CHECK(must(result.get<Decimal>(0, "total")) == Decimal{1250, 2});
  CHECK(must(result.get<std::optional<double>>(1, "rate")) == std::nullopt);
  CHECK(refusal(result.get<std::int64_t>(2, 0)) == "row 2 of a result with 2 rows");
  CHECK(refusal(result.get<std::int64_t>(0, 4)).find("no column 4: it has ") != std::string::npos);
  CHECK(refusal(result.get(0, "nothing")).find("no column 'nothing': it has ") !=
        std::string::npos);
  CHECK(refusal(result.get<double>(0, 0)) == "column 0 (id): is of type int64, read as double");
  CHECK(refusal(result.get<double>(1, 3)).find("holds NULL") != std::string::npos);
  const query::ResultBatch batch = result.batch(0);
  CHECK(must(batch.column<std::int64_t>(2))[0] == 1250);
  CHECK(must(batch.column<double>(3))[0] == 0.25);
  CHECK(refusal(batch.column<double>(2)).find("is of type decimal") != std::string::npos);
  CHECK(refusal(batch.column<double>(9)).find("no column 9") != std::string::npos);
  CHECK(batch.nulls(9).empty());
  const Status missing =
      Query::table("orders").where(query::col("id") == result.constant(7, 0)).run(t).status();
  CHECK(missing.message() == "row 7 of a result with 2 rows");
}

}  // namespace flugs::test
