#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "flugs/function_ref.h"

namespace flugs::columns {

/// The texts of a heap that some row needs, as a sweep finds them (StringHeap::begin_sweep).
/// Takes a 64th of the heap's bytes in DRAM, and half as much again.
/// Thread-safety: one thread at a time.
class TextMarks final {
 public:
  struct Chunk {
    std::uint64_t offset = 0;
    std::uint64_t begin = 0;                   ///< where the first text may lie
    std::uint64_t end = 0;                     ///< no text from before the sweep lies behind it
    std::uint64_t written_from = 0;            ///< from here on all texts are of this process
    std::vector<std::uint64_t> used = {};      ///< bit per grain from `offset` on
    std::vector<std::uint64_t> kept = {};      ///< as StringHeap keeps them
    std::vector<std::uint64_t> was_kept = {};  ///< when the sweep began
  };
  static constexpr std::uint64_t kBytesPerKeptBit = 16;

  /// `chunks` have no marks yet.
  explicit TextMarks(std::vector<Chunk> chunks);

  /// A row has the text of `bytes` bytes at `offset`. Texts elsewhere than in the chunks do not
  /// count. `is_shared`: not only rows side by side have it.
  void mark(std::uint64_t offset, std::uint64_t bytes, bool is_shared) noexcept;
  /// Whether the place was part of the heap when the sweep began.
  bool covers(std::uint64_t offset) const noexcept { return chunk_with(offset) != kNone; }
  /// Calls `found` with the offset and bytes of each range that no marked text has.
  void for_each_gap(FunctionRef<void(std::uint64_t offset, std::uint64_t bytes)> found) const;
  const std::vector<Chunk>& chunks() const noexcept { return chunks_; }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};
  std::size_t chunk_with(std::uint64_t offset) const noexcept;

  std::vector<Chunk> chunks_;  // by offset
};

}  // namespace flugs::columns
