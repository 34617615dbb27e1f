#pragma once

#include <cstdint>

#include "bindings/python/src/classes.h"

namespace flugs::python {

// Calls of a transaction with values of Python; docs/python.md says what each takes. Each throws
// the exception of the call's status. The holder of a Turn, or of the only transaction, calls them.

/// The row as a dict. None if there is none and it need not exist.
nb::object find(const Transaction& transaction, const TableInfo& table, nb::handle values,
                nb::handle key_name, bool must_exist);
/// For each of `keys` the row as a dict, or None. `work`: the owner of the transaction, if Python
/// has it; while rows are read, code of Python that runs in between cannot end it. Throws Closed
/// when `session` is being closed meanwhile.
nb::list find_many(const Transaction& transaction, const TableInfo& table, nb::handle keys,
                   nb::handle key_name, const Session& session, Work* work);
/// The number that the row got, or None.
nb::object insert(Transaction& transaction, const TableInfo& table, nb::handle row);
/// All rows or none. Returns their number. Throws Closed when `session` is being closed meanwhile.
std::uint64_t insert_rows(Transaction& transaction, const TableInfo& table, nb::handle rows,
                          const Session& session);
/// All rows of an object with `__arrow_c_stream__` or `__arrow_c_array__`, or none. Nothing else
/// may use the transaction meanwhile: `rows` may run code of Python. Throws Cancelled when
/// `session` is being closed meanwhile.
std::uint64_t insert_arrow(Transaction& transaction, const TableInfo& table, nb::handle rows,
                           const Session& session);
/// Whether it is such an object.
bool is_arrow(nb::handle rows);
void update(Transaction& transaction, const TableInfo& table, nb::handle values, nb::handle changes,
            nb::handle key_name);
void remove(Transaction& transaction, const TableInfo& table, nb::handle values,
            nb::handle key_name);
/// Whether it inserted the row.
bool upsert(Transaction& transaction, const TableInfo& table, nb::handle row, nb::handle changes,
            nb::handle key_name);
/// `wait` in seconds. Like the last two, it may run a handler of a signal meanwhile, must be called
/// with nothing else that uses the transaction, and throws Cancelled when `session` is being
/// closed.
nb::object lock_row(Transaction& transaction, const TableInfo& table, nb::handle values,
                    nb::handle key_name, double wait, const Session& session);
nb::object add(Transaction& transaction, const TableInfo& table, nb::handle values,
               nb::handle column, nb::handle amount, nb::handle key_name);
std::uint64_t update_where(Transaction& transaction, const TableInfo& table, nb::handle where,
                           nb::handle changes, const Session& session);
std::uint64_t remove_where(Transaction& transaction, const TableInfo& table, nb::handle where,
                           const Session& session);

}  // namespace flugs::python
