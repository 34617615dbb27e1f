#pragma once

#include <cstdint>
#include <string>

namespace flugs {

/// A day of the proleptic Gregorian calendar.
struct CivilDate {
  std::int64_t year = 1970;
  unsigned month = 1;  ///< 1 to 12
  unsigned day = 1;    ///< 1 to 31
};

/// Days since 1970-01-01 and back.
/// Source: Howard Hinnant, "chrono-compatible low-level date algorithms".
std::int64_t days_from_civil(std::int64_t year, unsigned month, unsigned day) noexcept;
CivilDate civil_from_days(std::int64_t days) noexcept;

/// "2026-11-25".
std::string date_text(std::int64_t days_since_epoch);
/// "2026-11-25 18:45:00", with microseconds unless they are 0.
std::string timestamp_text(std::int64_t microseconds_since_epoch);

}  // namespace flugs
