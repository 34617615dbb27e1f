#pragma once

#include <atomic>
#include <cstdint>

#include "base/check.h"
#include "base/shared_words.h"
#include "flugs/status.h"
#include "mvcc/asymmetric_barrier.h"

namespace flugs::mvcc {

/// Where time-stamps come from: a counter that every commit writes, or the time-stamp counters of
/// the processors, which nobody writes (decision 0024).
///
/// What holds of either, with "before" and "after" as a thread or a message between threads tells:
///   read   a snapshot. At or above every time-stamp that was passed before; below every one that
///          is taken after it.
///   take   the time-stamp of a commit. Whoever reads a snapshot at or above it afterwards sees
///          what this thread stored before. The counter gives each to one thread; the processors
///          may give the same to two: the slots' numbers then say who was first.
///   pass   returns when the time-stamp is in the past: every snapshot read from then on is at or
///          above it, and whoever takes one at or below it has done so.
///
/// The processors' counters run alike: the kernel tests at boot that no thread which was told by
/// another one reads less than that had read, and goes by another clock if one does
/// (`check_processors`). What the test may have missed is allowed for: they may differ by kSkew.
/// Thread-safety: any thread; use_processors and set before anybody else is there.
class Clock {
 public:
  static constexpr std::uint64_t kTicksPerCommit = 256;  // of the processors: 1 to 2 us

  /// Whether the processors' counters can be used; why not.
  static Status check_processors();
  void use_processors() noexcept {
    is_of_processors_ = true;
    set(counter_.load(std::memory_order_relaxed));
  }
  bool is_of_processors() const noexcept { return is_of_processors_; }

  /// From here on everything is above `latest`.
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
  /// A snapshot of the processors, behind an earlier one. A clock that goes back (the machine was
  /// suspended, or moved) would give an order that is none: the process ends.
  std::uint64_t read_after(std::uint64_t earlier) const noexcept {
    const std::uint64_t snapshot = ticks() + offset_ - kBehind;
    FLUGS_CHECK(snapshot + kSkew >= earlier);
    return snapshot;
  }
  std::uint64_t take() noexcept {
    if (__builtin_expect(is_of_processors_, 0)) {
      full_barrier();  // what was stored is seen by whoever reads the time later
      return behind_all() + offset_;
    }
    note_write(SharedWord::kClock, &counter_);
    return counter_.fetch_add(1, std::memory_order_seq_cst) + 1;
  }
  /// For who has something to store then; who is going to look at what others did `reads` it next.
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
  // A tick is 16 of the processor's, 4 to 8 ns: 2^62 of them, as many as a pool may have seen
  // (mvcc/transaction_slots.cc), are 500 years and more.
  static constexpr int kShift = 4;
  static constexpr std::uint64_t kSkew = 16;           // some 100 ns: more than a line takes
  static constexpr std::uint64_t kBehind = 1 + kSkew;  // what a snapshot is behind

  static std::uint64_t join(std::uint32_t high, std::uint32_t low) noexcept {
    return ((std::uint64_t{high} << 32) | low) >> kShift;
  }
  /// Read when all instructions before have been executed, and before any behind it is: neither
  /// loads nor stores are moved across it, but for stores from before, which may be seen later.
  static std::uint64_t ticks() noexcept {
    std::uint32_t low = 0;
    std::uint32_t high = 0;
    asm volatile("rdtscp\n\tlfence" : "=a"(low), "=d"(high) : : "rcx", "memory");
    return join(high, low);
  }
  /// What is behind it may be executed before; stores are not seen before.
  static std::uint64_t behind_all() noexcept {
    std::uint32_t low = 0;
    std::uint32_t high = 0;
    asm volatile("rdtscp" : "=a"(low), "=d"(high) : : "rcx", "memory");
    return join(high, low);
  }
  /// May be read too early, while a flush is waited for, and is so much lower. No store from behind
  /// it is seen before it was read.
  static std::uint64_t at_least() noexcept {
    std::uint32_t low = 0;
    std::uint32_t high = 0;
    asm volatile("rdtsc" : "=a"(low), "=d"(high) : : "memory");
    return join(high, low);
  }

  // One line: when it is not the counter that is used, nobody writes to it.
  alignas(64) std::atomic<std::uint64_t> counter_{0};
  bool is_of_processors_ = false;
  std::uint64_t offset_ = 0;  // modulo 2^64
};

}  // namespace flugs::mvcc
