#include "tools/report/curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "tools/support/text_table.h"

namespace flugs::tools {

namespace {

constexpr std::array<const char*, 9> kBlocks = {" ",      "\u2581", "\u2582", "\u2583", "\u2584",
                                                "\u2585", "\u2586", "\u2587", "\u2588"};
constexpr int kStepsPerLine = 8;
constexpr std::size_t kAxisWidth = 8;

bool terminal_has_blocks() {
  for (const char* variable : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(variable);
    if (value == nullptr || *value == '\0') continue;
    const std::string_view text = value;
    return text.find("UTF-8") != text.npos || text.find("utf8") != text.npos;
  }
  return false;
}

/// Executed at `time_ns`, on the straight line between the samples around it.
double executed_at(std::span<const ThroughputSample> samples, std::uint64_t time_ns) {
  const auto after = std::lower_bound(
      samples.begin(), samples.end(), time_ns,
      [](const ThroughputSample& sample, std::uint64_t time) { return sample.time_ns < time; });
  if (after == samples.end()) return static_cast<double>(samples.back().executed);
  if (after == samples.begin()) return static_cast<double>(after->executed);
  const auto before = std::prev(after);
  const double share = static_cast<double>(time_ns - before->time_ns) /
                       static_cast<double>(after->time_ns - before->time_ns);
  return static_cast<double>(before->executed) +
         share * static_cast<double>(after->executed - before->executed);
}

}  // namespace

double throughput(std::span<const ThroughputSample> samples, std::uint64_t begin_ns,
                  std::uint64_t end_ns) {
  if (samples.empty() || end_ns <= begin_ns) return 0;
  return (executed_at(samples, end_ns) - executed_at(samples, begin_ns)) /
         (static_cast<double>(end_ns - begin_ns) * 1e-9);
}

std::uint64_t time_of_throughput(std::span<const ThroughputSample> samples, std::uint64_t begin_ns,
                                 double tps, std::uint64_t window_ns) {
  for (const ThroughputSample& sample : samples) {
    const std::uint64_t end_ns = sample.time_ns;
    if (end_ns < begin_ns + window_ns) continue;
    if (throughput(samples, end_ns - window_ns, end_ns) >= tps) return end_ns;
  }
  return 0;
}

std::string CurveText::draw(std::span<const double> values) const {
  const bool blocks = terminal_has_blocks();
  const double top = *std::max_element(values.begin(), values.end());
  const double steps = static_cast<double>(height) * kStepsPerLine;
  std::string text = fmt::format("{:>{}}\n", unit, kAxisWidth);
  for (std::size_t line = height; line-- > 0;) {
    const bool labelled = line + 1 == height || line == 0 || line + 1 == height / 2;
    const double label = top * static_cast<double>(line + 1) / static_cast<double>(height);
    text +=
        fmt::format("{:>{}} |", labelled ? format_count(line == 0 ? 0 : label) : "", kAxisWidth);
    for (const double value : values) {
      const double level = top > 0 ? value / top * steps : 0;
      const int filled =
          std::clamp(static_cast<int>(std::lround(level)) - static_cast<int>(line) * kStepsPerLine,
                     0, kStepsPerLine);
      text += blocks ? kBlocks[static_cast<std::size_t>(filled)]
                     : (filled > kStepsPerLine / 2 ? "#" : " ");
    }
    text += "\n";
  }
  std::string axis(values.size(), '-');
  axis[std::min(mark, axis.size() - 1)] = '^';
  text += fmt::format("{:>{}} +{}\n", "", kAxisWidth, axis);
  std::string labels(values.size() + mark_label.size(), ' ');
  labels.replace(0, begin_label.size(), begin_label);
  labels.replace(std::max(mark, begin_label.size() + 1), mark_label.size(), mark_label);
  labels.resize(std::max(values.size(), mark + mark_label.size() + 1 + end_label.size()), ' ');
  labels.replace(labels.size() - end_label.size(), end_label.size(), end_label);
  return text + fmt::format("{:>{}}  {}\n", "", kAxisWidth, labels);
}

}  // namespace flugs::tools
