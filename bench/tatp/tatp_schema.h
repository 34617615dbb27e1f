#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "flugs/database.h"

namespace flugs::bench {

/// TATP's four tables (TATP Benchmark Description 1.0). Positions of the columns that the
/// transactions name; the others are only ever read all at once.
struct TatpColumns {
  static constexpr std::size_t kSubscriberColumns = 34;
  static constexpr ColumnId kSubscriberId{0};
  static constexpr ColumnId kSubNbr{1};
  static constexpr ColumnId kBit1{2};
  static constexpr ColumnId kMscLocation{32};
  static constexpr ColumnId kVlrLocation{33};

  static constexpr ColumnId kAccessData1{2};
  static constexpr ColumnId kAccessData2{3};
  static constexpr ColumnId kAccessData3{4};
  static constexpr ColumnId kAccessData4{5};

  static constexpr ColumnId kFacilityType{1};
  static constexpr ColumnId kIsActive{2};
  static constexpr ColumnId kErrorControl{3};
  static constexpr ColumnId kDataA{4};
  static constexpr ColumnId kDataB{5};

  static constexpr ColumnId kForwardingType{1};
  static constexpr ColumnId kStartTime{2};
  static constexpr ColumnId kEndTime{3};
  static constexpr ColumnId kNumberx{4};
};

/// Tables and keys of a database that holds TATP.
struct TatpTables {
  TableId subscriber;
  TableId access_info;
  TableId special_facility;
  TableId call_forwarding;
  KeyId subscriber_by_id;
  KeyId subscriber_by_number;
  KeyId access_info_key;
  KeyId special_facility_key;
  KeyId call_forwarding_key;
};

/// CALL_FORWARDING.start_time.
inline constexpr std::array<std::uint8_t, 3> kStartTimes = {0, 8, 16};
/// Access and special facility types are 1 to 4.
inline constexpr std::uint32_t kTypesMax = 4;
inline constexpr std::size_t kSubNbrDigits = 15;

/// A subscriber's number: its id in decimal, padded with zeros to 15 digits.
class SubNbr {
 public:
  explicit SubNbr(std::uint32_t s_id) noexcept {
    for (std::size_t i = kSubNbrDigits; i-- > 0; s_id /= 10)
      digits_[i] = static_cast<char>('0' + s_id % 10);
  }
  std::string_view text() const noexcept { return {digits_.data(), digits_.size()}; }

 private:
  std::array<char, kSubNbrDigits> digits_;
};

/// The subscriber, of 1 to `subscribers`, that a number of 15 digits names, if there is one.
inline std::optional<std::uint32_t> subscriber_named(std::string_view number,
                                                     std::uint32_t subscribers) noexcept {
  if (number.size() != kSubNbrDigits) return std::nullopt;
  std::uint64_t id = 0;
  for (const char digit : number) {
    if (digit < '0' || digit > '9') return std::nullopt;
    id = id * 10 + static_cast<std::uint64_t>(digit - '0');
  }
  if (id < 1 || id > subscribers) return std::nullopt;
  return static_cast<std::uint32_t>(id);
}

/// Fails as Database::create_table; kAlreadyExists when the database holds TATP already.
Result<TatpTables> create_tatp_tables(Database& database);
/// Fails with kNotFound.
Result<TatpTables> find_tatp_tables(const Database& database);

}  // namespace flugs::bench
