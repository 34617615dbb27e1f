#include "columns/cells/free_places.h"

#include <algorithm>
#include <new>

namespace flugs::columns {

std::size_t FreePlaces::next_with_places(std::size_t number) const noexcept {
  for (std::size_t word = number / 64; word < has_places_.size(); ++word) {
    std::uint64_t bits = has_places_[word];
    if (word == number / 64) bits &= ~std::uint64_t{0} << (number % 64);
    if (bits != 0) return word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
  }
  return text_place::kSizes;
}

std::uint64_t FreePlaces::take_of(std::size_t number) noexcept {
  std::vector<std::uint64_t>& places = places_[number];
  FLUGS_DCHECK(!places.empty());
  const std::uint64_t offset = places.back();
  places.pop_back();
  if (places.empty()) has_places_[number / 64] &= ~(std::uint64_t{1} << (number % 64));
  FLUGS_DCHECK(bytes_ >= text_place::size_of(number));
  bytes_ -= text_place::size_of(number);
  return offset;
}

std::uint64_t FreePlaces::take(std::uint64_t wanted) noexcept {
  FLUGS_DCHECK(wanted == text_place::bytes_for(wanted));
  const std::size_t number = text_place::number_of(wanted);
  if (has(number)) return take_of(number);
  const std::size_t twice = text_place::number_of(text_place::bytes_for(2 * wanted));
  if (twice >= numbers_end_) return 0;
  const std::size_t larger = next_with_places(twice);
  if (larger == text_place::kSizes) {
    numbers_end_ = twice;
    return 0;
  }
  const std::uint64_t offset = take_of(larger);
  add(offset + wanted, text_place::size_of(larger) - wanted);
  return offset;
}

bool FreePlaces::put(std::uint64_t offset, std::uint64_t size) noexcept {
  const std::size_t number = text_place::number_of(size);
  FLUGS_DCHECK(text_place::size_of(number) == size);
  try {
    if (places_.size() <= number) places_.resize(number + 1);
    places_[number].push_back(offset);
  } catch (const std::bad_alloc&) {
    return false;
  }
  has_places_[number / 64] |= std::uint64_t{1} << (number % 64);
  numbers_end_ = std::max(numbers_end_, number + 1);
  bytes_ += size;
  return true;
}

void FreePlaces::add(std::uint64_t offset, std::uint64_t bytes) noexcept {
  FLUGS_DCHECK(offset % text_place::kGrainBytes == 0 && bytes % text_place::kGrainBytes == 0);
  while (bytes >= text_place::kBytesMin) {
    const std::uint64_t size = text_place::size_within(std::min(bytes, std::uint64_t{1} << 31));
    if (!put(offset, size)) return;
    offset += size;
    bytes -= size;
  }
}

void FreePlaces::clear() noexcept {
  places_.clear();
  places_.shrink_to_fit();
  has_places_ = {};
  numbers_end_ = 0;
  bytes_ = 0;
}

void FreePlaces::remove_if(FunctionRef<bool(std::uint64_t offset)> is_gone) noexcept {
  for (std::size_t number = 0; number < places_.size(); ++number) {
    const std::size_t removed = std::erase_if(places_[number], is_gone);
    bytes_ -= removed * text_place::size_of(number);
    if (places_[number].empty()) has_places_[number / 64] &= ~(std::uint64_t{1} << (number % 64));
  }
}

}  // namespace flugs::columns
