#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "flugs/value.h"

// Dates and moments as texts that SQLite's own functions of date and time read. Years have four
// digits, so that texts are ordered as times are.

namespace flugs::sqlite {

inline constexpr std::int64_t kMicrosecondsPerDay = std::int64_t{24} * 3600 * 1'000'000;
inline constexpr std::size_t kTimeTextMax = 48;

/// "2026-11-27"; a date of a year of four digits. False: it is none.
bool read_date(std::string_view text, Value& out) noexcept;
/// A date, or a date, a space or a T, "HH:MM" or "HH:MM:SS" or "HH:MM:SS.f", up to six digits f,
/// and perhaps a Z.
bool read_timestamp(std::string_view text, Value& out) noexcept;
/// Only the form that write_timestamp gives.
bool read_canonical_timestamp(std::string_view text, Value& out) noexcept;

/// Both return the length of the text.
std::size_t write_date(std::int64_t days, char* out) noexcept;
/// "2026-11-27 10:20:30", and ".000001" only if there is a fraction.
std::size_t write_timestamp(std::int64_t microseconds, char* out) noexcept;

}  // namespace flugs::sqlite
