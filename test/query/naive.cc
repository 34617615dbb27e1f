#include "test/query/naive.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <regex>

#include "query/expressions/expr_node.h"

namespace flugs::test {

using query::DataType;
using query::ExprNode;
using query::Lane;
using query::Op;

namespace {

__extension__ using Int128 = __int128;

Cell truth(bool value) {
  Cell cell;
  cell.type = {Type::kBool, 0};
  cell.null = false;
  cell.i = value ? 1 : 0;
  return cell;
}
Cell unknown() {
  Cell cell;
  cell.type = {Type::kBool, 0};
  return cell;
}
Cell number(Int128 value, DataType type) {
  if (value != static_cast<std::int64_t>(value)) throw NaiveOverflow{};
  if (type.type == Type::kDate && value != static_cast<std::int32_t>(value)) throw NaiveOverflow{};
  Cell cell;
  cell.type = type;
  cell.null = false;
  cell.i = static_cast<std::int64_t>(value);
  return cell;
}
Cell null_of(DataType type) {
  Cell cell;
  cell.type = type;
  return cell;
}
Cell real(double value) {
  Cell cell;
  cell.type = {Type::kDouble, 0};
  cell.null = false;
  cell.r = value == 0 ? 0.0 : value;
  return cell;
}
Cell text(std::string value, DataType type) {
  Cell cell;
  cell.type = type;
  cell.null = false;
  cell.s = std::move(value);
  return cell;
}

double as_real(const Cell& cell) {
  if (cell.type.type == Type::kDouble) return cell.r;
  return static_cast<double>(cell.i) / std::pow(10.0, cell.type.scale);
}

Int128 as_instant(const Cell& cell) {
  return cell.type.type == Type::kDate ? Int128{cell.i} * 86'400'000'000 : Int128{cell.i};
}

Int128 scaled(const Cell& cell, unsigned scale) {
  Int128 value = cell.i;
  for (unsigned s = cell.type.scale; s < scale; ++s) value *= 10;
  return value;
}

Cell arithmetic(Op op, const Cell& a, const Cell& b) {
  const bool times = query::is_time(a.type) || query::is_time(b.type);
  const bool exact = !times && query::is_exact(a.type) && query::is_exact(b.type);
  const bool integers = query::is_integer(a.type) && query::is_integer(b.type);
  DataType type{Type::kInt64, 0};
  if (times) {
    if (!(query::is_time(a.type) && query::is_time(b.type)))
      type = query::is_time(a.type) ? a.type : b.type;
  } else if (op == Op::kDivide || !exact) {
    type = {Type::kDouble, 0};
  } else if (!integers) {
    const int scale =
        op == Op::kMultiply ? a.type.scale + b.type.scale : std::max(a.type.scale, b.type.scale);
    type = {Type::kDecimal, static_cast<std::uint8_t>(scale)};
  }
  if (a.null || b.null) return null_of(type);
  if (type.type == Type::kDouble) {
    const double x = as_real(a);
    const double y = as_real(b);
    if (op == Op::kDivide) return y == 0 ? null_of(type) : real(x / y);
    return real(op == Op::kAdd ? x + y : op == Op::kSubtract ? x - y : x * y);
  }
  if (op == Op::kRemainder) return b.i == 0 ? null_of(type) : number(Int128{a.i} % b.i, type);
  if (op == Op::kMultiply) return number(Int128{a.i} * b.i, type);
  const Int128 x = number(scaled(a, times ? a.type.scale : type.scale), type).i;
  const Int128 y = number(scaled(b, times ? b.type.scale : type.scale), type).i;
  return number(op == Op::kAdd ? x + y : x - y, type);
}

Cell comparison(Op op, const Cell& a, const Cell& b) {
  if (a.null || b.null) return unknown();
  const int order = compare(a, b);
  switch (op) {
    case Op::kEqual:
      return truth(order == 0);
    case Op::kNotEqual:
      return truth(order != 0);
    case Op::kLess:
      return truth(order < 0);
    default:
      return truth(order <= 0);
  }
}

Cell logic(Op op, const Cell& a, const Cell& b) {
  const bool decisive = op == Op::kOr;
  if ((!a.null && (a.i != 0) == decisive) || (!b.null && (b.i != 0) == decisive))
    return truth(decisive);
  return a.null || b.null ? unknown() : truth(!decisive);
}

Cell calendar(Op op, const Cell& time) {
  if (time.null) return null_of({Type::kInt64, 0});
  // The standard library's calendar: another implementation than the engine's.
  const std::chrono::sys_days days{std::chrono::days{
      time.type.type == Type::kDate
          ? time.i
          : std::chrono::floor<std::chrono::days>(std::chrono::microseconds(time.i)).count()}};
  const std::chrono::year_month_day date(days);
  const std::int64_t value = op == Op::kYear    ? static_cast<int>(date.year())
                             : op == Op::kMonth ? static_cast<unsigned>(date.month())
                                                : static_cast<unsigned>(date.day());
  return number(value, {Type::kInt64, 0});
}

// Compiled once: under the address sanitizer that takes longer than all that is done with it.
const std::regex& compiled(const std::string& pattern) {
  thread_local std::map<std::string, std::regex> known;
  return known.try_emplace(pattern, pattern).first->second;
}

// For ASCII patterns that the standard library and RE2 understand in the same way.
Cell regexp_function(const ExprNode& node, const Cell& subject) {
  const std::regex& pattern = compiled(node.text);
  const std::string& s = subject.s;
  std::smatch match;
  const bool is_found = std::regex_search(s, match, pattern);
  if (node.op == Op::kMatches) return truth(is_found);
  if (node.op == Op::kRegexpExtract)
    return text(is_found ? match[node.first].str() : "", subject.type);
  const bool is_first = static_cast<query::Replace>(node.first) == query::Replace::kFirst;
  std::string with;  // as ECMAScript writes it
  for (const char c : node.args[1].node()->literal.text) with += c == '\\' ? '$' : c;
  return text(std::regex_replace(s, pattern, with,
                                 is_first ? std::regex_constants::format_first_only
                                          : std::regex_constants::format_default),
              subject.type);
}

Cell text_function(const ExprNode& node, const Cell& subject) {
  const bool is_predicate =
      (node.op >= Op::kStartsWith && node.op <= Op::kContains) || node.op == Op::kMatches;
  const bool is_number = node.op == Op::kFirstByte;
  if (subject.null)
    return is_predicate ? unknown() : null_of(is_number ? DataType{Type::kInt64, 0} : subject.type);
  const std::string& s = subject.s;
  switch (node.op) {
    case Op::kStartsWith:
      return truth(s.substr(0, node.text.size()) == node.text);
    case Op::kEndsWith:
      return truth(s.size() >= node.text.size() &&
                   s.substr(s.size() - node.text.size()) == node.text);
    case Op::kContains:
      return truth(s.find(node.text) != std::string::npos);
    case Op::kMatches:
    case Op::kRegexpExtract:
    case Op::kRegexpReplace:
      return regexp_function(node, subject);
    case Op::kFirstByte:
      return number(s.empty() ? 0 : static_cast<unsigned char>(s[0]), {Type::kInt64, 0});
    default: {
      std::string part;
      for (std::size_t i = 0; i < node.length && node.first - 1 + i < s.size(); ++i)
        part += s[node.first - 1 + i];
      return text(part, subject.type);
    }
  }
}

Cell converted(Cell cell, DataType to) {
  if (cell.null) return null_of(to);
  if (to.type == Type::kDouble) return real(as_real(cell));
  if (to.type == Type::kDecimal) return number(scaled(cell, to.scale), to);
  if (to.type == Type::kTimestamp) return number(as_instant(cell), to);
  cell.type = to;
  return cell;
}

bool is_untyped_null(const ExprNode& node) {
  if (node.op == Op::kConstant) return node.literal.is_untyped_null;
  if (node.op != Op::kCase) return false;
  for (std::size_t i = 0; i < node.args.size(); ++i)
    if ((i % 2 == 1 || i + 1 == node.args.size()) && !is_untyped_null(*node.args[i].node()))
      return false;
  return true;
}

// Doubles and timestamps win, then the largest scale.
DataType type_of_both(DataType a, DataType b) {
  if (query::is_time(a) && a.type != b.type) return {Type::kTimestamp, 0};
  if (!query::is_number(a) || a == b) return a;
  if (!query::is_exact(a) || !query::is_exact(b)) return {Type::kDouble, 0};
  if (query::is_integer(a) && query::is_integer(b)) return {Type::kInt64, 0};
  return {Type::kDecimal, std::max(a.scale, b.scale)};
}

Cell case_when(const query::Expr& expr, const Relation& relation, const std::vector<Cell>& row) {
  const ExprNode& node = *expr.node();
  std::size_t taken = node.args.size() - 1;
  for (std::size_t i = 0; i + 1 < node.args.size(); i += 2) {
    const Cell condition = evaluate(node.args[i], relation, row);
    if (condition.null || condition.i == 0) continue;
    taken = i + 1;
    break;
  }
  return converted(evaluate(node.args[taken], relation, row), type_of(expr, relation));
}

Cell membership(const ExprNode& node, const Relation& relation, const std::vector<Cell>& row) {
  Cell found = truth(false);
  const Cell subject = evaluate(node.args[0], relation, row);
  for (std::size_t i = 1; i < node.args.size(); ++i)
    found = logic(Op::kOr, found,
                  comparison(Op::kEqual, subject, evaluate(node.args[i], relation, row)));
  return subject.null ? unknown() : found;
}

}  // namespace

Cell Cell::of(DataType type, const Value& value) {
  Cell cell;
  cell.type = type;
  cell.null = value.is_null();
  if (cell.null) return cell;
  if (type.type == Type::kDouble) cell.r = value.as_double();
  if (query::lane_of(type) == Lane::kInt) cell.i = value.raw();
  cell.s = value.as_string();
  return cell;
}

std::string Cell::to_text() const {
  if (null) return "NULL";
  switch (query::lane_of(type)) {
    case Lane::kText:
      return "'" + s + "'";
    case Lane::kReal:
      return std::isnan(r) ? "nan" : fmt::format("{:.9g}", r);
    case Lane::kInt:
      break;
  }
  std::int64_t units = i;
  unsigned scale = type.scale;
  for (; scale > 0 && units % 10 == 0; --scale) units /= 10;
  constexpr std::int64_t kDigits = 1'000'000'000;
  if (scale == 0 && units > -kDigits && units < kDigits) return std::to_string(units);
  if (units > -kDigits && units < kDigits)
    return fmt::format("{:.9g}", static_cast<double>(units) / std::pow(10.0, scale));
  return fmt::format("{}e-{}", units, scale);
}

int compare(const Cell& a, const Cell& b) {
  if (a.null || b.null) return (b.null ? 1 : 0) - (a.null ? 1 : 0);
  const auto order = [](const auto& x, const auto& y) { return x < y ? -1 : y < x ? 1 : 0; };
  if (query::lane_of(a.type) == Lane::kText) return order(a.s, b.s);
  if (query::is_time(a.type)) {
    if (a.type == b.type) return order(a.i, b.i);
    return order(as_instant(a), as_instant(b));
  }
  if (a.type.type == Type::kDouble || b.type.type == Type::kDouble) {
    const double x = as_real(a);
    const double y = as_real(b);
    if (std::isnan(x) || std::isnan(y)) return (std::isnan(x) ? 1 : 0) - (std::isnan(y) ? 1 : 0);
    return order(x, y);
  }
  const unsigned scale = std::max(a.type.scale, b.type.scale);
  return order(scaled(a, scale), scaled(b, scale));
}

std::size_t Relation::find(const std::string& name) const {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return i;
  throw std::out_of_range("no column " + name);
}

DataType type_of(const query::Expr& expr, const Relation& relation) {
  const ExprNode& node = *expr.node();
  const auto arg = [&](std::size_t i) { return type_of(node.args[i], relation); };
  switch (node.op) {
    case Op::kColumn:
      return relation.types[relation.find(node.text)];
    case Op::kConstant:
      return node.literal.type;
    case Op::kAdd:
    case Op::kSubtract:
    case Op::kMultiply:
    case Op::kDivide:
    case Op::kRemainder:
      return arithmetic(node.op, null_of(arg(0)), null_of(arg(1))).type;
    case Op::kYear:
    case Op::kMonth:
    case Op::kDay:
    case Op::kFirstByte:
      return {Type::kInt64, 0};
    case Op::kToDouble:
      return {Type::kDouble, 0};
    case Op::kSubstring:
    case Op::kRegexpExtract:
    case Op::kRegexpReplace:
      return is_untyped_null(*node.args[0].node()) ? DataType{Type::kString, 0} : arg(0);
    case Op::kCase: {
      DataType type;
      bool has_type = false;
      for (std::size_t i = 0; i < node.args.size(); ++i) {
        const bool is_value = i % 2 == 1 || i + 1 == node.args.size();
        if (!is_value || is_untyped_null(*node.args[i].node())) continue;
        type = has_type ? type_of_both(type, arg(i)) : arg(i);
        has_type = true;
      }
      return type;
    }
    default:
      return {Type::kBool, 0};
  }
}

Cell evaluate(const query::Expr& expr, const Relation& relation, const std::vector<Cell>& row) {
  const ExprNode& node = *expr.node();
  const auto arg = [&](std::size_t i) { return evaluate(node.args[i], relation, row); };
  switch (node.op) {
    case Op::kColumn:
      return row[relation.find(node.text)];
    case Op::kConstant:
      return Cell::of(node.literal.type, node.literal.value);
    case Op::kEqual:
    case Op::kNotEqual:
    case Op::kLess:
    case Op::kLessEqual:
      return comparison(node.op, arg(0), arg(1));
    case Op::kAnd:
    case Op::kOr:
      return logic(node.op, arg(0), arg(1));
    case Op::kNot: {
      const Cell a = arg(0);
      return a.null ? unknown() : truth(a.i == 0);
    }
    case Op::kIsNull:
      return truth(arg(0).null);
    case Op::kIsNotNull:
      return truth(!arg(0).null);
    case Op::kIn:
      return membership(node, relation, row);
    case Op::kAdd:
    case Op::kSubtract:
    case Op::kMultiply:
    case Op::kDivide:
    case Op::kRemainder:
      return arithmetic(node.op, arg(0), arg(1));
    case Op::kYear:
    case Op::kMonth:
    case Op::kDay:
      return calendar(node.op, arg(0));
    case Op::kToDouble:
      return converted(arg(0), {Type::kDouble, 0});
    case Op::kCase:
      return case_when(expr, relation, row);
    default:
      return text_function(node, arg(0));
  }
}

}  // namespace flugs::test
