#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace flugs::tools {

/// One line on the terminal that says how far something is; nothing when standard error is none.
///
/// Thread-safety: one thread.
class ProgressBar {
 public:
  ProgressBar();
  /// Wipes the line.
  ~ProgressBar() { clear(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// Draws at most ten times a second. `total` 0: not known.
  void update(std::string_view what, std::uint64_t done, std::uint64_t total);
  void clear();

 private:
  bool terminal_;
  std::uint64_t drawn_ns_ = 0;
  std::size_t width_ = 0;  ///< of what is on the terminal
};

}  // namespace flugs::tools
