#include "test/query/sql_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "query/expressions/expr_node.h"

namespace flugs::test {

using query::AggregateKind;
using query::DataType;
using query::Expr;
using query::ExprNode;
using query::JoinKind;
using query::Op;
using query::QueryNode;
using Columns = std::vector<SqlQuery::Column>;

namespace {

constexpr DataType kBool{Type::kBool, 0};
constexpr DataType kInteger{Type::kInt64, 0};
constexpr DataType kReal{Type::kDouble, 0};

struct Sql {
  std::string text;
  DataType type;
  bool is_untyped_null = false;
};

std::string quoted(const std::string& name) { return "\"" + name + "\""; }
bool is_text(DataType type) { return query::lane_of(type) == query::Lane::kText; }

std::string ten_to(unsigned exponent) { return "1" + std::string(exponent, '0'); }

/// The common type of both values.
DataType common(DataType a, DataType b) {
  if (query::is_time(a) && a.type != b.type) return {Type::kTimestamp, 0};
  if (!query::is_number(a)) return a;
  if (!query::is_exact(a) || !query::is_exact(b)) return kReal;
  if (query::is_integer(a) && query::is_integer(b)) return a.type == b.type ? a : kInteger;
  return {Type::kDecimal, std::max(a.scale, b.scale)};
}

std::string converted(const Sql& from, DataType to) {
  if (from.is_untyped_null || from.type == to) return from.text;
  if (to.type == Type::kDouble)
    return fmt::format("(cast({} as real) / {}.0)", from.text, ten_to(from.type.scale));
  if (to.type == Type::kTimestamp) return fmt::format("({} * 86400000000)", from.text);
  if (to.scale > from.type.scale)
    return fmt::format("({} * {})", from.text, ten_to(to.scale - from.type.scale));
  return from.text;
}

std::string compared(const Sql& a, const char* with, const Sql& b) {
  const DataType type = a.is_untyped_null   ? b.type
                        : b.is_untyped_null ? a.type
                                            : common(a.type, b.type);
  return fmt::format("({} {} {})", converted(a, type), with, converted(b, type));
}

Sql sql_of(const Expr& expr, const Columns& columns);

Sql sql_of_case(const std::vector<Sql>& args) {
  const auto is_value = [&](std::size_t i) { return i % 2 == 1 || i + 1 == args.size(); };
  Sql made{"", kInteger, true};
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (!is_value(i) || args[i].is_untyped_null) continue;
    made.type = made.is_untyped_null ? args[i].type : common(made.type, args[i].type);
    made.is_untyped_null = false;
  }
  made.text = "(case";
  for (std::size_t i = 0; i + 1 < args.size(); i += 2)
    made.text += fmt::format(" when {} then {}", args[i].text, converted(args[i + 1], made.type));
  made.text += fmt::format(" else {} end)", converted(args.back(), made.type));
  return made;
}

Sql sql_of_arithmetic(Op op, Sql a, Sql b) {
  const char* sign = op == Op::kAdd         ? "+"
                     : op == Op::kSubtract  ? "-"
                     : op == Op::kMultiply  ? "*"
                     : op == Op::kRemainder ? "%"
                                            : "/";
  const bool times = query::is_time(a.type) || query::is_time(b.type);
  if (a.is_untyped_null) a.type = query::is_time(b.type) ? kInteger : b.type;
  if (b.is_untyped_null) b.type = query::is_time(a.type) ? kInteger : a.type;
  a.is_untyped_null = b.is_untyped_null = false;
  if (times) {
    const bool both = query::is_time(a.type) && query::is_time(b.type);
    const DataType type = both ? kInteger : query::is_time(a.type) ? a.type : b.type;
    return {fmt::format("({} {} {})", a.text, sign, b.text), type};
  }
  DataType type = op == Op::kDivide ? kReal : common(a.type, b.type);
  if (query::is_integer(type)) type = kInteger;
  if (op == Op::kMultiply && type.type == Type::kDecimal) {
    type.scale = static_cast<std::uint8_t>(a.type.scale + b.type.scale);
    return {fmt::format("({} * {})", a.text, b.text), type};
  }
  return {fmt::format("({} {} {})", converted(a, type), sign, converted(b, type)), type};
}

std::string sql_of_text_predicate(const ExprNode& node, const std::string& subject) {
  const std::string pattern = sql_literal({Type::kString, 0}, Value::string(node.text));
  const std::size_t n = node.text.size();
  std::string truth;
  if (node.op == Op::kStartsWith)
    truth = fmt::format("substr({}, 1, {}) = {}", subject, n, pattern);
  else if (node.op == Op::kContains || n == 0)
    truth = fmt::format("instr({}, {}) > 0", subject, pattern);
  else
    truth = fmt::format("length({0}) >= {1} and substr({0}, -{1}) = {2}", subject, n, pattern);
  return fmt::format("(case when {} is null then null else ({}) end)", subject, truth);
}

Sql sql_of_calendar(Op op, const Sql& time) {
  const std::string seconds =
      time.type.type == Type::kTimestamp
          ? fmt::format("(({0} - (({0} % 1000000) + 1000000) % 1000000) / 1000000)", time.text)
          : fmt::format("({} * 86400)", time.text);
  const char* part = op == Op::kYear ? "%Y" : op == Op::kMonth ? "%m" : "%d";
  return {fmt::format("cast(strftime('{}', {}, 'unixepoch') as integer)", part, seconds), kInteger};
}

Sql sql_of_function(const ExprNode& node, const Sql& a) {
  switch (node.op) {
    case Op::kIsNull:
      return {"(" + a.text + " is null)", kBool};
    case Op::kIsNotNull:
      return {"(" + a.text + " is not null)", kBool};
    case Op::kNot:
      return {"(not " + a.text + ")", kBool};
    case Op::kYear:
    case Op::kMonth:
    case Op::kDay:
      return sql_of_calendar(node.op, a);
    case Op::kSubstring:
      return {fmt::format("substr({}, {}, {})", a.text, node.first, node.length),
              a.is_untyped_null ? DataType{Type::kString, 0} : a.type};
    case Op::kFirstByte:
      return {fmt::format("(case when {0} = '' then 0 else unicode({0}) end)", a.text), kInteger};
    case Op::kToDouble:
      return {converted(a, kReal), kReal};
    default:
      return {sql_of_text_predicate(node, a.text), kBool};
  }
}

Sql sql_of_list(const std::vector<Sql>& args) {
  std::string text;
  for (std::size_t i = 1; i < args.size(); ++i)
    text += (i == 1 ? "" : " or ") + compared(args[0], "=", args[i]);
  return {"(" + text + ")", kBool};
}

Sql sql_of(const Expr& expr, const Columns& columns) {
  const ExprNode& node = *expr.node();
  std::vector<Sql> args;
  for (const Expr& arg : node.args) args.push_back(sql_of(arg, columns));
  switch (node.op) {
    case Op::kColumn: {
      const SqlQuery all{"", columns};
      return {quoted(node.text), all.column(node.text).type};
    }
    case Op::kConstant:
      return {sql_literal(node.literal.type, node.literal.value), node.literal.type,
              node.literal.is_untyped_null};
    case Op::kEqual:
      return {compared(args[0], "=", args[1]), kBool};
    case Op::kNotEqual:
      return {compared(args[0], "<>", args[1]), kBool};
    case Op::kLess:
      return {compared(args[0], "<", args[1]), kBool};
    case Op::kLessEqual:
      return {compared(args[0], "<=", args[1]), kBool};
    case Op::kAnd:
      return {fmt::format("({} and {})", args[0].text, args[1].text), kBool};
    case Op::kOr:
      return {fmt::format("({} or {})", args[0].text, args[1].text), kBool};
    case Op::kIn:
      return sql_of_list(args);
    case Op::kCase:
      return sql_of_case(args);
    case Op::kAdd:
    case Op::kSubtract:
    case Op::kMultiply:
    case Op::kDivide:
    case Op::kRemainder:
      return sql_of_arithmetic(node.op, args[0], args[1]);
    default:
      return sql_of_function(node, args[0]);
  }
}

SqlQuery::Column output(const std::string& name, const Sql& sql) { return {name, sql.type}; }

/// An aggregate of `argument`, a column with its values.
Sql sql_of_aggregate(const query::Aggregate& aggregate, const std::string& argument, DataType of) {
  const DataType sum = query::is_integer(of) ? kInteger : of;
  switch (aggregate.kind) {
    case AggregateKind::kCountRows:
      return {"count(*)", kInteger};
    case AggregateKind::kCount:
      return {"count(" + argument + ")", kInteger};
    case AggregateKind::kCountDistinct:
      return {"count(distinct " + argument + ")", kInteger};
    case AggregateKind::kSum:
      return {"sum(" + argument + ")", sum};
    case AggregateKind::kMin:
      return {"min(" + argument + ")", of};
    case AggregateKind::kMax:
      return {"max(" + argument + ")", of};
    case AggregateKind::kAvg:
      return {fmt::format("(avg({}) / {}.0)", argument, ten_to(of.scale)), kReal};
    default:
      throw std::logic_error("an aggregate that SQLite has not");
  }
}

std::string joined(const std::vector<std::string>& parts, const char* between) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : between) + part;
  return text;
}

class Writer {
 public:
  Writer(const SqlTables& tables, const SqlResults& results) : tables_(tables), results_(results) {}

  SqlQuery write(const QueryNode& node) const {
    switch (node.step) {
      case QueryNode::Step::kTable:
        return {"select * from " + node.text, tables_.at(node.text)};
      case QueryNode::Step::kResult:
        return results_.at(node.result.get());
      case QueryNode::Step::kJoin:
        return join(node, write(*node.input), write(*node.right));
      default:
        return step(node, write(*node.input));
    }
  }

 private:
  static SqlQuery step(const QueryNode& node, SqlQuery input) {
    switch (node.step) {
      case QueryNode::Step::kWhere:
        return {fmt::format("select * from ({}) where {}", input.sql,
                            sql_of(node.condition, input.columns).text),
                input.columns};
      case QueryNode::Step::kSelect:
        return select(node, input);
      case QueryNode::Step::kRename:
        return rename(node, input);
      case QueryNode::Step::kGroupBy:
        return group(node, input);
      case QueryNode::Step::kDistinct:
        return {"select distinct * from (" + input.sql + ")", input.columns};
      case QueryNode::Step::kOrderBy:
        return order(node, input);
      default:
        return {fmt::format("{} limit {} offset {}",
                            node.input->step == QueryNode::Step::kOrderBy
                                ? input.sql
                                : "select * from (" + input.sql + ")",
                            node.limit, node.offset),
                input.columns};
    }
  }

  static SqlQuery select(const QueryNode& node, const SqlQuery& input) {
    SqlQuery made;
    std::vector<std::string> items;
    for (const query::Item& item : node.items) {
      const Sql sql = sql_of(item.expr(), input.columns);
      made.columns.push_back(output(query::output_name(item.expr()), sql));
      items.push_back(sql.text + " as " + quoted(made.columns.back().name));
    }
    made.sql = fmt::format("select {} from ({})", joined(items, ", "), input.sql);
    return made;
  }

  static SqlQuery rename(const QueryNode& node, const SqlQuery& input) {
    SqlQuery made;
    std::vector<std::string> items;
    for (const SqlQuery::Column& column : input.columns) {
      made.columns.push_back({node.text + "." + column.name, column.type});
      items.push_back(quoted(column.name) + " as " + quoted(made.columns.back().name));
    }
    made.sql = fmt::format("select {} from ({})", joined(items, ", "), input.sql);
    return made;
  }

  static SqlQuery join(const QueryNode& node, const SqlQuery& left, const SqlQuery& right) {
    SqlQuery both = left;
    both.columns.insert(both.columns.end(), right.columns.begin(), right.columns.end());
    std::vector<std::string> on;
    for (const query::JoinKey& key : node.join_keys)
      on.push_back(compared(sql_of(key.left.expr(), left.columns), "=",
                            sql_of(key.right.expr(), right.columns)));
    if (node.condition.is_given()) on.push_back(sql_of(node.condition, both.columns).text);
    const std::string all = joined(on, " and ");
    if (node.join == JoinKind::kInner || node.join == JoinKind::kLeft) {
      both.sql = fmt::format("select * from ({}) {} join ({}) on {}", left.sql,
                             node.join == JoinKind::kLeft ? "left" : "", right.sql, all);
      return both;
    }
    return {fmt::format("select * from ({}) where {} exists (select 1 from ({}) where {})",
                        left.sql, node.join == JoinKind::kAnti ? "not" : "", right.sql, all),
            left.columns};
  }

  // Keys and arguments are columns g0, h0, ... of an inner query: SQL would take a number among
  // them for a position.
  static SqlQuery group(const QueryNode& node, const SqlQuery& input) {
    SqlQuery made;
    std::vector<std::string> inner{"0 as dummy"};
    std::vector<std::string> keys;
    std::vector<std::string> outer;
    for (std::size_t k = 0; k < node.items.size(); ++k) {
      const Sql sql = sql_of(node.items[k].expr(), input.columns);
      made.columns.push_back(output(query::output_name(node.items[k].expr()), sql));
      keys.push_back(fmt::format("g{}", k));
      inner.push_back(sql.text + " as " + keys.back());
      outer.push_back(keys.back() + " as " + quoted(made.columns.back().name));
    }
    for (std::size_t a = 0; a < node.aggregates.size(); ++a) {
      const query::Aggregate& aggregate = node.aggregates[a];
      const std::string argument = fmt::format("h{}", a);
      DataType of = kInteger;
      if (aggregate.of.is_given()) {
        const Sql sql = sql_of(aggregate.of, input.columns);
        of = sql.type;
        inner.push_back(sql.text + " as " + argument);
      }
      const Sql sql = sql_of_aggregate(aggregate, argument, of);
      made.columns.push_back(output(query::output_name(aggregate), sql));
      outer.push_back(sql.text + " as " + quoted(made.columns.back().name));
    }
    made.sql = fmt::format("select {} from (select {} from ({}))", joined(outer, ", "),
                           joined(inner, ", "), input.sql);
    if (!keys.empty()) made.sql += " group by " + joined(keys, ", ");
    return made;
  }

  static SqlQuery order(const QueryNode& node, const SqlQuery& input) {
    std::vector<std::string> inner{"*"};
    std::vector<std::string> names;
    std::vector<std::string> by;
    for (const SqlQuery::Column& column : input.columns) names.push_back(quoted(column.name));
    for (std::size_t k = 0; k < node.sort_keys.size(); ++k) {
      inner.push_back(
          fmt::format("{} as g{}", sql_of(node.sort_keys[k].item.expr(), input.columns).text, k));
      by.push_back(fmt::format("g{}{}", k, node.sort_keys[k].descending ? " desc" : ""));
    }
    return {fmt::format("select {} from (select {} from ({})) order by {}", joined(names, ", "),
                        joined(inner, ", "), input.sql, joined(by, ", ")),
            input.columns};
  }

  const SqlTables& tables_;
  const SqlResults& results_;
};

}  // namespace

const SqlQuery::Column& SqlQuery::column(const std::string& name) const {
  for (const Column& column : columns)
    if (column.name == name) return column;
  throw std::out_of_range("no column " + name);
}

std::string sql_literal(DataType type, const Value& value) {
  if (value.is_null()) return "null";
  if (type.type == Type::kDouble) {
    std::string text = fmt::format("{:.17g}", value.as_double());
    return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
  }
  if (!is_text(type)) {
    if (value.raw() == std::numeric_limits<std::int64_t>::min())
      return "(-9223372036854775807 - 1)";
    return value.raw() < 0 ? fmt::format("({})", value.raw()) : std::to_string(value.raw());
  }
  std::string text = "'";
  for (const char c : value.as_string()) text += c == '\'' ? std::string("''") : std::string(1, c);
  return text + "'";
}

SqlQuery to_sql(const QueryNode& node, const SqlTables& tables, const SqlResults& results) {
  return Writer(tables, results).write(node);
}

}  // namespace flugs::test
