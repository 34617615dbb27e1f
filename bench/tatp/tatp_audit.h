#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bench/support/invariant_report.h"
#include "bench/tatp/tatp_population.h"
#include "bench/tatp/tatp_state.h"
#include "bench/tatp/witness.h"

namespace flugs::bench {

/// T1: everything but bit_1, vlr_location, data_a and the forwarding rows is as the population has
/// it.
void check_constant_columns(const SubscriberRecord& expected, const SubscriberRecord& actual,
                            InvariantReport& report);

/// What one logged transaction did, or may have done, to one field of one subscriber.
struct TatpEffect {
  std::uint32_t s_id = 0;
  std::uint16_t field = 0;
  bool in_flight = false;  ///< not acknowledged when its process was killed
  std::uint32_t life = 0;
  std::uint32_t value = 0;
  std::uint64_t commit_timestamp = 0;
};

/// Holds the states of subscribers against the logs of a witness.
///
/// Acknowledged transactions on a field follow each other by commit time-stamp; one in flight when
/// its process was killed took effect at some point of that life, or not at all.
///
/// Thread-safety: reading it may be shared.
class TatpAudit {
 public:
  explicit TatpAudit(const Witness& witness);
  /// Takes logged entries directly, for tests.
  explicit TatpAudit(std::span<const WitnessEntry> entries);

  /// T6 and T7 for one subscriber: `base` before the logs, `actual` as found.

  void check_subscriber(std::uint32_t s_id, const TatpState& base, const TatpState& actual,
                        InvariantReport& report) const;

  /// T7: no commit time-stamp was given out twice, none of a later life is below an earlier one's.
  void check_timestamps(InvariantReport& report) const;

  /// T5: `base_rows` before the logs, `actual_rows` found.
  void check_count(std::uint64_t base_rows, std::uint64_t actual_rows,
                   InvariantReport& report) const;

  std::uint64_t entries() const noexcept { return entries_; }
  std::uint64_t in_flight() const noexcept { return in_flight_; }

 private:
  void add(const WitnessEntry& entry);
  void sort();
  void check_field(std::span<const TatpEffect> effects, std::uint32_t base, std::uint32_t actual,
                   InvariantReport& report) const;

  std::vector<TatpEffect> effects_;  ///< by subscriber, field, life, in flight last, time-stamp
  std::uint64_t entries_ = 0;
  std::uint64_t in_flight_ = 0;
  std::uint64_t unstamped_ = 0;  ///< acknowledged without a commit time-stamp
};

}  // namespace flugs::bench
