#include "bindings/python/src/session.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "bindings/python/src/errors.h"
#include "bindings/python/src/work.h"

namespace flugs::python {

namespace {

/// A session with the forks at its birth: a child must not look at it if they are others.
struct Known {
  Session* session;
  unsigned forks;
};

std::mutex sessions_mutex;
std::vector<Known>& sessions() {
  static auto* const all = new std::vector<Known>;
  return *all;
}

std::atomic<Lend*> lends_all{nullptr};

constexpr std::chrono::microseconds kPause{100};

/// Waits until `try_lock` gives true.
template <typename TryLock>
void wait_for(TryLock&& try_lock) {
  while (!try_lock()) {
    const Detached detached;
    std::this_thread::sleep_for(kPause);
  }
}

/// The same, but throws what the handler of a signal raises.
template <typename TryLock>
void wait_with_signals(TryLock&& try_lock) {
  for (unsigned round = 0; !try_lock(); ++round) {
    {
      const Detached detached;
      std::this_thread::sleep_for(kPause);
    }
    const bool looks = round % 64 == 63 && is_main_thread();
    if (looks && PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

}  // namespace

Session::Session(Database&& database)
    : database_(std::move(database)),
      forks_(forks()),
      has_journal_(database_.statistics().flush == "journal") {
  const std::lock_guard lock(sessions_mutex);
  sessions().push_back({this, forks_});
}

Session::~Session() {
  // The last owner may be a thread of a library that reads Arrow.
  if (Py_IsInitialized() != 0) {
    const nb::gil_scoped_acquire attached;
    tables_.reset();
  } else {
    tables_->leave();
  }
  if (!is_of_this_process()) {  // a lock may have been held by a thread that is not here
    static_cast<void>(borrower_.release());
    return;
  }
  {
    const std::lock_guard lock(sessions_mutex);
    std::erase_if(sessions(), [this](const Known& known) { return known.session == this; });
  }
  if (has_ended_) return;
  const Detached detached;
  closing_.request_stop();
  if (borrower_ != nullptr) borrower_->give_back();
  database_ = Database();
}

std::shared_ptr<Session> Session::make(Database&& database) {
  auto session = std::make_shared<Session>(std::move(database));
  if (Lend* const maker = lends_all) session->lend(*maker);
  return session;
}

Borrower& Session::lend(Lend& maker) {
  const Use use(*this);
  const Detached detached;
  const std::lock_guard lock(borrower_mutex_);
  if (borrower_ == nullptr) borrower_ = maker(database_);
  return *borrower_;
}

void Session::lend_all(Lend& maker) {
  lends_all = &maker;
  for (const std::shared_ptr<Session>& session : open_sessions()) {
    try {
      session->lend(maker);
    } catch (nb::python_error&) {
      if (session->is_open()) throw;  // another thread has just closed it
    }
  }
}

Session::Use::Use(Session& session) : session_(session) {
  session.check_open();
  if (!session.users_.try_lock_shared()) wait_for([&] { return session.users_.try_lock_shared(); });
  if (session.is_closed_.load(std::memory_order_acquire)) {
    session.users_.unlock_shared();
    session.check_open();
  }
}

bool Session::is_open() const noexcept {
  return is_of_this_process() && !is_closed_.load(std::memory_order_acquire);
}

void Session::check_open() const {
  if (!is_of_this_process())
    raise_closed("the database was opened in another process, before a fork: open it in this one");
  if (is_closed_.load(std::memory_order_acquire)) raise_closed("the database is closed");
}

const TableInfo& Session::table(nb::handle name) {
  if (PyUnicode_Check(name.ptr())) return table(text_of(name));
  const nb::object of_table = name.attr("name");
  return table(text_of(of_table));
}

const TableInfo& Session::table(std::string_view name) {
  if (const TableInfo* const known = tables_->find(name)) return *known;
  for (;;) {
    const std::uint64_t times_forgotten = tables_->times_forgotten();
    Result<std::unique_ptr<TableInfo>> found = TableInfo::find(database_, name);
    check(found.status());
    if (const TableInfo* const kept = tables_->keep(*std::move(found), times_forgotten))
      return *kept;
  }
}

void Session::add(Work& work) {
  const std::lock_guard lock(works_mutex_);
  works_.push_back(&work);
}

void Session::remove(Work& work) noexcept {
  const std::lock_guard lock(works_mutex_);
  const auto place = std::find(works_.rbegin(), works_.rend(), &work);
  if (place == works_.rend()) return;
  *place = works_.back();
  works_.pop_back();
}

void Session::end_works() {
  std::vector<std::shared_ptr<Work>> open;
  {
    const std::lock_guard lock(works_mutex_);
    for (Work* work : works_)
      if (std::shared_ptr<Work> shared = work->weak_from_this().lock()) open.push_back(shared);
  }
  // Each call of theirs ends soon.
  for (const std::shared_ptr<Work>& work : open) static_cast<void>(database_.cancel(work->id()));
  for (const std::shared_ptr<Work>& work : open) {
    const Inside inside(work->gate());
    work->end(Work::State::kClosed);
  }
  for (const std::shared_ptr<Work>& work : open) work->give_back();
}

bool Session::are_works_whole() {
  const std::lock_guard lock(works_mutex_);
  return std::none_of(works_.begin(), works_.end(),
                      [](const Work* work) { return work->weak_from_this().expired(); });
}

void Session::close() {
  if (!is_of_this_process()) return;
  if (InCall::is_any()) {
    if (!is_open()) return;
    raise(Status(StatusCode::kBusy, "a call of flugs is running in this thread: close it later"));
  }
  is_closed_ = true;
  closing_.request_stop();
  wait_with_signals([&] { return users_.try_lock(); });
  // No call of the database is running any more, and none begins.
  const std::unique_lock lock(users_, std::adopt_lock);
  if (has_ended_) return;
  const InCall in_call;  // a handler of a signal does not wait for this thread
  end_works();
  if (borrower_ != nullptr) {
    const Detached detached;
    borrower_->give_back();
  }
  // One that is being destroyed gives back what was lent of it.
  wait_with_signals([&] { return are_works_whole(); });
  Status closed;
  // The owner of a Work may be just about to destroy it.
  wait_with_signals([&] {
    const Detached detached;
    closed = database_.close();
    return closed.code() != StatusCode::kBusy;
  });
  has_ended_ = true;
  check(closed);
}

std::vector<std::shared_ptr<Session>> Session::open_sessions() {
  std::vector<std::shared_ptr<Session>> open;
  const std::lock_guard lock(sessions_mutex);
  for (const Known& known : sessions())
    if (known.forks == forks())
      if (std::shared_ptr<Session> shared = known.session->weak_from_this().lock())
        open.push_back(std::move(shared));
  return open;
}

void Session::close_all() {
  for (const std::shared_ptr<Session>& session : open_sessions()) {
    try {
      session->close();
    } catch (nb::python_error& error) {
      error.discard_as_unraisable("flugs closes its databases");
    }
  }
}

}  // namespace flugs::python
