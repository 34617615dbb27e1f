#pragma once

#include <deque>
#include <string>
#include <string_view>

namespace flugs::query {

/// The texts of a running query's constants; see RunContext.
/// Thread-safety: the thread that plans the query.
class TextStore {
 public:
  /// A copy, which stays in place.
  std::string_view keep(std::string_view text) { return texts_.emplace_back(text); }

 private:
  std::deque<std::string> texts_;
};

}  // namespace flugs::query
