#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <stop_token>
#include <string_view>
#include <vector>

#include "bindings/python/src/interpreter.h"
#include "bindings/python/src/tables.h"
#include "flugs/database.h"

namespace flugs::python {

class Work;

/// Counts the calls of the library in which this thread is. There is more than one when Python runs
/// something within a call: the handler of a signal, or the end of an object.
class InCall {
 public:
  InCall() noexcept { ++count_; }
  ~InCall() { --count_; }
  InCall(const InCall&) = delete;
  InCall& operator=(const InCall&) = delete;
  static bool is_any() noexcept { return count_ != 0; }

 private:
  // The few bytes that a module loaded later may have where access is quick.
  static inline thread_local unsigned count_ [[gnu::tls_model("initial-exec")]] = 0;
};

/// A library that uses a database beside Python, for example DuckDB.
class Borrower {
 public:
  Borrower() = default;
  Borrower(const Borrower&) = delete;
  Borrower& operator=(const Borrower&) = delete;
  virtual ~Borrower() = default;
  /// Ends all use, and lets none begin. May wait for calls that are in the database, which end
  /// soon; none of them waits for the interpreter.
  virtual void give_back() noexcept = 0;
};

/// Makes a borrower of an open database.
using Lend = std::unique_ptr<Borrower>(Database& database);

/// An open database, as long as any object of Python refers to it. Closing it ends what is open,
/// and every later use of it, or of an object that came from it, throws flugs.Closed. So does every
/// use in a process that was forked from the one that opened it.
///
/// Locks, in the order in which they are taken: `users_`, a Work's gate, `works_mutex_`,
/// `borrower_mutex_` and the mutex of `tables_`. A thread that waits for one of the first two has
/// let go of the interpreter. A thread that holds one of the last three uses no object of Python:
/// without the GIL, whatever does that may wait until all other threads have let go of the
/// interpreter.
class Session : public std::enable_shared_from_this<Session> {
 public:
  static std::shared_ptr<Session> make(Database&& database);
  explicit Session(Database&& database);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Guard of a call that uses the database itself: meanwhile it is not closed. Throws Closed.
  class Use {
   public:
    explicit Use(Session& session);
    ~Use() { session_.users_.unlock_shared(); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    Session& session_;
    InCall in_call_;
  };

  /// For the holder of a Use, or of an open transaction.
  Database& database() noexcept { return database_; }
  /// A table by its name, or by a Table. It lives as long as the session. Throws NotFound.
  const TableInfo& table(nb::handle name);
  const TableInfo& table(std::string_view name);
  /// After a change of a schema.
  void forget_tables() noexcept { tables_->forget(); }

  /// Throws Closed.
  void check_open() const;
  bool is_open() const noexcept;
  bool is_of_this_process() const noexcept { return forks() == forks_; }
  /// Whether a commit waits for a disk.
  bool has_journal() const noexcept { return has_journal_; }
  /// Asked to stop when the database is being closed.
  std::stop_token closing() const noexcept { return closing_.get_token(); }

  /// Ends all that is open, and closes the database. Does nothing if it is closed. Throws Busy when
  /// Python calls it within a call of the library. Where it waits for other threads, in Python's
  /// main thread, it throws what the handler of a signal raises: then nothing can be begun any
  /// more, and another `close` does the rest.
  void close();
  static void close_all();

  /// The borrower of the database, which `maker` makes the first time. It gives the database back
  /// before that is closed. Throws Closed.
  Borrower& lend(Lend& maker);
  /// Lends all databases that are open, or are opened later.
  static void lend_all(Lend& maker);

  void add(Work& work);
  void remove(Work& work) noexcept;

 private:
  void end_works();
  bool are_works_whole();
  static std::vector<std::shared_ptr<Session>> open_sessions();

  Database database_;
  const unsigned forks_;
  bool has_journal_ = false;
  std::shared_mutex users_;
  std::stop_source closing_;
  std::atomic<bool> is_closed_{false};  // nothing begins any more
  bool has_ended_ = false;              // with users_: the database is closed
  std::mutex borrower_mutex_;           // protects the next among calls of `lend`
  std::unique_ptr<Borrower> borrower_;

  std::mutex works_mutex_;
  std::vector<Work*> works_;

  std::optional<KnownTables> tables_{std::in_place};
};

}  // namespace flugs::python
