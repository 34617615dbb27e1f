#include "pmem/space/claim_map.h"

#include "base/check.h"

namespace flugs::pmem {

bool ClaimMap::add(Extent piece) {
  FLUGS_CHECK(piece.bytes != 0 && piece.bytes <= ~std::uint64_t{0} - piece.offset);
  const std::uint64_t end = piece.offset + piece.bytes;
  const auto next = ends_.lower_bound(piece.offset);
  if (next != ends_.end() && next->first < end) return false;
  const bool joins_next = next != ends_.end() && next->first == end;
  const auto before = next == ends_.begin() ? ends_.end() : std::prev(next);
  if (before != ends_.end() && before->second > piece.offset) return false;
  bytes_ += piece.bytes;
  if (before != ends_.end() && before->second == piece.offset) {
    before->second = joins_next ? next->second : end;
    if (joins_next) ends_.erase(next);
  } else if (joins_next) {
    auto longer = ends_.extract(next);
    longer.key() = piece.offset;
    ends_.insert(std::move(longer));
  } else {
    ends_.emplace_hint(next, piece.offset, end);
  }
  return true;
}

void ClaimMap::for_each_gap(std::uint64_t begin, std::uint64_t end,
                            FunctionRef<void(Extent)> visit) const {
  FLUGS_CHECK(begin <= end);
  for (auto piece = ends_.lower_bound(begin); begin < end; ++piece) {
    const std::uint64_t gap_end = piece == ends_.end() || piece->first > end ? end : piece->first;
    if (gap_end > begin) visit({begin, gap_end - begin});
    if (gap_end == end) return;
    begin = piece->second;
  }
}

void ClaimMap::clear() noexcept {
  ends_.clear();
  bytes_ = 0;
}

}  // namespace flugs::pmem
