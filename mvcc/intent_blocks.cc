#include "mvcc/intent_blocks.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/check.h"
#include "pmem/space/extent_allocator.h"

namespace flugs::mvcc {

namespace {

// No piece is smaller, unless the last words need less.
constexpr std::uint64_t kPieceBytesMin = 4096;

std::uint64_t bytes_for(std::uint64_t words) noexcept {
  return sizeof(IntentBlockLayout) + words * sizeof(Intent);
}
std::uint64_t words_in(const pmem::Extent& block) noexcept {
  return (block.bytes - sizeof(IntentBlockLayout)) / sizeof(Intent);
}
std::uint64_t checksum_of(const IntentBlockLayout& block) noexcept {
  return XXH3_64bits(&block, offsetof(IntentBlockLayout, checksum));
}
Intent* words_of(pmem::Pool& pool, const pmem::Extent& block) noexcept {
  return pool.at(pmem::OffsetPtr<Intent>{block.offset + sizeof(IntentBlockLayout)});
}

void release_all(pmem::Pool& pool, const std::vector<pmem::Extent>& blocks) {
  for (const pmem::Extent& block : blocks) pool.allocator().release(block);
}

/// Room for `words`: one piece of `bytes` bytes, else one that is as large as it must be, else
/// pieces as large as can be had.
Result<std::vector<pmem::Extent>> allocate(pmem::Pool& pool, std::uint64_t words,
                                           std::uint64_t bytes, pmem::Persister& persister) {
  std::vector<pmem::Extent> pieces;
  Status refused;
  while (words != 0) {
    Result<pmem::Extent> piece =
        pool.allocator().allocate(bytes, persister, pmem::Purpose::kReclaim);
    if (piece.ok()) {
      pieces.push_back(*piece);
      words -= std::min(words, words_in(*piece));
      bytes = std::min(bytes, bytes_for(words));
      continue;
    }
    if (refused.ok()) refused = std::move(piece).status();
    if (bytes <= kPieceBytesMin) {
      release_all(pool, pieces);
      return refused;
    }
    bytes = std::min(bytes_for(words), std::max(bytes / 2, kPieceBytesMin));
  }
  return pieces;
}

}  // namespace

Status IntentBlocks::claim(pmem::Pool& pool, std::uint64_t offset, std::string_view owner) {
  const std::uint64_t pool_bytes = pool.medium().bytes();
  while (offset != 0) {
    const bool inside = offset % 64 == 0 && offset <= pool_bytes - sizeof(IntentBlockLayout);
    const auto* block = inside ? pool.at(pmem::OffsetPtr<IntentBlockLayout>{offset}) : nullptr;
    if (block == nullptr || block->magic != IntentBlockLayout::kMagic ||
        block->checksum != checksum_of(*block) || block->bytes < sizeof *block)
      return Status(StatusCode::kCorrupt,
                    fmt::format("{}: the intent block at offset {} {}", owner, offset,
                                inside ? "has a damaged header" : "lies outside the pool"));
    // A chain that leads back to a block of it fails here.
    if (Status s = pool.allocator().claim({offset, block->bytes}, owner); !s.ok()) return s;
    blocks_.push_back({offset, block->bytes});
    offset = block->next;
  }
  return {};
}

// Protocol intent_block: a larger place for a slot's intents.
//   step  store                        made durable by     power cut just after it: recovery
//   1     headers of the blocks, each  flush, fence        blocks unreachable: free space
//         with the offset of the next
//   2     the half's pointer to the    persist (8 bytes)   claims the blocks, the old ones are
//         first one                                        free
// Must hold:  1 before 2. The stamps of the half's former transaction are durable (commit/4), so
//             losing its intents loses nothing.
Status IntentBlocks::enlarge(pmem::Pool& pool, std::uint64_t& pointer, std::uint64_t words,
                             pmem::Persister& persister) {
  if (words <= capacity()) return {};
  Result<std::vector<pmem::Extent>> made =
      allocate(pool, words, std::max(bytes_for(words), 2 * bytes()), persister);
  if (!made.ok()) return std::move(made).status();
  for (std::size_t i = 0; i < made->size(); ++i) {
    auto* block = pool.at(pmem::OffsetPtr<IntentBlockLayout>{(*made)[i].offset});
    block->magic = IntentBlockLayout::kMagic;
    block->bytes = (*made)[i].bytes;
    block->next = i + 1 < made->size() ? (*made)[i + 1].offset : 0;
    block->checksum = checksum_of(*block);
    persister.flush(block, sizeof *block, "intent_block/1");
  }
  persister.fence("intent_block/1");
  std::atomic_ref(pointer).store(made->front().offset, std::memory_order_relaxed);
  persister.persist(&pointer, sizeof pointer, "intent_block/2");
  release(pool);
  blocks_ = *std::move(made);
  return {};
}

void IntentBlocks::store(pmem::Pool& pool, std::span<const Intent> words,
                         pmem::Persister& persister) const {
  FLUGS_CHECK(words.size() <= capacity());
  for (std::size_t i = 0; !words.empty(); ++i) {
    const auto here = words.first(std::min<std::size_t>(words.size(), words_in(blocks_[i])));
    Intent* begin = words_of(pool, blocks_[i]);
    std::copy(here.begin(), here.end(), begin);
    persister.flush(begin, here.size() * sizeof(Intent), "commit/1");
    words = words.subspan(here.size());
  }
}

std::vector<Intent> IntentBlocks::read(pmem::Pool& pool, std::uint64_t count) const {
  std::vector<Intent> words;
  words.reserve(std::min(count, capacity()));
  for (const pmem::Extent& block : blocks_) {
    const std::uint64_t here = std::min(count - words.size(), words_in(block));
    const Intent* begin = words_of(pool, block);
    words.insert(words.end(), begin, begin + here);
  }
  return words;
}

void IntentBlocks::release(pmem::Pool& pool) {
  release_all(pool, blocks_);
  blocks_.clear();
}

std::uint64_t IntentBlocks::capacity() const noexcept {
  std::uint64_t words = 0;
  for (const pmem::Extent& block : blocks_) words += words_in(block);
  return words;
}

std::uint64_t IntentBlocks::bytes() const noexcept {
  std::uint64_t bytes = 0;
  for (const pmem::Extent& block : blocks_) bytes += block.bytes;
  return bytes;
}

}  // namespace flugs::mvcc
