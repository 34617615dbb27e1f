#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "mvcc/commit.h"

namespace flugs::engine {

/// The rows that a transaction has inserted and deleted, in the order in which it did.
///
/// A large transaction flushes its rows before it commits, without a fence, so that its commit has
/// little left to flush (protocol write_ahead).
///
/// Invariant: the first `flushed_ahead()` writes have been flushed since their rows last changed. A
/// caller that changes one of these rows flushes it again.
class WriteList final {
 public:
  using const_iterator = std::vector<mvcc::Write>::const_iterator;

  bool empty() const noexcept { return writes_.empty(); }
  std::size_t size() const noexcept { return writes_.size(); }
  const mvcc::Write& operator[](std::size_t i) const noexcept {
    FLUGS_DCHECK(i < writes_.size());
    return writes_[i];
  }
  const mvcc::Write& back() const noexcept {
    FLUGS_DCHECK(!empty());
    return writes_.back();
  }
  const_iterator begin() const noexcept { return writes_.begin(); }
  const_iterator end() const noexcept { return writes_.end(); }
  const std::vector<mvcc::Write>& all() const noexcept { return writes_; }

  void add(const mvcc::Write& write) { writes_.push_back(write); }
  void pop() noexcept {
    FLUGS_DCHECK(!empty());
    writes_.pop_back();
    flushed_ahead_ = std::min(flushed_ahead_, writes_.size());
  }
  void clear() noexcept {
    writes_.clear();
    flushed_ahead_ = 0;
  }

  /// Number of writes that are flushed ahead at a time.
  static constexpr std::size_t kWritesAhead = 64;
  bool is_flush_due() const noexcept { return writes_.size() - flushed_ahead_ >= kWritesAhead; }
  std::size_t flushed_ahead() const noexcept { return flushed_ahead_; }
  /// Flushes the writes that have not been flushed ahead.
  void flush_ahead(mvcc::Slot& slot) noexcept;

  /// Whether the row was inserted at or behind place `first` of the list. May say no for a row that
  /// was written long ago.
  bool has_inserted_since(std::size_t first, std::uint32_t table, std::uint32_t row) const noexcept;

  /// Whether a write at or behind place `first` of the list was to the table.
  bool has_written_since(std::size_t first, std::uint32_t table) const noexcept {
    return std::any_of(writes_.begin() + static_cast<std::ptrdiff_t>(std::min(first, size())),
                       writes_.end(),
                       [&](const mvcc::Write& write) { return write.table == table; });
  }

 private:
  std::vector<mvcc::Write> writes_;
  std::size_t flushed_ahead_ = 0;
};

}  // namespace flugs::engine
