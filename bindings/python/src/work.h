#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "bindings/python/src/gate.h"
#include "bindings/python/src/session.h"

namespace flugs::python {

/// What ends with a transaction: a walk, a stream.
class Child {
 public:
  Child() = default;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  /// The transaction has ended, or is about to.
  virtual void end() noexcept = 0;

 protected:
  ~Child() = default;
};

/// A transaction, used by one thread at a time.
class Work : public std::enable_shared_from_this<Work> {
 public:
  enum class State { kOpen, kCommitted, kAborted, kClosed };

  /// Begins a transaction. Throws Closed, TooManyTransactions.
  static std::shared_ptr<Work> begin(std::shared_ptr<Session> session, AccessMode mode,
                                     Isolation isolation = Isolation::kSnapshot);
  Work(std::shared_ptr<Session> session, Transaction&& transaction);
  ~Work();
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  /// Guard of a call: other threads that use the transaction wait. Throws if it has ended.
  class Turn {
   public:
    explicit Turn(Work& work);
    ~Turn() { work_.gate_.leave(); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    Work& work_;
    InCall in_call_;
  };

  /// Guard of a part of a call in which the transaction is in use, but Python may run a handler of
  /// a signal: what that does with the transaction is refused.
  class Busy {
   public:
    explicit Busy(Work& work) noexcept : work_(work) { work_.is_busy_ = true; }
    ~Busy();
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;

   private:
    Work& work_;
  };

  Session& session() const noexcept { return *session_; }
  const std::shared_ptr<Session>& shared_session() const noexcept { return session_; }
  State state() const noexcept { return state_.load(std::memory_order_acquire); }
  Gate& gate() noexcept { return gate_; }
  /// Aborts it, unless it has ended. Throws Busy.
  void abort();
  TransactionId id() const noexcept { return id_; }
  /// As Session::lend, of the transaction.
  Borrower& lend(std::unique_ptr<Borrower> (*maker)(Work& work));
  /// While no `lend` runs: by the destructor, or when the session is being closed. Not within the
  /// gate, for which a thread of the borrower may wait.
  void give_back() noexcept;

  // The rest: with a Turn, or within the gate.

  Transaction& transaction() noexcept { return transaction_; }
  /// Counts written rows: a commit of many lets other threads run meanwhile.
  void wrote(std::uint64_t rows = 1) noexcept { rows_written_ += rows; }
  void commit(const CommitOptions& options = {});
  /// As abort, within a call of ours.
  void end(State why) noexcept;
  /// A call of the transaction is running in this thread, and Python has come in between.
  bool is_busy() const noexcept { return is_busy_; }
  /// Destroys what uses the transaction: at once, or when the call that runs has ended.
  template <typename Used>
  void drop(Used used) {
    if (is_busy_) dropped_.push_back(std::make_shared<Used>(std::move(used)));
  }
  void add(Child& child) { children_.push_back(&child); }
  void remove(Child& child) noexcept { std::erase(children_, &child); }
  /// Throws what a call gets that comes too late.
  [[noreturn]] void raise_ended() const;

 private:
  void end_children() noexcept;

  const std::shared_ptr<Session> session_;
  Gate gate_;
  Transaction transaction_;
  const TransactionId id_;
  std::atomic<State> state_{State::kOpen};
  bool is_busy_ = false;
  std::uint64_t rows_written_ = 0;
  std::vector<Child*> children_;
  std::vector<std::shared_ptr<void>> dropped_;  // waits for the end of a Busy
  // Protects the next among calls of `lend`. `give_back` reads it without: it is called while no
  // `lend` can run, by the destructor, or with Session::users_, of which `lend` has a share.
  std::mutex borrower_mutex_;
  std::unique_ptr<Borrower> borrower_;
};

/// Commits, without the interpreter if that takes long.
Status commit(Transaction& transaction, std::uint64_t rows_written, const Session& session,
              const CommitOptions& options = {});

}  // namespace flugs::python
