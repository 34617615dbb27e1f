#pragma once

#include <cstdint>
#include <string>

#include "flugs/status.h"

namespace flugs::test {

/// The ways in which a call may end: mostly one.
class Outcomes {
 public:
  Outcomes() = default;                             ///< ok
  Outcomes(StatusCode code) : codes_(bit(code)) {}  // NOLINT(google-explicit-constructor)

  Outcomes operator|(Outcomes other) const {
    Outcomes both;
    both.codes_ = codes_ | other.codes_;
    return both;
  }
  /// The outcome cannot be predicted: the call must not be made.
  static Outcomes untold() {
    Outcomes none;
    none.codes_ = 0;
    return none;
  }
  bool is_untold() const { return codes_ == 0; }
  bool is_only(StatusCode code) const { return codes_ == bit(code); }
  bool admits(StatusCode code) const { return (codes_ & bit(code)) != 0; }
  /// It must succeed.
  bool ok() const { return codes_ == bit(StatusCode::kOk); }
  std::string to_string() const {
    std::string text;
    for (unsigned i = 0; i < 32; ++i)
      if ((codes_ >> i & 1) != 0)
        text += (text.empty() ? "" : " or ") + std::string(flugs::to_string(StatusCode(i)));
    return text;
  }

 private:
  static std::uint32_t bit(StatusCode code) { return 1U << static_cast<unsigned>(code); }
  std::uint32_t codes_ = bit(StatusCode::kOk);
};

}  // namespace flugs::test
