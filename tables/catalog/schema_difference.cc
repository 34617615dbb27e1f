#include "tables/catalog/schema_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "tables/catalog/schema_codec.h"

namespace flugs::engine {

namespace {

Status differs(const TableSchema& table, const std::string& where, const std::string& what) {
  return Status(StatusCode::kInvalidArgument,
                fmt::format("table {} exists, and its {} differs from the schema: {}", table.name,
                            where, what))
      .with_part(SchemaPart::of(table.name));
}

template <typename Named>
const Named* find(const std::vector<Named>& all, const std::string& name) {
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Named& one) { return one.name == name; });
  return found == all.end() ? nullptr : &*found;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return "(" + text + ")";
}

std::string text_of(Type type, unsigned scale, bool not_null, bool numbered) {
  return fmt::format("{}{}{}{}", to_string(type),
                     type == Type::kDecimal ? fmt::format(" of scale {}", scale) : "",
                     not_null ? " not null" : "", numbered ? " auto-increment" : "");
}

std::string text_of(const KeySchema& key) {
  const bool hashes_some = key.unique && key.hashed_columns != key.columns.size();
  return fmt::format("{}{}key on {}{}", key.unique ? "unique " : "", key.ordered ? "ordered " : "",
                     joined(key.columns),
                     hashes_some ? fmt::format(", {} hashed", key.hashed_columns) : "");
}

std::string text_of(const ForeignKeySchema& key) {
  return fmt::format("{} to table {}, key {}, on delete {}, on update {}", joined(key.columns),
                     key.table, key.key, static_cast<int>(key.on_delete),
                     static_cast<int>(key.on_update));
}

Status compare(const TableSchema& table, const std::string& where, const std::string& found,
               const std::string& wanted) {
  if (found == wanted) return {};
  return differs(table, where, fmt::format("it is {}, wanted is {}", found, wanted));
}

}  // namespace

Status check_has(const TableSchema& found, const TableSchema& given) {
  const Result<TableSchema> completed = complete_schema(given);
  if (!completed.ok()) return completed.status();
  const TableSchema& wanted = *completed;
  for (const ColumnSchema& column : wanted.columns) {
    if (column.dropped) continue;
    const std::string where = "column " + column.name;
    const ColumnSchema* held = find(found.columns, column.name);
    if (held == nullptr || held->dropped) return differs(found, where, "it has none of this name");
    if (Status s = compare(
            found, where, text_of(held->type, held->scale, !held->nullable, held->auto_increment),
            text_of(column.type, column.scale, !column.nullable, column.auto_increment));
        !s.ok())
      return s;
  }
  if (wanted.has_primary_key != found.has_primary_key)
    return differs(found, "primary key", found.has_primary_key ? "none is wanted" : "it has none");
  for (const KeySchema& key : wanted.keys) {
    if (key.dropped) continue;
    const std::string where = "key " + key.name;
    const KeySchema* held = find(found.keys, key.name);
    if (held == nullptr || held->dropped) return differs(found, where, "it has none of this name");
    if (Status s = compare(found, where, text_of(*held), text_of(key)); !s.ok()) return s;
  }
  for (const CheckSchema& check : wanted.checks) {
    const std::string where = "check " + check.name;
    const CheckSchema* held = find(found.checks, check.name);
    if (held == nullptr) return differs(found, where, "it has none of this name");
    if (Status s = compare(found, where, held->condition.to_string(), check.condition.to_string());
        !s.ok())
      return s;
  }
  for (const ForeignKeySchema& key : wanted.foreign_keys) {
    const std::string where = "foreign key " + key.name;
    const ForeignKeySchema* held = find(found.foreign_keys, key.name);
    if (held == nullptr) return differs(found, where, "it has none of this name");
    if (Status s = compare(found, where, text_of(*held), text_of(key)); !s.ok()) return s;
  }
  return {};
}

}  // namespace flugs::engine
