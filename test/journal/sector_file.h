#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "test/support/random.h"

namespace flugs::test {

using Bytes = std::vector<std::byte>;
inline constexpr std::uint64_t kSectorBytes = 512;
/// For each pending sector of a file: how many of its words, from its begin, a power cut leaves on
/// the medium.
using Chosen = std::span<const std::uint8_t>;
inline constexpr std::uint8_t kWholeSector = kSectorBytes / sizeof(std::uint64_t);
/// Instead: the sector has neither its old content nor its new one.
inline constexpr std::uint8_t kGarbledSector = 0xFF;

/// A file as a power cut sees it: durable sectors, and pending ones, which may be on the medium,
/// in part, or not.
class SectorFile {
 public:
  /// `salt` distinguishes the hashes of several files.
  SectorFile(Bytes durable, std::uint64_t salt);

  const Bytes& durable() const noexcept { return durable_; }
  std::size_t pending() const noexcept { return pending_.size(); }
  /// What a reader gets while nothing cuts the power.
  Bytes cached() const;

  /// Both are whole sectors. Of a sector that was pending already, `random` says which of its two
  /// older contents the medium has.
  void write(std::uint64_t offset, std::span<const std::byte> bytes, Random& random);
  /// The pending sectors in this range are durable.
  void sync(std::uint64_t offset, std::uint64_t bytes);
  void sync() { sync(0, durable_.size()); }
  /// A write or a sync of this range has failed. `random` says what the medium has of it. The
  /// system takes the rest for written: no sync brings it to the medium, but readers get it.
  void fail(std::uint64_t offset, std::uint64_t bytes, Random& random);

  /// The writes in flight end in this way: the chosen sectors are durable, the others are not
  /// there.
  void end_writes(Chosen chosen);

  /// The durable bytes and the chosen sectors, into `image`.
  void put_image(Chosen chosen, std::span<std::byte> image) const;
  /// Exchanges the chosen sectors with the durable ones. The same call takes it back.
  void exchange(Chosen chosen);
  /// Two images have the same hash if they have the same bytes.
  std::uint64_t hash(Chosen chosen) const;

 private:
  struct Pending {
    std::uint64_t offset;
    std::uint64_t difference;  ///< between the hashes of both contents
    std::array<std::byte, kSectorBytes> bytes;
  };
  std::uint64_t hash_of(std::uint64_t offset, const std::byte* bytes) const;
  void arrive(const Pending& sector);
  static void put(const Pending& sector, std::uint8_t chosen, std::byte* to);

  std::uint64_t salt_;
  Bytes durable_;
  std::uint64_t hash_ = 0;  // of durable_: the sum over its sectors
  std::vector<Pending> pending_;
  std::vector<Pending> lost_;  // cached, but never written by itself
};

}  // namespace flugs::test
