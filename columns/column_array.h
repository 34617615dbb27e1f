#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "columns/column.h"
#include "pmem/check.h"

namespace flugs::columns {

/// The columns of a table by their number. There may come more while others read: those that were
/// there stay where they are, and so do views of them.
/// Thread-safety: any thread; add: one at a time.
class ColumnArray {
 public:
  static constexpr std::size_t kColumnsMax = 1024;

  ColumnArray() : columns_(std::make_unique<std::unique_ptr<Column>[]>(kColumnsMax)) {}
  ColumnArray(const ColumnArray&) = delete;
  ColumnArray& operator=(const ColumnArray&) = delete;
  ~ColumnArray() = default;

  /// Whoever sees the size that it makes sees the column, and what was done before.
  void add(std::unique_ptr<Column> column) {
    const std::size_t count = count_.load(std::memory_order_relaxed);
    FLUGS_CHECK(count < kColumnsMax);
    columns_[count] = std::move(column);
    count_.store(count + 1, std::memory_order_release);
  }

  /// Opening: another takes its place; returns the one that was there.
  std::unique_ptr<Column> replace(std::size_t i, std::unique_ptr<Column> column) noexcept {
    return std::exchange(columns_[i], std::move(column));
  }

  std::size_t size() const noexcept { return count_.load(std::memory_order_acquire); }
  /// Whether rows may lack all columns from there on: each has a constant.
  bool may_lack(std::size_t first) const noexcept {
    for (std::size_t i = first; i < size(); ++i)
      if (!columns_[i]->has_constant()) return false;
    return true;
  }
  bool empty() const noexcept { return size() == 0; }
  const std::unique_ptr<Column>& operator[](std::size_t i) const noexcept { return columns_[i]; }
  const std::unique_ptr<Column>* begin() const noexcept { return columns_.get(); }
  const std::unique_ptr<Column>* end() const noexcept { return columns_.get() + size(); }
  // NOLINTNEXTLINE(google-explicit-constructor): a view of it is what most functions ask for.
  operator std::span<const std::unique_ptr<Column>>() const noexcept {
    return {columns_.get(), size()};
  }

 private:
  std::unique_ptr<std::unique_ptr<Column>[]> columns_;
  std::atomic<std::size_t> count_{0};
};

}  // namespace flugs::columns
