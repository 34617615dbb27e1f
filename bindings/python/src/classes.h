#pragma once

#include <memory>

#include "bindings/python/src/interpreter.h"
#include "bindings/python/src/session.h"
#include "bindings/python/src/work.h"
#include "flugs/query.h"

namespace flugs::python {

// What the objects of Python hold. Those of a session or transaction share it.

struct PyDatabase {
  std::shared_ptr<Session> session;
};

struct PyTable {
  std::shared_ptr<Session> session;
  std::string name;
};

struct PyTransaction {
  std::shared_ptr<Work> work;
};

struct PyQuery {
  std::shared_ptr<Session> session;
  std::shared_ptr<Work> work;  ///< null: each run has a transaction of its own
  query::Query query;
};

/// How Python writes a range of an ordered key.
struct RowsArguments {
  nb::handle key;
  nb::handle prefix;
  nb::handle lower;
  nb::handle upper;
  bool reverse = false;
  nb::object limit;
};

/// An iterator of dicts. Without a key it reads the table in no order.
nb::object make_rows(const std::shared_ptr<Work>& work, nb::handle table,
                     const RowsArguments& arguments);
PyTransaction begin(const std::shared_ptr<Session>& session, bool read_only,
                    std::string_view isolation);
PyQuery make_query(const std::shared_ptr<Session>& session, const std::shared_ptr<Work>& work,
                   nb::handle table);
nb::list table_names(Session& session);
/// Raises ValueError.
/// 'rows', 'columns', or a list of groups of columns, for a schema.
void set_layout(TableSchema& schema, nb::handle layout);
/// A TableSchema of what create_table of Python takes.
TableSchema make_schema(std::string_view name, nb::handle columns, nb::handle options);
ColumnSchema make_column(std::string_view name, nb::handle column);
KeySchema make_key(std::string_view name, nb::handle key, bool unique);
/// A column as Python describes it.
nb::object describe(const ColumnSchema& column);

/// An expression: an Expr stays one, any other value becomes a constant.
query::Expr to_expr(nb::handle object);
/// An item of a list of outputs: a str is the name of a column.
query::Expr to_item(nb::handle object);

/// What a class of rows becomes in other libraries: flugs/_conversions.py.
template <typename Class>
void bind_conversions(Class& rows) {
  const auto bind = [&rows](const char* name, const char* signature, const char* about) {
    rows.def(
        name,
        [name](nb::handle self) {
          return nb::object(nb::module_::import_("flugs._conversions").attr(name)(self));
        },
        nb::sig(signature), about);
  };
  bind("to_arrow", "def to_arrow(self) -> pyarrow.Table", "All rows as a pyarrow.Table.");
  bind("to_polars", "def to_polars(self) -> polars.DataFrame", "All rows as a polars.DataFrame.");
  bind("to_pandas", "def to_pandas(self) -> pandas.DataFrame",
       "All rows as a pandas.DataFrame, by way of pyarrow.");
}

/// The same for DuckDB, which shows tables as views.
template <typename Class>
void bind_to_duckdb(Class& owner, const char* about) {
  owner.def(
      "to_duckdb",
      [](nb::handle self, nb::handle con, nb::handle name) {
        return nb::object(
            nb::module_::import_("flugs._conversions").attr("to_duckdb")(self, con, name));
      },
      nb::arg("con") = nb::none(), nb::kw_only(), nb::arg("name") = nb::none(),
      nb::sig("def to_duckdb(self, con: duckdb.DuckDBPyConnection | None = None, *,"
              " name: str | None = None) -> duckdb.DuckDBPyConnection"),
      about);
}

void bind_expressions(nb::module_& module);
void bind_queries(nb::module_& module);
void bind_results(nb::module_& module);
void bind_rows(nb::module_& module);
void bind_transaction(nb::module_& module);
void bind_table(nb::module_& module);
void bind_database(nb::module_& module);
#ifdef FLUGS_DUCKDB
void bind_duckdb(nb::module_& module);
#endif

}  // namespace flugs::python
