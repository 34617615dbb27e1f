#include "query/vectors/delta_kernels.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

#include "columns/dictionary/dictionary.h"
#include "columns/main/main_kernels.h"
#include "mvcc/stamps.h"
#include "test/support/random.h"

using namespace flugs;
using namespace flugs::query;

namespace {

using columns::Dictionary;
using test::Random;

constexpr std::size_t kRows = 200;

/// Rows of random words, and a random place for a column.
struct RandomRows {
  RandomRows(std::size_t row_bytes, Random& random) : words(kRows * row_bytes / 8) {
    for (std::uint64_t& word : words) word = random.next();
    cells.rows = reinterpret_cast<const std::byte*>(words.data());
    cells.row_bytes = row_bytes;
    for (std::uint32_t row = 0; row < kRows; ++row)
      if (random.below(3) != 0) positions.push_back(row);
  }
  void put_column(unsigned bits, Random& random) {
    cells.access.mask = bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
    cells.access.word = static_cast<std::uint16_t>(random.below(cells.row_bytes / 8));
    cells.access.shift = static_cast<std::uint8_t>(random.below(65 - bits));
  }
  /// Calls `body(cells, count)` for all rows, some from the first on, and some in between.
  template <typename Body>
  void for_selections(const Body& body) {
    cells.positions = nullptr;
    for (const std::size_t count : {kRows, std::size_t{0}, std::size_t{7}, std::size_t{65}})
      body(cells, count);
    cells.positions = positions.data();
    body(cells, positions.size());
  }

  std::vector<std::uint64_t> words;
  std::vector<std::uint32_t> positions;
  RowCells cells;
};

/// Blocks of random bytes, and a random part of their rows.
class RandomBlocks {
 public:
  explicit RandomBlocks(Random& random)
      : block_bytes_(RowBlock::kRows * 16 * (2 + random.below(6))),
        words_(block_bytes_ / 8 * kBlocks) {
    for (std::uint64_t& word : words_) word = random.next();
    cells_.blocks = reinterpret_cast<const std::byte*>(words_.data());
    cells_.block_bytes = block_bytes_;
    cells_.part.bytes = static_cast<std::uint16_t>(1u << random.below(4));
    const std::size_t row_bytes = block_bytes_ / RowBlock::kRows;
    cells_.part.offset =
        static_cast<std::uint16_t>(16 + random.below(row_bytes - 16 - cells_.part.bytes + 1));
    const unsigned bits = 1 + static_cast<unsigned>(random.below(cells_.part.bytes * 8));
    cells_.shift = static_cast<unsigned>(random.below(cells_.part.bytes * 8 - bits + 1));
    cells_.mask = bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
    cells_.first = static_cast<std::uint32_t>(random.below(RowBlock::kRows));
    for (std::uint32_t row = 0; row < kRows; ++row)
      if (random.below(3) != 0) positions_.push_back(row);
  }
  template <typename Body>
  void for_selections(Random& random, const Body& body) {
    cells_.positions = nullptr;
    for (const std::size_t count :
         {kRows, std::size_t{0}, std::size_t{7}, std::size_t{65}, random.below(kRows)})
      body(cells_, count);
    cells_.positions = positions_.data();
    body(cells_, positions_.size());
  }
  /// Byte by byte.
  std::vector<std::uint64_t> cells(std::size_t count) const {
    std::vector<std::uint64_t> found(count);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t row =
          cells_.first + (cells_.positions == nullptr ? i : cells_.positions[i]);
      const std::byte* at = cells_.blocks + row / RowBlock::kRows * block_bytes_ +
                            std::size_t{cells_.part.offset} * RowBlock::kRows +
                            row % RowBlock::kRows * cells_.part.bytes;
      for (std::size_t byte = cells_.part.bytes; byte-- != 0;)
        found[i] = found[i] << 8 | static_cast<std::uint64_t>(at[byte]);
      found[i] = found[i] >> cells_.shift & cells_.mask;
    }
    return found;
  }

 private:
  static constexpr std::size_t kBlocks = 5;
  static_assert(kRows <= (kBlocks - 1) * RowBlock::kRows);
  std::size_t block_bytes_;
  std::vector<std::uint64_t> words_;
  std::vector<std::uint32_t> positions_;
  PartCells cells_;
};

const DeltaKernels* vector_kernels() {
  if (!columns::force_kernel_route(columns::KernelRoute::kAvx512)) return nullptr;
  return &avx512_delta_kernels();
}

/// Stamps of all kinds around a snapshot.
std::uint64_t random_stamp(std::uint64_t snapshot, Random& random) {
  const std::uint64_t stamps[] = {0,
                                  1,
                                  snapshot - 1,
                                  snapshot,
                                  snapshot + 1,
                                  mvcc::kTimestampMax,
                                  mvcc::make_tag(3, random.below(100)),
                                  mvcc::make_tag(mvcc::kSlotsMax, mvcc::kGenerationMax)};
  return stamps[random.below(std::size(stamps))];
}

}  // namespace

TEST_CASE("every route reads cells like the plain one, at any place and width") {
  const DeltaKernels* kernels = vector_kernels();
  if (kernels == nullptr) return;
  const DeltaKernels& plain = plain_delta_kernels();
  Random random(31);
  std::size_t wrong = 0;
  for (const std::size_t row_bytes : {32, 64, 128, 4096}) {
    RandomRows rows(row_bytes, random);
    for (unsigned bits = 1; bits <= 64; ++bits) {
      rows.put_column(bits, random);
      rows.for_selections([&](const RowCells& cells, std::size_t count) {
        std::vector<std::int64_t> found(count);
        std::vector<std::int64_t> wanted(count);
        const bool is_narrow = bits == 32;
        kernels->integers(cells, count, is_narrow, found.data());
        plain.integers(cells, count, is_narrow, wanted.data());
        wrong += found == wanted ? 0 : 1;
        if (bits > 32) return;
        std::vector<std::uint32_t> codes(count);
        std::vector<std::uint32_t> wanted_codes(count);
        const std::uint32_t greatest = kernels->codes(cells, count, codes.data());
        wrong += greatest == plain.codes(cells, count, wanted_codes.data()) ? 0 : 1;
        wrong += codes == wanted_codes ? 0 : 1;
        wrong += count == 0 || greatest == *std::max_element(codes.begin(), codes.end()) ? 0 : 1;
      });
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("every route reads parts of rows like the plain one, and the plain one reads cells") {
  const DeltaKernels* kernels = vector_kernels();
  const DeltaKernels& plain = plain_delta_kernels();
  Random random(33);
  std::size_t wrong = 0;
  for (int round = 0; round < 300; ++round) {
    RandomBlocks blocks(random);
    blocks.for_selections(random, [&](const PartCells& cells, std::size_t count) {
      const std::vector<std::uint64_t> expected = blocks.cells(count);
      std::vector<std::int64_t> found(count);
      for (const bool is_narrow : {false, true}) {
        std::vector<std::int64_t> wanted(count);
        plain.part_integers(cells, count, is_narrow, wanted.data());
        for (std::size_t i = 0; i < count; ++i)
          wrong += wanted[i] == (is_narrow ? static_cast<std::int32_t>(expected[i])
                                           : static_cast<std::int64_t>(expected[i]))
                       ? 0
                       : 1;
        if (kernels == nullptr) continue;
        kernels->part_integers(cells, count, is_narrow, found.data());
        wrong += found == wanted ? 0 : 1;
      }
      if (cells.part.bytes > 4) return;
      std::vector<std::uint32_t> codes(count);
      std::vector<std::uint32_t> wanted(count);
      const std::uint32_t greatest = plain.part_codes(cells, count, wanted.data());
      for (std::size_t i = 0; i < count; ++i) wrong += wanted[i] == expected[i] ? 0 : 1;
      wrong +=
          greatest == (count == 0 ? 0 : *std::max_element(wanted.begin(), wanted.end())) ? 0 : 1;
      if (kernels == nullptr) return;
      wrong += kernels->part_codes(cells, count, codes.data()) == greatest ? 0 : 1;
      wrong += codes == wanted ? 0 : 1;
    });
  }
  CHECK(wrong == 0);
}

TEST_CASE("every route finds the same settled rows") {
  const DeltaKernels* kernels = vector_kernels();
  Random random(32);
  std::size_t wrong = 0;
  std::size_t whole = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::size_t row_bytes = std::size_t{16} << random.below(4);
    const std::size_t count = random.below(3) == 0 ? 1 + random.below(64) : 64;
    const std::uint64_t snapshot = random.below(4) == 0 ? 0 : 2 + random.below(1u << 20);
    const std::uint64_t share = random.below(40);  // of rows that are not just old
    std::vector<std::uint64_t> words(64 * row_bytes / 8, random.next());
    std::uint64_t settled = 0;
    for (std::size_t row = 0; row < count; ++row) {
      std::uint64_t* stamps = words.data() + row * row_bytes / 8;
      stamps[0] = random.below(20) < share ? random_stamp(snapshot, random) : 1;
      stamps[1] = random.below(20) < share ? random_stamp(snapshot, random) : 0;
      const bool is_old = stamps[0] != 0 && !mvcc::is_tag(stamps[0]) && stamps[0] <= snapshot;
      settled |= std::uint64_t{is_old && stamps[1] == 0} << row;
    }
    const auto* rows = reinterpret_cast<const std::byte*>(words.data());
    wrong += plain_delta_kernels().settled(rows, row_bytes, count, snapshot) == settled ? 0 : 1;
    if (kernels != nullptr)
      wrong += kernels->settled(rows, row_bytes, count, snapshot) == settled ? 0 : 1;
    whole += settled == ~std::uint64_t{0} ? 1 : 0;
  }
  CHECK(wrong == 0);
  CHECK(whole > 10);
}

TEST_CASE("codes are looked up in the chunks that they are in, for every route") {
  const DeltaKernels* kernels = vector_kernels();
  Random random(33);
  // Up to the third chunk of the largest size.
  constexpr std::uint32_t kCodes = 3u << Dictionary::kChunkBitsMax;
  constexpr columns::ChunkGeometry kGeometry{Dictionary::kFirstChunkBits,
                                             Dictionary::kChunkBitsMax};
  for (const std::uint32_t entry_bytes : {8u, 16u}) {
    // Entry `code` of a chunk is in the chunk's own part of the words, wherever that is.
    std::vector<std::uint64_t> words(std::size_t{kCodes} * entry_bytes / 8);
    for (std::uint64_t& word : words) word = random.next();
    const auto* first = reinterpret_cast<const std::byte*>(words.data());
    std::vector<std::uint64_t> bases;
    std::vector<const std::byte*> chunks;
    std::uint64_t end = kCodes;  // chunks from the end of the words on
    for (std::size_t chunk = 0; chunk <= Dictionary::chunk_of(kCodes - 1); ++chunk) {
      end -= kGeometry.elements_in(chunk);
      chunks.push_back(first + end * entry_bytes);
      bases.push_back(reinterpret_cast<std::uint64_t>(chunks.back()) -
                      kGeometry.first_of(chunk) * entry_bytes);
    }
    std::vector<std::uint32_t> codes = {0, 1, 255, 256, kCodes - 1};
    for (unsigned bits = 8; bits <= Dictionary::kChunkBitsMax; ++bits)
      for (const std::uint32_t around : {0u, 1u, 2u}) codes.push_back((1u << bits) - 1 + around);
    while (codes.size() < 1003) codes.push_back(static_cast<std::uint32_t>(random.below(kCodes)));
    std::vector<std::int64_t> wanted;
    for (const std::uint32_t code : codes) {
      const std::size_t chunk = kGeometry.chunk_of(code);
      std::uint64_t word = 0;
      std::memcpy(&word, chunks[chunk] + (code - kGeometry.first_of(chunk)) * entry_bytes, 8);
      wanted.push_back(entry_bytes == 8 ? static_cast<std::int32_t>(word)
                                        : static_cast<std::int64_t>(word));
    }
    const DictionaryEntries entries{bases, entry_bytes};
    std::vector<std::int64_t> found(codes.size());
    plain_delta_kernels().look_up(entries, codes.data(), codes.size(), found.data());
    CHECK(found == wanted);
    if (kernels == nullptr) continue;
    std::fill(found.begin(), found.end(), 0);
    kernels->look_up(entries, codes.data(), codes.size(), found.data());
    CHECK(found == wanted);
  }
}
