#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace flugs::tools {

/// One line on the terminal: how far something is, how fast it goes, and when it will be there.
/// Nothing when standard error is no terminal.
///
/// Thread-safety: one thread.
class ProgressBar {
 public:
  ProgressBar();
  /// Wipes the line.
  ~ProgressBar() { clear(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// Draws at most ten times a second. `total` 0: not known. `unit` is the plural of what is
  /// counted; without it the line has no rate. Rate and time left begin anew with another `what`.
  void update(std::string_view what, std::uint64_t done, std::uint64_t total,
              std::string_view unit = {});
  void clear();

 private:
  bool terminal_;
  std::uint64_t drawn_ns_ = 0;
  std::string what_;
  std::uint64_t begun_ns_ = 0;    ///< with `what_`
  std::uint64_t begun_done_ = 0;  ///< `done` at that time
  std::size_t width_ = 0;         ///< of what is on the terminal
};

/// "4.10 M rows/s, 12 s left" after `done` of `total` in `seconds`: what can be said of these.
std::string describe_pace(std::uint64_t done, std::uint64_t total, double seconds,
                          std::string_view unit);

}  // namespace flugs::tools
