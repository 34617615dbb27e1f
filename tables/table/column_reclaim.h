#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/mutex.h"
#include "flugs/function_ref.h"
#include "flugs/merge.h"
#include "flugs/status.h"
#include "mvcc/transaction_slots.h"

namespace flugs::columns {
class Column;
class TextMarks;
}  // namespace flugs::columns

namespace flugs::engine {

class RowGroup;
class TableColumns;
struct TableData;

/// Rewriting columns to reclaim space (decision 0026). A column that owns much that no row needs
/// gets another edition of the same type, which owns nothing; merges then move the values. What the
/// former edition owns is given back when no row is of it.
///
/// Thread-safety: under the table's merge_mutex. Holds nothing: make one where it is needed.
class ColumnReclaim final {
 public:
  /// `build_mutex` is that of the table's IndexBuild.
  ColumnReclaim(TableData& data, TableColumns& columns, Mutex& build_mutex) noexcept
      : data_(data), columns_(columns), build_mutex_(build_mutex) {}

  /// Bytes that an edition of a column owns in the pool, with its index there.
  static std::uint64_t bytes_owned(const columns::Column& column);
  /// Bytes of the text that are not in its cell.
  static std::uint64_t long_bytes(std::string_view text) noexcept;
  /// MergeOptions::waste_bytes in a pool of this size: few bytes of a large pool are many of a
  /// small one.
  static std::uint64_t waste_bytes(const MergeOptions& options, std::uint64_t pool_bytes) noexcept;

  /// Bytes that the column's newest edition owns in the pool, with its index there.
  std::uint64_t bytes_of_column(std::size_t i) const;
  /// Bytes that the column would take, at most, to hold its values without a dictionary, after a
  /// merge of the chunks for which `is_merged`. Reads every text.
  std::uint64_t bytes_needed(std::size_t i, mvcc::TransactionSlots& slots,
                             FunctionRef<bool(std::size_t chunk)> is_merged) const;
  /// Bytes of the column's texts that a merge of all chunks and groups would write, at most.
  std::uint64_t bytes_copied(std::size_t i, mvcc::TransactionSlots& slots) const;
  /// Marks the column's long texts in row groups, and in rows that `visibility` sees, or saw and
  /// that indexes still name. No thread writes to these rows meanwhile.
  void mark_texts(std::size_t i, const mvcc::Visibility& visibility,
                  columns::TextMarks& marks) const;
  /// Gives the column, which must not be dropped, another edition of the same type, which holds
  /// values directly and owns nothing yet. Also under the database's ddl_mutex_. Fails with kBusy
  /// (the column has the most editions that it may), kOutOfSpace.
  Status rewrite_column(std::size_t number);
  /// Whether the chunk has cells of a former edition that owns at least `bytes` in the pool, or the
  /// group has columns that a merge would rewrite: only then can such an edition go.
  bool keeps_former(std::size_t chunk, std::uint64_t bytes) const;
  /// Whether the group names an edition between the first and the newest, of a column that has
  /// many.
  bool names_one_of_many(const RowGroup& group) const;
  bool has_left_over() const noexcept;
  /// Frees what former editions without rows own; returns bytes in the pool. Call it when no
  /// transaction is left that began before the last such row went, or before a column was
  /// rewritten. Also under the database's ddl_mutex_.
  std::uint64_t release_former_editions();

 private:
  static std::uint64_t text_bytes_in_group(std::size_t i, const RowGroup& group);
  std::uint64_t text_bytes_in_chunk(std::size_t i, std::size_t chunk, mvcc::TransactionSlots& slots,
                                    bool with_dead) const;
  bool is_left_over(std::size_t i, const columns::Column& former) const noexcept;
  bool has_middle_to_forget(std::size_t i) const noexcept;
  void forget_editions();

  TableData& data_;
  TableColumns& columns_;
  Mutex& build_mutex_;
};

}  // namespace flugs::engine
