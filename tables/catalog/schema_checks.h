#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "flugs/schema.h"
#include "flugs/status.h"
#include "tables/catalog/schema_bytes.h"

namespace flugs::engine {

inline constexpr std::size_t kChecksMax = 64;

/// Fails with kInvalidArgument.
Status check_name(const char* what, const std::string& name);

/// The position of a column, or their number.
std::size_t position_of(const TableSchema& schema, const std::string& column) noexcept;

/// Whether a list of columns' names has this one.
bool names(const std::vector<std::string>& columns, const std::string& column);

/// The constant as a value of the column's type, in its one form. Fails with kInvalidArgument;
/// `where` is what its message begins with.
Result<Constant> fit_constant(const ColumnSchema& column, const Constant& constant,
                              const std::string& where);

/// Parts of complete_schema: columns with numbers, the default of a column, and a check, brought
/// into the form in which they are kept. Fail with kInvalidArgument.
Status complete_auto_increment(TableSchema& schema);
Status complete_default(const TableSchema& schema, ColumnSchema& column);
Status complete_check(const TableSchema& schema, CheckSchema& check);

// Parts of encode_schema and decode_schema. What is read is checked by the above, later.
void encode_constant(SchemaWriter& out, const Constant& constant);
Constant decode_constant(SchemaReader& in, const ColumnSchema& column);
void encode_check(SchemaWriter& out, const TableSchema& schema, const CheckSchema& check);
/// Fails with kCorrupt.
Result<CheckSchema> decode_check(SchemaReader& in, const TableSchema& schema);

}  // namespace flugs::engine
