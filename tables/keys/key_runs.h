#pragma once

#include <cstddef>
#include <cstdint>

#include "flugs/function_ref.h"
#include "tables/keys/index_runs.h"
#include "tables/rows/row_store.h"

namespace flugs::engine {

/// One key's part of the table's index runs: for the rows that the runs serve, its entries are
/// there and nowhere else.
/// Thread-safety: that of IndexRuns.
class KeyRuns final {
 public:
  /// `key` is the key's number in the table.
  KeyRuns(const IndexRuns& runs, const RowStore& rows, std::size_t key, bool is_used) noexcept
      : runs_(runs), rows_(rows), key_(key), is_used_(is_used) {}

  const IndexRuns& all() const noexcept { return runs_; }
  std::size_t key() const noexcept { return key_; }
  /// Whether the runs have the key. Set at opening.
  bool is_used() const noexcept { return is_used_; }
  void set_used(bool is_used) noexcept { is_used_ = is_used; }
  bool serves_any() const noexcept { return is_used_ && runs_.serves_any(); }
  /// Whether the row's entries are in a run, and not in the key's own indexes.
  bool serves(std::uint32_t row) const noexcept { return is_used_ && runs_.serves(row); }

  /// IndexRuns::any and prefetch of this key.
  template <typename F>
  bool any(std::uint64_t hash, F&& visit) const {
    return is_used_ && runs_.any(key_, hash, visit);
  }
  void prefetch(std::uint64_t hash) const noexcept { runs_.prefetch(key_, hash); }

  /// Number of row positions that the key does not find through a run.
  std::uint64_t unserved_rows() const noexcept;
  /// Visits the created rows from `first` to `end` - 1 that the key does not find through a run.
  void for_each_unserved(std::uint32_t first, std::uint32_t end,
                         FunctionRef<void(std::uint32_t row)> visit) const;

 private:
  const IndexRuns& runs_;
  const RowStore& rows_;
  const std::size_t key_;
  bool is_used_;
};

}  // namespace flugs::engine
