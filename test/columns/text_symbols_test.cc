#include <catch2/catch.hpp>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "columns/main/text_symbols.h"
#include "test/support/random.h"

namespace flugs::test {
namespace {

using columns::TextSymbols;
using columns::TextSymbolsView;

/// A table as it is in a pool.
class StoredSymbols {
 public:
  explicit StoredSymbols(const TextSymbols& symbols)
      : bytes_(TextSymbols::stored_bytes(symbols.count())),
        count_(static_cast<std::uint32_t>(symbols.count())) {
    symbols.store(bytes_.data());
  }
  TextSymbolsView view() const { return {bytes_.data(), count_}; }
  std::vector<std::byte>& bytes() { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
  std::uint32_t count_;
};

std::string decoded(const TextSymbolsView& symbols, std::span<const std::uint8_t> codes) {
  const std::uint64_t bytes = symbols.bytes_of(codes);
  std::string text(bytes + TextSymbolsView::kSlack, '\0');
  const char* const end = symbols.decode(codes, text.data());
  REQUIRE(end == text.data() + bytes);
  text.resize(bytes);
  return text;
}

std::string words(Random& random, std::size_t count) {
  static constexpr std::string_view kWords[] = {
      "furiously", " ", "regular", "deposits", "the", ", ", "sleep", "quickly", "a", "accounts "};
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += kWords[random.below(std::size(kWords))];
  return text;
}

std::string any_bytes(Random& random, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += static_cast<char>(random.below(256));
  return text;
}

}  // namespace

TEST_CASE("a text that is compressed comes back", "[columns]") {
  Random random(1);
  for (int round = 0; round < 60; ++round) {
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < 1 + random.below(300); ++i) {
      const std::size_t length = random.below(4) == 0 ? random.below(3) : random.below(60);
      if (round % 3 == 0) texts.push_back(any_bytes(random, length));
      if (round % 3 == 1) texts.push_back(words(random, length));
      if (round % 3 == 2) texts.push_back(std::string(length, '\0') + words(random, 2));
    }
    const std::vector<std::string_view> views(texts.begin(), texts.end());
    const TextSymbols symbols = TextSymbols::of(views);
    const StoredSymbols stored(symbols);
    // Also texts that no symbol was made for.
    texts.push_back(any_bytes(random, 500));
    texts.emplace_back("\xFF\xFF\x00\xFF", 4);
    texts.emplace_back();
    for (const std::string& text : texts) {
      std::vector<std::uint8_t> codes;
      symbols.compress(text, codes);
      CHECK(codes.size() <= 2 * text.size());
      REQUIRE(decoded(stored.view(), codes) == text);
    }
  }
}

TEST_CASE("texts of a few words take a third of their bytes", "[columns]") {
  Random random(2);
  std::vector<std::string> texts;
  for (int i = 0; i < 2000; ++i) texts.push_back(words(random, 8));
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  const TextSymbols symbols = TextSymbols::of(views);
  std::vector<std::uint8_t> codes;
  std::size_t bytes = 0;
  for (const std::string& text : texts) {
    symbols.compress(text, codes);
    bytes += text.size();
  }
  CHECK(codes.size() * 3 < bytes);
}

TEST_CASE("no texts, and empty ones, have no symbols", "[columns]") {
  CHECK(TextSymbols::of({}).count() == 0);
  const std::vector<std::string_view> empty(10);
  CHECK(TextSymbols::of(empty).count() == 0);
  std::vector<std::uint8_t> codes;
  TextSymbols::of(empty).compress("ab", codes);
  CHECK(codes == std::vector<std::uint8_t>{TextSymbols::kEscape, 'a', TextSymbols::kEscape, 'b'});
}

TEST_CASE("damaged symbols and codes are read as fewer bytes", "[columns]") {
  Random random(3);
  std::vector<std::string> texts;
  for (int i = 0; i < 100; ++i) texts.push_back(words(random, 8));
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  StoredSymbols stored(TextSymbols::of(views));
  for (int round = 0; round < 2000; ++round) {
    stored.bytes()[random.below(stored.bytes().size())] = static_cast<std::byte>(random.next());
    std::vector<std::uint8_t> codes;
    for (std::size_t i = 0; i < random.below(40); ++i)
      codes.push_back(static_cast<std::uint8_t>(random.below(3) == 0 ? 255 : random.below(256)));
    CHECK(decoded(stored.view(), codes).size() <= 8 * codes.size());
  }
}

}  // namespace flugs::test
