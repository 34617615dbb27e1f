#include "engine/merge/index_run_builder.h"

#include <algorithm>
#include <functional>
#include <mutex>

#include "base/check.h"
#include "base/parallel_sort.h"
#include "pmem/medium/scm_reads.h"
#include "tables/rows/space_reserve.h"

namespace flugs::engine {

namespace {

// Rows gathered in DRAM at a time: some 24 bytes per row.
constexpr std::uint64_t kRowsPerRun = std::uint64_t{1} << 24;
// An earlier run is combined into a new one if it has at most this many times the new one's rows.
// So each row is written again only a few times, and there are few runs: at most five for 1 to 100
// M rows. A merge of everything prefers fewer runs.
constexpr std::uint64_t kCombinedRatio = 4;
constexpr std::uint64_t kCombinedRatioOfAll = 16;
// A run is written again if this part of its rows, a quarter, is gone.
constexpr std::uint64_t kSparsePart = 4;
// Six entries in a line of eight: one line in ten is full.
constexpr std::uint64_t kEntriesPerLine = 6;
static_assert(kEntriesPerLine < IndexRun::kSlotsPerLine);

/// Which entries pass: all gathered ones; of a run, those of created rows that it covers.
class RowFilter {
 public:
  RowFilter() = default;
  RowFilter(const TableData& table, const ChunkSet& covered) : table_(&table), covered_(&covered) {}
  bool passes(std::uint32_t row) const noexcept {
    return table_ == nullptr ||
           (covered_->has(table_->rows.chunk_of(row)) && table_->runs.is_created(row));
  }

 private:
  const TableData* table_ = nullptr;
  const ChunkSet* covered_ = nullptr;
};

class SlotSource {
 public:
  using Entry = std::uint64_t;
  SlotSource(std::span<const std::uint64_t> slots, RowFilter filter)
      : slots_(slots), filter_(filter) {
    settle();
  }
  bool is_empty() const noexcept { return at_ == slots_.size(); }
  Entry front() const noexcept {
    FLUGS_DCHECK(!is_empty());
    return slots_[at_];
  }
  void pop() noexcept {
    FLUGS_DCHECK(!is_empty());
    ++at_;
    settle();
  }

 private:
  void settle() noexcept {
    while (at_ < slots_.size() &&
           (slots_[at_] == 0 || !filter_.passes(IndexRun::row_of(slots_[at_]))))
      ++at_;
  }

  std::span<const std::uint64_t> slots_;
  RowFilter filter_;
  std::size_t at_ = 0;
};

class EntrySource {
 public:
  using Entry = columns::OrderedEntry;
  explicit EntrySource(std::span<const Entry> gathered) : gathered_(gathered) {}
  EntrySource(const IndexRun& run, std::size_t key, RowFilter filter)
      : prefixes_(run.prefixes(key)), rows_(run.ordered_rows(key)), filter_(filter) {
    settle();
  }
  bool is_empty() const noexcept { return at_ == gathered_.size() + rows_.size(); }
  Entry front() const noexcept {
    FLUGS_DCHECK(!is_empty());
    return gathered_.empty() ? Entry{prefixes_[at_], rows_[at_]} : gathered_[at_];
  }
  void pop() noexcept {
    FLUGS_DCHECK(!is_empty());
    ++at_;
    settle();
  }

 private:
  void settle() noexcept {
    while (at_ < rows_.size() && !filter_.passes(rows_[at_])) ++at_;
  }

  std::span<const Entry> gathered_;
  std::span<const std::uint64_t> prefixes_;
  std::span<const std::uint32_t> rows_;
  RowFilter filter_;
  std::size_t at_ = 0;
};

// Merges sorted sources. There are few of them, so the least of their first entries is searched for
// in all.
template <typename Source, typename Before, typename Take>
void combine(std::vector<Source>& sources, Before&& before, Take&& take) {
  for (;;) {
    Source* least = nullptr;
    for (Source& source : sources)
      if (!source.is_empty() && (least == nullptr || before(source.front(), least->front())))
        least = &source;
    if (least == nullptr) return;
    take(least->front());
    least->pop();
  }
}

std::vector<SlotSource> slot_sources(const TableData& table, std::size_t key,
                                     std::span<const std::uint64_t> gathered,
                                     std::span<const IndexRuns::Member> members) {
  FLUGS_DCHECK(std::ranges::is_sorted(gathered));
  std::vector<SlotSource> sources{SlotSource(gathered, RowFilter())};
  for (const IndexRuns::Member& member : members)
    sources.emplace_back(member.run->slots(key), RowFilter(table, member.covered));
  return sources;
}

std::uint64_t home_lines_for(std::uint64_t entries) noexcept {
  return entries / kEntriesPerLine + 1;
}

// Places the slots: calls `put(position, slot)` in ascending order. Returns where they end.
template <typename Put>
std::uint64_t place_slots(std::vector<SlotSource>& sources, std::uint64_t home_lines, Put&& put) {
  FLUGS_CHECK(home_lines != 0 && home_lines <= std::uint64_t{1} << 32);
  std::uint64_t end = 0;
  combine(
      sources, [](std::uint64_t a, std::uint64_t b) { return a < b; },
      [&](std::uint64_t slot) {
        end = std::max(end, IndexRun::home_of(slot >> 32, home_lines));
        put(end++, slot);
      });
  return end;
}

}  // namespace

IndexRunBuilder::IndexRunBuilder(pmem::Pool& pool, TableData& table, Crew& crew,
                                 std::uint32_t threads, FunctionRef<bool()> stops)
    : pool_(pool),
      table_(table),
      rows_(table.rows),
      crew_(crew),
      threads_(threads),
      stops_(stops),
      persister_(pool.medium()) {
  FLUGS_CHECK(threads != 0);
}

// Groups that no run with all keys covers, as many as are gathered at a time.
std::vector<std::size_t> IndexRunBuilder::next_chunks() const {
  std::vector<std::size_t> chunks;
  std::uint64_t rows = 0;
  ChunkSet covered;
  for (const IndexRuns::Member& member : table_.runs.list().members)
    if (table_.runs.has_all_keys(member)) covered.unite(member.covered);
  for (std::size_t chunk = 0; chunk < rows_.chunk_count() && rows < kRowsPerRun; ++chunk) {
    const RowGroup* group = rows_.group(chunk);
    if (group == nullptr || group->stored_rows() == 0 || covered.has(chunk)) continue;
    chunks.push_back(chunk);
    rows += group->stored_rows();
  }
  return chunks;
}

// The first of the earlier runs that are combined into a new run with this many rows.
std::size_t IndexRunBuilder::first_combined(std::uint64_t rows, bool combines_all) const {
  const std::uint64_t ratio = combines_all ? kCombinedRatioOfAll : kCombinedRatio;
  const std::vector<IndexRuns::Member>& members = table_.runs.list().members;
  std::size_t first = members.size();
  while (first > 0 && table_.runs.has_all_keys(members[first - 1]) &&
         (members[first - 1].run->entries() <= rows * ratio ||
          first >= IndexRunListLayout::kRunsMax)) {
    --first;
    rows += members[first].run->entries();
  }
  return first;
}

Status IndexRunBuilder::index_groups(bool combines_all) {
  if (table_.keys.empty()) return {};
  for (;;) {
    const std::vector<std::size_t> chunks = next_chunks();
    if (chunks.empty() || stops_()) break;
    Status built = build_and_publish(chunks, first_combined(rows_of(chunks), combines_all));
    persister_.fence("index_run/2");  // no flush may stay behind unfenced
    if (built.code() == StatusCode::kOutOfSpace) break;
    if (!built.ok()) return built;
  }
  const std::size_t sparse = first_sparse();
  if (sparse == table_.runs.list().members.size() || stops_()) return {};
  Status again = build_and_publish({}, sparse);
  persister_.fence("index_run/2");
  return again.code() == StatusCode::kOutOfSpace ? Status() : again;
}

// The place of the first run that has lost a part of its rows (kSparsePart). That run and those
// behind it are written again.
std::size_t IndexRunBuilder::first_sparse() const {
  const std::vector<IndexRuns::Member>& members = table_.runs.list().members;
  std::size_t first = members.size();
  for (std::size_t i = members.size(); i > 0 && table_.runs.has_all_keys(members[i - 1]); --i) {
    const IndexRuns::Member& member = members[i - 1];
    std::uint64_t rows = 0;
    for (std::size_t chunk = 0; chunk < member.covered.words().size() * 64; ++chunk)
      if (member.covered.has(chunk)) rows += rows_.group(chunk)->stored_rows();
    if (rows * kSparsePart <= member.run->entries() * (kSparsePart - 1)) first = i - 1;
  }
  return first;
}

std::uint64_t IndexRunBuilder::rows_of(std::span<const std::size_t> chunks) const noexcept {
  std::uint64_t rows = 0;
  for (const std::size_t chunk : chunks) rows += rows_.group(chunk)->stored_rows();
  return rows;
}

// A run only makes the next opening faster. In a nearly full pool rows have the space. A run that
// is written again takes less than before.
bool IndexRunBuilder::has_room(std::span<const std::size_t> chunks) const {
  const pmem::SpaceReport space = pool_.allocator().space();
  return chunks.empty() ||
         bytes_gathered() + space.reserved_bytes / kPartLeftForRows <= space.left_bytes();
}

Status IndexRunBuilder::build_and_publish(std::span<const std::size_t> chunks, std::size_t first) {
  gather(chunks);
  if (stops_()) return {};
  if (!has_room(chunks))
    return Status(StatusCode::kOutOfSpace);  // not reported: the merge goes on without a run
  sort();
  // The runs that are replaced stay as long as their list, which only this thread releases.
  const std::span<const IndexRuns::Member> all = table_.runs.list().members;
  const std::span<const IndexRuns::Member> sources = all.subspan(first);
  for (const IndexRuns::Member& source : sources) {
    pool_.read_ahead(source.run->memory());
    // Our checksum would confirm damage.
    if (Status s = source.run->audit(); !s.ok()) return s;
  }
  plan(sources);
  Result<pmem::Extent> extent = pool_.allocator().allocate(
      bytes(), persister_, chunks.empty() ? pmem::Purpose::kMerge : pmem::Purpose::kNewData,
      pmem::Zeros::kUnshared);
  if (!extent.ok()) return std::move(extent).status();
  write(*extent, sources);
  Status published = table_.runs.publish(*extent, chunks, first, persister_);
  if (!published.ok()) {
    persister_.fence("index_run/2");
    pool_.allocator().release(*extent);
    return published;
  }
  counts_.rows += rows_of(chunks);
  counts_.bytes += extent->bytes;
  parts_.clear();
  return {};
}

// ------------------------------------------------------------------------------------ gathering

void IndexRunBuilder::gather_chunk(std::size_t chunk, std::vector<KeyParts>& parts) const {
  FLUGS_CHECK(rows_.group(chunk) != nullptr && parts.size() == parts_.size());
  const std::uint32_t first = rows_.first_row_of(chunk);
  for (std::uint32_t i = 0; i < rows_.rows_of(chunk); ++i) {
    const std::uint32_t row = first + i;
    if (!table_.runs.is_created(row)) continue;
    for (const std::size_t k : KeySet(table_.keys.kept())) {
      const KeyIndex& key = *table_.keys[k];
      if (key.is_hashed(row))
        parts[k].slots.push_back((key.hash_of(row) & ~std::uint64_t{0xFFFFFFFF}) | (row + 1));
      if (key.entries().is_ordered_in_runs()) parts[k].entries.push_back(key.ordered_entry(row));
    }
  }
}

void IndexRunBuilder::gather(std::span<const std::size_t> chunks) {
  parts_.assign(table_.keys.size(), {});
  const std::uint64_t rows = rows_of(chunks);
  for (const std::size_t k : KeySet(table_.keys.kept())) {
    if (table_.keys[k]->entries().is_hashed_in_runs()) parts_[k].slots.reserve(rows);
    if (table_.keys[k]->entries().is_ordered_in_runs()) parts_[k].entries.reserve(rows);
  }
  if (threads_ == 1) {
    for (const std::size_t chunk : chunks) gather_chunk(chunk, parts_);
    return;
  }
  std::mutex mutex;  // protects parts_
  crew_.for_each(threads_, chunks.size(), [&](std::size_t i) {
    if (stops_()) return;
    pmem::begin_scm_task();
    std::vector<KeyParts> parts(table_.keys.size());
    gather_chunk(chunks[i], parts);
    const std::lock_guard guard(mutex);
    for (std::size_t k = 0; k < parts.size(); ++k) {
      KeyParts& all = parts_[k];
      all.slots.insert(all.slots.end(), parts[k].slots.begin(), parts[k].slots.end());
      all.entries.insert(all.entries.end(), parts[k].entries.begin(), parts[k].entries.end());
    }
  });
}

void IndexRunBuilder::sort() {
  for (const std::size_t k : KeySet(table_.keys.kept())) {
    parallel_sort(crew_, threads_, parts_[k].slots, std::less<>());
    parallel_sort(crew_, threads_, parts_[k].entries,
                  [key = table_.keys[k]](const auto& a, const auto& b) {
                    return columns::precedes(key, a, b);
                  });
  }
}

// -------------------------------------------------------------------------------------- writing

// Rows may go meanwhile, but none comes: at most what is planned here is written.
void IndexRunBuilder::plan(std::span<const IndexRuns::Member> sources) {
  for (const std::size_t k : KeySet(table_.keys.kept())) {
    KeyParts& key = parts_[k];
    key.slots_max = key.slots.size();
    key.entries_max = key.entries.size();
    for (const IndexRuns::Member& source : sources) {
      const RowFilter filter(table_, source.covered);
      for (const std::uint64_t slot : source.run->slots(k))
        key.slots_max += slot != 0 && filter.passes(IndexRun::row_of(slot)) ? 1 : 0;
      for (const std::uint32_t row : source.run->ordered_rows(k))
        key.entries_max += filter.passes(row) ? 1 : 0;
    }
    key.slot_count = table_.keys[k]->entries().is_hashed_in_runs() ? plan_slots(k, sources) : 0;
  }
}

std::uint64_t IndexRunBuilder::plan_slots(std::size_t key,
                                          std::span<const IndexRuns::Member> sources) const {
  const std::uint64_t home_lines = home_lines_for(parts_[key].slots_max);
  std::vector<SlotSource> from = slot_sources(table_, key, parts_[key].slots, sources);
  const std::uint64_t end = place_slots(from, home_lines, [](std::uint64_t, std::uint64_t) {});
  return std::max(pmem::whole_lines(end * 8) / 8, home_lines * IndexRun::kSlotsPerLine);
}

// The least size of a run with the gathered entries, before they are sorted.
std::uint64_t IndexRunBuilder::bytes_gathered() const noexcept {
  std::uint64_t bytes = 0;
  for (const KeyParts& key : parts_) bytes += key.slots.size() * 8 + key.entries.size() * (8 + 4);
  return bytes;
}

std::uint64_t IndexRunBuilder::bytes() const noexcept {
  std::uint64_t bytes = sizeof(IndexRunLayout) + parts_.size() * sizeof(IndexRunKeyLayout);
  for (const std::size_t k : KeySet(table_.keys.kept())) {
    bytes += parts_[k].slot_count * 8;
    if (table_.keys[k]->entries().is_ordered_in_runs())
      bytes += pmem::whole_lines(parts_[k].entries_max * 8) +
               pmem::whole_lines(parts_[k].entries_max * 4) +
               pmem::whole_lines(IndexRun::fences_for(parts_[k].entries_max) * 8);
  }
  return bytes;
}

void IndexRunBuilder::write(pmem::Extent extent, std::span<const IndexRuns::Member> sources) {
  FLUGS_CHECK(parts_.size() <= kKeysMax && bytes() <= extent.bytes);
  auto& run = *pool_.at(pmem::OffsetPtr<IndexRunLayout>{extent.offset});
  auto* base = reinterpret_cast<std::byte*>(&run);
  auto* keys = reinterpret_cast<IndexRunKeyLayout*>(&run + 1);
  run.magic = IndexRunLayout::kMagic;
  run.bytes = extent.bytes;
  run.table_id = table_.id().value();
  run.key_count = static_cast<std::uint16_t>(parts_.size());
  run.key_additions = table_.definition().stored.key_additions;
  std::uint64_t end = sizeof run + parts_.size() * sizeof *keys;
  for (const std::size_t k : KeySet(table_.keys.kept())) {
    const KeyParts& key = parts_[k];
    if (table_.keys[k]->entries().is_hashed_in_runs()) {
      keys[k].slots_offset = end;
      end += key.slot_count * 8;
      write_slots(k, sources, base, keys[k]);
    }
    if (table_.keys[k]->entries().is_ordered_in_runs()) {
      keys[k].prefixes_offset = end;
      end += pmem::whole_lines(key.entries_max * 8);
      keys[k].rows_offset = end;
      end += pmem::whole_lines(key.entries_max * 4);
      keys[k].fences_offset = end;
      end += pmem::whole_lines(IndexRun::fences_for(key.entries_max) * 8);
      write_entries(k, sources, base, keys[k]);
    }
    keys[k].checksum = IndexRun::checksum_of(keys[k], base);
  }
  FLUGS_CHECK(end <= extent.bytes);
  run.checksum = IndexRun::checksum_of(run);
  persister_.flush_unshared(base, end, "index_run/1");
}

void IndexRunBuilder::write_slots(std::size_t key, std::span<const IndexRuns::Member> sources,
                                  std::byte* base, IndexRunKeyLayout& layout) const {
  auto* slots = reinterpret_cast<std::uint64_t*>(base + layout.slots_offset);
  layout.home_lines = home_lines_for(parts_[key].slots_max);
  layout.slot_count = parts_[key].slot_count;
  std::vector<SlotSource> from = slot_sources(table_, key, parts_[key].slots, sources);
  place_slots(from, layout.home_lines, [&](std::uint64_t position, std::uint64_t slot) {
    FLUGS_CHECK(position < layout.slot_count);
    slots[position] = slot;
    ++layout.hashed_entries;
  });
}

void IndexRunBuilder::write_entries(std::size_t key, std::span<const IndexRuns::Member> sources,
                                    std::byte* base, IndexRunKeyLayout& layout) const {
  auto* prefixes = reinterpret_cast<std::uint64_t*>(base + layout.prefixes_offset);
  auto* rows = reinterpret_cast<std::uint32_t*>(base + layout.rows_offset);
  auto* fences = reinterpret_cast<std::uint64_t*>(base + layout.fences_offset);
  std::vector<EntrySource> from{EntrySource(parts_[key].entries)};
  for (const IndexRuns::Member& source : sources)
    from.emplace_back(*source.run, key, RowFilter(table_, source.covered));
  combine(
      from, [&](const auto& a, const auto& b) { return columns::precedes(table_.keys[key], a, b); },
      [&](const columns::OrderedEntry& entry) {
        FLUGS_CHECK(layout.ordered_entries < parts_[key].entries_max);
        prefixes[layout.ordered_entries] = entry.prefix;
        rows[layout.ordered_entries] = entry.row;
        if (layout.ordered_entries % IndexRun::kEntriesPerFence == 0)
          fences[layout.ordered_entries / IndexRun::kEntriesPerFence] = entry.prefix;
        ++layout.ordered_entries;
      });
}

}  // namespace flugs::engine
