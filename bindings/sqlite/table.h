#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bindings/sqlite/columns.h"
#include "bindings/sqlite/plan.h"
#include "bindings/sqlite/session_table.h"
#include "bindings/sqlite/sqlite_api.h"
#include "flugs/value.h"

namespace flugs::sqlite {

class Cursor;

/// What a statement that writes has read of a table whose rows it may move: a write of one row may
/// make other versions of rows that SQLite has listed to be written, by foreign keys. Cursors of
/// other statements have no part in it: they may stay open, and read any number of rows.
///
/// Thread-safety: that of the connection.
class RowsRead {
 public:
  /// Before a cursor reads: the first one begins a statement.
  void open_cursor() noexcept {
    if (open_++ == 0) {
      columns_ = 0;
      keys_.clear();
    }
  }
  void close_cursor() noexcept { --open_; }
  void note_column(std::size_t column) noexcept { columns_ |= column_bit(column); }
  /// A row that may be written, and its primary key.
  void note_row(std::int64_t id, std::span<const Value> key);

  /// Columns that were read: those of column_bit.
  std::uint64_t columns() const noexcept { return columns_; }
  /// The primary key of a row that was noted; empty without one.
  std::vector<Value> key_of(std::int64_t id) const;

 private:
  /// A value that has its text.
  struct Part {
    Value value;
    std::string text;
  };
  std::uint32_t open_ = 0;
  std::uint64_t columns_ = 0;
  std::unordered_map<std::int64_t, std::vector<Part>> keys_;
};

/// A table of a pool as a virtual table of SQLite.
///
/// Thread-safety: that of the connection.
struct VirtualTable : public SessionTable {
  /// How a table of the session's pool stands to what SQLite was told of it.
  enum class Standing : std::uint8_t { kSame, kChanged, kDropped, kOtherPool };

  /// `as_of`: Session::definitions before the shape was read.
  VirtualTable(Session& of, TableShape with, std::uint64_t as_of);
  ~VirtualTable();

  /// Fails with: kInvalidArgument (no pool is open).
  Result<Standing> standing();
  /// Asked before a statement reads or writes. Fails with: kInvalidArgument (unless kSame).
  Status check() {
    // A table without a number, and a session without a pool, have 0.
    if (const std::uint64_t now = session.definitions(); now == definitions_ && now != 0) return {};
    return check_again();
  }
  /// Asked after names became columns of the pool: whether `check` was still right then. Fails
  /// with: as `check`.
  Status check_names();

  TableShape shape;
  /// The plans that statements have, each once: SQLite keeps their numbers.
  std::deque<Plan> plans;
  /// Cursors to be used again.
  std::vector<std::unique_ptr<Cursor>> spare;
  std::vector<Value> values;         ///< of the row that is being inserted
  std::vector<ColumnValue> changes;  ///< of the row that is being updated
  RowsRead rows_read;                ///< if the shape moves rows

  /// Rows of the table, about; looked up anew after some calls.
  double row_count();

 private:
  Result<Standing> compare();
  Status check_again();

  std::weak_ptr<const Pool> pool_;
  std::string pool_path_;
  std::uint64_t definitions_;  ///< as of which `shape` is right
  double row_count_ = 0;
  int calls_ = 0;
};

/// As SQLite's xUpdate.
int write_row(VirtualTable& table, int count, sqlite3_value** arguments, sqlite3_int64* row_id);

/// Makes the module `flugs`, whose tables belong to `session`.
int make_table_module(sqlite3* db, Session* session, void (*destroy)(void*));

}  // namespace flugs::sqlite
