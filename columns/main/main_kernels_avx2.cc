#include <immintrin.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "columns/main/main_blocks.h"
#include "columns/main/main_kernels.h"

// The rest of this file is compiled for AVX2 and is called only where the processor has it.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,bmi2,popcnt"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,bmi2,popcnt")
#endif

namespace flugs::columns {
namespace {

// Eight codes in one register of 32-bit lanes (up to 25 bits), or in two of 64-bit lanes. Each
// 16-byte half of a register is loaded separately, from the byte in which its first code begins. A
// byte shuffle moves every code's bytes into its lane, and a shift moves its first bit to the
// bottom.
template <unsigned kLane>
class Lanes {
 public:
  static constexpr unsigned kRegisters = kLane / 32;  // for eight codes
  static constexpr unsigned kSteps = 8 * kRegisters;  // per block
  static constexpr unsigned kCodes = 8 / kRegisters;

  Lanes(PackedCodes codes, std::size_t first)
      : at_(reinterpret_cast<const std::byte*>(codes.blocks) + first * codes.bits * 8),
        step_bytes_(codes.bits) {
    constexpr unsigned kHalf = kCodes / 2;
    constexpr unsigned kBytes = kLane / 8;
    alignas(32) std::array<std::uint8_t, 32> shuffle;
    std::array<std::uint64_t, 4> shifts{};
    for (unsigned r = 0; r < kRegisters; ++r) {
      for (unsigned code = 0; code < kCodes; ++code) {
        const unsigned half = code / kHalf;
        const unsigned half_bit = (r * kCodes + half * kHalf) * codes.bits;
        halves_[r][half] = half_bit / 8;
        const unsigned bit = half_bit % 8 + code % kHalf * codes.bits;
        for (unsigned byte = 0; byte < kBytes; ++byte)
          shuffle[std::size_t{code} * kBytes + byte] = static_cast<std::uint8_t>(bit / 8 + byte);
        shifts[code * kLane / 64] |= std::uint64_t{bit % 8} << (code * kLane % 64);
      }
      shuffle_[r] = _mm256_load_si256(reinterpret_cast<const __m256i*>(shuffle.data()));
      shift_[r] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(shifts.data()));
      shifts = {};
    }
    mask_ = kLane == 32 ? _mm256_set1_epi32(static_cast<int>(codes.mask()))
                        : _mm256_set1_epi64x(static_cast<long long>(codes.mask()));
  }

  // Registers take turns: `r` is the step modulo kRegisters.
  __m256i next(unsigned r) {
    const auto half = [](const std::byte* at) {
      return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    };
    const __m256i packed = _mm256_inserti128_si256(
        _mm256_castsi128_si256(half(at_ + halves_[r][0])), half(at_ + halves_[r][1]), 1);
    if (r == kRegisters - 1) at_ += step_bytes_;
    const __m256i windows = _mm256_shuffle_epi8(packed, shuffle_[r]);
    const __m256i shifted =
        kLane == 32 ? _mm256_srlv_epi32(windows, shift_[r]) : _mm256_srlv_epi64(windows, shift_[r]);
    return _mm256_and_si256(shifted, mask_);
  }
  void skip_block() { at_ += step_bytes_ * 8; }
  // Memory is read faster if it is requested some pages ahead.
  void prefetch() const {
    for (std::size_t line = 0; line < step_bytes_ * 8; line += 64)
      _mm_prefetch(reinterpret_cast<const char*>(at_) + kPrefetchBytes + line, _MM_HINT_T0);
  }

 private:
  static constexpr std::size_t kPrefetchBytes = 4096;

  const std::byte* at_;
  std::size_t step_bytes_;
  std::size_t halves_[2][2] = {};
  __m256i shuffle_[2];
  __m256i shift_[2];
  __m256i mask_;
};

bool is_narrow(PackedCodes codes) { return codes.bits <= 25; }

void store(void* at, __m256i x) { _mm256_storeu_si256(static_cast<__m256i*>(at), x); }

void codes(PackedCodes codes, std::size_t first, std::size_t count, std::uint32_t limit,
           std::uint32_t* out) {
  if (is_narrow(codes)) {
    Lanes<32> lanes(codes, first);
    const __m256i limits = _mm256_set1_epi32(static_cast<int>(limit));
    for (std::size_t i = 0; i < count * 8; ++i, out += 8)
      store(out, _mm256_min_epu32(lanes.next(0), limits));
    return;
  }
  Lanes<64> lanes(codes, first);
  const __m128i limits = _mm_set1_epi32(static_cast<int>(limit));
  const __m256i even = _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6);
  for (std::size_t i = 0; i < count * 16; ++i, out += 4) {
    const __m256i narrow = _mm256_permutevar8x32_epi32(lanes.next(i % 2), even);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out),
                     _mm_min_epu32(_mm256_castsi256_si128(narrow), limits));
  }
}

void values(PackedCodes codes, std::size_t first, std::size_t count, std::uint64_t base,
            std::int64_t* out) {
  Lanes<64> lanes(codes, first);
  const __m256i bases = _mm256_set1_epi64x(static_cast<long long>(base));
  for (std::size_t i = 0; i < count * 16; ++i, out += 4)
    store(out, _mm256_add_epi64(lanes.next(i % 2), bases));
}

void decode(PackedCodes packed, std::size_t first, std::size_t count, const std::int64_t* entries,
            std::uint32_t limit, std::int64_t* out) {
  std::array<std::uint32_t, 64> block;
  for (std::size_t b = 0; b < count; ++b, out += 64) {
    codes(packed, first + b, 1, limit, block.data());
    for (std::size_t i = 0; i < 64; ++i) out[i] = entries[block[i]];
  }
}

// Bit i is the sign of lane i.
template <unsigned kLane>
std::uint64_t signs(__m256i lanes) {
  if constexpr (kLane == 32)
    return static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(lanes)));
  return static_cast<unsigned>(_mm256_movemask_pd(_mm256_castsi256_pd(lanes)));
}

// Lane i is all ones if bit i of `bits` is set.
template <unsigned kLane>
__m256i lanes_of(std::uint64_t bits) {
  if constexpr (kLane == 32) {
    const __m256i each = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    const __m256i all = _mm256_set1_epi32(static_cast<int>(bits));
    return _mm256_cmpeq_epi32(_mm256_and_si256(all, each), each);
  }
  const __m256i each = _mm256_setr_epi64x(1, 2, 4, 8);
  const __m256i all = _mm256_set1_epi64x(static_cast<long long>(bits));
  return _mm256_cmpeq_epi64(_mm256_and_si256(all, each), each);
}

template <unsigned kLane>
__m256i in_all_lanes(std::uint64_t x) {
  return kLane == 32 ? _mm256_set1_epi32(static_cast<int>(x))
                     : _mm256_set1_epi64x(static_cast<long long>(x));
}
template <unsigned kLane>
__m256i minus(__m256i a, __m256i b) {
  return kLane == 32 ? _mm256_sub_epi32(a, b) : _mm256_sub_epi64(a, b);
}
// a > b, unsigned, in 64-bit lanes.
__m256i above(__m256i a, __m256i b) {
  const __m256i sign = _mm256_set1_epi64x(std::numeric_limits<long long>::min());
  return _mm256_cmpgt_epi64(_mm256_xor_si256(a, sign), _mm256_xor_si256(b, sign));
}

template <unsigned kLane>
void filter_in(PackedCodes codes, std::size_t first, std::size_t count, std::uint64_t low,
               std::uint64_t high, bool outside, std::uint64_t* mask) {
  using L = Lanes<kLane>;
  L lanes(codes, first);
  const __m256i lows = in_all_lanes<kLane>(low);
  const __m256i spans = in_all_lanes<kLane>(high - low);
  for (std::size_t block = 0; block < count; ++block) {
    lanes.prefetch();
    if (mask[block] == 0) {
      lanes.skip_block();
      continue;
    }
    std::uint64_t found = 0;
    for (unsigned i = 0; i < L::kSteps; ++i) {
      const __m256i x = minus<kLane>(lanes.next(i % L::kRegisters), lows);
      const std::uint64_t hits = kLane == 32
                                     ? signs<32>(_mm256_cmpeq_epi32(_mm256_min_epu32(x, spans), x))
                                     : signs<64>(above(x, spans)) ^ 0xF;
      found |= hits << (i * L::kCodes);
    }
    mask[block] &= outside ? ~found : found;
  }
}

void filter(PackedCodes codes, std::size_t first, std::size_t count, std::uint64_t low,
            std::uint64_t high, bool outside, std::uint64_t* mask) {
  return is_narrow(codes) ? filter_in<32>(codes, first, count, low, high, outside, mask)
                          : filter_in<64>(codes, first, count, low, high, outside, mask);
}

void members(PackedCodes packed, std::size_t first, std::size_t count, const std::uint64_t* wanted,
             std::uint32_t limit, std::uint64_t* mask) {
  members_one_by_one(codes, packed, first, count, wanted, limit, mask);
}

UInt128 total(__m256i x) {
  alignas(32) std::array<std::uint64_t, 4> words;
  _mm256_store_si256(reinterpret_cast<__m256i*>(words.data()), x);
  UInt128 sum = 0;
  for (const std::uint64_t word : words) sum += word;
  return sum;
}

template <unsigned kLane, bool kCount>
CodeSum sum_in(PackedCodes codes, std::size_t first, std::size_t count, std::uint64_t origin,
               const std::uint64_t* mask) {
  using L = Lanes<kLane>;
  L lanes(codes, first);
  const __m256i origins = in_all_lanes<kLane>(origin);
  const __m256i lower_half = _mm256_set1_epi64x(0xFFFFFFFF);
  const __m256i zero = _mm256_setzero_si256();
  __m256i low = zero;
  __m256i high = zero;
  CodeSum result;
  for (std::size_t block = 0; block < count; ++block) {
    lanes.prefetch();
    const std::uint64_t wanted = mask != nullptr ? mask[block] : ~std::uint64_t{0};
    if (wanted == 0) {
      lanes.skip_block();
      continue;
    }
    std::uint64_t zeros = 0;
    for (unsigned i = 0; i < L::kSteps; ++i) {
      __m256i x = minus<kLane>(lanes.next(i % L::kRegisters), origins);
      if (mask != nullptr) x = _mm256_and_si256(x, lanes_of<kLane>(wanted >> (i * L::kCodes)));
      if constexpr (kCount) {
        const __m256i is_zero =
            kLane == 32 ? _mm256_cmpeq_epi32(x, zero) : _mm256_cmpeq_epi64(x, zero);
        zeros |= signs<kLane>(is_zero) << (i * L::kCodes);
      }
      low = _mm256_add_epi64(low, _mm256_and_si256(x, lower_half));
      high = _mm256_add_epi64(high, _mm256_srli_epi64(x, 32));
    }
    if constexpr (kCount) result.not_zero += static_cast<unsigned>(std::popcount(~zeros));
  }
  // In 32-bit lanes the upper halves are separate codes.
  result.sum = total(low) + (total(high) << (kLane == 32 ? 0 : 32));
  return result;
}

CodeSum sum(PackedCodes codes, std::size_t first, std::size_t count, std::uint64_t origin,
            bool count_not_zero, const std::uint64_t* mask) {
  if (is_narrow(codes))
    return count_not_zero ? sum_in<32, true>(codes, first, count, origin, mask)
                          : sum_in<32, false>(codes, first, count, origin, mask);
  return count_not_zero ? sum_in<64, true>(codes, first, count, origin, mask)
                        : sum_in<64, false>(codes, first, count, origin, mask);
}

template <unsigned kLane>
CodeExtremes extremes_in(PackedCodes codes, std::size_t first, std::size_t count,
                         std::uint64_t origin_of_min, std::uint64_t origin_of_max,
                         const std::uint64_t* mask) {
  using L = Lanes<kLane>;
  L lanes(codes, first);
  const __m256i min_origins = in_all_lanes<kLane>(origin_of_min);
  const __m256i max_origins = in_all_lanes<kLane>(origin_of_max);
  const __m256i ones = _mm256_set1_epi64x(-1);
  __m256i least = ones;
  __m256i greatest = _mm256_setzero_si256();
  for (std::size_t block = 0; block < count; ++block) {
    lanes.prefetch();
    const std::uint64_t wanted = mask != nullptr ? mask[block] : ~std::uint64_t{0};
    if (wanted == 0) {
      lanes.skip_block();
      continue;
    }
    for (unsigned i = 0; i < L::kSteps; ++i) {
      const __m256i x = lanes.next(i % L::kRegisters);
      const __m256i here = lanes_of<kLane>(wanted >> (i * L::kCodes));
      const __m256i min_of =
          _mm256_or_si256(minus<kLane>(x, min_origins), _mm256_andnot_si256(here, ones));
      const __m256i max_of = _mm256_and_si256(minus<kLane>(x, max_origins), here);
      if constexpr (kLane == 32) {
        least = _mm256_min_epu32(least, min_of);
        greatest = _mm256_max_epu32(greatest, max_of);
      } else {
        least = _mm256_blendv_epi8(least, min_of, above(least, min_of));
        greatest = _mm256_blendv_epi8(greatest, max_of, above(max_of, greatest));
      }
    }
  }
  using Word = std::conditional_t<kLane == 32, std::uint32_t, std::uint64_t>;
  alignas(32) std::array<Word, L::kCodes> mins;
  alignas(32) std::array<Word, L::kCodes> maxs;
  store(mins.data(), least);
  store(maxs.data(), greatest);
  return {*std::min_element(mins.begin(), mins.end()), *std::max_element(maxs.begin(), maxs.end())};
}

CodeExtremes extremes(PackedCodes codes, std::size_t first, std::size_t count,
                      std::uint64_t origin_of_min, std::uint64_t origin_of_max,
                      const std::uint64_t* mask) {
  return is_narrow(codes)
             ? extremes_in<32>(codes, first, count, origin_of_min, origin_of_max, mask)
             : extremes_in<64>(codes, first, count, origin_of_min, origin_of_max, mask);
}

void fill_clear(const std::uint64_t* mask, std::size_t count, std::int64_t fill,
                std::int64_t* values) {
  const __m256i fills = in_all_lanes<64>(static_cast<std::uint64_t>(fill));
  for (std::size_t b = 0; b < count; ++b, values += 64) {
    if (mask[b] == ~std::uint64_t{0}) continue;
    for (unsigned i = 0; i < 64; i += 4) {
      const __m256i kept = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values + i));
      store(values + i, _mm256_blendv_epi8(fills, kept, lanes_of<64>(mask[b] >> i)));
    }
  }
}

std::size_t bits_set(const std::uint64_t* words, std::size_t count) {
  std::size_t bits = 0;
  for (std::size_t i = 0; i < count; ++i) bits += static_cast<unsigned>(std::popcount(words[i]));
  return bits;
}

constexpr MainKernels kKernels = {"avx2",  codes, values,   decode,     filter,
                                  members, sum,   extremes, fill_clear, bits_set};

}  // namespace

const MainKernels& avx2_kernels() noexcept { return kKernels; }

}  // namespace flugs::columns

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
