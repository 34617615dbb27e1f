// DuckDB over the databases that Python has open. The module contains what the extension of DuckDB
// does (bindings/duckdb): the file that DuckDB loads hands over to it.
#include <dlfcn.h>

#include <nanobind/stl/string.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "bindings/duckdb/adapter.h"
#include "bindings/duckdb/pools.h"
#include "bindings/python/src/classes.h"
#include "bindings/python/src/errors.h"

namespace flugs::python {

namespace {

/// A name that no other lent database or transaction has, nor had.
std::string next_name() {
  static std::atomic<std::uint64_t> number{0};
  return std::string(duckdb::kLentPrefix) + std::to_string(++number);
}

// A call that takes its rows from DuckDB holds the gate while DuckDB's threads wait for it.
constexpr std::chrono::milliseconds kPatience{1000};

/// A transaction of Python that DuckDB reads in, and its streams, which end with it. No thread
/// calls it after `leave`.
class SharedWork final : public duckdb::HeldTransaction, public Child {
 public:
  explicit SharedWork(Work& work) : work_(work) {
    work.gate().enter_surely();
    work.add(*this);
    work.gate().leave();
  }
  /// Before the Work is destroyed.
  void leave() noexcept {
    work_.gate().enter_surely();
    work_.remove(*this);
    end();
    work_.gate().leave();
  }

  Status use(FunctionRef<Status(Transaction&)> call) override {
    if (!work_.session().is_of_this_process())
      return Status(StatusCode::kInvalidArgument, "the database belongs to another process");
    const InCall in_call;  // a handler of a signal must not close the database
    if (!work_.gate().enter_within(kPatience)) return busy();
    Status done = within(call);
    work_.gate().leave();
    return done;
  }
  void add(const std::shared_ptr<duckdb::GuestStream>& stream) override {
    std::erase_if(streams_, [](const auto& kept) { return kept.expired(); });
    streams_.push_back(stream);
  }
  void end(duckdb::GuestStream& stream) noexcept override {
    if (!work_.session().is_of_this_process()) return;
    if (!work_.gate().enter_within(std::chrono::milliseconds(0))) {
      // The thread that is in may wait for this one, or be about to end the stream.
      const std::lock_guard lock(left_mutex_);
      take_out(stream, left_);
      return;
    }
    std::vector<query::ResultStream> taken;
    {
      const std::lock_guard lock(left_mutex_);
      take_out(stream, taken);
    }
    for (query::ResultStream& rows : taken) work_.drop(std::move(rows));
    work_.gate().leave();
  }
  // Child
  void end() noexcept override {
    std::vector<query::ResultStream> taken;  // goes within the gate, and without the lock
    {
      const std::lock_guard lock(left_mutex_);
      for (const std::weak_ptr<duckdb::GuestStream>& stream : streams_)
        if (const std::shared_ptr<duckdb::GuestStream> kept = stream.lock()) take_out(*kept, taken);
      for (query::ResultStream& rows : left_) taken.push_back(std::move(rows));
      left_.clear();
    }
    streams_.clear();
  }

 private:
  static Status busy() {
    return Status(StatusCode::kBusy, "the transaction is in the middle of another call");
  }
  /// With left_mutex_.
  static void take_out(duckdb::GuestStream& stream, std::vector<query::ResultStream>& to) {
    if (!stream.rows_in_turn.has_value()) return;
    to.push_back(*std::move(stream.rows_in_turn));
    stream.rows_in_turn.reset();
  }
  void drop_left() noexcept {
    std::vector<query::ResultStream> taken;
    const std::lock_guard lock(left_mutex_);  // let go of before `taken` goes
    taken.swap(left_);
  }
  Status within(FunctionRef<Status(Transaction&)> call) {
    if (work_.state() == Work::State::kClosed)
      return Status(StatusCode::kInvalidArgument, "the database is closed");
    if (work_.state() != Work::State::kOpen)
      return Status(StatusCode::kInvalidArgument, "the transaction has ended");
    if (work_.gate().is_nested()) return busy();
    drop_left();
    const Work::Busy in_use(work_);
    const Detached detached;
    return call(work_.transaction());
  }

  Work& work_;
  std::vector<std::weak_ptr<duckdb::GuestStream>> streams_;  // within the gate
  // Protects the next, and taking a stream out of a scan. A scan uses its stream within `use`, and
  // no thread takes it out then: a thread that ends the scan has its Guest, and a thread that ends
  // the transaction has the gate. These two may meet. A leaf: no stream is destroyed under it.
  std::mutex left_mutex_;
  std::vector<query::ResultStream> left_;  // are to end within the gate
};

class DuckDb final : public Borrower {
 public:
  DuckDb(Database& database, std::shared_ptr<SharedWork> shared)
      : name_(next_name()),
        shared_(std::move(shared)),
        pool_(duckdb::lend_pool({.name = name_,
                                 .path = shared_ == nullptr ? database.path() : "",
                                 .database = {std::shared_ptr<void>(), &database},
                                 .transaction = shared_})) {}
  ~DuckDb() override { give_back(); }
  void give_back() noexcept override {
    pool_->take_back();
    if (const std::shared_ptr<SharedWork> shared = std::exchange(shared_, nullptr)) shared->leave();
  }
  const std::string& name() const noexcept { return name_; }

 private:
  const std::string name_;
  std::shared_ptr<SharedWork> shared_;
  const std::shared_ptr<duckdb::Pool> pool_;
};

std::unique_ptr<Borrower> lend_database(Database& database) {
  return std::make_unique<DuckDb>(database, nullptr);
}

std::unique_ptr<Borrower> lend_transaction(Work& work) {
  return std::make_unique<DuckDb>(work.session().database(), std::make_shared<SharedWork>(work));
}

const std::string& name_of(Borrower& borrower) { return static_cast<DuckDb&>(borrower).name(); }

/// Loads the file that DuckDB will load, unless that was done, and has it hand over to this module.
void serve(const std::string& extension) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  static bool serves = false;
  if (serves) return;
  void* const file = ::dlopen(extension.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (file == nullptr) raise(Status(StatusCode::kNotFound, ::dlerror()));
  using Start = void (*)(duckdb_v2_extension_input*);
  void* const found = ::dlsym(file, "flugs_duckdb_delegate");
  if (found == nullptr)
    raise(Status(StatusCode::kIncompatible, extension + " is of another version"));
  reinterpret_cast<void (*)(Start)>(found)(&duckdb::start);
  serves = true;
}

}  // namespace

void bind_duckdb(nb::module_& module) {
  module.def("_serve_duckdb", [](nb::bytes extension) {
    serve({extension.c_str(), extension.size()});
    Session::lend_all(lend_database);
  });
  // The name by which DuckDB finds it, and its tables.
  module.def("_lend", [](const PyDatabase& database) {
    Session& session = *database.session;
    return nb::make_tuple(name_of(session.lend(lend_database)), table_names(session));
  });
  module.def("_lend", [](const PyTransaction& transaction) {
    Work& work = *transaction.work;
    {
      const Work::Turn turn(work);
    }  // throws if it has ended
    return nb::make_tuple(name_of(work.lend(lend_transaction)), table_names(work.session()));
  });
}

}  // namespace flugs::python
