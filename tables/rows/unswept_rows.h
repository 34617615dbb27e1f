#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/check.h"
#include "base/spin_lock.h"

namespace flugs::engine {

/// The rows of a table that opening has left to be swept later (RowSweep), in blocks. The thread
/// that takes a block sweeps it; only a caller that needs all rows waits for the blocks of others.
/// Once all are swept, asking costs one load.
/// Thread-safety: any thread, except leave.
class UnsweptRows {
 public:
  static constexpr std::uint32_t kBlockRows = 256;

  /// Opening: all rows below `end`, a multiple of kBlockRows.
  void leave(std::uint32_t end) {
    FLUGS_CHECK(end % kBlockRows == 0 && states_ == nullptr);
    blocks_ = end / kBlockRows;
    states_ = std::make_unique<std::atomic<State>[]>(blocks_);
    left_.store(blocks_, std::memory_order_relaxed);
    end_.store(end, std::memory_order_release);
  }

  bool has(std::uint32_t row) const noexcept {
    return row < end_.load(std::memory_order_acquire) &&
           states_[row / kBlockRows].load(std::memory_order_acquire) != State::kSwept;
  }
  bool any() const noexcept { return end_.load(std::memory_order_acquire) != 0; }
  std::uint32_t rows() const noexcept { return left_.load(std::memory_order_relaxed) * kBlockRows; }

  /// False: another thread has taken it, or it is swept.
  bool take(std::uint32_t block) noexcept {
    FLUGS_DCHECK(block < blocks_);
    // Count first, then check that there still is a table (pairs with forget).
    taken_.fetch_add(1, std::memory_order_seq_cst);
    State left = State::kLeft;
    if (end_.load(std::memory_order_seq_cst) != 0 &&
        states_[block].compare_exchange_strong(left, State::kTaken, std::memory_order_acq_rel))
      return true;
    taken_.fetch_sub(1, std::memory_order_release);
    return false;
  }
  /// Takes the first block that no thread has taken; kNone: there is none.
  static constexpr std::uint32_t kNone = 0xFFFFFFFFu;
  std::uint32_t take_next() noexcept {
    for (std::uint32_t block = next_.load(std::memory_order_relaxed); block < blocks_; ++block)
      if (states_[block].load(std::memory_order_relaxed) == State::kLeft && take(block)) {
        next_.store(block, std::memory_order_relaxed);
        return block;
      }
    return kNone;
  }
  /// A block that was taken has been swept.
  void note_swept(std::uint32_t block) noexcept {
    FLUGS_DCHECK(states_[block].load(std::memory_order_relaxed) == State::kTaken);
    states_[block].store(State::kSwept, std::memory_order_release);
    if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1)
      end_.store(0, std::memory_order_release);
    taken_.fetch_sub(1, std::memory_order_release);
  }
  /// Waits until the blocks that other threads have taken are swept. Every block must be taken or
  /// swept.
  void wait_until_swept() const noexcept {
    for (SpinWait wait; any();) wait.once();
  }
  /// Called when the table is dropped: on return no thread sweeps rows of it.
  void forget() noexcept {
    end_.store(0, std::memory_order_seq_cst);
    for (SpinWait wait; taken_.load(std::memory_order_seq_cst) != 0;) wait.once();
    left_.store(0, std::memory_order_relaxed);
  }

 private:
  enum class State : std::uint8_t { kLeft, kTaken, kSwept };

  std::atomic<std::uint32_t> end_{0};
  std::atomic<std::uint32_t> left_{0};   // blocks that are not swept
  std::atomic<std::uint32_t> taken_{0};  // blocks that are being swept
  std::atomic<std::uint32_t> next_{0};   // blocks before it have been taken
  std::uint32_t blocks_ = 0;
  std::unique_ptr<std::atomic<State>[]> states_;
};

}  // namespace flugs::engine
