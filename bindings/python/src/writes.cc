// What a transaction reads and writes by keys, and what a table does in a transaction of its own.
#include "bindings/python/src/writes.h"

#include <algorithm>
#include <optional>

#include "bindings/python/src/errors.h"
#include "flugs/arrow_import.h"
#include "flugs/expression.h"

namespace flugs::python {

namespace {

// Rows that insert_rows takes at a time. They fit the cache, and signals are looked for in between.
constexpr std::size_t kRowsAtOnce = 1024;

std::vector<ColumnValue> changes_of(const TableInfo& table, nb::handle changes, Kept& kept) {
  std::vector<ColumnValue> result;
  if (!PyDict_Check(changes.ptr())) {
    PyErr_SetString(PyExc_TypeError, "changes are a dict of columns and their new values");
    throw nb::python_error();
  }
  for (const auto& [name, value] : nb::borrow<nb::dict>(changes)) {
    const nb::object held_name = nb::borrow(name);  // the dict may change meanwhile
    const nb::object held = nb::borrow(value);
    result.push_back({table.column(held_name).id, to_value(held, &kept)});
  }
  return result;
}

std::vector<query::Assignment> assignments_of(nb::handle changes) {
  std::vector<query::Assignment> result;
  for (const auto& [name, value] : nb::cast<nb::dict>(changes)) {
    const nb::object held = nb::borrow(value);
    result.push_back({std::string(text_of(name)), to_expr(held)});
  }
  return result;
}

/// The number of rows that `change` has written. Ctrl-C, and closing the session, ask it to stop.
template <typename Change>
std::uint64_t counted(const TableInfo& table, const Session& session, Change&& change) {
  std::uint64_t count = 0;
  const auto work = [&](const std::stop_token& stop) {
    const Result<std::uint64_t> changed = change(CallOptions{.stop = stop});
    if (changed.ok()) count = *changed;
    return changed.status();
  };
  check(run_long(work, session.closing()), {.table = &table});
  return count;
}

/// What an object of another library holds for us to take over.
template <typename Struct>
Struct* in_capsule(nb::handle capsule, const char* name) {
  auto* const held = static_cast<Struct*>(PyCapsule_GetPointer(capsule.ptr(), name));
  if (held == nullptr) throw nb::python_error();
  return held;
}

}  // namespace

nb::object find(const Transaction& transaction, const TableInfo& table, nb::handle values,
                nb::handle key_name, bool must_exist) {
  const KeyInfo& key = table.unique_key(key_name);
  KeyValues wanted(values);
  const Result<Row> row = key.prepared->get(transaction, wanted);
  if (row.ok()) return to_dict(table, *row);
  if (!must_exist && row.code() == StatusCode::kNotFound) return nb::none();
  raise(row.status(), {&table, key.name.c_str(), values});
}

nb::object insert(Transaction& transaction, const TableInfo& table, nb::handle row) {
  const RowValues values(table, row);
  const Result<Inserted> inserted = values.is_whole()
                                        ? transaction.insert(table.id, values.whole())
                                        : transaction.insert(table.id, values.given());
  if (!inserted.ok()) raise(inserted.status(), {.table = &table});
  if (!table.has_numbers) return nb::none();
  return nb::int_(inserted->number);
}

std::uint64_t insert_rows(Transaction& transaction, const TableInfo& table, nb::handle rows,
                          const Session& session) {
  const nb::object iterator = nb::steal(PyObject_GetIter(rows.ptr()));
  if (!iterator.is_valid()) throw nb::python_error();
  const Savepoint before = take(transaction.savepoint());
  std::uint64_t count = 0;
  std::vector<Value> values;
  Kept kept;
  const auto store = [&] {
    const Detached detached;
    return transaction.insert_rows(table.id, values);
  };
  try {
    for (bool is_last = false; !is_last;) {
      values.clear();
      kept.clear();
      std::size_t in_batch = 0;
      for (; in_batch < kRowsAtOnce; ++in_batch) {
        const nb::object row = nb::steal(PyIter_Next(iterator.ptr()));
        is_last = !row.is_valid();
        if (is_last) break;
        session.check_open();  // `rows` may take long
        if (PyDict_Check(row.ptr())) {
          RowValues of_row(table, row, &kept);
          const std::span<const Value> whole = of_row.complete(table);
          values.insert(values.end(), whole.begin(), whole.end());
        } else {
          append_row(table, row, values, &kept);
        }
      }
      if (PyErr_Occurred() != nullptr || PyErr_CheckSignals() != 0) throw nb::python_error();
      if (in_batch == 0) break;
      check(store(), {.table = &table});
      count += in_batch;
    }
  } catch (...) {
    const Status undone = transaction.rollback_to(before);
    if (undone.code() == StatusCode::kCancelled) throw;  // it can only be aborted
    check(undone);
    check(transaction.release(before));
    throw;
  }
  check(transaction.release(before));
  return count;
}

bool is_arrow(nb::handle rows) {
  return nb::hasattr(rows, "__arrow_c_stream__") || nb::hasattr(rows, "__arrow_c_array__");
}

std::uint64_t insert_arrow(Transaction& transaction, const TableInfo& table, nb::handle rows,
                           const Session& session) {
  Interrupt interrupt;
  const std::stop_callback stops(session.closing(), [&] { interrupt.stop(); });
  interrupt.begin();
  const CallOptions options{.progress = interrupt.progress(), .stop = interrupt.token()};
  nb::object given;  // keeps the capsules
  std::optional<Result<std::uint64_t>> inserted;
  if (nb::hasattr(rows, "__arrow_c_stream__")) {
    given = rows.attr("__arrow_c_stream__")();
    auto* const stream = in_capsule<ArrowArrayStream>(given, "arrow_array_stream");
    const Detached detached;
    inserted = query::insert_arrow(transaction, table.id, stream, options);
  } else {
    given = rows.attr("__arrow_c_array__")();
    auto* const schema = in_capsule<ArrowSchema>(given[0], "arrow_schema");
    auto* const array = in_capsule<ArrowArray>(given[1], "arrow_array");
    const Detached detached;
    inserted = query::insert_arrow(transaction, table.id, schema, array, options);
  }
  interrupt.check();
  return take(*std::move(inserted), {.table = &table});
}

void update(Transaction& transaction, const TableInfo& table, nb::handle values, nb::handle changes,
            nb::handle key_name) {
  const KeyInfo& key = table.unique_key(key_name);
  KeyValues wanted(values);
  Kept kept;
  const std::vector<ColumnValue> changed = changes_of(table, changes, kept);
  const Result<RowId> updated = transaction.update(key.id, wanted, changed);
  if (!updated.ok()) raise(updated.status(), {&table, key.name.c_str(), values});
}

void remove(Transaction& transaction, const TableInfo& table, nb::handle values,
            nb::handle key_name) {
  const KeyInfo& key = table.unique_key(key_name);
  KeyValues wanted(values);
  check(key.prepared->remove(transaction, wanted), {&table, key.name.c_str(), values});
}

bool upsert(Transaction& transaction, const TableInfo& table, nb::handle row, nb::handle changes,
            nb::handle key_name) {
  const KeyInfo& key = table.unique_key(key_name);
  RowValues values(table, row);
  Kept kept;
  std::vector<ColumnValue> changed;
  if (!changes.is_none())
    changed = changes_of(table, changes, kept);
  else if (!values.is_whole())  // columns that are not given stay as they are
    std::copy_if(values.given().begin(), values.given().end(), std::back_inserter(changed),
                 [&](const ColumnValue& given) {
                   const std::vector<std::string>& of_key = table.schema.keys[key.id.index].columns;
                   const std::string& name = table.schema.columns[given.column.value()].name;
                   return std::find(of_key.begin(), of_key.end(), name) == of_key.end();
                 });
  if (changed.empty() && !values.is_whole()) {
    const Result<Upserted> done = transaction.insert_if_absent(key.id, values.complete(table));
    if (!done.ok()) raise(done.status(), {&table, key.name.c_str()});
    return done->inserted;
  }
  const Result<Upserted> done = transaction.upsert(key.id, values.complete(table), changed);
  if (!done.ok()) raise(done.status(), {&table, key.name.c_str()});
  return done->inserted;
}

nb::object lock_row(Transaction& transaction, const TableInfo& table, nb::handle values,
                    nb::handle key_name, double wait, const Session& session) {
  const KeyInfo& key = table.unique_key(key_name);
  KeyValues wanted(values);
  const std::chrono::milliseconds limit = milliseconds_of(wait);
  // Most rows are free. Only a wait needs a second thread.
  std::optional<Result<Row>> row =
      transaction.lock(key.id, wanted, LockWait{std::min(limit, std::chrono::milliseconds(0))});
  if (row->code() == StatusCode::kBusy && limit.count() > 0) {
    const auto wait_for_row = [&](const std::stop_token& stop) {
      row.emplace(transaction.lock(key.id, wanted, {limit}, stop));
      return row->status();
    };
    // The lock may be granted in the moment in which Ctrl-C ends the wait. The savepoint gives it
    // back: the transaction holds no lock when the exception leaves.
    const Savepoint before = take(transaction.savepoint());
    try {
      static_cast<void>(run_long(wait_for_row, session.closing()));
    } catch (...) {
      if (row->ok()) static_cast<void>(transaction.rollback_to(before));
      static_cast<void>(transaction.release(before));
      throw;
    }
    static_cast<void>(transaction.release(before));  // `row` tells if the transaction has ended
  }
  if (!row->ok()) raise(row->status(), {&table, key.name.c_str(), values});
  return to_dict(table, **row);
}

nb::object add(Transaction& transaction, const TableInfo& table, nb::handle values,
               nb::handle column, nb::handle amount, nb::handle key_name) {
  const KeyInfo& key = table.unique_key(key_name);
  KeyValues wanted(values);
  const ColumnInfo& target = table.column(column);
  const Result<Value> sum = transaction.add(key.id, wanted, target.id, to_value(amount));
  if (!sum.ok()) raise(sum.status(), {&table, key.name.c_str(), values});
  return from_value(*sum, target.scale);
}

std::uint64_t update_where(Transaction& transaction, const TableInfo& table, nb::handle where,
                           nb::handle changes, const Session& session) {
  const query::Expr condition = to_expr(where);
  const std::vector<query::Assignment> assignments = assignments_of(changes);
  return counted(table, session, [&](const CallOptions& options) {
    return transaction.update_where(table.id, condition, assignments, options);
  });
}

std::uint64_t remove_where(Transaction& transaction, const TableInfo& table, nb::handle where,
                           const Session& session) {
  const query::Expr condition = to_expr(where);
  return counted(table, session, [&](const CallOptions& options) {
    return transaction.remove_where(table.id, condition, options);
  });
}

}  // namespace flugs::python
