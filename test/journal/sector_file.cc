#include "test/journal/sector_file.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace flugs::test {

SectorFile::SectorFile(Bytes durable, std::uint64_t salt)
    : salt_(salt), durable_(std::move(durable)) {
  for (std::uint64_t at = 0; at < durable_.size(); at += kSectorBytes)
    hash_ += hash_of(at, durable_.data() + at);
}

std::uint64_t SectorFile::hash_of(std::uint64_t offset, const std::byte* bytes) const {
  return XXH3_64bits_withSeed(bytes, kSectorBytes, salt_ + offset);
}

Bytes SectorFile::cached() const {
  Bytes bytes = durable_;
  for (const std::vector<Pending>* sectors : {&lost_, &pending_})
    for (const Pending& sector : *sectors)
      std::memcpy(bytes.data() + sector.offset, sector.bytes.data(), kSectorBytes);
  return bytes;
}

void SectorFile::write(std::uint64_t offset, std::span<const std::byte> bytes, Random& random) {
  for (std::uint64_t at = 0; at < bytes.size(); at += kSectorBytes) {
    const std::byte* const from = bytes.data() + at;
    const std::uint64_t to = offset + at;
    const auto is_here = [&](const Pending& sector) { return sector.offset == to; };
    std::erase_if(lost_, is_here);
    const auto same = std::find_if(pending_.begin(), pending_.end(), is_here);
    if (same != pending_.end()) {
      if (std::memcmp(same->bytes.data(), from, kSectorBytes) == 0) continue;
      if (random.chance(50)) arrive(*same);
      pending_.erase(same);
    }
    if (std::memcmp(durable_.data() + to, from, kSectorBytes) == 0) continue;
    Pending sector{to, hash_of(to, from) - hash_of(to, durable_.data() + to), {}};
    std::memcpy(sector.bytes.data(), from, kSectorBytes);
    pending_.push_back(sector);
  }
}

void SectorFile::arrive(const Pending& sector) {
  hash_ += sector.difference;
  std::memcpy(durable_.data() + sector.offset, sector.bytes.data(), kSectorBytes);
}

void SectorFile::sync(std::uint64_t offset, std::uint64_t bytes) {
  std::erase_if(pending_, [&](const Pending& sector) {
    if (sector.offset < offset || sector.offset >= offset + bytes) return false;
    arrive(sector);
    return true;
  });
}

void SectorFile::fail(std::uint64_t offset, std::uint64_t bytes, Random& random) {
  const unsigned share = static_cast<unsigned>(random.below(5)) * 25;
  std::erase_if(pending_, [&](const Pending& sector) {
    if (sector.offset < offset || sector.offset >= offset + bytes) return false;
    if (random.chance(share))
      arrive(sector);
    else
      lost_.push_back(sector);
    return true;
  });
}

void SectorFile::end_writes(Chosen chosen) {
  for (std::size_t i = 0; i < pending_.size(); ++i)
    if (chosen[i] == kWholeSector) arrive(pending_[i]);
  pending_.clear();
}

/// What is chosen, over the old content.
void SectorFile::put(const Pending& sector, std::uint8_t chosen, std::byte* to) {
  if (chosen == kGarbledSector) {
    for (std::uint64_t at = 0; at < kSectorBytes; ++at) to[at] ^= std::byte{0xA5};
  } else {
    std::copy_n(sector.bytes.begin(), chosen * sizeof(std::uint64_t), to);
  }
}

void SectorFile::put_image(Chosen chosen, std::span<std::byte> image) const {
  std::memcpy(image.data(), durable_.data(), durable_.size());
  for (std::size_t i = 0; i < pending_.size(); ++i)
    put(pending_[i], chosen[i], image.data() + pending_[i].offset);
}

void SectorFile::exchange(Chosen chosen) {
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    std::byte* const durable = durable_.data() + pending_[i].offset;
    if (chosen[i] == kGarbledSector) {
      put(pending_[i], kGarbledSector, durable);
    } else {
      std::swap_ranges(durable, durable + chosen[i] * sizeof(std::uint64_t),
                       pending_[i].bytes.begin());
    }
  }
}

std::uint64_t SectorFile::hash(Chosen chosen) const {
  std::uint64_t hash = hash_;
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    const Pending& sector = pending_[i];
    if (chosen[i] == kWholeSector) {
      hash += sector.difference;
    } else if (chosen[i] != 0) {
      std::array<std::byte, kSectorBytes> torn;
      const std::byte* const old = durable_.data() + sector.offset;
      std::copy_n(old, kSectorBytes, torn.begin());
      put(sector, chosen[i], torn.data());
      hash += hash_of(sector.offset, torn.data()) - hash_of(sector.offset, old);
    }
  }
  return hash;
}

}  // namespace flugs::test
