#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "bindings/duckdb/arguments.h"
#include "bindings/duckdb/names.h"
#include "bindings/duckdb/scan.h"

namespace flugs::duckdb {

namespace {

struct BoundScans {
  std::mutex mutex;  // protects `by_reference`
  std::multimap<std::uint64_t, const ScanBind*> by_reference;
};

/// Never destroyed: DuckDB may be in use after the destructors of this library.
BoundScans& bound_scans() {
  static BoundScans& instance = *new BoundScans;
  return instance;
}

// Copies of an expression share its node.
bool are_same(const std::vector<query::Expr>& a, const std::vector<query::Expr>& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(),
      [](const query::Expr& one, const query::Expr& other) { return one.node() == other.node(); });
}

Result<SharedBind> make_bind(duckdb_v2_function_bind_info_handle call) {
  FLUGS_ASSIGN(SharedInstance* const instance,
               kept<SharedInstance>(duckdb_v2_function_bind_get_user_data, call));
  FLUGS_ASSIGN(const std::string path, pool_argument(call));
  FLUGS_ASSIGN(const std::optional<std::string> name, text_argument(call, "table"));
  FLUGS_ASSIGN(const bool read_only, bool_argument(call, "read_only"));
  FLUGS_ASSIGN(const std::uint64_t reference, number_argument(call, "reference"));
  FLUGS_ASSIGN(const std::uint64_t statement, number_argument(call, "statement"));
  FLUGS_ASSIGN(const std::uint64_t rows, number_argument(call, "rows"));
  FLUGS_ASSIGN(const std::uint64_t definition, number_argument(call, "definition"));
  if (reference == 0)
    return Status(StatusCode::kInvalidArgument, "call flugs_scan, which gives a reference");
  FLUGS_ASSIGN(const std::shared_ptr<Pool> pool,
               (*instance)->pool(path, read_only ? OpenMode::kReadOnly : OpenMode::kOpen));
  auto bind = std::make_shared<ScanBind>(moment_of(instance->get(), statement, pool), reference);
  FLUGS_TRY(pool->use([&](Database& database) -> Status {
    FLUGS_ASSIGN(const Table table, choose_table(database, path, name));
    // DuckDB joins the columns of the scan with those of the query beside it by their places.
    if (definition != 0 && definition != digest_of(table.id(), table.schema()))
      return {StatusCode::kConflict, "the definition of table " + table.name() +
                                         " changed while the statement was being planned: run it "
                                         "again"};
    bind->table = table.name();
    bind->id = table.id();
    bind->columns = columns_of(table.schema());
    bind->rows = rows != 0 ? rows : estimate_rows(database, table);
    return {};
  }));
  FLUGS_TRY(bind->copy_filters());
  return bind;
}

}  // namespace

std::string shown_name(const std::string& name, std::set<std::string>& taken) {
  for (std::size_t number = 0;; ++number) {
    const std::string shown = number == 0 ? name : name + "_" + std::to_string(number);
    if (taken.insert(lower_case(shown)).second) return shown;
  }
}

std::vector<ScanColumn> columns_of(const TableSchema& schema) {
  std::vector<ScanColumn> columns;
  for (const ColumnSchema& column : schema.columns)
    if (!column.dropped) columns.push_back({column.name, column.type, column.scale});
  return columns;
}

std::uint64_t digest_of(TableId id, const TableSchema& schema) {
  std::string text = std::to_string(id.value());
  std::set<std::string> taken;
  for (const ScanColumn& column : columns_of(schema)) {
    const std::string shown = shown_name(column.name, taken);
    text += ' ' + std::to_string(static_cast<int>(column.type)) + ' ' +
            std::to_string(column.scale) + ' ' + std::to_string(shown.size()) + ' ' + shown;
  }
  return std::max<std::uint64_t>(std::hash<std::string>()(text), 1);
}

ScanBind::ScanBind(std::shared_ptr<Moment> of, std::uint64_t reference_of)
    : moment(std::move(of)), reference(reference_of) {
  moment->bind(this);
}

ScanBind::~ScanBind() {
  moment->unbind(this);
  BoundScans& known = bound_scans();
  const std::lock_guard lock(known.mutex);
  const auto [first, last] = known.by_reference.equal_range(reference);
  for (auto i = first; i != last; ++i) {
    if (i->second != this) continue;
    known.by_reference.erase(i);
    return;
  }
}

Status ScanBind::copy_filters() {
  BoundScans& known = bound_scans();
  const std::lock_guard lock(known.mutex);
  const auto [first, last] = known.by_reference.equal_range(reference);
  for (auto i = first; i != last; ++i) {
    if (!are_same(helpers, i->second->helpers)) helpers.clear();
    if (i == first) {
      filters = i->second->filters;
      helpers = i->second->helpers;
    } else if (!are_same(filters, i->second->filters)) {
      return Status(StatusCode::kInvalidArgument,
                    "DuckDB copies a scan whose copies have different filters already; put AS "
                    "MATERIALIZED behind the name of the common table expression");
    }
  }
  known.by_reference.emplace(reference, this);
  return {};
}

void bind_scan(duckdb_v2_function_bind_info_handle call,
               duckdb_v2_table_function_bind_info_handle info, duckdb_v2_context_handle context,
               duckdb_v2_error_info_handle* err) {
  guarded(err, [&]() -> Status {
    FLUGS_TRY(check_access(context));
    FLUGS_ASSIGN(const duckdb_v2_factory_handle factory, factory_of(context));
    FLUGS_ASSIGN(SharedBind bind, make_bind(call));
    std::set<std::string> taken;
    for (const ScanColumn& column : bind->columns) {
      FLUGS_ASSIGN(const OwnedType type, make_type_of(factory, column));
      const std::string shown = shown_name(column.name, taken);
      const duckdb_v2_identifier_t name = str_of(shown);
      FLUGS_TRY(ask(duckdb_v2_table_function_bind_add_result_column, info, &name, type.get()));
    }
    FLUGS_TRY(ask(duckdb_v2_table_function_bind_set_cardinality, info, idx_t{bind->rows}, false));
    FLUGS_TRY(ask(duckdb_v2_table_function_bind_set_order_preservation, info,
                  DUCKDB_V2_ORDER_PRESERVATION_NO_ORDER));
    duckdb_v2_opaque data = opaque_of(new SharedBind(std::move(bind)));
    return ask(duckdb_v2_function_bind_set_bind_data, call, &data);
  });
}

}  // namespace flugs::duckdb
