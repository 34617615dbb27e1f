#include <cstdio>
#include <string>

#include "bindings/sqlite/columns.h"
#include "bindings/sqlite/definition.h"

namespace flugs::sqlite {

namespace {

std::string quoted_text(std::string_view text) {
  std::string all = "'";
  for (const char c : text) {
    if (c == '\'') all += c;
    all += c;
  }
  return all + "'";
}

std::string hex_text(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string all = "x'";
  for (const char c : bytes) {
    all += kDigits[static_cast<unsigned char>(c) >> 4];
    all += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return all + "'";
}

std::string constant_text(const Constant& constant) {
  const Value value = constant.value();
  switch (value.type()) {
    case Type::kBool:
      return value.as_bool() ? "TRUE" : "FALSE";
    case Type::kString:
      return quoted_text(value.as_string());
    case Type::kBytes:
      return hex_text(value.as_string());
    case Type::kDate:
    case Type::kTimestamp:
      return quoted_text(value.to_string());
    case Type::kDouble: {
      char text[40];
      std::snprintf(text, sizeof text, "%.17g", value.as_double());
      return text;
    }
    default:
      return value.to_string();
  }
}

std::string column_text(const ColumnSchema& column) {
  std::string text = quoted(column.name) + " " + sql_type(column.type, column.scale);
  if (!column.nullable) text += " NOT NULL";
  if (column.auto_increment) text += " AUTOINCREMENT";
  if (column.default_value && !column.default_value->is_null())
    text += " DEFAULT " + constant_text(*column.default_value);
  return text;
}

std::string names_text(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + quoted(name);
  return "(" + text + ")";
}

std::string key_text(const KeySchema& key, bool is_primary) {
  std::string text;
  if (is_primary)
    text = "PRIMARY KEY";
  else if (!key.unique)
    text = "INDEX " + quoted(key.name);
  else
    text = "CONSTRAINT " + quoted(key.name) + " UNIQUE";
  text += names_text(key.columns);
  if (key.unique && key.ordered) text += " ORDERED";
  if (key.hashed_columns != 0 && key.hashed_columns != key.columns.size())
    text += " HASHED BY FIRST " + std::to_string(key.hashed_columns);
  return text;
}

std::string action_text(const char* when, ReferenceAction action) {
  if (action == ReferenceAction::kRestrict) return "";
  return std::string(when) + (action == ReferenceAction::kCascade ? " CASCADE" : " SET NULL");
}

std::string foreign_text(const ForeignKeySchema& foreign) {
  return "CONSTRAINT " + quoted(foreign.name) + " FOREIGN KEY" + names_text(foreign.columns) +
         " REFERENCES " + quoted(foreign.table) +
         (foreign.key == "primary" ? "" : " KEY " + quoted(foreign.key)) +
         action_text(" ON DELETE", foreign.on_delete) +
         action_text(" ON UPDATE", foreign.on_update);
}

}  // namespace

std::string write_definition(const TableSchema& schema) {
  std::vector<std::string> parts;
  for (const ColumnSchema& column : schema.columns)
    if (!column.dropped) parts.push_back(column_text(column));
  for (std::size_t i = 0; i < schema.keys.size(); ++i)
    if (!schema.keys[i].dropped)
      parts.push_back(key_text(schema.keys[i], schema.has_primary_key && i == 0));
  for (const ForeignKeySchema& foreign : schema.foreign_keys)
    parts.push_back(foreign_text(foreign));
  std::string text = "CREATE VIRTUAL TABLE temp." + quoted(schema.name) + " USING flugs(";
  for (std::size_t i = 0; i < parts.size(); ++i) text += (i == 0 ? "\n  " : ",\n  ") + parts[i];
  text += ");";
  for (const CheckSchema& check : schema.checks)
    text += "\n-- check " + check.name + ": " + check.condition.to_string();
  return text;
}

}  // namespace flugs::sqlite
