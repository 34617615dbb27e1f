#include "engine/merge/chunk_merge.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <thread>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "base/elapsed.h"
#include "columns/cells/unflushed.h"
#include "pmem/space/chunk_list.h"
#include "pmem/space/extent_allocator.h"
#include "tables/rows/space_reserve.h"

namespace flugs::engine {

namespace {

// How long writers of the chunk may be kept waiting for a transaction that has locked one of its
// rows; then the entries stay where they are, and the merge tries again later.
constexpr std::chrono::microseconds kMovePatience{200};
constexpr std::chrono::milliseconds kPause{2};
constexpr std::size_t kRowsAhead = 32;

/// The merge is about to read all rows of the chunk.
void read_ahead(pmem::Pool& pool, const TableData& table, std::size_t chunk) {
  if (const RowGroup* group = table.rows.group(chunk); group != nullptr) {
    for (std::size_t i = 0; i < group->column_count(); ++i)
      pool.read_ahead(group->column(i).parts());
  } else {
    const RowStore::ChunkView rows =
        table.rows.chunk(chunk, std::numeric_limits<std::uint32_t>::max());
    pool.read_ahead({rows.rows, rows.layout->bytes_of_rows(rows.row_count)});
  }
}

columns::MainRecords plan_records(std::span<const columns::MainColumnBuilder> builders) {
  std::vector<columns::MainColumnLayout> layouts;
  layouts.reserve(builders.size());
  for (const columns::MainColumnBuilder& builder : builders) layouts.push_back(builder.layout());
  return columns::MainRecords(layouts);
}

}  // namespace

ChunkMerge::ChunkMerge(pmem::Pool& pool, mvcc::TransactionSlots& slots, TableData& table,
                       std::size_t chunk, const UnusedRows& unused)
    : pool_(pool),
      slots_(slots),
      table_(table),
      rows_(table.rows),
      chunk_(chunk),
      first_row_(rows_.first_row_of(chunk)),
      row_count_(rows_.rows_of(chunk)),
      unused_(unused),
      now_(slots.mirrors(), slots.now(), mvcc::kNoStamp),
      oldest_(slots.oldest_snapshot()),
      persister_(pool.medium()) {
  FLUGS_CHECK(chunk < rows_.chunk_count());
  FLUGS_CHECK(rows_.is_frozen(chunk));
  FLUGS_CHECK(unused.size() == row_count_);
}

ChunkMerge::UnusedRows ChunkMerge::find_unused(mvcc::TransactionSlots& slots, const RowStore& rows,
                                               std::size_t chunk) {
  FLUGS_CHECK(rows.is_frozen(chunk));
  const mvcc::Visibility now(slots.mirrors(), slots.now(), mvcc::kNoStamp);
  UnusedRows unused(rows.rows_of(chunk));
  const std::uint32_t first = rows.first_row_of(chunk);
  for (std::uint32_t offset = 0; offset < unused.size(); ++offset)
    unused[offset] =
        now.resolve(rows.version(first + offset).created).fate == mvcc::Visibility::Fate::kNothing;
  return unused;
}

// A deleted row stays until no index names it and all transactions have ended that were open when
// the last index entry went: one of them may have its id. In a table without keys no transaction
// has a row that was deleted before the database was opened.
bool ChunkMerge::is_kept(std::uint32_t offset) const {
  FLUGS_DCHECK(offset < row_count_);
  using Fate = mvcc::Visibility::Fate;
  const mvcc::VersionLayout& version = rows_.version(first_row_ + offset);
  const mvcc::Visibility::Resolved created = now_.resolve(version.created);
  if (created.fate != Fate::kCommitted) return !unused_[offset];
  if (!table_.keys.empty()) return true;
  const mvcc::Visibility::Resolved deleted = now_.resolve(version.deleted);
  return deleted.fate != Fate::kCommitted || deleted.timestamp > slots_.opened_at();
}

// No transaction begins a row in a frozen chunk, and those that had begun one have ended. So a tag
// that seems in flight is damage, in a table whose rows opening does not read.
Status ChunkMerge::choose_rows() {
  FLUGS_CHECK(stored_.empty());
  read_ahead(pool_, table_, chunk_);
  stored_.reserve(row_count_);
  for (std::uint32_t offset = 0; offset < row_count_; ++offset) {
    const std::uint32_t row = first_row_ + offset;
    const mvcc::Visibility::Resolved created = now_.resolve(rows_.version(row).created);
    if (created.fate == mvcc::Visibility::Fate::kInFlight)
      return Status(
          StatusCode::kCorrupt,
          fmt::format("{}: table {}, row {}: created: expected a time-stamp or the tag of "
                      "a transaction that has ended, found {:#x}",
                      pool_.path(), table_.name(), row, created.seen));
    if (is_kept(offset)) stored_.push_back(offset);
  }
  counts_.rows = static_cast<std::uint32_t>(stored_.size());
  counts_.dropped = row_count_ - counts_.rows;
  return {};
}

// All rows are in one chunk, so all their cells of the column have one edition. A group shows its
// columns in the newest edition.
const columns::Column& ChunkMerge::edition_of_rows(std::size_t index,
                                                   const columns::Column& column) const noexcept {
  FLUGS_DCHECK(!stored_.empty());
  const RowView view = rows_.view(first_row_ + stored_.front());
  return view.is_in_group() ? column : *column.at_edition(view.edition(index));
}

// Neighbouring rows have dictionary entries that are far apart, so entries are fetched some rows
// ahead.
RowView ChunkMerge::view_with_entry(std::size_t i, std::size_t index,
                                    const columns::Column& edition) const noexcept {
  FLUGS_DCHECK(i < stored_.size());
  if (i + kRowsAhead < stored_.size()) {
    const RowView ahead = rows_.view(first_row_ + stored_[i + kRowsAhead]);
    if (!ahead.is_in_group()) edition.own_prefetch(*ahead.layout, ahead.cells, index);
  }
  return rows_.view(first_row_ + stored_[i]);
}

// Whether nothing is read of the row any more, except texts of keys for as long as an index names
// it. No snapshot is left that sees rows deleted at `dead_until` or before. Other texts may be in
// the place of texts that the row had (StringHeap::give_back).
bool ChunkMerge::is_gone(std::uint32_t offset, bool is_key, std::uint64_t dead_until) const {
  using Fate = mvcc::Visibility::Fate;
  const mvcc::VersionLayout& version = rows_.version(first_row_ + offset);
  if (now_.resolve(version.created).fate != Fate::kCommitted) return true;
  if (is_key) return false;
  const mvcc::Visibility::Resolved deleted = now_.resolve(version.deleted);
  return deleted.fate == Fate::kCommitted && deleted.timestamp <= dead_until;
}

// The group will have the texts of the rows, so they must stay. If a text was given back before it
// was kept, other bytes may be in its place, but no transaction reads the row: it gets an empty
// text.
void ChunkMerge::keep_texts(columns::Column& column, std::span<columns::Cell> cells) const {
  FLUGS_DCHECK(cells.size() == stored_.size());
  if (!column.has_texts_of_rows()) return;
  column.keep_texts(cells);
  const bool is_key = column.is_in_key();
  const std::uint64_t given_back_until = column.texts_given_back_until();
  for (std::size_t i = 0; i < stored_.size(); ++i)
    if (column.is_long_text(cells[i]) && is_gone(stored_[i], is_key, given_back_until))
      cells[i] = columns::text_cell::make_inline({});
}

// Texts of an earlier edition go when it goes. So the newest edition gets a copy of each text, one
// for all rows that share it.
Status ChunkMerge::gather_texts(std::size_t index, columns::Column& column, ColumnData& data) {
  data.cells.resize(stored_.size());
  columns::Unflushed unflushed;
  Status status;
  const columns::Column& edition = edition_of_rows(index, column);
  const bool is_newest =
      rows_.view(first_row_ + stored_.front()).edition(index) == column.edition();
  const bool is_key = column.is_in_key();
  const std::uint64_t dead_until = std::max(oldest_, edition.texts_given_back_until());
  std::unordered_map<const char*, columns::Cell> moved;
  const auto moved_cell = [&](std::string_view text) {
    const bool is_long = text.size() > columns::text_cell::kInlineBytesMax;
    if (is_long)
      if (const auto known = moved.find(text.data()); known != moved.end()) return known->second;
    Result<columns::Cell> own =
        column.encode(Value::from_bytes(column.type(), text), unflushed, persister_);
    if (!own.ok()) {
      status = std::move(own).status();
      return columns::Cell();
    }
    if (is_long) moved.emplace(text.data(), *own);
    return *own;
  };
  for (std::size_t i = 0; i < stored_.size() && status.ok(); ++i) {
    const RowView view = view_with_entry(i, index, edition);
    const bool is_null = column.nullable() && view.is_null(column, index);
    const bool has_no_text = is_null || (!is_newest && is_gone(stored_[i], is_key, dead_until));
    const std::string_view text = has_no_text ? std::string_view() : view.text(column, index);
    data.cells[i] = is_newest ? column.cell_of_stored(text) : moved_cell(text);
    data.cells[i].is_null = is_null;
  }
  unflushed.flush(persister_, "row_group/0");
  if (status.ok()) keep_texts(column, data.cells);
  return status;
}

// Texts that are compressed in a group leave the pool for the memory of the merge: they are
// compressed again, with the symbols of the texts that are left.
void ChunkMerge::gather_compressed(const columns::MainColumn& from, ColumnData& data) const {
  const RowGroup& group = *rows_.group(chunk_);
  columns::MainTextReader reader(from);
  std::vector<std::size_t> ends;
  ends.reserve(stored_.size());
  data.texts = " ";  // no text begins at offset 0
  for (const std::uint32_t offset : stored_) {
    data.texts += reader.text(group.readable_place_of(offset));
    ends.push_back(data.texts.size());
  }
  std::size_t begin = 1;
  for (std::size_t i = 0; i < stored_.size(); ++i) {
    const std::string_view text = std::string_view(data.texts).substr(begin, ends[i] - begin);
    columns::Cell cell =
        text.size() <= columns::text_cell::kInlineBytesMax
            ? columns::text_cell::make_inline(text)
            : columns::text_cell::make_out_of_line(begin, static_cast<std::uint32_t>(text.size()));
    cell.is_null = from.is_null(group.readable_place_of(stored_[i]));
    data.cells.push_back(cell);
    begin = ends[i];
  }
  data.is_in_memory = true;
}

columns::MainColumnBuilder ChunkMerge::builder_of(const columns::Column& column,
                                                  const ColumnData& data) const {
  using columns::MainEncoding;
  using columns::MainEncodings;
  if (!column.is_text())
    return columns::MainColumnBuilder::of_integers(column.type(), data.payloads, data.nulls);
  if (data.is_in_memory) {
    columns::MainColumnBuilder builder = columns::MainColumnBuilder::of_texts(
        column.type(), data.cells, columns::TextMemory::of_process(data.texts.data()),
        MainEncodings::only(MainEncoding::kCompressed));
    // Any other encoding would store the cells, which mean nothing in the pool.
    FLUGS_CHECK(builder.encoding() == MainEncoding::kCompressed ||
                builder.layout().null_count == builder.layout().row_count);
    return builder;
  }
  // Texts of a key are compared often, each for itself.
  const MainEncodings allowed = column.is_in_key()
                                    ? MainEncodings::all().without(MainEncoding::kCompressed)
                                    : MainEncodings::all();
  return columns::MainColumnBuilder::of_texts(
      column.type(), data.cells, {pool_.base(), &pool_.medium().bytes_word()}, allowed);
}

Status ChunkMerge::gather(std::size_t index, columns::Column& column, ColumnData& data) {
  const bool nullable = column.nullable();
  if (column.is_dropped()) {  // NULL in every row takes no room
    columns::Cell null;
    null.is_null = true;
    if (column.is_text()) {
      data.cells.assign(stored_.size(), null);
    } else {
      data.payloads.assign(stored_.size(), 0);
      data.nulls.assign(stored_.size(), 1);
    }
    return {};
  }
  if (const RowGroup* group = rows_.group(chunk_); group != nullptr && column.is_text())
    if (const columns::MainColumn& from = group->column(index); from.owns_texts()) {
      gather_compressed(from, data);
      return {};
    }
  if (column.is_text()) return gather_texts(index, column, data);
  data.payloads.resize(stored_.size());
  if (nullable) data.nulls.resize(stored_.size());
  const columns::Column& edition = edition_of_rows(index, column);
  for (std::size_t i = 0; i < stored_.size(); ++i) {
    const RowView view = view_with_entry(i, index, edition);
    if (nullable && view.is_null(edition, index)) {
      data.nulls[i] = 1;
      data.payloads[i] = 0;
    } else {
      data.payloads[i] = view.is_in_group() ? view.group->column(index).integer(view.place)
                                            : edition.own_integer(*view.layout, view.cells, index);
    }
  }
  return {};
}

// Protocol row_group. The rows are in the group from step 3 on.
//   step  store                            made durable by   power cut just after it: recovery
//   0     texts of a former edition of a   flush, fence of 1 nothing refers to them: waste in
//         column, once more in its heap                      the heap
//   1     header, columns, places,         flush, fence      extent unreachable: free space
//         version block pointers, records
//   2     version blocks with rows that    flush, fence of   blocks unreachable: free space
//         were deleted, and their stamps   chunk_replace/1
//   3     pointer to the group, in the     chunk_replace/2   claims the group; the old chunk is
//         place of that to the old chunk                     free
// Must hold:  0 to 2 before 3. From reading a stamp in step 2 to step 3 no stamp changes.
// A group without rows has no extent: steps 0 to 2 write nothing.
Status ChunkMerge::build() {
  FLUGS_CHECK(extent_.bytes == 0);
  if (stored_.empty()) {
    extent_ = pmem::ChunkList::kNothing;
    return {};
  }
  const std::size_t columns = table_.columns.size();
  std::vector<ColumnData> data(columns);
  std::vector<columns::MainColumnBuilder> builders;
  builders.reserve(columns);
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < columns; ++i) {
    columns::Column& column = *table_.columns[i];
    if (Status s = gather(i, column, data[i]); !s.ok()) return s;
    builders.push_back(builder_of(column, data[i]));
    leaves_texts_ |=
        builders.back().encoding() == columns::MainEncoding::kCompressed && !data[i].is_in_memory;
    builders.back().set_edition(column.edition());
    bytes += builders.back().parts_bytes();
  }
  bytes += pmem::whole_lines(sizeof(RowGroupLayout) + columns * sizeof(columns::MainColumnLayout));
  if (counts_.dropped != 0)
    bytes += pmem::whole_lines(RowGroup::place_words(row_count_) * sizeof(RowPlacesLayout));
  bytes += pmem::whole_lines(RowGroup::block_count(row_count_) * sizeof(std::uint64_t));
  const columns::MainRecords records = plan_records(builders);
  bool has_records = !omits_records_ && is_read_by_row(records) &&
                     has_room_for_records(bytes + records.bytes(counts_.rows));
  Result<pmem::Extent> extent = allocate(bytes + (has_records ? records.bytes(counts_.rows) : 0));
  if (extent.code() == StatusCode::kOutOfSpace && has_records && may_omit_records_) {
    has_records = false;
    extent = allocate(bytes);
  }
  if (!extent.ok()) return std::move(extent).status();
  extent_ = *extent;
  write_group(builders, has_records ? &records : nullptr);
  return {};
}

// Whether a group of `group_bytes` bytes leaves the pool at least as much room as the extent that
// it replaces. `kept_bytes` of this extent are useful as they are. Stamps of rows in main have a
// pledge, which is part of the reserve (RowGroup::pledge_blocks).
bool ChunkMerge::frees_room(std::uint64_t group_bytes, std::uint64_t kept_bytes) const noexcept {
  const std::uint64_t unit = pool_.allocator().unit_bytes();
  const auto extent_bytes = [&](std::uint64_t bytes) { return (bytes + unit - 1) / unit * unit; };
  if (gives_former_back_) return extent_bytes(group_bytes) <= extent_bytes(counts_.bytes_before);
  const RowGroup* const group = rows_.group(chunk_);
  const std::uint64_t pledged = std::uint64_t{counts_.rows} * sizeof(mvcc::VersionLayout);
  const std::uint64_t pledged_before = group != nullptr ? group->pledged_bytes() : 0;
  return extent_bytes(group_bytes) + pledged + kept_bytes <=
         extent_bytes(counts_.bytes_before) + pledged_before;
}

// Rows with texts may take more space in a group than in the delta, as a text that only one row
// has may take a cell of 16 bytes. And free rows of a chunk take new rows as long as the chunk
// stays. In a pool with little room the chunk then stays, unless most of it is free: fewer rows
// would fit after the merge than before.
bool ChunkMerge::is_better_left(std::uint64_t group_bytes) const {
  constexpr std::uint32_t kLeastPartUsed = 4;
  const std::uint32_t free = row_count_ - counts_.rows;
  if (gives_former_back_ || !table_.has_texts() || rows_.group(chunk_) != nullptr ||
      counts_.rows < row_count_ / kLeastPartUsed ||
      frees_room(group_bytes, counts_.bytes_before * free / row_count_))
    return false;
  return is_room_short(pool_.allocator().space());
}

// Records only make single rows faster to read. In a nearly full pool rows have the space.
bool ChunkMerge::has_room_for_records(std::uint64_t group_bytes) const {
  if (frees_room(group_bytes)) return true;
  const pmem::SpaceReport space = pool_.allocator().space();
  return space.left_bytes() >= group_bytes + space.reserved_bytes / kPartLeftForRows;
}

// A group that frees as much room as it takes may use the reserve. The group of a chunk that keeps
// a column's former edition may use what the reserve has for merges: when no chunk keeps it any
// more, more comes back. Each other group must leave the reserve alone, else a merge of a full pool
// would leave less room than before. If it finds no room, its chunk stays as it is.
Result<pmem::Extent> ChunkMerge::allocate(std::uint64_t bytes) {
  if (is_better_left(bytes))
    return Status(StatusCode::kOutOfSpace,
                  fmt::format("table {}, chunk {}: a merge would leave less room for rows",
                              table_.name(), chunk_))
        .with_part(SchemaPart::of(table_.name()));
  if (before_ != 0) return pool_.allocator().allocate_below(bytes, before_, persister_);
  pmem::Purpose purpose = gives_former_back_ ? pmem::Purpose::kMerge : pmem::Purpose::kNewData;
  if (frees_room(bytes)) purpose = purpose_;
  return pool_.allocator().allocate(bytes, persister_, purpose, pmem::Zeros::kUnshared);
}

// Single rows are read by key; those of a narrow table are read from the columns.
bool ChunkMerge::is_read_by_row(const columns::MainRecords& records) const noexcept {
  return !table_.keys.empty() && records.field_count() >= columns::MainRecords::kFieldsMin;
}

void ChunkMerge::write_records(const columns::MainRecords& records, RowGroupLayout& layout,
                               std::uint64_t offset) const {
  FLUGS_CHECK(offset % 64 == 0 && offset + records.bytes(counts_.rows) <= extent_.bytes);
  auto* base = reinterpret_cast<std::byte*>(&layout);
  const auto* column_layouts = reinterpret_cast<const columns::MainColumnLayout*>(&layout + 1);
  const std::uint64_t bytes = records.bytes(counts_.rows);
  std::memset(base + offset, 0, bytes);
  for (std::size_t i = 0; i < layout.column_count; ++i)
    if (records.has_field(i))
      records.write(i, columns::MainColumn(column_layouts[i], base, {}), base + offset);
  layout.records_offset = offset;
  layout.records_checksum = XXH3_64bits(base + offset, bytes);
}

void ChunkMerge::write_group(std::span<const columns::MainColumnBuilder> builders,
                             const columns::MainRecords* records) {
  auto& layout = *pool_.at(pmem::OffsetPtr<RowGroupLayout>{extent_.offset});
  auto* base = reinterpret_cast<std::byte*>(&layout);
  layout.magic = RowGroupLayout::kMagic;
  layout.bytes = extent_.bytes;
  layout.table_id = table_.id().value();
  layout.chunk_index = static_cast<std::uint32_t>(chunk_);
  layout.row_count = row_count_;
  layout.stored_rows = counts_.rows;
  layout.column_count = static_cast<std::uint16_t>(builders.size());
  std::uint64_t end = pmem::whole_lines(sizeof(RowGroupLayout) +
                                        builders.size() * sizeof(columns::MainColumnLayout));
  if (counts_.dropped != 0) {
    layout.places_offset = end;
    end += pmem::whole_lines(RowGroup::place_words(row_count_) * sizeof(RowPlacesLayout));
    write_places(layout);
  }
  layout.blocks_offset = end;
  end += pmem::whole_lines(RowGroup::block_count(row_count_) * sizeof(std::uint64_t));
  auto* column_layouts = reinterpret_cast<columns::MainColumnLayout*>(&layout + 1);
  for (std::size_t i = 0; i < builders.size(); ++i) {
    builders[i].write(base, end, column_layouts[i]);
    end += builders[i].parts_bytes();
  }
  if (records != nullptr) {
    write_records(*records, layout, end);
    end += records->bytes(counts_.rows);
  }
  FLUGS_CHECK(end <= extent_.bytes);
  layout.checksum = RowGroup::checksum_of(layout);
  persister_.flush_unshared(base, end, "row_group/1");
  counts_.bytes_after = extent_.bytes;
}

void ChunkMerge::write_places(RowGroupLayout& layout) const {
  auto* words = reinterpret_cast<RowPlacesLayout*>(reinterpret_cast<std::byte*>(&layout) +
                                                   layout.places_offset);
  for (const std::uint32_t offset : stored_)
    words[offset / 64].stored |= std::uint64_t{1} << (offset % 64);
  std::uint32_t before = 0;
  for (std::uint64_t i = 0; i < RowGroup::place_words(row_count_); ++i) {
    words[i].stored_before = before;
    before += static_cast<std::uint32_t>(std::popcount(words[i].stored));
  }
  FLUGS_CHECK(before == counts_.rows);
}

Status ChunkMerge::make_empty_chunk() {
  FLUGS_CHECK(extent_.bytes == 0);
  const columns::RowLayout* layout = rows_.current_layout();
  std::vector<columns::CellNeed> needs;
  for (const columns::Column* column : table_.columns) needs.push_back(column->need(1));
  Result<columns::RowLayout> fresh = rows_.layouts().shape().layout(needs);
  if (!fresh.ok()) return std::move(fresh).status();
  // A layout that lacks a column, has one of an earlier edition or another shape would take no
  // rows.
  if (layout == nullptr || layout->cells().size() < table_.columns.size() ||
      layout->editions() != table_.columns.editions() || !rows_.layouts().shape().is_of(*layout))
    layout = &*fresh;
  Result<pmem::Extent> extent = rows_.make_chunk(chunk_, *layout, persister_);
  if (!extent.ok()) return std::move(extent).status();
  extent_ = *extent;
  Status uncovered = table_.runs.uncover(chunk_, persister_);  // before chunk_replace/2
  if (!uncovered.ok()) discard();
  return uncovered;
}

// Writes a stored row's entry into the new group, which no other thread uses yet.
Status ChunkMerge::put_version(std::uint32_t offset, const mvcc::VersionLayout& version) {
  FLUGS_DCHECK(offset < row_count_);
  FLUGS_CHECK(!mvcc::is_tag(version.created) && !mvcc::is_tag(version.deleted));
  auto& layout = *pool_.at(pmem::OffsetPtr<RowGroupLayout>{extent_.offset});
  auto* pointers = reinterpret_cast<std::uint64_t*>(reinterpret_cast<std::byte*>(&layout) +
                                                    layout.blocks_offset);
  const std::uint32_t block = offset / RowGroupLayout::kBlockRows;
  if (pointers[block] == 0) {
    const std::uint32_t first = block * RowGroupLayout::kBlockRows;
    const std::uint32_t rows = std::min(RowGroupLayout::kBlockRows, row_count_ - first);
    const std::uint64_t bytes =
        std::uint64_t{std::min(row_count_, RowGroupLayout::kBlockRows)} * sizeof version;
    Result<pmem::Extent> extent = pool_.allocator().allocate(bytes, persister_, purpose_);
    if (!extent.ok()) return std::move(extent).status();
    blocks_.push_back(*extent);
    auto* versions = pool_.at(pmem::OffsetPtr<mvcc::VersionLayout>{extent->offset});
    const auto from = std::lower_bound(stored_.begin(), stored_.end(), first);
    const auto end = std::lower_bound(from, stored_.end(), first + rows);
    for (auto stored = from; stored != end; ++stored) versions[*stored - first].created = 1;
    pointers[block] = extent->offset;
    persister_.flush(&pointers[block], sizeof pointers[block], "row_group/1");
  }
  auto* versions = pool_.at(pmem::OffsetPtr<mvcc::VersionLayout>{pointers[block]});
  versions[offset % RowGroupLayout::kBlockRows] = version;
  return {};
}

// Carries deletions into the new group, until a row is locked for too long. The next attempt
// overwrites what this one wrote.
Status ChunkMerge::carry_over(bool& is_locked) {
  using Fate = mvcc::Visibility::Fate;
  const auto deadline = std::chrono::steady_clock::now() + kMovePatience;
  for (const std::uint32_t offset : stored_) {
    const mvcc::VersionLayout& old = rows_.version(first_row_ + offset);
    const bool is_there = mvcc::load_stamp(old.created) != mvcc::kNoStamp;
    if (is_there && mvcc::load_stamp(old.deleted) == mvcc::kNoStamp) continue;
    mvcc::Visibility::Resolved deleted = now_.resolve(old.deleted);
    for (; deleted.fate == Fate::kInFlight; deleted = now_.resolve(old.deleted)) {
      is_locked = std::chrono::steady_clock::now() >= deadline;
      if (is_locked) return {};
      std::this_thread::yield();
    }
    if (is_there && deleted.fate == Fate::kNothing) continue;
    const mvcc::Stamp stamp = deleted.fate == Fate::kCommitted ? deleted.timestamp : mvcc::kNoStamp;
    if (Status s = put_version(offset, {is_there ? mvcc::Stamp{1} : mvcc::kNoStamp, stamp});
        !s.ok())
      return s;
  }
  for (const pmem::Extent& block : blocks_)
    persister_.flush(pool_.base() + block.offset, block.bytes, "row_group/2");
  return {};
}

// Writers of the chunk wait from here until the object `move` is gone. A transaction that locked a
// row just before takes the lock back at once, or ends soon.
Status ChunkMerge::move(bool& moved) {
  FLUGS_CHECK(extent_.offset != 0);
  const auto start = std::chrono::steady_clock::now();
  const RowStore::Move move(rows_, chunk_);
  bool is_locked = false;
  Status status = carry_over(is_locked);
  if (status.ok() && !is_locked) {
    status = rows_.replace_chunk(chunk_, extent_, [&] { return slots_.advance(); }, persister_);
    moved = status.ok();
  }
  counts_.move_us = std::max(counts_.move_us, microseconds_since(start));
  return status;
}

// Frees the extents that have been written so far. The root reaches none of them.
void ChunkMerge::discard() noexcept {
  persister_.fence("chunk_replace/1");  // no flush may stay behind unfenced
  for (const pmem::Extent& block : blocks_) pool_.allocator().release(block);
  blocks_.clear();
  if (extent_.bytes != 0) pool_.allocator().release(std::exchange(extent_, {}));
}

Status ChunkMerge::run(std::chrono::milliseconds patience) {
  const auto start = std::chrono::steady_clock::now();
  counts_.bytes_before = rows_.bytes_of_chunk(chunk_);
  if (Status s = choose_rows(); !s.ok()) return s;
  // Other threads may still read the rows of the chunk in their places. So the chunk first becomes
  // a group without rows. A later merge makes it an empty chunk, perhaps with longer rows, when no
  // transaction is left that saw it as a chunk.
  const RowGroup* const group = rows_.group(chunk_);
  is_empty_ = wants_row_ids_ && stored_.empty() && group != nullptr;
  Status built = is_empty_ ? make_empty_chunk() : build();
  if (is_empty_ && built.code() == StatusCode::kOutOfSpace && group->stored_rows() != 0) {
    is_empty_ = false;
    built = build();
  }
  persister_.fence("row_group/1");  // not while writers wait
  counts_.build_us = microseconds_since(start);
  const auto deadline = std::chrono::steady_clock::now() + patience;
  bool moved = false;
  while (built.ok()) {
    built = move(moved);
    if (moved || !built.ok()) break;
    if (std::chrono::steady_clock::now() >= deadline) {
      built = Status(StatusCode::kBusy,
                     fmt::format("table {}, chunk {}: a transaction has locked a row of the chunk",
                                 table_.name(), chunk_))
                  .with_part(SchemaPart::of(table_.name()));
    } else {
      std::this_thread::sleep_for(kPause);
    }
  }
  if (!built.ok()) discard();
  return built;
}

}  // namespace flugs::engine
