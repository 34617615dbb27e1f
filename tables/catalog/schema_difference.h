#pragma once

#include "flugs/schema.h"
#include "flugs/status.h"

namespace flugs::engine {

/// Whether a table with the completed schema `found` has all that `wanted` asks for, by name:
/// columns (type, scale, NOT NULL, auto-increment), keys (columns, unique, ordered, hashed
/// columns), checks (their conditions) and foreign keys. More of them is no difference, nor are
/// encodings and defaults. `wanted` is completed first (complete_schema), so that both say what the
/// builder left out. Fails with kInvalidArgument, which names the first difference, and as
/// complete_schema.
Status check_has(const TableSchema& found, const TableSchema& wanted);

}  // namespace flugs::engine
