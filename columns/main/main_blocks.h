#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "columns/main/main_kernels.h"

namespace flugs::columns {

/// Bits 0 to count - 1; count is at most 64.
constexpr std::uint64_t low_bits(unsigned count) noexcept {
  FLUGS_DCHECK(count <= 64);
  return count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
}

/// Calls `word(index, bits)` for each word that has bits of [first, first + count).
template <typename Word>
void for_words(std::size_t first, std::size_t count, const Word& word) {
  while (count != 0) {
    const std::size_t here = std::min<std::size_t>(64 - first % 64, count);
    word(first / 64, low_bits(static_cast<unsigned>(here)) << (first % 64));
    first += here;
    count -= here;
  }
}
inline void set_bits(std::uint64_t* words, std::size_t first, std::size_t count) {
  for_words(first, count, [&](std::size_t i, std::uint64_t bits) { words[i] |= bits; });
}
inline void clear_bits(std::uint64_t* words, std::size_t first, std::size_t count) {
  for_words(first, count, [&](std::size_t i, std::uint64_t bits) { words[i] &= ~bits; });
}
/// Number of set bits in [first, first + count); all of them without a mask.
inline std::size_t count_bits(const std::uint64_t* words, std::size_t first, std::size_t count) {
  if (words == nullptr) return count;
  std::size_t found = 0;
  if (first % 64 == 0 && count >= 512) {
    found = kernels().bits_set(words + first / 64, count / 64);
    first += count / 64 * 64;
    count %= 64;
  }
  for_words(first, count, [&](std::size_t i, std::uint64_t bits) {
    found += static_cast<unsigned>(std::popcount(words[i] & bits));
  });
  return found;
}

/// Calls `blocks(first block, count, mask)` for the blocks of 64 rows in [first, first + count). A
/// last block with fewer rows comes alone, with a mask of its rows. `first` is a multiple of 64;
/// `mask` may be null, and begins at `first`.
template <typename Blocks>
void for_blocks(std::uint32_t first, std::uint32_t count, const std::uint64_t* mask,
                const Blocks& blocks) {
  FLUGS_DCHECK(first % 64 == 0);
  const std::size_t whole = count / 64;
  if (whole != 0) blocks(std::size_t{first / 64}, whole, mask);
  if (count % 64 == 0) return;
  const std::uint64_t rest =
      low_bits(count % 64) & (mask != nullptr ? mask[whole] : ~std::uint64_t{0});
  blocks(first / 64 + whole, std::size_t{1}, &rest);
}

/// MainKernels::members by looking up each code that the kernel `codes` unpacks.
template <typename Codes>
void members_one_by_one(const Codes& codes, PackedCodes packed, std::size_t first,
                        std::size_t count, const std::uint64_t* wanted, std::uint32_t limit,
                        std::uint64_t* mask) {
  FLUGS_DCHECK(packed.bits <= 32);
  constexpr std::size_t kStep = 16;
  std::uint32_t unpacked[kStep * 64];
  for (std::size_t done = 0; done < count; done += kStep) {
    const std::size_t blocks = std::min(kStep, count - done);
    if (std::all_of(mask + done, mask + done + blocks, [](std::uint64_t w) { return w == 0; }))
      continue;
    codes(packed, first + done, blocks, limit, unpacked);
    for (std::size_t w = 0; w < blocks; ++w) {
      std::uint64_t found = 0;
      for (unsigned i = 0; i < 64; ++i) {
        const std::uint32_t code = unpacked[w * 64 + i];
        found |= ((wanted[code / 64] >> (code % 64)) & 1) << i;
      }
      mask[done + w] &= found;
    }
  }
}

}  // namespace flugs::columns
