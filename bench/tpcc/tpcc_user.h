#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "bench/support/clock.h"
#include "bench/tpcc/tpcc_driver.h"
#include "bench/tpcc/tpcc_witness.h"

namespace flugs::bench {

enum class TpccPhase : std::uint32_t { kWaiting, kRampUp, kSampling, kStopped };

/// What the users of a run are told, and tell.
struct TpccControl {
  std::atomic<TpccPhase> phase{TpccPhase::kWaiting};
  std::atomic<std::uint32_t> ready{0};  ///< users that have their session
  std::atomic<bool> failed{false};
};

/// One user, with everything that its thread writes: on cache lines of its own.
class alignas(64) TpccUser {
 public:
  TpccUser(TpccControl& control, const TpccRunOptions& options, std::uint32_t index);

  /// One transaction after the other, until kStopped or a failure.
  void run(const MakeTpccSession& make);

  std::uint64_t executed() const noexcept { return executed_.load(std::memory_order_relaxed); }
  // After the thread has ended.
  void add_to(TpccRunResult& result) const;
  const Status& failure() const noexcept { return failure_; }

 private:
  Status execute(TpccSession& session, bool is_sampled);
  /// Until there is no conflict.
  Result<TpccOutcome> attempt(TpccSession& session, std::uint64_t& retries);
  Status log_begin();
  void log_end(TpccOutcome outcome);

  TpccControl& control_;
  const Ticks& clock_;
  std::uint32_t index_;
  TpccGenerator generator_;
  TpccRequest request_;
  TpccReceipt receipt_;
  std::optional<TpccLog> log_;
  std::int64_t last_time_us_ = 0;
  std::atomic<std::uint64_t> executed_{0};
  std::uint64_t checksum_ = 0;
  std::uint64_t skipped_deliveries_ = 0;
  std::array<TpccTypeResult, kTpccTypes> types_;
  Status failure_;
};

/// The users of a run, and their threads.
class TpccUsers {
 public:
  /// Starts the threads, which wait for a phase.
  TpccUsers(const MakeTpccSession& make, const TpccRunOptions& options);
  ~TpccUsers() { stop(); }
  TpccUsers(const TpccUsers&) = delete;
  TpccUsers& operator=(const TpccUsers&) = delete;

  TpccControl& control() noexcept { return control_; }
  std::uint64_t executed() const noexcept;
  /// Ends the threads.
  void stop();
  // After stop().
  void add_to(TpccRunResult& result) const;
  Status failure() const;

 private:
  TpccControl control_;
  std::vector<std::unique_ptr<TpccUser>> users_;
  std::vector<std::thread> threads_;
};

}  // namespace flugs::bench
