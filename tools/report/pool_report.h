#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/support/json.h"
#include "flugs/database.h"

namespace flugs::tools {

/// Opens a pool that is there, in order to look at it; for reading only if it may not be written.
/// Fails as Database::open.
Result<Database> open_to_look(const std::string& path);

/// Counts the rows of a table that a new transaction sees. Reads a stamp of each.
Result<std::uint64_t> live_rows(Database& database, const std::string& table);

/// Path, medium, guarantee; sizes of the pool and its indexes.
void print_head(const Database& database, const Statistics& statistics);

std::vector<TableSchema> schemas_of(const Database& database);
bench::Json schema_json(const TableSchema& schema);

}  // namespace flugs::tools
