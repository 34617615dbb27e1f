#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace flugs::tools {

/// How many transactions had been executed at some moment (CLOCK_MONOTONIC nanoseconds).
struct ThroughputSample {
  std::uint64_t time_ns = 0;
  std::uint64_t executed = 0;
};

/// Transactions per second between two moments, interpolated between samples; 0 outside of them.
double throughput(std::span<const ThroughputSample> samples, std::uint64_t begin_ns,
                  std::uint64_t end_ns);

/// When transactions first ran at `tps` or more for `window_ns`: the end of that window, looked for
/// from `begin_ns` on. 0: never.
std::uint64_t time_of_throughput(std::span<const ThroughputSample> samples, std::uint64_t begin_ns,
                                 double tps, std::uint64_t window_ns);

/// A curve as lines of text with an axis to the left, columns of blocks (of # when the terminal's
/// character set is not UTF-8), and below it what the first and the last column and the one at
/// `mark` stand for.
struct CurveText {
  std::size_t height = 8;
  std::string unit;  ///< above the axis
  std::string begin_label;
  std::string mark_label;
  std::string end_label;
  std::size_t mark = 0;  ///< a column

  std::string draw(std::span<const double> values) const;
};

}  // namespace flugs::tools
