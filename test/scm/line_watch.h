#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace flugs::test {

/// Learns from the processor which lines of a pool the starting thread reads or stores to, without
/// the compiler's checks, so that these can be tested against it. Flushes do not count.
///
/// No page of the pool is accessible. Each instruction that accesses one gets a signal, whose
/// handler notes the address, allows the page, and lets the instruction run alone. It notes the
/// first byte of an access, so an access across two lines is seen in its first line only. One watch
/// at a time; other threads may use the pool meanwhile.
class LineWatch {
 public:
  /// The pool that this process mapped last (the linker sends its calls of mmap here).
  static std::span<std::byte> pool();

  /// Watches that pool from now on; or, if `opens`, the one that is mapped next.
  explicit LineWatch(bool opens = false);
  LineWatch(const LineWatch&) = delete;
  LineWatch& operator=(const LineWatch&) = delete;
  ~LineWatch() { stop(); }

  void stop();
  /// After stop(): numbers of the accessed lines from the beginning of the pool, in order.
  std::vector<std::size_t> lines() const;
  /// The instruction that first touched the line, as addr2line -e takes it: "program+0x1234".
  std::string place_of(std::size_t line) const;
};

}  // namespace flugs::test
