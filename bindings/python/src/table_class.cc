#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <string>
#include <utility>

#include "bindings/python/src/classes.h"
#include "bindings/python/src/errors.h"
#include "bindings/python/src/results.h"
#include "bindings/python/src/writes.h"

namespace flugs::python {

namespace {

using nb::literals::operator""_a;

/// Reads the table in a transaction of its own.
template <typename Call>
auto read(const PyTable& self, Call&& call) {
  Session& session = *self.session;
  const Session::Use use(session);
  const TableInfo& table = session.table(self.name);
  const Transaction transaction = take(session.database().begin(AccessMode::kReadOnly));
  return call(transaction, table);
}

/// Writes to it in a transaction of its own, and commits that.
template <typename Call>
auto write(const PyTable& self, std::uint64_t rows, Call&& call) {
  Session& session = *self.session;
  const Session::Use use(session);
  const TableInfo& table = session.table(self.name);
  Transaction transaction = take(session.database().begin());
  auto result = call(transaction, table);
  check(commit(transaction, rows, session), {.table = &table});
  return result;
}

PyQuery query_of(const PyTable& self) {
  const Session::Use use(*self.session);
  return make_query(self.session, nullptr, nb::str(self.name.c_str()));
}

std::int64_t count_rows(const PyTable& self) {
  PyQuery counting = query_of(self);
  counting.query = counting.query.group_by({}, {query::count()});
  const nb::list rows = fetch(*run(counting, {}), 1);
  return nb::cast<std::int64_t>(rows[0][0]);
}

nb::dict schema_of(const PyTable& self) {
  const Session::Use use(*self.session);
  nb::dict columns;
  for (const ColumnSchema& column : self.session->table(self.name).schema.columns)
    if (!column.dropped) columns[column.name.c_str()] = describe(column);
  return columns;
}

nb::dict keys_of(const PyTable& self) {
  const Session::Use use(*self.session);
  nb::dict keys;
  for (const KeySchema& key : self.session->table(self.name).schema.keys) {
    if (key.dropped) continue;
    nb::list columns;
    for (const std::string& column : key.columns) columns.append(nb::str(column.c_str()));
    keys[key.name.c_str()] = nb::tuple(columns);
  }
  return keys;
}

nb::object layout_of(const PyTable& self) {
  const Session::Use use(*self.session);
  const TableSchema& schema = self.session->table(self.name).schema;
  if (schema.column_groups.empty()) return nb::str(to_string(schema.delta_layout).data());
  nb::list groups;
  for (const std::vector<std::string>& group : schema.column_groups) {
    nb::list columns;
    for (const std::string& column : group) columns.append(nb::str(column.c_str()));
    groups.append(columns);
  }
  return groups;
}

void bind_reads(nb::class_<PyTable>& table) {
  table
      .def(
          "get",
          [](const PyTable& self, nb::handle values, nb::handle key) {
            return read(self, [&](const Transaction& t, const TableInfo& info) {
              return find(t, info, values, key, false);
            });
          },
          "values"_a.none(), "key"_a = nb::none(),
          nb::sig("def get(self, values: Any, key: str | None = None) -> dict[str, Any] | None"),
          "The row whose unique key has these values, or None.")
      .def(
          "find",
          [](const PyTable& self, nb::handle values, nb::handle key) {
            return read(self, [&](const Transaction& t, const TableInfo& info) {
              return find(t, info, values, key, true);
            });
          },
          "values"_a.none(), "key"_a = nb::none(),
          nb::sig("def find(self, values: Any, key: str | None = None) -> dict[str, Any]"),
          "As get; raises NotFound if there is no such row.")
      .def(
          "get_many",
          [](const PyTable& self, nb::handle keys, nb::handle key) {
            return read(self, [&](const Transaction& t, const TableInfo& info) {
              return find_many(t, info, keys, key, *self.session, nullptr);
            });
          },
          "keys"_a, "key"_a = nb::none(),
          nb::sig("def get_many(self, keys: Iterable[Any], key: str | None = None)"
                  " -> list[dict[str, Any] | None]"),
          "For each of the keys what get gives: see Transaction.get_many.")
      .def(
          "rows",
          [](const PyTable& self, nb::handle key, nb::handle prefix, nb::handle lower,
             nb::handle upper, bool reverse, nb::object limit) {
            return make_rows(Work::begin(self.session, AccessMode::kReadOnly),
                             nb::str(self.name.c_str()),
                             {key, prefix, lower, upper, reverse, std::move(limit)});
          },
          "key"_a = nb::none(), nb::kw_only(), "prefix"_a = nb::none(), "lower"_a = nb::none(),
          "upper"_a = nb::none(), "reverse"_a = false, "limit"_a = nb::none(),
          nb::sig("def rows(self, key: str | None = None, *, prefix: Any = None, lower: Any = None,"
                  " upper: Any = None, reverse: bool = False, limit: int | None = None) -> Rows"),
          "Rows as dicts; see Transaction.rows.")
      .def("query", &query_of, "All rows of the table.")
      .def("__len__", &count_rows)
      .def(
          "__arrow_c_stream__",
          [](const PyTable& self, nb::handle) { return arrow_capsule(run(query_of(self), {})); },
          "requested_schema"_a = nb::none(),
          nb::sig("def __arrow_c_stream__(self, requested_schema: object | None = None) -> object"),
          "All rows, for any library that reads Arrow.");
}

void bind_table_writes(nb::class_<PyTable>& table) {
  table
      .def(
          "insert",
          [](const PyTable& self, nb::handle row) {
            return write(self, 1, [&](Transaction& t, const TableInfo& info) {
              return insert(t, info, row);
            });
          },
          "row"_a, nb::sig("def insert(self, row: Row) -> int | None"),
          "Adds a row, and commits. Returns its number, if the table gives numbers.")
      .def(
          "insert_rows",
          [](const PyTable& self, nb::handle rows) {
            return write(self, 1000, [&](Transaction& t, const TableInfo& info) {
              const Session& session = *self.session;
              return is_arrow(rows) ? insert_arrow(t, info, rows, session)
                                    : insert_rows(t, info, rows, session);
            });
          },
          "rows"_a, nb::sig("def insert_rows(self, rows: Iterable[Row] | Arrow) -> int"),
          "Adds all rows or, if one fails, none, and commits: see Transaction.insert_rows.")
      .def(
          "update",
          [](const PyTable& self, nb::handle values, nb::handle changes, nb::handle key) {
            write(self, 2, [&](Transaction& t, const TableInfo& info) {
              update(t, info, values, changes, key);
              return true;
            });
          },
          "values"_a.none(), "changes"_a, "key"_a = nb::none(),
          nb::sig("def update(self, values: Any, changes: Mapping[str, Any],"
                  " key: str | None = None) -> None"),
          "Changes the row with these values of a unique key, and commits.")
      .def(
          "delete",
          [](const PyTable& self, nb::handle values, nb::handle key) {
            write(self, 1, [&](Transaction& t, const TableInfo& info) {
              remove(t, info, values, key);
              return true;
            });
          },
          "values"_a.none(), "key"_a = nb::none(),
          nb::sig("def delete(self, values: Any, key: str | None = None) -> None"),
          "Deletes the row with these values of a unique key, and commits.")
      .def(
          "upsert",
          [](const PyTable& self, nb::handle row, nb::handle changes, nb::handle key) {
            return write(self, 2, [&](Transaction& t, const TableInfo& info) {
              return upsert(t, info, row, changes, key);
            });
          },
          "row"_a, "changes"_a = nb::none(), "key"_a = nb::none(),
          nb::sig("def upsert(self, row: Row, changes: Mapping[str, Any] | None = None,"
                  " key: str | None = None) -> bool"),
          "Inserts the row or changes the one that is there, and commits. Whether it inserted.");
}

void bind_other_writes(nb::class_<PyTable>& table) {
  table
      .def(
          "add",
          [](const PyTable& self, nb::handle values, nb::handle column, nb::handle amount,
             nb::handle key) {
            return write(self, 2, [&](Transaction& t, const TableInfo& info) {
              return add(t, info, values, column, amount, key);
            });
          },
          "values"_a.none(), "column"_a, "amount"_a, "key"_a = nb::none(),
          nb::sig("def add(self, values: Any, column: str, amount: Any, key: str | None = None)"
                  " -> Any"),
          "Adds to an integer or decimal column, and commits. Returns the sum, which is durable "
          "then. Any thread may call it. Raises NotFound, Overflow, Conflict, and what a commit "
          "raises.")
      .def(
          "update_where",
          [](const PyTable& self, nb::handle where, nb::handle changes) {
            return write(self, 1000, [&](Transaction& t, const TableInfo& info) {
              return update_where(t, info, where, changes, *self.session);
            });
          },
          "where"_a, "changes"_a,
          nb::sig("def update_where(self, where: Expr, changes: Mapping[str, Any]) -> int"),
          "Changes every row for which the condition is true or, if one fails, none, and commits: "
          "see Transaction.update_where. Returns the number of rows, whose changes are durable "
          "then. Any thread may call it; others run meanwhile. Raises Conflict, "
          "ConstraintViolated, AlreadyExists, Overflow, and what a commit raises.")
      .def(
          "delete_where",
          [](const PyTable& self, nb::handle where) {
            return write(self, 1000, [&](Transaction& t, const TableInfo& info) {
              return remove_where(t, info, where, *self.session);
            });
          },
          "where"_a, nb::sig("def delete_where(self, where: Expr) -> int"),
          "Deletes every row for which the condition is true or, if one fails, none, and commits. "
          "Returns their number; they are durably gone then. Any thread may call it; others run "
          "meanwhile. Raises Conflict, ConstraintViolated, and what a commit raises.");
}

}  // namespace

void bind_table(nb::module_& module) {
  nb::class_<PyTable> table(module, "Table", "A table. Each call has a transaction of its own.");
  table.def_prop_ro("name", [](const PyTable& self) { return self.name; })
      .def_prop_ro("schema", &schema_of, nb::sig("def schema(self) -> dict[str, Column]"),
                   "The columns by name.")
      .def_prop_ro(
          "columns", [](const PyTable& self) { return nb::list(schema_of(self)); },
          nb::sig("def columns(self) -> list[str]"), "The names of the columns.")
      .def_prop_ro("keys", &keys_of, nb::sig("def keys(self) -> dict[str, tuple[str, ...]]"),
                   "The names of the keys, and their columns.")
      .def_prop_ro("layout", &layout_of, nb::sig("def layout(self) -> str | list[list[str]]"),
                   "Where rows lie that are not merged yet: 'rows' or 'columns'.")
      .def("__repr__", [](const PyTable& self) { return "<flugs.Table " + self.name + ">"; });
  bind_reads(table);
  bind_table_writes(table);
  bind_other_writes(table);
  bind_conversions(table);
  table.def(
      "lazy",
      [](nb::handle self) {
        return nb::object(nb::module_::import_("flugs._conversions").attr("lazy")(self));
      },
      nb::sig("def lazy(self) -> polars.LazyFrame"),
      "The table as a polars.LazyFrame, which DuckDB reads, too: columns and filters that it is "
      "asked for are left to flugs. Each collect has a transaction of its own.");
}

}  // namespace flugs::python
