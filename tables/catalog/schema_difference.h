#pragma once

#include "flugs/schema.h"
#include "flugs/status.h"

namespace flugs::engine {

/// Whether a table with the completed schema `found` has all that `wanted` asks for, by name:
/// columns (type, scale, NOT NULL, auto-increment), keys (columns, unique, ordered), checks and
/// foreign keys. More of them is no difference, nor are encodings and defaults. Fails with
/// kInvalidArgument, which names the first difference.
Status check_has(const TableSchema& found, const TableSchema& wanted);

}  // namespace flugs::engine
