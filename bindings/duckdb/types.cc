#include "bindings/duckdb/scan.h"

namespace flugs::duckdb {

std::string type_name_of(const ScanColumn& column) {
  switch (column.type) {
    case Type::kBool:
      return "BOOLEAN";
    case Type::kInt32:
      return "INTEGER";
    case Type::kInt64:
      return "BIGINT";
    case Type::kDouble:
      return "DOUBLE";
    case Type::kDecimal:
      return "DECIMAL(18," + std::to_string(column.scale) + ")";
    case Type::kDate:
      return "DATE";
    case Type::kTimestamp:
      return "TIMESTAMP";
    case Type::kString:
      return "VARCHAR";
    case Type::kBytes:
      return "BLOB";
  }
  return "NULL";
}

DUCKDB_V2_LOGICAL_TYPE_ID type_id_of(Type type) noexcept {
  switch (type) {
    case Type::kBool:
      return DUCKDB_V2_LOGICAL_TYPE_ID_BOOLEAN;
    case Type::kInt32:
      return DUCKDB_V2_LOGICAL_TYPE_ID_INTEGER;
    case Type::kInt64:
      return DUCKDB_V2_LOGICAL_TYPE_ID_BIGINT;
    case Type::kDouble:
      return DUCKDB_V2_LOGICAL_TYPE_ID_DOUBLE;
    case Type::kDecimal:
      return DUCKDB_V2_LOGICAL_TYPE_ID_DECIMAL;
    case Type::kDate:
      return DUCKDB_V2_LOGICAL_TYPE_ID_DATE;
    case Type::kTimestamp:
      return DUCKDB_V2_LOGICAL_TYPE_ID_TIMESTAMP;
    case Type::kString:
      return DUCKDB_V2_LOGICAL_TYPE_ID_VARCHAR;
    case Type::kBytes:
      return DUCKDB_V2_LOGICAL_TYPE_ID_BLOB;
  }
  return DUCKDB_V2_LOGICAL_TYPE_ID_INVALID;
}

}  // namespace flugs::duckdb
