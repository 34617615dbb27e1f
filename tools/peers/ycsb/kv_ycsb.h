#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/ycsb/ycsb_findings.h"
#include "bench/ycsb/ycsb_request.h"
#include "bench/ycsb/ycsb_rows.h"
#include "bench/ycsb/ycsb_session.h"
#include "flugs/try.h"

// YCSB's rows in stores of keys and values.

namespace flugs::tools {

/// The key of a row, in the order of bytes: a number is written with its high byte first.
class KvYcsbKey {
 public:
  KvYcsbKey(bench::YcsbKeys keys, std::uint64_t number) noexcept
      : keys_(keys), text_(keys, number) {
    for (std::size_t i = bytes_.size(); i-- > 0; number >>= 8)
      bytes_[i] = static_cast<char>(number & 0xff);
  }
  std::string_view bytes() const noexcept {
    if (keys_ == bench::YcsbKeys::kInteger) return {bytes_.data(), bytes_.size()};
    return text_.text();
  }

 private:
  bench::YcsbKeys keys_;
  bench::YcsbKeyText text_;
  std::array<char, 8> bytes_;
};

/// A row's value: its fields, one behind the other.
class KvYcsbValues {
 public:
  explicit KvYcsbValues(const bench::YcsbRows& rows) : rows_(rows) {}

  std::size_t bytes() const noexcept { return std::size_t{rows_.fields} * rows_.field_bytes; }

  /// Writes one field of `value`, which has the value's bytes.
  void set_field(std::uint64_t number, std::uint32_t field, std::uint64_t version,
                 std::string& value) const {
    bench::ycsb_field(
        number, field, version,
        std::span(value).subspan(std::size_t{field} * rows_.field_bytes, rows_.field_bytes));
  }
  void set_all(std::uint64_t number, std::uint64_t version, std::string& value) const {
    value.resize(bytes());
    for (std::uint32_t field = 0; field < rows_.fields; ++field)
      set_field(number, field, version, value);
  }

  void consume(std::string_view value, bench::YcsbReceipt& receipt) const {
    for (std::uint32_t field = 0; field < rows_.fields; ++field)
      receipt.consume(field_of(value, field));
    ++receipt.rows;
  }

  /// Tells `findings` of a row that is there.
  void note(std::string_view key, std::string_view value, bench::YcsbFindings& findings) const {
    std::array<std::string_view, bench::kYcsbFieldsMax> all{};
    const std::span fields = std::span(all).first(rows_.fields);
    for (std::uint32_t field = 0; field < rows_.fields; ++field)
      fields[field] = field_of(value, field);
    if (rows_.keys != bench::YcsbKeys::kInteger) return findings.row(key, fields);
    std::uint64_t number = 0;
    for (const char byte : key) number = number << 8 | static_cast<unsigned char>(byte);
    findings.row(number, fields);
  }

 private:
  /// Empty where the value is too short.
  std::string_view field_of(std::string_view value, std::uint32_t field) const noexcept {
    const std::size_t begin = std::size_t{field} * rows_.field_bytes;
    return begin < value.size() ? value.substr(begin, rows_.field_bytes) : std::string_view();
  }

  bench::YcsbRows rows_;
};

/// Takes the rows of one scan, whose keys must rise: flugs's scan checks it, too.
class KvYcsbScan {
 public:
  KvYcsbScan(const KvYcsbValues& values, std::uint32_t length, bench::YcsbReceipt& receipt)
      : values_(values), length_(length), receipt_(receipt) {}

  /// Whether the scan goes on.
  bool take(std::string_view key, std::string_view value) {
    rises_ = receipt_.rows == 0 || before_ < key;
    before_ = key;
    values_.consume(value, receipt_);
    return rises_ && receipt_.rows < length_;
  }
  bool rises() const noexcept { return rises_; }

 private:
  const KvYcsbValues& values_;
  std::uint32_t length_;
  bench::YcsbReceipt& receipt_;
  std::string before_;  ///< the key of the row before
  bool rises_ = true;
};

/// Calls put(key, value) for each row that is loaded, in the order of keys.
template <typename Put>
Status load_kv_ycsb(const bench::YcsbRows& rows, Put put) {
  std::vector<std::pair<std::string, std::uint64_t>> keys;
  keys.reserve(rows.records);
  for (std::uint64_t number = 0; number < rows.records; ++number)
    keys.emplace_back(KvYcsbKey(rows.keys, number).bytes(), number);
  std::sort(keys.begin(), keys.end());
  const KvYcsbValues values(rows);
  std::string value;
  for (const auto& [key, number] : keys) {
    values.set_all(number, 0, value);
    FLUGS_TRY(put(key, value));
  }
  return {};
}

}  // namespace flugs::tools
