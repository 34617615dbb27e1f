#include "columns/main/main_domain.h"

#include "columns/column/column.h"

namespace flugs::columns {

static_assert(MainColumnParts{}.entries == 0);

MainDomain::MainDomain(const MainColumnLayout& layout, const std::byte* parts,
                       TextMemory memory) noexcept
    : entries_(layout.entry_count != 0 ? parts : nullptr),
      base_(layout.base),
      count_(layout.code_count),
      only_text_(reinterpret_cast<const std::byte*>(layout.min)),
      memory_(memory),
      type_(static_cast<Type>(layout.type)),
      has_nulls_(layout.null_count != 0) {}

Value MainDomain::value(std::uint64_t code) const noexcept {
  if (is_null(code)) return Value::null();
  return is_text_type(type_) ? Value::from_bytes(type_, text(code))
                             : Value::from_raw(type_, integer(code));
}

std::int64_t MainDomain::ordered(const Value& value) const noexcept {
  return type_ == Type::kDouble ? ordered_double(normalised(value, type_).raw()) : value.raw();
}

std::uint64_t MainDomain::bound(std::int64_t ordered_payload, bool above) const noexcept {
  FLUGS_DCHECK(entries_ != nullptr && !is_text_type(type_));
  std::uint64_t low = first_code();
  std::uint64_t high = count_;
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    const std::int64_t raw = entry(middle);
    const std::int64_t found = type_ == Type::kDouble ? ordered_double(raw) : raw;
    if (found < ordered_payload || (above && found == ordered_payload))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

std::uint64_t MainDomain::bound(std::string_view wanted, bool above) const noexcept {
  FLUGS_DCHECK(entries_ != nullptr);
  std::uint64_t low = first_code();
  std::uint64_t high = count_;
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    const int order = text(middle).compare(wanted);
    if (order < 0 || (above && order == 0))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

bool MainDomain::is_same_as(const MainDomain& other) const noexcept {
  if (count_ == 0 || count_ != other.count_ || type_ != other.type_) return false;
  if (has_nulls_ != other.has_nulls_ || has_entries() != other.has_entries()) return false;
  // Texts out of line are equal where they are the same bytes of the pool.
  if (has_entries())
    return std::memcmp(entries_, other.entries_, count_ * (is_text_type(type_) ? 16 : 8)) == 0;
  return base_ == other.base_ && std::memcmp(only_text_, other.only_text_, 16) == 0;
}

}  // namespace flugs::columns
