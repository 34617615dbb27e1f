#include "query/vectors/key_filter.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/hash.h"
#include "query/vectors/run_context.h"

namespace flugs::query {

namespace {

// A bit for each integer, if that takes no more than this much; else a Bloom filter.
constexpr std::uint64_t kFilterBitsPerKeyMax = 512;
constexpr std::uint64_t kFilterBitsMin = std::uint64_t{1} << 16;
constexpr std::uint64_t kFilterBitsMax = std::uint64_t{1} << 27;
constexpr std::uint64_t kFilterKeysPerWord = 4;

/// The word of a key, by the high bits of its hash, and in it four bits, by the low ones.
struct HashedPlace {
  std::uint64_t word;
  std::uint64_t bits;
};

HashedPlace place_of_hash(std::int64_t key, std::uint64_t mask) noexcept {
  const std::uint64_t hash = mix64(static_cast<std::uint64_t>(key));
  std::uint64_t bits = 0;
  for (unsigned i = 0; i < 4; ++i) bits |= std::uint64_t{1} << (hash >> (6 * i) & 63);
  return {hash >> 24 & mask, bits};
}

}  // namespace

KeyFilter::~KeyFilter() { budget_.give_back(charged_); }

bool KeyFilter::reserve(std::uint64_t words) {
  if (!budget_.try_take(words * 8)) return false;
  charged_ = words * 8;
  words_.assign(words, 0);
  return true;
}

void KeyFilter::set_bits(std::span<const std::int64_t> keys,
                         std::span<const std::uint8_t> is_null) {
  is_exact_ = true;
  for (std::size_t i = 0; i < keys.size(); ++i)
    if (is_null[i] == 0)
      words_[place_of(keys[i]) / 64] |= std::uint64_t{1} << (place_of(keys[i]) % 64);
  for (const std::uint64_t word : words_)
    key_count_ += static_cast<std::uint64_t>(std::popcount(word));
}

void KeyFilter::set_hashes(std::span<const std::int64_t> keys,
                           std::span<const std::uint8_t> is_null) {
  FLUGS_DCHECK(std::has_single_bit(words_.size()));
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (is_null[i] != 0) continue;
    const HashedPlace place = place_of_hash(keys[i], words_.size() - 1);
    words_[place.word] |= place.bits;
    ++key_count_;
  }
}

std::shared_ptr<const KeyFilter> KeyFilter::make(std::span<const std::int64_t> keys,
                                                 std::span<const std::uint8_t> is_null,
                                                 MemoryBudget& budget) {
  FLUGS_CHECK(keys.size() == is_null.size());
  std::shared_ptr<KeyFilter> made(new KeyFilter(budget));
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (is_null[i] != 0) continue;
    made->least_ = count == 0 ? keys[i] : std::min(made->least_, keys[i]);
    made->greatest_ = count == 0 ? keys[i] : std::max(made->greatest_, keys[i]);
    ++count;
  }
  if (count == 0) return made;
  const std::uint64_t last = made->place_of(made->greatest_);
  const bool is_dense =
      last < kFilterBitsMax && last < std::max(count * kFilterBitsPerKeyMax, kFilterBitsMin);
  const std::uint64_t words =
      is_dense ? last / 64 + 1 : std::bit_ceil(count / kFilterKeysPerWord + 1);
  if (!made->reserve(words)) return nullptr;
  if (is_dense)
    made->set_bits(keys, is_null);
  else
    made->set_hashes(keys, is_null);
  return made;
}

void KeyFilter::find(const std::int64_t* values, std::size_t count,
                     std::int64_t* out) const noexcept {
  if (words_.empty()) {
    std::fill_n(out, count, 0);
  } else if (is_exact_) {
    const std::uint64_t last = place_of(greatest_);
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t place = place_of(values[i]);
      const std::uint64_t in = std::min(place, last);  // else a read behind the words
      const std::uint64_t bit = words_[in / 64] >> (in % 64) & 1;
      out[i] = static_cast<std::int64_t>(place <= last ? bit : 0);
    }
  } else {
    for (std::size_t i = 0; i < count; ++i) {
      const HashedPlace place = place_of_hash(values[i], words_.size() - 1);
      out[i] = (words_[place.word] & place.bits) == place.bits ? 1 : 0;
    }
  }
}

}  // namespace flugs::query
