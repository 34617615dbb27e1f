#include "pmem/kinds/address_space.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "pmem/medium/medium.h"
#include "pmem/pool/pool_format.h"

namespace flugs::pmem {

namespace {

#ifdef __SANITIZE_THREAD__
constexpr std::uint64_t kReservedMin = std::uint64_t{64} << 30;  // of 1.5 TB for all mappings
#else
constexpr std::uint64_t kReservedMin = std::uint64_t{1} << 40;
#endif
constexpr std::uint64_t kGrowthFactor = 4;

std::uint64_t wanted_bytes(std::uint64_t bytes_min) noexcept {
  struct rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) return bytes_min;
  const std::uint64_t most = std::max(bytes_min, kPoolBytesMax);
  return std::clamp(std::max(kGrowthFactor * bytes_min, kReservedMin), bytes_min, most);
}

}  // namespace

Result<AddressSpace> AddressSpace::reserve(std::uint64_t bytes_min, std::uint64_t alignment,
                                           const std::string& where) {
  FLUGS_CHECK(alignment != 0 && alignment % kPageBytes == 0);
  bytes_min = (bytes_min + kPageBytes - 1) / kPageBytes * kPageBytes;
  for (std::uint64_t bytes = wanted_bytes(bytes_min);; bytes = std::max(bytes / 2, bytes_min)) {
    bytes = bytes / kPageBytes * kPageBytes;
    // Room for the largest gap before an aligned address; the unneeded part is given back.
    const std::uint64_t room = bytes + alignment;
    void* const reserved =
        ::mmap(nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED) {
      if (bytes > bytes_min) continue;
      return Status(StatusCode::kOutOfSpace,
                    fmt::format("{}: cannot reserve max_bytes, {} bytes of address space: {}",
                                where, bytes_min, std::strerror(errno)));
    }
    auto* const first = static_cast<std::byte*>(reserved);
    const std::uint64_t gap =
        (alignment - reinterpret_cast<std::uintptr_t>(first) % alignment) % alignment;
    if (gap != 0) ::munmap(first, gap);
    if (gap != alignment) ::munmap(first + gap + bytes, alignment - gap);
    AddressSpace space;
    space.base_ = first + gap;
    space.bytes_ = bytes;
    return space;
  }
}

AddressSpace& AddressSpace::operator=(AddressSpace&& other) noexcept {
  std::swap(base_, other.base_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

AddressSpace::~AddressSpace() {
  if (base_ != nullptr) ::munmap(base_, bytes_);
}

}  // namespace flugs::pmem
