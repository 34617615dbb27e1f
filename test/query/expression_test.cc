#include <catch2/catch.hpp>
#include <limits>

#include "flugs/query.h"
#include "test/support/temporary_database.h"

using namespace flugs;
using namespace flugs::query;
using flugs::test::must;

namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

/// One row: gives the value of a single expression over it.
class OneRow {
 public:
  OneRow() {
    TableSchema schema("one");
    schema.column("i", Type::kInt32).column("most", Type::kInt64).direct();
    schema.column("least", Type::kInt64).column("x", Type::kDecimal).scale(2);
    schema.column("r", Type::kDouble).column("s", Type::kString).column("none", Type::kInt64);
    schema.column("day", Type::kDate).direct().column("at", Type::kTimestamp);
    schema.column("yes", Type::kBool);
    const TableId table = must(database_->create_table(schema));
    Transaction writer = must(database_->begin());
    const Value values[] = {Value::int32(7),
                            Value::int64(kMost),
                            Value::int64(-kMost - 1),
                            Value::decimal_units(1234),
                            Value::real(0.5),
                            Value::string("Persistent"),
                            Value::null(),
                            Value::date(-1),
                            Value::timestamp(951'782'400'000'000 - 1),  // before 29 February 2000
                            Value::boolean(true)};
    must(writer.insert(table, values));
    must(writer.commit());
    reader_ = must(database_->begin(AccessMode::kReadOnly));
  }

  Result<QueryResult> run(const Expr& expr) {
    return Query::table("one").select({expr.as("result")}).run(reader_);
  }
  Value value(const Expr& expr) {
    kept_ = std::make_unique<QueryResult>(must(run(expr)));
    return kept_->get_unchecked(0, 0);
  }
  std::size_t partners(const std::vector<JoinKey>& on) {
    const Query table = Query::table("one");
    return must(table.semi_join(table.as("o"), on).run(reader_)).row_count();
  }
  StatusCode code(const Expr& expr) { return run(expr).code(); }
  std::uint8_t scale(const Expr& expr) { return must(run(expr)).columns()[0].scale; }

 private:
  test::TemporaryDatabase database_;
  Transaction reader_;
  std::unique_ptr<QueryResult> kept_;
};

}  // namespace

TEST_CASE("integers compute in 64 bits and report overflow") {
  OneRow one;
  CHECK(one.value(col("i") + 3) == Value::int64(10));
  CHECK(one.value(col("most") - 1) == Value::int64(kMost - 1));
  CHECK(one.value(col("least") % -1) == Value::int64(0));
  CHECK(one.value(col("i") % 0).is_null());
  CHECK(one.value(col("most") + col("none")).is_null());
  CHECK(one.value(col("least") - col("none")).is_null());
  CHECK(one.code(col("most") + 1) == StatusCode::kOverflow);
  CHECK(one.code(col("least") - 1) == StatusCode::kOverflow);
  CHECK(one.code(col("most") * 2) == StatusCode::kOverflow);
  CHECK(one.code(col("most") + col("x")) == StatusCode::kOverflow);
  CHECK(one.value(col("most") > col("x")) == Value::boolean(true));
  CHECK(one.value(col("least") < col("x")) == Value::boolean(true));
  CHECK(one.value(case_when({{col("i") > 7, col("most") + 1}}, col("i"))) == Value::int64(7));
}

TEST_CASE("decimals keep their scale") {
  OneRow one;
  CHECK(one.value(col("x") * 2) == Value::decimal_units(2468));
  CHECK(one.scale(col("x") * col("x")) == 4);
  CHECK(one.value(col("x") * col("x")) == Value::decimal_units(1234 * 1234));
  CHECK(one.value(col("x") + 1) == Value::decimal_units(1334));
  CHECK(one.value(col("x") - constant(Value::decimal(5, 1))) == Value::decimal_units(1184));
  CHECK(one.value(col("x") / 2) == Value::real(6.17));
  CHECK(one.value(col("x") / 0).is_null());
  CHECK(one.value(col("x") == constant(Value::decimal(12340, 3))) == Value::boolean(true));
  CHECK(one.value(col("x").between(12, 13)) == Value::boolean(true));
  const Expr nine = col("x") * col("x") * col("x") * col("x") * col("x");
  CHECK(one.code(nine * col("x") * col("x") * col("x") * col("x") * col("x")) ==
        StatusCode::kInvalidArgument);
}

TEST_CASE("calendar functions before and after the epoch, and in leap years") {
  OneRow one;
  CHECK(one.value(year(col("day"))) == Value::int64(1969));
  CHECK(one.value(month(col("day"))) == Value::int64(12));
  CHECK(one.value(day(col("day"))) == Value::int64(31));
  CHECK(one.value(day(col("at"))) == Value::int64(28));
  CHECK(one.value(month(col("at"))) == Value::int64(2));
  CHECK(one.value(day(col("at") + 1)) == Value::int64(29));
  CHECK(one.value(col("at") + 1 == timestamp(2000, 2, 29)) == Value::boolean(true));
  CHECK(one.value(col("day") < timestamp(1970, 1, 1)) == Value::boolean(true));
  CHECK(one.value(date(2000, 3, 1) - date(2000, 2, 28)) == Value::int64(2));
  CHECK(one.value(date(1900, 3, 1) - date(1900, 2, 28)) == Value::int64(1));
  CHECK(one.code(date(1900, 2, 29) == col("day")) == StatusCode::kInvalidArgument);
  CHECK(one.code(timestamp(2000, 1, 1, 24) == col("at")) == StatusCode::kInvalidArgument);
  CHECK(one.code(date(5'000'000, 1, 1) + 2'000'000'000) == StatusCode::kOverflow);
}

TEST_CASE("text") {
  OneRow one;
  CHECK(one.value(substring(col("s"), 1, 4)) == Value::string("Pers"));
  CHECK(one.value(substring(col("s"), 8, 100)) == Value::string("ent"));
  CHECK(one.value(substring(col("s"), 11, 1)) == Value::string(""));
  CHECK(one.value(first_byte(col("s"))) == Value::int64('P'));
  CHECK(one.value(col("s").starts_with("Pers")) == Value::boolean(true));
  CHECK(one.value(col("s").ends_with("Pers")) == Value::boolean(false));
  CHECK(one.value(col("s").contains("sist")) == Value::boolean(true));
  CHECK(one.value(col("s").contains("")) == Value::boolean(true));
  CHECK(one.code(substring(col("s"), 0, 1)) == StatusCode::kInvalidArgument);
}

TEST_CASE("three truth values") {
  OneRow one;
  const Expr unknown = col("none") > 0;
  CHECK(one.value(unknown).is_null());
  CHECK(one.value(unknown && col("i") == 8) == Value::boolean(false));
  CHECK(one.value(unknown && col("yes")).is_null());
  CHECK(one.value(unknown || col("yes")) == Value::boolean(true));
  CHECK(one.value(unknown || col("i") == 8).is_null());
  CHECK(one.value(!unknown).is_null());
  CHECK(one.value(unknown.is_null()) == Value::boolean(true));
  CHECK(one.value(col("i").in({1, constant(Value::null())})).is_null());
  CHECK(one.value(col("i").in({7, constant(Value::null())})) == Value::boolean(true));
  CHECK(one.value(col("none") == constant(Value::null())).is_null());
  CHECK(one.value(case_when({{unknown, 1}}, 2)) == Value::int64(2));
  CHECK(one.value(case_when({{unknown, 1}})).is_null());
}

TEST_CASE("a NULL takes the type that its place needs") {
  OneRow one;
  const Expr null = constant(Value::null());
  const Expr also_null = case_when({{col("yes"), null}}, case_when({{col("i") == 7, null}}));
  for (const Expr& n : {null, also_null}) {
    CHECK(one.value(n.starts_with("t")).is_null());
    CHECK(one.value(case_when({{col("yes"), n}}, col("s"))).is_null());
    CHECK(one.value(case_when({{!col("yes"), n}}, col("s"))) == Value::string("Persistent"));
    CHECK(one.value(n == col("s")).is_null());
    CHECK(one.value(col("day") + n).is_null());
    CHECK(one.value(year(n)).is_null());
    CHECK(one.value(n && col("i") == 8) == Value::boolean(false));
    CHECK(one.value(n.in({"a", "b"})).is_null());
    for (const char* column : {"i", "s", "day", "yes", "r"})
      CHECK(one.partners({{Item(n), Item(std::string("o.") + column)}}) == 0);
  }
}

TEST_CASE("types that do not fit are refused with a message") {
  OneRow one;
  for (const Expr& wrong :
       {col("i") + col("s"), col("s") == 5, col("yes") + 1, year(col("i")), col("nowhere") + 1,
        col("i").starts_with("a"), !col("i"), col("i") && col("yes"), col("r") % 2,
        case_when({{col("yes"), 1}}, "text"), col("i").in({"a"}), col("i").in({col("most")}),
        col("day") + col("day"), Expr(), -1 * Expr(), constant(Value::decimal(1, 19)) + 1}) {
    const Result<QueryResult> result = one.run(wrong);
    INFO(wrong.to_string());
    CHECK(result.code() == StatusCode::kInvalidArgument);
    CHECK(!result.status().message().empty());
  }
}

TEST_CASE("an expression has a text") {
  CHECK((col("a") + 1 < col("b") && !(col("s") == "x")).to_string() ==
        "(a + 1) < b and not (s = 'x')");
  CHECK(case_when({{col("a").is_null(), 0}}, col("a")).to_string() ==
        "case when a is null then 0 else a end");
  CHECK(constant(Value::decimal(-5, 2)).to_string() == "-0.05");
  CHECK(Expr().to_string() == "?");
}
