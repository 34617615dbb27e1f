#include "columns/main/main_distinct.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "base/hash.h"

namespace flugs::columns {
namespace {

// A hash table of the values' places; linear probing, at most half full.
class Places {
 public:
  explicit Places(std::uint64_t values_max)
      : slots_(std::bit_ceil(std::max<std::uint64_t>(values_max, 8) * 2), DistinctValues::kNull),
        mask_(slots_.size() - 1) {}

  // The place of the value for which `is_same(place)` is true; a new value gets the place `next`.
  template <typename IsSame>
  std::uint32_t find_or_add(std::uint64_t hash, std::uint32_t next, const IsSame& is_same) {
    for (std::uint64_t at = hash & mask_;; at = (at + 1) & mask_) {
      const std::uint32_t place = slots_[at];
      if (place == DistinctValues::kNull) return slots_[at] = next;
      if (is_same(place)) return place;
    }
  }

 private:
  std::vector<std::uint32_t> slots_;
  std::uint64_t mask_;
};

std::uint64_t hash_of(const Cell& cell, TextMemory memory) noexcept {
  if (text_cell::tag_of(cell.high) != text_cell::kOutOfLine)
    return mix64(cell.low ^ mix64(cell.high + 0x9e3779b97f4a7c15u));
  return hash_text(text_of(cell, memory));
}

struct SortKey {
  std::uint64_t prefix;
  std::uint32_t place;
};

}  // namespace

std::string_view text_of(const Cell& cell, TextMemory memory) noexcept {
  // Inline text is in the cell itself, low word first.
  static_assert(offsetof(Cell, low) == 0 && offsetof(Cell, high) == 8);
  return text_cell::view(reinterpret_cast<const std::byte*>(&cell), memory.base, memory.bytes());
}

bool is_same_text(const Cell& a, const Cell& b, TextMemory memory) noexcept {
  if (a.low == b.low && a.high == b.high) return true;
  if (a.high != b.high || text_cell::tag_of(a.high) != text_cell::kOutOfLine) return false;
  return text_of(a, memory) == text_of(b, memory);
}

std::uint64_t prefix_of(std::string_view text) noexcept {
  std::uint64_t prefix = 0;
  if (!text.empty()) std::memcpy(&prefix, text.data(), std::min<std::size_t>(text.size(), 8));
  return __builtin_bswap64(prefix);
}

std::optional<DistinctValues> DistinctValues::of_integers(std::span<const std::int64_t> payloads,
                                                          std::span<const std::uint8_t> nulls,
                                                          std::uint64_t limit) {
  FLUGS_CHECK(payloads.size() < kNull && (nulls.empty() || nulls.size() == payloads.size()));
  DistinctValues found;
  found.rows_.resize(payloads.size());
  Places places(limit);
  for (std::size_t i = 0; i < payloads.size(); ++i) {
    if (!nulls.empty() && nulls[i] != 0) {
      found.rows_[i] = kNull;
      continue;
    }
    const auto payload = static_cast<std::uint64_t>(payloads[i]);
    const auto next = static_cast<std::uint32_t>(found.entries_.size());
    const std::uint32_t place = places.find_or_add(
        hash_integer(payloads[i]), next,
        [&](std::uint32_t other) { return found.entries_[other].low == payload; });
    if (place == next) {
      if (next == limit) return std::nullopt;
      found.entries_.push_back({payload, 0, false});
    }
    found.rows_[i] = place;
  }
  return found;
}

std::optional<DistinctValues> DistinctValues::of_texts(std::span<const Cell> cells,
                                                       TextMemory memory, std::uint64_t limit) {
  FLUGS_CHECK(cells.size() < kNull);
  DistinctValues found;
  found.rows_.resize(cells.size());
  Places places(limit);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (cells[i].is_null) {
      found.rows_[i] = kNull;
      continue;
    }
    if (i != 0 && !cells[i - 1].is_null && cells[i].low == cells[i - 1].low &&
        cells[i].high == cells[i - 1].high) {
      found.rows_[i] = found.rows_[i - 1];
      continue;
    }
    const auto next = static_cast<std::uint32_t>(found.entries_.size());
    const std::uint32_t place = places.find_or_add(
        hash_of(cells[i], memory), next,
        [&](std::uint32_t other) { return is_same_text(found.entries_[other], cells[i], memory); });
    if (place == next) {
      if (next == limit) return std::nullopt;
      found.entries_.push_back(cells[i]);
    }
    found.rows_[i] = place;
  }
  return found;
}

void DistinctValues::sort(Type type, TextMemory memory, bool has_nulls) {
  const bool is_text = is_text_type(type);
  constexpr std::uint64_t kSign = std::uint64_t{1} << 63;
  std::vector<SortKey> keys(entries_.size());
  for (std::uint32_t place = 0; place < keys.size(); ++place) {
    const auto payload = static_cast<std::int64_t>(entries_[place].low);
    const std::int64_t ordered = type == Type::kDouble ? ordered_double(payload) : payload;
    keys[place] = {is_text ? prefix_of(text_of(entries_[place], memory))
                           : static_cast<std::uint64_t>(ordered) ^ kSign,
                   place};
  }
  std::sort(keys.begin(), keys.end(), [&](const SortKey& a, const SortKey& b) {
    if (a.prefix != b.prefix || !is_text) return a.prefix < b.prefix;
    return text_of(entries_[a.place], memory) < text_of(entries_[b.place], memory);
  });
  std::vector<Cell> sorted(entries_.size());
  std::vector<std::uint32_t> codes(entries_.size());
  for (std::uint32_t rank = 0; rank < keys.size(); ++rank) {
    sorted[rank] = entries_[keys[rank].place];
    codes[keys[rank].place] = rank + (has_nulls ? 1 : 0);
  }
  entries_ = std::move(sorted);
  FLUGS_DCHECK(has_nulls || std::ranges::find(rows_, kNull) == rows_.end());
  for (std::uint32_t& row : rows_) row = row == kNull ? 0 : codes[row];
}

}  // namespace flugs::columns
