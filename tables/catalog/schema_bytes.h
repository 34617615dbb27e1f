#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"

namespace flugs::engine {

/// Bytes of a schema: integers little-endian, names as a length byte and bytes (format.md,
/// "Schema").
class SchemaWriter {
 public:
  void u8(std::uint8_t v) { bytes_.push_back(static_cast<char>(v)); }
  void u16(std::uint16_t v) {
    u8(static_cast<std::uint8_t>(v));
    u8(static_cast<std::uint8_t>(v >> 8));
  }
  void u32(std::uint32_t v) {
    u16(static_cast<std::uint16_t>(v));
    u16(static_cast<std::uint16_t>(v >> 16));
  }
  void u64(std::uint64_t v) {
    u32(static_cast<std::uint32_t>(v));
    u32(static_cast<std::uint32_t>(v >> 32));
  }
  void name(const std::string& v) {
    FLUGS_CHECK(v.size() <= 0xFF);
    u8(static_cast<std::uint8_t>(v.size()));
    bytes_ += v;
  }
  void text(std::string_view v) {
    FLUGS_CHECK(v.size() <= 0xFFFFFFFF);
    u32(static_cast<std::uint32_t>(v.size()));
    bytes_ += v;
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Reads a schema's bytes, and trusts nothing: behind the end everything is 0 or empty, and
/// failed() is true.
class SchemaReader {
 public:
  explicit SchemaReader(std::string_view bytes) : bytes_(bytes) {}
  bool failed() const noexcept { return failed_; }
  bool at_end() const noexcept { return bytes_.empty(); }
  std::uint8_t u8() {
    if (bytes_.empty()) {
      failed_ = true;
      return 0;
    }
    const auto v = static_cast<std::uint8_t>(bytes_.front());
    bytes_.remove_prefix(1);
    return v;
  }
  std::uint16_t u16() {
    const std::uint16_t low = u8();
    return static_cast<std::uint16_t>(low | (u8() << 8));
  }
  std::uint32_t u32() {
    const std::uint32_t low = u16();
    return low | (std::uint32_t{u16()} << 16);
  }
  std::uint64_t u64() {
    const std::uint64_t low = u32();
    return low | (std::uint64_t{u32()} << 32);
  }
  std::string name() { return take(u8()); }
  std::string text() { return take(u32()); }

 private:
  std::string take(std::size_t size) {
    if (size > bytes_.size()) {
      failed_ = true;
      return {};
    }
    std::string v(bytes_.substr(0, size));
    bytes_.remove_prefix(size);
    return v;
  }

  std::string_view bytes_;
  bool failed_ = false;
};

}  // namespace flugs::engine
