#include "engine/schema_codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>

namespace flugs::engine {

namespace {

constexpr std::size_t kNameBytesMax = 63;
constexpr std::size_t kColumnsMax = 1024;
constexpr std::size_t kKeysMax = 16;

Status invalid(const std::string& message) { return Status(StatusCode::kInvalidArgument, message); }

Status check_name(const char* what, const std::string& name) {
  if (name.empty() || name.size() > kNameBytesMax)
    return invalid(fmt::format("{} name '{}' has {} bytes, allowed are 1 to {}", what,
                               name.substr(0, kNameBytesMax), name.size(), kNameBytesMax));
  if (name.find('\0') != std::string::npos)
    return invalid(fmt::format("{} name contains a zero byte", what));
  return {};
}

std::size_t position_of(const TableSchema& schema, const std::string& column) {
  for (std::size_t i = 0; i < schema.columns.size(); ++i)
    if (schema.columns[i].name == column) return i;
  return schema.columns.size();
}

Status check_column(const TableSchema& schema, const ColumnSchema& column) {
  if (Status s = check_name("column", column.name); !s.ok()) return s;
  if (column.type < Type::kBool || column.type > Type::kBytes)
    return invalid(fmt::format("table {}, column {}: unknown type {}", schema.name, column.name,
                               static_cast<int>(column.type)));
  if (column.encoding > Encoding::kDirect)
    return invalid(fmt::format("table {}, column {}: unknown encoding {}", schema.name, column.name,
                               static_cast<int>(column.encoding)));
  const std::uint8_t scale_max = column.type == Type::kDecimal ? 18 : 0;
  if (column.scale > scale_max)
    return invalid(fmt::format("table {}, column {}: scale {} of type {}, at most {}", schema.name,
                               column.name, column.scale, to_string(column.type), scale_max));
  return {};
}

Status check_key(const TableSchema& schema, const KeySchema& key) {
  if (Status s = check_name("key", key.name); !s.ok()) return s;
  const std::string where = fmt::format("table {}, key {}", schema.name, key.name);
  if (key.columns.empty() || key.columns.size() > kKeyColumnsMax)
    return invalid(fmt::format("{}: {} columns, allowed are 1 to {}", where, key.columns.size(),
                               kKeyColumnsMax));
  std::set<std::string> seen;
  for (const std::string& column : key.columns) {
    if (position_of(schema, column) == schema.columns.size())
      return invalid(fmt::format("{}: no column '{}'", where, column));
    if (!seen.insert(column).second)
      return invalid(fmt::format("{}: column '{}' occurs twice", where, column));
  }
  if (key.hashed_columns > key.columns.size())
    return invalid(
        fmt::format("{}: {} hashed columns of {}", where, key.hashed_columns, key.columns.size()));
  if (!key.unique && key.hashed_columns != 0)
    return invalid(fmt::format("{}: only a unique key is hashed", where));
  return {};
}

Encoding chosen_encoding(const TableSchema& schema, const ColumnSchema& column) {
  if (column.encoding != Encoding::kAuto) return column.encoding;
  const bool is_unique_key =
      std::any_of(schema.keys.begin(), schema.keys.end(), [&](const KeySchema& key) {
        return key.unique && key.columns.size() == 1 && key.columns[0] == column.name;
      });
  const bool fits = !column.nullable && column.type != Type::kBytes;
  return is_unique_key && fits ? Encoding::kDirect : Encoding::kDictionary;
}

// Integers little-endian, names as a length byte and bytes; see docs/format.md.
class Writer {
 public:
  void u8(std::uint8_t v) { bytes_.push_back(static_cast<char>(v)); }
  void u16(std::uint16_t v) {
    u8(static_cast<std::uint8_t>(v));
    u8(static_cast<std::uint8_t>(v >> 8));
  }
  void u32(std::uint32_t v) {
    u16(static_cast<std::uint16_t>(v));
    u16(static_cast<std::uint16_t>(v >> 16));
  }
  void name(const std::string& v) {
    u8(static_cast<std::uint8_t>(v.size()));
    bytes_ += v;
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  bool failed() const noexcept { return failed_; }
  bool at_end() const noexcept { return bytes_.empty(); }
  std::uint8_t u8() {
    if (bytes_.empty()) {
      failed_ = true;
      return 0;
    }
    const auto v = static_cast<std::uint8_t>(bytes_.front());
    bytes_.remove_prefix(1);
    return v;
  }
  std::uint16_t u16() {
    const std::uint16_t low = u8();
    return static_cast<std::uint16_t>(low | (u8() << 8));
  }
  std::uint32_t u32() {
    const std::uint32_t low = u16();
    return low | (std::uint32_t{u16()} << 16);
  }
  std::string name() {
    const std::size_t size = u8();
    if (size > bytes_.size()) {
      failed_ = true;
      return {};
    }
    std::string v(bytes_.substr(0, size));
    bytes_.remove_prefix(size);
    return v;
  }

 private:
  std::string_view bytes_;
  bool failed_ = false;
};

Status corrupt_schema(const std::string& what) {
  return Status(StatusCode::kCorrupt, fmt::format("schema in the pool: {}", what));
}

}  // namespace

Result<TableSchema> complete_schema(TableSchema schema) {
  if (Status s = check_name("table", schema.name); !s.ok()) return s;
  if (schema.columns.empty() || schema.columns.size() > kColumnsMax)
    return invalid(fmt::format("table {}: {} columns, allowed are 1 to {}", schema.name,
                               schema.columns.size(), kColumnsMax));
  if (schema.keys.size() > kKeysMax)
    return invalid(
        fmt::format("table {}: {} keys, at most {}", schema.name, schema.keys.size(), kKeysMax));
  std::set<std::string> names;
  for (const ColumnSchema& column : schema.columns) {
    if (Status s = check_column(schema, column); !s.ok()) return s;
    if (!names.insert(column.name).second)
      return invalid(fmt::format("table {}: column '{}' occurs twice", schema.name, column.name));
  }
  if (schema.has_primary_key && (schema.keys.empty() || !schema.keys[0].unique))
    return invalid(
        fmt::format("table {}: the first key must be the unique primary key", schema.name));
  std::set<std::string> key_names;
  for (KeySchema& key : schema.keys) {
    if (Status s = check_key(schema, key); !s.ok()) return s;
    if (!key_names.insert(key.name).second)
      return invalid(fmt::format("table {}: key '{}' occurs twice", schema.name, key.name));
    if (!key.unique) key.ordered = true;
    if (key.unique && key.hashed_columns == 0)
      key.hashed_columns = static_cast<std::uint8_t>(key.columns.size());
  }
  if (schema.has_primary_key)
    for (const std::string& column : schema.keys[0].columns)
      schema.columns[position_of(schema, column)].nullable = false;
  for (ColumnSchema& column : schema.columns) column.encoding = chosen_encoding(schema, column);
  return schema;
}

std::string encode_schema(const TableSchema& schema) {
  Writer out;
  out.name(schema.name);
  out.u16(static_cast<std::uint16_t>(schema.columns.size()));
  for (const ColumnSchema& column : schema.columns) {
    out.name(column.name);
    out.u8(static_cast<std::uint8_t>(column.type));
    out.u8(static_cast<std::uint8_t>(column.encoding));
    out.u8(column.nullable ? 1 : 0);
    out.u8(column.scale);
    out.u32(column.expected_distinct);
  }
  out.u8(schema.has_primary_key ? 1 : 0);
  out.u8(static_cast<std::uint8_t>(schema.keys.size()));
  for (const KeySchema& key : schema.keys) {
    out.name(key.name);
    out.u8(static_cast<std::uint8_t>((key.unique ? 1 : 0) | (key.ordered ? 2 : 0)));
    out.u8(key.hashed_columns);
    out.u8(static_cast<std::uint8_t>(key.columns.size()));
    for (const std::string& column : key.columns)
      out.u16(static_cast<std::uint16_t>(position_of(schema, column)));
  }
  return out.take();
}

Result<TableSchema> decode_schema(std::string_view bytes) {
  Reader in(bytes);
  TableSchema schema(in.name());
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
    schema.columns.push_back(std::move(column));
  }
  schema.has_primary_key = in.u8() != 0;
  const std::size_t keys = in.u8();
  if (keys > kKeysMax) return corrupt_schema(fmt::format("{} keys", keys));
  for (std::size_t i = 0; i < keys && !in.failed(); ++i) {
    KeySchema key;
    key.name = in.name();
    const std::uint8_t flags = in.u8();
    key.unique = (flags & 1) != 0;
    key.ordered = (flags & 2) != 0;
    key.hashed_columns = in.u8();
    const std::size_t key_columns = in.u8();
    for (std::size_t k = 0; k < key_columns && !in.failed(); ++k) {
      const std::size_t position = in.u16();
      if (position >= schema.columns.size())
        return corrupt_schema(
            fmt::format("key {} names column {} of {}", key.name, position, schema.columns.size()));
      key.columns.push_back(schema.columns[position].name);
    }
    schema.keys.push_back(std::move(key));
  }
  if (in.failed() || !in.at_end()) return corrupt_schema("its length does not fit its contents");
  Result<TableSchema> checked = complete_schema(std::move(schema));
  if (!checked.ok()) return corrupt_schema(std::string(checked.status().message()));
  return checked;
}

}  // namespace flugs::engine
