#include "bench/scan/scan_data.h"

namespace flugs::bench {

namespace {

constexpr std::array<const char*, 10> kLooks = {"Red",   "Small",    "Polished", "Heavy Duty",
                                                "Blue",  "Folded",   "Large",    "Brushed",
                                                "Green", "Burnished"};
constexpr std::array<const char*, 10> kMaterials = {
    "Iron", "Oak", "Copper", "Leather", "Glass", "Stainless", "Tin", "Cotton", "Marble", "Nickel"};
constexpr std::array<const char*, 10> kGoods = {"Lamp",  "Table", "Kettle",  "Bag",  "Bottle",
                                                "Knife", "Box",   "Curtain", "Tray", "Door Handle"};
static_assert(kLooks.size() * kMaterials.size() * kGoods.size() == kScanTexts);

Permutation permutation(std::uint64_t size, std::uint64_t key) {
  return {size, mix64(key ^ 0x5ca)};
}

}  // namespace

ScanData::ScanData(std::uint64_t rows, std::uint64_t distinct, std::uint64_t seed)
    : rows_(rows),
      distinct_(distinct),
      keys_{mix64(mix64(seed)), mix64(mix64(seed) + 1), mix64(mix64(seed) + 2),
            mix64(mix64(seed) + 3), mix64(mix64(seed) + 4)},
      first_{permutation(distinct, keys_[0]), permutation(distinct, keys_[1]),
             permutation(distinct, keys_[2]), permutation(distinct, keys_[3])} {
  std::size_t ordinal = 0;
  for (const char* look : kLooks)
    for (const char* material : kMaterials)
      for (const char* goods : kGoods)
        texts_[ordinal++] = std::string(look) + " " + material + " " + goods;
}

void ScanData::row(std::uint64_t row, ScanRow& out) const noexcept {
  for (std::size_t i = 0; i < kScanIntegers; ++i) {
    const std::uint64_t value =
        row < distinct_ ? first_[i](row) : (mix64(keys_[i] ^ row) >> 32) * distinct_ >> 32;
    out.integers[i] = static_cast<std::int32_t>(value);
  }
  const std::uint64_t hash = mix64(keys_[kScanIntegers] ^ row);
  out.low = static_cast<std::int32_t>((hash >> 32) * kScanLowDistinct >> 32);
  out.text = static_cast<std::uint32_t>((hash & 0xffffffff) * kScanTexts >> 32);
}

}  // namespace flugs::bench
