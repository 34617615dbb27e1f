#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace flugs::test {

/// SplitMix64: the same numbers everywhere for one seed.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t x = state_ += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }
  /// 0 to `bound` - 1.
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }
  bool chance(unsigned percent) { return below(100) < percent; }
  /// Letters and digits without a pattern, which row groups hardly compress.
  std::string noise(std::size_t bytes) {
    static constexpr char kLetters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    constexpr std::size_t kLettersInDraw = 10;  // of six bits each
    std::string text(bytes, ' ');
    std::uint64_t drawn = 0;
    for (std::size_t i = 0; i < bytes; ++i) {
      drawn = i % kLettersInDraw == 0 ? next() : drawn >> 6;
      text[i] = kLetters[drawn % 64];
    }
    return text;
  }

 private:
  std::uint64_t state_;
};

}  // namespace flugs::test
