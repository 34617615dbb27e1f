// The SELECT that stands for a scan in a plan: flugs_scan_text, which flugs_scan calls, and
// flugs_domain, which has no row.

#include <algorithm>
#include <atomic>
#include <charconv>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "bindings/duckdb/arguments.h"
#include "bindings/duckdb/names.h"
#include "bindings/duckdb/register.h"
#include "bindings/duckdb/scan.h"

namespace flugs::duckdb {

namespace {

// Scans of a statement whose columns DuckDB may take for unique. Two tables have no order of joins.
// Of three tables the third scan tells its numbers of values. DuckDB takes the smallest number of
// those of the columns that are joined, and the two plain scans give greater ones.
constexpr std::size_t kPlainScans = 2;
// Functions flugs_domain of a scan. Each costs DuckDB some 0.1 ms of planning.
constexpr std::size_t kSizesMax = 4;

/// What flugs_scan passes on. Nothing: NULL.
struct ScanCall {
  std::optional<std::string> pool;
  std::optional<std::string> table;
  bool read_only = false;
  std::uint64_t statement = 0;
};

std::string quoted(std::string_view text, char quote) {
  std::string out(1, quote);
  for (const char c : text) out.append(c == quote ? 2 : 1, c);
  return out + quote;
}

// Each call has its own reference, by which copies of the scan are known. All arguments are named:
// the optimizer takes scans with the same positional arguments for the same scan, whatever filters
// were pushed into them. `definition`: the scan fails if the table has another one when it is
// bound.
std::string text_of_call(const ScanCall& call, std::uint64_t rows, std::uint64_t definition = 0) {
  static std::atomic<std::uint64_t> references{0};
  std::string text = "SELECT * FROM flugs_scan_once(reference := " +
                     std::to_string(references.fetch_add(1, std::memory_order_relaxed) + 1) +
                     ", statement := " + std::to_string(call.statement) +
                     ", \"rows\" := " + std::to_string(rows);
  if (call.pool) text += ", pool := " + quoted(*call.pool, '\'');
  if (call.table) text += ", \"table\" := " + quoted(*call.table, '\'');
  if (call.read_only) text += ", read_only := true";
  if (definition != 0) text += ", definition := " + std::to_string(definition);
  return text + ")";
}

// At most kSizesMax different sizes: neighbours that are most alike become the greater one.
std::vector<std::uint64_t> sizes_of(const std::vector<std::uint64_t>& values) {
  const std::set<std::uint64_t> different(values.begin(), values.end());
  std::vector<std::uint64_t> sizes(different.begin(), different.end());
  while (sizes.size() > kSizesMax) {
    const auto ratio = [](std::uint64_t less, std::uint64_t more) {
      return static_cast<double>(more) / static_cast<double>(less);
    };
    std::size_t best = 0;
    for (std::size_t i = 1; i + 1 < sizes.size(); ++i)
      if (ratio(sizes[i], sizes[i + 1]) < ratio(sizes[best], sizes[best + 1])) best = i;
    sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(best));
  }
  return sizes;
}

/// The columns of a table and what DuckDB is told of them.
struct Columns {
  bool is_plain = false;              ///< DuckDB is told of its rows only
  std::vector<ScanColumn> columns;    ///< with the names that DuckDB shows
  std::vector<std::uint64_t> values;  ///< at least 1
  std::uint64_t rows = 0;
  std::uint64_t definition = 0;  ///< as digest_of
};

Result<Columns> look_at(duckdb_v2_context_handle context, Instance& instance,
                        const ScanCall& call) {
  FLUGS_TRY(check_access(context));
  FLUGS_ASSIGN(const std::shared_ptr<Pool> pool,
               instance.pool(call.pool.value_or(""),
                             call.read_only ? OpenMode::kReadOnly : OpenMode::kOpen));
  Columns columns;
  columns.is_plain = moment_of(&instance, call.statement, pool)->scan_count() < kPlainScans;
  FLUGS_TRY(pool->use([&](Database& database) -> Status {
    FLUGS_ASSIGN(const Table table, choose_table(database, call.pool.value_or(""), call.table));
    if (columns.is_plain) {
      columns.rows = estimate_rows(database, table);
      return {};
    }
    FLUGS_ASSIGN(const Domains domains, pool->domains().of(database, table, pool->stop()));
    columns.rows = domains.rows;
    // The scan reads the definition again: it must be the same one.
    FLUGS_ASSIGN(const Table now, choose_table(database, call.pool.value_or(""), call.table));
    columns.definition = digest_of(now.id(), now.schema());
    if (columns.definition != digest_of(table.id(), table.schema())) {
      columns.is_plain = true;
      return {};
    }
    columns.columns = columns_of(table.schema());
    std::set<std::string> taken;
    for (ScanColumn& column : columns.columns) column.name = shown_name(column.name, taken);
    for (std::size_t c = 0; c < domains.values.size(); ++c)
      if (!table.schema().columns[c].dropped)
        columns.values.push_back(std::max<std::uint64_t>(domains.values[c], 1));
    return {};
  }));
  return columns;
}

// A column as an argument of flugs_domain.
std::string text_of_column(const ScanColumn& column) {
  return std::to_string(static_cast<int>(column.type)) + ' ' + std::to_string(column.scale) + ' ' +
         std::to_string(column.name.size()) + ' ' + column.name;
}

// DuckDB takes from an extension only the number of rows of a scan, and each column for unique. But
// of the rows of two queries behind each other (UNION ALL) it takes numbers of values from the
// first one. So this one has no row, and joins flugs_domain(n) of as many values as a column has.
std::string text_of_domains(const Columns& of) {
  const std::vector<std::uint64_t> sizes = sizes_of(of.values);
  std::vector<std::string> domains(sizes.size());
  std::string text = "(SELECT ";
  for (std::size_t c = 0; c < of.columns.size(); ++c) {
    const auto size = std::lower_bound(sizes.begin(), sizes.end(), of.values[c]);
    domains[static_cast<std::size_t>(size - sizes.begin())] += text_of_column(of.columns[c]);
    text += (c == 0 ? "" : ", ") + quoted(of.columns[c].name, '"');
  }
  for (std::size_t i = 0; i < sizes.size(); ++i)
    text += (i == 0 ? " FROM flugs_domain(\"values\" := " : ", flugs_domain(\"values\" := ") +
            std::to_string(sizes[i]) + ", columns := " + quoted(domains[i], '\'') + ")";
  return text + " LIMIT 1) UNION ALL ";
}

// What fails here fails again when the scan is bound, which says why.
std::string text_of_scan(duckdb_v2_context_handle context, Instance& instance,
                         const ScanCall& call) {
  const Result<Columns> columns = look_at(context, instance, call);
  if (!columns.ok()) return text_of_call(call, 0);
  const auto is_less = [&](std::uint64_t values) { return values < columns->rows; };
  if (columns->is_plain || std::none_of(columns->values.begin(), columns->values.end(), is_less))
    return text_of_call(call, columns->rows);
  return text_of_domains(*columns) + text_of_call(call, columns->rows, columns->definition);
}

// NULL: nothing.
Result<OwnedValue> argument_of(duckdb_v2_scalar_function_exec_info_handle info, idx_t argument,
                               idx_t row) {
  duckdb_v2_vector_handle vector = nullptr;
  FLUGS_TRY(ask(duckdb_v2_scalar_function_exec_get_arg, info, argument, &vector));
  OwnedValue value;
  FLUGS_TRY(ask(duckdb_v2_vector_get_value, vector, row, value.out()));
  FLUGS_ASSIGN(const bool null, is_null(value.get()));
  if (null) return OwnedValue();
  return value;
}

Result<ScanCall> read_call(duckdb_v2_scalar_function_exec_info_handle info, idx_t row) {
  ScanCall call;
  idx_t argument = 0;
  for (std::optional<std::string>* const part : {&call.pool, &call.table}) {
    FLUGS_ASSIGN(const OwnedValue value, argument_of(info, argument++, row));
    if (value.get() == nullptr) continue;
    FLUGS_ASSIGN(*part, text_of(value.get()));
  }
  FLUGS_ASSIGN(const OwnedValue read_only, argument_of(info, argument++, row));
  if (read_only.get() != nullptr)
    FLUGS_TRY(ask(duckdb_v2_value_get_bool, read_only.get(), &call.read_only));
  FLUGS_ASSIGN(const OwnedValue statement, argument_of(info, argument, row));
  if (statement.get() != nullptr)
    FLUGS_TRY(ask(duckdb_v2_value_get_ubigint, statement.get(), &call.statement));
  return call;
}

void write_texts(duckdb_v2_scalar_function_exec_info_handle info, duckdb_v2_context_handle context,
                 duckdb_v2_error_info_handle* err) {
  guarded(err, [&]() -> Status {
    FLUGS_ASSIGN(const duckdb_v2_factory_handle factory, factory_of(context));
    FLUGS_ASSIGN(SharedInstance* const instance,
                 kept<SharedInstance>(duckdb_v2_scalar_function_exec_get_user_data, info));
    idx_t rows = 0;
    FLUGS_TRY(ask(duckdb_v2_scalar_function_exec_get_row_count, info, &rows));
    duckdb_v2_vector_handle result = nullptr;
    FLUGS_TRY(ask(duckdb_v2_scalar_function_exec_get_result, info, &result));
    FLUGS_TRY(ask(duckdb_v2_vector_set_size, result, rows));
    for (idx_t row = 0; row < rows; ++row) {
      FLUGS_ASSIGN(const ScanCall call, read_call(info, row));
      FLUGS_ASSIGN(const OwnedValue text,
                   make_text(factory, text_of_scan(context, **instance, call)));
      FLUGS_TRY(ask(duckdb_v2_vector_set_value, result, row, text.get()));
    }
    return {};
  });
}

struct DestroyScalar {
  void operator()(duckdb_v2_scalar_function_handle* h) const noexcept {
    duckdb_v2_scalar_function_destroy(h);
  }
};

/// Reads the texts of text_of_column, one behind the other.
class ColumnReader {
 public:
  explicit ColumnReader(std::string_view text) noexcept : rest_(text) {}

  bool is_at_end() const noexcept { return rest_.empty(); }
  Result<ScanColumn> next() {
    ScanColumn column;
    FLUGS_ASSIGN(const std::size_t type, number());
    FLUGS_ASSIGN(const std::size_t scale, number());
    FLUGS_ASSIGN(const std::size_t length, number());
    if (length > rest_.size()) return bad();
    column.type = static_cast<Type>(type);
    column.scale = static_cast<std::uint8_t>(scale);
    column.name = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return column;
  }

 private:
  static Status bad() {
    return {StatusCode::kInvalidArgument, "flugs_domain is for flugs_scan, and not to be called"};
  }
  Result<std::size_t> number() {
    std::size_t value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc() || end == rest_.data() + rest_.size() || *end != ' ') return bad();
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()) + 1);
    return value;
  }

  std::string_view rest_;
};

void bind_domain(duckdb_v2_function_bind_info_handle call,
                 duckdb_v2_table_function_bind_info_handle info, duckdb_v2_context_handle context,
                 duckdb_v2_error_info_handle* err) {
  guarded(err, [&]() -> Status {
    FLUGS_ASSIGN(const duckdb_v2_factory_handle factory, factory_of(context));
    FLUGS_ASSIGN(const std::uint64_t values, number_argument(call, "values"));
    FLUGS_ASSIGN(const std::optional<std::string> columns, text_argument(call, "columns"));
    ColumnReader reader(columns ? std::string_view(*columns) : "NULL");
    while (!reader.is_at_end()) {
      FLUGS_ASSIGN(const ScanColumn column, reader.next());
      FLUGS_ASSIGN(const OwnedType type, make_type_of(factory, column));
      const duckdb_v2_identifier_t name = str_of(column.name);
      FLUGS_TRY(ask(duckdb_v2_table_function_bind_add_result_column, info, &name, type.get()));
    }
    return ask(duckdb_v2_table_function_bind_set_cardinality, info, idx_t{values}, false);
  });
}

void end_domain(duckdb_v2_table_function_exec_info_handle info,
                duckdb_v2_context_handle /*context*/, duckdb_v2_error_info_handle* err) {
  guarded(err, [&]() -> Status {
    duckdb_v2_data_chunk_handle chunk = nullptr;
    FLUGS_TRY(ask(duckdb_v2_table_function_exec_get_output_chunk, info, &chunk));
    duckdb_v2_vector_handle vector = nullptr;
    FLUGS_TRY(ask(duckdb_v2_data_chunk_get_vector, chunk, idx_t{0}, &vector));
    return ask(duckdb_v2_vector_set_size, vector, idx_t{0});
  });
}

Status register_domain(duckdb_v2_extension_handle extension, duckdb_v2_factory_handle factory,
                       const SharedInstance& instance) {
  FLUGS_ASSIGN(const OwnedFunction made, make_function(factory, "flugs_domain", instance));
  duckdb_v2_function_signature_handle signature = nullptr;
  FLUGS_TRY(ask(duckdb_v2_table_function_get_signature, made.get(), &signature));
  FLUGS_TRY(add_parameter(factory, signature, "values", "UBIGINT",
                          DUCKDB_V2_FUNCTION_PARAMETER_KIND_NAMED_ONLY, true));
  FLUGS_TRY(add_parameter(factory, signature, "columns", "VARCHAR",
                          DUCKDB_V2_FUNCTION_PARAMETER_KIND_NAMED_ONLY, true));
  FLUGS_TRY(ask(duckdb_v2_table_function_set_bind_callback, made.get(), &bind_domain));
  FLUGS_TRY(ask(duckdb_v2_table_function_set_exec_callback, made.get(), &end_domain));
  FLUGS_TRY(ask(duckdb_v2_table_function_set_projection_pushdown, made.get(), true));
  return ask(duckdb_v2_extension_register_table_function, extension, made.get());
}

}  // namespace

Status register_scan_text(duckdb_v2_extension_handle extension, duckdb_v2_factory_handle factory,
                          const SharedInstance& instance) {
  FLUGS_TRY(register_domain(extension, factory, instance));
  Owned<duckdb_v2_scalar_function_handle, DestroyScalar> made;
  FLUGS_TRY(ask(duckdb_v2_scalar_function_create, factory, made.out()));
  const duckdb_v2_identifier_t called = str_of("flugs_scan_text");
  FLUGS_TRY(ask(duckdb_v2_scalar_function_set_name, made.get(), &called));
  duckdb_v2_opaque share = share_of(instance);
  FLUGS_TRY(ask(duckdb_v2_scalar_function_set_user_data, made.get(), &share));
  duckdb_v2_function_signature_handle signature = nullptr;
  FLUGS_TRY(ask(duckdb_v2_scalar_function_get_signature, made.get(), &signature));
  constexpr std::pair<std::string_view, std::string_view> kParameters[] = {
      {"pool", "VARCHAR"},
      {"table", "VARCHAR"},
      {"read_only", "BOOLEAN"},
      {"statement", "UBIGINT"}};
  for (const auto& [name, type] : kParameters)
    FLUGS_TRY(add_parameter(factory, signature, name, type,
                            DUCKDB_V2_FUNCTION_PARAMETER_KIND_STANDARD, false));
  FLUGS_ASSIGN(const OwnedType text, make_type(factory, "VARCHAR"));
  FLUGS_TRY(ask(duckdb_v2_function_signature_set_return_type, signature, text.get()));
  FLUGS_TRY(ask(
      duckdb_v2_scalar_function_set_property, made.get(), DUCKDB_V2_FUNCTION_PROPERTY_NULL_HANDLING,
      DUCKDB_V2_FUNCTION_PROPERTY_VALUE{DUCKDB_V2_FUNCTION_PROPERTY_NULL_HANDLING_SPECIAL}));
  FLUGS_TRY(ask(duckdb_v2_scalar_function_set_property, made.get(),
                DUCKDB_V2_FUNCTION_PROPERTY_STABILITY,
                DUCKDB_V2_FUNCTION_PROPERTY_VALUE{
                    DUCKDB_V2_FUNCTION_PROPERTY_STABILITY_CONSISTENT_WITHIN_QUERY}));
  FLUGS_TRY(ask(duckdb_v2_scalar_function_set_exec_callback, made.get(), &write_texts));
  return ask(duckdb_v2_extension_register_scalar_function, extension, made.get());
}

}  // namespace flugs::duckdb
