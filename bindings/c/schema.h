#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "bindings/c/errors.h"
#include "flugs/schema.h"

struct flugs_schema : flugs::c::Handle<flugs::c::Kind::kSchema> {
  explicit flugs_schema(const char* table) : core(table) {}
  flugs::TableSchema core;
  std::string last_key;
};

namespace flugs::c {

/// Fails with: FLUGS_INVALID_ARGUMENT (a NULL).
flugs_error* names_from_c(const char* const* names, std::size_t count,
                          std::vector<std::string>& out);

}  // namespace flugs::c
