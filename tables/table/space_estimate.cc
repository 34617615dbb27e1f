#include "tables/table/space_estimate.h"

#include <algorithm>

#include "base/check.h"
#include "tables/data/table_data.h"
#include "tables/table/column_reclaim.h"

namespace flugs::engine {

using Fate = mvcc::Visibility::Fate;

SpaceEstimate::SpaceEstimate(const TableData& data, mvcc::TransactionSlots& slots,
                             std::uint32_t step)
    : data_(data),
      slots_(slots),
      step_(step),
      oldest_(slots.oldest_transaction().snapshot),
      text_bytes_(data.columns.size()) {
  FLUGS_CHECK(step != 0);
}

void SpaceEstimate::count_rows() {
  for (std::size_t chunk = 0; chunk < data_.rows.chunk_count(); ++chunk) {
    const mvcc::SnapshotHold hold(slots_);  // nothing that is found under it is freed meanwhile
    if (data_.is_dropped()) return;
    if (const RowGroup* group = data_.rows.group(chunk); group != nullptr) {
      add_group(*group, hold.visibility(), chunk % step_ == 0);
    } else {
      add_chunk(chunk, hold.visibility());
    }
  }
}

// The row must have been created.
SpaceEstimate::State SpaceEstimate::state_of(const mvcc::Stamp& deleted,
                                             const mvcc::Visibility& now) const noexcept {
  const mvcc::Visibility::Resolved end = now.resolve(deleted);
  if (end.fate != Fate::kCommitted) return State::kLive;
  return end.timestamp <= oldest_ ? State::kDead : State::kHeld;
}

void SpaceEstimate::add_chunk(std::size_t chunk, const mvcc::Visibility& now) {
  const RowStore::ChunkView view = data_.rows.chunk(chunk, data_.rows.rows_end());
  std::uint64_t unused = data_.rows.rows_of(chunk) - view.row_count;
  for (std::uint32_t i = 0; i < view.row_count; i += step_) {
    const std::byte* row = view.row(i);
    const auto& version = *reinterpret_cast<const mvcc::VersionLayout*>(row);
    const std::uint64_t rows = std::min(step_, view.row_count - i);
    const Fate begun = now.resolve(version.created).fate;
    if (begun == Fate::kNothing) unused += rows;
    if (begun != Fate::kCommitted) continue;
    switch (state_of(version.deleted, now)) {
      case State::kLive:
        add_texts(*view.layout, row, rows);
        break;
      case State::kDead:
        estimate_.rows_dead += rows;
        estimate_.dead_bytes += rows * view.row_bytes;
        break;
      case State::kHeld:
        estimate_.rows_held += rows;
        estimate_.held_bytes += rows * view.row_bytes;
        break;
    }
  }
  estimate_.unused_bytes += unused * view.row_bytes;
}

void SpaceEstimate::add_texts(const columns::RowLayout& layout, const std::byte* row,
                              std::uint64_t rows) {
  for (std::size_t i = 0; i < text_bytes_.size(); ++i) {
    const columns::Column& column = *data_.columns[i];
    if (column.is_text() && !column.is_dropped())
      text_bytes_[i] += rows * ColumnReclaim::long_bytes(column.text(layout, row, i));
  }
}

// Each row has an equal share of the group, of its version blocks, and of its long texts.
void SpaceEstimate::add_group(const RowGroup& group, const mvcc::Visibility& now,
                              bool reads_texts) {
  const std::uint64_t stored = group.stored_rows();
  if (stored == 0) return;
  std::uint64_t dead = 0;
  std::uint64_t held = 0;
  for (std::uint32_t offset = 0; group.has_deletions() && offset < group.row_count();
       offset += step_) {
    const mvcc::VersionLayout* version = group.stamped_version(offset);
    if (version == nullptr || group.place_of(offset) == RowGroup::kNoPlace) continue;
    // A row that seems never created has left the indexes after its deletion.
    const State state = mvcc::load_stamp(version->created) == mvcc::kNoStamp
                            ? State::kDead
                            : state_of(version->deleted, now);
    const std::uint64_t rows = std::min(step_, group.row_count() - offset);
    dead += state == State::kDead ? rows : 0;
    held += state == State::kHeld ? rows : 0;
  }
  dead = std::min(dead, stored);
  held = std::min(held, stored - dead);
  const std::uint64_t bytes = group.bytes() + group.version_bytes();
  estimate_.rows_dead += dead;
  estimate_.rows_held += held;
  estimate_.dead_bytes += dead * bytes / stored;
  estimate_.held_bytes += held * bytes / stored;
  if (!reads_texts) return;
  for (std::size_t i = 0; i < std::min(text_bytes_.size(), group.column_count()); ++i)
    if (!data_.columns[i]->is_dropped())
      text_bytes_[i] += group.column(i).long_text_bytes() * (stored - dead) / stored * step_;
}

// A merge gives back all that former editions of a column own, and what the newest owns if the
// column begins anew. Then the long texts that rows need are written once more.
void SpaceEstimate::count_columns() {
  if (data_.is_dropped()) return;
  const MergeOptions options;
  const std::uint64_t least = ColumnReclaim::waste_bytes(options, data_.pool.medium().bytes());
  for (std::size_t i = 0; i < text_bytes_.size(); ++i) {
    columns::Column& column = *data_.columns[i];
    if (column.is_dropped()) continue;
    std::uint64_t given = 0;
    column.for_each_used([&](columns::Column& edition) {
      if (&edition != &column) given += ColumnReclaim::bytes_owned(edition);
    });
    const std::uint64_t newest = ColumnReclaim::bytes_owned(column);
    const std::uint64_t unneeded = newest - std::min(newest, text_bytes_[i]);
    if (newest >= least && newest != 0 && unneeded * 100 >= newest * options.waste_percent)
      given += newest;
    estimate_.unneeded_bytes += given - std::min(given, text_bytes_[i]);
  }
  estimate_.replaced_bytes = data_.rows.replaced_bytes() + data_.runs.replaced_bytes();
}

}  // namespace flugs::engine
