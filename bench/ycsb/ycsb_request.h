#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <set>
#include <string_view>

#include "bench/support/random.h"
#include "bench/ycsb/ycsb_numbers.h"
#include "bench/ycsb/ycsb_rows.h"

namespace flugs::bench {

enum class YcsbType : std::uint8_t { kRead, kUpdate, kInsert, kScan, kReadModifyWrite };
inline constexpr std::size_t kYcsbTypes = 5;
inline constexpr std::array<std::string_view, kYcsbTypes> kYcsbTypeNames = {
    "read", "update", "insert", "scan", "read-modify-write"};
constexpr std::size_t index_of(YcsbType type) noexcept { return static_cast<std::size_t>(type); }
constexpr bool writes(YcsbType type) noexcept {
  return type != YcsbType::kRead && type != YcsbType::kScan;
}

/// YCSB's core workloads A to F, and that of SiloR.
enum class YcsbWorkload : std::uint8_t { kA, kB, kC, kD, kE, kF, kSilor };
inline constexpr std::array<std::string_view, 7> kYcsbWorkloadNames = {"a", "b", "c",    "d",
                                                                       "e", "f", "silor"};

/// What a workload is made of.
struct YcsbMix {
  std::array<std::uint32_t, kYcsbTypes> percent{};
  YcsbDistribution distribution = YcsbDistribution::kScrambled;
  std::uint32_t scan_max = 100;  ///< rows of a scan: uniform from 1 to this
};
YcsbMix ycsb_mix(YcsbWorkload workload) noexcept;
/// The rows of a workload: `records` as YCSB has them, those of SiloR with one field.
YcsbRows ycsb_rows(YcsbWorkload workload, std::uint64_t records) noexcept;

/// One operation, which is one transaction.
struct YcsbRequest {
  YcsbType type = YcsbType::kRead;
  std::uint64_t number = 0;   ///< of the row; of a scan the first one
  std::uint32_t field = 0;    ///< of an update
  std::uint32_t length = 0;   ///< of a scan: rows at most
  std::uint64_t version = 0;  ///< of what is written; the run gives none twice
};

/// The rows of a run: those loaded, and those inserted since. Numbers are given out in order, and
/// count as there when all below them are acknowledged, so no reader looks for a row that is not
/// there yet.
///
/// Thread-safety: any thread.
class YcsbInserts {
 public:
  explicit YcsbInserts(std::uint64_t records);

  std::uint64_t take() noexcept { return next_.fetch_add(1, std::memory_order_relaxed); }
  void acknowledge(std::uint64_t number);
  /// Rows that are there: numbers below it.
  std::uint64_t there() const noexcept { return there_.load(std::memory_order_acquire); }

 private:
  std::atomic<std::uint64_t> next_;
  std::atomic<std::uint64_t> there_;
  std::mutex mutex_;
  std::set<std::uint64_t> acknowledged_;  ///< numbers that wait for lower ones; mutex_
};

/// Draws one user's operations.
class YcsbGenerator {
 public:
  /// Users with different indexes give different versions. `inserts` outlives it.
  YcsbGenerator(const YcsbRows& rows, const YcsbMix& mix, YcsbInserts& inserts, std::uint64_t seed,
                std::uint32_t user);

  void next(YcsbRequest& request);

 private:
  static constexpr unsigned kVersionBitsOfUser = 40;

  YcsbRows rows_;
  YcsbMix mix_;
  YcsbInserts& inserts_;
  Random random_;
  YcsbNumbers numbers_;
  std::uint64_t version_;
};

}  // namespace flugs::bench
