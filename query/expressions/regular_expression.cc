#include "query/expressions/regular_expression.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "query/expressions/like_pattern.h"
#include "query/vectors/failure.h"

namespace flugs::query {

namespace {

// For the compiled pattern and the states that RE2 keeps. A larger pattern is refused. RE2 searches
// without states, more slowly, if there is no room for them.
constexpr std::int64_t kPatternBytesMax = std::int64_t{8} << 20;

using Groups = re2::StringPiece[RegularExpression::kGroupMax + 1];

std::string_view view_of(const re2::StringPiece& piece) noexcept {
  return {piece.data(), piece.size()};
}

// RE2 names the part that is wrong, and not its place.
std::string place_of(const std::string& part, std::string_view pattern) {
  const std::size_t place = pattern.find(part);
  const bool is_known = !part.empty() && part.size() < pattern.size() &&
                        place != std::string_view::npos && pattern.rfind(part) == place;
  return is_known ? fmt::format(" (at byte {} of the pattern)", place + 1) : std::string();
}

}  // namespace

void GrowingText::append(std::string_view part) {
  const std::size_t wanted = text_.size() + part.size();
  if (wanted > text_.capacity()) {
    const std::size_t room = std::max(wanted, 2 * text_.capacity());
    charge_.set(room);
    text_.reserve(room);
  }
  text_ += part;
}

RegularExpression::RegularExpression(std::string_view pattern, bool of_bytes,
                                     const std::string& label)
    : of_bytes_(of_bytes) {
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kPatternBytesMax);
  options.set_encoding(of_bytes ? re2::RE2::Options::EncodingLatin1
                                : re2::RE2::Options::EncodingUTF8);
  compiled_ = std::make_unique<re2::RE2>(re2::StringPiece(pattern.data(), pattern.size()), options);
  if (!compiled_->ok())
    fail(StatusCode::kInvalidArgument, fmt::format("{}: {}{}", label, compiled_->error(),
                                                   place_of(compiled_->error_arg(), pattern)));
}

RegularExpression::~RegularExpression() = default;

void RegularExpression::choose_group(std::uint32_t group, const std::string& label) {
  const int groups = compiled_->NumberOfCapturingGroups();
  if (group > kGroupMax || static_cast<int>(group) > groups)
    fail(StatusCode::kInvalidArgument,
         fmt::format("{}: there is no group {}: the pattern has {}, and at most {} have a number",
                     label, group, groups, kGroupMax));
  group_ = group;
}

void RegularExpression::set_replacement(std::string_view text, bool of_all,
                                        const std::string& label) {
  std::string error;
  if (!compiled_->CheckRewriteString(re2::StringPiece(text.data(), text.size()), &error))
    fail(StatusCode::kInvalidArgument, label + ": " + error);
  of_all_ = of_all;
  replacement_.assign(1, {});
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && text[i + 1] != '\\') {
      const auto group = static_cast<std::uint32_t>(text[++i] - '0');
      FLUGS_CHECK(group <= kGroupMax);
      replacement_.back().group = group;
      group_ = std::max(group_, group);
      replacement_.emplace_back();
    } else {
      i += text[i] == '\\' ? 1 : 0;
      replacement_.back().text += text[i];
    }
  }
}

bool RegularExpression::matches(std::string_view text) const {
  return compiled_->Match({text.data(), text.size()}, 0, text.size(), re2::RE2::UNANCHORED, nullptr,
                          0);
}

std::string_view RegularExpression::extract(std::string_view text) const {
  Groups groups;
  if (!compiled_->Match({text.data(), text.size()}, 0, text.size(), re2::RE2::UNANCHORED, groups,
                        static_cast<int>(group_) + 1))
    return {};
  return view_of(groups[group_]);
}

bool RegularExpression::replace(std::string_view text, GrowingText& out) const {
  FLUGS_DCHECK(!replacement_.empty());
  out.clear();
  if (text.data() == nullptr) text = "";
  Groups groups;
  std::size_t copied = 0;  // the text before it is in `out`
  std::size_t from = 0;
  std::size_t last_end = std::string_view::npos;  // of the match before
  while (from <= text.size() &&
         compiled_->Match({text.data(), text.size()}, from, text.size(), re2::RE2::UNANCHORED,
                          groups, static_cast<int>(group_) + 1)) {
    const auto begin = static_cast<std::size_t>(groups[0].data() - text.data());
    const std::size_t end = begin + groups[0].size();
    if (begin == end && begin == last_end) {
      // An empty match where the last one ends is none. The next one begins a character later.
      if (begin == text.size()) break;
      from = of_bytes_ ? begin + 1 : next_character(text, begin);
      continue;
    }
    out.append(text.substr(copied, begin - copied));
    for (const Part& part : replacement_) {
      out.append(part.text);
      if (part.group != Part::kNoGroup) out.append(view_of(groups[part.group]));
    }
    copied = from = last_end = end;
    if (!of_all_) break;
  }
  if (last_end == std::string_view::npos) return false;
  out.append(text.substr(copied));
  return true;
}

}  // namespace flugs::query
