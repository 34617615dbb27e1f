#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace flugs {

/// "a, b, c", for messages: the names of all columns or keys of a schema that are not dropped.
/// After the first twenty comes the number of the others.
template <typename All>
std::string names_of(const All& all) {
  constexpr std::size_t kNamesMax = 20;
  std::string names;
  std::size_t count = 0;
  for (const auto& one : all) {
    bool dropped = false;
    if constexpr (requires { one.is_dropped; })
      dropped = one.is_dropped;
    else
      dropped = one.dropped;
    if (dropped || ++count > kNamesMax) continue;
    if (!names.empty()) names += ", ";
    names += one.name;
  }
  if (count > kNamesMax) names += " and " + std::to_string(count - kNamesMax) + " more";
  return names.empty() ? "none" : names;
}

/// "1 value", "2 values", for messages.
[[gnu::cold, gnu::noinline]] inline std::string counted(std::uint64_t count,
                                                        std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

}  // namespace flugs
