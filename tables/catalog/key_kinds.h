#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "flugs/index_place.h"
#include "flugs/schema.h"
#include "tables/catalog/catalog_layout.h"

namespace flugs::engine {

/// The kinds of indexes of keys. A key has one for look-ups of a whole key if it is unique, and one
/// for ranges if it is ordered.
enum class KeyKind : std::uint8_t { kNone, kHash, kHint, kOrdered };

/// All that is known of a kind outside of the class that keeps its entries (tables/keys).
struct KeyKindFacts {
  KeyKind kind;  ///< that the row is of
  std::string_view name;
  bool is_ordered;  ///< serves ranges; other kinds serve look-ups by hash
  bool is_in_pool;  ///< opening finds it; all others are made of the rows, at opening or later
  bool is_in_runs;  ///< index runs have its entries of the rows that they serve
  /// An entry that was erased may come back, so a row may have several, and a version may have one
  /// beside that of a newer version that leads to it.
  bool may_come_back;
  /// Unique keys that are created together with their table have this kind in this mode.
  std::optional<IndexPlace> mode;
};

/// Row i is of the kind with the number i.
inline constexpr std::array<KeyKindFacts, 4> kKeyKindFacts = {{
    {KeyKind::kNone, "none", false, false, false, false, {}},
    {KeyKind::kHash, "hash", false, false, true, false, IndexPlace::kDram},
    {KeyKind::kHint, "hint", false, true, false, true, IndexPlace::kPool},
    {KeyKind::kOrdered, "ordered", true, false, true, false, {}},
}};
static_assert(
    [] {
      for (std::size_t i = 0; i < kKeyKindFacts.size(); ++i)
        if (static_cast<std::size_t>(kKeyKindFacts[i].kind) != i) return false;
      return true;
    }(),
    "a row stands at the number of its kind");
static_assert(kKeyKindFacts.size() == static_cast<std::size_t>(KeyKind::kOrdered) + 1);

constexpr const KeyKindFacts& facts_of(KeyKind kind) noexcept {
  return kKeyKindFacts[static_cast<std::size_t>(kind)];
}

/// For options of a user and words of the pool: modes have the numbers from 0 up to this.
inline constexpr std::uint64_t kLastIndexPlace = [] {
  std::uint64_t last = 0;
  for (const KeyKindFacts& facts : kKeyKindFacts)
    if (facts.mode) last = std::max(last, static_cast<std::uint64_t>(*facts.mode));
  return last;
}();
/// The kind of unique keys that are created together with their table.
constexpr KeyKind unique_kind_in(IndexPlace mode) noexcept {
  for (const KeyKindFacts& facts : kKeyKindFacts)
    if (facts.mode == mode) return facts.kind;
  return KeyKind::kNone;
}
static_assert(
    [] {
      for (std::uint64_t mode = 0; mode <= kLastIndexPlace; ++mode)
        if (unique_kind_in(static_cast<IndexPlace>(mode)) == KeyKind::kNone) return false;
      return true;
    }(),
    "each mode has a kind");
/// Whether tables of this mode have room for indexes in their own extent, one per column and key.
constexpr bool is_in_pool(IndexPlace mode) noexcept {
  return facts_of(unique_kind_in(mode)).is_in_pool;
}
/// The mode in which the table was created.
constexpr IndexPlace mode_of(const TableLayout& layout) noexcept {
  return layout.hints_offset == 0 ? IndexPlace::kDram : IndexPlace::kPool;
}
/// A key that is added later finds no room in the table's extent.
inline constexpr IndexPlace kModeOfAddedKeys = IndexPlace::kDram;
static_assert(!is_in_pool(kModeOfAddedKeys));

/// What a key has.
struct KeyKinds {
  KeyKind for_lookups = KeyKind::kNone;
  KeyKind for_ranges = KeyKind::kNone;
};
inline KeyKinds kinds_of(const KeySchema& key, IndexPlace mode) noexcept {
  return {key.unique ? unique_kind_in(mode) : KeyKind::kNone,
          key.ordered ? KeyKind::kOrdered : KeyKind::kNone};
}

}  // namespace flugs::engine
