#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>

namespace flugs::engine {

/// Which rows of a table opening has left for later to sweep (Table::sweep), in blocks. Once all
/// are swept, asking costs one load.
/// Thread-safety: any thread may ask; the rest is for the holder of the table's sweep mutex.
class UnsweptRows {
 public:
  static constexpr std::uint32_t kBlockRows = 256;

  struct Block {
    std::uint32_t first = 0;
    std::uint32_t end = 0;
  };

  /// Opening: all rows below `end`, a multiple of kBlockRows.
  void leave(std::uint32_t end) {
    blocks_ = end / kBlockRows;
    swept_ = std::make_unique<std::atomic<bool>[]>(blocks_);
    rows_.store(end, std::memory_order_relaxed);
    end_.store(end, std::memory_order_release);
  }

  bool has(std::uint32_t row) const noexcept {
    return row < end_.load(std::memory_order_acquire) &&
           !swept_[row / kBlockRows].load(std::memory_order_acquire);
  }
  bool any() const noexcept { return end_.load(std::memory_order_acquire) != 0; }
  std::uint32_t rows() const noexcept { return rows_.load(std::memory_order_relaxed); }

  static Block block_with(std::uint32_t row) noexcept {
    return {row / kBlockRows * kBlockRows, (row / kBlockRows + 1) * kBlockRows};
  }
  /// The first that is left. There must be one.
  Block first() noexcept {
    while (swept_[next_].load(std::memory_order_relaxed)) ++next_;
    return {next_ * kBlockRows, (next_ + 1) * kBlockRows};
  }
  /// A block has been swept.
  void note_swept(const Block& block) noexcept {
    swept_[block.first / kBlockRows].store(true, std::memory_order_release);
    if (rows_.fetch_sub(kBlockRows, std::memory_order_relaxed) == kBlockRows)
      end_.store(0, std::memory_order_release);
  }
  /// The table is dropped.
  void forget() noexcept {
    rows_.store(0, std::memory_order_relaxed);
    end_.store(0, std::memory_order_release);
  }

 private:
  std::atomic<std::uint32_t> end_{0};
  std::atomic<std::uint32_t> rows_{0};
  std::uint32_t blocks_ = 0;
  std::uint32_t next_ = 0;  // blocks before it have been swept
  std::unique_ptr<std::atomic<bool>[]> swept_;
};

}  // namespace flugs::engine
