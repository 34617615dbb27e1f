#include "columns/main/read_texts.h"

#include <array>
#include <cstdlib>
#include <new>

namespace flugs::columns {

/// The texts of CompressedTexts::kRows rows, one behind the other; `bytes` of them lie behind it.
struct ReadTexts::Made::Block {
  std::array<std::uint64_t, CompressedTexts::kRows> ends;

  const char* bytes() const noexcept { return reinterpret_cast<const char*>(this + 1); }
  char* bytes() noexcept { return reinterpret_cast<char*>(this + 1); }
  std::string_view text(std::uint32_t i) const noexcept {
    const std::uint64_t begin = i == 0 ? 0 : ends[i - 1];
    return {bytes() + begin, ends[i] - begin};
  }
  std::uint64_t size() const noexcept {
    return sizeof(Block) + ends.back() + TextSymbolsView::kSlack;
  }
  static Block* of(const CompressedTexts& texts, std::uint32_t first);
};

ReadTexts::Made::Block* ReadTexts::Made::Block::of(const CompressedTexts& texts,
                                                   std::uint32_t first) {
  const CompressedTexts::Block found = texts.find(first);
  // Text by text: the last code of a damaged text must not take the first one of the next.
  std::uint64_t bytes = 0;
  for (std::uint32_t i = 0; i < CompressedTexts::kRows; ++i)
    bytes += texts.symbols().bytes_of(found.codes_of(i));
  void* const memory = std::malloc(sizeof(Block) + bytes + TextSymbolsView::kSlack);
  if (memory == nullptr) throw std::bad_alloc();
  auto* const block = new (memory) Block;
  char* to = block->bytes();
  for (std::uint32_t i = 0; i < CompressedTexts::kRows; ++i) {
    to = texts.symbols().decode(found.codes_of(i), to);
    block->ends[i] = static_cast<std::uint64_t>(to - block->bytes());
  }
  return block;
}

ReadTexts::Made::Made(std::uint32_t blocks, ReadTextMemory& memory)
    : blocks_(std::make_unique<std::atomic<Block*>[]>(blocks)),
      count_(blocks),
      memory_(memory),
      bytes_(std::uint64_t{blocks} * sizeof(Block*)) {
  memory_.add(bytes_.load(std::memory_order_relaxed));
}

ReadTexts::Made::~Made() {
  for (std::uint32_t i = 0; i < count_; ++i) std::free(blocks_[i].load(std::memory_order_relaxed));
  memory_.subtract(bytes_.load(std::memory_order_relaxed));
}

ReadTexts::Made& ReadTexts::made() {
  Made* there = made_.load(std::memory_order_acquire);
  if (there != nullptr) return *there;
  const std::uint32_t blocks =
      (texts_.row_count() + CompressedTexts::kRows - 1) / CompressedTexts::kRows;
  auto fresh = std::make_unique<Made>(blocks, *memory_);
  if (made_.compare_exchange_strong(there, fresh.get(), std::memory_order_acq_rel))
    return *fresh.release();
  return *there;
}

std::string_view ReadTexts::text(std::uint32_t row) noexcept {
  FLUGS_DCHECK(row < texts_.row_count());
  Made& made = this->made();
  const std::uint32_t number = row / CompressedTexts::kRows;
  std::atomic<Made::Block*>& place = made.blocks_[number];
  Made::Block* block = place.load(std::memory_order_acquire);
  if (block == nullptr) {
    auto* const fresh = Made::Block::of(texts_, number * CompressedTexts::kRows);
    const std::uint64_t bytes = fresh->size();
    if (place.compare_exchange_strong(block, fresh, std::memory_order_acq_rel)) {
      block = fresh;
      made.bytes_.fetch_add(bytes, std::memory_order_relaxed);
      made.memory_.add(bytes);
    } else {
      std::free(fresh);
    }
  }
  return block->text(row % CompressedTexts::kRows);
}

}  // namespace flugs::columns
