#include "query/vectors/integer_set.h"

#include <algorithm>
#include <bit>

#include "base/hash.h"

namespace flugs::query {

IntegerSet::IntegerSet(std::vector<std::int64_t> values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  if (values.empty()) return;
  least_ = values.front();
  const std::uint64_t last = place_of(values.back());
  const std::uint64_t bits_max = std::max(kBitsMin, kBitsPerValue * values.size());
  if (last < bits_max) {
    span_ = last + 1;
    fill_bits(values);
  } else {
    fill_slots(values);
  }
}

void IntegerSet::fill_bits(const std::vector<std::int64_t>& values) {
  bits_.resize(span_ / 64 + 1);
  for (const std::int64_t value : values) {
    const std::uint64_t at = place_of(value);
    bits_[at / 64] |= std::uint64_t{1} << at % 64;
  }
}

void IntegerSet::fill_slots(const std::vector<std::int64_t>& values) {
  slots_.assign(std::bit_ceil(values.size() * 2), least_);
  for (auto value = values.begin() + 1; value != values.end(); ++value) {
    std::size_t at = slot_of(*value);
    while (slots_[at] != least_) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = *value;
  }
}

std::size_t IntegerSet::slot_of(std::int64_t value) const noexcept {
  return mix64(static_cast<std::uint64_t>(value)) & (slots_.size() - 1);
}

bool IntegerSet::has_bit(std::int64_t value) const noexcept {
  const std::uint64_t at = place_of(value);
  return at < span_ && (bits_[at / 64] >> at % 64 & 1) != 0;
}

bool IntegerSet::has_slot(std::int64_t value) const noexcept {
  std::size_t at = slot_of(value);
  while (slots_[at] != value) {
    if (slots_[at] == least_) return false;
    at = (at + 1) & (slots_.size() - 1);
  }
  return true;
}

bool IntegerSet::contains(std::int64_t value) const noexcept {
  return slots_.empty() ? has_bit(value) : has_slot(value);
}

void IntegerSet::find(const std::int64_t* values, std::size_t count,
                      std::int64_t* out) const noexcept {
  if (slots_.empty()) {
    for (std::size_t i = 0; i < count; ++i) out[i] = has_bit(values[i]) ? 1 : 0;
  } else {
    for (std::size_t i = 0; i < count; ++i) out[i] = has_slot(values[i]) ? 1 : 0;
  }
}

}  // namespace flugs::query
