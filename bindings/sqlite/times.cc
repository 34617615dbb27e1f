#include "bindings/sqlite/times.h"

#include <array>
#include <chrono>
#include <cstdio>

namespace flugs::sqlite {

namespace {

/// Takes `count` digits off the front.
bool take_digits(std::string_view& text, std::size_t count, int& out) noexcept {
  if (text.size() < count) return false;
  out = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (text[i] < '0' || text[i] > '9') return false;
    out = out * 10 + (text[i] - '0');
  }
  text.remove_prefix(count);
  return true;
}

bool take_one(std::string_view& text, char c) noexcept {
  if (text.empty() || text.front() != c) return false;
  text.remove_prefix(1);
  return true;
}

bool take_date(std::string_view& text, std::int64_t& days) noexcept {
  int year = 0;
  int month = 0;
  int day = 0;
  if (!take_digits(text, 4, year) || !take_one(text, '-') || !take_digits(text, 2, month) ||
      !take_one(text, '-') || !take_digits(text, 2, day))
    return false;
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) return false;
  days = std::chrono::sys_days(date).time_since_epoch().count();
  return true;
}

/// "HH:MM[:SS[.f]]", in microseconds.
bool take_time(std::string_view& text, std::int64_t& time) noexcept {
  int hour = 0;
  int minute = 0;
  int second = 0;
  std::int64_t fraction = 0;
  if (!take_digits(text, 2, hour) || !take_one(text, ':') || !take_digits(text, 2, minute))
    return false;
  if (take_one(text, ':')) {
    if (!take_digits(text, 2, second)) return false;
    if (take_one(text, '.')) {
      int digit = 0;
      std::int64_t unit = 100'000;
      if (!take_digits(text, 1, digit)) return false;
      do {
        if (unit == 0) return false;
        fraction += digit * unit;
        unit /= 10;
      } while (take_digits(text, 1, digit));
    }
  }
  if (hour > 23 || minute > 59 || second > 59) return false;
  time = (std::int64_t{hour} * 3600 + minute * 60 + second) * 1'000'000 + fraction;
  return true;
}

}  // namespace

bool read_date(std::string_view text, Value& out) noexcept {
  std::int64_t days = 0;
  if (!take_date(text, days) || !text.empty()) return false;
  out = Value::date(static_cast<std::int32_t>(days));
  return true;
}

bool read_timestamp(std::string_view text, Value& out) noexcept {
  std::int64_t days = 0;
  std::int64_t time = 0;
  if (!take_date(text, days)) return false;
  if (!text.empty()) {
    if (!take_one(text, ' ') && !take_one(text, 'T')) return false;
    if (!take_time(text, time)) return false;
    take_one(text, 'Z');
    if (!text.empty()) return false;
  }
  out = Value::timestamp(days * kMicrosecondsPerDay + time);
  return true;
}

bool read_canonical_timestamp(std::string_view text, Value& out) noexcept {
  Value found;
  std::array<char, kTimeTextMax> again;
  if (!read_timestamp(text, found)) return false;
  if (std::string_view(again.data(), write_timestamp(found.raw(), again.data())) != text)
    return false;
  out = found;
  return true;
}

std::size_t write_date(std::int64_t days, char* out) noexcept {
  const std::chrono::year_month_day date{std::chrono::sys_days(std::chrono::days(days))};
  const int size =
      std::snprintf(out, kTimeTextMax, "%04d-%02u-%02u", static_cast<int>(date.year()),
                    static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
  return static_cast<std::size_t>(size);
}

std::size_t write_timestamp(std::int64_t microseconds, char* out) noexcept {
  std::int64_t days = microseconds / kMicrosecondsPerDay;
  std::int64_t rest = microseconds % kMicrosecondsPerDay;
  if (rest < 0) {
    rest += kMicrosecondsPerDay;
    --days;
  }
  std::size_t size = write_date(days, out);
  const auto seconds = static_cast<unsigned>(rest / 1'000'000);
  size += static_cast<std::size_t>(std::snprintf(out + size, kTimeTextMax - size, " %02u:%02u:%02u",
                                                 seconds / 3600, seconds / 60 % 60, seconds % 60));
  if (const auto fraction = static_cast<unsigned>(rest % 1'000'000); fraction != 0)
    size +=
        static_cast<std::size_t>(std::snprintf(out + size, kTimeTextMax - size, ".%06u", fraction));
  return size;
}

}  // namespace flugs::sqlite
