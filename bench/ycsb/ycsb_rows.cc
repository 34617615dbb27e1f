#include "bench/ycsb/ycsb_rows.h"

#include <charconv>

#include "bench/support/random.h"

namespace flugs::bench {

namespace {

constexpr std::size_t kVersionLetters = 8;
constexpr unsigned kLetterBits = 6;
constexpr std::string_view kLetters =
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~";
static_assert(kLetters.size() == std::size_t{1} << kLetterBits);
constexpr std::uint64_t kLetterMask = kLetters.size() - 1;

/// The letters behind the version.
class FieldLetters {
 public:
  FieldLetters(std::uint64_t number, std::uint32_t field, std::uint64_t version) noexcept
      : state_(mix64(number * kYcsbFieldsMax + field) ^ mix64(version)) {}

  char next() noexcept {
    if (left_ == 0) {
      word_ = mix64(state_++);
      left_ = 64 / kLetterBits;
    }
    const char letter = kLetters[word_ & kLetterMask];
    word_ >>= kLetterBits;
    --left_;
    return letter;
  }

 private:
  std::uint64_t state_;
  std::uint64_t word_ = 0;
  unsigned left_ = 0;
};

}  // namespace

std::uint64_t ycsb_hash(std::uint64_t number) noexcept {
  std::uint64_t hash = 0xCBF29CE484222325u;
  for (int i = 0; i < 8; ++i) {
    hash = (hash ^ (number & 0xff)) * 1099511628211u;
    number >>= 8;
  }
  const auto sign = static_cast<std::int64_t>(hash);
  return sign < 0 ? ~hash + 1 : hash;
}

YcsbKeyText::YcsbKeyText(YcsbKeys keys, std::uint64_t number) noexcept {
  constexpr std::string_view kPrefix = "user";
  constexpr std::size_t kDigits = 10;
  size_ = kPrefix.copy(letters_.data(), kPrefix.size());
  if (keys == YcsbKeys::kHashed) {
    char* const end = letters_.data() + letters_.size();
    const auto written = std::to_chars(letters_.data() + size_, end, ycsb_hash(number));
    size_ = static_cast<std::size_t>(written.ptr - letters_.data());
    return;
  }
  for (std::size_t i = kDigits; i-- > 0; number /= 10)
    letters_[kPrefix.size() + i] = static_cast<char>('0' + number % 10);
  size_ += kDigits;
}

void ycsb_field(std::uint64_t number, std::uint32_t field, std::uint64_t version,
                std::span<char> out) noexcept {
  FieldLetters letters(number, field, version);
  std::size_t at = 0;
  for (; at < kVersionLetters && at < out.size(); ++at) {
    out[at] = kLetters[version & kLetterMask];
    version >>= kLetterBits;
  }
  for (; at < out.size(); ++at) out[at] = letters.next();
}

std::optional<std::uint64_t> ycsb_version(std::uint64_t number, std::uint32_t field,
                                          std::string_view text) noexcept {
  if (text.size() < kYcsbFieldBytesMin) return std::nullopt;
  std::uint64_t version = 0;
  for (std::size_t i = kVersionLetters; i-- > 0;) {
    const std::size_t digit = kLetters.find(text[i]);
    if (digit == std::string_view::npos) return std::nullopt;
    version = version << kLetterBits | digit;
  }
  FieldLetters letters(number, field, version);
  for (std::size_t at = kVersionLetters; at < text.size(); ++at)
    if (text[at] != letters.next()) return std::nullopt;
  return version;
}

}  // namespace flugs::bench
