#include "bindings/c/options.h"

#include <algorithm>
#include <charconv>

namespace flugs::c {

OptionReader::OptionReader(const flugs_options* options) : options_(options) {
  if (options_ != nullptr && !options_->is_alive()) {
    problem_ = Status(StatusCode::kInvalidArgument, "options: freed, or no options");
    options_ = nullptr;
  }
}

const std::string* OptionReader::take(const char* name) {
  if (options_ == nullptr) return nullptr;
  known_.emplace_back(name);
  const auto found = options_->values.find(name);
  if (found == options_->values.end()) return nullptr;
  ++taken_;
  return &found->second;
}

void OptionReader::refuse(const char* name, const std::string& value, const std::string& wanted) {
  if (problem_.ok())
    problem_ = Status(StatusCode::kInvalidArgument,
                      "option " + std::string(name) + ": '" + value + "' is none of: " + wanted);
}

void OptionReader::read_number(const char* name, std::uint64_t max, std::uint64_t& out) {
  const std::string* text = take(name);
  if (text == nullptr) return;
  std::uint64_t value = 0;
  const char* const end = text->data() + text->size();
  const auto [rest, error] = std::from_chars(text->data(), end, value);
  static constexpr std::string_view kUnits = "KMGT";
  int shift = 0;
  const char* after = rest;
  if (after != end && kUnits.find(*after) != std::string_view::npos)
    shift = 10 * static_cast<int>(kUnits.find(*after++) + 1);
  if (error != std::errc() || after != end || value > (max >> shift))
    return refuse(name, *text, "0 to " + std::to_string(max) + ", also with K, M, G or T");
  out = value << shift;
}

void OptionReader::truth(const char* name, bool& out) {
  choice(name, {{"true", true}, {"false", false}}, out);
}

void OptionReader::text(const char* name, std::string& out) {
  if (const std::string* value = take(name)) out = *value;
}

void OptionReader::milliseconds(const char* name, std::chrono::milliseconds& out) {
  auto count = static_cast<std::uint32_t>(out.count());
  number(name, count);
  out = std::chrono::milliseconds(count);
}

Status OptionReader::finish() {
  if (problem_.ok() && options_ != nullptr && taken_ < options_->values.size()) {
    const auto is_unknown = [this](const auto& option) {
      return std::find(known_.begin(), known_.end(), option.first) == known_.end();
    };
    const auto unknown = std::find_if(options_->values.begin(), options_->values.end(), is_unknown);
    std::string known;
    for (const std::string& name : known_) known += (known.empty() ? "" : ", ") + name;
    return Status(StatusCode::kInvalidArgument,
                  "option " + unknown->first + " is none of: " + known);
  }
  return std::move(problem_);
}

}  // namespace flugs::c

using flugs::c::guarded;
using flugs::c::is_handle;

extern "C" {

flugs_error* flugs_options_create(flugs_options** out) {
  return guarded([&]() -> flugs_error* {
    if (out == nullptr) return flugs::c::no_pointer("out");
    *out = nullptr;
    *out = new flugs_options();
    return nullptr;
  });
}

flugs_error* flugs_options_set(flugs_options* options, const char* name, const char* value) {
  return guarded([&]() -> flugs_error* {
    if (!is_handle(options)) return flugs::c::no_handle("options");
    if (name == nullptr) return flugs::c::no_pointer("name");
    if (value == nullptr) return flugs::c::no_pointer("value");
    options->values[name] = value;
    return nullptr;
  });
}

void flugs_options_free(flugs_options* options) {
  if (is_handle(options)) delete options;
}
}
