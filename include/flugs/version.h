#pragma once

#include <cstdint>

/// The version of the headers; semantic versioning. Before 1.0 every minor version may change the
/// API and the pool format.
#define FLUGS_VERSION_MAJOR 0
#define FLUGS_VERSION_MINOR 1
#define FLUGS_VERSION_PATCH 0

namespace flugs {

struct Version {
  std::uint16_t major = FLUGS_VERSION_MAJOR;
  std::uint16_t minor = FLUGS_VERSION_MINOR;
  std::uint16_t patch = FLUGS_VERSION_PATCH;
  friend constexpr bool operator==(const Version&, const Version&) noexcept = default;
};
static_assert(Version{} == Version{FLUGS_VERSION_MAJOR, FLUGS_VERSION_MINOR, FLUGS_VERSION_PATCH});

/// The version of the library that the program runs with: another one than Version{} if it was
/// compiled against other headers. Never fails.
Version library_version() noexcept;
/// The version of pools that the library makes and opens (docs/format.md). Never fails.
std::uint32_t pool_format_version() noexcept;

}  // namespace flugs
