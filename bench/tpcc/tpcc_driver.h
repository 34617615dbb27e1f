#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>

#include "bench/support/closed_loop.h"
#include "bench/support/histogram.h"
#include "bench/tpcc/tpcc_request.h"
#include "bench/tpcc/tpcc_session.h"

namespace flugs::bench {

inline constexpr std::uint32_t kTpccUsersMax = 64;

class TpccWitness;

/// A run of TPC-C on any database: every user is a thread that issues one transaction after the
/// other, without think times. Its warehouse stays the same: number 1 + user mod warehouses.
struct TpccRunOptions {
  TpccOptions population;
  std::uint32_t users = 1;
  TpccMix mix = TpccMix::kFull;
  std::uint64_t seed = 1;
  /// Where users log what they were promised; null: nowhere.
  TpccWitness* witness = nullptr;
  ClosedLoopOptions loop;
};

/// What became of one type's transactions that began within the sampling period.
struct TpccTypeResult {
  std::uint64_t executed = 0;     ///< committed, or rolled back as they had to be
  std::uint64_t rolled_back = 0;  ///< New-Orders with an item that does not exist
  std::uint64_t retries = 0;      ///< attempts that ended with a conflict, and were begun again
  Histogram latency;              ///< of those executed, retries included
};

struct TpccRunResult {
  ClosedLoopResult loop;
  std::array<TpccTypeResult, kTpccTypes> types;
  Histogram latency;                     ///< of all types
  std::uint64_t skipped_deliveries = 0;  ///< districts without an open order
  std::uint64_t checksum = 0;            ///< of everything read

  std::uint64_t executed() const noexcept;
  std::uint64_t retries() const noexcept;
  /// Transactions executed that write, without those rolled back.
  std::uint64_t writes_committed() const noexcept;
  /// One of these counts per second; 0 when nothing was sampled.
  double per_second(std::uint64_t count) const noexcept;
};

/// Gives the session of one user; called in its thread.
using MakeTpccSession = std::function<Result<std::unique_ptr<TpccSession>>(std::uint32_t user)>;

/// Fails with the first failure of a transaction that must not fail, or of making a session.
Result<TpccRunResult> run_tpcc(const MakeTpccSession& make, const TpccRunOptions& options);

}  // namespace flugs::bench
