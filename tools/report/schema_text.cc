#include "tools/report/schema_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace flugs::tools {

namespace {

using Kind = Condition::Kind;

/// A name that SQL takes as it is; any other, and a word of these statements, gets quotes.
bool is_plain(const std::string& name) {
  static constexpr std::string_view kWords[] = {
      "add",    "alter",   "and",   "check", "constraint", "create", "default", "delete",
      "false",  "foreign", "from",  "group", "in",         "index",  "into",    "is",
      "key",    "not",     "null",  "on",    "or",         "order",  "primary", "references",
      "select", "set",     "table", "true",  "unique",     "update", "values",  "where"};
  if (std::find(std::begin(kWords), std::end(kWords), name) != std::end(kWords)) return false;
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name.front())) == 0 &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
         });
}

std::string in_quotes(std::string_view text, char quote) {
  std::string result(1, quote);
  for (const char c : text) result += c == quote ? std::string(2, c) : std::string(1, c);
  return result + quote;
}

std::string name_text(const std::string& name) {
  return is_plain(name) ? name : in_quotes(name, '"');
}

std::string list_text(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name_text(name);
  return "(" + list + ")";
}

std::string type_text(const ColumnSchema& column) {
  switch (column.type) {
    case Type::kBool:
      return "BOOLEAN";
    case Type::kInt32:
      return "INTEGER";
    case Type::kInt64:
      return "BIGINT";
    case Type::kDouble:
      return "DOUBLE";
    case Type::kDecimal:
      return fmt::format("DECIMAL(18, {})", column.scale);
    case Type::kDate:
      return "DATE";
    case Type::kTimestamp:
      return "TIMESTAMP";
    case Type::kString:
      return "VARCHAR";
    case Type::kBytes:
      return "BLOB";
  }
  return "?";
}

std::string double_text(double number) {
  if (std::isnan(number)) return "CAST('NaN' AS DOUBLE)";
  if (std::isinf(number)) return fmt::format("CAST('{}Infinity' AS DOUBLE)", number < 0 ? "-" : "");
  return fmt::format("{}", number);
}

/// A constant for a column of `scale` digits behind the point.
std::string literal(const Constant& constant, std::uint8_t scale) {
  const Value value = constant.value();
  if (value.is_null()) return "NULL";
  switch (value.type()) {
    case Type::kBool:
      return value.as_bool() ? "TRUE" : "FALSE";
    case Type::kString:
      return in_quotes(value.as_string(), '\'');
    case Type::kBytes: {
      std::string text = "X'";
      for (const char c : value.as_string())
        text += fmt::format("{:02x}", static_cast<unsigned char>(c));
      return text + "'";
    }
    case Type::kDouble:
      return double_text(value.as_double());
    case Type::kDecimal:
      return (value.scale() > 18 ? value.with_scale(scale) : value).to_string();
    case Type::kDate:
      return "DATE '" + value.to_string() + "'";
    case Type::kTimestamp:
      return "TIMESTAMP '" + value.to_string() + "'";
    default:
      return value.to_string();
  }
}

std::uint8_t scale_of(const TableSchema& table, const std::string& column) {
  for (const ColumnSchema& c : table.columns)
    if (!c.dropped && c.name == column) return c.scale;
  return 0;
}

std::string comparison_text(const TableSchema& table, const Condition::Node& node) {
  const std::string column = name_text(node.column);
  const auto constant = [&](std::size_t i) {
    return i < node.constants.size() ? literal(node.constants[i], scale_of(table, node.column))
                                     : std::string("?");
  };
  const std::string right = node.other.empty() ? constant(0) : name_text(node.other);
  switch (node.kind) {
    case Kind::kEqual:
      return column + " = " + right;
    case Kind::kNotEqual:
      return column + " <> " + right;
    case Kind::kLess:
      return column + " < " + right;
    case Kind::kLessEqual:
      return column + " <= " + right;
    case Kind::kGreater:
      return column + " > " + right;
    case Kind::kGreaterEqual:
      return column + " >= " + right;
    case Kind::kIsNull:
      return column + " IS NULL";
    case Kind::kIsNotNull:
      return column + " IS NOT NULL";
    case Kind::kStartsWith:
      return fmt::format("starts_with({}, {})", column, right);
    case Kind::kEndsWith:
      return fmt::format("ends_with({}, {})", column, right);
    case Kind::kContains:
      return fmt::format("contains({}, {})", column, right);
    case Kind::kIn: {
      std::string list;
      for (std::size_t i = 0; i < node.constants.size(); ++i)
        list += (list.empty() ? "" : ", ") + constant(i);
      return fmt::format("{} IN ({})", column, list);
    }
    default:
      return "?";
  }
}

/// The text of the node at `next` and its parts; `next` moves behind them.
std::string condition_text(const TableSchema& table, const std::vector<Condition::Node>& nodes,
                           std::size_t& next, bool is_part) {
  if (next >= nodes.size()) return "?";
  const Condition::Node& node = nodes[next++];
  if (node.kind == Kind::kNone) return "NOT (" + condition_text(table, nodes, next, false) + ")";
  if (node.kind != Kind::kAll && node.kind != Kind::kAny) return comparison_text(table, node);
  std::string text;
  for (std::uint16_t i = 0; i < node.parts; ++i)
    text += (i == 0                    ? ""
             : node.kind == Kind::kAll ? " AND "
                                       : " OR ") +
            condition_text(table, nodes, next, true);
  return is_part ? "(" + text + ")" : text;
}

std::string column_text(const ColumnSchema& column) {
  std::string text = name_text(column.name) + " " + type_text(column);
  if (!column.nullable) text += " NOT NULL";
  if (column.auto_increment) text += " AUTO_INCREMENT";
  if (column.default_value.has_value())
    text += " DEFAULT " + literal(*column.default_value, column.scale);
  if (!column.chooses_encoding && column.encoding == Encoding::kDictionary)
    text += " ENCODING DICTIONARY";
  if (!column.chooses_encoding && column.encoding == Encoding::kDirect) text += " ENCODING DIRECT";
  if (column.expected_distinct != 0)
    text += fmt::format(" EXPECT {} DISTINCT", column.expected_distinct);
  return text;
}

std::string key_text(const KeySchema& key, bool is_primary) {
  std::string text = is_primary   ? "PRIMARY KEY"
                     : key.unique ? "CONSTRAINT " + name_text(key.name) + " UNIQUE"
                                  : "INDEX " + name_text(key.name);
  text += " " + list_text(key.columns);
  if (key.unique && key.ordered) text += " ORDERED";
  if (key.hashed_columns != 0 && key.hashed_columns != key.columns.size())
    text += fmt::format(" HASHED BY FIRST {}", key.hashed_columns);
  return text;
}

std::string action_text(ReferenceAction action) {
  std::string text(to_string(action));
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

std::string foreign_text(const ForeignKeySchema& foreign, const std::vector<TableSchema>& tables) {
  std::string text =
      fmt::format("CONSTRAINT {} FOREIGN KEY {} REFERENCES {}", name_text(foreign.name),
                  list_text(foreign.columns), name_text(foreign.table));
  for (const TableSchema& table : tables)
    for (const KeySchema& key : table.keys)
      if (table.name == foreign.table && !key.dropped && key.name == foreign.key)
        text += " " + list_text(key.columns);
  if (foreign.on_delete != ReferenceAction::kRestrict)
    text += " ON DELETE " + action_text(foreign.on_delete);
  if (foreign.on_update != ReferenceAction::kRestrict)
    text += " ON UPDATE " + action_text(foreign.on_update);
  return text;
}

/// Whether the table stands at `position` or before.
bool is_known(const std::vector<TableSchema>& tables, std::size_t position,
              const std::string& table) {
  return std::any_of(tables.begin(), tables.begin() + static_cast<std::ptrdiff_t>(position) + 1,
                     [&](const TableSchema& t) { return t.name == table; });
}

std::string table_text(const std::vector<TableSchema>& tables, std::size_t position) {
  const TableSchema& table = tables[position];
  std::vector<std::string> parts;
  for (const ColumnSchema& column : table.columns)
    if (!column.dropped) parts.push_back(column_text(column));
  for (std::size_t i = 0; i < table.keys.size(); ++i)
    if (!table.keys[i].dropped)
      parts.push_back(key_text(table.keys[i], i == 0 && table.has_primary_key));
  for (const CheckSchema& check : table.checks) {
    std::size_t next = 0;
    parts.push_back(fmt::format("CONSTRAINT {} CHECK ({})", name_text(check.name),
                                condition_text(table, check.condition.nodes(), next, false)));
  }
  for (const ForeignKeySchema& foreign : table.foreign_keys)
    if (is_known(tables, position, foreign.table)) parts.push_back(foreign_text(foreign, tables));
  std::string text = "CREATE TABLE " + name_text(table.name) + " (";
  for (std::size_t i = 0; i < parts.size(); ++i) text += (i == 0 ? "\n  " : ",\n  ") + parts[i];
  return text + "\n);\n";
}

}  // namespace

std::string schema_text(const std::vector<TableSchema>& tables) {
  std::string text;
  std::string later;
  for (std::size_t i = 0; i < tables.size(); ++i) {
    text += (i == 0 ? "" : "\n") + table_text(tables, i);
    for (const ForeignKeySchema& foreign : tables[i].foreign_keys)
      if (!is_known(tables, i, foreign.table))
        later += fmt::format("\nALTER TABLE {} ADD {};\n", name_text(tables[i].name),
                             foreign_text(foreign, tables));
  }
  return text + later;
}

}  // namespace flugs::tools
