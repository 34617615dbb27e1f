#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace flugs::bench {

inline constexpr std::uint32_t kYcsbFieldsMax = 10;
inline constexpr std::uint32_t kYcsbFieldBytesMax = 1000;
/// A field's version and some letters more than chance gives.
inline constexpr std::uint32_t kYcsbFieldBytesMin = 16;

enum class YcsbKeys : std::uint8_t {
  kHashed,   ///< "user" and the FNV-64 hash of the number: YCSB's default
  kOrdered,  ///< "user" and the number, 10 digits
  kInteger,  ///< the number, int64: the table of Silo's program
};

/// The rows of a database for YCSB.
struct YcsbRows {
  std::uint64_t records = 100'000;  ///< loaded; more than 0
  std::uint32_t fields = kYcsbFieldsMax;
  std::uint32_t field_bytes = 100;
  YcsbKeys keys = YcsbKeys::kHashed;
};

/// FNV-64 as YCSB has it: over the eight bytes, low ones first; the absolute value of the signed
/// hash.
std::uint64_t ycsb_hash(std::uint64_t number) noexcept;

/// The key of a row as text, of kHashed and kOrdered.
class YcsbKeyText {
 public:
  YcsbKeyText(YcsbKeys keys, std::uint64_t number) noexcept;
  std::string_view text() const noexcept { return {letters_.data(), size_}; }

 private:
  std::array<char, 24> letters_;
  std::size_t size_;
};

/// The text of a field, which follows from key, field and version: YCSB's mode of data integrity,
/// and a version. Versions are below 2^48; 0 is what was loaded. `out` gets all of it.
void ycsb_field(std::uint64_t number, std::uint32_t field, std::uint64_t version,
                std::span<char> out) noexcept;
/// The version of a text that ycsb_field made for this key and field; nothing: it is another one.
std::optional<std::uint64_t> ycsb_version(std::uint64_t number, std::uint32_t field,
                                          std::string_view text) noexcept;

}  // namespace flugs::bench
