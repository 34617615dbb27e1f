#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/types.h"
#include "flugs/column_batch.h"

namespace flugs::crash {

/// Rows as the arrays of a ColumnBatch, which it owns. The seed decides in which of the forms that
/// can hold them the values of a column lie, behind how many others, and whether there is a
/// dictionary.
class ColumnRows {
 public:
  /// Values of one column are all of one type, or NULL. Texts must outlive the object.
  ColumnRows(const std::vector<std::vector<Value>>& rows, std::size_t columns, std::uint64_t seed)
      : rows_(rows.size()), state_(seed) {
    for (std::size_t i = 0; i < columns; ++i) {
      std::vector<Value> values;
      values.reserve(rows.size());
      for (const std::vector<Value>& row : rows) values.push_back(row[i]);
      columns_.push_back(column_of(ColumnId(static_cast<std::uint16_t>(i)), values));
    }
  }
  ColumnBatch batch() const noexcept { return {rows_, columns_}; }
  std::vector<BatchColumn>& columns() noexcept { return columns_; }

 private:
  std::uint64_t below(std::uint64_t bound) noexcept {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return (state_ >> 33) % bound;
  }
  std::string& buffer(std::size_t bytes) { return buffers_.emplace_back(bytes, '\x5a'); }

  template <typename T>
  static void put(std::string& bytes, std::size_t place, T value) {
    std::memcpy(bytes.data() + place * sizeof(T), &value, sizeof(T));
  }

  BatchColumn column_of(ColumnId column, const std::vector<Value>& values) {
    if (below(3) != 0) return {column, array_of(values), {}};
    std::vector<Value> entries(below(3), Value::null());
    // Values that are written alike are few.
    std::unordered_map<std::string, std::vector<std::size_t>> written_as;
    for (std::size_t i = 0; i < entries.size(); ++i)
      written_as[entries[i].to_string()].push_back(i);
    std::vector<Value> codes;
    for (const Value& value : values) {
      std::vector<std::size_t>& alike = written_as[value.to_string()];
      auto entry = std::find_if(alike.begin(), alike.end(),
                                [&](std::size_t i) { return entries[i] == value; });
      if (entry == alike.end()) {
        entry = alike.insert(entry, entries.size());
        entries.push_back(value);
      }
      const bool is_null = value.is_null() && below(2) == 0;
      codes.push_back(is_null ? Value::null() : Value::int64(static_cast<std::int64_t>(*entry)));
    }
    return {column, array_of(codes), array_of(entries)};
  }

  ValueArray array_of(const std::vector<Value>& values) {
    ValueArray array;
    array.size = values.size();
    array.first = below(4) == 0 ? below(20) : 0;
    bool has_nulls = below(4) == 0;
    std::optional<Value> sample;
    for (const Value& value : values) {
      has_nulls |= value.is_null();
      if (!value.is_null()) sample = value;
    }
    if (!sample && below(2) == 0) return array;
    if (has_nulls) {
      std::string& bits = buffer((array.first + array.size) / 8 + 1);
      for (std::size_t i = 0; i < values.size(); ++i)
        put_bit(bits, array.first + i, !values[i].is_null());
      array.validity = reinterpret_cast<const std::uint8_t*>(bits.data());
    }
    array.type = sample ? sample->type() : Type::kInt64;
    array.scale = sample ? sample->scale() : std::uint8_t{0};
    if (is_text_type(array.type)) {
      put_texts(array, values);
    } else {
      put_numbers(array, values);
    }
    return array;
  }

  static void put_bit(std::string& bits, std::size_t place, bool bit) {
    const auto mask = static_cast<char>(1 << (place % 8));
    bits[place / 8] = static_cast<char>(bit ? bits[place / 8] | mask : bits[place / 8] & ~mask);
  }

  template <typename T>
  void put_as(ValueArray& array, ArrayForm form, const std::vector<Value>& values) {
    array.form = form;
    std::string& bytes = buffer((array.first + array.size) * sizeof(T));
    for (std::size_t i = 0; i < values.size(); ++i)
      if (!values[i].is_null()) put(bytes, array.first + i, static_cast<T>(values[i].raw()));
    array.values = bytes.data();
  }

  template <typename T>
  static bool fits(const std::vector<Value>& values) {
    return std::all_of(values.begin(), values.end(), [](const Value& value) {
      return value.is_null() || std::in_range<T>(value.raw());
    });
  }

  void put_numbers(ValueArray& array, const std::vector<Value>& values) {
    if (array.type == Type::kDouble) return put_as<std::int64_t>(array, ArrayForm::kDouble, values);
    if (array.type == Type::kBool && below(2) == 0) {
      array.form = ArrayForm::kBits;
      std::string& bits = buffer((array.first + array.size) / 8 + 1);
      for (std::size_t i = 0; i < values.size(); ++i)
        put_bit(bits, array.first + i, values[i].as_bool());
      array.values = bits.data();
      return;
    }
    if (array.type == Type::kBool) return put_as<std::uint8_t>(array, ArrayForm::kUint8, values);
    if (array.type == Type::kDecimal && below(2) == 0) {
      array.form = ArrayForm::kInt128;
      std::string& bytes = buffer((array.first + array.size) * 16);
      for (std::size_t i = 0; i < values.size(); ++i) {
        put(bytes, (array.first + i) * 2, values[i].raw());
        put(bytes, (array.first + i) * 2 + 1, std::int64_t{values[i].raw() < 0 ? -1 : 0});
      }
      array.values = bytes.data();
      return;
    }
    switch (below(8)) {
      case 0:
        if (fits<std::int8_t>(values)) return put_as<std::int8_t>(array, ArrayForm::kInt8, values);
        break;
      case 1:
        if (fits<std::uint8_t>(values))
          return put_as<std::uint8_t>(array, ArrayForm::kUint8, values);
        break;
      case 2:
        if (fits<std::int16_t>(values))
          return put_as<std::int16_t>(array, ArrayForm::kInt16, values);
        break;
      case 3:
        if (fits<std::uint16_t>(values))
          return put_as<std::uint16_t>(array, ArrayForm::kUint16, values);
        break;
      case 4:
        if (fits<std::uint32_t>(values))
          return put_as<std::uint32_t>(array, ArrayForm::kUint32, values);
        break;
      case 5:
        if (fits<std::uint64_t>(values))
          return put_as<std::uint64_t>(array, ArrayForm::kUint64, values);
        break;
      case 6:
        return put_as<std::int64_t>(array, ArrayForm::kInt64, values);
      default:
        break;
    }
    if (fits<std::int32_t>(values)) return put_as<std::int32_t>(array, ArrayForm::kInt32, values);
    put_as<std::int64_t>(array, ArrayForm::kInt64, values);
  }

  template <typename T>
  void put_offsets(ValueArray& array, ArrayForm form, const std::vector<Value>& values) {
    array.form = form;
    std::string& texts = buffer(below(5));
    std::string& offsets = buffer((array.first + array.size + 1) * sizeof(T));
    for (std::size_t i = 0; i < values.size(); ++i) {
      put(offsets, array.first + i, static_cast<T>(texts.size()));
      texts += values[i].as_string();
    }
    put(offsets, array.first + array.size, static_cast<T>(texts.size()));
    array.values = texts.data();
    array.offsets = offsets.data();
    array.text_bytes = texts.size();
  }

  void put_texts(ValueArray& array, const std::vector<Value>& values) {
    const std::uint64_t form = below(3);
    if (form == 0) return put_offsets<std::int32_t>(array, ArrayForm::kText32, values);
    if (form == 1) return put_offsets<std::int64_t>(array, ArrayForm::kText64, values);
    array.form = ArrayForm::kViews;
    std::string& texts = buffer(below(5));
    std::string& views = buffer((array.first + array.size) * 16);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::string_view text = values[i].as_string();
      char* const view = views.data() + (array.first + i) * 16;
      const auto size = static_cast<std::int32_t>(text.size());
      std::memset(view, 0, 16);
      std::memcpy(view, &size, 4);
      std::copy_n(text.data(), std::min<std::size_t>(text.size(), 12), view + 4);
      if (text.size() <= 12) continue;
      const std::int32_t place[2] = {1, static_cast<std::int32_t>(texts.size())};
      std::memcpy(view + 8, place, 8);
      texts += text;
    }
    std::vector<std::string_view>& buffers = view_buffers_.emplace_back();
    buffers = {std::string_view(), texts};
    array.values = views.data();
    array.buffers = buffers;
  }

  std::size_t rows_;
  std::uint64_t state_;
  std::deque<std::string> buffers_;  // their addresses stay
  std::deque<std::vector<std::string_view>> view_buffers_;
  std::vector<BatchColumn> columns_;
};

}  // namespace flugs::crash
