#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "query/vectors/run_context.h"

namespace re2 {
class RE2;
}

namespace flugs::query {

/// A text that grows piece by piece. Its memory counts for a budget, if there is one.
class GrowingText {
 public:
  explicit GrowingText(MemoryBudget* budget) {
    if (budget != nullptr) charge_ = Charge(*budget, "regexp_replace");
  }
  /// Fails with kOutOfMemory.
  void append(std::string_view part);
  void clear() noexcept { text_.clear(); }
  std::string_view view() const noexcept { return text_; }

 private:
  std::string text_;
  Charge charge_;
};

/// A regular expression in the syntax of RE2, compiled once for many texts.
/// Thread-safety: any thread. RE2 keeps states that it met, behind a lock of its own.
class RegularExpression {
 public:
  /// The groups that a pattern's user can name.
  static constexpr std::uint32_t kGroupMax = 9;

  /// `of_bytes`: a character is a byte (Latin-1), else one of UTF-8. Throws Failure, which names
  /// `label`, if RE2 refuses the pattern: it is wrong, or its program takes too much memory.
  RegularExpression(std::string_view pattern, bool of_bytes, const std::string& label);
  RegularExpression(const RegularExpression&) = delete;
  RegularExpression& operator=(const RegularExpression&) = delete;
  ~RegularExpression();

  /// Checks that the pattern has this group, and stands for it in `extract`. 0 is all of the match.
  void choose_group(std::uint32_t group, const std::string& label);
  /// Sets what `replace` puts in the place of a match: text in which \0 is the match, \1 to \9 a
  /// group and \\ a backslash. `of_all`: of every match, else of the first.
  void set_replacement(std::string_view text, bool of_all, const std::string& label);

  /// Whether some part of the text matches.
  bool matches(std::string_view text) const;
  /// The chosen group of the first match, as a view of the text. Empty: there is no match, or the
  /// group is not in it.
  std::string_view extract(std::string_view text) const;
  /// Puts the text with replaced matches into `out`. False: nothing matches, and `out` is empty.
  bool replace(std::string_view text, GrowingText& out) const;

 private:
  /// Text, and a group behind it.
  struct Part {
    static constexpr std::uint32_t kNoGroup = 0xFFFFFFFFu;
    std::string text;
    std::uint32_t group = kNoGroup;
  };

  std::unique_ptr<re2::RE2> compiled_;
  bool of_bytes_;
  std::uint32_t group_ = 0;  // of `extract`; the last one of the replacement
  std::vector<Part> replacement_;
  bool of_all_ = false;
};

}  // namespace flugs::query
