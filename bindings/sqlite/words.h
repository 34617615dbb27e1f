#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "flugs/status.h"

namespace flugs::sqlite {

/// A word of SQL.
struct Word {
  enum class Kind : std::uint8_t { kName, kQuoted, kText, kNumber, kBlob, kSign };
  Kind kind = Kind::kSign;
  std::string text;  ///< without quotes; the bytes of a blob
};

/// The words of a piece of SQL, taken one by one.
class Words {
 public:
  /// Fails with: kInvalidArgument (a quote without an end, a sign that SQL has not).
  static Result<Words> of(std::string_view text);

  bool is_at_end() const noexcept { return at_ == words_.size(); }
  /// An empty sign at the end.
  const Word& front() const noexcept;
  Word take();
  /// Takes the next word if it is this one, in any case of letters.
  bool take(std::string_view word);
  /// The next word is this one.
  bool is_next(std::string_view word) const noexcept;
  /// Takes a name. Fails with: kInvalidArgument.
  Result<std::string> take_name(std::string_view of_what);
  /// Takes "(a, b)". Fails with: kInvalidArgument.
  Result<std::vector<std::string>> take_names();
  /// The error that the next word is not understood.
  Status unexpected() const;

 private:
  std::string all_;
  std::vector<Word> words_;
  std::size_t at_ = 0;
};

}  // namespace flugs::sqlite
