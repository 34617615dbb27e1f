#pragma once

#include <cstddef>

#include "pmem/medium/persist.h"

namespace flugs::pmem {

/// Flushes ranges given in ascending order, and joins close ones. All of them are flushed when the
/// object is destroyed. Thread-safety: one thread, as the Persister.
class FlushRun {
 public:
  FlushRun(Persister& persister, Label label) noexcept : persister_(persister), label_(label) {}
  ~FlushRun() { flush(); }
  FlushRun(const FlushRun&) = delete;
  FlushRun& operator=(const FlushRun&) = delete;

  void add(const void* address, std::size_t bytes) {
    const auto* first = static_cast<const std::byte*>(address);
    if (begin_ == nullptr || first < end_ || first > end_ + kGapMax) {
      flush();
      begin_ = first;
    }
    end_ = first + bytes;
  }

 private:
  // Flushing the lines in between costs less than another call.
  static constexpr std::size_t kGapMax = 128;

  void flush() {
    if (begin_ != nullptr)
      persister_.flush(begin_, static_cast<std::size_t>(end_ - begin_), label_);
    begin_ = nullptr;
  }

  Persister& persister_;
  Label label_;
  const std::byte* begin_ = nullptr;
  const std::byte* end_ = nullptr;
};

}  // namespace flugs::pmem
