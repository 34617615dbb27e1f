#include "proof/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <random>

namespace flugs::proof {

namespace {

constexpr std::string_view kNone = "none";

bool read_number(std::string_view words, std::uint32_t& number) {
  const auto [end, error] = std::from_chars(words.data(), words.data() + words.size(), number);
  return error == std::errc() && end == words.data() + words.size();
}

}  // namespace

std::string to_string(const Schedule& schedule) {
  if (schedule.empty()) return std::string(kNone);
  std::string words;
  for (const ScheduledSwitch& one : schedule)
    words += fmt::format("{}{}>{}", words.empty() ? "" : ".", one.point, one.thread);
  return words;
}

Result<Schedule> read_schedule(std::string_view words) {
  Schedule schedule;
  if (words == kNone) return schedule;
  for (std::size_t begin = 0; begin <= words.size();) {
    const std::size_t end = std::min(words.find('.', begin), words.size());
    const std::string_view one = words.substr(begin, end - begin);
    const std::size_t mark = std::min(one.find('>'), one.size());
    ScheduledSwitch read;
    if (mark == one.size() || !read_number(one.substr(0, mark), read.point) ||
        !read_number(one.substr(mark + 1), read.thread) ||
        (!schedule.empty() && schedule.back().point >= read.point))
      return Status(StatusCode::kInvalidArgument,
                    "schedule: expected none or <point>><thread>[.<point>><thread>]..., points "
                    "ascending");
    schedule.push_back(read);
    begin = end + 1;
  }
  return schedule;
}

// With a step that has no divisor in common with their number, every one comes once.
Schedule one_switch(std::uint64_t index, std::uint32_t points, std::uint32_t threads) {
  const std::uint64_t total = std::uint64_t{points} * threads;
  if (total == 0) return {};
  auto step = static_cast<std::uint64_t>(static_cast<double>(total) * 0.618) | 1;
  while (std::gcd(step, total) != 1) ++step;
  const std::uint64_t place = index * step % total;
  return {{static_cast<std::uint32_t>(place / threads),
           static_cast<std::uint32_t>(place % threads)}};
}

Schedule draw_schedule(std::uint64_t seed, std::uint32_t points, std::uint32_t threads) {
  if (points == 0 || threads == 0) return {};
  std::mt19937_64 random(seed);
  const std::uint64_t drawn = random() % 8;
  const std::uint64_t count = drawn < 7 ? 2 + drawn % 3 : points / 4 + 1;
  Schedule schedule;
  for (std::uint64_t i = 0; i < count; ++i)
    schedule.push_back({static_cast<std::uint32_t>(random() % points),
                        static_cast<std::uint32_t>(random() % threads)});
  const auto earlier = [](const auto& a, const auto& b) { return a.point < b.point; };
  const auto same = [](const auto& a, const auto& b) { return a.point == b.point; };
  std::stable_sort(schedule.begin(), schedule.end(), earlier);
  schedule.erase(std::unique(schedule.begin(), schedule.end(), same), schedule.end());
  return schedule;
}

}  // namespace flugs::proof
