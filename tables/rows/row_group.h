#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "columns/column/column_array.h"
#include "columns/main/main_column.h"
#include "columns/main/main_records.h"
#include "flugs/function_ref.h"
#include "flugs/status.h"
#include "mvcc/stamps.h"
#include "mvcc/visibility.h"
#include "pmem/pool/pool.h"
#include "tables/catalog/catalog_layout.h"
#include "tables/rows/deletion_marks.h"

namespace flugs::engine {

/// What a row group must be, as its table and its place in the list of chunks have it.
struct RowGroupIdentity {
  std::uint32_t table_id = 0;
  std::uint32_t chunk_index = 0;
  std::uint32_t row_count = 0;
};

/// A row group: the columns of a chunk's rows, immutable, and the MVCC entries of those of them
/// that were deleted, or are being deleted, since it was made. Rows are named by their position
/// among the group's row ids, their `offset`; a stored one has a `place` in the columns.
///
/// Every stored row is created in every snapshot: only deletions are stamped. As long as no row of
/// a version block was deleted, all of them share one entry.
///
/// Columns that the table has got since are constant ones, in DRAM, made when they are first asked
/// for. Those whose type has changed since are the same under the new type, likewise. Those that
/// were dropped before the group was made have NULL in every row.
///
/// Thread-safety: any thread, except load and release.
/// Source: SOFORT (DaMoN 2014), section 2 (main); Hyrise and SAP HANA for the encodings.
class RowGroup {
 public:
  static constexpr std::uint32_t kNoPlace = 0xFFFFFFFFu;

  /// Checks what lies at `offset`, whose first 64 bytes are inside the pool, so that reading it is
  /// safe. Claims the version blocks, not the group itself, if `claims`. `columns` are the
  /// table's, and outlive the group. Fails with kCorrupt.
  static Result<std::unique_ptr<RowGroup>> load(pmem::Pool& pool, std::uint64_t offset,
                                                const RowGroupIdentity& identity,
                                                const columns::ColumnArray& columns,
                                                const std::string& owner, bool claims);
  ~RowGroup();
  RowGroup(const RowGroup&) = delete;
  RowGroup& operator=(const RowGroup&) = delete;
  static bool is_group(pmem::Pool& pool, std::uint64_t offset) noexcept {
    return pool.at(pmem::OffsetPtr<RowGroupLayout>{offset})->magic == RowGroupLayout::kMagic;
  }
  static std::uint64_t checksum_of(const RowGroupLayout& layout) noexcept;
  static std::uint64_t block_count(std::uint32_t row_count) noexcept {
    return (std::uint64_t{row_count} + RowGroupLayout::kBlockRows - 1) / RowGroupLayout::kBlockRows;
  }
  static std::uint64_t place_words(std::uint32_t row_count) noexcept {
    return (std::uint64_t{row_count} + 63) / 64;
  }

  std::uint64_t bytes() const noexcept { return layout_.bytes; }
  std::uint32_t row_count() const noexcept { return layout_.row_count; }
  std::uint32_t stored_rows() const noexcept { return layout_.stored_rows; }
  bool stores_every_row() const noexcept { return places_ == nullptr; }
  const columns::MainColumn& column(std::size_t i) const noexcept {
    return __builtin_expect(i < own_end(), 1) ? columns_[i] : other_column(i);
  }
  /// Columns that the group has itself.
  std::size_t column_count() const noexcept { return columns_.size(); }
  /// That of the table's column whose values these are, or whose constant.
  std::uint16_t edition(std::size_t i) const noexcept {
    return i < columns_.size() ? column_layouts()[i].edition : table_columns_[i]->edition();
  }
  /// Whether no column is of another type than the table's is now, nor has texts of a former
  /// edition.
  bool is_up_to_date() const noexcept;
  /// A column of the table is about to have another edition; and when it has.
  void expect_change() noexcept { own_end_.store(0, std::memory_order_release); }
  void note_change();
  /// Frees what was made of columns' former editions. Nobody is left who found a column before it
  /// changed.
  void release_former();

  /// kNoPlace: the row is not in the group, its id is unused.
  std::uint32_t place_of(std::uint32_t offset) const noexcept {
    if (places_ == nullptr) return offset;
    const RowPlacesLayout& word = places_[offset / 64];
    const std::uint64_t bit = std::uint64_t{1} << (offset % 64);
    if ((word.stored & bit) == 0) return kNoPlace;
    return word.stored_before + static_cast<std::uint32_t>(std::popcount(word.stored & (bit - 1)));
  }
  /// The same, and some place for a row that has none: damage may make it look as if it had.
  std::uint32_t readable_place_of(std::uint32_t offset) const noexcept {
    const std::uint32_t place = place_of(offset);
    return place == kNoPlace ? 0 : place;
  }
  /// Ids with a place among the 64 from `offset` on, which is a multiple of 64.
  std::uint64_t stored_mask(std::uint32_t offset) const noexcept {
    if (places_ != nullptr) return places_[offset / 64].stored;
    const std::uint32_t rows = layout_.row_count - offset;
    return rows >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << rows) - 1;
  }

  /// The row's MVCC entry; not to be written to.
  mvcc::VersionLayout& version(std::uint32_t offset) const noexcept {
    if (mvcc::VersionLayout* block = block_with(offset); block != nullptr)
      return block[offset % RowGroupLayout::kBlockRows];
    return const_cast<mvcc::VersionLayout&>(place_of(offset) == kNoPlace ? kNeverCreated
                                                                         : kAlwaysThere);
  }
  /// The entry of a row that was deleted, or is being; null when it is certain that it was not.
  mvcc::VersionLayout* stamped_version(std::uint32_t offset) const noexcept {
    mvcc::VersionLayout* block = block_with(offset);
    return block == nullptr ? nullptr : block + offset % RowGroupLayout::kBlockRows;
  }
  /// The row's entry, for deleting it; made with its block when there is none. Durable on return.
  /// Fails with kOutOfSpace.
  Result<mvcc::VersionLayout*> writable_version(std::uint32_t offset, pmem::Persister& persister);

  /// Whether any row may have been deleted, or be being deleted.
  bool has_deletions() const noexcept {
    return __atomic_load_n(&block_total_, __ATOMIC_ACQUIRE) != 0;
  }
  /// The row's entry bears its writer's tag: scans will read it from now on, or no longer.
  void mark_deleted(std::uint32_t offset) noexcept {
    if (marks_ != nullptr) marks_->mark(place_of(offset));
  }
  void take_mark_back(std::uint32_t offset) noexcept {
    if (marks_ != nullptr) marks_->take_back(place_of(offset));
  }
  /// The deletion has committed: scans need not read the entry.
  void note_deleted(std::uint32_t offset, std::uint64_t timestamp) noexcept {
    if (marks_ != nullptr) marks_->note(place_of(offset), timestamp);
  }
  /// Sets bit i of `mask` if `visibility` sees the row at place `first + i`, a multiple of 64,
  /// clears it if not; words are written whole. Returns how many MVCC entries it has read: those of
  /// rows that are being deleted; of all deleted ones if the snapshot is older than some of these
  /// deletions; and once those of deletions from before the group was loaded.
  std::uint64_t visible(std::uint32_t first, std::size_t count, const mvcc::Visibility& visibility,
                        std::uint64_t* mask) const noexcept;
  /// Where the least and the greatest value of a column stand; null if that is not kept. Only if
  /// has_deletions().
  columns::ExtremePlaces* extreme_places(std::size_t column) const noexcept {
    return column < columns_.size() ? &extreme_places_[column] : nullptr;
  }
  std::uint64_t version_bytes() const noexcept {
    return __atomic_load_n(&block_total_, __ATOMIC_RELAXED) * block_bytes();
  }

  /// The rows' codes once more, side by side, for reading single rows; empty: there are none.
  std::span<const std::byte> records() const noexcept;
  bool has_records() const noexcept { return layout_.records_offset != 0; }
  Value value(std::uint32_t place, std::size_t column) const noexcept {
    if (__builtin_expect(column >= own_end(), 0)) return other_column(column).value(place);
    if (decoders_.empty() || decoders_[column].kind == columns::MainDecoder::Kind::kOther)
      return columns_[column].value(place);
    return decoders_[column].decode(record(place), text_memory_);
  }
  /// All columns of a row.
  void decode_all(std::uint32_t place, std::span<Value> out) const noexcept;
  /// What reading the row will look at first.
  const void* probe_address(std::uint32_t offset) const noexcept {
    if (decoders_.empty()) return &version(offset);
    return record(readable_place_of(offset));
  }

  /// Full audit of the columns: `visit` for each, damaged or not.
  void audit(FunctionRef<void(std::size_t column, const Status&)> visit) const;
  /// Gives the version blocks back, not the group itself.
  void release_blocks();

 private:
  static constexpr mvcc::VersionLayout kAlwaysThere{1, mvcc::kNoStamp};
  static constexpr mvcc::VersionLayout kNeverCreated{mvcc::kNoStamp, mvcc::kNoStamp};

  /// A column that the group does not have like that, in DRAM: a constant one that it lacks, or one
  /// of an earlier edition under the type of another.
  struct Made {
    columns::MainColumnLayout layout;
    columns::MainColumn column;
    std::uint16_t edition;
  };
  /// By column, null: nobody has asked for it. A list does not change.
  using MadeColumns = std::vector<const Made*>;

  RowGroup(pmem::Pool& pool, RowGroupLayout& layout, const columns::ColumnArray& columns,
           std::string owner);
  /// Columns up to there are read from columns_; none, when one of them is of another type.
  std::size_t own_end() const noexcept { return own_end_.load(std::memory_order_acquire); }
  const columns::MainColumn& other_column(std::size_t i) const noexcept;
  void forget_made();
  columns::MainColumnLayout constant_layout(const columns::Column& column) const;
  bool is_of_former_edition(std::size_t i) const noexcept;
  bool is_of_other_type(std::size_t i) const noexcept;
  columns::MainColumnLayout relabelled_layout(std::size_t i, Type type) const noexcept;
  mvcc::VersionLayout* block_with(std::uint32_t offset) const noexcept {
    return __atomic_load_n(&blocks_[offset / RowGroupLayout::kBlockRows], __ATOMIC_ACQUIRE);
  }
  class Entries;
  /// Before the first version block.
  void make_marks();
  /// Of a stored row.
  std::uint32_t offset_of(std::uint32_t place) const noexcept;
  /// Tells the marks about a row as it was when the group was loaded: whether it was deleted.
  bool note_found(std::uint32_t place, const mvcc::VersionLayout& version) const noexcept;
  /// The same for all rows: how many were deleted.
  std::uint64_t note_all_found() const noexcept;
  std::uint64_t block_bytes() const noexcept;
  /// A version block as it is made: every stored row there, none deleted; flushed, not fenced.
  Result<std::uint64_t> make_block(std::uint32_t block, pmem::Persister& persister) const;
  std::uint64_t* block_pointers() const noexcept;
  Status check_parts() const;
  Status check_places() const;
  Status load_columns();
  Status load_records();
  Status audit_records(const columns::MainRecords& fields, std::size_t column) const;
  std::span<const columns::MainColumnLayout> column_layouts() const noexcept;
  std::span<const std::byte> extent() const noexcept;
  const std::byte* record(std::uint32_t place) const noexcept {
    return records_ + std::size_t{place} * record_bytes_;
  }
  Status load_blocks(bool claims);
  Status corrupt(const std::string& what, std::uint64_t expected, std::uint64_t found) const;
  std::uint64_t offset_in_pool() const noexcept;

  pmem::Pool& pool_;
  RowGroupLayout& layout_;
  const columns::ColumnArray& table_columns_;
  std::string owner_;
  const columns::TextMemory text_memory_;
  const RowPlacesLayout* places_ = nullptr;
  std::vector<columns::MainColumn> columns_;
  std::vector<columns::MainDecoder> decoders_;  // by column; none without records
  const std::byte* records_ = nullptr;
  std::uint32_t record_bytes_ = 0;
  std::unique_ptr<mvcc::VersionLayout*[]> blocks_;  // addresses; null: none
  std::uint64_t block_total_ = 0;
  std::unique_ptr<DeletionMarks> marks_;  // made before the first block is published
  std::unique_ptr<columns::ExtremePlaces[]> extreme_places_;  // by column, made with the marks
  Mutex block_mutex_;                                         // makes blocks; a leaf
  std::atomic<std::size_t> own_end_{0};
  mutable std::atomic<const MadeColumns*> made_{nullptr};
  mutable std::mutex made_mutex_;  // protects the two below; a leaf
  // Those of former editions as well, until release_former.
  mutable std::vector<std::unique_ptr<const Made>> made_columns_;
  mutable std::vector<std::unique_ptr<const MadeColumns>> made_lists_;  // which may be being read
};

}  // namespace flugs::engine
