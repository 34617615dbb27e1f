#pragma once

#include <atomic>
#include <cstdint>

#include "base/check.h"
#include "base/shared_words.h"
#include "flugs/status.h"
#include "mvcc/asymmetric_barrier.h"

namespace flugs::mvcc {

/// The source of time-stamps: a counter that every commit writes, or the time-stamp counters of the
/// processors, which no thread writes (decision 0024).
///
/// Both guarantee the following; "before" and "after" mean the order within a thread, or by a
/// message between threads:
///   read   a snapshot. At or above every time-stamp that was passed before; below every time-stamp
///          that is taken after it.
///   take   the time-stamp of a commit. A thread that reads a snapshot at or above it afterwards
///          sees what this thread stored before. The counter gives each time-stamp to one thread;
///          the processors may give the same to two: then the slots' numbers order the commits.
///   pass   returns when the time-stamp is in the past: every snapshot read from then on is at or
///          above it, and every thread that takes a time-stamp at or below it has done so.
///
/// The processors' counters run alike. The kernel tests at boot that no thread reads less than
/// another one had read before it sent a message; if the test fails, the kernel uses another clock
/// (`check_processors`). To allow for what the test may miss, the counters may differ by kSkew.
/// Thread-safety: any thread; use_processors and set before other threads use the clock.
class Clock {
 public:
  static constexpr std::uint64_t kTicksPerCommit = 256;  // of the processors: 1 to 2 us

  /// Says whether the processors' counters can be used, and if not, why.
  static Status check_processors();
  void use_processors() noexcept {
    is_of_processors_ = true;
    set(counter_.load(std::memory_order_relaxed));
  }
  bool is_of_processors() const noexcept { return is_of_processors_; }

  /// From here on all snapshots and time-stamps are above `latest`.
  void set(std::uint64_t latest) noexcept {
    counter_.store(latest, std::memory_order_seq_cst);
    if (is_of_processors_) offset_ = latest + 1 + kBehind + kSkew - ticks();
  }

  std::uint64_t read() const noexcept {
    if (__builtin_expect(is_of_processors_, 0)) return ticks() + offset_ - kBehind;
    note_read(SharedWord::kClock, &counter_);
    return counter_.load(std::memory_order_seq_cst);
  }
  /// At or above every snapshot that was read before; at or below every one that is read after it.
  std::uint64_t latest() const noexcept {
    return __builtin_expect(is_of_processors_, 0) ? ticks() + offset_ : read();
  }
  std::uint64_t lowest() const noexcept {
    return __builtin_expect(is_of_processors_, 0) ? ticks() + offset_ - kBehind - kSkew : read();
  }
  /// A snapshot from the processors, after an earlier one. If the clock goes back (the machine was
  /// suspended, or moved), commits would have no order, so the process ends.
  std::uint64_t read_after(std::uint64_t earlier) const noexcept {
    const std::uint64_t snapshot = ticks() + offset_ - kBehind;
    FLUGS_CHECK(snapshot + kSkew >= earlier);
    return snapshot;
  }
  std::uint64_t take() noexcept {
    if (__builtin_expect(is_of_processors_, 0)) {
      full_barrier();  // a thread that reads the time later sees what was stored
      return behind_all() + offset_;
    }
    note_write(SharedWord::kClock, &counter_);
    return counter_.fetch_add(1, std::memory_order_seq_cst) + 1;
  }
  /// For a caller that stores something next; a caller that looks at other threads' stores must
  /// `read` first.
  void pass(std::uint64_t timestamp) const noexcept {
    if (__builtin_expect(!is_of_processors_, 1)) return;
    while (at_least() + offset_ < timestamp + kBehind + kSkew) {
    }
  }
  /// A time-stamp above every snapshot read so far and not above any read from now on.
  std::uint64_t advance() noexcept {
    const std::uint64_t timestamp = take();
    pass(timestamp);
    return timestamp;
  }

 private:
  // A tick is 16 of the processor's, 4 to 8 ns. A pool may have seen 2^62 of them
  // (mvcc/transaction_slots.cc), which last 500 years and more.
  static constexpr int kShift = 4;
  static constexpr std::uint64_t kSkew = 16;           // some 100 ns: more than a line takes
  static constexpr std::uint64_t kBehind = 1 + kSkew;  // how far a snapshot is behind

  static std::uint64_t join(std::uint32_t high, std::uint32_t low) noexcept {
    return ((std::uint64_t{high} << 32) | low) >> kShift;
  }
  /// Reads the counter after all earlier instructions were executed, and before any later one is.
  /// No load or store moves across it, except that an earlier store may become visible later.
  static std::uint64_t ticks() noexcept {
    std::uint32_t low = 0;
    std::uint32_t high = 0;
    asm volatile("rdtscp\n\tlfence" : "=a"(low), "=d"(high) : : "rcx", "memory");
    return join(high, low);
  }
  /// Later instructions may be executed before it, but no later store is visible before.
  static std::uint64_t behind_all() noexcept {
    std::uint32_t low = 0;
    std::uint32_t high = 0;
    asm volatile("rdtscp" : "=a"(low), "=d"(high) : : "rcx", "memory");
    return join(high, low);
  }
  /// May read too early, while a flush is waited for, and then gives a lower time. No later store
  /// is visible before the read.
  static std::uint64_t at_least() noexcept {
    std::uint32_t low = 0;
    std::uint32_t high = 0;
    asm volatile("rdtsc" : "=a"(low), "=d"(high) : : "memory");
    return join(high, low);
  }

  // One line: when the counter is not in use, no thread writes to it.
  alignas(64) std::atomic<std::uint64_t> counter_{0};
  bool is_of_processors_ = false;
  std::uint64_t offset_ = 0;  // modulo 2^64
};

}  // namespace flugs::mvcc
