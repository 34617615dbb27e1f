#pragma once

#include <charconv>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace flugs::c {

/// Writes JSON, field by field.
class Json {
 public:
  void begin_object() { open('{'); }
  void end_object() { close('}'); }
  void begin_list() { open('['); }
  void end_list() { close(']'); }
  /// What comes next is the value of this field.
  Json& key(std::string_view name) {
    text(name);
    out_ += ':';
    needs_comma_ = false;
    return *this;
  }

  void text(std::string_view value) {
    separate();
    out_ += '"';
    for (const char c : value) add_character(c);
    out_ += '"';
  }
  void word(std::string_view value) {
    separate();
    out_ += value;
  }

  void field(std::string_view name, std::string_view value) { key(name).text(value); }
  void field(std::string_view name, const char* value) { key(name).text(value); }
  void field(std::string_view name, std::same_as<bool> auto value) {
    key(name).word(value ? "true" : "false");
  }
  void field(std::string_view name, double value) {
    char digits[32];
    const auto [end, error] = std::to_chars(digits, digits + sizeof digits, value);
    key(name).word({digits, end});
  }
  template <std::integral Number>
    requires(!std::same_as<Number, bool>)
  void field(std::string_view name, Number value) {
    key(name).word(std::to_string(value));
  }

  std::string take() { return std::move(out_); }

 private:
  void separate() {
    if (needs_comma_) out_ += ',';
    needs_comma_ = true;
  }
  void open(char bracket) {
    separate();
    out_ += bracket;
    needs_comma_ = false;
  }
  void close(char bracket) {
    out_ += bracket;
    needs_comma_ = true;
  }
  void add_character(char c) {
    static constexpr char kDigits[] = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out_ += '\\';
      out_ += c;
    } else if (byte < 0x20) {
      out_ += "\\u00";
      out_ += kDigits[byte >> 4];
      out_ += kDigits[byte & 15];
    } else {
      out_ += c;
    }
  }

  std::string out_;
  bool needs_comma_ = false;
};

}  // namespace flugs::c
