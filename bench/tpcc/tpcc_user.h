#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "bench/support/clock.h"
#include "bench/support/closed_loop.h"
#include "bench/tpcc/tpcc_driver.h"
#include "bench/tpcc/tpcc_witness.h"

namespace flugs::bench {

/// One user, with everything that its thread writes: on cache lines of its own. A step is one
/// transaction.
class alignas(64) TpccUser final : public ClosedLoopUser {
 public:
  /// `make` outlives it.
  TpccUser(const MakeTpccSession& make, const TpccRunOptions& options, std::uint32_t index);

  Status prepare() override;
  Status step(bool is_sampled) override;

  /// After the thread has ended.
  void add_to(TpccRunResult& result) const;

 private:
  /// Until there is no conflict.
  Result<TpccOutcome> attempt(std::uint64_t& retries);
  Status log_begin();
  void log_end(TpccOutcome outcome);

  const MakeTpccSession& make_;
  const Ticks& clock_;
  std::uint32_t index_;
  TpccGenerator generator_;
  std::unique_ptr<TpccSession> session_;
  TpccRequest request_;
  TpccReceipt receipt_;
  std::optional<TpccLog> log_;
  std::int64_t last_time_us_ = 0;
  std::uint64_t checksum_ = 0;
  std::uint64_t skipped_deliveries_ = 0;
  std::array<TpccTypeResult, kTpccTypes> types_;
};

}  // namespace flugs::bench
