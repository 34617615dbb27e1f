#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "bench/support/random.h"

namespace flugs::bench {

inline constexpr std::string_view kLettersAndDigits =
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Random letters and digits, each of the 62 equally likely: CH-benCHmark's patterns count on it.
inline void fill_alphanumeric(Random& random, std::span<char> out) noexcept {
  for (char& letter : out) letter = kLettersAndDigits[random.below(kLettersAndDigits.size())];
}

inline void fill_digits(Random& random, std::span<char> out) noexcept {
  for (char& digit : out) digit = static_cast<char>('0' + random.below(10));
}

/// c_last of number 0 to 999 (clause 4.3.2.3).
inline std::string last_name(std::uint32_t number) {
  constexpr std::array<std::string_view, 10> kSyllables = {
      "BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"};
  std::string name(kSyllables[number / 100 % 10]);
  name += kSyllables[number / 10 % 10];
  name += kSyllables[number % 10];
  return name;
}

/// NURand(A, low, high) of clause 2.1.6, with the constant C that belongs to A.
inline std::uint32_t nurand(Random& random, std::uint32_t a, std::uint32_t c, std::uint32_t low,
                            std::uint32_t high) noexcept {
  const std::uint32_t mixed = (random.between(0, a) | random.between(low, high)) + c;
  return mixed % (high - low + 1) + low;
}

// C for A = 255 when loading and when running: their difference has to be within 65 to 119 and
// neither 96 nor 112.
inline constexpr std::uint32_t kNameConstantLoad = 157;
inline constexpr std::uint32_t kNameConstantRun = 223;

}  // namespace flugs::bench
