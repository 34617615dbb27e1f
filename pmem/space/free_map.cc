#include "pmem/space/free_map.h"

#include <iterator>

#include "base/check.h"

namespace flugs::pmem {

void FreeMap::enter(Extent piece) {
  FLUGS_CHECK(piece.bytes != 0);
  by_offset_.emplace(piece.offset, piece.bytes);
  by_size_.emplace(piece.bytes, piece.offset);
  free_bytes_ += piece.bytes;
  reservable_bytes_ += Reserve::countable(piece.bytes);
}

void FreeMap::leave(std::map<std::uint64_t, std::uint64_t>::iterator piece) {
  const std::size_t erased = by_size_.erase({piece->second, piece->first});
  FLUGS_CHECK(erased == 1 && free_bytes_ >= piece->second);
  free_bytes_ -= piece->second;
  reservable_bytes_ -= Reserve::countable(piece->second);
  by_offset_.erase(piece);
}

bool FreeMap::add(Extent piece) {
  auto next = by_offset_.lower_bound(piece.offset);
  if (next != by_offset_.end() && next->first < piece.offset + piece.bytes) return false;
  if (next != by_offset_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second > piece.offset) return false;
    if (before->first + before->second == piece.offset) {
      piece.offset = before->first;
      piece.bytes += before->second;
      leave(before);
    }
  }
  if (next != by_offset_.end() && next->first == piece.offset + piece.bytes) {
    piece.bytes += next->second;
    leave(next);
  }
  enter(piece);
  FLUGS_DCHECK(by_offset_.size() == by_size_.size());
  return true;
}

std::optional<Extent> FreeMap::take(std::uint64_t bytes) {
  FLUGS_CHECK(bytes != 0);
  const auto fit = by_size_.lower_bound({bytes, 0});
  if (fit == by_size_.end()) return std::nullopt;
  const Extent whole{fit->second, fit->first};
  leave(by_offset_.find(whole.offset));
  if (whole.bytes > bytes) enter({whole.offset + bytes, whole.bytes - bytes});
  return Extent{whole.offset, bytes};
}

std::optional<std::uint64_t> FreeMap::first_fit(std::uint64_t bytes,
                                                std::uint64_t end) const noexcept {
  FLUGS_CHECK(bytes != 0);
  for (const auto& [offset, piece_bytes] : by_offset_) {
    if (offset >= end || end - offset < bytes) return std::nullopt;
    if (piece_bytes >= bytes) return offset;
  }
  return std::nullopt;
}

std::optional<Extent> FreeMap::take_below(std::uint64_t bytes, std::uint64_t end) {
  const std::optional<std::uint64_t> offset = first_fit(bytes, end);
  if (!offset) return std::nullopt;
  const bool is_taken = take_at({*offset, bytes});
  FLUGS_CHECK(is_taken);
  return Extent{*offset, bytes};
}

bool FreeMap::take_at(Extent part) {
  auto piece = by_offset_.upper_bound(part.offset);
  if (part.bytes == 0 || piece == by_offset_.begin()) return false;
  --piece;
  const Extent whole{piece->first, piece->second};
  const std::uint64_t before = part.offset - whole.offset;
  if (before >= whole.bytes || part.bytes > whole.bytes - before) return false;
  leave(piece);
  if (before != 0) enter({whole.offset, before});
  const std::uint64_t after = whole.bytes - before - part.bytes;
  if (after != 0) enter({part.offset + part.bytes, after});
  return true;
}

Extent FreeMap::first_from(std::uint64_t offset) const noexcept {
  auto piece = by_offset_.upper_bound(offset);
  if (piece != by_offset_.begin() && std::prev(piece)->first + std::prev(piece)->second > offset)
    --piece;
  return piece == by_offset_.end() ? Extent{} : Extent{piece->first, piece->second};
}

std::uint64_t FreeMap::bytes_ending_at(std::uint64_t offset) const noexcept {
  auto it = by_offset_.lower_bound(offset);
  if (it == by_offset_.begin()) return 0;
  --it;
  return it->first + it->second == offset ? it->second : 0;
}

}  // namespace flugs::pmem
