#include <immintrin.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "columns/dictionary/dictionary.h"
#include "mvcc/stamps.h"
#include "query/vectors/delta_kernels.h"

// The rest of this file is compiled for AVX-512 and is called only where the processor has it.
#if defined(__clang__)
#pragma clang attribute push(                                                           \
    __attribute__((target("avx512f,avx512bw,avx512cd,avx512dq,avx512vl,bmi2,popcnt"))), \
    apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512cd,avx512dq,avx512vl,bmi2,popcnt")
// GCC 12's own intrinsics are defined with `__m512i undefined = undefined`.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace flugs::query {

namespace {

// The stamps of four rows, created and deleted in turn.
__m512i stamps_of_four(const std::byte* rows, std::size_t row_bytes) {
  const auto pair = [&](std::size_t i) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows + i * row_bytes));
  };
  const __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(pair(0)), pair(1), 1);
  const __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(pair(2)), pair(3), 1);
  return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

/// The comparison that finds rows settled: created - 1 < snapshot, and deleted - 0 < 1. A created
/// word of 0 wraps to the greatest number, and a tag is greater than any time-stamp.
struct Settled {
  __m512i less;
  __m512i bounds;

  explicit Settled(std::uint64_t snapshot)
      : less(_mm512_set4_epi64(0, 1, 0, 1)),
        bounds(_mm512_set4_epi64(1, static_cast<long long>(snapshot), 1,
                                 static_cast<long long>(snapshot))) {}
  __m512i distances(__m512i stamps) const { return _mm512_sub_epi64(stamps, less); }
  unsigned words(__m512i distances) const { return _mm512_cmplt_epu64_mask(distances, bounds); }
};

// Two rows of half a line are read at a time, without moving their stamps together.
constexpr std::size_t kHalfLine = 32;

// The kernels read both stamps of a row as its first 16 bytes.
static_assert(sizeof(mvcc::VersionLayout) == 16);
static_assert(offsetof(mvcc::VersionLayout, created) == 0);
static_assert(offsetof(mvcc::VersionLayout, deleted) == 8);

// Stamps side by side, those of rows whose columns are apart.
constexpr std::size_t kStampBytes = sizeof(mvcc::VersionLayout);

bool are_settled(const std::byte* rows, std::size_t row_bytes, const Settled& test) {
  __m512i worst = _mm512_setzero_si512();
  __m512i worst_too = _mm512_setzero_si512();
  if (row_bytes == kStampBytes) {
    for (std::size_t i = 0; i < 64; i += 8) {
      const std::byte* at = rows + i * kStampBytes;
      worst = _mm512_max_epu64(worst, test.distances(_mm512_loadu_si512(at)));
      worst_too =
          _mm512_max_epu64(worst_too, test.distances(_mm512_loadu_si512(at + 4 * kStampBytes)));
    }
    return test.words(_mm512_max_epu64(worst, worst_too)) == 0xFF;
  }
  if (row_bytes == kHalfLine) {
    constexpr __mmask8 kStamps = 0x33;  // the other words of a pair are cells
    for (std::size_t i = 0; i < 64; i += 4) {
      const auto* at = rows + i * kHalfLine;
      const __m512i pair = _mm512_maskz_loadu_epi64(kStamps, at);
      const __m512i next = _mm512_maskz_loadu_epi64(kStamps, at + 2 * kHalfLine);
      worst = _mm512_max_epu64(worst, test.distances(pair));
      worst_too = _mm512_max_epu64(worst_too, test.distances(next));
    }
    return (test.words(_mm512_max_epu64(worst, worst_too)) & kStamps) == kStamps;
  }
  for (std::size_t i = 0; i < 64; i += 8) {
    const std::byte* at = rows + i * row_bytes;
    worst = _mm512_max_epu64(worst, test.distances(stamps_of_four(at, row_bytes)));
    worst_too =
        _mm512_max_epu64(worst_too, test.distances(stamps_of_four(at + 4 * row_bytes, row_bytes)));
  }
  return test.words(_mm512_max_epu64(worst, worst_too)) == 0xFF;
}

// Row by row, where not all rows are settled.
std::uint64_t settled_rows(const std::byte* rows, std::size_t row_bytes, std::size_t count,
                           const Settled& test) {
  std::uint64_t found = 0;
  std::size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    const unsigned words =
        test.words(test.distances(stamps_of_four(rows + i * row_bytes, row_bytes)));
    found |= std::uint64_t{_pext_u32(words & words >> 1, 0x55)} << i;
  }
  for (; i < count; ++i) {
    const __m128i stamps = _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows + i * row_bytes));
    const unsigned words = test.words(test.distances(_mm512_zextsi128_si512(stamps)));
    found |= std::uint64_t{(words & 3) == 3} << i;
  }
  return found;
}

std::uint64_t settled(const std::byte* rows, std::size_t row_bytes, std::size_t count,
                      std::uint64_t snapshot) {
  FLUGS_DCHECK(count <= 64);
  FLUGS_DCHECK(row_bytes >= sizeof(mvcc::VersionLayout) && row_bytes % 8 == 0);
  for (std::size_t line = 0; row_bytes != kStampBytes && line < count * row_bytes; line += 64)
    _mm_prefetch(reinterpret_cast<const char*>(rows) + DeltaKernels::kAheadBytes + line,
                 _MM_HINT_T0);
  const Settled test(snapshot);
  std::uint64_t found = 0;
  if (count == 64 && are_settled(rows, row_bytes, test)) found = ~std::uint64_t{0};
  if (found == 0) found = settled_rows(rows, row_bytes, count, test);
  // Cells are read after stamps: x86-64 keeps loads in order, and this makes the compiler do so.
  asm volatile("" ::: "memory");
  return found;
}

// The words with the cells of eight rows, from row i on.
class Words {
 public:
  explicit Words(const RowCells& cells)
      : first_(cells.rows + std::size_t{cells.access.word} * 8),
        row_bytes_(cells.row_bytes),
        positions_(cells.positions),
        strides_(_mm512_set1_epi64(static_cast<long long>(cells.row_bytes))),
        next_(_mm512_mul_epu32(_mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0), strides_)),
        of_two_pairs_(_mm512_add_epi64(_mm512_set_epi64(0, 0, 0, 0, 12, 8, 4, 0),
                                       _mm512_set1_epi64(cells.access.word))),
        half_lines_(cells.positions == nullptr && cells.row_bytes == kHalfLine ? cells.rows
                                                                               : nullptr) {
    FLUGS_DCHECK(cells.access.has_cell() && std::size_t{cells.access.word} * 8 < cells.row_bytes);
  }

  __m512i from(std::size_t i) const {
    if (half_lines_ != nullptr) return of_half_lines(half_lines_ + i * kHalfLine);
    if (positions_ == nullptr) return _mm512_i64gather_epi64(next_, first_ + i * row_bytes_, 1);
    const __m256i rows = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(positions_ + i));
    const __m512i offsets = _mm512_mul_epu32(_mm512_cvtepu32_epi64(rows), strides_);
    return _mm512_i64gather_epi64(offsets, first_, 1);
  }

 private:
  // A gather takes at least as long as eight loads; these are four.
  __m512i of_half_lines(const std::byte* rows) const {
    const auto four = [&](const std::byte* at) {
      return _mm512_castsi512_si256(_mm512_permutex2var_epi64(
          _mm512_loadu_si512(at), of_two_pairs_, _mm512_loadu_si512(at + 2 * kHalfLine)));
    };
    return _mm512_inserti64x4(_mm512_castsi256_si512(four(rows)), four(rows + 4 * kHalfLine), 1);
  }

  const std::byte* first_;
  std::size_t row_bytes_;
  const std::uint32_t* positions_;
  __m512i strides_;
  __m512i next_;
  __m512i of_two_pairs_;  // selects the words of four rows from two pairs, eight words to a pair
  const std::byte* half_lines_;
};

RowCells behind(const RowCells& cells, std::size_t i) {
  RowCells rest = cells;
  if (cells.positions == nullptr)
    rest.rows += i * cells.row_bytes;
  else
    rest.positions += i;
  return rest;
}

std::uint32_t codes(const RowCells& cells, std::size_t count, std::uint32_t* out) {
  FLUGS_DCHECK(cells.access.mask <= 0xFFFFFFFFu);
  const Words words(cells);
  const __m128i shift = _mm_cvtsi32_si128(cells.access.shift);
  const __m512i mask = _mm512_set1_epi64(static_cast<long long>(cells.access.mask));
  __m512i greatest = _mm512_setzero_si512();
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m512i x = _mm512_and_si512(_mm512_srl_epi64(words.from(i), shift), mask);
    greatest = _mm512_max_epu64(greatest, x);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), _mm512_cvtepi64_epi32(x));
  }
  const auto found = static_cast<std::uint32_t>(_mm512_reduce_max_epu64(greatest));
  if (i == count) return found;
  const std::uint32_t rest = plain_delta_kernels().codes(behind(cells, i), count - i, out + i);
  return rest > found ? rest : found;
}

void integers(const RowCells& cells, std::size_t count, bool is_narrow, std::int64_t* out) {
  const Words words(cells);
  const __m128i shift = _mm_cvtsi32_si128(cells.access.shift);
  const __m512i mask = _mm512_set1_epi64(static_cast<long long>(cells.access.mask));
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    __m512i x = _mm512_and_si512(_mm512_srl_epi64(words.from(i), shift), mask);
    if (is_narrow) x = _mm512_cvtepi32_epi64(_mm512_cvtepi64_epi32(x));
    _mm512_storeu_si512(out + i, x);
  }
  if (i != count) plain_delta_kernels().integers(behind(cells, i), count - i, is_narrow, out + i);
}

// Up to sixteen parts from one array on as 32-bit numbers.
__m512i sixteen_parts(const std::byte* from, std::size_t bytes, __mmask16 wanted) {
  switch (bytes) {
    case 1:
      return _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(wanted, from));
    case 2:
      return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(wanted, from));
    default:
      return _mm512_maskz_loadu_epi32(wanted, from);
  }
}

// Up to eight parts from one array on as 64-bit numbers.
__m512i eight_parts(const std::byte* from, std::size_t bytes, __mmask8 wanted) {
  switch (bytes) {
    case 1:
      return _mm512_cvtepu8_epi64(_mm_maskz_loadu_epi8(wanted, from));
    case 2:
      return _mm512_cvtepu16_epi64(_mm_maskz_loadu_epi16(wanted, from));
    case 4:
      return _mm512_cvtepu32_epi64(_mm256_maskz_loadu_epi32(wanted, from));
    default:
      return _mm512_maskz_loadu_epi64(wanted, from);
  }
}

// Calls `take(i, array, row, rows)` for rows that lie side by side in one block, and starts
// fetching the array of a later block: the processor's own prefetching does not step from block to
// block.
template <typename Take>
void for_runs(const PartCells& cells, std::size_t count, Take&& take) {
  constexpr std::size_t kBlocksAhead = 4;
  FLUGS_DCHECK(cells.positions == nullptr && cells.first < RowBlock::kRows);
  for (std::size_t i = 0; i < count;) {
    const std::size_t number = cells.first + i;
    const std::size_t row = number % RowBlock::kRows;
    const std::size_t rows = std::min(count - i, RowBlock::kRows - row);
    const std::byte* array = cells.array(number);
    for (std::size_t line = 0; line < RowBlock::kRows * cells.part.bytes; line += 64)
      _mm_prefetch(reinterpret_cast<const char*>(array) + kBlocksAhead * cells.block_bytes + line,
                   _MM_HINT_T0);
    take(i, array + row * cells.part.bytes, rows);
    i += rows;
  }
}

// The cells of eight chosen rows: each from the word that its part is in.
__m512i chosen_cells(const PartCells& cells, const std::uint32_t* positions) {
  const __m512i rows = _mm512_add_epi64(
      _mm512_cvtepu32_epi64(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(positions))),
      _mm512_set1_epi64(cells.first));
  constexpr long long kLast = RowBlock::kRows - 1;
  constexpr int kLog2 = std::countr_zero(RowBlock::kRows);
  const __m512i blocks = _mm512_mullo_epi64(
      _mm512_srli_epi64(rows, kLog2), _mm512_set1_epi64(static_cast<long long>(cells.block_bytes)));
  const __m512i parts =
      _mm512_sll_epi64(_mm512_and_si512(rows, _mm512_set1_epi64(kLast)),
                       _mm_cvtsi32_si128(std::countr_zero(unsigned{cells.part.bytes})));
  const __m512i at = _mm512_add_epi64(blocks, parts);
  const __m512i in_word = _mm512_and_si512(at, _mm512_set1_epi64(7));
  const __m512i words = _mm512_i64gather_epi64(_mm512_sub_epi64(at, in_word), cells.array(0), 1);
  const __m512i shift = _mm512_add_epi64(_mm512_slli_epi64(in_word, 3),
                                         _mm512_set1_epi64(static_cast<long long>(cells.shift)));
  return _mm512_and_si512(_mm512_srlv_epi64(words, shift),
                          _mm512_set1_epi64(static_cast<long long>(cells.mask)));
}

PartCells behind(const PartCells& cells, std::size_t i) {
  PartCells rest = cells;
  rest.positions += i;
  return rest;
}

std::uint32_t part_codes(const PartCells& cells, std::size_t count, std::uint32_t* out) {
  FLUGS_DCHECK(cells.mask <= 0xFFFFFFFFu && cells.part.bytes <= 8);
  __m512i greatest = _mm512_setzero_si512();
  if (cells.positions != nullptr) {
    std::size_t i = 0;
    for (; i + 8 <= count; i += 8) {
      const __m512i x = chosen_cells(cells, cells.positions + i);
      greatest = _mm512_max_epu64(greatest, x);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), _mm512_cvtepi64_epi32(x));
    }
    const auto found = static_cast<std::uint32_t>(_mm512_reduce_max_epu64(greatest));
    if (i == count) return found;
    const std::uint32_t rest =
        plain_delta_kernels().part_codes(behind(cells, i), count - i, out + i);
    return rest > found ? rest : found;
  }
  FLUGS_DCHECK(cells.part.bytes <= 4);
  const __m128i shift = _mm_cvtsi32_si128(static_cast<int>(cells.shift));
  const __m512i mask = _mm512_set1_epi32(static_cast<int>(cells.mask));
  for_runs(cells, count, [&](std::size_t first, const std::byte* from, std::size_t rows) {
    for (std::size_t i = 0; i < rows; i += 16) {
      const auto wanted = static_cast<__mmask16>(rows - i >= 16 ? 0xFFFFu : (1u << (rows - i)) - 1);
      __m512i x = sixteen_parts(from + i * cells.part.bytes, cells.part.bytes, wanted);
      x = _mm512_and_si512(_mm512_srl_epi32(x, shift), mask);
      greatest = _mm512_max_epu32(greatest, x);
      _mm512_mask_storeu_epi32(out + first + i, wanted, x);
    }
  });
  return static_cast<std::uint32_t>(_mm512_reduce_max_epu32(greatest));
}

void part_integers(const PartCells& cells, std::size_t count, bool is_narrow, std::int64_t* out) {
  const auto signed_if_narrow = [is_narrow](__m512i x) {
    return is_narrow ? _mm512_cvtepi32_epi64(_mm512_cvtepi64_epi32(x)) : x;
  };
  if (cells.positions != nullptr) {
    std::size_t i = 0;
    for (; i + 8 <= count; i += 8)
      _mm512_storeu_si512(out + i, signed_if_narrow(chosen_cells(cells, cells.positions + i)));
    if (i != count)
      plain_delta_kernels().part_integers(behind(cells, i), count - i, is_narrow, out + i);
    return;
  }
  const __m128i shift = _mm_cvtsi32_si128(static_cast<int>(cells.shift));
  const __m512i mask = _mm512_set1_epi64(static_cast<long long>(cells.mask));
  for_runs(cells, count, [&](std::size_t first, const std::byte* from, std::size_t rows) {
    for (std::size_t i = 0; i < rows; i += 8) {
      const auto wanted = static_cast<__mmask8>(rows - i >= 8 ? 0xFFu : (1u << (rows - i)) - 1);
      __m512i x = eight_parts(from + i * cells.part.bytes, cells.part.bytes, wanted);
      x = _mm512_and_si512(_mm512_srl_epi64(x, shift), mask);
      _mm512_mask_storeu_epi64(out + first + i, wanted, signed_if_narrow(x));
    }
  });
}

// The chunks of eight codes: see columns::ChunkGeometry.
__m256i chunks_of(__m256i codes) {
  constexpr int kFirst = columns::Dictionary::kFirstChunkBits;
  constexpr int kLargest = columns::Dictionary::kChunkBitsMax;
  const __m256i widths =
      _mm256_sub_epi32(_mm256_set1_epi32(32 - kFirst), _mm256_lzcnt_epi32(codes));
  const __m256i small = _mm256_max_epi32(widths, _mm256_setzero_si256());
  const __m256i blocks = _mm256_srli_epi32(codes, kLargest);
  const __m256i large = _mm256_add_epi32(blocks, _mm256_set1_epi32(kLargest - kFirst));
  return _mm256_mask_mov_epi32(small, _mm256_test_epi32_mask(blocks, blocks), large);
}

void look_up(const DictionaryEntries& entries, const std::uint32_t* codes, std::size_t count,
             std::int64_t* out) {
  FLUGS_DCHECK(entries.entry_bytes == 8 || entries.entry_bytes == 16);
  const bool is_narrow = entries.entry_bytes == 8;
  const __m128i shift = _mm_cvtsi32_si128(is_narrow ? 3 : 4);
  const auto* bases = reinterpret_cast<const long long*>(entries.bases.data());
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m256i code = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes + i));
    const __m512i base = _mm512_i32gather_epi64(chunks_of(code), bases, 8);
    const __m512i at = _mm512_add_epi64(base, _mm512_sll_epi64(_mm512_cvtepu32_epi64(code), shift));
    __m512i x = _mm512_i64gather_epi64(at, nullptr, 1);
    if (is_narrow) x = _mm512_cvtepi32_epi64(_mm512_cvtepi64_epi32(x));
    _mm512_storeu_si512(out + i, x);
  }
  if (i != count) plain_delta_kernels().look_up(entries, codes + i, count - i, out + i);
}

constexpr DeltaKernels kKernels = {"avx512",   settled,       codes,  integers,
                                   part_codes, part_integers, look_up};

}  // namespace

const DeltaKernels& avx512_delta_kernels() noexcept { return kKernels; }

}  // namespace flugs::query

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
