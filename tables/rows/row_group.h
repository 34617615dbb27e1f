#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
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

namespace flugs::columns {
class KeptCodes;
}  // namespace flugs::columns

namespace flugs::engine {

/// What the table and the list of chunks expect of a row group.
struct RowGroupIdentity {
  std::uint32_t table_id = 0;
  std::uint32_t chunk_index = 0;
  std::uint32_t row_count = 0;
};

/// A row group: the immutable columns of a chunk's rows, and the MVCC entries of rows that were or
/// are being deleted since it was made. A row is named by its `offset`, its position among the
/// group's row ids; a stored row also has a `place` in the columns.
///
/// In every snapshot every stored row has been created: only deletions are stamped. As long as no
/// row of a version block was deleted, all its rows share one entry.
///
/// A column that the table got later is a constant column in DRAM, made when it is first read. A
/// column whose type changed later is the stored one under the new type, also made when first read.
/// A column that was dropped before the group was made has NULL in every row.
///
/// Thread-safety: any thread, except load and release.
/// Source: SOFORT (DaMoN 2014), section 2 (main); Hyrise and SAP HANA for the encodings.
class RowGroup {
 public:
  static constexpr std::uint32_t kNoPlace = 0xFFFFFFFFu;

  /// Checks the group at `offset`, so that reading it is safe; its first 64 bytes must be inside
  /// the pool. If `claims`, claims the version blocks, but not the group itself. `columns` are the
  /// table's, and outlive the group. Fails with kCorrupt.
  static Result<std::unique_ptr<RowGroup>> load(pmem::Pool& pool, std::uint64_t offset,
                                                const RowGroupIdentity& identity,
                                                const columns::ColumnArray& columns,
                                                const std::string& owner, bool claims);
  /// A group without rows, which has no extent.
  static std::unique_ptr<RowGroup> without_rows(pmem::Pool& pool, const RowGroupIdentity& identity,
                                                const columns::ColumnArray& columns,
                                                const std::string& owner);
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

  /// Bytes of the extent; 0 if the group has none.
  std::uint64_t bytes() const noexcept { return layout_.bytes; }
  std::uint32_t row_count() const noexcept { return layout_.row_count; }
  std::uint32_t stored_rows() const noexcept { return layout_.stored_rows; }
  bool stores_every_row() const noexcept { return places_ == nullptr; }
  const columns::MainColumn& column(std::size_t i) const noexcept {
    return __builtin_expect(i < own_end(), 1) ? columns_[i] : other_column(i);
  }
  /// Number of columns that the group stores itself.
  std::size_t column_count() const noexcept { return columns_.size(); }
  /// The edition of the table's column whose values, or constant, column `i` has.
  std::uint16_t edition(std::size_t i) const noexcept {
    return i < columns_.size() ? column_layouts()[i].edition : table_columns_[i]->edition();
  }
  /// Whether every column has the table's present type, and none has texts of a former edition.
  bool is_up_to_date() const noexcept;
  /// expect_change is called before a column of the table gets another edition, note_change after.
  void expect_change() noexcept { own_end_.store(0, std::memory_order_release); }
  void note_change();
  /// Frees what was made for former editions of columns. Call it when no reader is left that found
  /// a column before it changed.
  void release_former();

  /// kNoPlace: the row is not in the group; its id is unused.
  std::uint32_t place_of(std::uint32_t offset) const noexcept {
    if (places_ == nullptr) return offset;
    const RowPlacesLayout& word = places_[offset / 64];
    const std::uint64_t bit = std::uint64_t{1} << (offset % 64);
    if ((word.stored & bit) == 0) return kNoPlace;
    return word.stored_before + static_cast<std::uint32_t>(std::popcount(word.stored & (bit - 1)));
  }
  /// The other way round, for a stored row.
  std::uint32_t offset_of(std::uint32_t place) const noexcept;
  /// As place_of, but a row without a place gets some valid one: after damage a reader may ask for
  /// it.
  std::uint32_t readable_place_of(std::uint32_t offset) const noexcept {
    const std::uint32_t place = place_of(offset);
    return place == kNoPlace ? 0 : place;
  }
  /// Ids with a place among the 64 from `offset` on, which is a multiple of 64.
  std::uint64_t stored_mask(std::uint32_t offset) const noexcept {
    FLUGS_DCHECK(offset % 64 == 0);
    if (places_ != nullptr) return places_[offset / 64].stored;
    const std::uint32_t rows = layout_.row_count - offset;
    return rows >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << rows) - 1;
  }

  /// The row's MVCC entry; read-only.
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
  /// The row's entry, for a deletion; makes its version block if there is none. Durable on return.
  /// Fails with kOutOfSpace.
  Result<mvcc::VersionLayout*> writable_version(std::uint32_t offset, pmem::Persister& persister);

  /// Whether any row may have been deleted, or be being deleted.
  bool has_deletions() const noexcept {
    return __atomic_load_n(&block_total_, __ATOMIC_ACQUIRE) != 0;
  }
  /// At least as many rows as were deleted, but for those whose deletion commits just now. The
  /// first call may read all MVCC entries, later ones read nothing of the pool.
  std::uint32_t deleted_rows() const noexcept;
  /// The row's entry has its writer's tag: from now on scans read the entry. take_mark_back: they
  /// no longer do.
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
  /// Sets bit i of `mask` if `visibility` sees the row at place `first + i`, and clears it if not;
  /// `first` is a multiple of 64, and words are written whole. Returns how many MVCC entries it has
  /// read: those of rows that are being deleted; those of all deleted rows, if the snapshot is
  /// older than some of these deletions; and, once, those of deletions from before the group was
  /// loaded.
  std::uint64_t visible(std::uint32_t first, std::size_t count, const mvcc::Visibility& visibility,
                        std::uint64_t* mask) const noexcept;
  /// The rows that `visibility` sees, by place, if new snapshots see the same and no row is being
  /// deleted; else, or without memory, null. Adds to `read` the MVCC entries that it has read, as
  /// `visible`. Only if has_deletions().
  std::shared_ptr<const SeenRows> seen_rows(const mvcc::Visibility& visibility,
                                            std::uint64_t& read) const noexcept;
  /// The places of a column's least and greatest value; null if they are not kept. Only if
  /// has_deletions().
  columns::ExtremePlaces* extreme_places(std::size_t column) const noexcept {
    FLUGS_DCHECK(has_deletions());
    return column < columns_.size() ? &extreme_places_[column] : nullptr;
  }
  /// The ValueIDs of the codes of a column that the group stores; null: it has too many codes for
  /// them to be kept. Fails with std::bad_alloc.
  std::atomic<std::uint32_t>* kept_codes(std::size_t column) const;
  bool keeps_codes(std::size_t column) const noexcept;
  std::uint64_t version_bytes() const noexcept {
    return __atomic_load_n(&block_total_, __ATOMIC_RELAXED) * block_bytes();
  }
  /// The part of the pool's reserve that waits for the MVCC entries of rows yet to be deleted.
  std::uint64_t pledged_bytes() const noexcept {
    return __atomic_load_n(&pledged_bytes_, __ATOMIC_RELAXED);
  }

  /// A second copy of the rows' codes, side by side, for reading single rows; empty: there is none.
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
  /// The address that a read of the row needs first.
  const void* probe_address(std::uint32_t offset) const noexcept {
    if (decoders_.empty()) return &version(offset);
    return record(readable_place_of(offset));
  }

  /// Takes the texts that readers have made of compressed ones, but for those of keys. They must
  /// stay until every transaction has ended that may have found one.
  using TakenTexts = std::vector<std::unique_ptr<columns::ReadTexts::Made>>;
  void take_read_texts(TakenTexts& taken) const;

  /// Full audit of the columns: `visit` for each, damaged or not.
  void audit(FunctionRef<void(std::size_t column, const Status&)> visit) const;
  /// Frees the version blocks, but not the group itself.
  void release_blocks();

 private:
  static constexpr mvcc::VersionLayout kAlwaysThere{1, mvcc::kNoStamp};
  static constexpr mvcc::VersionLayout kNeverCreated{mvcc::kNoStamp, mvcc::kNoStamp};

  /// A column made in DRAM, because the group does not store it in this form: a constant column
  /// that it lacks, or an earlier edition under another type.
  struct Made {
    columns::MainColumnLayout layout;
    columns::MainColumn column;
    std::uint16_t edition;
  };
  /// By column; null: not made yet. A list never changes.
  using MadeColumns = std::vector<const Made*>;

  RowGroup(pmem::Pool& pool, RowGroupLayout& layout, const columns::ColumnArray& columns,
           std::string owner);
  /// Has `layout` for itself.
  RowGroup(pmem::Pool& pool, std::unique_ptr<std::byte[]> layout,
           const columns::ColumnArray& columns, std::string owner);
  /// Columns before it are read from columns_; 0 if one of them has another type.
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
  /// Called before the first version block is made.
  void make_marks();
  /// Tells the marks about a row that was deleted before the group was loaded; returns whether it
  /// was.
  bool note_found(std::uint32_t place, const mvcc::VersionLayout& version) const noexcept;
  /// The same for all rows; returns how many were deleted.
  std::uint64_t note_all_found() const noexcept;
  std::uint64_t block_bytes() const noexcept;
  /// Makes a version block in which every stored row is created and none deleted; flushed, not
  /// fenced.
  Result<std::uint64_t> make_block(std::uint32_t block, pmem::Persister& persister) const;
  std::uint64_t* block_pointers() const noexcept;
  void pledge_blocks() noexcept;
  std::uint64_t bytes_for_block(std::uint32_t offset) const noexcept;
  Status check_parts() const;
  Status check_places() const;
  Status load_columns();
  columns::ReadTexts* read_texts_of(std::size_t i);
  Status load_records();
  Status audit_records(const columns::MainRecords& fields, std::size_t column) const;
  std::span<const columns::MainColumnLayout> column_layouts() const noexcept;
  std::span<const std::byte> extent() const noexcept;
  const std::byte* record(std::uint32_t place) const noexcept {
    FLUGS_DCHECK(records_ != nullptr);
    return records_ + std::size_t{place} * record_bytes_;
  }
  Status load_blocks(bool claims);
  Status corrupt(const std::string& what, std::uint64_t expected, std::uint64_t found) const;
  std::uint64_t offset_in_pool() const noexcept;

  pmem::Pool& pool_;
  std::unique_ptr<std::byte[]> own_layout_;  // header and places, if there is no extent
  RowGroupLayout& layout_;
  const columns::ColumnArray& table_columns_;
  std::string owner_;
  const columns::TextMemory text_memory_;
  const RowPlacesLayout* places_ = nullptr;
  std::vector<std::unique_ptr<columns::ReadTexts>> read_texts_;  // by column, of compressed ones
  std::vector<columns::MainColumn> columns_;
  std::vector<columns::MainDecoder> decoders_;  // by column; none without records
  const std::byte* records_ = nullptr;
  std::uint32_t record_bytes_ = 0;
  std::unique_ptr<mvcc::VersionLayout*[]> blocks_;  // addresses; null: none
  std::uint64_t block_total_ = 0;
  std::uint64_t pledged_bytes_ = 0;  // of the pool's reserve, for further blocks; as block_total_
  std::unique_ptr<DeletionMarks> marks_;  // made before the first block is published
  std::unique_ptr<columns::ExtremePlaces[]> extreme_places_;  // by column, made with the marks
  std::unique_ptr<columns::KeptCodes[]> kept_codes_;          // by column
  Mutex block_mutex_;                                         // makes blocks; a leaf
  std::atomic<std::size_t> own_end_{0};
  mutable std::atomic<const MadeColumns*> made_{nullptr};
  mutable std::mutex made_mutex_;  // protects the two below; a leaf
  // Also has columns for former editions, until release_former.
  mutable std::vector<std::unique_ptr<const Made>> made_columns_;
  mutable std::vector<std::unique_ptr<const MadeColumns>> made_lists_;  // readers may use them
};

}  // namespace flugs::engine
