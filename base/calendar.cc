#include "base/calendar.h"

#include <fmt/format.h>

#include "base/check.h"

namespace flugs {

std::int64_t days_from_civil(std::int64_t year, unsigned month, unsigned day) noexcept {
  FLUGS_DCHECK(month >= 1 && month <= 12 && day >= 1 && day <= 31);
  year -= month <= 2;
  const std::int64_t era = (year >= 0 ? year : year - 399) / 400;
  const auto year_of_era = static_cast<unsigned>(year - era * 400);
  const unsigned day_of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
  const unsigned day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  return era * 146097 + static_cast<std::int64_t>(day_of_era) - 719468;
}

CivilDate civil_from_days(std::int64_t days) noexcept {
  days += 719468;
  const std::int64_t era = (days >= 0 ? days : days - 146096) / 146097;
  const auto day_of_era = static_cast<unsigned>(days - era * 146097);
  const unsigned year_of_era =
      (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  FLUGS_DCHECK(day_of_era < 146097 && year_of_era < 400);
  const unsigned day_of_year =
      day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const unsigned shifted_month = (5 * day_of_year + 2) / 153;
  const unsigned day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
  const unsigned month = shifted_month < 10 ? shifted_month + 3 : shifted_month - 9;
  return {static_cast<std::int64_t>(year_of_era) + era * 400 + (month <= 2), month, day};
}

std::string date_text(std::int64_t days_since_epoch) {
  const CivilDate date = civil_from_days(days_since_epoch);
  return fmt::format("{:04}-{:02}-{:02}", date.year, date.month, date.day);
}

std::string timestamp_text(std::int64_t microseconds_since_epoch) {
  constexpr std::int64_t kDay = 86'400'000'000;
  std::int64_t days = microseconds_since_epoch / kDay;
  std::int64_t rest = microseconds_since_epoch % kDay;
  if (rest < 0) {
    rest += kDay;
    --days;
  }
  const std::int64_t seconds = rest / 1'000'000;
  std::string text = fmt::format("{} {:02}:{:02}:{:02}", date_text(days), seconds / 3600,
                                 seconds / 60 % 60, seconds % 60);
  if (rest % 1'000'000 != 0) text += fmt::format(".{:06}", rest % 1'000'000);
  return text;
}

}  // namespace flugs
