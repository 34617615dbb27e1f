#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace flugs::crash {

/// The kind of data at an address of a database's pool.
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

/// A mistake that the medium sees in place of what the program did: a test of the tests.
struct Mutation {
  enum class Kind : std::uint8_t {
    kNone,
    kNoFlush,      ///< as if the flush were missing
    kNoFence,      ///< as if the fence were missing
    kLateFlush,    ///< the flush comes after the fence that should make it durable
    kShortFlush,   ///< omits the last line of flushes of two lines or more
    kEarlyStore,   ///< what the flush covers was stored before the Persister's previous fence
    kLateFence,    ///< ends only when its step is acknowledged: others may have seen the step
                   ///< before
    kOthersFlush,  ///< missing where another Persister has flushed the same, and not fenced it
  };
  Kind kind = Kind::kNone;
  std::string label;
  Region region = Region::kOther;  ///< mutates only flushes of this; kOther: all with the label
};

}  // namespace flugs::crash
