#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/check.h"
#include "flugs/status.h"

namespace flugs::pmem {

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t step) noexcept {
  FLUGS_DCHECK(step != 0);
  return (value + step - 1) / step * step;
}

// The parts of libpmemobj's layout, major version 6, that are needed to open a file without the
// library, and to audit the parts that only the library reads. The library trusts those, and damage
// in them ends the process. docs/format.md draws the layout.

inline constexpr const char* kObjectLayoutName = "flugs";
inline constexpr std::array<char, 8> kObjectSignature = {'P', 'M', 'E', 'M', 'O', 'B', 'J', '\0'};
inline constexpr std::uint32_t kObjectMajor = 6;
inline constexpr std::uint64_t kObjectMajorOffset = 8;
inline constexpr std::uint64_t kLayoutNameOffset = 4096;
inline constexpr std::uint64_t kRootOffsetOffset = 6144;
inline constexpr std::uint64_t kRootBytesOffset = 6160;
inline constexpr std::uint64_t kDescriptorBytes = 8192;
inline constexpr std::uint64_t kLanesCount = 1024;
inline constexpr std::uint64_t kLaneBytes = 3072;
inline constexpr std::uint64_t kHeapOffset = kDescriptorBytes + kLanesCount * kLaneBytes;
inline constexpr std::uint64_t kZonesOffset = kHeapOffset + 1024;  // behind the heap header
inline constexpr std::uint64_t kChunkBytes = 256 * 1024;
inline constexpr std::uint64_t kZoneChunks = 65528;
inline constexpr std::uint64_t kZoneHeaderBytes = 64;
inline constexpr std::uint64_t kZoneMetadataBytes = kZoneHeaderBytes + kZoneChunks * 8;
inline constexpr std::uint64_t kZoneBytes = kZoneMetadataBytes + kZoneChunks * kChunkBytes;
// A file with a whole descriptor has these words, whatever is behind it.
static_assert(kRootOffsetOffset + 8 <= kDescriptorBytes &&
              kRootBytesOffset + 8 <= kDescriptorBytes);
static_assert(kHeapOffset % 4096 == 0);  // the heap begins with a page
static_assert(kZoneChunks * kChunkBytes < std::uint64_t{16} << 30);

/// Check whether the file is a pool of the layout "flugs", and whether descriptor, lanes and heap
/// are as creation left them. After creation nothing is allocated through libpmemobj, so no lane
/// ever has unfinished work and no chunk changes its kind. Lanes and heap are checked by audits
/// only (docs/decisions/0016). kIncompatible for a file that is no flugs pool, else kCorrupt with
/// what, offset, expected and found.
Status check_object_head(std::span<const std::byte> file, const std::string& where);
Status check_object_descriptor(std::span<const std::byte> file, const std::string& where);
Status check_object_lanes(std::span<const std::byte> file, const std::string& where);
Status check_object_heap(std::span<const std::byte> file, const std::string& where);

}  // namespace flugs::pmem
