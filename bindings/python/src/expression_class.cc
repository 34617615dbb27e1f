#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings/python/src/classes.h"
#include "bindings/python/src/values.h"
#include "flugs/query.h"

namespace flugs::python {

using query::Aggregate;
using query::Expr;

namespace {

using nb::literals::operator""_a;
using Combine = Expr (*)(const Expr&, const Expr&);

/// An operator of Python, which also takes a value on its right.
void bind_operator(nb::class_<Expr>& expr, const char* name, const char* signature,
                   Combine combine) {
  expr.def(
      name, [combine](const Expr& a, nb::handle b) { return combine(a, to_expr(b)); },
      nb::is_operator(), nb::arg("other").none(), nb::sig(signature));
}

/// The same with the value on its left.
void bind_reverse(nb::class_<Expr>& expr, const char* name, const char* signature,
                  Combine combine) {
  expr.def(
      name, [combine](const Expr& b, nb::handle a) { return combine(to_expr(a), b); },
      nb::is_operator(), nb::arg("other").none(), nb::sig(signature));
}

void bind_operators(nb::class_<Expr>& expr) {
  bind_operator(expr, "__eq__", "def __eq__(self, other: Any) -> Expr",
                [](const Expr& a, const Expr& b) { return a == b; });
  bind_operator(expr, "__ne__", "def __ne__(self, other: Any) -> Expr",
                [](const Expr& a, const Expr& b) { return a != b; });
  bind_operator(expr, "__lt__", "def __lt__(self, other: Any) -> Expr",
                [](const Expr& a, const Expr& b) { return a < b; });
  bind_operator(expr, "__le__", "def __le__(self, other: Any) -> Expr",
                [](const Expr& a, const Expr& b) { return a <= b; });
  bind_operator(expr, "__gt__", "def __gt__(self, other: Any) -> Expr",
                [](const Expr& a, const Expr& b) { return a > b; });
  bind_operator(expr, "__ge__", "def __ge__(self, other: Any) -> Expr",
                [](const Expr& a, const Expr& b) { return a >= b; });
  const auto both_ways = [&](const char* name, Combine combine) {
    const std::string plain = "__" + std::string(name) + "__";
    const std::string reverse = "__r" + std::string(name) + "__";
    bind_operator(expr, plain.c_str(), ("def " + plain + "(self, other: Any) -> Expr").c_str(),
                  combine);
    bind_reverse(expr, reverse.c_str(), ("def " + reverse + "(self, other: Any) -> Expr").c_str(),
                 combine);
  };
  both_ways("and", [](const Expr& a, const Expr& b) { return a && b; });
  both_ways("or", [](const Expr& a, const Expr& b) { return a || b; });
  both_ways("add", [](const Expr& a, const Expr& b) { return a + b; });
  both_ways("sub", [](const Expr& a, const Expr& b) { return a - b; });
  both_ways("mul", [](const Expr& a, const Expr& b) { return a * b; });
  both_ways("truediv", [](const Expr& a, const Expr& b) { return a / b; });
  both_ways("mod", [](const Expr& a, const Expr& b) { return a % b; });
  expr.def("__invert__", [](const Expr& a) { return !a; })
      .def("__neg__", [](const Expr& a) { return Expr(0) - a; })
      .def("__bool__",
           [](const Expr&) -> bool {
             throw nb::type_error("an expression has no truth value: use & | ~ for and, or, not");
           })
      .def("__repr__", [](const Expr& a) { return "<flugs.Expr " + a.to_string() + ">"; });
}

std::vector<Expr> constants_of(nb::handle values) {
  std::vector<Expr> constants;
  for (const nb::handle value : values) constants.push_back(to_expr(value));
  return constants;
}

void bind_predicates(nb::class_<Expr>& expr) {
  expr.def("alias", &Expr::as, "name"_a, "The same under another name.")
      .def("is_null", &Expr::is_null)
      .def("is_not_null", &Expr::is_not_null)
      .def(
          "between",
          [](const Expr& a, nb::handle low, nb::handle high) {
            return a.between(to_expr(low), to_expr(high));
          },
          "low"_a, "high"_a, nb::sig("def between(self, low: Any, high: Any) -> Expr"),
          "low <= this and this <= high.")
      .def(
          "is_in", [](const Expr& a, nb::handle values) { return a.in(constants_of(values)); },
          "values"_a, nb::sig("def is_in(self, values: Iterable[Any]) -> Expr"))
      .def(
          "starts_with", [](const Expr& a, const std::string& part) { return a.starts_with(part); },
          "prefix"_a)
      .def(
          "ends_with", [](const Expr& a, const std::string& part) { return a.ends_with(part); },
          "suffix"_a)
      .def(
          "contains", [](const Expr& a, const std::string& part) { return a.contains(part); },
          "part"_a)
      .def(
          "substring",
          [](const Expr& a, std::uint32_t first, std::uint32_t length) {
            return query::substring(a, first, length);
          },
          "first"_a, "length"_a, "Bytes of a text from `first` on, counted from 1.")
      .def(
          "like",
          [](const Expr& a, const std::string& pattern, const std::string& escape) {
            if (escape.size() > 1) throw nb::value_error("escape: expected one byte");
            return a.like(pattern, escape.empty() ? '\0' : escape[0]);
          },
          "pattern"_a, "escape"_a = "",
          "Whether all of a text matches: % is any number of bytes, _ one character. Behind "
          "`escape`, one byte, %, _ and itself stand for themselves.")
      .def(
          "matches", [](const Expr& a, const std::string& pattern) { return a.matches(pattern); },
          "pattern"_a, "Whether some part of a text matches a regular expression of RE2.");
}

query::TimeUnit unit_of(const std::string& name) {
  const std::optional<query::TimeUnit> unit = query::time_unit(name);
  if (!unit)
    throw nb::value_error("unit: expected year, quarter, month, week, day, hour, minute or second");
  return *unit;
}

void bind_functions_of_times(nb::class_<Expr>& expr) {
  expr.def("year", &query::year)
      .def("quarter", &query::quarter)
      .def("month", &query::month)
      .def("day", &query::day)
      .def("day_of_year", &query::day_of_year)
      .def("weekday", &query::weekday, "1 (Monday) to 7 (Sunday).")
      .def("hour", &query::hour)
      .def("minute", &query::minute)
      .def("second", &query::second)
      .def(
          "truncate_time",
          [](const Expr& a, const std::string& unit) {
            return query::truncate_time(unit_of(unit), a);
          },
          "unit"_a,
          "The beginning of the year, quarter, month, week, day, hour, minute or second in which a "
          "time lies.")
      .def(
          "add_months",
          [](const Expr& a, nb::handle months) { return query::add_months(a, to_expr(months)); },
          "months"_a, nb::sig("def add_months(self, months: Any) -> Expr"),
          "So many months later, on the same day or the month's last one.")
      .def("to_date", &query::to_date, "The day of a timestamp, or of a text like 2026-11-30.")
      .def("to_timestamp", &query::to_timestamp, "A date's midnight.");
}

void bind_functions_of_texts(nb::class_<Expr>& expr) {
  expr.def("length", &query::length, "Characters; bytes in a column of bytes.")
      .def("byte_length", &query::byte_length)
      .def("lower", &query::lower, "With small letters for A to Z.")
      .def("upper", &query::upper, "With large letters for a to z.")
      .def(
          "trim", [](const Expr& a) { return query::trim(a); }, "Without the spaces at both ends.")
      .def("trim_left", [](const Expr& a) { return query::trim(a, query::Sides::kLeft); })
      .def("trim_right", [](const Expr& a) { return query::trim(a, query::Sides::kRight); })
      .def(
          "position",
          [](const Expr& a, nb::handle part) { return query::position(a, to_expr(part)); },
          "part"_a, nb::sig("def position(self, part: Any) -> Expr"),
          "The place of a part, counted in characters from 1; 0 if it is not there.")
      .def(
          "regexp_extract",
          [](const Expr& a, const std::string& pattern, std::uint32_t group) {
            return query::regexp_extract(a, pattern, group);
          },
          "pattern"_a, "group"_a = 0,
          "What the first match of a regular expression has for a group; 0: all of the match. "
          "Empty if nothing matches.")
      .def(
          "regexp_replace",
          [](const Expr& a, const std::string& pattern, const std::string& replacement, bool all) {
            return query::regexp_replace(a, pattern, replacement,
                                         all ? query::Replace::kAll : query::Replace::kFirst);
          },
          "pattern"_a, "replacement"_a, "all"_a = false,
          "With the first match of a regular expression, or all, replaced. In the replacement a "
          "backslash and a digit stand for a group, and 0 for the match.")
      .def("to_text", &query::to_text)
      .def("first_byte", &query::first_byte);
}

void bind_functions_of_numbers(nb::class_<Expr>& expr) {
  expr.def("absolute", &query::absolute)
      .def("floor", &query::floor)
      .def("ceiling", &query::ceiling)
      .def("round", &query::round, "places"_a = 0,
           "To decimal places, half away from zero; -2: to hundreds.")
      .def("square_root", &query::square_root)
      .def("logarithm", &query::logarithm, "The natural one.")
      .def("exponential", &query::exponential)
      .def(
          "power",
          [](const Expr& a, nb::handle exponent) { return query::power(a, to_expr(exponent)); },
          "exponent"_a, nb::sig("def power(self, exponent: Any) -> Expr"))
      .def(
          "quotient",
          [](const Expr& a, nb::handle divisor) { return query::quotient(a, to_expr(divisor)); },
          "divisor"_a, nb::sig("def quotient(self, divisor: Any) -> Expr"),
          "Divides integers and drops the fraction: -7 by 2 is -3, but -4 by //.")
      .def("to_double", &query::to_double, "A number, or a text that is one, as a double.")
      .def("to_int64", &query::to_int64,
           "A number without its fraction, or the integer that a text is.")
      .def("to_decimal", &query::to_decimal, "scale"_a, "Rounded half away from zero.");
}

Aggregate of_item(Aggregate (*make)(const query::Item&), nb::handle item) {
  return make(query::Item(to_item(item)));
}

void bind_aggregates(nb::module_& module) {
  nb::class_<Aggregate>(module, "Aggregate", "One figure per group.")
      .def("alias", &Aggregate::as, "name"_a, "The same under another name.")
      .def("where", &Aggregate::where, "condition"_a,
           "The same over the rows for which the condition is true. alias() behind it names it.");
  module.def(
      "count",
      [](nb::handle of) { return of.is_none() ? query::count() : of_item(&query::count, of); },
      "of"_a = nb::none(), nb::sig("def count(of: str | Expr | None = None) -> Aggregate"),
      "Counts rows, or the values that are not NULL.");
  const auto bind = [&](const char* name, Aggregate (*make)(const query::Item&)) {
    const std::string signature = "def " + std::string(name) + "(of: str | Expr) -> Aggregate";
    module.def(
        name, [make](nb::handle of) { return of_item(make, of); }, "of"_a,
        nb::sig(signature.c_str()));
  };
  bind("count_distinct", &query::count_distinct);
  bind("sum", &query::sum);
  bind("min", &query::min);
  bind("max", &query::max);
  bind("avg", &query::avg);
  bind("variance", &query::variance);
  bind("stddev", &query::stddev);
  bind("median", &query::median);
  module.def(
      "approx_count_distinct",
      [](nb::handle of) { return of_item(&query::approx_count_distinct, of); }, "of"_a,
      nb::sig("def approx_count_distinct(of: str | Expr) -> Aggregate"),
      "Counts different values with a standard error of 1.6 %, in little memory.");
  module.def(
      "quantile",
      [](nb::handle of, double q) { return query::quantile(query::Item(to_item(of)), q); }, "of"_a,
      "q"_a, nb::sig("def quantile(of: str | Expr, q: float) -> Aggregate"),
      "The first value, in ascending order, with at least the part q of all values at it or before "
      "it.");
}

Expr case_when(nb::handle cases, nb::handle otherwise) {
  std::vector<query::WhenThen> made;
  for (const nb::handle one : cases) {
    const auto pair = nb::cast<nb::tuple>(nb::handle(&PyTuple_Type)(one));
    if (pair.size() != 2) throw nb::value_error("a case is a condition and a value");
    made.push_back({to_expr(pair[0]), to_expr(pair[1])});
  }
  return query::case_when(std::move(made), otherwise.is_none() ? Expr() : to_expr(otherwise));
}

}  // namespace

Expr to_expr(nb::handle object) {
  if (nb::isinstance<Expr>(object)) return nb::cast<Expr>(object);
  return query::constant(to_value(object));
}

Expr to_item(nb::handle object) {
  if (nb::isinstance<Expr>(object)) return nb::cast<Expr>(object);
  if (nb::isinstance<nb::str>(object)) return query::col(std::string(text_of(object)));
  throw nb::type_error("expected the name of a column, or an expression");
}

void bind_expressions(nb::module_& module) {
  nb::class_<Expr> expr(module, "Expr",
                        "A value computed for each row: a column, a constant, or a function of "
                        "expressions. Combine conditions with & | ~.");
  bind_operators(expr);
  bind_predicates(expr);
  bind_functions_of_times(expr);
  bind_functions_of_texts(expr);
  bind_functions_of_numbers(expr);
  module.def(
      "concat", [](const nb::args& texts) { return query::concat(constants_of(texts)); }, "texts"_a,
      nb::sig("def concat(*texts: Any) -> Expr"), "The texts one behind the other.");
  module.def(
      "col", [](std::string name) { return query::col(std::move(name)); }, "name"_a,
      "A column of the query's input.");
  module.def(
      "lit", [](nb::handle value) { return to_expr(value); }, nb::arg("value").none(),
      nb::sig("def lit(value: Any) -> Expr"), "A constant.");
  module.def("case_when", &case_when, "cases"_a, "otherwise"_a = nb::none(),
             nb::sig("def case_when(cases: Iterable[tuple[Expr, Any]], otherwise: Any = None)"
                     " -> Expr"),
             "The value of the first case whose condition is true.");
  bind_aggregates(module);
}

}  // namespace flugs::python
