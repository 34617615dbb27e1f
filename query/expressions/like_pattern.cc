#include "query/expressions/like_pattern.h"

#include "base/check.h"
#include "query/vectors/failure.h"

namespace flugs::query {

namespace {

bool continues(char byte) noexcept { return (static_cast<unsigned char>(byte) & 0xC0u) == 0x80u; }

}  // namespace

std::size_t next_character(std::string_view text, std::size_t place) noexcept {
  FLUGS_DCHECK(place < text.size());
  ++place;
  while (place < text.size() && continues(text[place])) ++place;
  return place;
}

std::size_t count_characters(std::string_view text) noexcept {
  std::size_t count = 0;
  for (const char byte : text) count += continues(byte) ? 0 : 1;
  return count;
}

LikePattern::LikePattern(std::string_view pattern, char escape, bool of_bytes,
                         const std::string& label)
    : segments_(1, Segment(1)), of_bytes_(of_bytes) {
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const bool is_escaped = escape != 0 && pattern[i] == escape;
    if (!is_escaped) {
      take(pattern[i], false);
      continue;
    }
    const char next = ++i < pattern.size() ? pattern[i] : '\0';
    if (next != '%' && next != '_' && next != escape)
      fail(StatusCode::kInvalidArgument,
           label + ": the escape character must be followed by %, _ or itself");
    take(next, true);
  }
}

void LikePattern::take(char c, bool is_literal) {
  Segment& segment = segments_.back();
  if (!is_literal && c == '%') {
    segments_.emplace_back(1);
  } else if (!is_literal && c == '_') {
    ++segment.back().characters;
  } else {
    if (segment.back().characters != 0) segment.emplace_back();
    segment.back().text += c;
  }
}

std::size_t LikePattern::skip(std::string_view text, std::size_t place,
                              std::size_t characters) const noexcept {
  if (of_bytes_) return text.size() - place < characters ? kNowhere : place + characters;
  for (; characters > 0; --characters) {
    if (place >= text.size()) return kNowhere;
    place = next_character(text, place);
  }
  return place;
}

// kNowhere: the parts do not match at `place`.
std::size_t LikePattern::end_of_match(std::span<const Part> parts, std::string_view text,
                                      std::size_t place) const noexcept {
  for (const Part& part : parts) {
    if (!text.substr(place).starts_with(part.text)) return kNowhere;
    place = skip(text, place + part.text.size(), part.characters);
    if (place == kNowhere) return kNowhere;
  }
  return place;
}

// Looks for the first match, at `end` or behind it; `end` becomes its end. A segment has a fixed
// number of characters, so no later match ends earlier. Characters in front of its first text are
// passed over once.
bool LikePattern::find(const Segment& segment, std::string_view text,
                       std::size_t& end) const noexcept {
  const bool is_text_first = !segment.front().text.empty();
  const std::size_t passed = is_text_first ? 0 : segment.front().characters;
  const std::span<const Part> rest = std::span(segment).subspan(is_text_first ? 0 : 1);
  std::size_t place = skip(text, end, passed);
  while (place != kNowhere) {
    if (!rest.empty()) place = text.find(rest.front().text, place);
    if (place == kNowhere) return false;
    if (const std::size_t found = end_of_match(rest, text, place); found != kNowhere) {
      end = found;
      return true;
    }
    place = skip(text, place, 1);
  }
  return false;
}

// Whether the segment matches the end of the text, and begins at `from` or behind it.
bool LikePattern::ends_with(const Segment& segment, std::string_view text,
                            std::size_t from) const noexcept {
  FLUGS_DCHECK(from <= text.size());
  std::size_t place = text.size();
  for (auto part = segment.rbegin(); part != segment.rend(); ++part) {
    for (std::size_t i = 0; i < part->characters; ++i) {
      if (place == from) return false;
      --place;
      while (!of_bytes_ && place > from && continues(text[place])) --place;
    }
    if (!text.substr(from, place - from).ends_with(part->text)) return false;
    place -= part->text.size();
  }
  return true;
}

bool LikePattern::matches(std::string_view text) const noexcept {
  std::size_t end = end_of_match(segments_.front(), text, 0);
  if (end == kNowhere) return false;
  if (segments_.size() == 1) return end == text.size();
  for (std::size_t i = 1; i + 1 < segments_.size(); ++i)
    if (!find(segments_[i], text, end)) return false;
  return ends_with(segments_.back(), text, end);
}

}  // namespace flugs::query
