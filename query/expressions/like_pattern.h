#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace flugs::query {

/// Where the character behind the one at `place` begins: at the next byte that does not continue a
/// character in UTF-8.
std::size_t next_character(std::string_view text, std::size_t place) noexcept;
/// Bytes of the text that begin a character.
std::size_t count_characters(std::string_view text) noexcept;

/// A pattern of LIKE, taken apart once for many texts.
/// Thread-safety: immutable.
class LikePattern {
 public:
  /// `of_bytes`: `_` matches a byte, not a character. `escape` 0 is none. Throws Failure, which
  /// names `label`, if another byte than `%`, `_` and `escape` follows the escape, or nothing does.
  LikePattern(std::string_view pattern, char escape, bool of_bytes, const std::string& label);

  bool matches(std::string_view text) const noexcept;

 private:
  /// A text, followed by `characters` times `_`.
  struct Part {
    std::string text;
    std::size_t characters = 0;
  };
  /// What lies between two `%`.
  using Segment = std::vector<Part>;
  static constexpr std::size_t kNowhere = std::string_view::npos;

  void take(char c, bool is_literal);
  std::size_t skip(std::string_view text, std::size_t place, std::size_t characters) const noexcept;
  std::size_t end_of_match(std::span<const Part> parts, std::string_view text,
                           std::size_t place) const noexcept;
  bool find(const Segment& segment, std::string_view text, std::size_t& end) const noexcept;
  bool ends_with(const Segment& segment, std::string_view text, std::size_t from) const noexcept;

  std::vector<Segment> segments_;  // one at least
  bool of_bytes_;
};

}  // namespace flugs::query
