#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/shared_words.h"
#include "bench/support/clock.h"
#include "bench/support/histogram.h"
#include "bench/tatp/tatp_transactions.h"
#include "bench/tatp/witness.h"
#include "flugs/database.h"

namespace flugs::bench {

inline constexpr std::uint32_t kLookaheadMax = 63;

/// A run of TATP: every user is a thread that issues one transaction after the other.
struct TatpRunOptions {
  std::uint32_t users = 1;
  double ramp_up_seconds = 0;
  double seconds = 10;  ///< of sampling
  TatpMix mix = TatpMix::kFull;
  TatpDistribution distribution = TatpDistribution::kNuRand;
  Isolation isolation = Isolation::kSnapshot;
  CommitOptions commit = {};
  bool prepares = false;  ///< users look rows up through Database::prepare
  std::uint64_t seed = 1;
  /// Transactions that a user knows of beyond the one it executes, as a server knows those that
  /// wait in its queue: it has what they look up first fetched. 0: a closed loop, each is drawn
  /// when the one before has ended. At most kLookaheadMax.
  std::uint32_t lookahead = 0;
  /// Look for merges in the sampling period, and at what they cost.
  bool watches_merges = false;
  /// Where users log what they were promised and count what they did; null: nowhere.
  Witness* witness = nullptr;
  /// Told now and then with the seconds gone and the seconds in all; returning false stops the run.
  std::function<bool(double, double)> progress;
};

/// What became of one type's transactions that began within the sampling period.
struct TatpTypeResult {
  std::uint64_t executed = 0;
  std::uint64_t found = 0;  ///< found or changed something
  Histogram latency;        ///< of those that rule B counts, retries included
  /// In a build that counts them: accesses to words that threads share.
  SharedWordCounts shared_words;
};

struct TatpRunResult {
  double seconds = 0;  ///< sampled, as measured
  std::array<TatpTypeResult, kTatpTypes> types;
  Histogram latency;                      ///< of all types
  std::uint64_t retries = 0;              ///< of conflicts, within the sampling period
  std::uint64_t foreign_key_missing = 0;  ///< INSERT_CALL_FORWARDING, within the sampling period
  std::uint64_t forwarding_inserted = 0;  ///< committed, ramp-up included
  std::uint64_t forwarding_deleted = 0;
  std::vector<double> tps_by_second;  ///< executed, ramp-up left out
  /// Throughput while a merge was at work, divided by that while none was; see MergeWatch.
  std::optional<double> share_during_merge;
  Histogram location_during_merge;  ///< UPDATE_LOCATION's latency then, as rule B counts
  Statistics before;                ///< at the begin of sampling
  Statistics after;
  std::uint64_t dram_bytes = 0;  ///< of the process, at the end of sampling
  ProcessorTime processor;       ///< of all threads, while it was sampled
  std::uint64_t checksum = 0;    ///< of everything read
  Status failure;                ///< the first transaction that may not fail and did

  std::uint64_t executed() const noexcept;
  /// Bytes of the values that transactions inserted or changed; see `committed_bytes` of a type.
  std::uint64_t committed_bytes() const noexcept;
  /// Rule A leaves out failed inserts, B also updates and deletes that found no row, C every
  /// transaction that found nothing (workload description, "what counts").
  std::uint64_t counted_by_rule_a() const noexcept;
  std::uint64_t counted_by_rule_b() const noexcept;
  std::uint64_t counted_by_rule_c() const noexcept;
  /// One of these counts per second; 0 when nothing was sampled.
  double per_second(std::uint64_t count) const noexcept;
  /// A counter's growth within the sampling period for each committed write transaction; 0 without.
  double per_write(std::uint64_t Statistics::* counter) const noexcept;
  /// A number of nanoseconds for each of them; 0 without.
  double ns_per_write(std::uint64_t ns) const noexcept;
  /// The same for each executed transaction.
  double per_executed(std::uint64_t Statistics::* counter) const noexcept;
};

TatpRunResult run_tatp(Database& database, const TatpTables& tables, const Population& population,
                       const TatpRunOptions& options);

}  // namespace flugs::bench
