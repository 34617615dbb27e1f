#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace flugs::proof {

/// What lies at an address of a database's pool.
enum class Region : std::uint8_t {
  kOther,
  kSlotHalf,  ///< commit record and intents
  kIntentBlock,
  kRow,
  kDictionary,
  kText,
  kHint,
};
std::string to_string(Region region);
Region region_of(std::span<const std::byte> memory, const void* address);

/// A mistake that the medium is made to see in place of what the program did: a test of the tests.
struct Mutation {
  enum class Kind : std::uint8_t {
    kNone,
    kNoFlush,      ///< as if the flush were missing
    kNoFence,      ///< as if the fence were missing
    kLateFlush,    ///< the flush comes behind the fence that was to make it certain
    kShortFlush,   ///< the last line is left out, of flushes of two lines and more
    kEarlyStore,   ///< what the flush covers was stored before the Persister's fence before it
    kLateFence,    ///< over when its step is acknowledged: others may have seen the step before
    kOthersFlush,  ///< missing where another Persister has flushed the same and not fenced it
  };
  Kind kind = Kind::kNone;
  std::string label;
  Region region = Region::kOther;  ///< only flushes of this; kOther: all of the label
};

}  // namespace flugs::proof
