#include "bindings/duckdb/scan.h"

namespace flugs::duckdb {

// A type by its id costs much less than one whose text DuckDB parses.
Result<OwnedType> make_type_of(duckdb_v2_factory_handle factory, const ScanColumn& column) {
  if (column.type == Type::kDecimal)
    return make_type(factory, "DECIMAL(18," + std::to_string(column.scale) + ")");
  OwnedType type;
  FLUGS_TRY(ask(duckdb_v2_factory_create_type_from_id, factory, type_id_of(column.type),
                static_cast<const duckdb_v2_identifier_t*>(nullptr),
                static_cast<const duckdb_v2_value_handle*>(nullptr), idx_t{0}, type.out()));
  return type;
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
