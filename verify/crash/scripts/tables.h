#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "verify/crash/rig/rig.h"

// The tables of the protocols' scripts. The first column is always `id`, unique in its table.

namespace flugs::crash {

/// Primary key and unique key, ordered key; dictionaries of short and long text and of integers;
/// direct integers and direct text.
TableSchema people_schema();
std::vector<Value> person(std::int32_t id, std::string_view name, std::string_view city,
                          std::int64_t amount, std::string_view note);
/// The schema with one more key, in the first free place; or with that place empty.
TableSchema with_key(TableSchema schema, std::string name, std::vector<std::string> columns,
                     bool is_unique);
TableSchema without_key(TableSchema schema, std::size_t place);
/// Primary key of two columns.
TableSchema orders_schema();
std::vector<Value> order(std::int32_t id, std::int32_t customer, std::string_view note);
/// No key: opening sweeps the last rows only.
TableSchema log_schema(std::string name = "log");
std::vector<Value> log_entry(std::int32_t id, std::int64_t amount);
/// Makes the table `log` so large that opening leaves some of its first rows unswept.
void fill_with_dead_rows(CrashRig& rig);
/// Each row gets a unique number, which the model does not know.
TableSchema tickets_schema();
/// Does to a schema what Database::drop_column does.
void drop_column(TableSchema& schema, std::size_t column);
std::vector<Value> ticket(std::int32_t id);
/// Rows of 256 bytes, 16 to a chunk.
TableSchema wide_schema();
std::vector<Value> wide_row(std::int32_t id);

ColumnValue set(std::uint16_t column, Value value);

}  // namespace flugs::crash
