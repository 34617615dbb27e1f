#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "flugs/status.h"

namespace flugs::pmem {

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t step) noexcept {
  return (value + step - 1) / step * step;
}

// What of libpmemobj's layout, major version 6, is needed to open a file without it, and to audit
// what only it goes by: it trusts that, and dies of what is wrong there. docs/format.md draws it.

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

/// Whether the file is a pool of the layout "flugs", and descriptor, lanes and heap are what
/// creation left. After creation nothing is allocated through libpmemobj, so that no lane ever has
/// anything to finish and no chunk changes its kind; lanes and heap are for audits
/// (docs/decisions/0016). kIncompatible for what is no pool of ours, else kCorrupt with what,
/// offset, expected and found.
Status check_object_head(std::span<const std::byte> file, const std::string& where);
Status check_object_descriptor(std::span<const std::byte> file, const std::string& where);
Status check_object_lanes(std::span<const std::byte> file, const std::string& where);
Status check_object_heap(std::span<const std::byte> file, const std::string& where);

}  // namespace flugs::pmem
