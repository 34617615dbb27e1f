#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/check.h"
#include "columns/cells/cell.h"
#include "columns/main/main_column_layout.h"
#include "flugs/value.h"

namespace flugs::columns {

/// The codes of a main column and their values: ranks in the entries, or distances from a base.
/// Codes ascend with the values, and with NULLs code 0 is NULL's. Without codes the domain is
/// empty. Thread-safety: any thread.
class MainDomain {
 public:
  /// `parts` are those of the column; the entries are the first of them. `layout` must stay in
  /// place.
  MainDomain(const MainColumnLayout& layout, const std::byte* parts, TextMemory memory) noexcept;

  Type type() const noexcept { return type_; }
  std::uint64_t count() const noexcept { return count_; }
  bool has_entries() const noexcept { return entries_ != nullptr; }
  const std::byte* entries() const noexcept { return entries_; }
  /// Value minus code, without entries.
  std::uint64_t base() const noexcept { return base_; }
  /// The first code that is not NULL's.
  std::uint64_t first_code() const noexcept { return has_nulls_ ? 1 : 0; }

  // The value of a code, which must be below count().
  bool is_null(std::uint64_t code) const noexcept { return code == 0 && has_nulls_; }
  /// 0 for NULL.
  std::int64_t integer(std::uint64_t code) const noexcept {
    FLUGS_DCHECK(code < count_ && !is_text_type(type_));
    if (entries_ != nullptr) return entry(code);
    return is_null(code) ? 0 : static_cast<std::int64_t>(base_ + code);
  }
  /// Empty for NULL.
  std::string_view text(std::uint64_t code) const noexcept {
    FLUGS_DCHECK(code < count_ && is_text_type(type_));
    return text_at(entries_ != nullptr ? entries_ + code * 16 : only_text_);
  }
  Value value(std::uint64_t code) const noexcept;

  /// A payload in the order of the column's type; `value` is not NULL.
  std::int64_t ordered(const Value& value) const noexcept;
  // With entries: the first code whose value is not less, or greater if `above`; count() if there
  // is none. NULL's code is never among them.
  std::uint64_t bound(std::int64_t ordered_payload, bool above) const noexcept;
  std::uint64_t bound(std::string_view text, bool above) const noexcept;

  /// The text of a cell of the column; empty where no text of the pool is.
  std::string_view text_at(const std::byte* cell) const noexcept {
    return text_cell::view(cell, memory_.base, memory_.bytes());
  }

  /// Whether each code has the same value in both.
  bool is_same_as(const MainDomain& other) const noexcept;

 private:
  std::int64_t entry(std::uint64_t code) const noexcept {
    std::int64_t payload = 0;
    std::memcpy(&payload, entries_ + code * 8, 8);
    return payload;
  }

  const std::byte* entries_;
  std::uint64_t base_;
  std::uint64_t count_;
  const std::byte* only_text_;  // cell of the text without entries
  TextMemory memory_;
  Type type_;
  bool has_nulls_;
};

}  // namespace flugs::columns
