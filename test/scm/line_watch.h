#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace flugs::test {

/// Finds out from the processor which lines of a pool the thread that starts it reads or stores to:
/// without the compiler's checks, so that these can be held against it. Flushes do not count.
///
/// No page of the pool may be accessed. Each instruction that does it all the same gets a signal,
/// whose handler notes the address, allows the page, and lets the instruction run alone. What is
/// noted is the first byte of an access, so that one which reaches into the next line is seen in
/// its first line only. One watch at a time; other threads may use the pool meanwhile.
class LineWatch {
 public:
  /// Of the pool that this process has mapped last (the linker sends its calls of mmap here).
  static std::span<std::byte> pool();

  /// From now on, in that pool; or, if `opens`, in the one that is mapped next.
  explicit LineWatch(bool opens = false);
  LineWatch(const LineWatch&) = delete;
  LineWatch& operator=(const LineWatch&) = delete;
  ~LineWatch() { stop(); }

  void stop();
  /// After stop(): numbers of lines from the beginning of the pool, in order, each once.
  std::vector<std::size_t> lines() const;
  /// The instruction that touched it first, as addr2line -e takes it: "program+0x1234".
  std::string place_of(std::size_t line) const;
};

}  // namespace flugs::test
