#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "bench/support/clock.h"
#include "bench/support/histogram.h"
#include "bench/support/merge_watch.h"
#include "bench/tatp/tatp_driver.h"
#include "bench/tatp/tatp_transactions.h"
#include "bench/tatp/witness.h"
#include "flugs/database.h"

namespace flugs::bench {

enum class TatpPhase : std::uint32_t { kWaiting, kRampUp, kSampling, kPaused, kStopped };

/// What the users of a run are told, and tell.
struct TatpControl {
  std::atomic<TatpPhase> phase{TatpPhase::kWaiting};
  std::atomic<bool> failed{false};
  std::atomic<const MergeWatch*> merges{nullptr};

  /// Users that wait in kWaiting or kPaused go on with this phase.
  void set(TatpPhase next) noexcept {
    phase.store(next, std::memory_order_release);
    phase.notify_all();
  }
};

/// One user, with everything that its thread writes: on cache lines of its own.
class alignas(64) TatpUser {
 public:
  TatpUser(TatpControl& control, Database& database, const TatpTables& tables,
           const Population& population, const TatpRunOptions& options, std::uint32_t index);

  /// One transaction after the other, until kStopped or a failure.
  void run();

  std::uint64_t executed() const noexcept {
    return status_->executed.load(std::memory_order_relaxed);
  }
  /// After the thread has ended.
  void add_to(TatpRunResult& result) const;

 private:
  bool looks_ahead() const noexcept { return requests_.size() > 1; }
  bool is_merging() const noexcept;
  bool execute(const TatpRequest& request, bool sampling);
  void count(const TatpRequest& request, TatpOutcome outcome, std::uint64_t ticks);

  TatpControl& control_;
  const Ticks& clock_;
  TatpClient client_;
  TatpGenerator generator_;
  std::vector<TatpRequest> requests_;  // a ring: what is known, the next one to execute included
  std::optional<WitnessLog> log_;
  UserStatus own_status_;
  UserStatus* status_ = &own_status_;
  bool answered_ = false;
  std::uint64_t retries_ = 0;
  std::uint64_t foreign_key_missing_ = 0;
  std::uint64_t forwarding_inserted_ = 0;
  std::uint64_t forwarding_deleted_ = 0;
  Status failure_;
  std::array<TatpTypeResult, kTatpTypes> types_;
  Histogram location_during_merge_;
};

/// The users of a run, and their threads.
class TatpUsers {
 public:
  /// Starts the threads, which wait for a phase.
  TatpUsers(Database& database, const TatpTables& tables, const Population& population,
            const TatpRunOptions& options);
  ~TatpUsers() { stop(); }
  TatpUsers(const TatpUsers&) = delete;
  TatpUsers& operator=(const TatpUsers&) = delete;

  TatpControl& control() noexcept { return control_; }
  std::uint64_t executed() const noexcept;
  /// Ends the threads.
  void stop();
  /// After stop().
  void add_to(TatpRunResult& result) const;

 private:
  TatpControl control_;
  std::vector<std::unique_ptr<TatpUser>> users_;
  std::vector<std::thread> threads_;
};

}  // namespace flugs::bench
