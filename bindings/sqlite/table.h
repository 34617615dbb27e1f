#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "bindings/sqlite/columns.h"
#include "bindings/sqlite/plan.h"
#include "bindings/sqlite/session_table.h"
#include "bindings/sqlite/sqlite_api.h"
#include "flugs/value.h"

namespace flugs::sqlite {

class Cursor;

/// A table of a pool as a virtual table of SQLite.
///
/// Thread-safety: that of the connection.
struct VirtualTable : public SessionTable {
  VirtualTable(Session& of, TableShape with) : SessionTable(of), shape(std::move(with)) {}
  ~VirtualTable();

  TableShape shape;
  /// The plans that statements have, each once: SQLite keeps their numbers.
  std::deque<Plan> plans;
  /// Cursors to be used again.
  std::vector<std::unique_ptr<Cursor>> spare;
  std::vector<Value> values;  ///< of the row that is being written

  /// Rows of the table, about; looked up anew after some calls.
  double row_count();

 private:
  double row_count_ = 0;
  int calls_ = 0;
};

/// As SQLite's xUpdate.
int write_row(VirtualTable& table, int count, sqlite3_value** arguments, sqlite3_int64* row_id);

/// Makes the module `flugs`, whose tables belong to `session`.
int make_table_module(sqlite3* db, Session* session, void (*destroy)(void*));

}  // namespace flugs::sqlite
