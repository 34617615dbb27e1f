#include "verify/crash/rig/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <random>

namespace flugs::crash {

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

// The step has no common divisor with the number of points, so each point comes once.
Schedule one_switch(std::uint64_t index, const TurnOwners& turns, std::uint32_t threads) {
  std::vector<std::uint32_t> points[2];
  for (std::uint32_t i = 0; i < turns.size(); ++i) points[turns[i].is_flush ? 1 : 0].push_back(i);
  const std::uint64_t others = threads - 1;
  const bool is_flush = index >= points[0].size() * others;
  if (is_flush) index -= points[0].size() * others;
  const std::vector<std::uint32_t>& chosen = points[is_flush ? 1 : 0];
  const std::uint64_t total = chosen.size() * others;
  if (total == 0) return {};
  auto step = static_cast<std::uint64_t>(static_cast<double>(total) * 0.618) | 1;
  while (std::gcd(step, total) != 1) ++step;
  const std::uint64_t place = index * step % total;
  const std::uint32_t point = chosen[place / others];
  const auto further = static_cast<std::uint32_t>(place % others);
  return {{point, (turns[point].thread + 1 + further) % threads}};
}

Schedule draw_schedule(std::uint64_t seed, std::uint32_t points, std::uint32_t threads) {
  if (points == 0 || threads == 0) return {};
  std::mt19937_64 random(seed);
  const std::uint64_t drawn = random() % 6;
  const std::uint64_t count = drawn < 3 ? 2 + drawn : points / (drawn * 2) + 1;
  Schedule schedule;
  for (std::uint64_t i = 0; i < count; ++i)
    schedule.push_back({static_cast<std::uint32_t>(random() % points),
                        static_cast<std::uint32_t>(random() % threads)});
  const auto earlier = [](const auto& a, const auto& b) {
    return a.point != b.point ? a.point < b.point : a.thread < b.thread;
  };
  const auto same = [](const auto& a, const auto& b) { return a.point == b.point; };
  std::sort(schedule.begin(), schedule.end(), earlier);
  schedule.erase(std::unique(schedule.begin(), schedule.end(), same), schedule.end());
  return schedule;
}

std::size_t watched_from(const Schedule& schedule) {
  if (schedule.empty()) return 0;
  std::size_t sum = 0;
  for (const ScheduledSwitch& one : schedule) sum += one.point * 7 + one.thread;
  return sum % schedule.size();
}

}  // namespace flugs::crash
