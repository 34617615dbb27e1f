#include "tables/keys/index_run.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>

#include "base/check.h"

namespace flugs::engine {

namespace {

std::uint64_t run_header_bytes(std::size_t keys) noexcept {
  return sizeof(IndexRunLayout) + keys * sizeof(IndexRunKeyLayout);
}

}  // namespace

IndexRun::IndexRun(pmem::Pool& pool, std::uint64_t offset, std::string owner)
    : pool_(pool),
      offset_(offset),
      layout_(*pool.at(pmem::OffsetPtr<IndexRunLayout>{offset})),
      owner_(std::move(owner)) {}

std::uint64_t IndexRun::checksum_of(const IndexRunLayout& layout) noexcept {
  const auto* from = reinterpret_cast<const std::byte*>(&layout.bytes);
  return XXH3_64bits(from, run_header_bytes(layout.key_count) - offsetof(IndexRunLayout, bytes));
}

std::uint64_t IndexRun::checksum_of(const IndexRunKeyLayout& key, const std::byte* run) noexcept {
  std::uint64_t sum =
      XXH3_64bits(run + key.slots_offset, key.slots_offset == 0 ? 0 : key.slot_count * 8);
  if (key.prefixes_offset == 0) return sum;
  sum = XXH3_64bits_withSeed(run + key.prefixes_offset, key.ordered_entries * 8, sum);
  sum = XXH3_64bits_withSeed(run + key.rows_offset, key.ordered_entries * 4, sum);
  return XXH3_64bits_withSeed(run + key.fences_offset, fences_for(key.ordered_entries) * 8, sum);
}

// The fences keep a search short: only few lines that it reads differ from search to search.
std::size_t IndexRun::first_not_below(std::size_t index, std::uint64_t prefix) const noexcept {
  const Key& key = keys_[index];
  FLUGS_DCHECK(key.fences.size() == fences_for(key.prefixes.size()));
  const auto fence = std::lower_bound(key.fences.begin(), key.fences.end(), prefix);
  const auto end = std::min(static_cast<std::size_t>(fence - key.fences.begin()) * kEntriesPerFence,
                            key.prefixes.size());
  const std::size_t first = end - std::min(end, kEntriesPerFence);
  const auto from = key.prefixes.begin() + static_cast<std::ptrdiff_t>(first);
  const auto to = key.prefixes.begin() + static_cast<std::ptrdiff_t>(end);
  return static_cast<std::size_t>(std::lower_bound(from, to, prefix) - key.prefixes.begin());
}

Status IndexRun::corrupt(const std::string& what, std::uint64_t expected,
                         std::uint64_t found) const {
  return Status(StatusCode::kCorrupt,
                fmt::format("{}: {}: index run at offset {}: {}: expected {}, found {}",
                            pool_.path(), owner_, offset_, what, expected, found));
}

// The first bytes of the extent, as many as a header has, must be inside the pool.
Status IndexRun::check_header(std::uint32_t table_id, std::size_t keys,
                              std::uint32_t key_additions) const {
  const std::uint64_t rest = pool_.medium().bytes() - offset_;
  if (layout_.magic != IndexRunLayout::kMagic)
    return corrupt("magic", IndexRunLayout::kMagic, layout_.magic);
  if (layout_.key_additions > key_additions)
    return corrupt("keys added, at most", key_additions, layout_.key_additions);
  const bool is_earlier = layout_.key_additions < key_additions;
  if (is_earlier ? layout_.key_count > keys : layout_.key_count != keys)
    return corrupt("keys", keys, layout_.key_count);
  if (layout_.bytes > rest || layout_.bytes < run_header_bytes(layout_.key_count))
    return corrupt("bytes, inside the pool, at most", rest, layout_.bytes);
  if (layout_.checksum != checksum_of(layout_))
    return corrupt("checksum", checksum_of(layout_), layout_.checksum);
  if (layout_.table_id != table_id) return corrupt("table", table_id, layout_.table_id);
  return {};
}

Status IndexRun::load_key(std::size_t index, const KeyShape& shape) {
  const IndexRunKeyLayout& key = key_layout(index);
  const auto holds = [&](std::uint64_t from, std::uint64_t count, std::uint64_t each) {
    return from % 64 == 0 && from >= run_header_bytes(layout_.key_count) && from <= layout_.bytes &&
           count <= (layout_.bytes - from) / each;
  };
  Key& loaded = keys_[index];
  if ((key.slots_offset != 0) != shape.is_hashed)
    return corrupt(fmt::format("slots of key {}", index), shape.is_hashed ? 1 : 0,
                   key.slots_offset);
  if ((key.prefixes_offset != 0) != shape.is_ordered)
    return corrupt(fmt::format("ordered entries of key {}", index), shape.is_ordered ? 1 : 0,
                   key.prefixes_offset);
  if (shape.is_hashed) {
    if (!holds(key.slots_offset, key.slot_count, 8))
      return corrupt(fmt::format("slots of key {} inside the run of bytes", index), layout_.bytes,
                     key.slots_offset);
    if (key.home_lines == 0 || key.home_lines > std::uint64_t{1} << 32 ||
        key.slot_count % kSlotsPerLine != 0 || key.home_lines > key.slot_count / kSlotsPerLine)
      return corrupt(fmt::format("home lines of key {}, at most", index),
                     key.slot_count / kSlotsPerLine, key.home_lines);
    loaded.home_lines = key.home_lines;
    loaded.slots = {reinterpret_cast<const std::uint64_t*>(base() + key.slots_offset),
                    key.slot_count};
  }
  if (shape.is_ordered) {
    if (!holds(key.prefixes_offset, key.ordered_entries, 8) ||
        !holds(key.rows_offset, key.ordered_entries, 4) ||
        !holds(key.fences_offset, fences_for(key.ordered_entries), 8))
      return corrupt(fmt::format("ordered entries of key {} inside the run of bytes", index),
                     layout_.bytes, key.prefixes_offset);
    loaded.prefixes = {reinterpret_cast<const std::uint64_t*>(base() + key.prefixes_offset),
                       key.ordered_entries};
    loaded.rows = {reinterpret_cast<const std::uint32_t*>(base() + key.rows_offset),
                   key.ordered_entries};
    loaded.fences = {reinterpret_cast<const std::uint64_t*>(base() + key.fences_offset),
                     fences_for(key.ordered_entries)};
  }
  loaded.is_loaded = true;
  entries_ = std::max({entries_, key.hashed_entries, key.ordered_entries});
  return {};
}

Result<std::unique_ptr<const IndexRun>> IndexRun::load(pmem::Pool& pool, std::uint64_t offset,
                                                       std::uint32_t table_id,
                                                       std::span<const KeyShape> keys,
                                                       std::uint32_t key_additions,
                                                       const std::string& owner) {
  FLUGS_CHECK(keys.size() <= kKeysMax);
  const std::uint64_t pool_bytes = pool.medium().bytes();
  if (offset == 0 || offset % 64 != 0 || offset > pool_bytes ||
      pool_bytes - offset < run_header_bytes(0))
    return Status(StatusCode::kCorrupt,
                  fmt::format("{}: {}: index run at offset {}: expected an offset aligned to 64 "
                              "and inside the pool of {} bytes",
                              pool.path(), owner, offset, pool_bytes));
  std::unique_ptr<IndexRun> run(new IndexRun(pool, offset, owner));
  if (Status s = run->check_header(table_id, keys.size(), key_additions); !s.ok()) return s;
  const bool is_earlier = run->layout_.key_additions != key_additions;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    // A run that lacks one of the added keys counts as having none of them.
    if (keys[i].is_dropped || (keys[i].is_added && is_earlier)) continue;
    if (i >= run->layout_.key_count)
      return run->corrupt("keys, more than", i, run->layout_.key_count);
    if (Status s = run->load_key(i, keys[i]); !s.ok()) return s;
  }
  return std::unique_ptr<const IndexRun>(std::move(run));
}

// Checks that each slot is found from its home, and their number.
Status IndexRun::audit_slots(std::size_t key) const {
  std::uint64_t last = 0;
  std::uint64_t last_at = 0;
  std::uint64_t entries = 0;
  const std::span<const std::uint64_t> slots = keys_[key].slots;
  for (std::uint64_t i = 0; i < slots.size(); ++i) {
    if (slots[i] == 0) continue;
    const std::uint64_t home = home_of(slots[i] >> 32, keys_[key].home_lines);
    const bool is_behind_last = i == last_at + 1 || entries == 0;
    if (slots[i] < last || home > i || (i != home && !is_behind_last) ||
        (entries == 0 && i != home))
      return corrupt(fmt::format("slot {} of key {}, at home in", i, key), home, slots[i]);
    last = slots[i];
    last_at = i;
    ++entries;
  }
  if (entries != key_layout(key).hashed_entries)
    return corrupt(fmt::format("entries of key {}", key), key_layout(key).hashed_entries, entries);
  return {};
}

Status IndexRun::audit() const {
  for (std::size_t i = 0; i < layout_.key_count; ++i) {
    if (!keys_[i].is_loaded) continue;
    const std::uint64_t checksum = checksum_of(key_layout(i), base());
    if (checksum != key_layout(i).checksum)
      return corrupt(fmt::format("checksum of key {}", i), key_layout(i).checksum, checksum);
    if (Status s = audit_slots(i); !s.ok()) return s;
    for (std::size_t k = 0; k < keys_[i].fences.size(); ++k)
      if (const std::uint64_t prefix = keys_[i].prefixes[k * kEntriesPerFence];
          keys_[i].fences[k] != prefix)
        return corrupt(fmt::format("fence {} of key {}", k, i), prefix, keys_[i].fences[k]);
  }
  return {};
}

}  // namespace flugs::engine
