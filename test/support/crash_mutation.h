#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace flugs::test {

/// What lies at an address of a database's pool.
enum class Region : std::uint8_t {
  kOther,
  kSlotHalf,  ///< commit record and intents
  kIntentBlock,
  kRow,
  kDictionary,
  kText,
};
Region region_of(std::span<const std::byte> memory, const void* address);

/// A flush or a fence that is taken for absent: a test of the tests.
struct Mutation {
  std::string flush;               ///< label
  Region region = Region::kOther;  ///< only flushes of this; kOther: all of the label
  std::string fence;               ///< label
};

}  // namespace flugs::test
