#include "bindings/sqlite/session.h"

#include <algorithm>
#include <utility>

#include "bindings/sqlite/cursor.h"

namespace flugs::sqlite {

Session::~Session() { end_main(false); }

Result<Database*> Session::database() const {
  if (pool_ == nullptr)
    return Status(StatusCode::kInvalidArgument,
                  "no pool is open on this connection: SELECT flugs_open('FILE')");
  return &pool_->database;
}

void Session::use(std::shared_ptr<Pool> pool, Isolation isolation) noexcept {
  pool_ = std::move(pool);
  isolation_ = isolation;
}

void Session::leave() noexcept {
  end_main(false);
  reader_.reset();
  pool_.reset();
}

Result<Transaction*> Session::main_transaction() {
  if (has_failed_)
    return Status(StatusCode::kCancelled, "the transaction could not be committed: ROLLBACK");
  if (main_.is_open()) return &main_;
  if (has_committed_)
    return Status(StatusCode::kCancelled,
                  "COMMIT has failed in SQLite, but not in flugs: COMMIT again, or ROLLBACK");
  Result<Database*> database = this->database();
  if (!database.ok()) return std::move(database).status();
  Result<Transaction> begun = (*database)->begin(
      pool_->is_read_only ? AccessMode::kReadOnly : AccessMode::kReadWrite, isolation_);
  if (!begun.ok()) return std::move(begun).status();
  main_ = *std::move(begun);
  // A savepoint that begins a transaction has the number -1. SQLite tells no table about it.
  if (sqlite3_get_autocommit(db_) == 0) {
    Result<Savepoint> savepoint = main_.savepoint();
    if (!savepoint.ok()) return std::move(savepoint).status();
    marks_.push_back({-1, *savepoint});
  }
  return &main_;
}

Status Session::enlist() {
  char* message = nullptr;
  const int code =
      sqlite3_exec(db_, "DELETE FROM temp.flugs_statistics WHERE 0", nullptr, nullptr, &message);
  Status status;
  if (code != SQLITE_OK || !is_enlisted_)
    status = Status(StatusCode::kInvalidArgument,
                    std::string("a transaction that reads flugs' tables cannot begin: ") +
                        (message != nullptr ? message : sqlite3_errstr(code)));
  sqlite3_free(message);
  return status;
}

Transaction* Session::enter_main(Cursor& cursor) {
  if (!is_enlisted_ || has_committed_ || has_failed_ || !main_.is_open()) return nullptr;
  main_cursors_.push_back(&cursor);
  cursor.reads = Cursor::Reads::kMain;
  return &main_;
}

Result<Transaction*> Session::enter(Cursor& cursor) {
  if (!has_committed_ && (is_enlisted_ || sqlite3_get_autocommit(db_) == 0)) {
    if (!is_enlisted_)
      if (Status s = enlist(); !s.ok()) return s;
    Result<Transaction*> main = main_transaction();
    if (!main.ok()) return main;
    main_cursors_.push_back(&cursor);
    cursor.reads = Cursor::Reads::kMain;
    return main;
  }
  if (reader_ == nullptr) reader_ = std::make_unique<Reader>();
  if (reader_->cursors == 0) {
    Result<Database*> database = this->database();
    if (!database.ok()) return std::move(database).status();
    Result<Transaction> begun = (*database)->begin(AccessMode::kReadOnly);
    if (!begun.ok()) return std::move(begun).status();
    reader_->transaction = *std::move(begun);
  }
  ++reader_->cursors;
  ++reader_cursors_;
  cursor.reads = Cursor::Reads::kReader;
  cursor.reader = reader_.get();
  return &reader_->transaction;
}

void Session::exit(Cursor& cursor) noexcept {
  if (cursor.reads == Cursor::Reads::kReader) {
    --reader_cursors_;
    Reader* const reader = std::exchange(cursor.reader, nullptr);
    if (--reader->cursors == 0) {
      reader->transaction.abort();
      if (reader != reader_.get()) delete reader;  // it is not for new cursors
    }
  } else if (cursor.reads == Cursor::Reads::kMain) {
    std::erase(main_cursors_, &cursor);
  }
  cursor.reads = Cursor::Reads::kNothing;
}

bool Session::is_writing() const noexcept {
  for (sqlite3_stmt* of = sqlite3_next_stmt(db_, nullptr); of != nullptr;
       of = sqlite3_next_stmt(db_, of))
    if (sqlite3_stmt_busy(of) != 0 && sqlite3_stmt_readonly(of) == 0 &&
        sqlite3_column_count(of) == 0)
      return true;
  return false;
}

Status Session::prepare_to_change_schema() {
  if (sqlite3_get_autocommit(db_) == 0)
    return Status(StatusCode::kBusy,
                  "tables of flugs are changed outside of transactions: COMMIT first");
  if (!main_cursors_.empty() || reader_cursors_ != 0)
    return Status(StatusCode::kBusy, "a statement that reads flugs' tables is still running");
  end_main(false);
  return {};
}

void Session::end_main(bool keeps_rows) noexcept {
  for (Cursor* cursor : main_cursors_) {
    cursor->outlive(keeps_rows);
    cursor->reads = Cursor::Reads::kNothing;
  }
  main_cursors_.clear();
  marks_.clear();
  main_.abort();
}

Status Session::commit() {
  if (has_failed_)
    return Status(StatusCode::kCancelled, "the transaction could not be committed: ROLLBACK");
  if (!main_.is_open()) return {};
  for (Cursor* cursor : main_cursors_) {
    cursor->outlive(true);
    cursor->reads = Cursor::Reads::kNothing;
  }
  main_cursors_.clear();
  before_commit_ = marks_.empty() ? -1 : marks_.back().number;
  marks_.clear();
  Status status = main_.commit();
  has_committed_ = status.ok();
  if (!status.ok()) {
    has_failed_ = true;
    main_.abort();
  } else if (reader_ != nullptr && reader_->cursors != 0) {
    // The last of its cursors deletes it; others see what was committed.
    static_cast<void>(reader_.release());
  }
  return status;
}

void Session::rollback() noexcept {
  end_main(false);
  end();
}

void Session::end() noexcept {
  if (main_.is_open()) end_main(true);
  is_enlisted_ = false;
  has_failed_ = false;
  has_committed_ = false;
}

Status Session::savepoint(int number) {
  if (has_committed_) return {};  // nothing is written
  if (!marks_.empty() && marks_.back().number >= number) return {};
  Result<Transaction*> main = main_transaction();
  if (!main.ok()) return std::move(main).status();
  Result<Savepoint> savepoint = (*main)->savepoint();
  if (!savepoint.ok()) return std::move(savepoint).status();
  marks_.push_back({number, *savepoint});
  return {};
}

std::vector<Session::Mark>::iterator Session::mark_of(int number) noexcept {
  return std::find_if(marks_.begin(), marks_.end(),
                      [&](const Mark& m) { return m.number >= number; });
}

Status Session::release(int number) {
  before_commit_ = std::min(before_commit_, number - 1);
  auto first = mark_of(number);
  if (first == marks_.end()) return {};
  // The mark also stands for savepoints before `number` that SQLite told no table about.
  const int before = first == marks_.begin() ? -1 : (first - 1)->number;
  if (before < number - 1) {
    first->number = number - 1;
    ++first;
  }
  if (first == marks_.end()) return {};
  Status status = main_.release(first->savepoint);
  marks_.erase(first, marks_.end());
  return status;
}

Status Session::rollback_to(int number) {
  if (!main_.is_open() && (!has_committed_ || number > before_commit_)) return {};
  // Every table of the transaction is told: each call after the first one finds nothing to undo.
  const auto first = mark_of(number);
  if (first == marks_.end())
    return Status(StatusCode::kCancelled, "flugs' tables cannot go back to this savepoint");
  for (Cursor* cursor : main_cursors_) cursor->outlive(true);
  if (Status s = main_.rollback_to(first->savepoint); !s.ok()) return s;
  first->number = number;
  marks_.erase(first + 1, marks_.end());
  return {};
}

}  // namespace flugs::sqlite
