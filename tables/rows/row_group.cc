#include "tables/rows/row_group.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <utility>

#include "base/check.h"
#include "columns/main/kept_codes.h"
#include "columns/main/main_column_builder.h"
#include "pmem/space/extent_allocator.h"

namespace flugs::engine {

namespace {

static_assert(sizeof(RowGroupLayout) % alignof(columns::MainColumnLayout) == 0);
// Blocks of versions are whole lines, and so may be flushed by different threads.
static_assert(RowGroupLayout::kBlockRows * sizeof(mvcc::VersionLayout) % 64 == 0);

std::uint64_t columns_end(const RowGroupLayout& layout) noexcept {
  return sizeof(RowGroupLayout) +
         std::uint64_t{layout.column_count} * sizeof(columns::MainColumnLayout);
}

}  // namespace

RowGroup::RowGroup(pmem::Pool& pool, RowGroupLayout& layout, const columns::ColumnArray& columns,
                   std::string owner)
    : pool_(pool),
      layout_(layout),
      table_columns_(columns),
      owner_(std::move(owner)),
      text_memory_{pool.base(), &pool.medium().bytes_word()} {}

RowGroup::RowGroup(pmem::Pool& pool, std::unique_ptr<std::byte[]> layout,
                   const columns::ColumnArray& columns, std::string owner)
    : RowGroup(pool, *reinterpret_cast<RowGroupLayout*>(layout.get()), columns, std::move(owner)) {
  own_layout_ = std::move(layout);
}

RowGroup::~RowGroup() {
  if (pledged_bytes_ != 0) pool_.allocator().end_pledge(pledged_bytes_);
}

std::uint64_t RowGroup::checksum_of(const RowGroupLayout& layout) noexcept {
  const auto* base = reinterpret_cast<const std::byte*>(&layout);
  const auto* from = reinterpret_cast<const std::byte*>(&layout.bytes);
  const std::uint64_t sum =
      XXH3_64bits(from, columns_end(layout) - static_cast<std::uint64_t>(from - base));
  if (layout.places_offset == 0) return sum;
  return XXH3_64bits_withSeed(base + layout.places_offset,
                              place_words(layout.row_count) * sizeof(RowPlacesLayout), sum);
}

std::uint64_t RowGroup::offset_in_pool() const noexcept {
  FLUGS_CHECK(own_layout_ == nullptr);
  return pool_.offset_of(&layout_).offset;
}

std::uint64_t RowGroup::block_bytes() const noexcept {
  static_assert(RowGroupLayout::kBlockRows * sizeof(mvcc::VersionLayout) <=
                pmem::Reserve::kStepBytes);
  return std::uint64_t{std::min(layout_.row_count, RowGroupLayout::kBlockRows)} *
         sizeof(mvcc::VersionLayout);
}

std::uint64_t* RowGroup::block_pointers() const noexcept {
  return reinterpret_cast<std::uint64_t*>(reinterpret_cast<std::byte*>(&layout_) +
                                          layout_.blocks_offset);
}

Status RowGroup::corrupt(const std::string& what, std::uint64_t expected,
                         std::uint64_t found) const {
  return Status(
      StatusCode::kCorrupt,
      fmt::format("{}: {}: row group {} at offset {}: {}: expected {}, found {}", pool_.path(),
                  owner_, layout_.chunk_index, offset_in_pool(), what, expected, found));
}

// Runs before anything but the first 64 bytes of the group is read.
Status RowGroup::check_parts() const {
  const std::uint64_t pool_bytes = pool_.medium().bytes();
  const std::uint64_t offset = offset_in_pool();
  if (offset > pool_bytes || pool_bytes - offset < sizeof(RowGroupLayout))
    return corrupt("end of header inside the pool, pool bytes", pool_bytes, offset);
  if (layout_.bytes > pool_bytes - offset || layout_.bytes < columns_end(layout_))
    return corrupt("bytes, inside the pool, at most", pool_bytes - offset, layout_.bytes);
  const auto holds = [&](std::uint64_t from, std::uint64_t bytes) {
    return from % 8 == 0 && from >= columns_end(layout_) && from <= layout_.bytes &&
           bytes <= layout_.bytes - from;
  };
  if (layout_.places_offset != 0 &&
      !holds(layout_.places_offset, place_words(layout_.row_count) * sizeof(RowPlacesLayout)))
    return corrupt("places inside the group of bytes", layout_.bytes, layout_.places_offset);
  if (!holds(layout_.blocks_offset, block_count(layout_.row_count) * 8))
    return corrupt("block pointers inside the group of bytes", layout_.bytes,
                   layout_.blocks_offset);
  if (layout_.checksum != checksum_of(layout_))
    return corrupt("checksum", checksum_of(layout_), layout_.checksum);
  return {};
}

Status RowGroup::check_places() const {
  if (layout_.places_offset == 0) {
    if (layout_.stored_rows != layout_.row_count)
      return corrupt("stored rows", layout_.row_count, layout_.stored_rows);
    return {};
  }
  std::uint64_t stored = 0;
  const std::uint64_t words = place_words(layout_.row_count);
  for (std::uint64_t i = 0; i < words; ++i) {
    if (places_[i].stored_before != stored)
      return corrupt("stored rows before a word of places", stored, places_[i].stored_before);
    stored += static_cast<std::uint64_t>(std::popcount(places_[i].stored));
  }
  if (layout_.row_count % 64 != 0 && (places_[words - 1].stored >> (layout_.row_count % 64)) != 0)
    return corrupt("places of row ids below", layout_.row_count, words * 64);
  if (stored != layout_.stored_rows) return corrupt("stored rows", stored, layout_.stored_rows);
  return {};
}

std::span<const columns::MainColumnLayout> RowGroup::column_layouts() const noexcept {
  return {reinterpret_cast<const columns::MainColumnLayout*>(&layout_ + 1), layout_.column_count};
}

std::span<const std::byte> RowGroup::extent() const noexcept {
  return {reinterpret_cast<const std::byte*>(&layout_), layout_.bytes};
}

Status RowGroup::load_columns() {
  const columns::ColumnArray& columns = table_columns_;
  columns_.reserve(layout_.column_count);
  read_texts_.resize(layout_.column_count);
  for (std::size_t i = 0; i < layout_.column_count; ++i) {
    const std::string name = fmt::format("{}: {}, column {}, row group {}", pool_.path(), owner_,
                                         columns[i]->name(), layout_.chunk_index);
    const columns::MainColumnLayout& layout = column_layouts()[i];
    const columns::Column* column = columns[i]->at_edition(layout.edition);
    if (column == nullptr)
      return corrupt(fmt::format("edition of column {}, at most", columns[i]->name()),
                     columns[i]->edition(), layout.edition);
    const columns::MainColumnOwner owner{name, offset_in_pool(), column->type(),
                                         layout_.stored_rows};
    if (Status s = columns::MainColumn::check(layout, extent(), owner); !s.ok()) return s;
    if (!columns[i]->nullable() && layout.null_count != 0 && !columns[i]->is_dropped())
      return corrupt(fmt::format("NULLs in column {}, which is NOT NULL", columns[i]->name()), 0,
                     layout.null_count);
    columns_.emplace_back(layout, extent().data(), text_memory_, read_texts_of(i));
  }
  kept_codes_ = std::make_unique<columns::KeptCodes[]>(columns_.size());
  return {};
}

// Null for a column whose texts are not compressed. Its layout has been checked.
columns::ReadTexts* RowGroup::read_texts_of(std::size_t i) {
  const columns::CompressedTexts texts =
      columns::MainColumn::compressed_texts(column_layouts()[i], extent().data());
  if (texts.row_count() == 0) return nullptr;
  read_texts_[i] = std::make_unique<columns::ReadTexts>();
  read_texts_[i]->begin(texts, table_columns_.read_text_memory());
  return read_texts_[i].get();
}

// Threads without a transaction compare texts of keys, when they make or clean an index. These stay
// as long as the group.
void RowGroup::take_read_texts(TakenTexts& taken) const {
  for (std::size_t i = 0; i < read_texts_.size(); ++i) {
    if (read_texts_[i] == nullptr || table_columns_[i]->is_in_key()) continue;
    taken.emplace_back();  // first, or texts that were taken could be lost for lack of memory
    taken.back() = read_texts_[i]->take();
    if (taken.back() == nullptr) taken.pop_back();
  }
}

bool RowGroup::keeps_codes(std::size_t column) const noexcept {
  constexpr std::uint64_t kAlways = 4096;
  if (column >= columns_.size()) return false;
  const std::uint64_t count = columns_[column].code_count();
  return count != 0 && count <= kAlways + layout_.stored_rows / 8;
}

std::atomic<std::uint32_t>* RowGroup::kept_codes(std::size_t column) const {
  if (!keeps_codes(column)) return nullptr;
  return kept_codes_[column].codes(columns_[column].code_count());
}

std::span<const std::byte> RowGroup::records() const noexcept {
  if (!has_records()) return {};
  return extent().subspan(layout_.records_offset,
                          columns::MainRecords(column_layouts()).bytes(layout_.stored_rows));
}

void RowGroup::decode_all(std::uint32_t place, std::span<Value> out) const noexcept {
  // Local copies: for the compiler, storing results cannot change them.
  const columns::TextMemory memory = text_memory_;
  const columns::MainDecoder* decoders = decoders_.data();
  const std::byte* row = decoders_.empty() ? nullptr : record(place);
  FLUGS_DCHECK(out.size() <= table_columns_.size());
  const std::size_t count = std::min(own_end(), out.size());
  for (std::size_t i = count; i < out.size(); ++i) out[i] = other_column(i).value(place);
  for (std::size_t i = 0; i < count; ++i)
    out[i] = row == nullptr || decoders[i].kind == columns::MainDecoder::Kind::kOther
                 ? columns_[i].value(place)
                 : decoders[i].decode(row, memory);
}

// Single rows are read from the records, if there are any.
Status RowGroup::load_records() {
  if (!has_records()) return {};
  const columns::MainRecords fields(column_layouts());
  const std::uint64_t bytes = fields.bytes(layout_.stored_rows);
  if (layout_.records_offset % 64 != 0 || layout_.records_offset < columns_end(layout_) ||
      layout_.records_offset > layout_.bytes || bytes > layout_.bytes - layout_.records_offset)
    return corrupt("records inside the group of bytes", layout_.bytes, layout_.records_offset);
  records_ = extent().data() + layout_.records_offset;
  record_bytes_ = fields.stride();
  decoders_.reserve(columns_.size());
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    fields.attach(i, columns_[i], records_);
    decoders_.push_back(fields.decoder(i, columns_[i]));
  }
  return {};
}

void RowGroup::make_marks() {
  FLUGS_CHECK(marks_ == nullptr && block_total_ == 0);
  marks_ = std::make_unique<DeletionMarks>(layout_.stored_rows);
  extreme_places_ = std::make_unique<columns::ExtremePlaces[]>(columns_.size());
}

Status RowGroup::load_blocks(bool claims) {
  const std::uint64_t blocks = block_count(layout_.row_count);
  blocks_ = std::make_unique<mvcc::VersionLayout*[]>(blocks);
  const std::uint64_t pool_bytes = pool_.medium().bytes();
  for (std::uint64_t i = 0; i < blocks; ++i) {
    const std::uint64_t block = block_pointers()[i];
    if (block == 0) continue;
    pool_.rely_on(&block_pointers()[i], sizeof block);
    if (block % 64 != 0 || block > pool_bytes || block_bytes() > pool_bytes - block)
      return corrupt("version block inside the pool of bytes", pool_bytes, block);
    if (claims)
      if (Status s = pool_.allocator().claim({block, block_bytes()}, owner_); !s.ok()) return s;
    if (marks_ == nullptr) make_marks();
    blocks_[i] = pool_.at(pmem::OffsetPtr<mvcc::VersionLayout>{block});
    ++block_total_;
  }
  return {};
}

Result<std::unique_ptr<RowGroup>> RowGroup::load(pmem::Pool& pool, std::uint64_t offset,
                                                 const RowGroupIdentity& identity,
                                                 const columns::ColumnArray& columns,
                                                 const std::string& owner, bool claims) {
  std::unique_ptr<RowGroup> group(
      new RowGroup(pool, *pool.at(pmem::OffsetPtr<RowGroupLayout>{offset}), columns, owner));
  const RowGroupLayout& layout = group->layout_;
  // Only columns that were added later may be missing.
  const std::size_t all = columns.size();
  if (layout.column_count > all || layout.column_count == 0 ||
      !columns.may_lack(layout.column_count))
    return group->corrupt("columns", all, layout.column_count);
  if (layout.stored_rows == 0) return group->corrupt("stored rows, at least", 1, 0);
  if (layout.row_count != identity.row_count)
    return group->corrupt("row ids", identity.row_count, layout.row_count);
  if (Status s = group->check_parts(); !s.ok()) return s;
  if (layout.table_id != identity.table_id)
    return group->corrupt("table", identity.table_id, layout.table_id);
  if (layout.chunk_index != identity.chunk_index)
    return group->corrupt("chunk index", identity.chunk_index, layout.chunk_index);
  if (layout.places_offset != 0)
    group->places_ = reinterpret_cast<const RowPlacesLayout*>(
        reinterpret_cast<const std::byte*>(&layout) + layout.places_offset);
  if (Status s = group->check_places(); !s.ok()) return s;
  if (Status s = group->load_columns(); !s.ok()) return s;
  group->note_change();
  if (Status s = group->load_records(); !s.ok()) return s;
  if (Status s = group->load_blocks(claims); !s.ok()) return s;
  group->pledge_blocks();
  return group;
}

std::unique_ptr<RowGroup> RowGroup::without_rows(pmem::Pool& pool, const RowGroupIdentity& identity,
                                                 const columns::ColumnArray& columns,
                                                 const std::string& owner) {
  const std::uint64_t places_bytes = place_words(identity.row_count) * sizeof(RowPlacesLayout);
  auto own = std::make_unique<std::byte[]>(sizeof(RowGroupLayout) + places_bytes);
  auto& layout = *reinterpret_cast<RowGroupLayout*>(own.get());
  layout.table_id = identity.table_id;
  layout.chunk_index = identity.chunk_index;
  layout.row_count = identity.row_count;
  layout.places_offset = sizeof(RowGroupLayout);
  const auto* places = reinterpret_cast<const RowPlacesLayout*>(&layout + 1);
  std::unique_ptr<RowGroup> group(new RowGroup(pool, std::move(own), columns, owner));
  group->places_ = places;
  group->blocks_ = std::make_unique<mvcc::VersionLayout*[]>(block_count(identity.row_count));
  group->note_change();
  return group;
}

// Deleting all rows of the group takes version blocks. What they need for rows that are there is in
// the reserve until they are made. Entries for row ids without a row are left to the rest of the
// reserve: else new rows in place of deleted ones would need more than these did.
void RowGroup::pledge_blocks() noexcept {
  FLUGS_DCHECK(pledged_bytes_ == 0);
  for (std::uint32_t offset = 0; offset < layout_.row_count; offset += RowGroupLayout::kBlockRows)
    if (block_with(offset) == nullptr) pledged_bytes_ += bytes_for_block(offset);
  if (pledged_bytes_ != 0) pool_.allocator().pledge(pledged_bytes_);
}

// The bytes of the entries of stored rows, in the version block that begins with `offset`.
std::uint64_t RowGroup::bytes_for_block(std::uint32_t offset) const noexcept {
  static_assert(RowGroupLayout::kBlockRows % 64 == 0);
  FLUGS_DCHECK(offset % RowGroupLayout::kBlockRows == 0);
  std::uint64_t rows = 0;
  const std::uint32_t end = std::min(offset + RowGroupLayout::kBlockRows, layout_.row_count);
  for (; offset < end; offset += 64)
    rows += static_cast<std::uint64_t>(std::popcount(stored_mask(offset)));
  return rows * sizeof(mvcc::VersionLayout);
}

Result<std::uint64_t> RowGroup::make_block(std::uint32_t block, pmem::Persister& persister) const {
  Result<pmem::Extent> extent =
      pool_.allocator().allocate(block_bytes(), persister, pmem::Purpose::kReclaim);
  if (!extent.ok()) return std::move(extent).status();
  auto* versions = pool_.at(pmem::OffsetPtr<mvcc::VersionLayout>{extent->offset});
  const std::uint32_t first = block * RowGroupLayout::kBlockRows;
  const std::uint32_t rows = std::min(RowGroupLayout::kBlockRows, layout_.row_count - first);
  for (std::uint32_t i = 0; i < rows; ++i)
    versions[i] = place_of(first + i) == kNoPlace ? kNeverCreated : kAlwaysThere;
  persister.flush(versions, rows * sizeof(mvcc::VersionLayout), "version_block/1");
  return extent->offset;
}

// Protocol version_block: MVCC entries for rows of a group before the first of them is deleted.
//   step  store                              made durable by     power cut just after it: recovery
//   1     entries: created, not deleted      flush, fence        block unreachable: free space
//   2     the group's pointer to the block   persist (8 bytes)   no row of it is deleted
// Must hold:  1 before 2, else noise would read as stamps. 2 before any tag in the block, else a
//             committed deletion could be lost: the intent that names it finds no entry.
Result<mvcc::VersionLayout*> RowGroup::writable_version(std::uint32_t offset,
                                                        pmem::Persister& persister) {
  const std::uint32_t block = offset / RowGroupLayout::kBlockRows;
  if (mvcc::VersionLayout* there = block_with(offset); there != nullptr)
    return there + offset % RowGroupLayout::kBlockRows;
  if (own_layout_ != nullptr)
    return Status(StatusCode::kCorrupt,
                  fmt::format("{}: {}: row group {} has no rows, and one of them is written to",
                              pool_.path(), owner_, layout_.chunk_index));
  const std::lock_guard guard(block_mutex_);
  if (block_with(offset) == nullptr) {
    if (marks_ == nullptr) {  // the first block: there is no stamp yet
      make_marks();
      marks_->set_found();
    }
    Result<std::uint64_t> made = make_block(block, persister);
    if (!made.ok()) {
      persister.fence("version_block/1");  // no flush may stay behind unfenced
      return std::move(made).status();
    }
    persister.fence("version_block/1");
    std::uint64_t& pointer = block_pointers()[block];
    std::atomic_ref(pointer).store(*made, std::memory_order_relaxed);
    persister.persist(&pointer, sizeof pointer, "version_block/2");
    // Damage may have changed what the pool says about places.
    const std::uint64_t bytes =
        std::min(bytes_for_block(block * RowGroupLayout::kBlockRows), pledged_bytes_);
    __atomic_store_n(&pledged_bytes_, pledged_bytes_ - bytes, __ATOMIC_RELAXED);
    pool_.allocator().end_pledge(bytes);
    __atomic_store_n(&block_total_, block_total_ + 1, __ATOMIC_RELEASE);
    __atomic_store_n(&blocks_[block], pool_.at(pmem::OffsetPtr<mvcc::VersionLayout>{*made}),
                     __ATOMIC_RELEASE);
  }
  return block_with(offset) + offset % RowGroupLayout::kBlockRows;
}

// This also finds a mistake of the code that wrote the records: their checksum would confirm it.
Status RowGroup::audit_records(const columns::MainRecords& fields, std::size_t column) const {
  if (!fields.has_field(column)) return {};
  const columns::MainColumn from(column_layouts()[column], extent().data(), text_memory_);
  const std::uint32_t row = fields.first_difference(column, from, records().data());
  if (row == from.row_count()) return {};
  return Status(StatusCode::kCorrupt,
                fmt::format("{}: {}: row group {} at offset {}: record {}: expected the column's "
                            "value, {}, found a different field of column {}",
                            pool_.path(), owner_, layout_.chunk_index, offset_in_pool(), row,
                            from.value(row).to_string(), column));
}

void RowGroup::audit(FunctionRef<void(std::size_t column, const Status&)> visit) const {
  const columns::MainRecords fields(column_layouts());
  Status whole;
  if (has_records()) {
    const std::uint64_t checksum = XXH3_64bits(records().data(), records().size());
    if (checksum != layout_.records_checksum)
      whole = corrupt("checksum of records", layout_.records_checksum, checksum);
  }
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const std::string name =
        fmt::format("{}: {}, row group {}", pool_.path(), owner_, layout_.chunk_index);
    const columns::MainColumnOwner owner{name, offset_in_pool(), columns_[i].type(),
                                         layout_.stored_rows};
    Status status = columns::MainColumn::audit(column_layouts()[i], extent(), owner, text_memory_);
    if (status.ok() && has_records()) status = whole.ok() ? audit_records(fields, i) : whole;
    visit(i, status);
  }
}

void RowGroup::release_blocks() {
  for (std::uint64_t i = 0; i < block_count(layout_.row_count); ++i)
    if (blocks_[i] != nullptr)
      pool_.allocator().release({pool_.offset_of(blocks_[i]).offset, block_bytes()});
}

}  // namespace flugs::engine
