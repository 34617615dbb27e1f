#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/stable_array.h"
#include "columns/column/column.h"
#include "columns/column/read_text_memory.h"
#include "flugs/function_ref.h"

namespace flugs::columns {

/// The columns of a table by number. While other threads read, a column may be added, and a new
/// edition may replace a column (decision 0025); existing objects stay where they are.
///
/// A reader of a cell must get the row's layout, or group, first and the column then: cells are
/// never of a later edition than the column that is found after them.
/// Thread-safety: any thread; add, replace, change, set_dropped: one at a time.
class ColumnArray {
 public:
  static constexpr std::size_t kColumnsMax = 1024;

  class Iterator {
   public:
    explicit Iterator(const std::atomic<Column*>* at) noexcept : at_(at) {}
    Column* operator*() const noexcept { return at_->load(std::memory_order_acquire); }
    Iterator& operator++() noexcept {
      ++at_;
      return *this;
    }
    friend bool operator==(Iterator a, Iterator b) noexcept { return a.at_ == b.at_; }

   private:
    const std::atomic<Column*>* at_;
  };

  ColumnArray() : columns_(kColumnsMax) {}
  ColumnArray(const ColumnArray&) = delete;
  ColumnArray& operator=(const ColumnArray&) = delete;
  ~ColumnArray() = default;

  /// A reader that sees the new size sees the column, and all that was done before.
  void add(std::unique_ptr<Column> column) {
    const std::size_t count = count_.load(std::memory_order_relaxed);
    FLUGS_CHECK(count < kColumnsMax);
    owned_.emplace_back();
    put(count, std::move(column));
    count_.store(count + 1, std::memory_order_release);
    sum_editions();
  }

  /// Opening: puts `column` in the place of column `i`, and returns the former one.
  std::unique_ptr<Column> replace(std::size_t i, std::unique_ptr<Column> column) noexcept {
    std::unique_ptr<Column> former = put(i, std::move(column));
    sum_editions();
    return former;
  }
  /// Sets the column's next edition, with its number; it owns the edition before from then on.
  void change(std::size_t i, std::unique_ptr<Column> next, std::uint16_t edition) noexcept {
    FLUGS_CHECK(i < owned_.size() && next != nullptr);
    next->set_former(std::move(owned_[i]), i, edition);
    put(i, std::move(next));
    sum_editions();
  }
  void set_dropped(std::size_t i) noexcept {
    FLUGS_CHECK(i < owned_.size());
    owned_[i]->set_dropped();
    sum_editions();
  }

  std::size_t size() const noexcept { return count_.load(std::memory_order_acquire); }
  /// The sum of the marks of all columns. It changes before the first chunk with new editions
  /// exists.
  std::uint64_t editions() const noexcept { return editions_.load(std::memory_order_acquire); }
  /// Whether rows may lack all columns from `first` on: each has a constant.
  bool may_lack(std::size_t first) const noexcept {
    for (std::size_t i = first; i < size(); ++i)
      if (!(*this)[i]->has_constant()) return false;
    return true;
  }
  bool empty() const noexcept { return size() == 0; }
  Column* operator[](std::size_t i) const noexcept {
    FLUGS_DCHECK(i < size());
    return columns_[i].load(std::memory_order_acquire);
  }
  /// Calls `visit` for every edition in use, of every column.
  void for_each_used(FunctionRef<void(Column&)> visit) const {
    for (Column* column : *this) column->for_each_used(visit);
  }
  Iterator begin() const noexcept { return Iterator(&columns_[0]); }
  Iterator end() const noexcept { return Iterator(&columns_[0] + size()); }

  /// Of texts that readers of the table's row groups have made. Row groups count them.
  ReadTextMemory& read_text_memory() const noexcept { return read_text_memory_; }

 private:
  std::unique_ptr<Column> put(std::size_t i, std::unique_ptr<Column> column) noexcept {
    FLUGS_CHECK(i < owned_.size() && column != nullptr);
    columns_.begin(i).store(column.get(), std::memory_order_release);
    return std::exchange(owned_[i], std::move(column));
  }
  void sum_editions() noexcept {
    std::uint64_t sum = 0;
    for (const Column* column : *this) sum += column->mark();
    editions_.store(sum, std::memory_order_release);
  }

  StableArray<std::atomic<Column*>> columns_;
  std::vector<std::unique_ptr<Column>> owned_;
  std::atomic<std::size_t> count_{0};
  std::atomic<std::uint64_t> editions_{0};
  mutable ReadTextMemory read_text_memory_;
};

}  // namespace flugs::columns
