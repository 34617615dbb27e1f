#include <algorithm>
#include <array>
#include <bit>

#include "base/check.h"
#include "columns/main/main_blocks.h"
#include "columns/main/main_kernels.h"

namespace flugs::columns {
namespace {

using Block = std::array<std::uint64_t, 64>;

void unpack(PackedCodes codes, std::size_t block, Block& out) {
  FLUGS_DCHECK(is_code_width(codes.bits));
  const PackedCodes here{codes.blocks + block * codes.bits, codes.bits};
  for (std::size_t i = 0; i < 64; ++i) out[i] = here[i];
}

void codes(PackedCodes codes, std::size_t first, std::size_t count, std::uint32_t limit,
           std::uint32_t* out) {
  FLUGS_DCHECK(codes.bits <= 32);
  Block block;
  for (std::size_t b = 0; b < count; ++b, out += 64) {
    unpack(codes, first + b, block);
    for (std::size_t i = 0; i < 64; ++i)
      out[i] = std::min(static_cast<std::uint32_t>(block[i]), limit);
  }
}

void values(PackedCodes codes, std::size_t first, std::size_t count, std::uint64_t base,
            std::int64_t* out) {
  Block block;
  for (std::size_t b = 0; b < count; ++b, out += 64) {
    unpack(codes, first + b, block);
    for (std::size_t i = 0; i < 64; ++i) out[i] = static_cast<std::int64_t>(base + block[i]);
  }
}

void decode(PackedCodes codes, std::size_t first, std::size_t count, const std::int64_t* entries,
            std::uint32_t limit, std::int64_t* out) {
  FLUGS_DCHECK(codes.bits <= 32);
  Block block;
  for (std::size_t b = 0; b < count; ++b, out += 64) {
    unpack(codes, first + b, block);
    for (std::size_t i = 0; i < 64; ++i) out[i] = entries[std::min<std::uint64_t>(block[i], limit)];
  }
}

void filter(PackedCodes codes, std::size_t first, std::size_t count, std::uint64_t low,
            std::uint64_t high, bool outside, std::uint64_t* mask) {
  FLUGS_DCHECK(codes.bits == 64 || (low <= high && high <= codes.mask()));
  Block block;
  for (std::size_t b = 0; b < count; ++b) {
    if (mask[b] == 0) continue;
    unpack(codes, first + b, block);
    std::uint64_t found = 0;
    for (std::size_t i = 0; i < 64; ++i) found |= std::uint64_t{block[i] - low <= high - low} << i;
    mask[b] &= outside ? ~found : found;
  }
}

void members(PackedCodes packed, std::size_t first, std::size_t count, const std::uint64_t* wanted,
             std::uint32_t limit, std::uint64_t* mask) {
  members_one_by_one(codes, packed, first, count, wanted, limit, mask);
}

CodeSum sum(PackedCodes codes, std::size_t first, std::size_t count, std::uint64_t origin,
            bool count_not_zero, const std::uint64_t* mask) {
  FLUGS_DCHECK(origin == 0 || codes.bits == 64);
  Block block;
  CodeSum result;
  for (std::size_t b = 0; b < count; ++b) {
    const std::uint64_t wanted = mask != nullptr ? mask[b] : ~std::uint64_t{0};
    if (wanted == 0) continue;
    unpack(codes, first + b, block);
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    for (std::size_t i = 0; i < 64; ++i) {
      const std::uint64_t x = (block[i] - origin) & (0 - ((wanted >> i) & 1));
      low += x & 0xFFFFFFFFu;
      high += x >> 32;
      if (count_not_zero) result.not_zero += x != 0 ? 1 : 0;
    }
    result.sum += low;
    result.sum += UInt128{high} << 32;
  }
  return result;
}

CodeExtremes extremes(PackedCodes codes, std::size_t first, std::size_t count,
                      std::uint64_t origin_of_min, std::uint64_t origin_of_max,
                      const std::uint64_t* mask) {
  Block block;
  CodeExtremes found;
  for (std::size_t b = 0; b < count; ++b) {
    const std::uint64_t wanted = mask != nullptr ? mask[b] : ~std::uint64_t{0};
    if (wanted == 0) continue;
    unpack(codes, first + b, block);
    for (std::size_t i = 0; i < 64; ++i) {
      const std::uint64_t selected = 0 - ((wanted >> i) & 1);
      found.min = std::min(found.min, (block[i] - origin_of_min) | ~selected);
      found.max = std::max(found.max, (block[i] - origin_of_max) & selected);
    }
  }
  return found;
}

void fill_clear(const std::uint64_t* mask, std::size_t count, std::int64_t fill,
                std::int64_t* values) {
  for (std::size_t b = 0; b < count; ++b, values += 64)
    for (std::uint64_t clear = ~mask[b]; clear != 0; clear &= clear - 1)
      values[std::countr_zero(clear)] = fill;
}

std::size_t bits_set(const std::uint64_t* words, std::size_t count) {
  std::size_t bits = 0;
  for (std::size_t i = 0; i < count; ++i) bits += static_cast<unsigned>(std::popcount(words[i]));
  return bits;
}

constexpr MainKernels kKernels = {"plain", codes, values,   decode,     filter,
                                  members, sum,   extremes, fill_clear, bits_set};

}  // namespace

const MainKernels& plain_kernels() noexcept { return kKernels; }

}  // namespace flugs::columns
