// Functions of an expression: each over one row with the values that matter, and NULL.
#include <catch2/catch.hpp>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "flugs/query.h"
#include "test/support/temporary_database.h"

using namespace flugs;
using namespace flugs::query;
using flugs::test::must;

namespace {

constexpr std::int64_t kLowest = std::numeric_limits<std::int64_t>::min();

/// One row, with a dictionary for half of its texts.
class Sample {
 public:
  Sample() {
    TableSchema schema("one");
    schema.column("i", Type::kInt32).column("lowest", Type::kInt64).direct();
    schema.column("x", Type::kDecimal).scale(3).column("r", Type::kDouble);
    schema.column("s", Type::kString).column("t", Type::kString).direct();
    schema.column("b", Type::kBytes).column("day", Type::kDate).column("at", Type::kTimestamp);
    schema.column("yes", Type::kBool).column("n", Type::kInt64).column("none", Type::kString);
    const TableId table = must(database_->create_table(schema));
    Transaction writer = must(database_->begin());
    const Value values[] = {
        Value::int32(-7),
        Value::int64(kLowest),
        Value::decimal_units(-12'345),
        Value::real(2.5),
        Value::string("  Grüße an ALLE "),
        Value::string("100% of_it"),
        Value::bytes("Gr\xc3\xbc"),
        Value::date(-1),
        Value::timestamp(951'827'696'789'012),  // 29 February 2000, 12:34:56.789
        Value::boolean(true),
        Value::null(),
        Value::null()};
    must(writer.insert(table, values));
    must(writer.commit());
    reader_ = must(database_->begin(AccessMode::kReadOnly));
  }

  Result<QueryResult> run(const Expr& expr, const RunOptions& options = {}) {
    return Query::table("one").select({expr.as("result")}).run(reader_, options);
  }
  Value value(const Expr& expr) {
    kept_ = std::make_unique<QueryResult>(must(run(expr)));
    return kept_->get_unchecked(0, 0);
  }
  std::int64_t integer(const Expr& expr) {
    const Value found = value(expr);
    REQUIRE(!found.is_null());
    return found.as_int64();
  }
  std::string text(const Expr& expr) {
    const Value found = value(expr);
    REQUIRE(!found.is_null());
    return std::string(found.as_string());
  }
  double real(const Expr& expr) { return value(expr).as_double(); }
  std::string failure(const Expr& expr) {
    const Status status = run(expr).status();
    REQUIRE(status.code() == StatusCode::kInvalidArgument);
    return std::string(status.message());
  }
  bool holds(const Expr& expr) { return value(expr).as_bool(); }
  StatusCode code(const Expr& expr) { return run(expr).code(); }
  ResultColumn column(const Expr& expr) { return must(run(expr)).columns()[0]; }

 private:
  test::TemporaryDatabase database_;
  Transaction reader_;
  std::unique_ptr<QueryResult> kept_;
};

}  // namespace

TEST_CASE("a pattern of LIKE has wildcards and an escape character") {
  Sample one;
  CHECK(one.holds(col("s").like("%Gr__e%")));
  CHECK(one.holds(col("s").like("__Gr__e an%")));
  CHECK_FALSE(one.holds(col("s").like("%Gr_e%")));
  CHECK(one.holds(col("t").like("100% of%")));
  CHECK(one.holds(col("t").like("100!% of!_it", '!')));
  CHECK_FALSE(one.holds(col("t").like("10!_% of%", '!')));
  CHECK(one.holds(col("t").like("1__!%%", '!')));
  CHECK_FALSE(one.holds(col("t").like("")));
  CHECK(one.holds(constant(Value::string("")).like("%")));
  CHECK(one.holds(constant(Value::string("")).like("")));
  CHECK(one.holds(col("b").like("Gr__")));  // a byte each
  CHECK(one.value(col("none").like("%")).is_null());
  CHECK(one.code(col("t").like("a!b", '!')) == StatusCode::kInvalidArgument);
  CHECK(one.code(col("t").like("a!", '!')) == StatusCode::kInvalidArgument);
  CHECK(one.code(col("i").like("7")) == StatusCode::kInvalidArgument);
  CHECK(col("t").like("1!%", '!').to_string() == "t like '1!%' escape '!'");
}

TEST_CASE("a regular expression matches a part of a text") {
  Sample one;
  CHECK(one.holds(col("s").matches("Gr..e an")));
  CHECK_FALSE(one.holds(col("s").matches("Gr.e an")));
  CHECK_FALSE(one.holds(col("s").matches("^Grü")));
  CHECK(one.holds(col("s").matches("^ *Grü")));
  CHECK(one.holds(col("s").matches("(?i)GRÜSSE|grüße")));
  CHECK(one.holds(col("s").matches("\\p{Lu}{4} $")));
  CHECK(one.holds(col("t").matches("")));
  CHECK(one.holds(col("b").matches("^Gr..$")));  // bytes
  CHECK_FALSE(one.holds(constant(Value::string("a\nb")).matches("a.b|^b")));
  CHECK(one.holds(constant(Value::string("a\nb")).matches("(?s)a.b")));
  CHECK(one.holds(constant(Value::string("a\nb")).matches("(?m)^b")));
  CHECK(one.holds(constant(Value::string("")).matches("^$")));
  CHECK(one.value(col("none").matches("")).is_null());
  CHECK(one.value(constant(Value::null()).matches("a")).is_null());
  CHECK(one.code(col("i").matches("7")) == StatusCode::kInvalidArgument);
  CHECK(col("t").matches("^1").to_string() == "t matches '^1'");
}

TEST_CASE("a group of a match is extracted") {
  Sample one;
  const Expr t = col("t");
  CHECK(one.text(regexp_extract(t, "[a-z]+")) == "of");
  CHECK(one.text(regexp_extract(t, "([0-9]+)% (..)", 2)) == "of");
  CHECK(one.text(regexp_extract(t, "([0-9]+)% (..)", 0)) == "100% of");
  CHECK(one.text(regexp_extract(t, "(x)|of", 1)).empty());
  CHECK(one.text(regexp_extract(t, "x")).empty());
  CHECK(one.text(regexp_extract(t, "(((((((((o)))))))))f", 9)) == "o");
  CHECK(one.value(regexp_extract(col("none"), "x")).is_null());
  CHECK(one.column(regexp_extract(col("b"), "..$")).type == Type::kBytes);
  CHECK(one.value(regexp_extract(col("b"), ".$")).as_string() == "\xbc");
  CHECK(one.text(regexp_extract(upper(t), "[A-Z]+")) == "OF");
  CHECK(one.failure(regexp_extract(t, "(a)", 2)).find("no group 2") != std::string::npos);
  CHECK(one.code(regexp_extract(t, "((((((((((o))))))))))", 10)) == StatusCode::kInvalidArgument);
  CHECK(one.code(regexp_extract(t, "a", 4'000'000'000)) == StatusCode::kInvalidArgument);
  CHECK(one.code(regexp_extract(col("i"), "a")) == StatusCode::kInvalidArgument);
  CHECK(regexp_extract(t, "(a)", 1).to_string() == "regexp_extract(t, '(a)', 1)");
}

TEST_CASE("the first match, or every match, is replaced") {
  Sample one;
  const Expr t = col("t");
  const auto all = [&](const char* text, const char* pattern, const char* with) {
    return one.text(regexp_replace(constant(Value::string(text)), pattern, with, Replace::kAll));
  };
  CHECK(one.text(regexp_replace(t, "[0-9]", "x")) == "x00% of_it");
  CHECK(one.text(regexp_replace(t, "[0-9]", "x", Replace::kAll)) == "xxx% of_it");
  CHECK(one.text(regexp_replace(t, "(\\w+)_(\\w+)", "\\2 \\\\ \\1 \\0")) == "100% it \\ of of_it");
  CHECK(one.text(regexp_replace(t, "(x)?o", "[\\1]")) == "100% []f_it");
  CHECK(one.text(regexp_replace(t, "y", "x")) == "100% of_it");
  CHECK(all("äb", "", "-") == "-ä-b-");
  CHECK(all("", "", "-") == "-");
  CHECK(all("", "^", "-") == "-");
  CHECK(all("aab", "a*", "-") == "-b-");
  CHECK(all("abc", "^.", "") == "bc");
  CHECK(all("a b", "\\b", "|") == "|a| |b|");
  CHECK(one.value(regexp_replace(col("b"), "", "-", Replace::kAll)).as_string() ==
        "-G-r-\xc3-\xbc-");
  CHECK(one.text(lower(regexp_replace(upper(t), "O", "Z"))) == "100% zf_it");
  CHECK(one.value(regexp_replace(col("none"), "", "x")).is_null());
  CHECK(one.failure(regexp_replace(t, "a", "\\1")).find("1") != std::string::npos);
  CHECK(one.code(regexp_replace(t, "a", "\\")) == StatusCode::kInvalidArgument);
  CHECK(one.code(regexp_replace(t, "a", "\\n")) == StatusCode::kInvalidArgument);
  CHECK(regexp_replace(t, "a", "b", Replace::kAll).to_string() ==
        "regexp_replace(t, 'a', 'b', all)");
}

TEST_CASE("a wrong or too large regular expression is an error") {
  Sample one;
  const auto failure = [&](const std::string& pattern) {
    return one.failure(col("t").matches(pattern));
  };
  CHECK(failure("a(b") == "t matches 'a(b': missing ): a(b");
  CHECK(failure("ab[z-a]") ==
        "t matches 'ab[z-a]': invalid character class range: z-a (at byte 4 of the pattern)");
  CHECK(failure("a**").find("**") != std::string::npos);
  CHECK(failure("\xff").find("UTF-8") != std::string::npos);
  CHECK(failure("((a{100}){100}){100}").find("invalid repetition size") != std::string::npos);
  CHECK(failure("(\\pL{500}){2}").find("pattern too large") != std::string::npos);
  CHECK(failure(std::string(100'000, '(')).find("missing )") != std::string::npos);
  CHECK(one.holds(col("b").matches("\xc3")));
  const RunOptions little{.threads = 1, .memory_bytes_max = std::uint64_t{1} << 20};
  const std::string with(1000, 'x');
  Expr grown = col("t");
  for (int i = 0; i < 3; ++i) grown = regexp_replace(grown, ".", with, Replace::kAll);
  CHECK(one.run(grown, little).code() == StatusCode::kOutOfMemory);
}

TEST_CASE("functions of texts count characters, and bytes in a column of bytes") {
  Sample one;
  CHECK(one.integer(length(col("s"))) == 16);
  CHECK(one.integer(byte_length(col("s"))) == 18);
  CHECK(one.integer(length(col("b"))) == 4);
  CHECK(one.text(lower(col("s"))) == "  grüße an alle ");
  CHECK(one.text(upper(col("s"))) == "  GRüßE AN ALLE ");
  CHECK(one.text(trim(col("s"))) == "Grüße an ALLE");
  CHECK(one.text(trim(col("s"), Sides::kLeft)) == "Grüße an ALLE ");
  CHECK(one.text(trim(col("s"), Sides::kRight)) == "  Grüße an ALLE");
  CHECK(one.integer(position(col("s"), constant(Value::string("an")))) == 9);
  CHECK(one.integer(position(col("b"), constant(Value::bytes("\xbc")))) == 4);
  CHECK(one.integer(position(col("s"), constant(Value::string("AN")))) == 0);
  CHECK(one.integer(position(col("s"), constant(Value::string("")))) == 1);
  CHECK(one.text(concat({col("t"), constant(Value::string(", ")), upper(col("t"))})) ==
        "100% of_it, 100% OF_IT");
  CHECK(one.text(substring(lower(trim(col("s"))), 1, 2)) == "gr");
  CHECK(one.value(concat({col("t"), col("none")})).is_null());
  CHECK(one.value(lower(col("none"))).is_null());
  CHECK(one.value(length(col("none"))).is_null());
  CHECK(one.column(lower(col("b"))).type == Type::kBytes);
  CHECK(one.code(concat({col("t"), col("b")})) == StatusCode::kInvalidArgument);
  CHECK(one.code(concat({})) == StatusCode::kInvalidArgument);
  CHECK(one.code(trim(col("t"), Sides{})) == StatusCode::kInvalidArgument);
  CHECK(one.code(length(col("i"))) == StatusCode::kInvalidArgument);
}

TEST_CASE("values become texts, and texts values") {
  Sample one;
  CHECK(one.text(to_text(col("i"))) == "-7");
  CHECK(one.text(to_text(col("x"))) == "-12.345");
  CHECK(one.text(to_text(col("r"))) == "2.5");
  CHECK(one.text(to_text(col("day"))) == "1969-12-31");
  CHECK(one.text(to_text(col("yes"))) == "true");
  CHECK(one.text(to_text(col("t"))) == "100% of_it");
  CHECK(one.value(to_text(col("n"))).is_null());
  CHECK(one.code(to_text(col("b"))) == StatusCode::kInvalidArgument);
  const auto text = [](const char* of) { return constant(Value::string(of)); };
  CHECK(one.integer(to_int64(text("-9223372036854775808"))) == kLowest);
  CHECK(one.value(to_int64(text("9223372036854775808"))).is_null());
  CHECK(one.value(to_int64(text("7 "))).is_null());
  CHECK(one.value(to_int64(text(""))).is_null());
  CHECK(one.real(to_double(text("-1.5e3"))) == -1500);
  CHECK(one.value(to_double(text("1,5"))).is_null());
  CHECK(one.value(to_date(text("2000-02-29"))) == Value::date(11'016));
  CHECK(one.value(to_date(text("1900-02-29"))).is_null());
  CHECK(one.value(to_date(text("2000-13-01"))).is_null());
  CHECK(one.value(to_date(text("2000-1-01"))).is_null());
  CHECK(one.value(to_int64(col("none"))).is_null());
}

TEST_CASE("numbers are rounded, truncated and converted") {
  Sample one;
  CHECK(one.integer(floor(col("x"))) == -13);
  CHECK(one.integer(ceiling(col("x"))) == -12);
  CHECK(one.value(round(col("x"), 2)) == Value::decimal_units(-1235));
  CHECK(one.column(round(col("x"), 2)).scale == 2);
  CHECK(one.value(round(col("x"), 5)) == Value::decimal_units(-12'345));
  CHECK(one.value(round(col("x"))) == Value::decimal_units(-12));
  CHECK(one.value(round(col("x"), -1)) == Value::decimal_units(-10));
  CHECK(one.value(round(col("x"), -30)) == Value::decimal_units(0));
  CHECK(one.value(round(constant(Value::decimal(9'000'000'000'000'000'000, 18)), -1)) ==
        Value::decimal_units(10));
  CHECK(one.value(round(constant(Value::decimal(4'999'999'999'999'999'999, 18)), -1)) ==
        Value::decimal_units(0));
  CHECK(one.code(round(col("lowest"), -19)) == StatusCode::kOverflow);
  CHECK(one.integer(round(col("lowest"), -20)) == 0);
  CHECK(one.integer(round(col("i"), -1)) == -10);
  CHECK(one.integer(round(col("i"), 3)) == -7);
  CHECK(one.integer(to_int64(col("x"))) == -12);
  CHECK(one.real(round(col("r"))) == 3);
  CHECK(one.real(round(constant(Value::real(-2.345)), 2)) == -2.35);
  CHECK(one.real(round(constant(Value::real(1234.5)), -2)) == 1200);
  CHECK(one.real(round(constant(Value::real(9'007'199'254'740'991.0)), 1)) ==
        9'007'199'254'740'991.0);
  CHECK(one.real(round(constant(Value::real(0.49999999999999994)), 200)) == 0.49999999999999994);
  CHECK(one.real(floor(col("r") * -1)) == -3);
  CHECK(one.real(ceiling(col("r"))) == 3);
  CHECK(one.integer(to_int64(col("r"))) == 2);
  CHECK(one.integer(to_int64(col("r") * -1)) == -2);
  CHECK(one.code(to_int64(constant(Value::real(1e19)))) == StatusCode::kOverflow);
  CHECK(one.value(to_decimal(col("r"), 2)) == Value::decimal_units(250));
  CHECK(one.value(to_decimal(col("x"), 1)) == Value::decimal_units(-123));
  CHECK(one.value(to_decimal(col("i"), 4)) == Value::decimal_units(-70'000));
  CHECK(one.column(to_decimal(col("i"), 0)).type == Type::kDecimal);
  CHECK(one.code(to_decimal(constant(Value::real(1e10)), 18)) == StatusCode::kOverflow);
  CHECK(one.code(to_decimal(col("i"), 19)) == StatusCode::kInvalidArgument);
  CHECK(one.code(round(col("lowest"), -18)) == StatusCode::kOk);
  CHECK(one.code(round(col("lowest"), -1)) == StatusCode::kOverflow);
}

TEST_CASE("functions of numbers give NULL or fail where they have no value") {
  Sample one;
  CHECK(one.integer(absolute(col("i"))) == 7);
  CHECK(one.value(absolute(col("x"))) == Value::decimal_units(12'345));
  CHECK(one.real(absolute(col("r") * -1)) == 2.5);
  CHECK(one.code(absolute(col("lowest"))) == StatusCode::kOverflow);
  CHECK(one.integer(quotient(col("i"), 2)) == -3);
  CHECK(one.value(quotient(col("i"), 0)).is_null());
  CHECK(one.value(quotient(col("n"), 0)).is_null());
  CHECK(one.code(quotient(col("lowest"), -1)) == StatusCode::kOverflow);
  CHECK(one.code(quotient(col("x"), 2)) == StatusCode::kInvalidArgument);
  CHECK(one.real(square_root(constant(Value::real(6.25)))) == 2.5);
  CHECK(one.value(square_root(col("i"))).is_null());
  CHECK(one.real(logarithm(constant(Value::real(1)))) == 0);
  CHECK(one.value(logarithm(constant(Value::int64(0)))).is_null());
  CHECK(one.real(exponential(constant(Value::int64(0)))) == 1);
  CHECK(one.real(power(col("r"), 2)) == 6.25);
  CHECK(one.value(power(col("i"), 0.5)).is_null());
  CHECK(one.value(power(0, -1)).is_null());
  CHECK(one.value(power(col("r"), col("n"))).is_null());
  CHECK(one.value(exponential(col("n"))).is_null());
  CHECK(one.code(absolute(col("t"))) == StatusCode::kInvalidArgument);
}

TEST_CASE("parts of a date and of a time of day") {
  Sample one;
  CHECK(one.integer(quarter(col("day"))) == 4);
  CHECK(one.integer(weekday(col("day"))) == 3);  // a Wednesday
  CHECK(one.integer(day_of_year(col("day"))) == 365);
  CHECK(one.integer(day_of_year(col("at"))) == 60);
  CHECK(one.integer(weekday(col("at"))) == 2);
  CHECK(one.integer(hour(col("at"))) == 12);
  CHECK(one.integer(minute(col("at"))) == 34);
  CHECK(one.integer(second(col("at"))) == 56);
  CHECK(one.integer(hour(col("day"))) == 0);
  const Expr before = timestamp(1969, 12, 31, 23, 59, 58);
  CHECK(one.integer(hour(before)) == 23);
  CHECK(one.integer(second(before)) == 58);
  CHECK(one.value(to_date(col("at"))) == Value::date(11'016));
  CHECK(one.value(to_date(before)) == Value::date(-1));
  CHECK(one.holds(to_timestamp(col("day")) == timestamp(1969, 12, 31)));
  CHECK(one.value(hour(constant(Value::null()))).is_null());
  CHECK(one.code(hour(col("i"))) == StatusCode::kInvalidArgument);
  CHECK(one.code(to_date(col("i"))) == StatusCode::kInvalidArgument);
}

TEST_CASE("a time goes back to the beginning of its unit, and on by months") {
  Sample one;
  const auto begins = [&](TimeUnit unit, const Expr& time) {
    return one.text(to_text(truncate_time(unit, time)));
  };
  CHECK(begins(TimeUnit::kYear, col("at")) == "2000-01-01 00:00:00");
  CHECK(begins(TimeUnit::kQuarter, date(2026, 11, 30)) == "2026-10-01");
  CHECK(begins(TimeUnit::kMonth, col("at")) == "2000-02-01 00:00:00");
  CHECK(begins(TimeUnit::kWeek, col("at")) == "2000-02-28 00:00:00");
  CHECK(begins(TimeUnit::kWeek, col("day")) == "1969-12-29");
  CHECK(begins(TimeUnit::kDay, col("at")) == "2000-02-29 00:00:00");
  CHECK(begins(TimeUnit::kHour, col("at")) == "2000-02-29 12:00:00");
  CHECK(begins(TimeUnit::kMinute, col("at")) == "2000-02-29 12:34:00");
  CHECK(begins(TimeUnit::kSecond, timestamp(1969, 12, 31, 23, 59, 58)) == "1969-12-31 23:59:58");
  CHECK(begins(TimeUnit::kSecond, col("day")) == "1969-12-31");
  CHECK(one.code(truncate_time(TimeUnit{9}, col("at"))) == StatusCode::kInvalidArgument);
  CHECK(one.text(to_text(add_months(date(2024, 1, 31), 1))) == "2024-02-29");
  CHECK(one.text(to_text(add_months(date(2024, 3, 31), -13))) == "2023-02-28");
  CHECK(one.text(to_text(add_months(col("day"), col("i")))) == "1969-05-31");
  CHECK(one.text(to_text(add_months(timestamp(1969, 12, 31, 23), 2))) == "1970-02-28 23:00:00");
  CHECK(one.value(add_months(col("day"), col("n"))).is_null());
  const Expr first = constant(Value::timestamp(kLowest + 14'000'000'000));
  CHECK(one.holds(add_months(first, 0) == first));
  CHECK(one.holds(add_months(add_months(first, 1), -1) == first));
  CHECK(one.code(add_months(first, -1)) == StatusCode::kOverflow);
  CHECK(one.code(add_months(col("day"), 100'000'000)) == StatusCode::kOverflow);
  CHECK(one.code(add_months(col("day"), col("lowest"))) == StatusCode::kOverflow);
  CHECK(one.code(add_months(col("day"), col("r"))) == StatusCode::kInvalidArgument);
}

TEST_CASE("units of time have names") {
  for (int number = 0; number <= static_cast<int>(TimeUnit::kSecond); ++number) {
    const auto unit = static_cast<TimeUnit>(number);
    CHECK(time_unit(query::to_string(unit)) == unit);
  }
  CHECK(time_unit("month") == TimeUnit::kMonth);
  CHECK(time_unit("decade") == std::nullopt);
  CHECK(query::to_string(TimeUnit{9}) == "unknown");
}

TEST_CASE("to_string writes calls of functions") {
  CHECK(truncate_time(TimeUnit::kWeek, col("at")).to_string() == "truncate_time(week, at)");
  CHECK(round(col("x"), -2).to_string() == "round(x, -2)");
  CHECK(round(col("x")).to_string() == "round(x)");
  CHECK(to_decimal(col("x"), 2).to_string() == "to_decimal(x, 2)");
  CHECK(trim(col("s"), Sides::kLeft).to_string() == "trim_left(s)");
  CHECK(concat({lower(col("s")), col("t")}).to_string() == "concat(lower(s), t)");
  CHECK(add_months(col("d"), 3).to_string() == "add_months(d, 3)");
}
