#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include "bindings/fields/statistics_fields.h"
#include "bindings/python/src/classes.h"
#include "bindings/python/src/errors.h"

namespace flugs::python {

namespace {

using nb::literals::operator""_a;

/// A file's name as the system has it.
std::string path_of(nb::handle path) {
  PyObject* bytes = nullptr;
  if (PyUnicode_FSConverter(path.ptr(), &bytes) == 0) throw nb::python_error();
  const nb::object owned = nb::steal(bytes);
  return {PyBytes_AS_STRING(bytes), static_cast<std::size_t>(PyBytes_GET_SIZE(bytes))};
}

/// The other way round.
nb::object file_name(const std::string& path) {
  const auto size = static_cast<Py_ssize_t>(path.size());
  nb::object name = nb::steal(PyUnicode_DecodeFSDefaultAndSize(path.data(), size));
  if (!name.is_valid()) throw nb::python_error();
  return name;
}

OpenMode mode_of(bool create, bool exclusive, bool read_only) {
  if (read_only) return OpenMode::kReadOnly;
  if (!create) return OpenMode::kOpen;
  return exclusive ? OpenMode::kCreate : OpenMode::kOpenOrCreate;
}

PyDatabase open(nb::handle path, bool create, bool exclusive, bool read_only,
                std::uint64_t max_bytes, std::optional<std::uint64_t> segment_bytes,
                std::uint32_t slots_max, bool wait, bool crash_ring, bool accept_lost_lines,
                bool automatic_merges) {
  OpenOptions options;
  options.path = path_of(path);
  if (options.path == ":memory:") {
    options.in_memory = true;
    options.path.clear();
  }
  options.mode = mode_of(create, exclusive, read_only);
  options.max_bytes = max_bytes;
  if (segment_bytes.has_value()) options.segment_bytes = *segment_bytes;
  options.slots_max = slots_max;
  options.ready = wait ? Ready::kIndexesBuilt : Ready::kFirstAnswer;
  options.crash_ring = crash_ring;
  options.accept_lost_lines = accept_lost_lines;
  options.merge_policy.automatic = automatic_merges;
  Database database;
  check(run_long([&](const std::stop_token& stop) {
    options.stop = stop;
    Result<Database> opened = Database::open(options);
    if (!opened.ok()) return opened.status();
    database = *std::move(opened);
    return Status();
  }));
  return {Session::make(std::move(database))};
}

/// Forgets what is known of tables when it is destroyed: Ctrl-C may come after a change.
class ForgetTables {
 public:
  explicit ForgetTables(Session& session) noexcept : session_(session) {}
  ~ForgetTables() { session_.forget_tables(); }
  ForgetTables(const ForgetTables&) = delete;
  ForgetTables& operator=(const ForgetTables&) = delete;

 private:
  Session& session_;
};

/// A call that changes schemas, or takes long.
template <typename Call>
void change(const PyDatabase& self, Call&& call) {
  Session& session = *self.session;
  const Session::Use use(session);
  const ForgetTables forgets(session);
  check(run_long([&](const std::stop_token& stop) { return call(session.database(), stop); },
                 session.closing()));
}

PyTable create_table(const PyDatabase& self, const std::string& name, nb::handle columns,
                     bool if_not_exists, const nb::kwargs& options) {
  for (const auto& [option, value] : options) {
    const std::string_view text = text_of(option);
    if (text != "primary_key" && text != "unique" && text != "keys" && text != "checks" &&
        text != "foreign_keys" && text != "layout")
      throw nb::type_error(("create_table has no argument " + std::string(text)).c_str());
  }
  const TableSchema schema = make_schema(name, columns, options);
  change(self, [&](Database& database, const std::stop_token&) {
    if (if_not_exists) return database.ensure_table(schema).status();
    return database.create_table(schema).status();
  });
  return {self.session, name};
}

PyTable table(const PyDatabase& self, nb::handle name) {
  const Session::Use use(*self.session);
  return {self.session, self.session->table(name).name};
}

/// Runs `work` in a transaction, and again in another one, until one commits.
nb::object run_again(const PyDatabase& self, nb::handle work, bool read_only,
                     std::string_view isolation, double time_limit) {
  static thread_local std::minstd_rand random{std::random_device{}()};
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(time_limit);
  for (unsigned attempt = 0;; ++attempt) {
    std::optional<PyTransaction> transaction;
    try {
      transaction.emplace(begin(self.session, read_only, isolation));
      nb::object result = work(*transaction);
      if (transaction->work->state() == Work::State::kOpen) {
        const Work::Turn turn(*transaction->work);
        transaction->work->commit();
      }
      return result;
    } catch (nb::python_error& error) {
      if (transaction.has_value()) transaction->work->abort();
      const StatusCode code = code_of(error);
      const bool again = code == StatusCode::kConflict || code == StatusCode::kBusy ||
                         code == StatusCode::kTooManyTransactions;
      if (!again || std::chrono::steady_clock::now() >= end) throw;
    }
    const unsigned longest = std::min(10'000u, 50u << std::min(attempt, 8u));  // microseconds
    const std::chrono::microseconds pause(random() % longest);
    {
      const Detached detached;
      std::this_thread::sleep_for(pause);
    }
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

nb::object object_of(std::string_view text) { return nb::str(text.data(), text.size()); }
template <typename Number>
nb::object object_of(Number number) {
  return nb::cast(number);
}

/// The fields of a struct of figures, by name.
template <typename Struct>
nb::dict dict_of(const Struct& figures) {
  nb::dict result;
  fields::each_field(figures,
                     [&](const char* name, auto value) { result[name] = object_of(value); });
  return result;
}

nb::dict merge(const PyDatabase& self, nb::handle name, bool everything, double patience) {
  const auto id = [&] {
    const Session::Use use(*self.session);
    return self.session->table(name).id;
  }();
  MergeOptions options;
  options.scope = everything ? MergeScope::kEverything : MergeScope::kFullChunks;
  options.patience = milliseconds_of(patience);
  MergeReport report;
  change(self, [&](Database& database, const std::stop_token& stop) {
    options.stop = stop;
    const Result<MergeReport> merged = database.merge(id, options);
    if (merged.ok()) report = *merged;
    return merged.status();
  });
  return dict_of(report);
}

nb::dict statistics(const PyDatabase& self) {
  const Session::Use use(*self.session);
  return dict_of(self.session->database().statistics());
}

/// The id of a column for a call that changes the schema.
ColumnId column_of(const PyDatabase& self, nb::handle table, nb::handle column, TableId& id) {
  const Session::Use use(*self.session);
  const TableInfo& info = self.session->table(table);
  id = info.id;
  return info.column(column).id;
}

TableId table_id(const PyDatabase& self, nb::handle table) {
  const Session::Use use(*self.session);
  return self.session->table(table).id;
}

void bind_schema_changes(nb::class_<PyDatabase>& database) {
  database
      .def("create_table", &create_table, "name"_a, "columns"_a, nb::kw_only(),
           "if_not_exists"_a = false, "options"_a,
           nb::sig("def create_table(self, name: str, columns: Mapping[str, Column], *,"
                   " if_not_exists: bool = False,"
                   " primary_key: str | Iterable[str] | Key | None = None,"
                   " unique: Mapping[str, str | Iterable[str] | Key] | None = None,"
                   " keys: Mapping[str, str | Iterable[str] | Key] | None = None,"
                   " checks: Mapping[str, Expr] | None = None,"
                   " foreign_keys: Mapping[str, ForeignKey] | None = None,"
                   " layout: str | Iterable[Iterable[str]] = 'rows') -> Table"),
           "Creates a table. With `if_not_exists` a table that is there must have these columns "
           "and keys. With `layout` 'columns', rows that are not merged yet have their columns "
           "apart, which queries of few columns read faster. With `layout` [['a', 'b'], ['c', "
           "'d']] the columns of each group lie side by side, and all others apart.")
      .def(
          "drop_table",
          [](const PyDatabase& self, nb::handle name) {
            const TableId id = table_id(self, name);
            change(self, [&](Database& db, const std::stop_token&) { return db.drop_table(id); });
          },
          "table"_a, nb::sig("def drop_table(self, table: str | Table) -> None"))
      .def(
          "rename_table",
          [](const PyDatabase& self, nb::handle name, const std::string& to) {
            const TableId id = table_id(self, name);
            change(self,
                   [&](Database& db, const std::stop_token&) { return db.rename_table(id, to); });
          },
          "table"_a, "name"_a,
          nb::sig("def rename_table(self, table: str | Table, name: str) -> None"))
      .def(
          "set_layout",
          [](const PyDatabase& self, nb::handle name, nb::handle layout) {
            const TableId id = table_id(self, name);
            TableSchema wanted;
            set_layout(wanted, layout);
            change(self, [&](Database& db, const std::stop_token&) {
              return db.set_delta_layout(id, wanted.delta_layout, wanted.column_groups);
            });
          },
          "table"_a, "layout"_a,
          nb::sig("def set_layout(self, table: str | Table, "
                  "layout: str | Iterable[Iterable[str]]) -> None"),
          "Sets the layout of chunks that are begun from then on: see create_table.");
}

void bind_column_changes(nb::class_<PyDatabase>& database) {
  database
      .def(
          "add_column",
          [](const PyDatabase& self, nb::handle table, const std::string& name, nb::handle column) {
            const TableId id = table_id(self, table);
            const ColumnSchema schema = make_column(name, column);
            change(self, [&](Database& db, const std::stop_token&) {
              return db.add_column(id, schema).status();
            });
          },
          "table"_a, "name"_a, "column"_a,
          nb::sig("def add_column(self, table: str | Table, name: str, column: Column) -> None"),
          "Existing rows have the default of the column, or None.")
      .def(
          "drop_column",
          [](const PyDatabase& self, nb::handle table, nb::handle column) {
            TableId id;
            const ColumnId dropped = column_of(self, table, column, id);
            change(self, [&](Database& db, const std::stop_token&) {
              return db.drop_column(id, dropped);
            });
          },
          "table"_a, "column"_a,
          nb::sig("def drop_column(self, table: str | Table, column: str) -> None"))
      .def(
          "rename_column",
          [](const PyDatabase& self, nb::handle table, nb::handle column, const std::string& to) {
            TableId id;
            const ColumnId renamed = column_of(self, table, column, id);
            change(self, [&](Database& db, const std::stop_token&) {
              return db.rename_column(id, renamed, to);
            });
          },
          "table"_a, "column"_a, "name"_a,
          nb::sig("def rename_column(self, table: str | Table, column: str, name: str) -> None"));
}

void bind_key_changes(nb::class_<PyDatabase>& database) {
  database
      .def(
          "add_key",
          [](const PyDatabase& self, nb::handle table, const std::string& name, nb::handle columns,
             bool unique) {
            const TableId id = table_id(self, table);
            const KeySchema key = make_key(name, columns, unique);
            change(self, [&](Database& db, const std::stop_token& stop) {
              return db.add_key(id, key, {.stop = stop}).status();
            });
          },
          "table"_a, "name"_a, "columns"_a, "unique"_a = false,
          nb::sig("def add_key(self, table: str | Table, name: str,"
                  " columns: str | Iterable[str] | Key, unique: bool = False) -> None"))
      .def(
          "drop_key",
          [](const PyDatabase& self, nb::handle table, nb::handle name) {
            const KeyId key = [&] {
              const Session::Use use(*self.session);
              return self.session->table(table).key(name).id;
            }();
            change(self, [&](Database& db, const std::stop_token&) { return db.drop_key(key); });
          },
          "table"_a, "name"_a,
          nb::sig("def drop_key(self, table: str | Table, name: str) -> None"));
}

void bind_work(nb::class_<PyDatabase>& database) {
  database
      .def(
          "begin",
          [](const PyDatabase& self, bool read_only, std::string_view isolation) {
            return begin(self.session, read_only, isolation);
          },
          nb::kw_only(), "read_only"_a = false, "isolation"_a = "snapshot",
          nb::sig("def begin(self, *, read_only: bool = False, isolation: str = 'snapshot')"
                  " -> Transaction"),
          "Begins a transaction: `with db.begin() as t:` commits at the end of the block.")
      .def("run", &run_again, "work"_a, nb::kw_only(), "read_only"_a = false,
           "isolation"_a = "snapshot", "time_limit"_a = 10.0,
           nb::sig("def run(self, work: Callable[[Transaction], T], *, read_only: bool = False,"
                   " isolation: str = 'snapshot', time_limit: float = 10.0) -> T"),
           "Calls `work` with a transaction, and commits; again after a conflict.")
      .def(
          "query",
          [](const PyDatabase& self, nb::handle name) {
            const Session::Use use(*self.session);
            return make_query(self.session, nullptr, name);
          },
          "table"_a, nb::sig("def query(self, table: str | Table) -> Query"),
          "All rows of a table.")
      .def("merge", &merge, "table"_a, nb::kw_only(), "everything"_a = true, "patience"_a = 1.0,
           nb::sig("def merge(self, table: str | Table, *, everything: bool = True,"
                   " patience: float = 1.0) -> dict[str, int]"),
           "Moves the rows of a table into the packed columns of main.")
      .def("statistics", &statistics, nb::sig("def statistics(self) -> dict[str, Any]"));
}

void bind_ends(nb::class_<PyDatabase>& database) {
  database
      .def(
          "check",
          [](const PyDatabase& self) {
            change(self, [](Database& db, const std::stop_token& stop) {
              return db.check({.stop = stop});
            });
          },
          "Checks every table; no transaction may be open.")
      .def(
          "close", [](const PyDatabase& self) { self.session->close(); },
          "Ends all transactions and results, and closes the database. What came from it raises "
          "Closed from then on.")
      .def_prop_ro("is_open", [](const PyDatabase& self) { return self.session->is_open(); })
      .def_prop_ro(
          "path",
          [](const PyDatabase& self) {
            const Session::Use use(*self.session);
            return file_name(self.session->database().path());
          },
          nb::sig("def path(self) -> str"))
      .def(
          "__enter__", [](nb::object self) { return self; },
          nb::sig("def __enter__(self) -> Database"))
      .def(
          "__exit__",
          [](const PyDatabase& self, nb::handle, nb::handle, nb::handle) {
            self.session->close();
            return false;
          },
          nb::arg("type").none(), nb::arg("value").none(), nb::arg("traceback").none(),
          nb::sig("def __exit__(self, type: object, value: object, traceback: object) -> bool"));
}

}  // namespace

nb::list table_names(Session& session) {
  const Session::Use use(session);
  nb::list names;
  for (const TableId id : session.database().tables()) {
    const Result<TableSchema> schema = session.database().schema(id);
    if (schema.ok()) names.append(nb::str(schema->name.c_str()));
  }
  return names;
}

void bind_database(nb::module_& module) {
  nb::class_<PyDatabase> database(
      module, "Database",
      "An open database. As a context manager it is closed at the end of the block.");
  database.def("table", &table, "name"_a, nb::sig("def table(self, name: str) -> Table"))
      .def("__getitem__", &table, "name"_a, nb::sig("def __getitem__(self, name: str) -> Table"))
      .def(
          "__contains__",
          [](const PyDatabase& self, const std::string& name) {
            const Session::Use use(*self.session);
            return self.session->database().find_table(name).ok();
          },
          "name"_a)
      .def(
          "tables", [](const PyDatabase& self) { return table_names(*self.session); },
          nb::sig("def tables(self) -> list[str]"), "The names of all tables.");
  bind_to_duckdb(
      database,
      "Shows the tables to DuckDB, in a connection that it has or makes: a view for each, by its "
      "name alone, or in the catalogue `name`. Each query sees what is committed when it begins.");
  bind_work(database);
  bind_ends(database);
  bind_schema_changes(database);
  bind_column_changes(database);
  bind_key_changes(database);
  module.def(
      "open", &open, "path"_a, nb::kw_only(), "create"_a = true, "exclusive"_a = false,
      "read_only"_a = false, "max_bytes"_a = 0, "segment_bytes"_a = nb::none(), "slots_max"_a = 128,
      "wait"_a = false, "crash_ring"_a = false, "accept_lost_lines"_a = false,
      "automatic_merges"_a = true,
      nb::sig("def open(path: str | os.PathLike[str], *, create: bool = True,"
              " exclusive: bool = False, read_only: bool = False, max_bytes: int = 0,"
              " segment_bytes: int | None = None, slots_max: int = 128, wait: bool = False,"
              " crash_ring: bool = False, accept_lost_lines: bool = False, automatic_merges: bool "
              "= True) -> Database"),
      "Opens a pool, and creates it if it is not there; ':memory:' is a database in memory.");
}

}  // namespace flugs::python
