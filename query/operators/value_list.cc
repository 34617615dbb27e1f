#include "query/operators/value_list.h"

#include <algorithm>
#include <new>

#include "base/check.h"

namespace flugs::query {

namespace {

constexpr std::size_t kKeptBytesMin = std::size_t{4} << 10;
constexpr std::size_t kKeptBytesMax = std::size_t{1} << 20;
// A block is a small part of a small budget.
constexpr std::uint64_t kBlocksOfBudget = 256;
// A list begins small, since there may be many.
constexpr std::uint32_t kFirstValues = 2;
constexpr std::uint32_t kChunkValuesMax = 1024;

}  // namespace

KeptMemory::KeptMemory(MemoryBudget& budget)
    : block_bytes_max_(std::clamp<std::uint64_t>(budget.bytes_max() / kBlocksOfBudget,
                                                 kKeptBytesMin, kKeptBytesMax)),
      charge_(budget, "group by") {}

void KeptMemory::add_block(std::size_t bytes) {
  FLUGS_CHECK(bytes % 8 == 0);
  const std::size_t wanted =
      std::max(bytes, std::clamp<std::size_t>(charge_.bytes(), kKeptBytesMin, block_bytes_max_));
  charge_.add(wanted);
  blocks_.push_back(std::make_unique_for_overwrite<std::byte[]>(wanted));
  next_ = blocks_.back().get();
  left_ = wanted;
}

void KeptMemory::clear() noexcept {
  blocks_.clear();
  next_ = nullptr;
  left_ = 0;
  charge_.set(0);
}

void grow(ValueList& list, std::size_t bytes_of_value, KeptMemory& memory) {
  const std::uint32_t room =
      list.last == nullptr ? kFirstValues : std::min(2 * list.last->room, kChunkValuesMax);
  std::byte* const place = memory.add(sizeof(ValueChunk) + room * bytes_of_value);
  auto* const chunk = new (place) ValueChunk{nullptr, 0, room};
  append_list({chunk, chunk}, list);
}

void append_list(const ValueList& from, ValueList& into) noexcept {
  if (from.first == nullptr) return;
  if (into.first == nullptr)
    into.first = from.first;
  else
    into.last->next = from.first;
  into.last = from.last;
}

}  // namespace flugs::query
