#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bindings/duckdb/instance.h"
#include "flugs/column_batch.h"
#include "flugs/schema.h"

namespace flugs::duckdb {

/// A column of DuckDB that COPY writes.
struct CopyColumn {
  std::string name;
  Type type = Type::kInt64;
  std::uint8_t scale = 0;
  ArrayForm form = ArrayForm::kInt64;  ///< of its vectors; kText64: texts of 16 bytes each
  OwnedType duckdb_type;
};

/// A column as flugs and DuckDB have it. Fails with kInvalidArgument if flugs has no type for it.
Result<CopyColumn> copy_column(std::string name, OwnedType type);

/// COPY as it was bound: DuckDB's bind data.
struct CopyBind {
  SharedInstance instance;
  std::string pool;
  std::string file;  ///< the path as DuckDB has it
  std::string table;
  std::vector<CopyColumn> columns;
  std::vector<std::string> key;
  std::uint64_t max_bytes = 0;
  std::uint64_t commit_rows = 0;  ///< 0: one transaction
  bool is_merged = false;         ///< merge the table at the end
};

void bind_copy(duckdb_v2_copy_to_bind_info_handle info, duckdb_v2_context_handle context,
               duckdb_v2_error_info_handle* err);

/// A vector of DuckDB as the values of a column. Keeps what had to be made for that.
class CopiedVector {
 public:
  /// The vector stays as it is until the result is used. `rows` of them.
  Result<ValueArray> read(const CopyColumn& column, duckdb_v2_vector_handle vector,
                          std::size_t rows);

 private:
  void read_texts(const duckdb_v2_bytes* texts, const std::uint64_t* validity, std::size_t rows,
                  ValueArray& array);

  std::string bytes_;
  std::vector<std::int64_t> offsets_;
  std::vector<std::uint8_t> bits_;
};

}  // namespace flugs::duckdb
