#include "bench/ycsb/ycsb_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace flugs::bench {

void YcsbReport::check(YcsbInvariant invariant) noexcept {
  Check& state = states_[static_cast<std::size_t>(invariant)];
  if (state == Check::kNotChecked) state = Check::kHeld;
}

void YcsbReport::broken(YcsbInvariant invariant, std::string problem) {
  const auto index = static_cast<std::size_t>(invariant);
  states_[index] = Check::kBroken;
  if (problems_.size() < kProblemsMax)
    problems_.push_back(std::string(kYcsbInvariantNames[index]) + ": " + std::move(problem));
}

bool YcsbReport::all_held() const noexcept {
  return std::find(states_.begin(), states_.end(), Check::kBroken) == states_.end();
}

YcsbFindings::YcsbFindings(const YcsbRows& rows, std::uint64_t count)
    : rows_(rows), are_there_(count) {
  report_.check(YcsbInvariant::kKeys);
  report_.check(YcsbInvariant::kFields);
  if (rows.keys != YcsbKeys::kHashed) return;
  names_.reserve(count);
  for (std::uint64_t number = 0; number < count; ++number)
    names_.push_back({ycsb_hash(number), number});
  std::sort(names_.begin(), names_.end(),
            [](const Name& a, const Name& b) { return a.digits < b.digits; });
}

void YcsbFindings::row(std::string_view key, std::span<const std::string_view> fields) {
  constexpr std::string_view kPrefix = "user";
  std::uint64_t digits = 0;
  const char* const end = key.data() + key.size();
  const bool is_key = key.substr(0, kPrefix.size()) == kPrefix &&
                      std::from_chars(key.data() + kPrefix.size(), end, digits).ptr == end;
  std::uint64_t number = digits;
  if (rows_.keys == YcsbKeys::kHashed) {
    const auto found = std::lower_bound(
        names_.begin(), names_.end(), digits,
        [](const Name& name, std::uint64_t wanted) { return name.digits < wanted; });
    number = found != names_.end() && found->digits == digits ? found->number : are_there_.size();
  }
  // Other texts may have the same number at their end.
  if (!is_key || number >= are_there_.size() || YcsbKeyText(rows_.keys, number).text() != key)
    report_.broken(YcsbInvariant::kKeys, fmt::format("no row has the key '{}'", key));
  else
    row(number, fields);
}

void YcsbFindings::row(std::uint64_t number, std::span<const std::string_view> fields) {
  if (number >= are_there_.size()) {
    report_.broken(YcsbInvariant::kKeys, fmt::format("there is a row {}", number));
    return;
  }
  if (are_there_[number])
    report_.broken(YcsbInvariant::kKeys, fmt::format("row {} is there twice", number));
  are_there_[number] = true;
  for (std::uint32_t field = 0; field < fields.size(); ++field)
    if (fields[field].size() != rows_.field_bytes || !ycsb_version(number, field, fields[field]))
      report_.broken(YcsbInvariant::kFields,
                     fmt::format("field {} of row {} is '{}'", field, number, fields[field]));
}

YcsbReport YcsbFindings::check() {
  for (std::uint64_t number = 0; number < are_there_.size(); ++number)
    if (!are_there_[number])
      report_.broken(YcsbInvariant::kKeys, fmt::format("row {} is missing", number));
  return report_;
}

}  // namespace flugs::bench
