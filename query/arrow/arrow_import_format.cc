#include "query/arrow/arrow_import_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

namespace flugs::query {

namespace {

constexpr std::int64_t kDayMs = 86'400'000;

Status bad_format(std::string_view format, std::string_view why = "no column takes this type") {
  return Status(StatusCode::kInvalidArgument,
                fmt::format("Arrow format \"{}\": {}", format.substr(0, 40), why));
}

/// Reads a number at the beginning of `text`, and takes it off.
bool take_number(std::string_view& text, std::int64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

bool take(std::string_view& text, char wanted) {
  if (text.empty() || text.front() != wanted) return false;
  text.remove_prefix(1);
  return true;
}

// "d:19,10" or "d:19,10,128": digits, scale, bits.
Result<ArrowFormat> read_decimal(std::string_view format) {
  std::string_view rest = format.substr(1);
  std::int64_t digits = 0;
  std::int64_t scale = 0;
  std::int64_t bits = 128;
  if (!take(rest, ':') || !take_number(rest, digits) || !take(rest, ',') ||
      !take_number(rest, scale))
    return bad_format(format, "it cannot be read");
  if (take(rest, ',') && !take_number(rest, bits)) return bad_format(format, "it cannot be read");
  if (!rest.empty()) return bad_format(format, "it cannot be read");
  if (scale < 0 || scale > Value::kScaleMax)
    return bad_format(format, "a decimal has a scale from 0 to 18");
  ArrowFormat found{ArrayForm::kInt128, Type::kDecimal, static_cast<std::uint8_t>(scale)};
  if (bits == 32) found.form = ArrayForm::kInt32;
  if (bits == 64) found.form = ArrayForm::kInt64;
  if (bits != 32 && bits != 64 && bits != 128)
    return bad_format(format, "a decimal has 32, 64 or 128 bits");
  return found;
}

// "tss:zone" and so on; "tdD", "tdm".
Result<ArrowFormat> read_time(std::string_view format) {
  ArrowFormat found{ArrayForm::kInt64, Type::kTimestamp};
  if (format == "tdD") return ArrowFormat{ArrayForm::kInt32, Type::kDate};
  if (format == "tdm") {
    found.type = Type::kDate;
    found.change = ArrowChange::kDivided;
    found.factor = kDayMs;
    return found;
  }
  if (format.size() < 4 || format[1] != 's' || format[3] != ':') return bad_format(format);
  switch (format[2]) {
    case 's':
      found.change = ArrowChange::kMultiplied;
      found.factor = 1'000'000;
      return found;
    case 'm':
      found.change = ArrowChange::kMultiplied;
      found.factor = 1'000;
      return found;
    case 'u':
      return found;
    case 'n':
      found.change = ArrowChange::kDivided;
      found.factor = 1'000;
      return found;
    default:
      return bad_format(format);
  }
}

constexpr std::pair<std::string_view, ArrowFormat> kFormats[] = {
    {"n", {ArrayForm::kNulls}},
    {"b", {ArrayForm::kBits, Type::kBool}},
    {"c", {ArrayForm::kInt8}},
    {"C", {ArrayForm::kUint8}},
    {"s", {ArrayForm::kInt16}},
    {"S", {ArrayForm::kUint16}},
    {"i", {ArrayForm::kInt32}},
    {"I", {ArrayForm::kUint32}},
    {"l", {ArrayForm::kInt64}},
    {"L", {ArrayForm::kUint64}},
    {"e", {ArrayForm::kDouble, Type::kDouble, 0, ArrowChange::kHalf}},
    {"f", {ArrayForm::kFloat, Type::kDouble}},
    {"g", {ArrayForm::kDouble, Type::kDouble}},
    {"u", {ArrayForm::kText32, Type::kString}},
    {"U", {ArrayForm::kText64, Type::kString}},
    {"vu", {ArrayForm::kViews, Type::kString}},
    {"z", {ArrayForm::kText32, Type::kBytes}},
    {"Z", {ArrayForm::kText64, Type::kBytes}},
    {"vz", {ArrayForm::kViews, Type::kBytes}},
};
static_assert(std::ranges::all_of(kFormats, [](const auto& of) { return fits_change(of.second); }));
// No format stands twice, or hides those that read_arrow_format finds by their first letter.
static_assert(std::ranges::all_of(kFormats, [](const auto& of) {
  return std::ranges::count(kFormats, of.first, [](const auto& to) { return to.first; }) == 1;
}));
static_assert(std::ranges::none_of(kFormats, [](const auto& of) {
  return of.first[0] == 'd' || of.first[0] == 't' || of.first[0] == 'w';
}));

}  // namespace

Result<ArrowFormat> read_arrow_format(const char* format) {
  if (format == nullptr) return bad_format("", "a field without a format");
  const std::string_view text(format);
  for (const auto& [name, found] : kFormats)
    if (name == text) return found;
  if (text.starts_with("d")) return read_decimal(text);
  if (text.starts_with("t")) return read_time(text);
  if (text.starts_with("w:")) {
    std::string_view rest = text.substr(2);
    ArrowFormat found{ArrayForm::kText64, Type::kBytes, 0, ArrowChange::kFixedSize};
    if (!take_number(rest, found.factor) || !rest.empty() || found.factor < 0 ||
        found.factor > std::int64_t{1} << 31)
      return bad_format(text, "it cannot be read");
    return found;
  }
  if (text == "+r") return bad_format(text, "decode run-end encoded columns first");
  return bad_format(text);
}

Result<ArrowField> read_arrow_field(const ArrowSchema& schema) {
  ArrowField field;
  field.name = schema.name == nullptr ? "" : schema.name;
  const auto failed = [&](const Status& why) {
    return why.with_message(fmt::format("field {}: {}", field.name, why.message()));
  };
  Result<ArrowFormat> format = read_arrow_format(schema.format);
  if (!format.ok()) return failed(format.status());
  field.format = *format;
  if (schema.dictionary == nullptr) return field;
  if (schema.dictionary->dictionary != nullptr)
    return failed(bad_format(schema.format, "a dictionary of a dictionary"));
  Result<ArrowFormat> entries = read_arrow_format(schema.dictionary->format);
  if (!entries.ok()) return failed(entries.status());
  field.entries = *entries;
  if (field.format.type != Type::kInt64 || field.format.form == ArrayForm::kNulls ||
      field.format.change != ArrowChange::kNone)
    return failed(bad_format(schema.format, "indices of a dictionary must be integers"));
  return field;
}

}  // namespace flugs::query
