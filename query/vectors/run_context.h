#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/crew.h"
#include "flugs/query.h"
#include "flugs/query_result.h"
#include "mvcc/visibility.h"
#include "query/vectors/failure.h"
#include "query/vectors/text_store.h"

namespace flugs::engine {
class DatabaseCore;
class TransactionContext;
}  // namespace flugs::engine

namespace flugs::query {

/// The memory limit that all operators of a running query share.
/// Thread-safety: any thread.
class MemoryBudget {
 public:
  explicit MemoryBudget(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;
  /// All of it has been given back.
  ~MemoryBudget() { FLUGS_CHECK(used_.load(std::memory_order_relaxed) == 0); }

  /// Fails with kOutOfMemory, naming `owner`.
  void take(std::uint64_t bytes, const std::string& owner) {
    const std::uint64_t used = used_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    if (used > bytes_max_) {
      used_.fetch_sub(bytes, std::memory_order_relaxed);
      fail(StatusCode::kOutOfMemory, owner + ": needs " + std::to_string(bytes) + " more bytes, " +
                                         std::to_string(used - bytes) + " of " +
                                         std::to_string(bytes_max_) +
                                         " (RunOptions::memory_bytes_max) are in use");
    }
    note_peak(used);
  }
  /// False: there is not that much left.
  bool try_take(std::uint64_t bytes) noexcept {
    const std::uint64_t used = used_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    if (used > bytes_max_) {
      used_.fetch_sub(bytes, std::memory_order_relaxed);
      return false;
    }
    note_peak(used);
    return true;
  }
  void give_back(std::uint64_t bytes) noexcept {
    const std::uint64_t before = used_.fetch_sub(bytes, std::memory_order_relaxed);
    FLUGS_CHECK(before >= bytes);
  }
  std::uint64_t bytes_max() const noexcept { return bytes_max_; }
  /// What is left at this moment.
  std::uint64_t left() const noexcept {
    const std::uint64_t used = used_.load(std::memory_order_relaxed);
    return used < bytes_max_ ? bytes_max_ - used : 0;
  }
  std::uint64_t peak() const noexcept { return peak_.load(std::memory_order_relaxed); }

 private:
  void note_peak(std::uint64_t used) noexcept {
    std::uint64_t peak = peak_.load(std::memory_order_relaxed);
    while (used > peak && !peak_.compare_exchange_weak(peak, used, std::memory_order_relaxed)) {
    }
  }

  std::uint64_t bytes_max_;
  std::atomic<std::uint64_t> used_{0};
  std::atomic<std::uint64_t> peak_{0};
};

/// One owner's share of the budget, given back at destruction. One thread.
class Charge {
 public:
  Charge() = default;
  Charge(MemoryBudget& budget, std::string owner) : budget_(&budget), owner_(std::move(owner)) {}
  Charge(Charge&& other) noexcept
      : budget_(std::exchange(other.budget_, nullptr)),
        owner_(std::move(other.owner_)),
        bytes_(std::exchange(other.bytes_, 0)) {}
  Charge& operator=(Charge&& other) noexcept {
    if (this != &other) {
      set_nothing();
      budget_ = std::exchange(other.budget_, nullptr);
      owner_ = std::move(other.owner_);
      bytes_ = std::exchange(other.bytes_, 0);
    }
    return *this;
  }
  ~Charge() { set_nothing(); }

  void add(std::uint64_t bytes) {
    FLUGS_CHECK(bytes <= ~std::uint64_t{0} - bytes_);
    set(bytes_ + bytes);
  }
  void set(std::uint64_t bytes) {
    if (budget_ == nullptr) return;
    if (bytes > bytes_)
      budget_->take(bytes - bytes_, owner_);
    else
      budget_->give_back(bytes_ - bytes);
    bytes_ = bytes;
  }
  std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  void set_nothing() noexcept {
    if (budget_ != nullptr) budget_->give_back(bytes_);
    bytes_ = 0;
  }
  MemoryBudget* budget_ = nullptr;
  std::string owner_;
  std::uint64_t bytes_ = 0;
};

/// A line of explain(), with the lines below it.
struct ExplainNode {
  std::string title;
  std::vector<std::string> details;
  std::vector<std::shared_ptr<ExplainNode>> inputs;
  double seconds = -1;  ///< time of the pipeline that ends here
};
using ExplainPtr = std::shared_ptr<ExplainNode>;
std::string to_text(const ExplainNode& node, unsigned depth = 0);
/// ", about 12 expected"; below 0: nothing.
std::string expected_text(double rows);

/// Tells the caller of a query how many pieces of its inputs are done.
/// Thread-safety: any thread; one call of the caller's function at a time.
class QueryProgress {
 public:
  explicit QueryProgress(const std::function<void(const Progress&)>& function)
      : function_(function) {}
  bool is_wanted() const noexcept { return static_cast<bool>(function_); }
  /// An input with this many pieces begins. The pieces of an earlier input that were not needed
  /// count as done.
  void begin(std::size_t pieces);
  /// A piece of the present input is done.
  void add_done();
  /// The present input is done.
  void finish();

 private:
  void tell();

  const std::function<void(const Progress&)> function_;  // a stream outlives its caller's options
  std::mutex mutex_;          // protects what follows, and calls of function_; a leaf
  std::uint64_t before_ = 0;  // pieces of the inputs before
  std::uint64_t done_ = 0;    // of the present input
  std::uint64_t pieces_ = 0;
};

/// Data that the operators of one run share.
///
/// It also defines what owns the bytes of texts. During a run every text is a view: in a batch, in
/// held Rows, in the table of a group by, in a CodeDomain. The bytes belong to
///   - a table: the transaction, which is visited during the run, keeps all that it may see;
///   - a result that is an input: `query` keeps it;
///   - a constant: a Binder copies them into `texts`;
///   - a computed value: an Evaluator copies them into `texts`, if they leave the expression.
/// These outlive the run's operators and Rows, in whatever order those are destroyed. Only the
/// texts that stages compute may live until the next batch, if the sink copies texts
/// (Sink::copies_texts). ResultData outlives the run: make_result copies its texts into memory of
/// its own.
struct RunContext {
  /// `open` must be an open transaction.
  RunContext(std::shared_ptr<const QueryNode> node, const Transaction& open,
             const RunOptions& options, std::uint32_t thread_count);

  std::shared_ptr<const QueryNode> query;
  std::shared_ptr<const QueryNode> arranged;  ///< the form in which it runs
  const bool runs_as_written;                 ///< RunOptions::runs_as_written
  const engine::DatabaseCore* database;
  engine::TransactionContext* transaction;
  /// What the query sees: what the transaction saw when the query began. A transaction that had
  /// not tried to write by then has no tag in it, so later writes of its own do not show.
  const mvcc::Visibility visibility;
  std::stop_token stop;
  QueryProgress progress;
  std::uint32_t threads;  ///< largest number; fewer if the system refuses some
  Crew& crew;
  MemoryBudget budget;
  TextStore texts;
  std::string temporary_folder;  ///< RunOptions::temporary_folder
  bool is_dry = false;           ///< explain only: plans are made, no rows are read
  std::atomic<std::uint64_t> rows_scanned{0};
  std::atomic<std::uint64_t> rows_skipped{0};
  std::atomic<std::uint64_t> entries_read{0};
  std::atomic<std::uint64_t> rows_selected{0};
  std::atomic<std::uint64_t> batches{0};

  /// Fails with kCancelled when the query was asked to stop, or its transaction to end.
  void check_stop() const;
};

}  // namespace flugs::query
