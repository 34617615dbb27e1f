#pragma once

#include <string>
#include <vector>

#include "flugs/schema.h"

namespace flugs::tools {

/// The tables as statements that make them again: CREATE TABLE, in the words of SQL as far as SQL
/// has them (docs/operations.md names the others). A foreign key that refers to a later table
/// follows behind all tables, as an ALTER TABLE.
std::string schema_text(const std::vector<TableSchema>& tables);

}  // namespace flugs::tools
