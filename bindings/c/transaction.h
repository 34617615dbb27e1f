#pragma once

#include <pthread.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "bindings/c/database.h"
#include "flugs/transaction.h"

// Transactions as handles that outlive what they stand for.
//
// `user` is the thread that is in a call. A call takes it by compare-and-swap, so a second thread
// is told instead of racing. A thread that ends a transaction holds it, too: by a commit, an abort
// or by closing the database. Locks are taken in this order: `user`, Shard::mutex,
// flugs_transaction::link.

namespace flugs::c {

/// A stream or a walk of a transaction, which must let go of the engine when the transaction ends.
class Child {
 public:
  explicit Child(std::shared_ptr<flugs_transaction> of) : owner(std::move(of)) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  virtual ~Child() = default;
  /// The caller holds `user` of the owner.
  virtual void end() noexcept = 0;
  /// In a forked child: forgets what belongs to the parent, without a call to the engine.
  virtual void abandon() noexcept = 0;

  const std::shared_ptr<flugs_transaction> owner;
};

}  // namespace flugs::c

struct flugs_transaction : flugs::c::Handle<flugs::c::Kind::kTransaction> {
  flugs::Transaction core;
  flugs::TransactionId id;
  flugs::c::Origin origin;
  std::atomic<pthread_t> user = 0;
  std::vector<flugs::c::Child*> children;  // protected by `user`
  std::mutex link;                         // protects `database` from being read by `cancel`
  flugs_database* database = nullptr;      // null: has ended. Written with `user` and `link`
  flugs::c::Shard* shard = nullptr;        // since the begin
  flugs_transaction* previous = nullptr;   // these two and `self`: protected by the shard
  flugs_transaction* next = nullptr;
  std::shared_ptr<flugs_transaction> self;  // the handle's share; taken when it is freed
};

namespace flugs::c {

/// Whether a call may begin while the same thread is in another one with the transaction: an insert
/// reads a stream of it.
enum class Nesting : bool { kRefused, kAllowed };

/// Makes this thread the user of a transaction, if no other one is.
class Use {
 public:
  explicit Use(flugs_transaction& transaction, Nesting nesting = Nesting::kRefused) noexcept
      : transaction_(transaction) {
    pthread_t seen = 0;
    is_mine_ =
        transaction_.user.compare_exchange_strong(seen, pthread_self(), std::memory_order_acquire);
    ok_ = is_mine_ || (nesting == Nesting::kAllowed && seen == pthread_self());
  }
  /// Waits for another thread. Do not call it in a thread that is a user.
  struct Wait {};
  Use(flugs_transaction& transaction, Wait) noexcept;
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  ~Use() {
    if (is_mine_) transaction_.user.store(0, std::memory_order_release);
  }
  bool ok() const noexcept { return ok_; }

 private:
  flugs_transaction& transaction_;
  bool is_mine_ = false;
  bool ok_ = false;
};

inline bool is_used_here(const flugs_transaction& transaction) noexcept {
  return transaction.user.load(std::memory_order_relaxed) == pthread_self();
}

flugs_error* in_use();
flugs_error* has_ended();

/// `work(transaction)`, which returns a flugs_error*, if the transaction is open. Its handle may
/// have been freed: a stream or a walk keeps it.
template <typename Work>
flugs_error* while_open(flugs_transaction& transaction, Work&& work) {
  if (!transaction.origin.is_here()) return of_parent("transaction");
  const Use use(transaction);
  if (!use.ok()) return in_use();
  if (transaction.database == nullptr) return has_ended();
  return std::forward<Work>(work)(transaction);
}
/// The same for a handle of the caller's.
template <typename Work>
flugs_error* with_transaction(flugs_transaction* transaction, Work&& work) noexcept {
  return guarded([&]() -> flugs_error* {
    if (!is_handle(transaction)) return no_handle("transaction");
    return while_open(*transaction, std::forward<Work>(work));
  });
}

/// An error of a call with a transaction, with what it was about. The caller is its user.
flugs_error* failed(const flugs_transaction& transaction, const Status& status, TableId table);

/// Ends the transaction, if it has not ended, and all that belongs to it. The caller is its user.
void end(flugs_transaction& transaction) noexcept;
/// Ends all transactions of a database, whose shards are closed.
void end_all(flugs_database& database) noexcept;

void add_child(Child& child);
/// Waits until no other thread is in a call with the transaction.
void remove_child(Child& child) noexcept;

}  // namespace flugs::c
