#include "bindings/sqlite/columns.h"

#include <algorithm>

namespace flugs::sqlite {

std::string sql_type(Type type, std::uint8_t scale) {
  switch (type) {
    case Type::kBool:
      return "BOOLEAN";
    case Type::kInt32:
      return "INT32";
    case Type::kInt64:
      return "INTEGER";
    case Type::kDouble:
      return "REAL";
    case Type::kDecimal:
      return "DECIMAL(18," + std::to_string(scale) + ")";
    case Type::kDate:
      return "DATE";
    case Type::kTimestamp:
      return "TIMESTAMP";
    case Type::kString:
      return "TEXT";
    case Type::kBytes:
      return "BLOB";
  }
  return "";
}

std::string quoted(std::string_view name) {
  std::string text = "\"";
  for (const char c : name) {
    if (c == '"') text += '"';
    text += c;
  }
  return text + '"';
}

TableShape TableShape::of(TableId id, const TableSchema& schema) {
  TableShape shape;
  shape.id = id;
  shape.name = schema.name;
  shape.has_primary_key = schema.has_primary_key;
  shape.width = schema.columns.size();
  for (std::size_t i = 0; i < schema.columns.size(); ++i) {
    const ColumnSchema& c = schema.columns[i];
    if (c.dropped) continue;
    shape.columns.push_back({c.name, ColumnId(static_cast<std::uint16_t>(i)), c.type, c.scale,
                             c.nullable, c.default_value});
    if (c.auto_increment) shape.gives_numbers = true;
  }
  for (std::size_t i = 0; i < schema.keys.size(); ++i) {
    const KeySchema& k = schema.keys[i];
    if (k.dropped) continue;
    Key key{k.name, {id, static_cast<std::uint16_t>(i)}, {}, k.unique, k.ordered, 0};
    for (const std::string& name : k.columns) {
      const auto at = std::find_if(shape.columns.begin(), shape.columns.end(),
                                   [&](const Column& c) { return c.name == name; });
      key.columns.push_back(static_cast<std::uint16_t>(at - shape.columns.begin()));
    }
    if (k.unique)
      key.hashed =
          k.hashed_columns != 0 ? k.hashed_columns : static_cast<std::uint16_t>(key.columns.size());
    shape.keys.push_back(std::move(key));
  }
  for (const ForeignKeySchema& foreign : schema.foreign_keys) {
    shape.moves_on_delete |= foreign.on_delete == ReferenceAction::kSetNull;
    shape.moves_on_update |= foreign.on_update != ReferenceAction::kRestrict;
    if (foreign.on_delete != ReferenceAction::kSetNull &&
        foreign.on_update == ReferenceAction::kRestrict)
      continue;
    for (std::size_t i = 0; i < shape.columns.size(); ++i)
      if (std::find(foreign.columns.begin(), foreign.columns.end(), shape.columns[i].name) !=
          foreign.columns.end())
        shape.moved_columns |= column_bit(i);
  }
  return shape;
}

bool Column::is_like(const Column& other) const noexcept {
  return name == other.name && id == other.id && type == other.type && scale == other.scale &&
         nullable == other.nullable;
}

bool TableShape::still_fits(const TableShape& now) const {
  const auto has = [](const std::vector<Key>& all, const Key& key) {
    return std::find(all.begin(), all.end(), key) != all.end();
  };
  return id == now.id && name == now.name && width == now.width &&
         std::equal(columns.begin(), columns.end(), now.columns.begin(), now.columns.end(),
                    [](const Column& a, const Column& b) { return a.is_like(b); }) &&
         std::all_of(keys.begin(), keys.end(),
                     [&](const Key& key) { return has(now.keys, key); }) &&
         std::all_of(now.keys.begin(), now.keys.end(),
                     [&](const Key& key) { return !key.unique || has(keys, key); });
}

std::string TableShape::declaration() const {
  std::string text = "CREATE TABLE x(";
  const Key* primary = has_primary_key && !keys.empty() ? &keys.front() : nullptr;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const Column& c = columns[i];
    if (i != 0) text += ", ";
    text += quoted(c.name) + " " + sql_type(c.type, c.scale);
    if (!c.nullable) text += " NOT NULL";
    if (primary != nullptr && primary->columns.size() == 1 && primary->columns.front() == i)
      text += " PRIMARY KEY";
  }
  if (primary != nullptr && primary->columns.size() > 1) {
    text += ", PRIMARY KEY(";
    for (std::size_t i = 0; i < primary->columns.size(); ++i)
      text += (i != 0 ? ", " : "") + quoted(columns[primary->columns[i]].name);
    text += ")";
  }
  return text + ")";
}

}  // namespace flugs::sqlite
