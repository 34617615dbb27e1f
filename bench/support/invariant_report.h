#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace flugs::bench {

enum class Check : std::uint8_t { kNotChecked, kHeld, kBroken };

/// The invariants of the workload description.
enum class Invariant : std::uint8_t {
  kPopulation,    ///< T1: all rows of the population and their constant columns are as loaded
  kNumbers,       ///< T2: sub_nbr = pad15(s_id), both keys lead to the same row
  kDomains,       ///< T3
  kParents,       ///< T4: every CALL_FORWARDING row has its parent, keys are unique
  kCount,         ///< T5: |CALL_FORWARDING| = initial + inserted - deleted
  kSlots,         ///< T6: each slot is as its last acknowledged insert or delete left it
  kAcknowledged,  ///< T7: every other value is the one acknowledged last
  kAtomicity,     ///< T8: both halves of UPDATE_SUBSCRIBER_DATA or neither
};
inline constexpr std::size_t kInvariants = 8;

/// The result of a check.
///
/// Thread-safety: one thread each, merged afterwards.
class InvariantReport {
 public:
  /// `invariant` is looked at: it holds unless something is found.
  void check(Invariant invariant) noexcept;
  /// Says what is wrong, in words that name the row. Only the first few are kept.
  void broken(Invariant invariant, std::string problem);
  void lost_acknowledged() noexcept { ++lost_acknowledged_; }
  void merge(const InvariantReport& other);

  Check state(Invariant invariant) const noexcept {
    return states_[static_cast<std::size_t>(invariant)];
  }
  Check state(std::size_t index) const noexcept { return states_[index]; }
  bool all_held() const noexcept;  ///< none is broken
  /// Acknowledged writes that are not there.
  std::uint64_t lost_acknowledged_count() const noexcept { return lost_acknowledged_; }
  const std::vector<std::string>& problems() const noexcept { return problems_; }

 private:
  static constexpr std::size_t kProblemsMax = 20;

  std::array<Check, kInvariants> states_{};
  std::uint64_t lost_acknowledged_ = 0;
  std::vector<std::string> problems_;
};

}  // namespace flugs::bench
