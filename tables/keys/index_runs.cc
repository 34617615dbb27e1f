#include "tables/keys/index_runs.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"

namespace flugs::engine {

namespace {

std::uint64_t list_bytes(std::uint64_t runs, std::uint64_t words_per_set) noexcept {
  return sizeof(IndexRunListLayout) + runs * 8 + runs * words_per_set * 8;
}

std::uint64_t words_for(std::uint64_t chunks) noexcept { return (chunks + 63) / 64; }

std::uint64_t checksum_of(const IndexRunListLayout& list) noexcept {
  const auto* from = reinterpret_cast<const std::byte*>(&list.bytes);
  return XXH3_64bits(from, list_bytes(list.run_count, words_for(list.chunk_count)) -
                               offsetof(IndexRunListLayout, bytes));
}

}  // namespace

IndexRuns::IndexRuns(pmem::Pool& pool, TableLayout& layout, const RowStore& rows,
                     std::vector<KeyShape> shapes, std::uint32_t key_additions, std::string owner)
    : pool_(pool),
      layout_(layout),
      rows_(rows),
      shapes_(std::move(shapes)),
      key_additions_(key_additions),
      owner_(std::move(owner)),
      list_(new List) {
  FLUGS_CHECK(shapes_.size() <= kKeysMax);
}

IndexRuns::~IndexRuns() { delete list_.load(std::memory_order_relaxed); }

Status IndexRuns::corrupt(const std::string& what, std::uint64_t expected,
                          std::uint64_t found) const {
  return Status(StatusCode::kCorrupt,
                fmt::format("{}: {}: list at offset {}: {}: expected {}, found {}", pool_.path(),
                            owner_, layout_.index_runs, what, expected, found));
}

// ------------------------------------------------------------------------------------- opening

// Checks the list's header, and returns the size of its extent.
Result<std::uint64_t> IndexRuns::check_list(std::uint64_t offset) const {
  const std::uint64_t pool_bytes = pool_.medium().bytes();
  if (offset % 64 != 0 || offset > pool_bytes || pool_bytes - offset < sizeof(IndexRunListLayout))
    return corrupt("offset aligned to 64 and inside the pool of bytes", pool_bytes, offset);
  const auto& list = *pool_.at(pmem::OffsetPtr<IndexRunListLayout>{offset});
  if (list.magic != IndexRunListLayout::kMagic)
    return corrupt("magic", IndexRunListLayout::kMagic, list.magic);
  if (list.run_count == 0 || list.run_count > IndexRunListLayout::kRunsMax)
    return corrupt("runs, up to", IndexRunListLayout::kRunsMax, list.run_count);
  const std::uint64_t least = list_bytes(list.run_count, words_for(list.chunk_count));
  if (list.bytes > pool_bytes - offset || list.bytes < least)
    return corrupt("bytes, inside the pool, at least", least, list.bytes);
  if (list.checksum != checksum_of(list))
    return corrupt("checksum", checksum_of(list), list.checksum);
  if (list.table_id != layout_.table_id) return corrupt("table", layout_.table_id, list.table_id);
  return list.bytes;
}

Status IndexRuns::check_covered(const ChunkSet& covered, const List& list) const {
  for (const Member& other : list.members)
    if (covered.overlaps(other.covered))
      return corrupt(
          fmt::format("chunks covered by run {} and an earlier one", list.members.size()), 0, 1);
  const std::span<const std::uint64_t> words = covered.words();
  for (std::size_t i = 0; i < words.size(); ++i)
    for (std::uint64_t left = words[i]; left != 0; left &= left - 1) {
      const std::size_t chunk = i * 64 + static_cast<std::size_t>(std::countr_zero(left));
      if (chunk >= rows_.chunk_count())
        return corrupt(fmt::format("chunks covered by run {}, below", list.members.size()),
                       rows_.chunk_count(), chunk);
      if (rows_.group(chunk) == nullptr)
        return corrupt(
            fmt::format("row groups as chunk {}, which run {} covers", chunk, list.members.size()),
            1, 0);
    }
  return {};
}

Status IndexRuns::load_members(const std::uint64_t* words, List& list) {
  const auto& layout = *pool_.at(pmem::OffsetPtr<IndexRunListLayout>{layout_.index_runs});
  const std::uint64_t words_per_set = words_for(layout.chunk_count);
  for (std::uint32_t i = 0; i < layout.run_count; ++i) {
    auto run = IndexRun::load(pool_, words[i], layout_.table_id, shapes_, key_additions_, owner_);
    if (!run.ok()) return std::move(run).status();
    if (Status s = pool_.allocator().claim((*run)->extent(), owner_); !s.ok()) return s;
    const ChunkSet covered(
        {words + layout.run_count + i * words_per_set, static_cast<std::size_t>(words_per_set)});
    if (Status s = check_covered(covered, list); !s.ok()) return s;
    list.members.push_back({*std::move(run), covered, covered});
  }
  return {};
}

Status IndexRuns::load() {
  const std::uint64_t offset = layout_.index_runs;
  if (offset == 0) return {};
  Result<std::uint64_t> bytes = check_list(offset);
  if (!bytes.ok()) return std::move(bytes).status();
  auto list = std::make_unique<List>();
  list->extent = {offset, *bytes};
  if (Status s = pool_.allocator().claim(list->extent, owner_); !s.ok()) return s;
  const auto* words = reinterpret_cast<const std::uint64_t*>(
      pool_.at(pmem::OffsetPtr<IndexRunListLayout>{offset}) + 1);
  if (Status s = load_members(words, *list); !s.ok()) return s;
  complete(*list);
  put_list(std::move(list));
  return {};
}

// Returns the list before. Targets are the first runs of the list, the largest: most look-ups end
// there.
std::unique_ptr<const IndexRuns::List> IndexRuns::put_list(std::unique_ptr<const List> list) {
  for (std::size_t key = 0; key < shapes_.size(); ++key) {
    if (!shapes_[key].is_hashed) continue;
    for (std::size_t i = 0; i < targets_[key].runs.size(); ++i) {
      const std::size_t count = list->serving.size();
      const IndexRun* run = i < count ? list->serving[count - 1 - i]->run.get() : nullptr;
      Target& target = targets_[key].runs[i];
      target.home_lines.store(run == nullptr ? 0 : run->home_lines(key), std::memory_order_relaxed);
      target.slots.store(run == nullptr ? nullptr : run->slots(key).data(),
                         std::memory_order_relaxed);
    }
  }
  return std::unique_ptr<const List>(list_.exchange(list.release(), std::memory_order_acq_rel));
}

// Fills in what follows from the members; these must not move any more.
void IndexRuns::complete(List& list) {
  for (const Member& member : list.members) {
    list.covered.unite(member.covered);
    list.served.unite(member.served);
    if (!member.served.is_empty()) list.serving.push_back(&member);
  }
  // The newest run is probed first.
  std::reverse(list.serving.begin(), list.serving.end());
}

// ----------------------------------------------------------------------------------- publishing

void IndexRuns::write_list(pmem::Extent extent, std::span<const Member> members,
                           std::size_t words_per_set) const {
  FLUGS_CHECK(!members.empty());
  FLUGS_CHECK(list_bytes(members.size(), words_per_set) <= extent.bytes);
  auto& layout = *pool_.at(pmem::OffsetPtr<IndexRunListLayout>{extent.offset});
  layout.magic = IndexRunListLayout::kMagic;
  layout.bytes = extent.bytes;
  layout.table_id = layout_.table_id;
  layout.run_count = static_cast<std::uint32_t>(members.size());
  layout.chunk_count = static_cast<std::uint32_t>(words_per_set * 64);
  auto* words = reinterpret_cast<std::uint64_t*>(&layout + 1);
  for (std::size_t i = 0; i < members.size(); ++i) {
    words[i] = members[i].run->extent().offset;
    const std::span<const std::uint64_t> covered = members[i].covered.words();
    FLUGS_CHECK(covered.size() <= words_per_set);
    std::copy(covered.begin(), covered.end(), words + members.size() + i * words_per_set);
  }
  layout.checksum = checksum_of(layout);
}

// Protocol index_run. The runs of the new list count from step 3 on.
//   step  store                           made durable by      power cut just after it: recovery
//   1     a new run, if there is one      flush, fence of 2    extent unreachable: free space
//   2     list with its offset, and the   flush, fence         extent unreachable: free space
//         chunks that each run covers
//   3     the table's pointer to the      persist (8 bytes)    claims the new list and its runs;
//         list                                                 what it replaced is free
// Must hold:  1 and 2 before 3. A group that the list covers is durable before 3, else the list
//             would cover a chunk of rows. A chunk that is emptied is in no list from before
//             chunk_replace/2 on, else the run would name rows that come to its ids later.
Status IndexRuns::replace_list(std::vector<Member> members, pmem::Persister& persister) {
  std::erase_if(members, [](const Member& member) { return member.covered.is_empty(); });
  auto list = std::make_unique<List>();
  if (!members.empty()) {
    std::size_t words = 0;
    for (const Member& member : members) words = std::max(words, member.covered.words().size());
    Result<pmem::Extent> extent = pool_.allocator().allocate(list_bytes(members.size(), words),
                                                             persister, pmem::Purpose::kReclaim);
    if (!extent.ok()) {
      persister.fence("index_run/2");  // no flush may stay behind unfenced
      return std::move(extent).status();
    }
    list->extent = *extent;
    write_list(*extent, members, words);
    persister.flush(pool_.base() + extent->offset, list_bytes(members.size(), words),
                    "index_run/2");
  }
  persister.fence("index_run/2");
  std::atomic_ref(layout_.index_runs).store(list->extent.offset, std::memory_order_relaxed);
  persister.persist(&layout_.index_runs, sizeof layout_.index_runs, "index_run/3");
  list->members = std::move(members);
  complete(*list);

  Replaced replaced;
  const List* now = list.get();
  replaced.list = put_list(std::move(list));
  for (const Member& old : replaced.list->members)
    if (std::none_of(now->members.begin(), now->members.end(),
                     [&](const Member& member) { return member.run == old.run; }))
      replaced.runs.push_back(old.run);
  replaced_.push_back(std::move(replaced));
  return {};
}

Status IndexRuns::publish(pmem::Extent run, std::span<const std::size_t> chunks,
                          std::size_t first_replaced, pmem::Persister& persister) {
  auto loaded =
      IndexRun::load(pool_, run.offset, layout_.table_id, shapes_, key_additions_, owner_);
  if (!loaded.ok()) return std::move(loaded).status();
  const std::lock_guard guard(mutex_);
  std::vector<Member> members = list().members;
  FLUGS_CHECK(first_replaced <= members.size());
  Member made{*std::move(loaded), {}, {}};
  for (const std::size_t chunk : chunks) {
    FLUGS_CHECK(rows_.group(chunk) != nullptr);
    made.covered.insert(chunk);
  }
  for (std::size_t i = first_replaced; i < members.size(); ++i) {
    made.covered.unite(members[i].covered);
    made.served.unite(members[i].served);
  }
  members.resize(first_replaced);
  // A group whose run lacks a key that was added later gets into the new run.
  for (Member& older : members)
    for (const std::size_t chunk : chunks) {
      if (older.served.has(chunk)) made.served.insert(chunk);
      older.covered.erase(chunk);
      older.served.erase(chunk);
    }
  members.push_back(std::move(made));
  return replace_list(std::move(members), persister);
}

void IndexRuns::add_key(std::size_t place, KeyShape shape, std::uint32_t key_additions) {
  FLUGS_CHECK(place < kKeysMax && shape.is_added && !shape.is_dropped);
  const std::lock_guard guard(mutex_);
  FLUGS_CHECK(key_additions > key_additions_);
  shapes_.resize(std::max(shapes_.size(), place + 1));
  shapes_[place] = shape;
  key_additions_ = key_additions;
  for (Target& target : targets_[place].runs) {
    target.slots.store(nullptr, std::memory_order_relaxed);
    target.home_lines.store(0, std::memory_order_relaxed);
  }
}

void IndexRuns::drop_key(std::size_t place) {
  const std::lock_guard guard(mutex_);
  FLUGS_CHECK(place < shapes_.size() && !shapes_[place].is_dropped);
  shapes_[place].is_dropped = true;
}

bool IndexRuns::serve_key(std::size_t place) const noexcept {
  FLUGS_CHECK(place < shapes_.size());
  const std::vector<Member>& members = list().members;
  return !shapes_[place].is_added ||
         std::all_of(members.begin(), members.end(),
                     [this](const Member& member) { return has_all_keys(member); });
}

Status IndexRuns::uncover(std::size_t chunk, pmem::Persister& persister) {
  const std::lock_guard guard(mutex_);
  if (!list().covered.has(chunk)) return {};
  std::vector<Member> members = list().members;
  for (Member& member : members) {
    member.covered.erase(chunk);
    member.served.erase(chunk);
  }
  return replace_list(std::move(members), persister);
}

bool IndexRuns::covers_rows(const Member& member) const noexcept {
  for (std::size_t chunk = 0; chunk < member.covered.words().size() * 64; ++chunk)
    if (member.covered.has(chunk) && rows_.group(chunk)->stored_rows() != 0) return true;
  return false;
}

template <typename IsDropped>
Status IndexRuns::drop_if(IsDropped&& is_dropped, pmem::Persister& persister) {
  const std::lock_guard guard(mutex_);
  std::vector<Member> members = list().members;
  if (std::erase_if(members, is_dropped) == 0) return {};
  return replace_list(std::move(members), persister);
}

Status IndexRuns::drop_without_rows(pmem::Persister& persister) {
  return drop_if([this](const Member& member) { return !covers_rows(member); }, persister);
}

Status IndexRuns::drop_unserving(pmem::Persister& persister) {
  return drop_if([](const Member& member) { return member.served.is_empty(); }, persister);
}

// ------------------------------------------------------------------------------------ releasing

void IndexRuns::release_replaced() {
  const std::lock_guard guard(mutex_);
  for (const Replaced& replaced : replaced_) {
    if (replaced.list->extent.bytes != 0) pool_.allocator().release(replaced.list->extent);
    for (const auto& run : replaced.runs) pool_.allocator().release(run->extent());
  }
  replaced_.clear();
}

std::uint64_t IndexRuns::replaced_bytes() const {
  const std::lock_guard guard(mutex_);
  std::uint64_t bytes = 0;
  for (const Replaced& replaced : replaced_) {
    bytes += replaced.list->extent.bytes;
    for (const auto& run : replaced.runs) bytes += run->extent().bytes;
  }
  return bytes;
}

bool IndexRuns::has_replaced() const {
  const std::lock_guard guard(mutex_);
  return !replaced_.empty() || !emptied_.empty();
}

void IndexRuns::keep_emptied(std::size_t chunk) {
  const std::lock_guard guard(mutex_);
  // A chunk may be emptied twice before its ids are given out.
  if (std::ranges::find(emptied_, chunk) == emptied_.end()) emptied_.push_back(chunk);
}

std::vector<std::size_t> IndexRuns::take_emptied() {
  const std::lock_guard guard(mutex_);
  return std::exchange(emptied_, {});
}

IndexRuns::Summary IndexRuns::summary() const {
  const std::lock_guard guard(mutex_);
  Summary summary;
  summary.bytes = list().extent.bytes;
  for (const Member& member : list().members) {
    ++summary.runs;
    summary.bytes += member.run->extent().bytes;
  }
  return summary;
}

void IndexRuns::release_all() {
  release_replaced();
  const std::lock_guard guard(mutex_);
  const std::unique_ptr<const List> last = put_list(std::make_unique<List>());
  if (last->extent.bytes != 0) pool_.allocator().release(last->extent);
  for (const Member& member : last->members) pool_.allocator().release(member.run->extent());
  emptied_.clear();
}

}  // namespace flugs::engine
