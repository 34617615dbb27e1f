#include "bindings/c/transaction.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "bindings/c/options.h"

namespace flugs::c {

Use::Use(flugs_transaction& transaction, Wait) noexcept : transaction_(transaction) {
  pthread_t seen = 0;
  while (
      !transaction_.user.compare_exchange_weak(seen, pthread_self(), std::memory_order_acquire)) {
    seen = 0;
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  is_mine_ = ok_ = true;
}

flugs_error* in_use() {
  return to_c(Status(StatusCode::kBusy, "transaction: a call with it is running"));
}

flugs_error* has_ended() { return misuse("transaction: it has ended, or its database is closed"); }

flugs_error* failed(const flugs_transaction& transaction, const Status& status, TableId table) {
  if (status.ok()) return nullptr;
  const Database& database = transaction.database->core;
  if (status.code() != StatusCode::kConflict) return to_c(status, about(database, table));
  const std::optional<Conflict> conflict = transaction.core.conflict();
  if (!conflict.has_value()) return to_c(status, about(database, table));
  About what = conflict->key ? about(database, *conflict->key) : about(database, conflict->table);
  if (!status.message().empty()) return to_c(status, std::move(what));
  return to_c(Status(StatusCode::kConflict, conflict->message), std::move(what));
}

namespace {

flugs::c::Shard& shard_of_thread(flugs_database& database) noexcept {
  // Stacks of threads are megabytes apart, so the bits above have the thread's number.
  const auto thread = static_cast<std::uint64_t>(pthread_self());
  return database.shards[((thread >> 12) ^ (thread >> 23)) % database.shards.size()];
}

/// Takes the transaction off its shard. The caller is its user.
void unlink(flugs_transaction& transaction) noexcept {
  const std::lock_guard<std::mutex> shard(transaction.shard->mutex);
  flugs_transaction*& before =
      transaction.previous != nullptr ? transaction.previous->next : transaction.shard->first;
  before = transaction.next;
  if (transaction.next != nullptr) transaction.next->previous = transaction.previous;
  transaction.previous = transaction.next = nullptr;
  const std::lock_guard<std::mutex> link(transaction.link);
  transaction.database = nullptr;
}

}  // namespace

void end(flugs_transaction& transaction) noexcept {
  if (transaction.database == nullptr) return;
  for (Child* child : transaction.children) child->end();
  transaction.children.clear();
  transaction.core = Transaction();  // aborts, if it is open
  unlink(transaction);
}

void end_all(flugs_database& database) noexcept {
  for (Shard& shard : database.shards) {
    while (true) {
      std::shared_ptr<flugs_transaction> transaction;
      {
        const std::lock_guard<std::mutex> lock(shard.mutex);
        if (shard.first == nullptr) break;
        transaction = shard.first->self;
      }
      // A call that is running fails soon.
      [[maybe_unused]] const Status asked = database.core.cancel(transaction->id);
      const Use use(*transaction, Use::Wait());
      end(*transaction);
    }
  }
}

void add_child(Child& child) { child.owner->children.push_back(&child); }

void remove_child(Child& child) noexcept {
  flugs_transaction& owner = *child.owner;
  if (!owner.origin.is_here()) return child.abandon();
  const auto remove = [&] {
    std::erase(owner.children, &child);
    child.end();
  };
  if (is_used_here(owner)) return remove();
  const Use use(owner, Use::Wait());
  remove();
}

}  // namespace flugs::c

using flugs::c::no_handle;
using flugs::c::no_pointer;
using flugs::c::to_c;
using flugs::c::with_transaction;

extern "C" {

flugs_error* flugs_transaction_begin(flugs_database* database, flugs_access access,
                                     flugs_isolation isolation, flugs_transaction** out) {
  return flugs::c::guarded([&]() -> flugs_error* {
    if (out == nullptr) return no_pointer("out");
    *out = nullptr;
    if (!flugs::c::is_handle(database)) return no_handle("database");
    if (!database->origin.is_here()) return flugs::c::of_parent("database");
    if (access < FLUGS_READ_WRITE || access > FLUGS_READ_ONLY_ACCESS)
      return flugs::c::misuse("access: no such number");
    if (isolation < FLUGS_SNAPSHOT || isolation > FLUGS_READ_COMMITTED)
      return flugs::c::misuse("isolation: no such number");
    auto made = std::make_shared<flugs_transaction>();
    flugs::c::Shard& shard = flugs::c::shard_of_thread(*database);
    const std::lock_guard<std::mutex> lock(shard.mutex);
    if (shard.is_closed) return flugs::c::misuse("database: it is closed");
    flugs::Result<flugs::Transaction> begun = database->core.begin(
        static_cast<flugs::AccessMode>(access), static_cast<flugs::Isolation>(isolation));
    if (!begun.ok()) return to_c(begun.status());
    made->core = *std::move(begun);
    made->id = made->core.id();
    made->database = database;
    made->shard = &shard;
    made->next = shard.first;
    if (shard.first != nullptr) shard.first->previous = made.get();
    shard.first = made.get();
    *out = made.get();
    made->self = std::move(made);
    return nullptr;
  });
}

flugs_error* flugs_transaction_commit(flugs_transaction* transaction,
                                      const flugs_options* options) {
  return with_transaction(transaction, [&](flugs_transaction& t) -> flugs_error* {
    flugs::CommitOptions how;
    if (options != nullptr) {
      flugs::c::OptionReader reader(options);
      reader.choice("durability",
                    {{"on-return", flugs::Durability::kOnReturn},
                     {"soon", flugs::Durability::kSoon},
                     {"process-crash", flugs::Durability::kProcessCrash}},
                    how.durability);
      reader.milliseconds("soon_ms", how.soon);
      if (flugs_error* error = to_c(reader.finish())) return error;
    }
    const flugs::Status status = t.core.commit(how);
    flugs_error* error = to_c(status);
    if (!t.core.is_open()) flugs::c::end(t);
    return error;
  });
}

flugs_error* flugs_transaction_abort(flugs_transaction* transaction) {
  return flugs::c::guarded([&]() -> flugs_error* {
    if (!flugs::c::is_handle(transaction)) return no_handle("transaction");
    if (!transaction->origin.is_here()) return flugs::c::of_parent("transaction");
    const flugs::c::Use use(*transaction);
    if (!use.ok()) return flugs::c::in_use();
    flugs::c::end(*transaction);
    return nullptr;
  });
}

flugs_error* flugs_transaction_cancel(flugs_transaction* transaction) {
  return flugs::c::guarded([&]() -> flugs_error* {
    if (!flugs::c::is_handle(transaction)) return no_handle("transaction");
    if (!transaction->origin.is_here()) return flugs::c::of_parent("transaction");
    const std::lock_guard<std::mutex> link(transaction->link);
    if (transaction->database == nullptr)
      return to_c(flugs::Status(flugs::StatusCode::kNotFound, "the transaction has ended"));
    return to_c(transaction->database->core.cancel(transaction->id));
  });
}

void flugs_transaction_free(flugs_transaction* transaction) {
  if (!flugs::c::is_handle(transaction) || !transaction->origin.is_here() ||
      flugs::c::is_used_here(*transaction))
    return;
  std::shared_ptr<flugs_transaction> share;
  {
    const flugs::c::Use use(*transaction, flugs::c::Use::Wait());
    flugs::c::end(*transaction);
    transaction->retire();
    share = std::move(transaction->self);
  }
}
}
