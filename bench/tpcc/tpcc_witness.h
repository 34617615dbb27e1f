#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <string>

#include "bench/support/shared_file.h"
#include "bench/tpcc/tpcc_session.h"
#include "flugs/status.h"

namespace flugs::bench {

/// One write transaction of one user, logged before it begins and again when its commit has
/// returned.
struct TpccEntry {
  enum State : std::uint8_t {
    kNothing = 0,  ///< ends the log: no effect, or not used yet
    kBegun = 1,    ///< may have been in flight when the process was killed
    kAcknowledged = 2,
  };
  std::int64_t time_us = 0;  ///< no other transaction of the user has the same
  std::int64_t amount = 0;
  std::uint32_t w = 0;
  std::uint32_t d = 0;
  std::uint32_t customer_w = 0;
  std::uint32_t customer_d = 0;
  std::uint32_t customer = 0;  ///< 0: known when it is acknowledged
  std::uint32_t line_count = 0;
  std::uint32_t carrier = 0;
  std::uint32_t order = 0;                                        ///< New-Order, acknowledged
  std::array<std::uint32_t, kDistrictsPerWarehouse> delivered{};  ///< Delivery, acknowledged
  TpccType type = TpccType::kNewOrder;
  std::uint8_t state = kNothing;
};

/// The promises to users of TPC-C, in a file outside of the database: what a killed process had
/// stored there stays. The logs are of one life of the process. The process that kills it audits
/// the database and clears the logs.
class TpccWitness {
 public:
  /// What the process must do; constant.
  struct Plan {
    char pool_path[1024] = {};
    TpccOptions population;
    std::uint32_t users = 1;
    std::uint64_t seed = 1;
    std::uint64_t log_entries = 0;        ///< for each user
    std::uint32_t merge_interval_ms = 0;  ///< how often tables are merged by themselves; 0: never
    bool indexes_in_dram = false;
    bool process_crash_only = false;  ///< commits with Durability::kProcessCrash
  };

  /// Makes the file. Fails with kIoError, kAlreadyExists, kInvalidArgument (the users).
  static Result<TpccWitness> create(const std::string& path, const Plan& plan);
  /// Maps an existing one. Fails with kIoError, kIncompatible.
  static Result<TpccWitness> open(const std::string& path);

  TpccWitness() noexcept = default;

  const Plan& plan() const noexcept;
  /// Lives of the process so far, this one included.
  std::atomic<std::uint32_t>& life() const noexcept;
  /// 1 while users work.
  std::atomic<std::uint32_t>& is_running() const noexcept;

  /// The entries of one user.
  std::span<const TpccEntry> log(std::uint32_t user) const noexcept;
  std::span<TpccEntry> log_space(std::uint32_t user) noexcept;
  void clear_logs() noexcept;
  /// The earliest time in the logs; INT64_MAX when they are empty.
  std::int64_t first_time_us() const noexcept;

 private:
  struct Header;
  Header& header() const noexcept { return *reinterpret_cast<Header*>(file_.data()); }

  SharedFile file_;
};

/// Writes one user's log. Thread-safety: one thread.
class TpccLog {
 public:
  TpccLog(TpccWitness& witness, std::uint32_t user) noexcept
      : space_(witness.log_space(user)), next_(witness.log(user).size()) {}

  bool full() const noexcept { return next_ == space_.size(); }
  /// Before a write transaction begins. Must not be full.
  void begin(const TpccRequest& request) noexcept;
  /// commit has returned ok.
  void acknowledge(const TpccReceipt& receipt) noexcept;
  /// It ended without effect.
  void forget() noexcept;

 private:
  std::span<TpccEntry> space_;
  std::size_t next_ = 0;
};

}  // namespace flugs::bench
