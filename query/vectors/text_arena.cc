#include "query/vectors/text_arena.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "query/vectors/run_context.h"

namespace flugs::query {

TextArena::~TextArena() { give_up(); }

std::string_view TextArena::keep(std::string_view text) {
  if (text.empty()) return {};
  char* const place = add(text.size());
  std::memcpy(place, text.data(), text.size());
  return {place, text.size()};
}

// Blocks that are too small for this text stay behind for later ones.
void TextArena::add_block(std::size_t bytes) {
  constexpr std::size_t kBlockBytesMin = 1024;
  constexpr std::size_t kDoublingsMax = 6;
  std::size_t found = used_;
  while (found < blocks_.size() && blocks_[found].size < bytes) ++found;
  if (found == blocks_.size()) {
    const std::size_t size = std::max(bytes, kBlockBytesMin << std::min(found, kDoublingsMax));
    Block block{std::make_unique_for_overwrite<char[]>(size), size};
    blocks_.reserve(blocks_.size() + 1);
    if (budget_ != nullptr) budget_->take(size, "computed texts");
    blocks_.push_back(std::move(block));  // cannot fail
  }
  std::swap(blocks_[used_], blocks_[found]);
  next_ = blocks_[used_].bytes.get();
  left_ = blocks_[used_].size;
  ++used_;
}

void TextArena::clear() noexcept {
  used_ = 0;
  next_ = nullptr;
  left_ = 0;
}

void TextArena::give_up() noexcept {
  clear();
  if (budget_ != nullptr)
    for (const Block& block : blocks_) budget_->give_back(block.size);
  blocks_.clear();
}

}  // namespace flugs::query
