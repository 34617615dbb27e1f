#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "flugs/ids.h"
#include "flugs/row.h"
#include "flugs/status.h"
#include "flugs/transaction.h"
#include "flugs/value.h"

namespace flugs {

namespace engine {
class DatabaseCore;
class Table;
}  // namespace engine

/// Reads and writes rows by one unique key. Database::prepare has found the table, the key and the
/// columns once, and checked them; each call then needs only the values of the key.
///     const Prepared balance = *database.prepare(accounts_key, {balance_column});
///     balance.update(transaction, {7}, {100});
/// A Prepared serves any number of transactions until its database is closed. Renaming does not
/// touch it. If the table or the key is dropped, calls fail as those of Transaction do; a dropped
/// column reads as NULL, and can no longer be written.
///
/// Thread-safety: immutable. Calls with different transactions may run at the same time.
class Prepared {
 public:
  /// Every call fails with kInvalidArgument.
  Prepared() noexcept = default;

  KeyId key() const noexcept { return key_; }
  std::span<const ColumnId> columns() const noexcept { return columns_; }

  /// The row whose key equals `values`, as Transaction::get.
  /// Fails with: kNotFound, kInvalidArgument (wrong number or type of values; the transaction is of
  /// another database).
  Result<Row> get(const Transaction& transaction, std::span<const Value> values) const;
  Result<Row> get(const Transaction& transaction, std::initializer_list<Value> values) const {
    return get(transaction, std::span<const Value>(values.begin(), values.size()));
  }
  /// Reads the prepared columns of the row into `out`, which has their number. Texts are views that
  /// are valid as long as a Row. Fails with: as get; kInvalidArgument (the size of `out`).
  Status read(const Transaction& transaction, std::span<const Value> values,
              std::span<Value> out) const;
  Status read(const Transaction& transaction, std::initializer_list<Value> values,
              std::span<Value> out) const {
    return read(transaction, std::span<const Value>(values.begin(), values.size()), out);
  }
  /// Gives the prepared columns of the row new values, in their order, as Transaction::update.
  /// Durable when: commit returns ok. Fails with: as get and Transaction::update; kInvalidArgument
  /// (not as many values as prepared columns).
  Result<RowId> update(Transaction& transaction, std::span<const Value> values,
                       std::span<const Value> changed) const;
  Result<RowId> update(Transaction& transaction, std::initializer_list<Value> values,
                       std::initializer_list<Value> changed) const {
    return update(transaction, std::span<const Value>(values.begin(), values.size()),
                  std::span<const Value>(changed.begin(), changed.size()));
  }
  /// Deletes the row, as Transaction::remove. Durable when: commit returns ok. Fails with: as get
  /// and Transaction::remove.
  Status remove(Transaction& transaction, std::span<const Value> values) const;
  Status remove(Transaction& transaction, std::initializer_list<Value> values) const {
    return remove(transaction, std::span<const Value>(values.begin(), values.size()));
  }

 private:
  friend class engine::DatabaseCore;
  Prepared(std::uint64_t opening, engine::Table& table, KeyId key, std::vector<ColumnId> columns)
      : opening_(opening), table_(&table), key_(key), columns_(std::move(columns)) {}
  Status check(const Transaction& transaction) const;

  std::uint64_t opening_ = 0;  // DatabaseCore::opening of the database
  engine::Table* table_ = nullptr;
  KeyId key_;
  std::vector<ColumnId> columns_;
};
static_assert(std::is_nothrow_move_constructible_v<Prepared>);

}  // namespace flugs
