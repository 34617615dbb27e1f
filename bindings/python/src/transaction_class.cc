#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "bindings/python/src/classes.h"
#include "bindings/python/src/errors.h"
#include "bindings/python/src/writes.h"

namespace flugs::python {

namespace {

/// A savepoint as the context manager that Transaction.savepoint returns.
struct PySavepoint {
  std::shared_ptr<Work> work;
  Savepoint savepoint;
};

/// Calls `call` with the transaction and a table, in a Turn. Counts the rows that it writes.
template <typename Call>
auto on_table(const PyTransaction& self, nb::handle table, std::uint64_t writes, Call&& call) {
  Work& work = *self.work;
  const Work::Turn turn(work);
  work.wrote(writes);
  return call(work.transaction(), work.session().table(table));
}

/// Rows of Python, or of a library that gives them as Arrow.
std::uint64_t store_rows(Work& work, Transaction& t, const TableInfo& table, nb::handle rows) {
  if (!is_arrow(rows)) return insert_rows(t, table, rows, work.session());
  const Work::Busy busy(work);
  return insert_arrow(t, table, rows, work.session());
}

CommitOptions commit_options(std::string_view durability, double soon) {
  CommitOptions options;
  if (durability == "soon")
    options.durability = Durability::kSoon;
  else if (durability == "process_crash")
    options.durability = Durability::kProcessCrash;
  else if (durability != "on_return")
    throw nb::value_error("durability is 'on_return', 'soon' or 'process_crash'");
  options.soon = milliseconds_of(soon);
  return options;
}

void commit_work(const PyTransaction& self, std::string_view durability, double soon) {
  const CommitOptions options = commit_options(durability, soon);
  const Work::Turn turn(*self.work);
  self.work->commit(options);
}

bool leave_with(const PyTransaction& self, nb::handle type) {
  if (!type.is_none()) {
    self.work->abort();
    return false;
  }
  // It may have been ended within the block.
  const Work::State state = self.work->state();
  if (state == Work::State::kCommitted || state == Work::State::kAborted) return false;
  commit_work(self, "on_return", 0);
  return false;
}

void set_time_limit(const PyTransaction& self, double seconds) {
  const Work::Turn turn(*self.work);
  check(self.work->transaction().set_time_limit(milliseconds_of(seconds)));
}

std::string_view name_of(Work::State state) {
  switch (state) {
    case Work::State::kOpen:
      return "open";
    case Work::State::kCommitted:
      return "committed";
    case Work::State::kAborted:
      return "aborted";
    case Work::State::kClosed:
      return "closed";
  }
  return "";
}

void bind_savepoint(nb::module_& module, nb::class_<PyTransaction>& transaction) {
  nb::class_<PySavepoint>(module, "Savepoint",
                          "A moment within a transaction, to which it can go back. As a context "
                          "manager: an exception in the block undoes what the block wrote.")
      .def(
          "rollback",
          [](const PySavepoint& self) {
            const Work::Turn turn(*self.work);
            check(self.work->transaction().rollback_to(self.savepoint));
          },
          "Undoes all writes of the transaction since then. The savepoint stays.")
      .def(
          "release",
          [](const PySavepoint& self) {
            const Work::Turn turn(*self.work);
            check(self.work->transaction().release(self.savepoint));
          },
          "Forgets the savepoint, and keeps the writes.")
      .def(
          "__enter__", [](nb::object self) { return self; },
          nb::sig("def __enter__(self) -> Savepoint"))
      .def(
          "__exit__",
          [](const PySavepoint& self, nb::handle type, nb::handle, nb::handle) {
            if (self.work->state() != Work::State::kOpen) return false;
            const Work::Turn turn(*self.work);
            Transaction& t = self.work->transaction();
            if (!type.is_none()) check(t.rollback_to(self.savepoint));
            check(t.release(self.savepoint));
            return false;
          },
          nb::arg("type").none(), nb::arg("value").none(), nb::arg("traceback").none(),
          nb::sig("def __exit__(self, type: object, value: object, traceback: object) -> bool"));
  transaction.def(
      "savepoint",
      [](const PyTransaction& self) {
        const Work::Turn turn(*self.work);
        return PySavepoint{self.work, take(self.work->transaction().savepoint())};
      },
      "Names this moment.");
}

void bind_finds(nb::class_<PyTransaction>& transaction) {
  using nb::literals::operator""_a;
  transaction
      .def(
          "get",
          [](const PyTransaction& self, nb::handle table, nb::handle values, nb::handle key) {
            return on_table(self, table, 0, [&](Transaction& t, const TableInfo& info) {
              return find(t, info, values, key, false);
            });
          },
          "table"_a, "values"_a.none(), "key"_a = nb::none(),
          nb::sig("def get(self, table: str | Table, values: Any, key: str | None = None)"
                  " -> dict[str, Any] | None"),
          "The row whose unique key has these values, or None.")
      .def(
          "find",
          [](const PyTransaction& self, nb::handle table, nb::handle values, nb::handle key) {
            return on_table(self, table, 0, [&](Transaction& t, const TableInfo& info) {
              return find(t, info, values, key, true);
            });
          },
          "table"_a, "values"_a.none(), "key"_a = nb::none(),
          nb::sig("def find(self, table: str | Table, values: Any, key: str | None = None)"
                  " -> dict[str, Any]"),
          "As get; raises NotFound if there is no such row.")
      .def(
          "get_many",
          [](const PyTransaction& self, nb::handle table, nb::handle keys, nb::handle key) {
            return on_table(self, table, 0, [&](Transaction& t, const TableInfo& info) {
              return find_many(t, info, keys, key, self.work->session(), self.work.get());
            });
          },
          "table"_a, "keys"_a, "key"_a = nb::none(),
          nb::sig("def get_many(self, table: str | Table, keys: Iterable[Any],"
                  " key: str | None = None) -> list[dict[str, Any] | None]"),
          "For each of the keys what get gives. Quicker than many calls of get, and other threads "
          "run meanwhile.");
}

void bind_inserts(nb::class_<PyTransaction>& transaction) {
  using nb::literals::operator""_a;
  transaction
      .def(
          "insert",
          [](const PyTransaction& self, nb::handle table, nb::handle row) {
            return on_table(self, table, 1, [&](Transaction& t, const TableInfo& info) {
              return insert(t, info, row);
            });
          },
          "table"_a, "row"_a,
          nb::sig("def insert(self, table: str | Table, row: Row) -> int | None"),
          "Adds a row: a dict, or a tuple with a value for each column. Returns its number if the "
          "table has an auto-increment column.")
      .def(
          "insert_rows",
          [](const PyTransaction& self, nb::handle table, nb::handle rows) {
            return on_table(self, table, 0, [&](Transaction& t, const TableInfo& info) {
              const std::uint64_t count = store_rows(*self.work, t, info, rows);
              self.work->wrote(count);
              return count;
            });
          },
          "table"_a, "rows"_a,
          nb::sig("def insert_rows(self, table: str | Table, rows: Iterable[Row] | Arrow) -> int"),
          "Adds all rows or, if one fails, none: an iterable of rows, or anything that gives "
          "Arrow, "
          "such as a frame of polars, column by column. Returns their number.");
}

void bind_changes(nb::class_<PyTransaction>& transaction) {
  using nb::literals::operator""_a;
  transaction
      .def(
          "update",
          [](const PyTransaction& self, nb::handle table, nb::handle values, nb::handle changes,
             nb::handle key) {
            on_table(self, table, 2, [&](Transaction& t, const TableInfo& info) {
              update(t, info, values, changes, key);
            });
          },
          "table"_a, "values"_a.none(), "changes"_a, "key"_a = nb::none(),
          nb::sig("def update(self, table: str | Table, values: Any, changes: Mapping[str, Any],"
                  " key: str | None = None) -> None"),
          "Gives columns of the row with these values of a unique key new values.")
      .def(
          "delete",
          [](const PyTransaction& self, nb::handle table, nb::handle values, nb::handle key) {
            on_table(self, table, 1,
                     [&](Transaction& t, const TableInfo& info) { remove(t, info, values, key); });
          },
          "table"_a, "values"_a.none(), "key"_a = nb::none(),
          nb::sig("def delete(self, table: str | Table, values: Any, key: str | None = None)"
                  " -> None"),
          "Deletes the row with these values of a unique key.");
}

void bind_other_writes(nb::class_<PyTransaction>& transaction) {
  using nb::literals::operator""_a;
  transaction
      .def(
          "upsert",
          [](const PyTransaction& self, nb::handle table, nb::handle row, nb::handle changes,
             nb::handle key) {
            return on_table(self, table, 2, [&](Transaction& t, const TableInfo& info) {
              return upsert(t, info, row, changes, key);
            });
          },
          "table"_a, "row"_a, "changes"_a = nb::none(), "key"_a = nb::none(),
          nb::sig("def upsert(self, table: str | Table, row: Row,"
                  " changes: Mapping[str, Any] | None = None, key: str | None = None) -> bool"),
          "Inserts the row, or makes the changes to the one that has its key: without changes, the "
          "columns of the row that are given. Whether it inserted.")
      .def(
          "lock",
          [](const PyTransaction& self, nb::handle table, nb::handle values, nb::handle key,
             double wait) {
            return on_table(self, table, 0, [&](Transaction& t, const TableInfo& info) {
              const Work::Busy busy(*self.work);
              return lock_row(t, info, values, key, wait, self.work->session());
            });
          },
          "table"_a, "values"_a.none(), "key"_a = nb::none(), "wait"_a = 1.0,
          nb::sig("def lock(self, table: str | Table, values: Any, key: str | None = None,"
                  " wait: float = 1.0) -> dict[str, Any]"),
          "As find, and locks the row until the transaction ends. Waits `wait` seconds for it at "
          "most.")
      .def(
          "add",
          [](const PyTransaction& self, nb::handle table, nb::handle values, nb::handle column,
             nb::handle amount, nb::handle key) {
            return on_table(self, table, 2, [&](Transaction& t, const TableInfo& info) {
              return add(t, info, values, column, amount, key);
            });
          },
          "table"_a, "values"_a.none(), "column"_a, "amount"_a, "key"_a = nb::none(),
          nb::sig("def add(self, table: str | Table, values: Any, column: str, amount: Any,"
                  " key: str | None = None) -> Any"),
          "Adds to an integer or decimal column, and returns the sum.");
}

void bind_conditions(nb::class_<PyTransaction>& transaction) {
  using nb::literals::operator""_a;
  transaction
      .def(
          "update_where",
          [](const PyTransaction& self, nb::handle table, nb::handle where, nb::handle changes) {
            return on_table(self, table, 1000, [&](Transaction& t, const TableInfo& info) {
              const Work::Busy busy(*self.work);
              return update_where(t, info, where, changes, self.work->session());
            });
          },
          "table"_a, "where"_a, "changes"_a,
          nb::sig("def update_where(self, table: str | Table, where: Expr,"
                  " changes: Mapping[str, Any]) -> int"),
          "Changes every row for which the condition is true; values may be expressions of the "
          "row's columns. Returns the number of rows.")
      .def(
          "delete_where",
          [](const PyTransaction& self, nb::handle table, nb::handle where) {
            return on_table(self, table, 1000, [&](Transaction& t, const TableInfo& info) {
              const Work::Busy busy(*self.work);
              return remove_where(t, info, where, self.work->session());
            });
          },
          "table"_a, "where"_a,
          nb::sig("def delete_where(self, table: str | Table, where: Expr) -> int"),
          "Deletes every row for which the condition is true. Returns their number.");
}

void bind_reads(nb::class_<PyTransaction>& transaction) {
  using nb::literals::operator""_a;
  transaction
      .def(
          "query",
          [](const PyTransaction& self, nb::handle table) {
            const Work::Turn turn(*self.work);
            return make_query(self.work->shared_session(), self.work, table);
          },
          "table"_a, nb::sig("def query(self, table: str | Table) -> Query"),
          "All rows of a table, as this transaction sees it.")
      .def(
          "rows",
          [](const PyTransaction& self, nb::handle table, nb::handle key, nb::handle prefix,
             nb::handle lower, nb::handle upper, bool reverse, nb::object limit) {
            return make_rows(self.work, table,
                             {key, prefix, lower, upper, reverse, std::move(limit)});
          },
          "table"_a, "key"_a = nb::none(), nb::kw_only(), "prefix"_a = nb::none(),
          "lower"_a = nb::none(), "upper"_a = nb::none(), "reverse"_a = false,
          "limit"_a = nb::none(),
          nb::sig(
              "def rows(self, table: str | Table, key: str | None = None, *, prefix: Any = None,"
              " lower: Any = None, upper: Any = None, reverse: bool = False,"
              " limit: int | None = None) -> Rows"),
          "Rows as dicts: by a key, those whose key begins with `prefix`, or lies from `lower` on "
          "and before `upper`; without a key all rows, in no order.");
}

}  // namespace

void bind_transaction(nb::module_& module) {
  using nb::literals::operator""_a;
  nb::class_<PyTransaction> transaction(
      module, "Transaction",
      "A unit of work on one snapshot of the database. As a context manager it commits at the end "
      "of the block, and aborts when an exception leaves it.");
  transaction
      .def("commit", &commit_work, "durability"_a = "on_return", "soon"_a = 0.01,
           nb::sig("def commit(self, durability: str = 'on_return', soon: float = 0.01) -> None"),
           "Makes all writes durable, then visible. Ends the transaction, also when it fails.")
      .def(
          "abort", [](const PyTransaction& self) { self.work->abort(); },
          "Ends the transaction without effect, if it has not ended.")
      .def(
          "__enter__", [](nb::object self) { return self; },
          nb::sig("def __enter__(self) -> Transaction"))
      .def(
          "__exit__",
          [](const PyTransaction& self, nb::handle type, nb::handle, nb::handle) {
            return leave_with(self, type);
          },
          nb::arg("type").none(), nb::arg("value").none(), nb::arg("traceback").none(),
          nb::sig("def __exit__(self, type: object, value: object, traceback: object) -> bool"))
      .def("set_time_limit", &set_time_limit, "seconds"_a,
           "Cancels the transaction if it is still open then.")
      .def_prop_ro(
          "state", [](const PyTransaction& self) { return name_of(self.work->state()); },
          "'open', 'committed', 'aborted' or 'closed'.")
      .def_prop_ro(
          "snapshot",
          [](const PyTransaction& self) {
            const Work::Turn turn(*self.work);
            return self.work->transaction().snapshot();
          },
          "The time-stamp of the state that it reads.");
  bind_to_duckdb(
      transaction,
      "As Database.to_duckdb, but the views show what the transaction sees, its own writes "
      "included, until it ends.");
  bind_reads(transaction);
  bind_finds(transaction);
  bind_inserts(transaction);
  bind_changes(transaction);
  bind_other_writes(transaction);
  bind_conditions(transaction);
  bind_savepoint(module, transaction);
}

PyTransaction begin(const std::shared_ptr<Session>& session, bool read_only,
                    std::string_view isolation) {
  Isolation level = Isolation::kSnapshot;
  if (isolation == "serializable")
    level = Isolation::kSerializable;
  else if (isolation == "read_committed")
    level = Isolation::kReadCommitted;
  else if (isolation != "snapshot")
    throw nb::value_error("isolation is 'snapshot', 'serializable' or 'read_committed'");
  const AccessMode mode = read_only ? AccessMode::kReadOnly : AccessMode::kReadWrite;
  return {Work::begin(session, mode, level)};
}

}  // namespace flugs::python
