#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/support/invariant_report.h"
#include "bench/tatp/tatp_audit.h"
#include "bench/tatp/tatp_population.h"

namespace flugs::bench {

/// TATP's tables as another engine than flugs has them, collected row by row, in any order; then
/// held against the population and against what users were promised.
///
/// Thread-safety: one thread.
class TatpFindings {
 public:
  explicit TatpFindings(const Population& population);

  const Population& population() const noexcept { return population_; }

  // A row each. What contradicts T1 to T4 in itself is reported.
  /// `small`: bit_1..10, hex_1..10, byte2_1..10.
  void add_subscriber(std::int64_t s_id, std::string_view number,
                      std::span<const std::int64_t, 30> small, std::int64_t msc_location,
                      std::int64_t vlr_location);
  void add_access(std::int64_t s_id, std::int64_t type, std::int64_t data1, std::int64_t data2,
                  std::string_view data3, std::string_view data4);
  /// `numbers`: is_active, error_cntrl, data_a.
  void add_facility(std::int64_t s_id, std::int64_t type, std::span<const std::int64_t, 3> numbers,
                    std::string_view data_b);
  void add_forwarding(std::int64_t s_id, std::int64_t type, std::int64_t start_time,
                      std::int64_t end_time, std::string_view numberx);
  /// Where the index by number leads.
  void add_number(std::string_view number, std::int64_t s_id);

  /// T1 to T8, when every row has been added; once. `audit` is of all logs since the population.
  InvariantReport check(const TatpAudit& audit);

 private:
  SubscriberRecord* record(std::int64_t s_id, const char* table);
  /// Null, and reported, when there is no such type.
  template <typename Record>
  Record* record_of_type(std::array<Record, kTypesMax>& records, std::int64_t type,
                         const char* table);
  std::uint32_t number(std::int64_t value, std::int64_t min, std::int64_t max, const char* what);
  template <std::size_t size>
  void letters(std::string_view text, std::array<char, size>& out);
  void check_subscriber(std::uint32_t s_id);

  Population population_;
  std::vector<SubscriberRecord> records_;  ///< by id; an id of 0: not found
  InvariantReport report_;
};

}  // namespace flugs::bench
