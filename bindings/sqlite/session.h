#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bindings/sqlite/pools.h"
#include "bindings/sqlite/sqlite_api.h"
#include "bindings/sqlite/texts.h"
#include "flugs/status.h"
#include "flugs/transaction.h"

namespace flugs::sqlite {

class Cursor;

/// A transaction that reads for cursors outside of BEGIN.
struct Reader {
  Transaction transaction;
  std::uint32_t cursors = 0;
};

/// What a connection of SQLite has of flugs: a pool, and the transactions in which its statements
/// read and write.
///
/// Statements that only read, outside of BEGIN, share a read-only transaction, which lasts until
/// the last of their cursors is closed. After a commit of this connection, new cursors get a new
/// one. A BEGIN, or a statement that writes, has one transaction
/// for all tables. SQLite tells its end only to tables that a statement has written to: so the
/// first read after BEGIN writes, without a row, to the table `flugs_statistics`.
///
/// Thread-safety: that of the connection.
class Session {
 public:
  explicit Session(sqlite3* db) noexcept : db_(db) {}
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  sqlite3* db() const noexcept { return db_; }
  Texts& texts() noexcept { return texts_; }
  bool has_pool() const noexcept { return pool_ != nullptr; }
  const std::string& path() const noexcept { return pool_->path; }
  std::shared_ptr<const Pool> pool() const noexcept { return pool_; }
  /// Fails with: kInvalidArgument (no pool is open).
  Result<Database*> database() const;
  /// That of the pool; 0 without one.
  std::uint64_t definitions() const noexcept {
    return pool_ != nullptr ? pool_->definitions->number() : 0;
  }
  bool is_definition_changing() const noexcept { return pool_->definitions->is_changing(); }
  std::mutex& names() const noexcept { return pool_->definitions->names(); }
  /// A pool is open.
  DefinitionChange change_definitions() const noexcept {
    return DefinitionChange(*pool_->definitions);
  }
  /// Begins to use a pool; none is in use.
  void use(std::shared_ptr<Pool> pool, Isolation isolation) noexcept;
  /// Ends the use of the pool; no transaction is open.
  void leave() noexcept;

  /// Starts loading what `get` will read first. A pool is open.
  void prefetch(KeyId key, std::span<const Value> values) const noexcept {
    pool_->database.prefetch(key, values);
  }
  /// The transaction in which a cursor reads from now on. Fails with: as Database::begin, and
  /// kInvalidArgument.
  Result<Transaction*> enter(Cursor& cursor);
  /// The transaction of `enter`, if it has begun and the cursor reads in it; else null.
  Transaction* enter_main(Cursor& cursor);
  /// The cursor reads no more.
  void exit(Cursor& cursor) noexcept;

  /// The transaction of BEGIN, or of a statement that writes, which begins now if need be. Fails
  /// with: as Database::begin, and kCancelled (its commit has failed).
  Result<Transaction*> main_transaction();
  /// Whether the transaction of BEGIN, or of a statement that writes, has begun.
  bool has_main() const noexcept { return main_.is_open(); }
  /// Whether a statement is running that writes and gives no rows, as each UPDATE and DELETE of a
  /// table of flugs. Such a statement is never left half done.
  bool is_writing() const noexcept;
  /// Whether schemas may be changed now: outside of BEGIN, and without a cursor. Ends what would be
  /// in the way. Fails with: kBusy.
  Status prepare_to_change_schema();

  // As SQLite calls the tables of a transaction, each of them: the first call does it. SQLite may
  // fail behind `commit`, and the transaction goes on: then flugs' tables can only be read, each
  // statement by itself, and nothing goes back to a savepoint from before.
  void begin() noexcept { is_enlisted_ = true; }
  Status commit();
  void rollback() noexcept;
  /// After `commit`, or `rollback`.
  void end() noexcept;
  Status savepoint(int number);
  Status release(int number);
  Status rollback_to(int number);

  /// Tables of the pool that SQLite does not show, and why.
  std::vector<std::pair<std::string, std::string>> not_shown;
  /// While set, dropping a table of SQLite leaves the pool's table.
  bool is_detaching = false;

 private:
  /// A savepoint of the transaction. It stands for those of SQLite with a number from that of the
  /// mark before it, plus 1, to `number`: SQLite tells a table that begins only the innermost one.
  struct Mark {
    int number;
    Savepoint savepoint;
  };

  Status enlist();
  void end_main(bool keeps_rows) noexcept;
  /// The mark that stands for a savepoint of SQLite, or `end`.
  std::vector<Mark>::iterator mark_of(int number) noexcept;

  sqlite3* db_;
  Texts texts_;
  std::shared_ptr<Pool> pool_;
  Isolation isolation_ = Isolation::kSnapshot;
  std::unique_ptr<Reader> reader_;    ///< of new cursors; without one it is not open
  std::uint32_t reader_cursors_ = 0;  ///< of all readers
  Transaction main_;
  bool is_enlisted_ = false;
  bool has_failed_ = false;     ///< `commit` has; only a rollback helps
  bool has_committed_ = false;  ///< `commit` has, and SQLite has not ended the transaction
  int before_commit_ = -1;      ///< then: the last savepoint that began before
  std::vector<Mark> marks_;
  std::vector<Cursor*> main_cursors_;
};

}  // namespace flugs::sqlite
