#include "bindings/sqlite/words.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "flugs/try.h"

namespace flugs::sqlite {

namespace {

Status misread(std::string message) {
  return Status(StatusCode::kInvalidArgument, std::move(message));
}

bool is_letter(char c) noexcept {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_' || (c & 0x80) != 0;
}
bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

bool equals(std::string_view a, std::string_view b) noexcept {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (std::toupper(static_cast<unsigned char>(a[i])) !=
        std::toupper(static_cast<unsigned char>(b[i])))
      return false;
  return true;
}

/// A quoted word from its first quote on; two quotes are one of the text. Nothing: without an end.
std::optional<std::string> unquote(std::string_view text, std::size_t& at) {
  const char end = text[at] == '[' ? ']' : text[at];
  std::string word;
  for (++at; at < text.size(); ++at) {
    if (text[at] != end) {
      word += text[at];
    } else if (end != ']' && at + 1 < text.size() && text[at + 1] == end) {
      word += end;
      ++at;
    } else {
      ++at;
      return word;
    }
  }
  return std::nullopt;
}

int hex(char c) noexcept {
  if (is_digit(c)) return c - '0';
  c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

std::optional<std::string> from_hex(std::string_view digits) {
  std::string bytes;
  if (digits.size() % 2 != 0) return std::nullopt;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    const int high = hex(digits[i]);
    const int low = hex(digits[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes += static_cast<char>(high * 16 + low);
  }
  return bytes;
}

/// Where a comment that begins at `at` ends; `at` if none begins there.
std::size_t end_of_comment(std::string_view text, std::size_t at) noexcept {
  const std::string_view begin = text.substr(at, 2);
  std::size_t end = at;
  if (begin == "--")
    end = text.find('\n', at);
  else if (begin == "/*" && (end = text.find("*/", at + 2)) != std::string_view::npos)
    end += 2;
  return std::min(end, text.size());
}

Result<Word> next_word(std::string_view text, std::size_t& at) {
  const char c = text[at];
  const std::size_t first = at;
  const bool is_blob = (c == 'x' || c == 'X') && at + 1 < text.size() && text[at + 1] == '\'';
  if (c == '\'' || c == '"' || c == '`' || c == '[' || is_blob) {
    if (is_blob) ++at;
    std::optional<std::string> word = unquote(text, at);
    if (word && is_blob) word = from_hex(*word);
    if (!word) return misread("a quoted word is wrong: " + std::string(text.substr(first)));
    const Word::Kind kind = is_blob     ? Word::Kind::kBlob
                            : c == '\'' ? Word::Kind::kText
                                        : Word::Kind::kQuoted;
    return Word{kind, *std::move(word)};
  }
  if (is_letter(c)) {
    while (at < text.size() && (is_letter(text[at]) || is_digit(text[at]))) ++at;
    return Word{Word::Kind::kName, std::string(text.substr(first, at - first))};
  }
  if (is_digit(c) || (c == '.' && at + 1 < text.size() && is_digit(text[at + 1]))) {
    while (at < text.size() &&
           (is_digit(text[at]) || text[at] == '.' || is_letter(text[at]) ||
            ((text[at] == '-' || text[at] == '+') && (text[at - 1] == 'e' || text[at - 1] == 'E'))))
      ++at;
    return Word{Word::Kind::kNumber, std::string(text.substr(first, at - first))};
  }
  ++at;
  return Word{Word::Kind::kSign, std::string(1, c)};
}

}  // namespace

Result<Words> Words::of(std::string_view text) {
  Words words;
  words.all_ = text;
  std::size_t at = 0;
  while (at < text.size()) {
    if (std::isspace(static_cast<unsigned char>(text[at])) != 0) {
      ++at;
      continue;
    }
    if (const std::size_t end = end_of_comment(text, at); end != at) {
      at = end;
      continue;
    }
    FLUGS_ASSIGN(Word word, next_word(text, at));
    words.words_.push_back(std::move(word));
  }
  return words;
}

const Word& Words::front() const noexcept {
  static const Word none;
  return is_at_end() ? none : words_[at_];
}

Word Words::take() { return is_at_end() ? Word() : words_[at_++]; }

bool Words::is_next(std::string_view word) const noexcept {
  const Word& next = front();
  return (next.kind == Word::Kind::kName || next.kind == Word::Kind::kSign) && !is_at_end() &&
         equals(next.text, word);
}

bool Words::take(std::string_view word) {
  if (!is_next(word)) return false;
  ++at_;
  return true;
}

Result<std::string> Words::take_name(std::string_view of_what) {
  const Word& next = front();
  if (is_at_end() || (next.kind != Word::Kind::kName && next.kind != Word::Kind::kQuoted))
    return misread("the name of " + std::string(of_what) + " is missing in: " + all_);
  return take().text;
}

Result<std::vector<std::string>> Words::take_names() {
  std::vector<std::string> names;
  if (!take("(")) return misread("'(' and columns are missing in: " + all_);
  do {
    FLUGS_ASSIGN(std::string name, take_name("a column"));
    names.push_back(std::move(name));
    take("ASC");
  } while (take(","));
  if (!take(")")) return unexpected();
  return names;
}

Status Words::unexpected() const {
  if (is_at_end()) return misread("something is missing at the end of: " + all_);
  return misread("'" + front().text + "' is not understood in: " + all_);
}

}  // namespace flugs::sqlite
