#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace flugs::bench {

/// SplitMix64's finaliser: a bijection on 64-bit words that leaves no visible pattern.
constexpr std::uint64_t mix64(std::uint64_t x) noexcept {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// A bijection on 32-bit words (every step can be undone), chosen by `key`.
constexpr std::uint32_t mix32(std::uint32_t x, std::uint64_t key) noexcept {
  x += static_cast<std::uint32_t>(key);
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  x ^= static_cast<std::uint32_t>(key >> 32);
  x = (x ^ (x >> 16)) * 0x21f0aaadu;
  x = (x ^ (x >> 15)) * 0x735a2d97u;
  return x ^ (x >> 15);
}

/// xoshiro256** by Blackman and Vigna: a nanosecond a number, period 2^256 - 1.
class Random {
 public:
  explicit constexpr Random(std::uint64_t seed) noexcept {
    for (std::uint64_t& word : state_) word = mix64(seed++);
  }

  constexpr std::uint64_t next() noexcept {
    const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  /// Uniform over {0 .. bound-1}, bound > 0. Lemire's multiplication; what it leaves of a bias is
  /// below bound / 2^32 and not looked for: no bound here is above 2^32.
  constexpr std::uint32_t below(std::uint64_t bound) noexcept {
    return static_cast<std::uint32_t>(((next() >> 32) * bound) >> 32);
  }
  /// Uniform over {low .. high}.
  constexpr std::uint32_t between(std::uint32_t low, std::uint32_t high) noexcept {
    return low + below(std::uint64_t{high} - low + 1);
  }

 private:
  std::array<std::uint64_t, 4> state_{};
};

/// A pseudo-random bijection of {0 .. size-1}: a Feistel network on the next even number of bits,
/// walked until it comes back into range (at most four steps on average).
class Permutation {
 public:
  constexpr Permutation(std::uint64_t size, std::uint64_t seed) noexcept
      : size_(size), seed_(seed) {
    while (half_bits_ < 31 && (std::uint64_t{1} << (2 * half_bits_)) < size) ++half_bits_;
  }

  constexpr std::uint64_t operator()(std::uint64_t position) const noexcept {
    do position = step(position);
    while (position >= size_);
    return position;
  }

 private:
  constexpr std::uint64_t step(std::uint64_t x) const noexcept {
    const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
    std::uint64_t left = x >> half_bits_;
    std::uint64_t right = x & mask;
    for (std::uint64_t round = 0; round < 4; ++round) {
      const std::uint64_t next = left ^ (mix64(right ^ mix64(seed_ + round)) & mask);
      left = right;
      right = next;
    }
    return left << half_bits_ | right;
  }

  std::uint64_t size_;
  std::uint64_t seed_;
  unsigned half_bits_ = 1;
};

}  // namespace flugs::bench
