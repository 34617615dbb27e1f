// Patterns of LIKE against a matcher that tries everything.
#include "query/expressions/like_pattern.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "query/vectors/failure.h"
#include "test/support/complaint.h"
#include "test/support/random.h"

namespace flugs::query {
namespace {

using test::Random;

/// A text or a pattern of these characters, some of which have several bytes.
std::string draw(Random& random, std::size_t characters_max,
                 const std::vector<std::string>& characters) {
  std::string text;
  for (std::uint64_t left = random.below(characters_max + 1); left > 0; --left)
    text += characters[random.below(characters.size())];
  return text;
}

bool matches_somehow(std::string_view text, std::string_view pattern) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] == '%') {
    if (matches_somehow(text, pattern.substr(1))) return true;
    return !text.empty() && matches_somehow(text.substr(next_character(text, 0)), pattern);
  }
  if (text.empty()) return false;
  if (pattern[0] == '_')
    return matches_somehow(text.substr(next_character(text, 0)), pattern.substr(1));
  return text[0] == pattern[0] && matches_somehow(text.substr(1), pattern.substr(1));
}

}  // namespace

TEST_CASE("a pattern of LIKE agrees with a matcher that tries everything") {
  Random random(7);
  const std::vector<std::string> letters{"a", "b", "ä", "€"};
  const std::vector<std::string> parts{"a", "b", "ä", "€", "%", "%", "_", "_"};
  std::size_t matched = 0;
  for (std::uint64_t i = 0; i < test::rounds_of(200'000, 20'000); ++i) {
    const std::string text = draw(random, 8, letters);
    const std::string pattern = draw(random, 6, parts);
    const bool expected = matches_somehow(text, pattern);
    const LikePattern tested(pattern, 0, false, "test");
    matched += expected ? 1 : 0;
    if (tested.matches(text) == expected) continue;
    FAIL("text " << text << ", pattern " << pattern << ": expected " << expected);
  }
  CHECK(matched > 1000);
}

TEST_CASE("a pattern with many near matches in a long text") {
  const std::string text(100'000, 'a');
  const LikePattern pattern("%a%a%a%a%a%a%a%ab%", 0, false, "test");
  CHECK_FALSE(pattern.matches(text));
  const LikePattern many("%" + std::string(50'000, '_') + "b%", 0, false, "test");
  CHECK_FALSE(many.matches(text));
  const LikePattern at_end("%_a_%a%", 0, true, "test");
  CHECK(at_end.matches(text));
}

}  // namespace flugs::query
