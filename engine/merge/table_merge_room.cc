// What a merge does in a pool that is full, or nearly so.

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "engine/merge/table_merge.h"
#include "tables/rows/space_reserve.h"

namespace flugs::engine {

namespace {

// The rows of a chunk without a time-stamp, which is durable with the next fence of `persister`.
// None if the chunk has cells of a column's former edition: no new row has such cells.
std::vector<std::uint32_t> rows_to_thaw(const TableData& data, std::size_t chunk,
                                        pmem::Persister& persister) {
  const RowStore& rows = data.rows;
  FLUGS_CHECK(rows.is_frozen(chunk) && rows.group(chunk) == nullptr);
  std::vector<std::uint32_t> free;
  const std::uint32_t first = rows.first_row_of(chunk);
  if (rows.layout(first).editions() != data.columns.editions()) return free;
  for (std::uint32_t i = 0; i < rows.rows_of(chunk); ++i) {
    const mvcc::VersionLayout& entry = rows.version(first + i);
    if (mvcc::load_stamp(entry.created) != mvcc::kNoStamp) continue;
    persister.flush(&entry, sizeof entry, "commit/4");
    free.push_back(first + i);
  }
  return free;
}

}  // namespace

// The pool is nearly full: gives back what a chunk has freed before it merges the next one. A chunk
// whose group would take more than the pool has stays as it is; the next merge tries again.
Status TableMerge::merge_in_little_room(std::vector<const Candidate*> left) {
  for (std::size_t before = left.size() + 1; !left.empty() && left.size() < before;) {
    before = left.size();
    std::vector<const Candidate*> still_left;
    for (const Candidate* candidate : left) {
      if (is_stopped()) return too_old();
      if (table_.has_replaced() && !release_when_unread()) return too_old();
      const Status s = merge_one(*candidate, Beside::kNothing);
      if (s.code() == StatusCode::kOutOfSpace) {
        still_left.push_back(candidate);
        continue;
      }
      Status failure;
      const std::lock_guard guard(report_mutex_);
      note_chunk(s, failure);
      if (!failure.ok()) return failure;
    }
    left = std::move(still_left);
  }
  report_.chunks_left = static_cast<std::uint32_t>(left.size());
  return thaw(left);
}

// Chunks that stay as they are take new rows again. Else a merge that frees nothing would take the
// chunks' free rows away. A transaction that stays open for too long ends this step early, without
// an error: the chunks take no rows until a merge takes or thaws them.
Status TableMerge::thaw(std::span<const Candidate* const> left) {
  struct Thawed {
    std::size_t chunk;
    std::vector<std::uint32_t> free;
  };
  std::vector<Thawed> thawed;
  pmem::Persister persister(pool_.medium());
  for (const Candidate* candidate : left) {
    if (candidate->origin != Origin::kRows) continue;
    std::vector<std::uint32_t> free = rows_to_thaw(table_.data(), candidate->chunk, persister);
    if (!free.empty()) thawed.push_back({candidate->chunk, std::move(free)});
  }
  if (thawed.empty()) return {};
  persister.fence("commit/4");
  // Transactions that began earlier may have found one of these rows in an index.
  if (!wait_for_transactions(slots_.advance())) return is_stopped() ? too_old() : Status();
  for (const Thawed& one : thawed) {
    rows_.thaw(one.chunk, [this] { return slots_.advance(); });
    table_.free_rows().add(one.free);
  }
  return {};
}

// Makes chunks of free rows from the groups without rows that found no room earlier. New rows would
// otherwise take new row ids, and the groups would stay. A transaction that stays open for too long
// ends this step early, without an error.
Status TableMerge::empty_when_there_is_room() {
  const std::vector<const Candidate*> emptied = std::exchange(emptied_later_, {});
  if (emptied.empty() || !table_.has_replaced()) return {};
  if (!release_when_unread()) return is_stopped() ? too_old() : Status();
  for (const Candidate* candidate : emptied) {
    if (Status s = merge_one(*candidate, Beside::kNothing); !s.ok())
      return s.code() == StatusCode::kBusy ? Status() : s;
    if (!emptied_later_.empty()) break;
  }
  emptied_later_.clear();
  return {};
}

// Finds the long texts that no row has, in columns that could not begin anew. They are texts from
// before opening, and of rows that were in groups: no transaction gives these back.
// Two waits. Behind the first, each text is in a row, was given back, or is noted by its heap as
// written since the sweep began. Behind the second, no transaction reads a row that had left the
// indexes at the snapshot.
Status TableMerge::sweep_texts() {
  struct Swept {
    std::size_t number;
    columns::Column* column;
    columns::TextMarks marks;
  };
  std::vector<Swept> swept;
  for (std::size_t i = 0; i < table_.columns().size(); ++i) {
    columns::Column* const column = table_.columns()[i];
    if (column->is_dropped() || !column->has_texts_of_rows()) continue;
    const std::uint64_t bytes = table_.column_reclaim().bytes_of_column(i);
    if (bytes != 0 && bytes >= waste_bytes())
      swept.push_back({i, column, column->heap().begin_sweep()});
  }
  if (swept.empty()) return {};
  bool is_sound = wait_for_transactions(slots_.advance());
  std::uint64_t since = 0;
  if (is_sound) {
    const mvcc::SnapshotHold hold(slots_);
    since = hold.visibility().snapshot();
    for (Swept& one : swept)
      if (one.column == table_.columns()[one.number])
        table_.column_reclaim().mark_texts(one.number, hold.visibility(), one.marks);
  }
  is_sound = is_sound && wait_for_transactions(slots_.advance());
  const std::lock_guard guard(ddl_mutex_);
  for (Swept& one : swept) {
    if (is_sound && one.column == table_.columns()[one.number] && !one.column->is_dropped())
      one.column->heap().end_sweep(one.marks, since);
    else
      one.column->heap().give_up_sweep();
  }
  return !is_sound && is_stopped() ? too_old() : Status();
}

// After a merge of everything: coming rows find what is free, if there is enough of it. The same
// rows may take a little more when they are inserted again: space is divided in another way, and
// texts begin at other places. So new data may then take a part of the reserve, if a write was
// refused and the program asked for the merge. A merge by policy lends nothing: rows that come for
// the first time would take it.
Status TableMerge::make_room() {
  const bool is_refused = table_.take_refusals(pool_.allocator().space().refusals);
  Status made = find_room(is_refused);
  const bool is_asked_for = stop_requested_ == nullptr;
  if (made.ok() && is_refused && is_asked_for && is_room_wanted(is_refused))
    pool_.allocator().lend_reserve();
  return made;
}

Status TableMerge::find_room(bool is_refused) {
  if (is_refused || is_room_short(pool_.allocator().space()))
    if (Status s = sweep_texts(); !s.ok()) return s;
  if (is_room_wanted(is_refused))
    if (Status s = give_up_index_runs(); !s.ok() || report_.releases_later) return s;
  if (Status s = give_up_records(is_refused); !s.ok() || report_.releases_later) return s;
  if (Status s = gather_free_space(is_refused); !s.ok()) return s;
  if (!is_refused || report_.releases_later || !is_fragmented(is_refused)) return {};
  // Index runs may stand between free pieces.
  const std::size_t runs = table_.runs().list().members.size();
  if (Status s = give_up_index_runs(); !s.ok()) return s;
  const bool has_more = table_.runs().list().members.size() < runs && !report_.releases_later;
  return has_more ? gather_free_space(is_refused) : Status();
}

// Index runs and records only make something faster. Rows need their space in a pool that is full
// after the merge. If a write has found no space since the last merge, as early as no run and no
// records would be written now.
bool TableMerge::is_room_wanted(bool is_refused) const {
  constexpr std::uint64_t kPartFullBelow = 64;
  const pmem::SpaceReport space = pool_.allocator().space();
  return space.left_bytes() <
         space.reserved_bytes / (is_refused ? kPartLeftForRows : kPartFullBelow);
}

// Groups without records: single rows of them are read more slowly, until they are merged again.
Status TableMerge::give_up_records(bool is_refused) {
  const MergeRecord::Work work(table_.merge_record());
  for (std::size_t chunk = 0; chunk < rows_.full_chunks(); ++chunk) {
    if (!is_room_wanted(is_refused)) return {};
    const RowGroup* const group = rows_.group(chunk);
    if (group == nullptr || !group->has_records()) continue;
    const auto without_records = [](ChunkMerge& merge) { merge.omit_records(); };
    Again outcome{};
    if (Status s = write_again(chunk, without_records, outcome); !s.ok() || outcome == Again::kEnds)
      return s;
  }
  return {};
}

// The DRAM indexes have the rows of these runs, but for runs that have served since this opening;
// these stay.
Status TableMerge::give_up_index_runs() {
  pmem::Persister persister(pool_.medium());
  Status dropped = table_.runs().drop_unserving(persister);
  if (dropped.code() == StatusCode::kOutOfSpace) return {};
  if (!dropped.ok() || !table_.runs().has_replaced()) return dropped;
  release_now_or_later();
  return {};
}

// Whether free space lies in pieces so small that a chunk of rows may find none. The reserve counts
// whole steps only: after a refused write the remainders may have the room for a chunk.
bool TableMerge::is_fragmented(bool is_refused) const {
  constexpr std::uint64_t kPiecesWanted = 6;  // two for the reserve
  const pmem::SpaceReport space = pool_.allocator().space();
  const std::uint64_t chunk = space.reserve_piece;  // reserve_for
  if (is_refused && space.left_bytes() >= chunk && space.left_in_steps() < chunk) return true;
  return space.largest_piece <
         std::min(space.reserve_piece * kPiecesWanted, space.reserve_bytes + space.left_bytes());
}

// The merge itself is done: a transaction that is open for too long only ends this early.
Status TableMerge::write_again(std::size_t chunk, FunctionRef<void(ChunkMerge&)> prepare,
                               Again& outcome) {
  outcome = Again::kEnds;
  if (is_stopped()) return too_old();
  rows_.freeze(chunk);
  const ChunkMerge::UnusedRows unused = ChunkMerge::find_unused(slots_, rows_, chunk);
  if (!wait_for_transactions(slots_.advance())) return is_stopped() ? too_old() : Status();
  ChunkMerge merge(pool_, slots_, table_.data(), chunk, unused);
  prepare(merge);
  Status written = merge.run(patience_);
  if (written.code() == StatusCode::kOutOfSpace || written.code() == StatusCode::kBusy) {
    outcome = Again::kStays;
    return {};
  }
  if (!written.ok()) return written;
  if (merge.is_empty()) table_.runs().keep_emptied(chunk);
  release_now_or_later();
  if (!report_.releases_later) outcome = Again::kWritten;
  return {};
}

// Moves groups to the front of the pool, those at its end first, until what is free lies together.
Status TableMerge::gather_free_space(bool is_refused) {
  const MergeRecord::Work work(table_.merge_record());
  struct Place {
    std::uint64_t offset;
    std::size_t chunk;
  };
  std::vector<Place> groups;
  for (std::size_t chunk = 0; chunk < rows_.full_chunks(); ++chunk)
    if (const RowGroup* group = rows_.group(chunk); group != nullptr && group->stored_rows() != 0)
      groups.push_back({rows_.offset_of_chunk(chunk), chunk});
  std::sort(groups.begin(), groups.end(),
            [](const Place& left, const Place& right) { return left.offset > right.offset; });
  for (const Place& place : groups) {
    if (!is_fragmented(is_refused)) return {};
    const auto to_front = [&](ChunkMerge& merge) {
      merge.place_before(place.offset);
      merge.may_omit_records();
    };
    Again outcome{};
    if (Status s = write_again(place.chunk, to_front, outcome); !s.ok()) return s;
    if (outcome == Again::kWritten || report_.releases_later) ++report_.groups_moved;
    if (outcome == Again::kEnds) return {};
  }
  return {};
}

}  // namespace flugs::engine
