#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <shared_mutex>
#include <utility>

#include "bindings/c/origin.h"
#include "flugs/database.h"

namespace flugs::c {

/// The open transactions of some threads, in a list. Each shard lies in lines of its own: threads
/// that begin transactions do not wait for each other.
struct alignas(64) Shard {
  std::mutex mutex;  // protects all fields here, and the links of the transactions
  flugs_transaction* first = nullptr;
  bool is_closed = false;
};

}  // namespace flugs::c

/// Closing ends the transactions in the shards; then it waits for calls that hold `calls`.
struct flugs_database : flugs::c::Handle<flugs::c::Kind::kDatabase> {
  explicit flugs_database(flugs::Database opened) : core(std::move(opened)) {}

  flugs::Database core;
  flugs::c::Origin origin;
  std::shared_mutex calls;  // shared: a call that belongs to no transaction; else: closing
  bool is_closed = false;   // protected by `calls`
  std::array<flugs::c::Shard, 16> shards;
};

namespace flugs::c {

/// `work(core)`, which returns a flugs_error*, while the database is kept from closing.
template <typename Work>
flugs_error* with_database(flugs_database* database, Work&& work) noexcept {
  return guarded([&]() -> flugs_error* {
    if (!is_handle(database)) return no_handle("database");
    if (!database->origin.is_here()) return of_parent("database");
    const std::shared_lock<std::shared_mutex> open(database->calls);
    if (database->is_closed) return misuse("database: it is closed");
    return std::forward<Work>(work)(database->core);
  });
}

/// The names of a table and of a key, as far as they can be found. For errors.
About about(const Database& database, TableId table);
About about(const Database& database, KeyId key);

}  // namespace flugs::c
