#include <immintrin.h>

#include <algorithm>
#include <array>
#include <bit>

#include "base/check.h"
#include "columns/main/main_blocks.h"
#include "columns/main/main_kernels.h"
#include "columns/main/main_lane_controls.h"

// The rest of this file is compiled for AVX-512 with VBMI and is called only where the processor
// has it.
#if defined(__clang__)
#pragma clang attribute push(                                                             \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi2,popcnt"))), \
    apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi2,popcnt")
// GCC 12's own intrinsics are defined with `__m512i undefined = undefined`.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace flugs::columns {
namespace {

template <unsigned kLane>
__m512i in_all_lanes(std::uint64_t x) {
  if constexpr (kLane == 8) return _mm512_set1_epi8(static_cast<char>(x));
  if constexpr (kLane == 16) return _mm512_set1_epi16(static_cast<short>(x));
  if constexpr (kLane == 32) return _mm512_set1_epi32(static_cast<int>(x));
  return _mm512_set1_epi64(static_cast<long long>(x));
}

// Reads blocks of codes, register by register.
template <unsigned kLane>
class Lanes {
 public:
  static constexpr unsigned kRegisters = kLane / 8;  // per block of 64 codes
  static constexpr unsigned kCodes = 64 / kRegisters;

  Lanes(PackedCodes codes, std::size_t first)
      : at_(reinterpret_cast<const std::byte*>(codes.blocks) + first * codes.bits * 8),
        register_bytes_(std::size_t{8} * codes.bits / kRegisters),
        bytes_(_mm512_load_si512(kLaneControls<kLane>[codes.bits].bytes.data())),
        bits_(_mm512_load_si512(kLaneControls<kLane>[codes.bits].bits.data())),
        mask_(in_all_lanes<kLane>(codes.mask())) {}

  __m512i next() {
    const __m512i packed = _mm512_loadu_si512(at_);
    at_ += register_bytes_;
    const __m512i words = _mm512_permutexvar_epi8(bytes_, packed);
    return _mm512_and_si512(_mm512_multishift_epi64_epi8(bits_, words), mask_);
  }
  void skip_block() { at_ += register_bytes_ * kRegisters; }
  // Memory is read faster if it is requested some pages ahead.
  void prefetch() const {
    for (std::size_t line = 0; line < kRegisters * register_bytes_; line += 64)
      _mm_prefetch(reinterpret_cast<const char*>(at_) + kPrefetchBytes + line, _MM_HINT_T0);
  }

 private:
  static constexpr std::size_t kPrefetchBytes = 4096;

  const std::byte* at_;
  std::size_t register_bytes_;
  __m512i bytes_;
  __m512i bits_;
  __m512i mask_;
};

// Calls `loop` for the narrowest lanes that hold a code.
template <template <unsigned> typename Loop, typename... Arguments>
auto with_lanes(PackedCodes codes, Arguments... arguments) {
  if (codes.bits <= 8) return Loop<8>::run(codes, arguments...);
  if (codes.bits <= 16) return Loop<16>::run(codes, arguments...);
  if (codes.bits <= 32) return Loop<32>::run(codes, arguments...);
  return Loop<64>::run(codes, arguments...);
}

void codes(PackedCodes codes, std::size_t first, std::size_t count, std::uint32_t limit,
           std::uint32_t* out) {
  FLUGS_DCHECK(is_code_width(codes.bits) && codes.bits <= 32);
  Lanes<32> lanes(codes, first);
  const __m512i limits = _mm512_set1_epi32(static_cast<int>(limit));
  for (std::size_t i = 0; i < count * 4; ++i, out += 16)
    _mm512_storeu_si512(out, _mm512_min_epu32(lanes.next(), limits));
}

void values(PackedCodes codes, std::size_t first, std::size_t count, std::uint64_t base,
            std::int64_t* out) {
  Lanes<64> lanes(codes, first);
  const __m512i bases = _mm512_set1_epi64(static_cast<long long>(base));
  for (std::size_t i = 0; i < count * 8; ++i, out += 8)
    _mm512_storeu_si512(out, _mm512_add_epi64(lanes.next(), bases));
}

// Entries 8 * i to 8 * i + 7, as far as they exist.
__m512i entries_from(const std::int64_t* entries, unsigned count, unsigned i) {
  if (8 * i >= count) return _mm512_setzero_si512();
  return _mm512_maskz_loadu_epi64(static_cast<__mmask8>(low_bits(std::min(count - 8 * i, 8u))),
                                  entries + std::size_t{8} * i);
}

void decode_small(PackedCodes codes, std::size_t first, std::size_t count,
                  const std::int64_t* entries, std::uint32_t limit, std::int64_t* out) {
  Lanes<64> lanes(codes, first);
  const __m512i limits = _mm512_set1_epi64(limit);
  const __m512i a = entries_from(entries, limit + 1, 0);
  const __m512i b = entries_from(entries, limit + 1, 1);
  const __m512i c = entries_from(entries, limit + 1, 2);
  const __m512i d = entries_from(entries, limit + 1, 3);
  if (limit < 16) {
    for (std::size_t i = 0; i < count * 8; ++i, out += 8) {
      const __m512i code = _mm512_min_epu64(lanes.next(), limits);
      _mm512_storeu_si512(out, _mm512_permutex2var_epi64(a, code, b));
    }
    return;
  }
  const __m512i upper = _mm512_set1_epi64(16);
  for (std::size_t i = 0; i < count * 8; ++i, out += 8) {
    const __m512i code = _mm512_min_epu64(lanes.next(), limits);
    const __m512i low = _mm512_permutex2var_epi64(a, code, b);
    const __m512i high = _mm512_permutex2var_epi64(c, code, d);
    _mm512_storeu_si512(out,
                        _mm512_mask_blend_epi64(_mm512_test_epi64_mask(code, upper), low, high));
  }
}

void decode(PackedCodes codes, std::size_t first, std::size_t count, const std::int64_t* entries,
            std::uint32_t limit, std::int64_t* out) {
  if (limit < 32) return decode_small(codes, first, count, entries, limit, out);
  Lanes<64> lanes(codes, first);
  const __m512i limits = _mm512_set1_epi64(limit);
  for (std::size_t i = 0; i < count * 8; ++i, out += 8) {
    const __m512i code = _mm512_min_epu64(lanes.next(), limits);
    _mm512_storeu_si512(out, _mm512_i64gather_epi64(code, entries, 8));
  }
}

// A mask as a number. GCC 12 may treat a mask as 64 bits wide: it spills its own 32 bits or fewer,
// and reads 64. So the mask must be in a general register before it is widened.
template <typename Mask>
std::uint64_t widened(Mask mask) {
  auto word = static_cast<std::uint32_t>(mask);
  asm("" : "+r"(word));
  return word;
}

template <unsigned kLane>
std::uint64_t not_above(__m512i codes, __m512i low, __m512i span) {
  if constexpr (kLane == 8) return _mm512_cmple_epu8_mask(_mm512_sub_epi8(codes, low), span);
  if constexpr (kLane == 16)
    return widened(_mm512_cmple_epu16_mask(_mm512_sub_epi16(codes, low), span));
  if constexpr (kLane == 32)
    return widened(_mm512_cmple_epu32_mask(_mm512_sub_epi32(codes, low), span));
  return widened(_mm512_cmple_epu64_mask(_mm512_sub_epi64(codes, low), span));
}

template <unsigned kLane>
struct Filter {
  static void run(PackedCodes codes, std::size_t first, std::size_t count, std::uint64_t low,
                  std::uint64_t high, bool outside, std::uint64_t* mask) {
    Lanes<kLane> lanes(codes, first);
    const __m512i lows = in_all_lanes<kLane>(low);
    const __m512i spans = in_all_lanes<kLane>(high - low);
    const std::uint64_t flip = outside ? ~std::uint64_t{0} : 0;
    for (std::size_t block = 0; block < count; ++block) {
      lanes.prefetch();
      if (mask[block] == 0) {
        lanes.skip_block();
        continue;
      }
      std::uint64_t found = 0;
      for (unsigned i = 0; i < Lanes<kLane>::kRegisters; ++i)
        found |= not_above<kLane>(lanes.next(), lows, spans) << (i * Lanes<kLane>::kCodes % 64);
      mask[block] &= found ^ flip;
    }
  }
};

void filter(PackedCodes codes, std::size_t first, std::size_t count, std::uint64_t low,
            std::uint64_t high, bool outside, std::uint64_t* mask) {
  with_lanes<Filter>(codes, first, count, low, high, outside, mask);
}

// For up to 256 codes: one register of bytes gives the byte with a code's bit, another gives the
// bit.
void members_of_bytes(PackedCodes codes, std::size_t first, std::size_t count,
                      const std::uint64_t* wanted, std::uint32_t limit, std::uint64_t* mask) {
  Lanes<8> lanes(codes, first);
  const __m512i limits = in_all_lanes<8>(limit);
  const __m512i table =
      _mm512_maskz_loadu_epi64(static_cast<__mmask8>(low_bits(limit / 64 + 1)), wanted);
  const __m512i bits = _mm512_set1_epi64(static_cast<long long>(0x8040201008040201));
  for (std::size_t block = 0; block < count; ++block) {
    const __m512i code = _mm512_min_epu8(lanes.next(), limits);
    const __m512i at = _mm512_and_si512(_mm512_srli_epi16(code, 3), in_all_lanes<8>(0x1F));
    const __m512i low = _mm512_and_si512(code, in_all_lanes<8>(7));
    mask[block] &=
        _mm512_test_epi8_mask(_mm512_permutexvar_epi8(at, table), _mm512_shuffle_epi8(bits, low));
  }
}

// For up to 1024 codes: the same with 16-bit words from two registers, and a shift.
void members_of_words(PackedCodes codes, std::size_t first, std::size_t count,
                      const std::uint64_t* wanted, std::uint32_t limit, std::uint64_t* mask) {
  Lanes<16> lanes(codes, first);
  const __m512i limits = in_all_lanes<16>(limit);
  const std::uint64_t words = low_bits(limit / 64 + 1);
  const __m512i low = _mm512_maskz_loadu_epi64(static_cast<__mmask8>(words), wanted);
  const __m512i high = _mm512_maskz_loadu_epi64(static_cast<__mmask8>(words >> 8), wanted + 8);
  const auto found = [&] {
    const __m512i code = _mm512_min_epu16(lanes.next(), limits);
    const __m512i word = _mm512_permutex2var_epi16(low, _mm512_srli_epi16(code, 4), high);
    const __m512i bit = _mm512_srlv_epi16(word, _mm512_and_si512(code, in_all_lanes<16>(15)));
    return widened(_mm512_test_epi16_mask(bit, in_all_lanes<16>(1)));
  };
  for (std::size_t block = 0; block < count; ++block) {
    const std::uint64_t first_half = found();
    mask[block] &= first_half | found() << 32;
  }
}

void members(PackedCodes packed, std::size_t first, std::size_t count, const std::uint64_t* wanted,
             std::uint32_t limit, std::uint64_t* mask) {
  if (packed.bits <= 8) return members_of_bytes(packed, first, count, wanted, limit, mask);
  if (packed.bits <= 16 && limit < 1024)
    return members_of_words(packed, first, count, wanted, limit, mask);
  members_one_by_one(codes, packed, first, count, wanted, limit, mask);
}

template <unsigned kLane>
__m512i selected(std::uint64_t mask, __m512i codes) {
  if constexpr (kLane == 8) return _mm512_maskz_mov_epi8(mask, codes);
  if constexpr (kLane == 16) return _mm512_maskz_mov_epi16(static_cast<__mmask32>(mask), codes);
  if constexpr (kLane == 32) return _mm512_maskz_mov_epi32(static_cast<__mmask16>(mask), codes);
  return _mm512_maskz_mov_epi64(static_cast<__mmask8>(mask), codes);
}

template <unsigned kLane>
std::uint64_t not_zero(__m512i codes) {
  if constexpr (kLane == 8) return _mm512_test_epi8_mask(codes, codes);
  if constexpr (kLane == 16) return widened(_mm512_test_epi16_mask(codes, codes));
  if constexpr (kLane == 32) return widened(_mm512_test_epi32_mask(codes, codes));
  return widened(_mm512_test_epi64_mask(codes, codes));
}

// A sum in two accumulators, the upper one in units of 2^kShift.
template <unsigned kLane>
struct Accumulator {
  static constexpr unsigned kShift = kLane == 16 ? 8 : 32;
  __m512i low;
  __m512i high;

  // Written out, because GCC does not compile implicit members for the target.
  Accumulator() : low(_mm512_setzero_si512()), high(_mm512_setzero_si512()) {}

  void add(__m512i codes) {
    const __m512i zero = _mm512_setzero_si512();
    if constexpr (kLane == 8) {
      low = _mm512_add_epi64(low, _mm512_sad_epu8(codes, zero));
    } else if constexpr (kLane == 16) {
      const __m512i low_bytes = _mm512_and_si512(codes, _mm512_set1_epi16(0xFF));
      low = _mm512_add_epi64(low, _mm512_sad_epu8(low_bytes, zero));
      high = _mm512_add_epi64(high, _mm512_sad_epu8(_mm512_srli_epi16(codes, 8), zero));
    } else if constexpr (kLane == 32) {
      // Both halves are in units of 1.
      low = _mm512_add_epi64(low, _mm512_and_si512(codes, _mm512_set1_epi64(0xFFFFFFFF)));
      low = _mm512_add_epi64(low, _mm512_srli_epi64(codes, 32));
    } else {
      low = _mm512_add_epi64(low, _mm512_and_si512(codes, _mm512_set1_epi64(0xFFFFFFFF)));
      high = _mm512_add_epi64(high, _mm512_srli_epi64(codes, 32));
    }
  }
  UInt128 total() const { return reduce(low) + (reduce(high) << kShift); }

 private:
  static UInt128 reduce(__m512i x) {
    alignas(64) std::array<std::uint64_t, 8> words;
    _mm512_store_si512(words.data(), x);
    UInt128 sum = 0;
    for (const std::uint64_t word : words) sum += word;
    return sum;
  }
};

template <unsigned kLane>
__m512i add_lanes(__m512i a, __m512i b) {
  if constexpr (kLane == 16) return _mm512_add_epi16(a, b);
  return _mm512_add_epi32(a, b);
}

// Codes that are one bit (16-bit lanes) or two bits (32) narrower than a lane are first added up
// within the block.
template <unsigned kLane>
struct Sum {
  using L = Lanes<kLane>;

  template <bool kCount, bool kMasked>
  static CodeSum loop(PackedCodes codes, std::size_t first, std::size_t count, std::uint64_t origin,
                      const std::uint64_t* mask) {
    L lanes(codes, first);
    Accumulator<kLane> accumulator;
    const bool has_room = (kLane == 16 && codes.bits <= 15) || (kLane == 32 && codes.bits <= 30);
    const __m512i origins = _mm512_set1_epi64(static_cast<long long>(origin));
    CodeSum result;
    for (std::size_t block = 0; block < count; ++block) {
      lanes.prefetch();
      const std::uint64_t wanted = kMasked ? mask[block] : ~std::uint64_t{0};
      if (kMasked && wanted == 0) {
        lanes.skip_block();
        continue;
      }
      std::uint64_t present = 0;
      __m512i together = _mm512_setzero_si512();
      for (unsigned i = 0; i < L::kRegisters; ++i) {
        __m512i x = lanes.next();
        if constexpr (kLane == 64) x = _mm512_sub_epi64(x, origins);
        if constexpr (kMasked) x = selected<kLane>(wanted >> (i * L::kCodes % 64), x);
        if constexpr (kCount) present |= not_zero<kLane>(x) << (i * L::kCodes % 64);
        if ((kLane == 16 || kLane == 32) && has_room)
          together = add_lanes<kLane>(together, x);
        else
          accumulator.add(x);
      }
      if ((kLane == 16 || kLane == 32) && has_room) accumulator.add(together);
      if constexpr (kCount) result.not_zero += static_cast<unsigned>(std::popcount(present));
    }
    result.sum = accumulator.total();
    return result;
  }

  static CodeSum run(PackedCodes codes, std::size_t first, std::size_t count, std::uint64_t origin,
                     bool count_not_zero, const std::uint64_t* mask) {
    if (count_not_zero)
      return mask != nullptr ? loop<true, true>(codes, first, count, origin, mask)
                             : loop<true, false>(codes, first, count, origin, mask);
    return mask != nullptr ? loop<false, true>(codes, first, count, origin, mask)
                           : loop<false, false>(codes, first, count, origin, mask);
  }
};

CodeSum sum(PackedCodes codes, std::size_t first, std::size_t count, std::uint64_t origin,
            bool count_not_zero, const std::uint64_t* mask) {
  FLUGS_DCHECK(origin == 0 || codes.bits == 64);
  return with_lanes<Sum>(codes, first, count, origin, count_not_zero, mask);
}

template <unsigned kLane>
struct Extremes {
  using L = Lanes<kLane>;
  using Word = std::conditional_t<
      kLane == 8, std::uint8_t,
      std::conditional_t<kLane == 16, std::uint16_t,
                         std::conditional_t<kLane == 32, std::uint32_t, std::uint64_t>>>;

  static __m512i minus(__m512i a, __m512i b) {
    if constexpr (kLane == 8) return _mm512_sub_epi8(a, b);
    if constexpr (kLane == 16) return _mm512_sub_epi16(a, b);
    if constexpr (kLane == 32) return _mm512_sub_epi32(a, b);
    return _mm512_sub_epi64(a, b);
  }
  static __m512i lesser(__m512i a, std::uint64_t mask, __m512i b) {
    if constexpr (kLane == 8) return _mm512_mask_min_epu8(a, mask, a, b);
    if constexpr (kLane == 16) return _mm512_mask_min_epu16(a, static_cast<__mmask32>(mask), a, b);
    if constexpr (kLane == 32) return _mm512_mask_min_epu32(a, static_cast<__mmask16>(mask), a, b);
    return _mm512_mask_min_epu64(a, static_cast<__mmask8>(mask), a, b);
  }
  static __m512i greater(__m512i a, std::uint64_t mask, __m512i b) {
    if constexpr (kLane == 8) return _mm512_mask_max_epu8(a, mask, a, b);
    if constexpr (kLane == 16) return _mm512_mask_max_epu16(a, static_cast<__mmask32>(mask), a, b);
    if constexpr (kLane == 32) return _mm512_mask_max_epu32(a, static_cast<__mmask16>(mask), a, b);
    return _mm512_mask_max_epu64(a, static_cast<__mmask8>(mask), a, b);
  }

  static CodeExtremes run(PackedCodes codes, std::size_t first, std::size_t count,
                          std::uint64_t origin_of_min, std::uint64_t origin_of_max,
                          const std::uint64_t* mask) {
    L lanes(codes, first);
    const __m512i min_origins = in_all_lanes<kLane>(origin_of_min);
    const __m512i max_origins = in_all_lanes<kLane>(origin_of_max);
    __m512i least = _mm512_set1_epi64(-1);
    __m512i greatest = _mm512_setzero_si512();
    for (std::size_t block = 0; block < count; ++block) {
      lanes.prefetch();
      const std::uint64_t wanted = mask != nullptr ? mask[block] : ~std::uint64_t{0};
      if (wanted == 0) {
        lanes.skip_block();
        continue;
      }
      for (unsigned i = 0; i < L::kRegisters; ++i) {
        const __m512i x = lanes.next();
        const std::uint64_t here = wanted >> (i * L::kCodes % 64);
        least = lesser(least, here, minus(x, min_origins));
        greatest = greater(greatest, here, minus(x, max_origins));
      }
    }
    alignas(64) std::array<Word, L::kCodes> mins;
    alignas(64) std::array<Word, L::kCodes> maxs;
    _mm512_store_si512(mins.data(), least);
    _mm512_store_si512(maxs.data(), greatest);
    CodeExtremes found{mins[0], maxs[0]};
    for (unsigned i = 1; i < L::kCodes; ++i) {
      if (mins[i] < found.min) found.min = mins[i];
      if (maxs[i] > found.max) found.max = maxs[i];
    }
    return found;
  }
};

CodeExtremes extremes(PackedCodes codes, std::size_t first, std::size_t count,
                      std::uint64_t origin_of_min, std::uint64_t origin_of_max,
                      const std::uint64_t* mask) {
  return with_lanes<Extremes>(codes, first, count, origin_of_min, origin_of_max, mask);
}

void fill_clear(const std::uint64_t* mask, std::size_t count, std::int64_t fill,
                std::int64_t* values) {
  const __m512i fills = _mm512_set1_epi64(fill);
  for (std::size_t b = 0; b < count; ++b, values += 64) {
    if (mask[b] == ~std::uint64_t{0}) continue;
    for (unsigned i = 0; i < 64; i += 8)
      _mm512_mask_storeu_epi64(values + i, static_cast<__mmask8>(~mask[b] >> i), fills);
  }
}

// Counts eight words at a time, by looking up the bits of each half of a byte.
std::size_t bits_set(const std::uint64_t* words, std::size_t count) {
  const __m512i bits_of_half =
      _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4));
  const __m512i halves = _mm512_set1_epi8(0x0F);
  const auto bits_of = [&](__m512i word) {
    const __m512i low = _mm512_and_si512(word, halves);
    const __m512i high = _mm512_and_si512(_mm512_srli_epi16(word, 4), halves);
    const __m512i bytes = _mm512_add_epi8(_mm512_shuffle_epi8(bits_of_half, low),
                                          _mm512_shuffle_epi8(bits_of_half, high));
    return _mm512_sad_epu8(bytes, _mm512_setzero_si512());
  };
  __m512i bits = _mm512_setzero_si512();
  for (std::size_t i = 0; i + 8 <= count; i += 8)
    bits = _mm512_add_epi64(bits, bits_of(_mm512_loadu_si512(words + i)));
  const auto rest = static_cast<__mmask8>(low_bits(count % 8));
  bits = _mm512_add_epi64(bits, bits_of(_mm512_maskz_loadu_epi64(rest, words + count / 8 * 8)));
  return static_cast<std::size_t>(_mm512_reduce_add_epi64(bits));
}

constexpr MainKernels kKernels = {"avx512", codes, values,   decode,     filter,
                                  members,  sum,   extremes, fill_clear, bits_set};

}  // namespace

const MainKernels& avx512_kernels() noexcept { return kKernels; }

}  // namespace flugs::columns

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
