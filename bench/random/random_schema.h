#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/support/random.h"
#include "flugs/schema.h"

namespace flugs::bench {

/// Limits of a random schema.
struct SchemaWishes {
  std::uint32_t columns_max = 20;
  std::uint32_t keys_max = 4;
  /// Tables that it may refer to, as the database completed their schemas. It may refer to itself
  /// as well, unless `refers` is false.
  std::vector<const TableSchema*> parents = {};
  bool refers = true;
  bool has_numbers = true;  ///< an auto-increment column, in some schemas
};

// Everything is drawn from `random`: the same numbers give the same schema. The database accepts
// the drawn schema, unless a name is taken.

/// A column of any type and encoding, with or without a default.
ColumnSchema draw_column(std::string name, Random& random);
/// A key of one to four columns of `schema`, with its columns in any order.
KeySchema draw_key(std::string name, const TableSchema& schema, Random& random);
/// A check that most rows fulfil. Its condition is empty if no column of `schema` is fit for one.
CheckSchema draw_check(std::string name, const TableSchema& schema, Random& random);
TableSchema draw_schema(std::string name, const SchemaWishes& wishes, Random& random);

}  // namespace flugs::bench
