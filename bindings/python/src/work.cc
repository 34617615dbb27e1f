#include "bindings/python/src/work.h"

#include <utility>

#include "bindings/python/src/errors.h"

namespace flugs::python {

namespace {

// A commit of as many rows takes as long as letting go of the interpreter and getting it back.
constexpr std::uint64_t kRowsOfShortCommit = 64;

[[noreturn]] void raise_busy() {
  raise(Status(StatusCode::kBusy, "the transaction is in the middle of a call in this thread"));
}

}  // namespace

std::shared_ptr<Work> Work::begin(std::shared_ptr<Session> session, AccessMode mode,
                                  Isolation isolation) {
  const Session::Use use(*session);
  Transaction transaction = take(session->database().begin(mode, isolation));
  return std::make_shared<Work>(std::move(session), std::move(transaction));
}

Work::Work(std::shared_ptr<Session> session, Transaction&& transaction)
    : session_(std::move(session)), transaction_(std::move(transaction)), id_(transaction_.id()) {
  session_->add(*this);
}

Work::~Work() {
  if (!session_->is_of_this_process()) {
    static_cast<void>(borrower_.release());
    return;
  }
  give_back();
  borrower_.reset();
  session_->remove(*this);
  end(State::kAborted);
}

Borrower& Work::lend(std::unique_ptr<Borrower> (*maker)(Work& work)) {
  const Session::Use use(*session_);
  const Detached detached;
  const std::lock_guard lock(borrower_mutex_);
  if (borrower_ == nullptr) borrower_ = maker(*this);
  return *borrower_;
}

void Work::give_back() noexcept {
  if (borrower_ == nullptr) return;
  const Detached detached;
  borrower_->give_back();
}

Work::Turn::Turn(Work& work) : work_(work) {
  if (!work.session_->is_of_this_process()) work.session_->check_open();
  work.gate_.enter();
  if (work.state_ == State::kOpen && !work.is_busy_) return;
  const bool is_busy = work.is_busy_;
  work.gate_.leave();
  if (is_busy) raise_busy();
  work.raise_ended();
}

Work::Busy::~Busy() {
  work_.is_busy_ = false;
  work_.dropped_.clear();
}

void Work::abort() {
  if (!session_->is_of_this_process() || state() != State::kOpen) return;
  const InCall in_call;
  const Inside inside(gate_);
  if (state() != State::kOpen) return;  // another thread was quicker
  if (is_busy_) raise_busy();
  end(State::kAborted);
}

void Work::raise_ended() const {
  session_->check_open();
  const char* const how =
      state() == State::kCommitted ? "the transaction is committed" : "the transaction is aborted";
  raise(Status(StatusCode::kInvalidArgument, how));
}

void Work::commit(const CommitOptions& options) {
  const Status status = python::commit(transaction_, rows_written_, *session_, options);
  if (transaction_.is_open()) raise(status);  // the options were refused
  end_children();
  state_ = status.ok() ? State::kCommitted : State::kAborted;
  check(status);
}

void Work::end(State why) noexcept {
  if (state_ != State::kOpen) return;
  end_children();
  transaction_.abort();
  state_ = why;
}

void Work::end_children() noexcept {
  for (Child* child : std::exchange(children_, {})) child->end();
}

Status commit(Transaction& transaction, std::uint64_t rows_written, const Session& session,
              const CommitOptions& options) {
  if (!session.has_journal() && rows_written <= kRowsOfShortCommit)
    return transaction.commit(options);
  const Detached detached;
  return transaction.commit(options);
}

}  // namespace flugs::python
