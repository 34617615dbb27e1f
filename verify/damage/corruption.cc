#include "verify/damage/corruption.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "pmem/medium/medium.h"

namespace flugs::damage {

using pmem::kPageBytes;

namespace {

/// Damages one pool.
class Corruptor {
 public:
  Corruptor(std::span<std::byte> pool, const std::vector<SamplePool>& samples, std::size_t index,
            bench::Random& random)
      : pool_(pool), samples_(samples), sample_(samples[index]), random_(random) {
    for (const Region& region : sample_.regions)
      by_part_[static_cast<std::size_t>(region.part)].push_back(&region);
  }

  Corruption run() {
    const std::uint32_t kind = random_.below(100);
    if (kind < 40) {
      flip_vouched_or_not();
    } else if (kind < 97) {
      const std::uint32_t changes = 1 + random_.below(4);
      for (std::uint32_t i = 0; i < changes; ++i) change();
    } else {
      truncate();
    }
    if (result_.bytes == 0) result_.bytes = pool_.size();
    return std::move(result_);
  }

 private:
  /// Each part of a pool is as likely as any other, however large it is.
  const Region& any_region() {
    for (;;) {
      const auto& regions = by_part_[random_.below(kPartsCount)];
      if (!regions.empty()) return *regions[random_.below(regions.size())];
    }
  }
  std::uint64_t any_word_of(std::span<const std::byte> bytes) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + std::uint64_t{random_.below(bytes.size() / 8)} * 8, 8);
    return word;
  }
  void say(const std::string& words) {
    if (!result_.words.empty()) result_.words += "; ";
    result_.words += words;
  }

  void flip(const Region& region, std::uint32_t bits) {
    for (std::uint32_t i = 0; i < bits; ++i) {
      const std::uint64_t at = region.offset + random_.below(region.bytes);
      const std::uint32_t bit = random_.below(8);
      pool_[at] ^= static_cast<std::byte>(1u << bit);
      say(fmt::format("{} at {}: bit {} of byte {}", to_string(region.part), region.offset, bit,
                      at - region.offset));
    }
  }

  void flip_vouched_or_not() {
    const Region& region = any_region();
    flip(region, 1);
    result_.is_vouched = region.is_vouched;
  }

  std::uint64_t interesting_word(const Region& region) {
    switch (random_.below(9)) {
      case 0:
        return 0;
      case 1:
        return ~std::uint64_t{0};
      case 2:
        return std::uint64_t{1} << random_.below(64);
      case 3:
        return (std::uint64_t{1} << random_.below(64)) - 1;
      case 4:
        return any_region().offset;
      case 5:
        return pool_.size() - random_.below(4) * std::uint64_t{64};
      case 6:
        return region.offset;
      case 7:
        return any_word_of(pool_);
      default:
        return random_.next();
    }
  }

  void set_word(const Region& region) {
    const std::uint64_t bytes =
        region.bytes < 8 ? region.bytes : std::uint64_t{1} << random_.below(4);
    const std::uint64_t at = region.offset + random_.below(region.bytes / bytes) * bytes;
    const std::uint64_t word = interesting_word(region);
    std::memcpy(&pool_[at], &word, bytes);
    say(fmt::format("{} at {}: {} bytes at {} set to {:#x}", to_string(region.part), region.offset,
                    bytes, at - region.offset, word));
  }

  void add_to_word(const Region& region) {
    if (region.bytes < 8) return flip(region, 1);
    std::byte* const at =
        &pool_[region.offset + random_.below(region.bytes / 8) * std::uint64_t{8}];
    std::uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    const std::int64_t by = std::int64_t{random_.between(1, 64)} - 32;
    word += static_cast<std::uint64_t>(by);
    std::memcpy(at, &word, sizeof word);
    say(fmt::format("{} at {}: {} added to a word", to_string(region.part), region.offset, by));
  }

  void zero(const Region& region) {
    const std::uint64_t first = random_.below(region.bytes);
    const std::uint64_t bytes = 1 + random_.below(region.bytes - first);
    std::memset(&pool_[region.offset + first], random_.below(4) == 0 ? 0xFF : 0, bytes);
    say(fmt::format("{} at {}: bytes {} to {} zeroed", to_string(region.part), region.offset, first,
                    first + bytes));
  }

  /// Puts a structure of the same part, of this pool or another, in the place of this one.
  void splice(const Region& region) {
    const SamplePool& other =
        random_.below(2) == 0 ? sample_ : samples_[random_.below(samples_.size())];
    std::vector<const Region*> candidates;
    for (const Region& candidate : other.regions)
      if (candidate.part == region.part) candidates.push_back(&candidate);
    if (candidates.empty()) return zero(region);
    const Region& source = *candidates[random_.below(candidates.size())];
    const std::uint64_t bytes =
        std::min({source.bytes, pool_.size() - region.offset, other.bytes.size() - source.offset});
    std::memcpy(&pool_[region.offset], other.bytes.data() + source.offset, bytes);
    say(fmt::format("{} at {}: replaced by that at {} of pool '{}'", to_string(region.part),
                    region.offset, source.offset, other.name));
  }

  void swap_pages() {
    const std::uint64_t pages = pool_.size() / kPageBytes;
    const std::uint64_t a =
        random_.below(2) == 0 ? any_region().offset / kPageBytes : random_.below(pages);
    const std::uint64_t b = any_region().offset / kPageBytes;
    if (a >= pages || b >= pages) return;
    std::swap_ranges(&pool_[a * kPageBytes], &pool_[a * kPageBytes] + kPageBytes,
                     &pool_[b * kPageBytes]);
    say(fmt::format("pages {} and {} swapped", a, b));
  }

  /// Makes a page zero, or replaces it by one of another pool or place.
  void replace_page() {
    const std::uint64_t page = any_region().offset / kPageBytes;
    if ((page + 1) * kPageBytes > pool_.size()) return;
    const SamplePool& other = samples_[random_.below(samples_.size())];
    const std::uint64_t from =
        random_.below(2) == 0
            ? page
            : other.regions[random_.below(other.regions.size())].offset / kPageBytes;
    if (random_.below(3) == 0 || (from + 1) * kPageBytes > other.bytes.size()) {
      std::memset(&pool_[page * kPageBytes], 0, kPageBytes);
      return say(fmt::format("page {} zeroed", page));
    }
    std::memcpy(&pool_[page * kPageBytes], other.bytes.data() + from * kPageBytes, kPageBytes);
    say(fmt::format("page {} replaced by page {} of pool '{}'", page, from, other.name));
  }

  void change() {
    const Region& region = any_region();
    const std::uint32_t kind = random_.below(16);
    if (kind == 0) return swap_pages();
    if (kind == 1) return replace_page();
    if (kind < 5) {
      flip(region, 1 + random_.below(8));
    } else if (kind < 10) {
      set_word(region);
    } else if (kind < 12) {
      add_to_word(region);
    } else if (kind < 14) {
      splice(region);
    } else {
      zero(region);
    }
    if (random_.below(4) != 0) return;
    reseal(pool_, sample_.root, region);
  }

  void truncate() {
    result_.bytes = std::uint64_t{random_.below(pool_.size() / 64)} * 64;
    say(fmt::format("truncated to {} bytes", result_.bytes));
  }

  std::span<std::byte> pool_;
  const std::vector<SamplePool>& samples_;
  const SamplePool& sample_;
  bench::Random& random_;
  std::array<std::vector<const Region*>, kPartsCount> by_part_;
  Corruption result_;
};

}  // namespace

Corruption corrupt(std::span<std::byte> pool, const std::vector<SamplePool>& samples,
                   std::size_t index, bench::Random& random) {
  return Corruptor(pool, samples, index, random).run();
}

}  // namespace flugs::damage
