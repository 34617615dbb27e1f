#pragma once

#include <string>
#include <string_view>

#include "flugs/schema.h"
#include "flugs/status.h"

namespace flugs::engine {

/// Limits of a key and of a schema, for complete_schema and decode_schema.
inline constexpr std::size_t kKeyColumnsMax = 16;
inline constexpr std::size_t kKeysMax = 16;
inline constexpr std::size_t kColumnGroupsMax = 255;

/// Checks a schema and fills in what it leaves open (encodings, NOT NULL of the primary key's
/// columns, hashed columns). Fails with kInvalidArgument, and the message names table, column or
/// key.
Result<TableSchema> complete_schema(TableSchema schema);
/// The part of it that checks `delta_layout` and `column_groups`.
Status check_delta_layout(const TableSchema& schema);

/// The schema as bytes for the pool (format.md, "Schema"), and back. `decode_schema` trusts
/// nothing: it fails with kCorrupt.
std::string encode_schema(const TableSchema& schema);
Result<TableSchema> decode_schema(std::string_view bytes);

}  // namespace flugs::engine
