#include <algorithm>
#include <array>
#include <span>

#include "bindings/sqlite/errors.h"
#include "bindings/sqlite/table.h"
#include "bindings/sqlite/values.h"
#include "flugs/try.h"

namespace flugs::sqlite {

namespace {

/// One call of xUpdate.
class Write {
 public:
  Write(VirtualTable& table, Transaction& transaction)
      : table_(table), shape_(table.shape), transaction_(transaction) {}

  Result<sqlite3_int64> insert(sqlite3_value** arguments, bool replaces) {
    FLUGS_TRY(read_row(arguments));
    Result<Inserted> inserted = transaction_.insert(shape_.id, table_.values);
    if (inserted.code() == StatusCode::kAlreadyExists && replaces)
      inserted = replacing<Result<Inserted>>(
          [&] { return transaction_.insert(shape_.id, table_.values); });
    if (!inserted.ok()) return std::move(inserted).status();
    return shape_.gives_numbers ? inserted->number
                                : static_cast<sqlite3_int64>(inserted->row.value());
  }

  Status update(sqlite3_value** arguments, bool replaces) {
    if (sqlite3_value_int64(arguments[1]) != sqlite3_value_int64(arguments[0]))
      return Status(StatusCode::kInvalidArgument, "the rowid of a row of flugs cannot be changed");
    table_.changes.clear();
    for (std::size_t i = 0; i < shape_.columns.size(); ++i) {
      if (sqlite3_value_nochange(arguments[i + 2]) != 0) continue;
      ColumnValue change{shape_.columns[i].id, {}};
      FLUGS_TRY(take_value(shape_.columns[i], arguments[i + 2], change.value));
      table_.changes.push_back(change);
    }
    if (table_.changes.empty()) return {};
    const std::int64_t listed = sqlite3_value_int64(arguments[0]);
    Status done = update_row(row_id(listed), replaces);
    if (!is_missing(done)) return done;
    // A foreign key may have changed what the new values were computed from.
    const bool is_sure = !replaces && (table_.rows_read.columns() & shape_.moved_columns) == 0;
    return with_newest(listed, shape_.moves(), is_sure,
                       [&](RowId newest) { return update_row(newest, replaces); });
  }

  Status remove(sqlite3_value** arguments) {
    const std::int64_t listed = sqlite3_value_int64(arguments[0]);
    Status done = transaction_.remove(shape_.id, row_id(listed));
    if (!is_missing(done)) return done;
    return with_newest(listed, shape_.moves_on_delete, true,
                       [&](RowId newest) { return transaction_.remove(shape_.id, newest); });
  }

  /// Whether a value was of a wrong type.
  bool has_misfit() const noexcept { return has_misfit_; }

 private:
  static RowId row_id(std::int64_t listed) { return RowId(static_cast<std::uint32_t>(listed)); }

  Status update_row(RowId row, bool replaces) {
    Result<RowId> changed = transaction_.update(shape_.id, row, table_.changes);
    if (changed.code() == StatusCode::kAlreadyExists && replaces) {
      FLUGS_TRY(complete(row));
      changed = replacing<Result<RowId>>(
          [&] { return transaction_.update(shape_.id, row, table_.changes); }, row);
    }
    return changed.status();
  }

  /// SQLite lists the rows of a statement before it writes the first one. A row that is missing
  /// when its turn comes was deleted by the statement itself, by a cascade or to make room for
  /// another row; or a foreign key has changed it, so that it has another version.
  static bool is_missing(const Status& status) {
    return status.code() == StatusCode::kNotFound && status.message().empty();
  }

  /// Writes the newest version of a row that is missing, as a table of SQLite does. Nothing is to
  /// do if the row was deleted. No row of the statement has another primary key by now: neither is
  /// this row one that comes later, nor does a foreign key change this key.
  template <typename Call>
  Status with_newest(std::int64_t listed, bool may_have_moved, bool is_sure, Call&& write) {
    if (!may_have_moved) return {};
    const std::vector<Value> key = table_.rows_read.key_of(listed);
    bool is_key_kept = !key.empty();
    for (std::size_t i = 0; i < key.size(); ++i)
      is_key_kept = is_key_kept && !key[i].is_null() &&
                    (column_bit(shape_.keys.front().columns[i]) & shape_.moved_columns) == 0;
    if (!is_key_kept || !is_sure)
      return Status(StatusCode::kNotFound,
                    "a foreign key has changed or deleted a row before the statement came to it: "
                    "use one statement for each row");
    const Result<Row> row = transaction_.get(shape_.keys.front().id, key);
    if (row.code() == StatusCode::kNotFound) return {};
    if (!row.ok()) return row.status();
    return write(row->id());
  }

  Status take_value(const Column& column, sqlite3_value* from, Value& to) {
    Status status = take(shape_.name, column, from, to);
    has_misfit_ = !status.ok();
    return status;
  }

  /// A row to insert. NULL stands for the default of a column that has one, as SQLite does not tell
  /// whether a column was named.
  Status read_row(sqlite3_value** arguments) {
    table_.values.assign(shape_.width, Value::null());
    for (std::size_t i = 0; i < shape_.columns.size(); ++i) {
      const Column& column = shape_.columns[i];
      Value& value = table_.values[column.id.value()];
      FLUGS_TRY(take_value(column, arguments[i + 2], value));
      if (value.is_null() && column.default_value) value = column.default_value->value();
    }
    return {};
  }

  /// The row as it would be after `changes`.
  Status complete(RowId row) {
    FLUGS_ASSIGN(const Row old, transaction_.get(shape_.id, row));
    table_.values.assign(shape_.width, Value::null());
    for (const Column& column : shape_.columns)
      table_.values[column.id.value()] = old.get_unchecked<Value>(column.id);
    for (const ColumnValue& change : table_.changes)
      table_.values[change.column.value()] = change.value;
    return {};
  }

  /// Deletes the other rows with a unique key of the row in `values`, and calls `write`: both or
  /// nothing.
  template <typename Written, typename Call>
  Written replacing(Call&& write, RowId self = RowId(0xFFFFFFFF)) {
    FLUGS_ASSIGN(const Savepoint before, transaction_.savepoint());
    Written written = [&]() -> Written {
      FLUGS_TRY(remove_equals(self));
      return write();
    }();
    if (!written.ok()) FLUGS_TRY(transaction_.rollback_to(before));
    FLUGS_TRY(transaction_.release(before));
    return written;
  }

  Status remove_equals(RowId self) {
    for (const Key& key : shape_.keys) {
      if (!key.unique) continue;
      std::array<Value, 16> wanted;
      const std::size_t size = key.columns.size();
      bool has_null = false;
      for (std::size_t i = 0; i < size; ++i) {
        wanted[i] = table_.values[shape_.columns[key.columns[i]].id.value()];
        has_null |= wanted[i].is_null();
      }
      if (has_null) continue;
      const Result<Row> row = transaction_.get(key.id, std::span<const Value>(wanted.data(), size));
      if (row.code() == StatusCode::kNotFound) continue;
      if (!row.ok()) return row.status();
      if (row->id() != self) FLUGS_TRY(transaction_.remove(shape_.id, row->id()));
    }
    return {};
  }

  VirtualTable& table_;
  const TableShape& shape_;
  Transaction& transaction_;
  bool has_misfit_ = false;
};

Result<sqlite3_int64> do_write(Write& write, int count, sqlite3_value** arguments, bool replaces) {
  if (count == 1) {
    FLUGS_TRY(write.remove(arguments));
    return sqlite3_int64{0};
  }
  if (sqlite3_value_type(arguments[0]) != SQLITE_NULL) {
    FLUGS_TRY(write.update(arguments, replaces));
    return sqlite3_int64{0};
  }
  if (sqlite3_value_type(arguments[1]) != SQLITE_NULL)
    return Status(StatusCode::kInvalidArgument, "flugs gives the rowid of a row itself");
  return write.insert(arguments, replaces);
}

/// A value of a wrong type is an error whatever the conflict clause says, as in a STRICT table; but
/// after any kind of SQLITE_CONSTRAINT SQLite obeys IGNORE, FAIL and ROLLBACK.
int code_of_write(const Status& status, int on_conflict, bool has_misfit) {
  const int code = code_of(status);
  if (has_misfit)
    return on_conflict == SQLITE_ABORT || on_conflict == SQLITE_REPLACE ? SQLITE_CONSTRAINT_DATATYPE
                                                                        : SQLITE_MISMATCH;
  if (code != SQLITE_CONSTRAINT) return code;
  return status.code() == StatusCode::kAlreadyExists ? SQLITE_CONSTRAINT_UNIQUE
                                                     : SQLITE_CONSTRAINT_VTAB;
}

}  // namespace

int write_row(VirtualTable& table, int count, sqlite3_value** arguments, sqlite3_int64* row_id) {
  const int on_conflict = sqlite3_vtab_on_conflict(table.session.db());
  if (const Status s = table.check(); !s.ok()) return fail(&table, s);
  const Result<Transaction*> transaction = table.session.main_transaction();
  if (!transaction.ok()) return fail(&table, transaction.status());
  Write write(table, **transaction);
  const Result<sqlite3_int64> row =
      do_write(write, count, arguments, on_conflict == SQLITE_REPLACE);
  if (!row.ok()) {
    static_cast<void>(fail(&table, row.status()));
    return code_of_write(row.status(), on_conflict, write.has_misfit());
  }
  if (count > 1) *row_id = *row;
  return SQLITE_OK;
}

}  // namespace flugs::sqlite
