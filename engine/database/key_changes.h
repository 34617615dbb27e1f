#pragma once

#include <cstddef>

#include "engine/database/catalog.h"
#include "flugs/progress.h"
#include "flugs/schema.h"

namespace flugs::engine {

/// Adds keys to tables that have rows, and drops them, while transactions go on.
///
/// Invariants:
/// * Writers keep a new index up before the rows that are there are entered. So no row is missing
///   in it when the key is published.
/// * The place of a key that was dropped goes to another key when no transaction is left that may
///   know the dropped one.
///
/// Thread-safety: any thread; one change of a table's keys at a time, and no merge meanwhile.
class KeyChanges final {
 public:
  KeyChanges(Catalog& catalog, TransactionManager& transactions) noexcept
      : catalog_(catalog), transactions_(transactions) {}

  Result<KeyId> add_key(TableId id, const KeySchema& wanted, const CallOptions& options);
  Status drop_key(KeyId key);

 private:
  Result<std::size_t> place_for_key(Table& table, const KeySchema& key);
  Status make_key(Table& table, std::size_t place, const CallOptions& options);
  static Status check_droppable(const Table& table, std::size_t index);
  void withdraw_key(Table& table, std::size_t place);
  void release_key(Table& table);

  Catalog& catalog_;
  TransactionManager& transactions_;
};

}  // namespace flugs::engine
