#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "flugs/schema.h"
#include "flugs/status.h"
#include "tables/catalog/schema_bytes.h"

namespace flugs::engine {

/// No column has this name: queries give it to the ids of rows (query::row_id).
inline constexpr std::string_view kRowIdName = "row_id()";

inline constexpr std::size_t kChecksMax = 64;

/// Checks a name; `what` says in the message what it names. Fails with kInvalidArgument.
Status check_name(const char* what, const std::string& name);

/// The position of a column; the number of columns if there is none with that name.
std::size_t position_of(const TableSchema& schema, const std::string& column) noexcept;

/// Whether `columns`, a list of names, has this name.
bool names(const std::vector<std::string>& columns, const std::string& column);

/// Converts the constant to the column's type, in the one form of that type. `where` begins the
/// message. Fails with kInvalidArgument.
Result<Constant> fit_constant(const ColumnSchema& column, const Constant& constant,
                              const std::string& where);

/// Parts of complete_schema. They check auto-increment columns, the default of a column, and a
/// check, and bring them into the form that is stored. They fail with kInvalidArgument.
Status complete_auto_increment(TableSchema& schema);
Status complete_default(const TableSchema& schema, ColumnSchema& column);
Status complete_check(const TableSchema& schema, CheckSchema& check);

// Parts of encode_schema and decode_schema. The functions above check later what was decoded.
void encode_constant(SchemaWriter& out, const Constant& constant);
Constant decode_constant(SchemaReader& in, const ColumnSchema& column);
void encode_check(SchemaWriter& out, const TableSchema& schema, const CheckSchema& check);
/// Fails with kCorrupt.
Result<CheckSchema> decode_check(SchemaReader& in, const TableSchema& schema);

}  // namespace flugs::engine
