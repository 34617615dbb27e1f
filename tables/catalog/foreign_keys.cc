// Foreign keys in schemas: their checks, and their bytes.

#include "tables/catalog/foreign_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/check.h"
#include "tables/catalog/schema_checks.h"
#include "tables/catalog/schema_codec.h"

namespace flugs {

std::string_view to_string(ReferenceAction action) noexcept {
  switch (action) {
    case ReferenceAction::kRestrict:
      return "restrict";
    case ReferenceAction::kCascade:
      return "cascade";
    case ReferenceAction::kSetNull:
      return "set null";
  }
  return "unknown";
}

}  // namespace flugs

namespace flugs::engine {

namespace {

Status refused(const TableSchema& schema, const ForeignKeySchema& foreign, const std::string& why) {
  return Status(StatusCode::kInvalidArgument, SchemaPart::foreign_key(schema.name, foreign.name),
                why);
}

bool sets_null(const ForeignKeySchema& foreign) noexcept {
  return foreign.on_delete == ReferenceAction::kSetNull ||
         foreign.on_update == ReferenceAction::kSetNull;
}

Status check_columns(const TableSchema& schema, const ForeignKeySchema& foreign) {
  if (foreign.columns.empty() || foreign.columns.size() > kKeyColumnsMax)
    return refused(
        schema, foreign,
        fmt::format("{} columns, allowed are 1 to {}", foreign.columns.size(), kKeyColumnsMax));
  if (foreign.on_delete > ReferenceAction::kSetNull ||
      foreign.on_update > ReferenceAction::kSetNull)
    return refused(
        schema, foreign,
        fmt::format("actions {} and {}, allowed are 0 to 2", static_cast<int>(foreign.on_delete),
                    static_cast<int>(foreign.on_update)));
  std::set<std::string> seen;
  for (const std::string& column : foreign.columns) {
    const std::size_t position = position_of(schema, column);
    if (position == schema.columns.size())
      return refused(schema, foreign, fmt::format("no column '{}'", column));
    if (!seen.insert(column).second)
      return refused(schema, foreign, fmt::format("column '{}' occurs twice", column));
    if (sets_null(foreign) && !schema.columns[position].nullable)
      return refused(schema, foreign,
                     fmt::format("sets column {} to NULL, but the column is NOT NULL", column));
  }
  return {};
}

}  // namespace

std::size_t key_for(const TableSchema& schema, const std::vector<std::string>& columns) noexcept {
  const auto serves = [&](const KeySchema& key) {
    return key.columns.size() >= columns.size() &&
           std::equal(columns.begin(), columns.end(), key.columns.begin()) &&
           (key.ordered || !key.unique ||
            (key.hashed_columns != 0 ? key.hashed_columns : key.columns.size()) <= columns.size());
  };
  return static_cast<std::size_t>(std::find_if(schema.keys.begin(), schema.keys.end(), serves) -
                                  schema.keys.begin());
}

Status check_foreign_key(const TableSchema& schema, const ForeignKeySchema& foreign) {
  if (Status s = check_name("foreign key", foreign.name); !s.ok()) return s;
  return check_columns(schema, foreign);
}

Result<KeySchema> new_key_for(const TableSchema& schema, const ForeignKeySchema& foreign) {
  KeySchema key;
  key.name = foreign.name;
  key.columns = foreign.columns;
  key.ordered = true;
  for (const KeySchema& other : schema.keys)
    if (other.name == key.name)
      return refused(schema, foreign,
                     "a key of the same name does not begin with the foreign key's columns");
  return key;
}

Status complete_foreign_keys(TableSchema& schema) {
  if (schema.foreign_keys.size() > kForeignKeysMax)
    return Status(
        StatusCode::kInvalidArgument, SchemaPart::of(schema.name),
        fmt::format("{} foreign keys, at most {}", schema.foreign_keys.size(), kForeignKeysMax));
  std::set<std::string> names;
  for (const ForeignKeySchema& foreign : schema.foreign_keys) {
    if (Status s = check_foreign_key(schema, foreign); !s.ok()) return s;
    if (!names.insert(foreign.name).second)
      return refused(schema, foreign, "the name occurs twice");
    if (key_for(schema, foreign.columns) != schema.keys.size()) continue;
    Result<KeySchema> key = new_key_for(schema, foreign);
    if (!key.ok()) return std::move(key).status();
    schema.keys.push_back(*std::move(key));
  }
  return {};
}

Status check_reference(const TableSchema& child, const ForeignKeySchema& foreign,
                       const TableSchema& parent) {
  const std::size_t index = foreign.referenced.index;
  if (index >= parent.keys.size())
    return refused(child, foreign, fmt::format("table {} has no key {}", parent.name, index));
  const KeySchema& key = parent.keys[index];
  if (!key.unique)
    return refused(child, foreign,
                   fmt::format("key {} of table {} is not unique", key.name, parent.name));
  if (key.columns.size() != foreign.columns.size())
    return refused(child, foreign,
                   fmt::format("{} columns, expected the {} of key {} of table {}",
                               foreign.columns.size(), key.columns.size(), key.name, parent.name));
  for (std::size_t i = 0; i < key.columns.size(); ++i) {
    const std::size_t from_position = position_of(child, foreign.columns[i]);
    const std::size_t to_position = position_of(parent, key.columns[i]);
    FLUGS_CHECK(from_position < child.columns.size() && to_position < parent.columns.size());
    const ColumnSchema& from = child.columns[from_position];
    const ColumnSchema& to = parent.columns[to_position];
    if (from.type != to.type || from.scale != to.scale)
      return refused(child, foreign,
                     fmt::format("column {} is of type {}, scale {}, but column {} of table {} is "
                                 "of type {}, scale {}",
                                 from.name, to_string(from.type), from.scale, to.name, parent.name,
                                 to_string(to.type), to.scale));
  }
  return {};
}

void encode_foreign_key(SchemaWriter& out, const TableSchema& schema,
                        const ForeignKeySchema& foreign) {
  out.name(foreign.name);
  out.u8(static_cast<std::uint8_t>(foreign.columns.size()));
  for (const std::string& column : foreign.columns)
    out.u16(static_cast<std::uint16_t>(position_of(schema, column)));
  out.u32(foreign.referenced.table.value());
  out.u8(static_cast<std::uint8_t>(foreign.referenced.index));
  out.u8(static_cast<std::uint8_t>(foreign.on_delete));
  out.u8(static_cast<std::uint8_t>(foreign.on_update));
}

Result<ForeignKeySchema> decode_foreign_key(SchemaReader& in, const TableSchema& schema) {
  ForeignKeySchema foreign;
  foreign.name = in.name();
  const std::size_t columns = in.u8();
  for (std::size_t i = 0; i < columns && !in.failed(); ++i) {
    const std::size_t position = in.u16();
    if (position >= schema.columns.size())
      return Status(StatusCode::kCorrupt,
                    fmt::format("schema in the pool: foreign key {} names column {} of {}",
                                foreign.name, position, schema.columns.size()));
    foreign.columns.push_back(schema.columns[position].name);
  }
  foreign.referenced.table = TableId(in.u32());
  foreign.referenced.index = in.u8();
  foreign.on_delete = static_cast<ReferenceAction>(in.u8());
  foreign.on_update = static_cast<ReferenceAction>(in.u8());
  // A whole schema already has such a key: every key has its place in the pool.
  if (!in.failed() && key_for(schema, foreign.columns) == schema.keys.size())
    return Status(StatusCode::kCorrupt,
                  fmt::format("schema in the pool: foreign key {}: no key begins with its columns",
                              foreign.name));
  return foreign;
}

}  // namespace flugs::engine
