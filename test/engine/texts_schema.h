#pragma once

#include "flugs/schema.h"

namespace flugs::test {

/// A table of an id, which is the key, and a text.
inline TableSchema texts_schema() {
  TableSchema schema("rows");
  schema.column("id", Type::kInt64).column("text", Type::kString).primary_key({"id"});
  return schema;
}

}  // namespace flugs::test
