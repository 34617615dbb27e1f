#include "tools/support/progress_bar.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "bench/support/clock.h"
#include "tools/support/text_table.h"

namespace flugs::tools {

namespace {

constexpr std::size_t kBarWidth = 20;
constexpr std::uint64_t kRedrawNs = 100'000'000;
constexpr double kPaceSecondsMin = 0.3;

/// Characters that fit in a line: a longer one could not be drawn over.
std::size_t terminal_width() {
  constexpr std::size_t kUnknown = 80;
  struct winsize size{};
  const bool is_known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return (is_known ? size.ws_col : kUnknown) - 1;
}

}  // namespace

std::string describe_pace(std::uint64_t done, std::uint64_t total, double seconds,
                          std::string_view unit) {
  // Earlier both would be guesses.
  if (done == 0 || seconds < kPaceSecondsMin) return {};
  const double rate = static_cast<double>(done) / seconds;
  std::string text;
  if (!unit.empty()) {
    const std::string number = rate < 10 ? fmt::format("{:.1f}", rate) : format_count(rate);
    text = fmt::format("{} {}/s", number, unit);
  }
  if (total <= done) return text;
  const auto left = static_cast<std::uint64_t>(static_cast<double>(total - done) / rate + 0.5);
  text += text.empty() ? "" : ", ";
  if (left < 60) return text + fmt::format("{} s left", left);
  if (left < 3600) return text + fmt::format("{} min {} s left", left / 60, left % 60);
  return text + fmt::format("{} h {} min left", left / 3600, left / 60 % 60);
}

ProgressBar::ProgressBar() : terminal_(isatty(STDERR_FILENO) == 1) {}

void ProgressBar::update(std::string_view what, std::uint64_t done, std::uint64_t total,
                         std::string_view unit) {
  if (!terminal_) return;
  const std::uint64_t now = bench::monotonic_ns();
  if (what != what_ || done < begun_done_) {
    what_ = what;
    begun_ns_ = now;
    begun_done_ = done;
  }
  if (drawn_ns_ != 0 && now - drawn_ns_ < kRedrawNs) return;
  drawn_ns_ = now;
  std::string line(what);
  if (total > 0) {
    const double share = static_cast<double>(std::min(done, total)) / static_cast<double>(total);
    const auto full = static_cast<std::size_t>(share * kBarWidth);
    line = fmt::format("{:<12} [{}{}] {:3.0f} %", what, std::string(full, '#'),
                       std::string(kBarWidth - full, '.'), share * 100);
  } else if (done > 0) {
    line = fmt::format("{:<12} {}", what, done);
  }
  const double seconds = static_cast<double>(now - begun_ns_) * 1e-9;
  if (const std::string pace = describe_pace(
          done - begun_done_, total > begun_done_ ? total - begun_done_ : 0, seconds, unit);
      !pace.empty())
    line += "  " + pace;
  line.resize(std::min(line.size(), terminal_width()));
  fmt::print(stderr, "\r{:<{}}", line, width_);
  std::fflush(stderr);
  width_ = line.size();
}

void ProgressBar::clear() {
  if (width_ == 0) return;
  fmt::print(stderr, "\r{}\r", std::string(width_, ' '));
  std::fflush(stderr);
  width_ = 0;
  drawn_ns_ = 0;
}

}  // namespace flugs::tools
