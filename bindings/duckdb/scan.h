#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "bindings/duckdb/instance.h"
#include "bindings/duckdb/moments.h"
#include "flugs/query.h"

namespace flugs::duckdb {

struct ScanColumn {
  std::string name;
  Type type = Type::kInt64;
  std::uint8_t scale = 0;
};

/// Columns of a table, in order, without those that were dropped.
std::vector<ScanColumn> columns_of(const TableSchema& schema);
/// The name of a column in DuckDB, which takes names that differ in the case of letters for the
/// same one: the later column gets a number behind its name. `taken` has the names before.
std::string shown_name(const std::string& name, std::set<std::string>& taken);
/// A number that tells definitions of tables apart: it has the table, and the names that DuckDB
/// shows and the types of its columns, in order. Never 0.
std::uint64_t digest_of(TableId id, const TableSchema& schema);
/// The type of a column in DuckDB.
Result<OwnedType> make_type_of(duckdb_v2_factory_handle factory, const ScanColumn& column);
/// The id of the same type, without width and scale.
DUCKDB_V2_LOGICAL_TYPE_ID type_id_of(Type type) noexcept;

/// A scan of a plan, as it was bound: DuckDB's bind data.
///
/// The optimizer copies a part of a plan by writing it down and binding it again. What DuckDB has
/// pushed into the scan is not in what it writes. So each scan has a reference that the copy has as
/// well, by which the copy finds the filters (docs/decisions/0054).
///
/// Thread-safety: by the thread that plans; then constant.
struct ScanBind {
  ScanBind(std::shared_ptr<Moment> of, std::uint64_t reference_of);
  ~ScanBind();
  ScanBind(const ScanBind&) = delete;
  ScanBind& operator=(const ScanBind&) = delete;

  /// Takes over the filters of other scans with the same reference. Fails with kInvalidArgument
  /// when these differ.
  Status copy_filters();
  const std::shared_ptr<Moment> moment;
  const std::uint64_t reference;
  std::string table;
  TableId id = {};
  std::vector<ScanColumn> columns;
  std::uint64_t rows = 0;            ///< roughly, when it was bound
  std::vector<query::Expr> filters;  ///< DuckDB does not test these
  std::vector<query::Expr> helpers;  ///< DuckDB tests these, or narrower ones, once more
};

/// DuckDB keeps a share, and a scan that runs has one.
using SharedBind = std::shared_ptr<ScanBind>;

/// The callbacks of the table function.
void bind_scan(duckdb_v2_function_bind_info_handle call,
               duckdb_v2_table_function_bind_info_handle info, duckdb_v2_context_handle context,
               duckdb_v2_error_info_handle* err);
void push_filters(duckdb_v2_table_function_filter_pushdown_info_handle info,
                  duckdb_v2_context_handle context, duckdb_v2_error_info_handle* err);
void begin_scan(duckdb_v2_table_function_init_global_info_handle info,
                duckdb_v2_context_handle context, duckdb_v2_error_info_handle* err);
void begin_thread(duckdb_v2_table_function_init_local_info_handle info,
                  duckdb_v2_context_handle context, duckdb_v2_error_info_handle* err);
void run_scan(duckdb_v2_table_function_exec_info_handle info, duckdb_v2_context_handle context,
              duckdb_v2_error_info_handle* err);
void tell_progress(duckdb_v2_table_function_progress_info_handle info,
                   duckdb_v2_context_handle context, duckdb_v2_error_info_handle* err);

}  // namespace flugs::duckdb
