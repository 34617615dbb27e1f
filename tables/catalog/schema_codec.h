#pragma once

#include <string>
#include <string_view>

#include "flugs/schema.h"
#include "flugs/status.h"

namespace flugs::engine {

/// What complete_schema allows a key to have, and decode_schema to find.
inline constexpr std::size_t kKeyColumnsMax = 16;
inline constexpr std::size_t kKeysMax = 16;

/// Checks a schema and fills in what it leaves open (encodings, columns of the primary key NOT
/// NULL, hashed columns). Fails with kInvalidArgument, naming table, column or key.
Result<TableSchema> complete_schema(TableSchema schema);

/// The schema as bytes for the pool (format.md, "Schema"), and back. `decode_schema` trusts
/// nothing: it fails with kCorrupt.
std::string encode_schema(const TableSchema& schema);
Result<TableSchema> decode_schema(std::string_view bytes);

}  // namespace flugs::engine
