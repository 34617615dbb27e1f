#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "flugs/status.h"
#include "pmem/medium/line_journal.h"

namespace flugs::pmem {

class Medium;

inline constexpr std::size_t kLineBytes = 64;
static_assert((kLineBytes & (kLineBytes - 1)) == 0);  // Persister::line_of takes it for a mask

/// `bytes` up to the end of its last line.
constexpr std::uint64_t whole_lines(std::uint64_t bytes) noexcept {
  return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
}

/// Names the place in the sources where a store is made durable: "commit/1" is step 1 of protocol
/// "commit", whose table is above the function that performs it. Recorders and checkers distinguish
/// places by it.
using Label = const char*;

/// Work done to make stores durable. Counts since the queried object was made.
struct PersistCounters {
  std::uint64_t lines_flushed = 0;
  std::uint64_t fences = 0;
  std::uint64_t bytes_written = 0;  ///< bytes handed to flush(), before rounding to lines

  PersistCounters& operator+=(const PersistCounters& other) noexcept {
    lines_flushed += other.lines_flushed;
    fences += other.fences;
    bytes_written += other.bytes_written;
    return *this;
  }
};
// Their sum above and Persister::counters name each of them; any thread loads each by itself.
static_assert(sizeof(PersistCounters) == 3 * sizeof(std::uint64_t));
static_assert(std::atomic_ref<std::uint64_t>::is_always_lock_free &&
              std::atomic_ref<std::uint64_t>::required_alignment <= alignof(PersistCounters));

/// The instruction that writes a line back, best last; kEadr: none, because the caches survive a
/// power cut, too, and a fence suffices. What the processor has is found at run time; the
/// environment variable FLUGS_FLUSH (clflush, clflushopt, clwb, eadr) overrides it, because
/// Valgrind knows fewer instructions than the processor.
enum class FlushInstruction : std::uint8_t { kClflush, kClflushopt, kClwb, kEadr };
FlushInstruction flush_instruction(bool has_durable_caches) noexcept;
std::string_view to_string(FlushInstruction instruction) noexcept;

/// How the Persisters of one medium work; the Medium keeps it up to date.
struct FlushRoute {
  bool is_direct = false;  ///< instructions and counters only: no observer, latency or journal
  FlushInstruction instruction = FlushInstruction::kClflush;
};

/// The one flush primitive: every store that must reach the medium goes through an object of this
/// class. One owner thread at a time. A fence concerns only the flushes of its own Persister.
///
/// A fence orders: after a power cut, whatever any thread made durable after it is there only if
/// the flushes before it are. On media with flush instructions they are durable when it returns; on
/// a medium with a journal, `wait_durable` waits for that. A protocol needs the order; a promise to
/// the user needs the wait.
///
/// A locked instruction right after a flush waits for the write-back (160 ns): flush last.
///
/// Source: SOFORT (DaMoN 2014), section 3.1, with CLWB where the processor has it.
class Persister {
 public:
  explicit Persister(Medium& medium);
  Persister(const Persister&) = delete;
  Persister& operator=(const Persister&) = delete;
  /// Must not be destroyed between a flush and its fence (checked).
  ~Persister();

  /// Begins to write back every line that [address, address + bytes) touches.
  void flush(const void* address, std::size_t bytes, Label label) noexcept {
    if (bytes == 0) return;
    const std::uintptr_t first = line_of(address);
    const std::uintptr_t end = reinterpret_cast<std::uintptr_t>(address) + bytes;
    const std::uint64_t lines = (end - first + kLineBytes - 1) / kLineBytes;
    unfenced_lines_ += lines;
    add(counters_.lines_flushed, lines);
    add(counters_.bytes_written, bytes);
    if (__builtin_expect(route_.is_direct, 1)) {
      write_back(first, end, route_.instruction);
    } else {
      flush_indirect(address, bytes, label);
    }
  }

  /// As flush, for bytes that only their owner can reach: neither another thread nor a pointer in
  /// the pool does. On a medium with a journal many such bytes go to the pool's file at once, and
  /// are durable when it returns; it waits for the device then.
  void flush_unshared(void* address, std::size_t bytes, Label label) noexcept {
    if (__builtin_expect(route_.is_direct, 1)) {
      flush(address, bytes, label);
    } else {
      flush_pages(static_cast<std::byte*>(address), bytes, label);
    }
  }

  /// Orders everything flushed through this object before it. A fence with nothing flushed before
  /// it costs nothing and is not counted.
  void fence(Label label) noexcept {
    if (unfenced_lines_ == 0) return;
    add(counters_.fences, 1);
    if (__builtin_expect(route_.is_direct, 1)) {
      drain();
    } else {
      fence_indirect(label);
    }
    unfenced_lines_ = 0;
  }

  /// Everything before the last fence of this object is durable when this returns ok. Waits, and
  /// may fail, only on a medium with a journal: as LineJournal::wait_durable.
  Status wait_durable() {
    return __builtin_expect(route_.is_direct, 1) ? Status() : wait_for_journal();
  }

  /// The same at some time soon, without waiting for it: as LineJournal::want_durable.
  Status want_durable(std::chrono::microseconds within) {
    return __builtin_expect(route_.is_direct, 1) ? Status() : want_of_journal(within);
  }

  /// On a medium with a journal: the place in it behind the last fence of this object.
  JournalPlace appended() const noexcept { return appended_; }

  /// flush and fence.
  void persist(const void* address, std::size_t bytes, Label label) noexcept {
    flush(address, bytes, label);
    fence(label);
  }

  /// Stores zeros and flushes them.
  void zero(void* address, std::size_t bytes, Label label) noexcept;
  /// Stores zeros. The caller calls flush_unshared later for all bytes that it needs. The zeros are
  /// flushed where flush_unshared would flush them a second time anyway: without a journal.
  void zero_unshared(void* address, std::size_t bytes, Label label) noexcept;

  bool has_unfenced_flushes() const noexcept { return unfenced_lines_ != 0; }

  /// Thread-safety: any thread; the owner's latest steps may be missing.
  PersistCounters counters() const noexcept;

 private:
  static std::uintptr_t line_of(const void* address) noexcept {
    return reinterpret_cast<std::uintptr_t>(address) & ~std::uintptr_t{kLineBytes - 1};
  }
  /// One thread writes a counter, so a relaxed load and store suffice: no locked instruction may
  /// follow a flush. Partner: counters().
  static void add(std::uint64_t& counter, std::uint64_t amount) noexcept {
    const std::atomic_ref<std::uint64_t> ref(counter);
    ref.store(ref.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }
  /// The instructions are written in assembler, because the compiler's intrinsics for them can be
  /// inlined only if the whole caller is compiled for a processor that has them.
  static void write_back(std::uintptr_t first, std::uintptr_t end,
                         FlushInstruction instruction) noexcept {
    asm volatile("" ::: "memory");  // the stores before must not be moved behind the flush
    switch (instruction) {
      case FlushInstruction::kClwb:
        for (; first < end; first += kLineBytes) asm volatile("clwb (%0)" ::"r"(first) : "memory");
        break;
      case FlushInstruction::kClflushopt:
        for (; first < end; first += kLineBytes) {
          asm volatile("clflushopt (%0)" ::"r"(first) : "memory");
        }
        break;
      case FlushInstruction::kClflush:
        for (; first < end; first += kLineBytes) {
          asm volatile("clflush (%0)" ::"r"(first) : "memory");
        }
        break;
      case FlushInstruction::kEadr:
        break;
    }
  }
  static void drain() noexcept { asm volatile("sfence" ::: "memory"); }

  void flush_indirect(const void* address, std::size_t bytes, Label label) noexcept;
  void fence_indirect(Label label) noexcept;
  void flush_pages(std::byte* address, std::size_t bytes, Label label) noexcept;
  void note_lines(const void* address, std::size_t bytes) noexcept;
  void append_noted_lines() noexcept;
  Status wait_for_journal();
  Status want_of_journal(std::chrono::microseconds within);

  // Owned and written by one thread, read by any: relaxed atomics, via std::atomic_ref.
  alignas(64) PersistCounters counters_;
  std::uint64_t unfenced_lines_ = 0;
  const FlushRoute& route_;
  Medium& medium_;
  // With a journal: the lines that the next fence must append, and the place behind the last.
  std::vector<LineRun> noted_;
  std::uint64_t noted_lines_ = 0;
  JournalPlace appended_ = 0;
};

}  // namespace flugs::pmem
