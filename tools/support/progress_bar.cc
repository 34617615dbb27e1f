#include "tools/support/progress_bar.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "bench/support/clock.h"

namespace flugs::tools {

namespace {

constexpr std::size_t kBarWidth = 30;
constexpr std::uint64_t kRedrawNs = 100'000'000;

}  // namespace

ProgressBar::ProgressBar() : terminal_(isatty(STDERR_FILENO) == 1) {}

void ProgressBar::update(std::string_view what, std::uint64_t done, std::uint64_t total) {
  if (!terminal_) return;
  const std::uint64_t now = bench::monotonic_ns();
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
