#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings/c/errors.h"

struct flugs_options : flugs::c::Handle<flugs::c::Kind::kOptions> {
  std::map<std::string, std::string, std::less<>> values;
};

namespace flugs::c {

/// Reads the options of a call. Each function leaves `out` as it is if there is no such option; the
/// first one that does not fit is reported by `finish`, as is any that nothing has asked for.
class OptionReader {
 public:
  /// NULL: no options.
  explicit OptionReader(const flugs_options* options);

  template <std::unsigned_integral Number>
  void number(const char* name, Number& out) {
    std::uint64_t value = out;
    read_number(name, std::numeric_limits<Number>::max(), value);
    out = static_cast<Number>(value);
  }
  void truth(const char* name, bool& out);
  void text(const char* name, std::string& out);
  /// A number of milliseconds.
  void milliseconds(const char* name, std::chrono::milliseconds& out);
  template <typename Choice>
  void choice(const char* name, std::initializer_list<std::pair<const char*, Choice>> choices,
              Choice& out) {
    const std::string* value = take(name);
    if (value == nullptr) return;
    std::string known;
    for (const auto& [word, choice] : choices) {
      if (*value == word) {
        out = choice;
        return;
      }
      known += (known.empty() ? "" : ", ") + std::string(word);
    }
    refuse(name, *value, known);
  }

  /// Fails with: kInvalidArgument.
  Status finish();

 private:
  const std::string* take(const char* name);
  void read_number(const char* name, std::uint64_t max, std::uint64_t& out);
  void refuse(const char* name, const std::string& value, const std::string& wanted);

  const flugs_options* options_;
  std::vector<std::string> known_;
  std::size_t taken_ = 0;
  Status problem_;
};

}  // namespace flugs::c
