#include "tables/opening/row_sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "mvcc/transaction_slots.h"
#include "pmem/medium/flush_run.h"
#include "tables/data/cell_checks.h"
#include "tables/data/free_rows.h"
#include "tables/data/table_data.h"

namespace flugs::engine {

namespace {

/// What the stamps say of a row that was there at opening.
enum class Found : std::uint8_t {
  kLive,
  kStaleTag,    // live; a tag says that a transaction was, or is, about to delete it
  kDeletedNow,  // since opening
  kDead,        // before, or never committed
  kImpossible,
};

Found found_in(const mvcc::VersionLayout& version, const mvcc::TransactionSlots& slots) {
  const mvcc::Stamp created = mvcc::load_stamp(version.created);
  const mvcc::Stamp deleted = mvcc::load_stamp(version.deleted);
  const bool is_created = created != mvcc::kNoStamp && !mvcc::is_tag(created);
  const bool is_deleted = deleted != mvcc::kNoStamp && !mvcc::is_tag(deleted);
  if (is_created && created > slots.opened_at()) return Found::kImpossible;
  if (is_deleted && deleted > slots.opened_at())
    return is_created && deleted <= slots.now() ? Found::kDeletedNow : Found::kImpossible;
  if (!is_created || is_deleted) return Found::kDead;
  return deleted == mvcc::kNoStamp ? Found::kLive : Found::kStaleTag;
}

// Step 1 of sweep. An entry of zeros was never used.
void end_version(mvcc::VersionLayout& version, pmem::FlushRun& dead) {
  if (version.created == mvcc::kNoStamp && version.deleted == mvcc::kNoStamp) return;
  if (version.created != mvcc::kNoStamp) mvcc::store_stamp(version.created, mvcc::kNoStamp);
  dead.add(&version, sizeof version);
}

// Step 2 of sweep.
void end_tag(mvcc::VersionLayout& version, pmem::Persister& persister) {
  mvcc::store_stamp(version.deleted, mvcc::kNoStamp);
  persister.flush(&version, sizeof version, "sweep/2");
}

}  // namespace

// Protocol sweep, of rows that were there at opening: then, or later, while transactions go on.
//   step  store                                     made durable by   power cut just after it
//   1     created := 0 of rows that are dead or     flush, fence      sweeps again: such a row may
//         were never committed; where it is 0       by the caller     be reused after the fence
//         already it is flushed: a process that
//         died may not have
//   2     deleted := 0 where a stale tag is left,   flush, fence      the tag is stale again
//         only at opening: later it may be the
//         lock of a transaction, which takes over
//         a stale one
// Must hold:  1 durable before the row is written again, else old stamps and new cells could meet.
//             Later, no snapshot as old as step 1 may be left when the row is written again: a
//             reader may have seen that it was created, and then see that it is not deleted.
//             No row may be freed twice: one that was deleted since opening is left to garbage
//             collection, which has its block swept before it begins.
Status RowSweep::sweep(std::uint32_t first, std::uint32_t end, Moment moment,
                       const mvcc::TransactionSlots& slots, std::vector<std::uint32_t>& free,
                       pmem::Persister& persister, Counts& counts) const {
  std::uint32_t part_end = first;
  for (std::uint32_t row = first; row < end; row = part_end) {
    part_end = std::min({end, data_.rows.end_of_chunk_with(row), row + UnsweptRows::kBlockRows});
    const RowGroup* group = data_.rows.group_with(row);
    Status s = group != nullptr
                   ? sweep_group(*group, row, part_end, moment, slots, persister, counts)
                   : sweep_rows(row, part_end, moment, slots, free, persister, counts);
    if (!s.ok()) return s;
  }
  counts.recycled += free.size();
  return {};
}

// Sweeps rows of one chunk, UnsweptRows::kBlockRows at most.
Status RowSweep::sweep_rows(std::uint32_t first, std::uint32_t end, Moment moment,
                            const mvcc::TransactionSlots& slots, std::vector<std::uint32_t>& free,
                            pmem::Persister& persister, Counts& counts) const {
  if (Status s = data_.rows.check_header(first); !s.ok()) return s;
  pmem::FlushRun dead(persister, "sweep/1");
  std::array<const std::byte*, UnsweptRows::kBlockRows> live;
  std::size_t live_count = 0;
  for (std::uint32_t row = first; row < end; ++row) {
    mvcc::VersionLayout& version = data_.rows.version(row);
    const Found found = found_in(version, slots);
    if (found == Found::kImpossible) return impossible_stamps(row, slots);
    if (found == Found::kDead) {
      end_version(version, dead);
      free.push_back(row);
      continue;
    }
    live[live_count++] = data_.rows.address(row);
    if (found == Found::kStaleTag && moment == Moment::kOpening) end_tag(version, persister);
  }
  counts.live += live_count;
  // From here on codes are used without another check.
  return check_cells(data_, first, std::span(live.data(), live_count));
}

Status RowSweep::impossible_stamps(std::uint32_t row, const mvcc::TransactionSlots& slots) const {
  const mvcc::VersionLayout& version = data_.rows.version(row);
  const mvcc::Stamp created = mvcc::load_stamp(version.created);
  const mvcc::Stamp deleted = mvcc::load_stamp(version.deleted);
  return Status(StatusCode::kCorrupt,
                fmt::format("{}: table {}, row {}: time-stamp expected at most {}, found {}",
                            data_.pool.path(), data_.name(), row, slots.opened_at(),
                            std::max(mvcc::is_tag(created) ? 0 : created,
                                     mvcc::is_tag(deleted) ? 0 : deleted)));
}

// The dead rows of a group stay where they are: the next merge leaves them out. In a group that a
// run serves only the version blocks are read.
Status RowSweep::sweep_group(const RowGroup& group, std::uint32_t first, std::uint32_t end,
                             Moment moment, const mvcc::TransactionSlots& slots,
                             pmem::Persister& persister, Counts& counts) const {
  const std::uint32_t group_first = data_.rows.first_row_of(data_.rows.chunk_of(first));
  const bool is_served = data_.runs.serves(first);
  pmem::FlushRun dead(persister, "sweep/1");
  for (std::uint32_t row = first; row < end; ++row) {
    const std::uint32_t offset = row - group_first;
    mvcc::VersionLayout* version = group.stamped_version(offset);
    if (version == nullptr && is_served) {  // nothing to do in the whole block
      row = group_first + (offset | (RowGroupLayout::kBlockRows - 1));
      continue;
    }
    if (version == nullptr) {
      counts.live += group.place_of(offset) != RowGroup::kNoPlace ? 1 : 0;
      continue;
    }
    const Found found = found_in(*version, slots);
    if (found == Found::kImpossible) return impossible_stamps(row, slots);
    if (found == Found::kDead) {
      end_version(*version, dead);
      continue;
    }
    if (!is_served) ++counts.live;
    if (found == Found::kStaleTag && moment == Moment::kOpening) end_tag(*version, persister);
  }
  return {};
}

// Sweeps a block that was taken. Keeps an error for later callers; dead rows of a damaged block are
// not reused.
void RowSweep::sweep_block(std::uint32_t block) {
  const std::uint32_t first = block * UnsweptRows::kBlockRows;
  std::vector<std::uint32_t> free;
  Counts counts;
  pmem::Persister persister(data_.pool.medium());
  Status swept = sweep(first, first + UnsweptRows::kBlockRows, Moment::kOpen, *slots_, free,
                       persister, counts);
  persister.fence("sweep/1");
  if (swept.ok()) {
    free_rows_.add_swept(std::move(free), *slots_);
  } else {
    const std::lock_guard guard(mutex_);
    if (status_.ok()) status_ = std::move(swept);
  }
  unswept_.note_swept(block);
}

std::uint32_t RowSweep::rows_left_unswept(std::size_t tables) const noexcept {
  // Rows that slots had been granted at a crash are at the end. With many tables fewer rows of each
  // are swept, so that sweeping does not take longer than loading them.
  constexpr std::uint32_t kSweptAtOnce = 1u << 13;
  constexpr std::size_t kSweptInAll = std::size_t{1} << 17;
  const std::uint32_t share = static_cast<std::uint32_t>(std::clamp<std::size_t>(
      kSweptInAll / std::max<std::size_t>(tables, 1), UnsweptRows::kBlockRows, kSweptAtOnce));
  const std::uint32_t end = data_.rows.rows_end();
  return (end - std::min(end, share)) / UnsweptRows::kBlockRows * UnsweptRows::kBlockRows;
}

void RowSweep::defer(std::uint32_t end, mvcc::TransactionSlots& slots) {
  slots_ = &slots;
  unswept_.leave(end);
}

// Does not wait for a block that another thread sweeps: that thread may have the lowest priority.
bool RowSweep::may_unlink(std::uint32_t row, std::size_t& sweeps_left) {
  if (__builtin_expect(!unswept_.has(row), 1)) return true;
  const std::uint32_t block = row / UnsweptRows::kBlockRows;
  if (sweeps_left == 0 || !unswept_.take(block)) return !unswept_.has(row);
  --sweeps_left;
  sweep_block(block);
  return true;
}

bool RowSweep::sweep_more() {
  if (!unswept_.any()) return false;
  const std::uint32_t block = unswept_.take_next();
  if (block != UnsweptRows::kNone) sweep_block(block);
  return block != UnsweptRows::kNone;
}

Status RowSweep::sweep_all() {
  while (sweep_more()) {
  }
  unswept_.wait_until_swept();
  if (slots_ != nullptr) free_rows_.release_swept_soon(*slots_);
  const std::lock_guard guard(mutex_);
  return status_;
}

}  // namespace flugs::engine
