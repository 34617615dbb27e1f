#include "query/vectors/text_arena.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "query/vectors/run_context.h"

namespace flugs::query {

TextArena::~TextArena() {
  if (budget_ == nullptr) return;
  for (const Block& block : blocks_) budget_->give_back(block.size);
}

std::string_view TextArena::keep(std::string_view text) {
  if (text.empty()) return {};
  char* const place = add(text.size());
  std::memcpy(place, text.data(), text.size());
  return {place, text.size()};
}

void TextArena::add_block(std::size_t bytes) {
  constexpr std::size_t kBlockBytes = std::size_t{1} << 16;
  while (used_ < blocks_.size() && blocks_[used_].size < bytes) ++used_;
  if (used_ == blocks_.size()) {
    const std::size_t size = std::max(bytes, kBlockBytes);
    Block block{std::make_unique_for_overwrite<char[]>(size), size};
    blocks_.reserve(blocks_.size() + 1);
    if (budget_ != nullptr) budget_->take(size, "computed texts");
    blocks_.push_back(std::move(block));  // cannot fail
  }
  next_ = blocks_[used_].bytes.get();
  left_ = blocks_[used_].size;
  ++used_;
}

void TextArena::clear() noexcept {
  used_ = 0;
  next_ = nullptr;
  left_ = 0;
}

}  // namespace flugs::query
