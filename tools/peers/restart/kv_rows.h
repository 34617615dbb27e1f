#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "bench/tatp/tatp_schema.h"
#include "flugs/status.h"

namespace flugs::tools {

// How TATP's rows are keys and values in a store of such.

/// s_id, big-endian, so that its order of bytes is that of the numbers; then a type, then a start
/// time.
class KvKey {
 public:
  static constexpr std::size_t kBytesMax = 6;

  template <typename... Bytes>
  explicit KvKey(std::uint32_t s_id, Bytes... more)
      : bytes_{static_cast<char>(s_id >> 24), static_cast<char>(s_id >> 16),
               static_cast<char>(s_id >> 8), static_cast<char>(s_id), static_cast<char>(more)...},
        size_(4 + sizeof...(more)) {}
  std::string_view text() const { return {bytes_.data(), size_}; }

 private:
  std::array<char, kBytesMax> bytes_;
  std::size_t size_;
};

inline std::uint32_t s_id_of(std::string_view key) {
  std::uint32_t s_id = 0;
  for (std::size_t i = 0; i < sizeof s_id; ++i)
    s_id = s_id << 8 | static_cast<unsigned char>(key[i]);
  return s_id;
}

using Digits = std::array<char, bench::kSubNbrDigits>;

inline Digits digits_of(std::uint32_t s_id) {
  Digits digits{};
  const bench::SubNbr number(s_id);
  number.text().copy(digits.data(), digits.size());
  return digits;
}

// The values, as they are in memory: everything but what the key has. No gaps.
struct SubscriberValue {
  std::uint32_t msc_location;
  std::uint32_t vlr_location;
  Digits number;
  std::array<std::uint8_t, 30> small;
  std::array<char, 3> unused;
};
struct NumberValue {
  std::uint32_t s_id;
};
struct AccessValue {
  std::uint8_t data1;
  std::uint8_t data2;
  std::array<char, 3> data3;
  std::array<char, 5> data4;
};
struct FacilityValue {
  std::uint8_t is_active;
  std::uint8_t error_control;
  std::uint8_t data_a;
  std::array<char, 5> data_b;
};
struct ForwardingValue {
  std::uint8_t end_time;
  Digits numberx;
};
static_assert(std::has_unique_object_representations_v<SubscriberValue>);
static_assert(std::has_unique_object_representations_v<AccessValue>);
static_assert(std::has_unique_object_representations_v<FacilityValue>);
static_assert(std::has_unique_object_representations_v<ForwardingValue>);

template <typename V>
std::string_view bytes_of(const V& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

/// Fails with kIoError: it is of another size.
template <typename V>
Status decode(std::string_view bytes, V& value) {
  if (bytes.size() != sizeof value)
    return Status(StatusCode::kIoError, "a value of " + std::to_string(bytes.size()) + " bytes");
  bytes.copy(reinterpret_cast<char*>(&value), sizeof value);
  return {};
}

template <std::size_t size>
std::string_view text_of(const std::array<char, size>& letters) {
  return {letters.data(), letters.size()};
}

}  // namespace flugs::tools
