// flugs_tables and flugs_close: functions that say a few rows of a pool.

#include <functional>
#include <utility>
#include <vector>

#include "bindings/duckdb/arguments.h"
#include "bindings/duckdb/register.h"
#include "bindings/duckdb/scan.h"

namespace flugs::duckdb {

namespace {

struct TableRow {
  std::string name;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

/// DuckDB's bind data of flugs_tables.
struct TablesBind {
  SharedInstance instance;
  std::shared_ptr<Pool> pool;
};
/// And its global state: one thread writes all rows, a chunk at a time.
struct TablesRun {
  std::vector<TableRow> rows;
  std::size_t done = 0;
};

Status add_column(duckdb_v2_factory_handle factory, duckdb_v2_table_function_bind_info_handle info,
                  std::string_view name, std::string_view type) {
  FLUGS_ASSIGN(const OwnedType made, make_type(factory, type));
  const duckdb_v2_identifier_t called = str_of(name);
  return ask(duckdb_v2_table_function_bind_add_result_column, info, &called, made.get());
}

void bind_tables(duckdb_v2_function_bind_info_handle call,
                 duckdb_v2_table_function_bind_info_handle info, duckdb_v2_context_handle context,
                 duckdb_v2_error_info_handle* err) {
  guarded(err, [&]() -> Status {
    FLUGS_TRY(check_access(context));
    FLUGS_ASSIGN(const duckdb_v2_factory_handle factory, factory_of(context));
    FLUGS_ASSIGN(SharedInstance* const instance,
                 kept<SharedInstance>(duckdb_v2_function_bind_get_user_data, call));
    FLUGS_ASSIGN(const std::string path, pool_argument(call));
    FLUGS_ASSIGN(std::shared_ptr<Pool> pool, (*instance)->pool(path, OpenMode::kOpen));
    FLUGS_TRY(add_column(factory, info, "table", "VARCHAR"));
    FLUGS_TRY(add_column(factory, info, "rows", "BIGINT"));
    FLUGS_TRY(add_column(factory, info, "columns", "BIGINT"));
    duckdb_v2_opaque data = opaque_of(new TablesBind{*instance, std::move(pool)});
    return ask(duckdb_v2_function_bind_set_bind_data, call, &data);
  });
}

Result<std::vector<TableRow>> count_rows(Pool& pool) {
  std::vector<TableRow> rows;
  FLUGS_ASSIGN(const std::shared_ptr<Guest> guest, pool.begin(AccessMode::kReadOnly));
  FLUGS_TRY(guest->use([&](Database& database, Transaction& transaction) -> Status {
    for (const TableId id : database.tables()) {
      const Result<TableSchema> schema = database.schema(id);
      if (!schema.ok()) continue;  // dropped just now
      const query::Query counts = query::Query::table(schema->name).group_by({}, {query::count()});
      FLUGS_ASSIGN(const query::QueryResult result, counts.run(transaction, {.stop = pool.stop()}));
      FLUGS_ASSIGN(const std::int64_t count, result.get<std::int64_t>(0, 0));
      rows.push_back({schema->name, count, static_cast<std::int64_t>(columns_of(*schema).size())});
    }
    return {};
  }));
  return rows;
}

void begin_tables(duckdb_v2_table_function_init_global_info_handle info,
                  duckdb_v2_context_handle /*context*/, duckdb_v2_error_info_handle* err) {
  guarded(err, [&]() -> Status {
    FLUGS_ASSIGN(TablesBind* const bind,
                 kept<TablesBind>(duckdb_v2_table_function_init_global_get_bind_data, info));
    auto run = std::make_unique<TablesRun>();
    FLUGS_ASSIGN(run->rows, count_rows(*bind->pool));
    duckdb_v2_opaque data = opaque_of(run.release());
    return ask(duckdb_v2_table_function_init_global_set_global_state, info, &data);
  });
}

Result<duckdb_v2_vector_handle> column_of(duckdb_v2_data_chunk_handle chunk, idx_t column,
                                          std::size_t rows) {
  duckdb_v2_vector_handle vector = nullptr;
  FLUGS_TRY(ask(duckdb_v2_data_chunk_get_vector, chunk, column, &vector));
  FLUGS_TRY(ask(duckdb_v2_vector_set_size, vector, idx_t{rows}));
  return vector;
}

void write_tables(duckdb_v2_table_function_exec_info_handle info, duckdb_v2_context_handle context,
                  duckdb_v2_error_info_handle* err) {
  guarded(err, [&]() -> Status {
    FLUGS_ASSIGN(const duckdb_v2_factory_handle factory, factory_of(context));
    FLUGS_ASSIGN(TablesRun* const run,
                 kept<TablesRun>(duckdb_v2_table_function_exec_get_global_state, info));
    duckdb_v2_data_chunk_handle chunk = nullptr;
    FLUGS_TRY(ask(duckdb_v2_table_function_exec_get_output_chunk, info, &chunk));
    const std::size_t count = std::min<std::size_t>(run->rows.size() - run->done, 1024);
    FLUGS_ASSIGN(const duckdb_v2_vector_handle names, column_of(chunk, 0, count));
    for (std::size_t i = 0; i < count; ++i) {
      FLUGS_ASSIGN(const OwnedValue name, make_text(factory, run->rows[run->done + i].name));
      FLUGS_TRY(ask(duckdb_v2_vector_set_value, names, idx_t{i}, name.get()));
    }
    for (const idx_t column : {idx_t{1}, idx_t{2}}) {
      FLUGS_ASSIGN(const duckdb_v2_vector_handle numbers, column_of(chunk, column, count));
      void* data = nullptr;
      FLUGS_TRY(ask(duckdb_v2_vector_get_data_mutable, numbers, &data));
      for (std::size_t i = 0; i < count; ++i) {
        const TableRow& row = run->rows[run->done + i];
        static_cast<std::int64_t*>(data)[i] = column == 1 ? row.rows : row.columns;
      }
    }
    run->done += count;
    return {};
  });
}

/// DuckDB's bind data of flugs_close. The pool is closed when the statement runs, not when it is
/// planned.
struct CloseBind {
  SharedInstance instance;
  std::string path;
};

void bind_close(duckdb_v2_function_bind_info_handle call,
                duckdb_v2_table_function_bind_info_handle info, duckdb_v2_context_handle context,
                duckdb_v2_error_info_handle* err) {
  guarded(err, [&]() -> Status {
    FLUGS_ASSIGN(const duckdb_v2_factory_handle factory, factory_of(context));
    FLUGS_ASSIGN(SharedInstance* const instance,
                 kept<SharedInstance>(duckdb_v2_function_bind_get_user_data, call));
    FLUGS_ASSIGN(std::string path, pool_argument(call));
    FLUGS_TRY(add_column(factory, info, "closed", "BOOLEAN"));
    duckdb_v2_opaque data = opaque_of(new CloseBind{*instance, std::move(path)});
    return ask(duckdb_v2_function_bind_set_bind_data, call, &data);
  });
}

/// Global state of flugs_close.
struct CloseRun {
  bool was_open = false;
  bool is_told = false;
};

void begin_close(duckdb_v2_table_function_init_global_info_handle info,
                 duckdb_v2_context_handle /*context*/, duckdb_v2_error_info_handle* err) {
  guarded(err, [&]() -> Status {
    FLUGS_ASSIGN(CloseBind* const bind,
                 kept<CloseBind>(duckdb_v2_table_function_init_global_get_bind_data, info));
    duckdb_v2_opaque data = opaque_of(new CloseRun{bind->instance->forget(bind->path)});
    return ask(duckdb_v2_table_function_init_global_set_global_state, info, &data);
  });
}

void write_close(duckdb_v2_table_function_exec_info_handle info,
                 duckdb_v2_context_handle /*context*/, duckdb_v2_error_info_handle* err) {
  guarded(err, [&]() -> Status {
    FLUGS_ASSIGN(CloseRun* const run,
                 kept<CloseRun>(duckdb_v2_table_function_exec_get_global_state, info));
    duckdb_v2_data_chunk_handle chunk = nullptr;
    FLUGS_TRY(ask(duckdb_v2_table_function_exec_get_output_chunk, info, &chunk));
    FLUGS_ASSIGN(const duckdb_v2_vector_handle closed,
                 column_of(chunk, 0, std::exchange(run->is_told, true) ? 0 : 1));
    void* data = nullptr;
    FLUGS_TRY(ask(duckdb_v2_vector_get_data_mutable, closed, &data));
    *static_cast<bool*>(data) = run->was_open;
    return {};
  });
}

struct SmallFunction {
  std::string_view name;
  duckdb_v2_table_function_bind_callback_fn bind;
  duckdb_v2_table_function_init_global_callback_fn begin;
  duckdb_v2_table_function_exec_callback_fn write;
};

}  // namespace

Status register_tables(duckdb_v2_extension_handle extension, duckdb_v2_factory_handle factory,
                       const SharedInstance& instance) {
  constexpr SmallFunction kFunctions[] = {
      {"flugs_tables", &bind_tables, &begin_tables, &write_tables},
      {"flugs_close", &bind_close, &begin_close, &write_close},
  };
  for (const SmallFunction& of : kFunctions) {
    FLUGS_ASSIGN(const OwnedFunction made, make_function(factory, of.name, instance));
    duckdb_v2_function_signature_handle signature = nullptr;
    FLUGS_TRY(ask(duckdb_v2_table_function_get_signature, made.get(), &signature));
    FLUGS_TRY(add_parameter(factory, signature, "pool", "VARCHAR",
                            DUCKDB_V2_FUNCTION_PARAMETER_KIND_STANDARD, false));
    FLUGS_TRY(ask(duckdb_v2_table_function_set_bind_callback, made.get(), of.bind));
    FLUGS_TRY(ask(duckdb_v2_table_function_set_init_global_callback, made.get(), of.begin));
    FLUGS_TRY(ask(duckdb_v2_table_function_set_exec_callback, made.get(), of.write));
    FLUGS_TRY(ask(duckdb_v2_extension_register_table_function, extension, made.get()));
  }
  return {};
}

}  // namespace flugs::duckdb
