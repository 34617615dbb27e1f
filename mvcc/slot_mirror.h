#pragma once

#include <atomic>
#include <cstdint>

namespace flugs::mvcc {

enum class SlotState : std::uint8_t {
  kActive = 0,      ///< may still write; has no commit time-stamp
  kCommitting = 1,  ///< is getting or has its time-stamp; not durable yet
  kCommitted = 2,   ///< durable: visible from its time-stamp on
  kAborted = 3,
};

/// DRAM: how other transactions see a slot (the slots' DRAM mirror of design section 5).
///
/// `state` holds generation and SlotState in one word. Its owner stores with release; readers load
/// with acquire, so that whoever sees kCommitted sees the time-stamp, and whoever sees a later
/// generation sees all stamps of the earlier one.
struct SlotMirror {
  struct alignas(32) Half {
    std::atomic<std::uint64_t> state{0};
    std::atomic<std::uint64_t> timestamp{0};  ///< 0: not known yet
  };
  static constexpr std::uint64_t pack(std::uint64_t generation, SlotState state) noexcept {
    return (generation << 2) | static_cast<std::uint64_t>(state);
  }
  static constexpr std::uint64_t generation_in(std::uint64_t packed) noexcept { return packed >> 2; }
  static constexpr SlotState state_in(std::uint64_t packed) noexcept {
    return static_cast<SlotState>(packed & 3);
  }

  static constexpr std::uint64_t kNoSnapshot = ~std::uint64_t{0};

  alignas(64) Half half[2];
  // A line of its own: every begin writes it, and only garbage collection and threads that look
  // for a slot read it.
  alignas(64) std::atomic<std::uint64_t> snapshot{kNoSnapshot};
  std::atomic<std::uint64_t> owner{0};   ///< token of the thread that may take the slot; 0: any
  std::atomic<std::uint32_t> active{0};  ///< 1 while a transaction has the slot
};

}  // namespace flugs::mvcc
