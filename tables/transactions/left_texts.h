#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"

namespace flugs::engine {

class Table;

/// A long text in the heap of a column that holds texts directly.
struct LongText {
  Table* table = nullptr;
  std::uint64_t heap = 0;    ///< its number: the column may have another edition by now
  std::uint64_t since = 0;   ///< when the last version that had the text was deleted
  std::uint64_t offset = 0;  ///< in the pool
  std::uint32_t bytes = 0;
  std::uint16_t column = 0;
};

/// Long texts of one slot that rows leave behind, on their way to being used again: protocol
/// reuse_text (decision 0038).
///
///   written  stored by the transaction that runs; garbage if its row is undone
///   left     the running transaction has deleted the last version with the text, or changed it
///   waiting  that has been committed; snapshots may still see the version
///
/// A text is shared by the versions of one row only, one after the other. So the last of them to go
/// leaves it: a deletion leaves all texts of the row, an update those that it replaces.
///
/// Invariants: `waiting` is in the order of `since`. When no transaction is open, `written` and
/// `left` are empty.
/// Thread-safety: the thread that has the slot.
class LeftTexts final {
 public:
  void add_written(const LongText& text) { written_.push_back(text); }
  void add_left(const LongText& text) { left_.push_back(text); }
  std::size_t written() const noexcept { return written_.size(); }
  std::size_t left() const noexcept { return left_.size(); }
  std::span<const LongText> written_since(std::size_t first) const noexcept {
    FLUGS_DCHECK(first <= written_.size());
    return std::span(written_).subspan(first);
  }
  /// Keeps the first of each list: the rest was undone.
  void keep_written(std::size_t count) noexcept {
    FLUGS_DCHECK(count <= written_.size());
    written_.resize(count);
  }
  void keep_left(std::size_t count) noexcept {
    FLUGS_DCHECK(count <= left_.size());
    left_.resize(count);
  }
  /// The transaction has committed.
  void commit(std::uint64_t timestamp) {
    for (LongText& text : left_) {
      text.since = timestamp;
      waiting_.push_back(text);
    }
  }
  /// The transaction has ended.
  void clear() noexcept {
    written_.clear();
    left_.clear();
  }

  bool none_waits() const noexcept { return next_ == waiting_.size(); }
  std::size_t waiting() const noexcept { return waiting_.size() - next_; }
  const LongText& next() const noexcept {
    FLUGS_DCHECK(!none_waits());
    return waiting_[next_];
  }
  void pop() noexcept {
    FLUGS_DCHECK(!none_waits());
    ++next_;
    if (next_ < kTextsKept && !none_waits()) return;
    if (next_ * 2 < waiting_.size()) return;
    waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(next_));
    next_ = 0;
    if (waiting_.empty() && waiting_.capacity() > kTextsKept) waiting_ = {};
  }

 private:
  // Memory that is kept: enough for the texts between two looks at the oldest snapshot.
  static constexpr std::size_t kTextsKept = std::size_t{1} << 14;

  std::vector<LongText> written_;
  std::vector<LongText> left_;
  std::vector<LongText> waiting_;  // from next_ on
  std::size_t next_ = 0;
};

}  // namespace flugs::engine
