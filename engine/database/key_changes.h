#pragma once

#include <cstddef>
#include <string>

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

  // Parts of add_key, under the table's merge_mutex, for calls that add a key together with what
  // needs it. Those that say so need the catalogue's ddl_mutex, too.

  /// Before the first.
  static Status prepare(Table& table, const CallOptions& options);
  /// Gives writers the key; the value is its place. Under ddl_mutex. Fails with kBusy,
  /// kInvalidArgument.
  Result<std::size_t> begin_key(Table& table, const KeySchema& wanted);
  /// Enters the rows that are there. Fails like add_key.
  Status make_key(Table& table, std::size_t place, const CallOptions& options);
  /// Completes the key: `next` is the schema, to which the key is added. Under ddl_mutex. Fails
  /// with kOutOfSpace.
  static Status finish_key(Table& table, std::size_t place, const KeySchema& wanted,
                           StoredSchema next);
  /// Takes back a key that was begun, after the failure `why`.
  void give_up_key(Table& table, std::size_t place, StatusCode why);

 private:
  Result<std::size_t> place_for_key(Table& table, const KeySchema& key);
  static Status check_droppable(const Table& table, std::size_t index);
  void withdraw_key(Table& table, std::size_t place);
  void release_key(Table& table);

  Catalog& catalog_;
  TransactionManager& transactions_;
};

}  // namespace flugs::engine
