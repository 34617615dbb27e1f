#include "tables/catalog/schema_codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "base/check.h"
#include "base/types.h"
#include "tables/catalog/foreign_keys.h"
#include "tables/catalog/schema_bytes.h"
#include "tables/catalog/schema_checks.h"

namespace flugs::engine {

namespace {

constexpr std::size_t kColumnsMax = 1024;
// Numbers of columns have two bytes, those of all others one.
static_assert(kColumnsMax <= 0xFFFF);
static_assert(kKeysMax <= 0xFF && kKeyColumnsMax <= 0xFF && kChecksMax <= 0xFF &&
              kForeignKeysMax <= 0xFF);

// Flags of a table.
constexpr std::uint8_t kHasPrimaryKey = 1;
constexpr std::uint8_t kInColumns = 2;
constexpr std::uint8_t kInColumnGroups = 4;
// Flags of a column.
constexpr std::uint8_t kHasDefault = 1;
constexpr std::uint8_t kAutoIncrement = 2;
constexpr std::uint8_t kChoosesEncoding = 8;
// Flags of a key.
constexpr std::uint8_t kUnique = 1;
constexpr std::uint8_t kOrdered = 2;
constexpr std::uint8_t kDropped = 4;

Status invalid(SchemaPart part, std::string_view why) {
  return Status(StatusCode::kInvalidArgument, std::move(part), why);
}

Status check_column(const TableSchema& schema, const ColumnSchema& column) {
  if (!column.dropped)
    if (Status s = check_name("column", column.name); !s.ok()) return s;
  if (column.dropped && (!column.name.empty() || column.encoding == Encoding::kAuto ||
                         column.default_value.has_value() || column.auto_increment))
    return invalid(SchemaPart::of(schema.name),
                   "a dropped column has a name, a default or numbers, or no encoding");
  if (!is_known_type(column.type))
    return invalid(SchemaPart::column(schema.name, column.name),
                   fmt::format("unknown type {}", static_cast<int>(column.type)));
  if (column.encoding > Encoding::kDirect)
    return invalid(SchemaPart::column(schema.name, column.name),
                   fmt::format("unknown encoding {}", static_cast<int>(column.encoding)));
  const std::uint8_t scale_max = column.type == Type::kDecimal ? 18 : 0;
  if (column.scale > scale_max)
    return invalid(SchemaPart::column(schema.name, column.name),
                   fmt::format("scale {} of type {}, at most {}", column.scale,
                               to_string(column.type), scale_max));
  return {};
}

Status check_key(const TableSchema& schema, const KeySchema& key) {
  if (key.dropped) {
    if (key.name.empty() && key.columns.empty() && !key.unique && !key.ordered &&
        key.hashed_columns == 0)
      return {};
    return invalid(SchemaPart::of(schema.name), "a dropped key has a name, columns or settings");
  }
  if (Status s = check_name("key", key.name); !s.ok()) return s;
  const SchemaPart part = SchemaPart::key(schema.name, key.name);
  if (key.columns.empty() || key.columns.size() > kKeyColumnsMax)
    return invalid(
        part, fmt::format("{} columns, allowed are 1 to {}", key.columns.size(), kKeyColumnsMax));
  std::set<std::string> seen;
  for (const std::string& column : key.columns) {
    if (position_of(schema, column) == schema.columns.size())
      return invalid(part, fmt::format("no column '{}'", column));
    if (!seen.insert(column).second)
      return invalid(part, fmt::format("column '{}' occurs twice", column));
  }
  if (key.hashed_columns > key.columns.size())
    return invalid(part, fmt::format("{} hashed columns, but the key has {} columns",
                                     key.hashed_columns, key.columns.size()));
  if (!key.unique && key.hashed_columns != 0)
    return invalid(part, "only a unique key can have hashed columns");
  return {};
}

Encoding chosen_encoding(const TableSchema& schema, const ColumnSchema& column) {
  if (column.encoding != Encoding::kAuto) return column.encoding;
  const bool is_unique_key =
      std::any_of(schema.keys.begin(), schema.keys.end(), [&](const KeySchema& key) {
        return key.unique && key.columns.size() == 1 && key.columns[0] == column.name;
      });
  const bool fits = !column.nullable && column.type != Type::kBytes;
  const bool is_always_new = is_unique_key || column.auto_increment;
  return is_always_new && fits ? Encoding::kDirect : Encoding::kDictionary;
}

Status complete_checks(TableSchema& schema) {
  if (schema.checks.size() > kChecksMax)
    return invalid(SchemaPart::of(schema.name),
                   fmt::format("{} checks, at most {}", schema.checks.size(), kChecksMax));
  std::set<std::string> names;
  for (CheckSchema& check : schema.checks) {
    if (Status s = check_name("check", check.name); !s.ok()) return s;
    if (!names.insert(check.name).second)
      return invalid(SchemaPart::of(schema.name),
                     fmt::format("check '{}' occurs twice", check.name));
    if (Status s = complete_check(schema, check); !s.ok())
      return s.with_part(SchemaPart::check(schema.name, check.name));
  }
  return {};
}

Status corrupt_schema(const std::string& what) {
  return Status(StatusCode::kCorrupt, fmt::format("schema in the pool: {}", what));
}

Result<KeySchema> decode_key(SchemaReader& in, const TableSchema& schema) {
  KeySchema key;
  key.name = in.name();
  const std::uint8_t flags = in.u8();
  key.unique = (flags & kUnique) != 0;
  key.ordered = (flags & kOrdered) != 0;
  key.dropped = (flags & kDropped) != 0;
  if ((flags & ~(kUnique | kOrdered | kDropped)) != 0)
    return corrupt_schema(fmt::format("key {}: flags {:#x}", key.name, flags));
  key.hashed_columns = in.u8();
  const std::size_t key_columns = in.u8();
  for (std::size_t k = 0; k < key_columns && !in.failed(); ++k) {
    const std::size_t position = in.u16();
    if (position >= schema.columns.size())
      return corrupt_schema(
          fmt::format("key {} names column {} of {}", key.name, position, schema.columns.size()));
    if (schema.columns[position].dropped)
      return corrupt_schema(fmt::format("key {} names dropped column {}", key.name, position));
    key.columns.push_back(schema.columns[position].name);
  }
  return key;
}

Status decode_columns(SchemaReader& in, TableSchema& schema) {
  const std::size_t columns = in.u16();
  if (columns > kColumnsMax) return corrupt_schema(fmt::format("{} columns", columns));
  for (std::size_t i = 0; i < columns && !in.failed(); ++i) {
    ColumnSchema column;
    column.name = in.name();
    column.type = static_cast<Type>(in.u8());
    column.encoding = static_cast<Encoding>(in.u8());
    column.nullable = in.u8() != 0;
    column.scale = in.u8();
    column.expected_distinct = in.u32();
    const std::uint8_t flags = in.u8();
    column.auto_increment = (flags & kAutoIncrement) != 0;
    column.dropped = (flags & kDropped) != 0;
    column.chooses_encoding = (flags & kChoosesEncoding) != 0;
    if ((flags & ~(kHasDefault | kAutoIncrement | kDropped | kChoosesEncoding)) != 0)
      return corrupt_schema(fmt::format("column {}: flags {:#x}", column.name, flags));
    if ((flags & kHasDefault) != 0) column.default_value = decode_constant(in, column);
    schema.columns.push_back(std::move(column));
  }
  return {};
}

Result<TableSchema> completed(TableSchema schema) {
  if (Status s = check_name("table", schema.name); !s.ok()) return s;
  if (const std::string& call = schema.misplaced_call; !call.empty())
    return invalid(
        SchemaPart::of(schema.name),
        fmt::format("{0}() was called before the table has a {1}: call it after the {1} that it "
                    "applies to",
                    call, call == "ordered" || call == "hash_prefix" ? "key" : "column"));
  if (schema.columns.empty() || schema.columns.size() > kColumnsMax)
    return invalid(SchemaPart::of(schema.name), fmt::format("{} columns, allowed are 1 to {}",
                                                            schema.columns.size(), kColumnsMax));
  if (std::all_of(schema.columns.begin(), schema.columns.end(),
                  [](const ColumnSchema& column) { return column.dropped; }))
    return invalid(SchemaPart::of(schema.name), "all of its columns are dropped");
  if (Status s = check_delta_layout(schema); !s.ok()) return s;
  if (Status s = complete_foreign_keys(schema); !s.ok()) return s;
  if (schema.keys.size() > kKeysMax)
    return invalid(SchemaPart::of(schema.name),
                   fmt::format("{} keys, at most {}", schema.keys.size(), kKeysMax));
  std::set<std::string> names;
  for (const ColumnSchema& column : schema.columns) {
    if (Status s = check_column(schema, column); !s.ok()) return s;
    if (!column.dropped && !names.insert(column.name).second)
      return invalid(SchemaPart::of(schema.name),
                     fmt::format("column '{}' occurs twice", column.name));
  }
  if (schema.has_primary_key && (schema.keys.empty() || !schema.keys[0].unique))
    return invalid(SchemaPart::of(schema.name), "the first key must be the unique primary key");
  std::set<std::string> key_names;
  for (KeySchema& key : schema.keys) {
    if (Status s = check_key(schema, key); !s.ok()) return s;
    if (key.dropped) continue;
    if (!key_names.insert(key.name).second)
      return invalid(SchemaPart::of(schema.name), fmt::format("key '{}' occurs twice", key.name));
    if (!key.unique) key.ordered = true;
    if (key.unique && key.hashed_columns == 0)
      key.hashed_columns = static_cast<std::uint8_t>(key.columns.size());
  }
  if (schema.has_primary_key)
    for (const std::string& column : schema.keys[0].columns)
      schema.columns[position_of(schema, column)].nullable = false;
  if (Status s = complete_auto_increment(schema); !s.ok()) return s;
  for (ColumnSchema& column : schema.columns) {
    column.chooses_encoding |= column.encoding == Encoding::kAuto;
    column.encoding = chosen_encoding(schema, column);
    if (Status s = complete_default(schema, column); !s.ok())
      return s.with_part(SchemaPart::column(schema.name, column.name));
  }
  if (Status s = complete_checks(schema); !s.ok()) return s;
  return schema;
}

void encode_delta_layout(SchemaWriter& out, const TableSchema& schema) {
  const bool is_apart = schema.delta_layout == DeltaLayout::kColumns;
  const bool has_groups = !schema.column_groups.empty();
  FLUGS_CHECK((is_apart || !has_groups) && schema.column_groups.size() <= kColumnGroupsMax);
  out.u8(static_cast<std::uint8_t>((schema.has_primary_key ? kHasPrimaryKey : 0) |
                                   (is_apart ? kInColumns : 0) |
                                   (has_groups ? kInColumnGroups : 0)));
  if (!has_groups) return;
  out.u8(static_cast<std::uint8_t>(schema.column_groups.size()));
  for (const std::vector<std::string>& group : schema.column_groups) {
    out.u16(static_cast<std::uint16_t>(group.size()));
    for (const std::string& column : group)
      out.u16(static_cast<std::uint16_t>(position_of(schema, column)));
  }
}

Status decode_delta_layout(SchemaReader& in, TableSchema& schema) {
  const std::uint8_t flags = in.u8();
  if ((flags & ~(kHasPrimaryKey | kInColumns | kInColumnGroups)) != 0)
    return corrupt_schema(fmt::format("flags {:#x} of the table", flags));
  schema.has_primary_key = (flags & kHasPrimaryKey) != 0;
  if ((flags & kInColumns) != 0) schema.in_columns();
  const std::size_t groups = (flags & kInColumnGroups) != 0 ? in.u8() : 0;
  for (std::size_t i = 0; i < groups && !in.failed(); ++i) {
    std::vector<std::string>& group = schema.column_groups.emplace_back();
    const std::size_t columns = in.u16();
    for (std::size_t k = 0; k < columns && !in.failed(); ++k) {
      const std::size_t position = in.u16();
      if (position >= schema.columns.size() || schema.columns[position].dropped)
        return corrupt_schema(fmt::format("group {} names column {}, of {}, or a dropped one", i,
                                          position, schema.columns.size()));
      group.push_back(schema.columns[position].name);
    }
  }
  return {};
}

}  // namespace

Status check_delta_layout(const TableSchema& schema) {
  const SchemaPart table = SchemaPart::of(schema.name);
  if (schema.delta_layout > DeltaLayout::kColumns)
    return invalid(table, fmt::format("unknown layout of the delta {}",
                                      static_cast<int>(schema.delta_layout)));
  if (schema.delta_layout == DeltaLayout::kRows && !schema.column_groups.empty())
    return invalid(table, "groups of columns need the layout kColumns");
  if (schema.column_groups.size() > kColumnGroupsMax)
    return invalid(table, fmt::format("{} groups of columns, at most {}",
                                      schema.column_groups.size(), kColumnGroupsMax));
  std::set<std::string> seen;
  for (const std::vector<std::string>& group : schema.column_groups)
    for (const std::string& column : group) {
      if (column.empty() || position_of(schema, column) == schema.columns.size())
        return invalid(table, fmt::format("a group of columns: no column '{}'", column));
      if (!seen.insert(column).second)
        return invalid(table, fmt::format("column '{}' is twice in groups of columns", column));
    }
  return {};
}

Result<TableSchema> complete_schema(TableSchema schema) {
  const std::string table = schema.name;
  Result<TableSchema> done = completed(std::move(schema));
  if (done.ok() || done.status().part() != nullptr) return done;
  return done.status().with_part(SchemaPart::of(table));
}

std::string encode_schema(const TableSchema& schema) {
  FLUGS_CHECK(schema.columns.size() <= kColumnsMax && schema.keys.size() <= kKeysMax);
  FLUGS_CHECK(schema.checks.size() <= kChecksMax && schema.foreign_keys.size() <= kForeignKeysMax);
  SchemaWriter out;
  out.name(schema.name);
  out.u16(static_cast<std::uint16_t>(schema.columns.size()));
  for (const ColumnSchema& column : schema.columns) {
    out.name(column.name);
    out.u8(static_cast<std::uint8_t>(column.type));
    out.u8(static_cast<std::uint8_t>(column.encoding));
    out.u8(column.nullable ? 1 : 0);
    out.u8(column.scale);
    out.u32(column.expected_distinct);
    out.u8(static_cast<std::uint8_t>((column.default_value.has_value() ? kHasDefault : 0) |
                                     (column.auto_increment ? kAutoIncrement : 0) |
                                     (column.dropped ? kDropped : 0) |
                                     (column.chooses_encoding ? kChoosesEncoding : 0)));
    if (column.default_value.has_value()) encode_constant(out, *column.default_value);
  }
  encode_delta_layout(out, schema);
  out.u8(static_cast<std::uint8_t>(schema.keys.size()));
  for (const KeySchema& key : schema.keys) {
    out.name(key.name);
    out.u8(static_cast<std::uint8_t>((key.unique ? kUnique : 0) | (key.ordered ? kOrdered : 0) |
                                     (key.dropped ? kDropped : 0)));
    out.u8(key.hashed_columns);
    out.u8(static_cast<std::uint8_t>(key.columns.size()));
    for (const std::string& column : key.columns) {
      const std::size_t position = position_of(schema, column);
      FLUGS_CHECK(position < schema.columns.size());
      out.u16(static_cast<std::uint16_t>(position));
    }
  }
  out.u8(static_cast<std::uint8_t>(schema.checks.size()));
  for (const CheckSchema& check : schema.checks) encode_check(out, schema, check);
  out.u8(static_cast<std::uint8_t>(schema.foreign_keys.size()));
  for (const ForeignKeySchema& foreign : schema.foreign_keys)
    encode_foreign_key(out, schema, foreign);
  return out.take();
}

Result<TableSchema> decode_schema(std::string_view bytes) {
  SchemaReader in(bytes);
  TableSchema schema(in.name());
  if (Status s = decode_columns(in, schema); !s.ok()) return s;
  if (Status s = decode_delta_layout(in, schema); !s.ok()) return s;
  const std::size_t keys = in.u8();
  if (keys > kKeysMax) return corrupt_schema(fmt::format("{} keys", keys));
  for (std::size_t i = 0; i < keys && !in.failed(); ++i) {
    Result<KeySchema> key = decode_key(in, schema);
    if (!key.ok()) return std::move(key).status();
    schema.keys.push_back(*std::move(key));
  }
  const std::size_t checks = in.u8();
  if (checks > kChecksMax) return corrupt_schema(fmt::format("{} checks", checks));
  for (std::size_t i = 0; i < checks && !in.failed(); ++i) {
    Result<CheckSchema> check = decode_check(in, schema);
    if (!check.ok()) return std::move(check).status();
    schema.checks.push_back(*std::move(check));
  }
  const std::size_t foreign_keys = in.u8();
  if (foreign_keys > kForeignKeysMax)
    return corrupt_schema(fmt::format("{} foreign keys", foreign_keys));
  for (std::size_t i = 0; i < foreign_keys && !in.failed(); ++i) {
    Result<ForeignKeySchema> foreign = decode_foreign_key(in, schema);
    if (!foreign.ok()) return std::move(foreign).status();
    schema.foreign_keys.push_back(*std::move(foreign));
  }
  if (in.failed() || !in.at_end()) return corrupt_schema("its length does not fit its contents");
  Result<TableSchema> checked = complete_schema(std::move(schema));
  if (!checked.ok()) return corrupt_schema(std::string(checked.status().message()));
  return checked;
}

}  // namespace flugs::engine
