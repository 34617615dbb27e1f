// TableMerge chooses the chunks and groups that it merges.

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "engine/merge/table_merge.h"

namespace flugs::engine {

namespace {

// A full chunk with fewer rows in use is not merged: coming rows use its free rows.
constexpr std::uint64_t kUsedPercentMin = 50;
static_assert(kUsedPercentMin <= 100);
// Free rows that a table keeps: one for this many of its row ids.
constexpr std::uint64_t kFreeRowsPart = 8;
// A merge of everything makes as many free rows of groups without rows, if an eighth is less.
constexpr std::uint64_t kFreeRowsMax = 4096;
// Free rows are worth a merge from this part of waste_bytes on: it moves no more than it gives
// back.
constexpr std::uint64_t kFreeWastePart = 4;

}  // namespace

// Stored rows of a group that can be left out. A dead row counts only when no index names it any
// more: until then each merge of the group keeps it.
std::uint64_t TableMerge::dead_rows(const RowGroup& group) const {
  std::uint64_t dead = 0;
  for (std::uint32_t offset = 0; offset < group.row_count(); ++offset) {
    const mvcc::VersionLayout* version = group.stamped_version(offset);
    if (version == nullptr) {  // nothing in the whole block
      offset |= RowGroupLayout::kBlockRows - 1;
      continue;
    }
    if (group.place_of(offset) == RowGroup::kNoPlace) continue;
    const mvcc::Stamp deleted = mvcc::load_stamp(version->deleted);
    const bool is_forgotten = table_.keys().empty() && deleted != mvcc::kNoStamp &&
                              !mvcc::is_tag(deleted) && deleted <= slots_.opened_at();
    dead += is_forgotten || mvcc::load_stamp(version->created) == mvcc::kNoStamp ? 1 : 0;
  }
  FLUGS_DCHECK(dead <= group.stored_rows());
  return dead;
}

bool TableMerge::is_worth_it(const RowGroup& group, std::uint64_t dead) const {
  return dead * 100 >= std::uint64_t{group.stored_rows()} * options_.dead_percent;
}

void TableMerge::choose_group(std::size_t chunk, const RowGroup& group, Plan& plan) {
  // The group has no more dead rows than deleted ones. If these are too few, no stamp is read.
  const std::uint64_t deleted = group.deleted_rows();
  const std::uint64_t dead = is_worth_it(group, deleted) ? dead_rows(group) : 0;
  const bool is_without_rows = dead == group.stored_rows();
  const bool wants_ids = is_without_rows && wants_row_ids(group);
  const bool is_wanted = group.stored_rows() == 0
                             ? wants_ids
                             : !group.is_up_to_date() || (dead != 0 && is_worth_it(group, dead));
  if (!is_wanted) return;
  candidates_.push_back({chunk, Origin::kGroup, wants_ids});
  ++plan.groups;
}

// Rows that are in use, or dead but not free yet.
std::uint64_t TableMerge::used_rows(std::size_t chunk) const {
  const std::uint32_t first = rows_.first_row_of(chunk);
  const std::uint32_t rows = rows_.rows_of(chunk);
  std::uint64_t used = 0;
  for (std::uint32_t i = 0; i < rows; ++i)
    used += mvcc::load_stamp(rows_.version(first + i).created) != mvcc::kNoStamp ? 1 : 0;
  return used;
}

// In a sparse chunk most rows are free: coming rows use them. So a merge of full chunks leaves it,
// unless free rows take much of the delta; and a merge of everything, if no row of it is used,
// unless the table has other free rows. Nor does it leave a chunk with more rows than the table has
// free: writers have given them up, because their cells are too narrow for later values.
bool TableMerge::is_sparse(std::size_t chunk, std::uint64_t used) const noexcept {
  const std::uint64_t rows = rows_.rows_of(chunk);
  if (options_.scope == MergeScope::kEverything)
    return used == 0 && free_rows_left_ >= rows && free_rows_left_ < rows + free_rows_wanted(rows);
  return used * 100 < rows * kUsedPercentMin;
}

// Whether so many rows of the delta are free that the chunks they are in are worth a merge. The
// rows that the table keeps do not count: a later merge would make a chunk for them again.
bool TableMerge::is_much_free(std::uint64_t free_rows, const FullChunks& full) const noexcept {
  const std::uint64_t wanted = free_rows_wanted(0);
  const std::uint64_t kept = wanted - std::min(wanted, rows_.rows_ahead());
  const std::uint64_t most = std::min(free_rows, full.rows);
  const std::uint64_t rows = most - std::min(most, kept);
  return rows != 0 && full.bytes / full.rows * rows >= waste_bytes() / kFreeWastePart &&
         rows * 100 >= full.rows * options_.waste_percent;
}

// The table keeps this many free rows; `rows` is the size of one chunk. A table that takes all its
// free rows between two merges gets new row ids, until this many are enough. A merge of everything
// leaves no chunk for coming rows, so it keeps a chunk of free rows at least.
std::uint64_t TableMerge::free_rows_wanted(std::uint64_t rows) const noexcept {
  const std::uint64_t part = rows_.rows_end() / kFreeRowsPart;
  return options_.scope == MergeScope::kEverything ? std::max(rows, part) : part;
}

// A group without rows becomes a chunk of free rows when the table has few of them. Groups double
// in size, so a chunk as large as this one would be too much to ask for.
bool TableMerge::wants_row_ids(const RowGroup& emptied) {
  const std::uint64_t rows = emptied.row_count();
  if (free_rows_left_ >= free_rows_wanted(std::min(rows, kFreeRowsMax))) return false;
  free_rows_left_ += rows;
  return true;
}

// Plans what becomes of a full chunk of rows that may be merged.
void TableMerge::choose_chunk(std::size_t chunk, Plan& plan, std::vector<std::size_t>& sparse) {
  // A chunk that an earlier merge has frozen, but not merged, takes no rows until it is merged.
  const bool is_frozen = rows_.is_frozen(chunk);
  const std::uint64_t used = used_rows(chunk);
  const std::uint64_t rows = rows_.rows_of(chunk);
  FLUGS_DCHECK(used <= rows);
  if (!is_frozen && is_sparse(chunk, used) &&
      !table_.column_reclaim().keeps_former(chunk, former_bytes())) {
    if (options_.scope != MergeScope::kEverything) sparse.push_back(chunk);
    return;
  }
  free_rows_left_ -= std::min(free_rows_left_, rows - used);
  candidates_.push_back({chunk, Origin::kRows});
  ++plan.chunks;
  plan.bytes += rows_.bytes_of_chunk(chunk);
  plan.frozen += is_frozen ? 1 : 0;
}

TableMerge::Plan TableMerge::choose(FunctionRef<bool(std::size_t chunk)> takes) noexcept {
  has_chosen_ = true;
  candidates_.clear();
  free_rows_left_ = table_.free_rows().count();
  // A merge of everything leaves chunks for coming rows out.
  if (options_.scope != MergeScope::kEverything) free_rows_left_ += rows_.rows_ahead();
  std::size_t first_unused = std::numeric_limits<std::size_t>::max();
  if (options_.scope == MergeScope::kEverything) first_unused = rows_.close_tail();
  Plan plan;
  std::vector<std::size_t> sparse;
  const std::size_t end = rows_.full_chunks();
  for (std::size_t chunk = 0; chunk < end; ++chunk) {
    if (const RowGroup* group = rows_.group(chunk); group != nullptr) {
      choose_group(chunk, *group, plan);
    } else if (chunk >= first_unused) {
      candidates_.push_back({chunk, Origin::kRows});  // none of its rows is free for others
      ++plan.chunks;
      plan.bytes += rows_.bytes_of_chunk(chunk);
    } else if (rows_.is_frozen(chunk) || takes(chunk) || is_sparse(chunk, used_rows(chunk))) {
      choose_chunk(chunk, plan, sparse);
    } else {
      ++plan.left_out;
    }
  }
  add_sparse(sparse, plan);
  return plan;
}

TableMerge::FullChunks TableMerge::full_chunks_of_rows() const noexcept {
  FullChunks full;
  for (std::size_t chunk = 0; chunk < rows_.full_chunks(); ++chunk) {
    if (rows_.group(chunk) != nullptr) continue;
    full.rows += rows_.rows_of(chunk);
    full.bytes += rows_.bytes_of_chunk(chunk);
  }
  return full;
}

std::uint64_t TableMerge::bytes_of_free_rows() const noexcept {
  std::uint64_t bytes = 0;
  for (std::size_t chunk = 0; chunk < rows_.full_chunks(); ++chunk) {
    if (rows_.group(chunk) != nullptr) continue;
    const std::uint64_t rows = rows_.rows_of(chunk);
    bytes += rows_.bytes_of_chunk(chunk) * (rows - used_rows(chunk)) / rows;
  }
  return bytes;
}

// Takes sparse chunks, all or none.
void TableMerge::add_sparse(const std::vector<std::size_t>& sparse, Plan& plan) {
  std::uint64_t free_rows = 0;
  for (const std::size_t chunk : sparse) free_rows += rows_.rows_of(chunk) - used_rows(chunk);
  if (!is_much_free(free_rows, full_chunks_of_rows())) return;
  for (const std::size_t chunk : sparse) {
    candidates_.push_back({chunk, Origin::kRows});
    plan.bytes += rows_.bytes_of_chunk(chunk);
  }
  std::ranges::sort(candidates_, {}, &Candidate::chunk);
  plan.chunks += sparse.size();
  plan.sparse = sparse.size();
}

bool TableMerge::may_leave_out() const {
  for (std::size_t chunk = 0; chunk < rows_.full_chunks(); ++chunk) {
    if (const RowGroup* group = rows_.group(chunk); group == nullptr) {
      if (rows_.is_frozen(chunk)) return true;
    } else if (!group->is_up_to_date() ||
               (group->stored_rows() != 0 && is_worth_it(*group, group->deleted_rows()))) {
      return true;
    }
  }
  return is_much_free(table_.free_rows().count(), full_chunks_of_rows());
}

}  // namespace flugs::engine
