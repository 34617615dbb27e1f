#pragma once

#include <atomic>
#include <cstdint>

namespace flugs::mvcc {

enum class SlotState : std::uint8_t {
  kActive = 0,      ///< may still write; has no commit time-stamp
  kCommitting = 1,  ///< is taking or has its time-stamp; not visible yet
  kCommitted = 2,   ///< durable, or ordered (soon): visible from its time-stamp on
  kAborted = 3,
};

/// A thread's word about its home, the slot that it takes without a locked instruction. Never
/// freed, because a thread that looks for an idle slot may read it at any time; a thread that ends
/// leaves it to the next one.
struct SlotClaim {
  /// Names the home slot while a transaction has it, else 0. Only the claim's thread sets it; the
  /// thread that ends the transaction clears it.
  alignas(64) std::atomic<std::uint64_t> in_use{0};
  // For the claim's thread only.
  std::uint64_t home_slots_id = 0;
  std::uint32_t home_index = 0;
  std::uint32_t number = 0;
};

/// DRAM: how other transactions see a slot (the slots' DRAM mirror of design section 5).
///
/// `state` holds generation and SlotState in one word. Its owner stores with release; readers load
/// with acquire. So a reader that sees kCommitted also sees the time-stamp, and a reader that sees
/// a later generation also sees all stamps of the earlier one.
struct SlotMirror {
  struct alignas(32) Half {
    std::atomic<std::uint64_t> state{0};
    std::atomic<std::uint64_t> timestamp{0};  ///< 0: not known yet
    // One of two groups of commits of the slot, of either half (DurableTime): the time-stamp of the
    // first, and where the last ends in the journal.
    std::atomic<std::uint64_t> pending_since{0};
    std::atomic<std::uint64_t> pending_end{0};
  };
  static constexpr std::uint64_t pack(std::uint64_t generation, SlotState state) noexcept {
    return (generation << 2) | static_cast<std::uint64_t>(state);
  }
  static constexpr std::uint64_t generation_in(std::uint64_t packed) noexcept {
    return packed >> 2;
  }
  static constexpr SlotState state_in(std::uint64_t packed) noexcept {
    return static_cast<SlotState>(packed & 3);
  }

  static constexpr std::uint64_t kNoSnapshot = ~std::uint64_t{0};

  alignas(64) Half half[2];
  // A line of its own: every begin writes it, and only garbage collection and threads that look
  // for a slot read it.
  alignas(64) std::atomic<std::uint64_t> snapshot{kNoSnapshot};
  /// Null: free. `pinned()`: a transaction has it until it ends. Else the claim of the thread whose
  /// home it is; then a transaction has the slot if and only if the claim's `in_use` names it.
  std::atomic<SlotClaim*> owner{nullptr};
  /// Not 0: another thread has a message for the transaction, which checks this in every call.
  std::atomic<std::uint32_t> attention{0};
  static SlotClaim* pinned() noexcept;
};
static_assert(SlotMirror::state_in(SlotMirror::pack(7, SlotState::kAborted)) ==
              SlotState::kAborted);
static_assert(SlotMirror::generation_in(SlotMirror::pack(7, SlotState::kAborted)) == 7);
static_assert(sizeof(SlotMirror::Half) == 32);
static_assert(sizeof(SlotMirror) == 128);  // both halves on a line, the rest on another

}  // namespace flugs::mvcc
