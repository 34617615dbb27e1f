#include "tables/batches/column_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/exact_value.h"
#include "base/types.h"
#include "columns/column/column.h"

namespace flugs::engine {

namespace {

template <typename T>
T load(const void* base, std::size_t place) noexcept {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(base) + place * sizeof(T), sizeof(T));
  return value;
}

bool bit_at(const void* bits, std::size_t place) noexcept {
  return (static_cast<const std::uint8_t*>(bits)[place / 8] >> (place % 8) & 1) != 0;
}

bool is_integers(ArrayForm form) noexcept {
  return form >= ArrayForm::kInt8 && form <= ArrayForm::kUint64;
}

bool is_texts(ArrayForm form) noexcept {
  return form == ArrayForm::kText32 || form == ArrayForm::kText64 || form == ArrayForm::kViews;
}

/// Whether no number of the form needs more than 32 bits with a sign.
bool is_short(ArrayForm form) noexcept {
  return form == ArrayForm::kBits || (form >= ArrayForm::kInt8 && form <= ArrayForm::kInt32);
}

/// Calls act(T()) with the type of the integers.
template <typename F>
auto with_integer(ArrayForm form, F&& act) {
  switch (form) {
    // NOLINTNEXTLINE(bugprone-branch-clone): each branch gives another type
    case ArrayForm::kInt8:
      return act(std::int8_t());
    case ArrayForm::kUint8:
      return act(std::uint8_t());
    case ArrayForm::kInt16:
      return act(std::int16_t());
    case ArrayForm::kUint16:
      return act(std::uint16_t());
    case ArrayForm::kInt32:
      return act(std::int32_t());
    case ArrayForm::kUint32:
      return act(std::uint32_t());
    case ArrayForm::kUint64:
      return act(std::uint64_t());
    default:
      FLUGS_DCHECK(form == ArrayForm::kInt64);
      return act(std::int64_t());
  }
}

std::int64_t bits_of(double value) noexcept { return Value::real(value).raw(); }

/// The payload of a number at a place; false: it does not fit 64 bits with a sign.
bool payload_at(const ValueArray& array, std::size_t place, std::int64_t& payload) noexcept {
  switch (array.form) {
    case ArrayForm::kBits:
      payload = bit_at(array.values, place) ? 1 : 0;
      return true;
    case ArrayForm::kFloat:
      payload = bits_of(load<float>(array.values, place));
      return true;
    case ArrayForm::kDouble:
      payload = load<std::int64_t>(array.values, place);
      return true;
    case ArrayForm::kInt128:
      payload = load<std::int64_t>(array.values, place * 2);
      return load<std::int64_t>(array.values, place * 2 + 1) == (payload < 0 ? -1 : 0);
    default:
      return with_integer(array.form, [&](auto type) {
        const auto value = load<decltype(type)>(array.values, place);
        payload = static_cast<std::int64_t>(value);
        return std::in_range<std::int64_t>(value);
      });
  }
}

/// The text at a place; false: it is not inside of the texts.
bool text_at(const ValueArray& array, std::size_t place, std::string_view& text) noexcept {
  if (array.form == ArrayForm::kViews) {
    const auto bytes = load<std::int32_t>(array.values, place * 4);
    const char* view = static_cast<const char*>(array.values) + place * 16;
    if (bytes < 0) return false;
    const auto size = static_cast<std::size_t>(bytes);
    text = {view + 4, size};
    if (size <= 12) return true;
    const auto buffer = load<std::int32_t>(view + 8, 0);
    const auto offset = load<std::int32_t>(view + 12, 0);
    if (buffer < 0 || offset < 0 || static_cast<std::size_t>(buffer) >= array.buffers.size())
      return false;
    const std::string_view all = array.buffers[static_cast<std::size_t>(buffer)];
    const auto from = static_cast<std::size_t>(offset);
    if (from > all.size() || size > all.size() - from) return false;
    text = all.substr(from, size);
    return true;
  }
  const bool is_wide = array.form == ArrayForm::kText64;
  const auto from =
      is_wide ? load<std::int64_t>(array.offsets, place) : load<std::int32_t>(array.offsets, place);
  const auto end = is_wide ? load<std::int64_t>(array.offsets, place + 1)
                           : load<std::int32_t>(array.offsets, place + 1);
  if (from < 0 || end < from || static_cast<std::uint64_t>(end) > array.text_bytes) return false;
  text = {static_cast<const char*>(array.values) + from, static_cast<std::size_t>(end - from)};
  return true;
}

bool is_null_at(const ValueArray& array, std::size_t row) noexcept {
  return array.form == ArrayForm::kNulls ||
         (array.validity != nullptr && !bit_at(array.validity, array.first + row));
}

/// Sets is_null of the rows, and has_nulls.
void read_nulls(const ValueArray& array, std::size_t first, std::size_t rows, BlockColumn& out) {
  out.has_nulls = array.form == ArrayForm::kNulls;
  if (out.has_nulls) std::fill_n(out.is_null.begin(), rows, std::uint8_t{1});
  if (out.has_nulls || array.validity == nullptr) return;
  std::uint8_t any = 0;
  for (std::size_t i = 0; i < rows; ++i) {
    out.is_null[i] = bit_at(array.validity, array.first + first + i) ? 0 : 1;
    any |= out.is_null[i];
  }
  out.has_nulls = any != 0;
}

/// Returns how many rows are before the first number that does not fit 64 bits.
std::size_t read_numbers(const ValueArray& array, std::size_t first, std::size_t rows,
                         BlockColumn& out) {
  const std::size_t begin = array.first + first;
  std::size_t good = rows;
  if (array.form == ArrayForm::kNulls) {
    std::fill_n(out.payloads.begin(), rows, 0);
    return rows;
  }
  if (is_integers(array.form) && array.form != ArrayForm::kUint64) {
    with_integer(array.form, [&](auto type) {
      for (std::size_t i = 0; i < rows; ++i)
        out.payloads[i] = static_cast<std::int64_t>(load<decltype(type)>(array.values, begin + i));
    });
  } else if (array.form == ArrayForm::kDouble) {
    std::memcpy(out.payloads.data(), static_cast<const std::byte*>(array.values) + begin * 8,
                rows * 8);
  } else {
    for (std::size_t i = 0; i < good; ++i)
      if (!payload_at(array, begin + i, out.payloads[i]) && !out.is_null_at(i)) good = i;
  }
  for (std::size_t i = 0; out.has_nulls && i < good; ++i)
    out.payloads[i] = out.is_null[i] != 0 ? 0 : out.payloads[i];
  return good;
}

std::size_t read_texts(const ValueArray& array, std::size_t first, std::size_t rows,
                       BlockColumn& out) {
  for (std::size_t i = 0; i < rows; ++i) {
    if (out.is_null_at(i)) {
      out.texts[i] = {};
    } else if (!text_at(array, array.first + first + i, out.texts[i]) ||
               out.texts[i].size() > columns::kTextBytesMax) {
      return i;
    }
  }
  return rows;
}

Status bad_array(const std::string& message) {
  return Status(StatusCode::kInvalidArgument, message);
}

bool fits_type(ArrayForm form, Type type) noexcept {
  if (form == ArrayForm::kNulls) return true;
  switch (facts_of(type).family) {
    case Family::kTruth:
      return form == ArrayForm::kBits || form == ArrayForm::kInt8 || form == ArrayForm::kUint8;
    case Family::kReal:
      return form == ArrayForm::kFloat || form == ArrayForm::kDouble;
    case Family::kDecimal:
      return is_integers(form) || form == ArrayForm::kInt128;
    case Family::kInteger:
    case Family::kTime:
      return is_integers(form);
    case Family::kText:
      return is_texts(form);
  }
  FLUGS_CHECK(false);
}

Status check_array(const ValueArray& array) {
  if (array.form > ArrayForm::kViews || !is_known_type(array.type))
    return bad_array("unknown form or type of values");
  if (!fits_type(array.form, array.type))
    return bad_array(fmt::format("values of type {} cannot have form {}", to_string(array.type),
                                 static_cast<unsigned>(array.form)));
  if (array.type == Type::kDecimal && array.scale > Value::kScaleMax &&
      array.scale != Value::kScaleOfColumn)
    return bad_array("a decimal has a scale of at most 18");
  constexpr std::size_t kPlacesMax = std::numeric_limits<std::size_t>::max() / 16 - 1;
  if (array.first > kPlacesMax || array.size > kPlacesMax - array.first)
    return bad_array("too many values");
  if (array.size == 0 || array.form == ArrayForm::kNulls) return {};
  const bool has_offsets = array.form == ArrayForm::kText32 || array.form == ArrayForm::kText64;
  if (has_offsets && array.offsets == nullptr) return bad_array("no offsets of texts");
  if (array.values == nullptr && (!has_offsets || array.text_bytes != 0))
    return bad_array("no values");
  return {};
}

}  // namespace

ColumnReader::ColumnReader(const BatchColumn& column, const DefinedColumn& defined) noexcept
    : batch_(&column),
      defined_(defined),
      data_(column.dictionary ? &*column.dictionary : &column.values),
      conversion_(conversion()) {}

ColumnReader::ColumnReader(const Value& value, const DefinedColumn& defined) noexcept
    : batch_(nullptr),
      defined_(defined),
      data_(nullptr),
      constant_(columns::normalised(value, defined.type)) {}

ColumnReader::Conversion ColumnReader::conversion() const noexcept {
  const Type from = data_->type;
  const Type to = defined_.type;
  if (is_text_type(from) || is_text_type(to))
    return from == to || (from == Type::kString && to == Type::kBytes) ? Conversion::kNone
                                                                       : Conversion::kByValue;
  if (is_integer_type(from) && is_integer_type(to))
    return to == Type::kInt32 && !is_short(data_->form) ? Conversion::kNarrow : Conversion::kNone;
  if (from != to) return Conversion::kByValue;
  switch (to) {
    case Type::kBool:
      return Conversion::kTruth;
    case Type::kDouble:
      return Conversion::kReal;
    case Type::kDecimal:
      return data_->scale == defined_.scale || data_->scale == Value::kScaleOfColumn
                 ? Conversion::kNone
                 : Conversion::kByValue;
    default:
      return is_narrow_type(to) && !is_short(data_->form) ? Conversion::kNarrow : Conversion::kNone;
  }
}

Status ColumnReader::check(std::size_t rows) const {
  if (is_constant()) return {};
  const ValueArray& values = batch_->values;
  if (values.size != rows)
    return bad_array(fmt::format("{} values for {} rows", values.size, rows));
  if (Status s = check_array(values); !s.ok()) return s;
  if (!batch_->dictionary) return {};
  if (values.form != ArrayForm::kNulls && !is_integers(values.form))
    return bad_array("codes must be integers");
  if (batch_->dictionary->size > std::numeric_limits<std::uint32_t>::max())
    return bad_array("a dictionary has at most 2^32 - 1 entries");
  return check_array(*batch_->dictionary);
}

// All reads of a code and of an entry are checked here.
std::size_t ColumnReader::read_entries(std::size_t first, std::size_t rows,
                                       BlockColumn& out) const {
  const ValueArray& codes = batch_->values;
  const ValueArray& entries = *batch_->dictionary;
  std::size_t good = codes.form == ArrayForm::kNulls ? 0 : rows;
  if (good != 0)
    with_integer(codes.form, [&](auto type) {
      for (std::size_t i = 0; i < rows; ++i) {
        const auto code = load<decltype(type)>(codes.values, codes.first + first + i);
        const bool is_entry = std::cmp_greater_equal(code, 0) && std::cmp_less(code, entries.size);
        out.entries[i] = is_entry ? static_cast<std::uint32_t>(code) : 0;
        if (!is_entry && !out.is_null_at(i)) {
          good = i;
          return;
        }
      }
    });
  else
    good = rows;
  if (entries.validity != nullptr || entries.form == ArrayForm::kNulls) {
    if (!out.has_nulls) std::fill_n(out.is_null.begin(), good, std::uint8_t{0});
    for (std::size_t i = 0; i < good; ++i)
      if (!out.has_nulls || out.is_null[i] == 0)
        out.is_null[i] = is_null_at(entries, out.entries[i]) ? 1 : 0;
    out.has_nulls = true;
  }
  for (std::size_t i = 0; i < good; ++i) {
    if (out.is_null_at(i)) {
      out.texts[i] = {};
      out.payloads[i] = 0;
      continue;
    }
    const std::size_t place = entries.first + out.entries[i];
    if (is_texts(entries.form)
            ? !text_at(entries, place, out.texts[i]) || out.texts[i].size() > columns::kTextBytesMax
            : !payload_at(entries, place, out.payloads[i]))
      return i;
  }
  return good;
}

std::size_t ColumnReader::read(std::size_t first, std::size_t rows, BlockColumn& out) const {
  FLUGS_DCHECK(rows <= kBlockRows);
  out.is_text = defined_.is_text;
  if (is_constant()) {
    out.has_nulls = constant_.is_null();
    if (out.has_nulls) std::fill_n(out.is_null.begin(), rows, std::uint8_t{1});
    std::fill_n(out.payloads.begin(), rows, constant_.is_null() ? 0 : constant_.raw());
    std::fill_n(out.texts.begin(), rows, constant_.as_string());
    return rows;
  }
  read_nulls(batch_->values, first, rows, out);
  std::size_t good = rows;
  if (batch_->dictionary) {
    good = read_entries(first, rows, out);
  } else if (is_texts(data_->form)) {
    good = read_texts(*data_, first, rows, out);
  } else {
    good = read_numbers(*data_, first, rows, out);
    if (data_->form == ArrayForm::kNulls) std::fill_n(out.texts.begin(), rows, std::string_view());
  }
  return convert(good, out);
}

// As columns::normalised for the types of numbers.
std::size_t ColumnReader::convert(std::size_t rows, BlockColumn& out) const {
  switch (conversion_) {
    case Conversion::kNone:
      return rows;
    case Conversion::kTruth:
      for (std::size_t i = 0; i < rows; ++i) out.payloads[i] = out.payloads[i] != 0 ? 1 : 0;
      return rows;
    case Conversion::kReal: {
      const std::int64_t nan = bits_of(std::numeric_limits<double>::quiet_NaN());
      const std::int64_t minus_zero = bits_of(-0.0);
      constexpr std::uint64_t kInfinity = 0x7FF0'0000'0000'0000u;
      for (std::size_t i = 0; i < rows; ++i) {
        const std::int64_t bits = out.payloads[i];
        const bool is_nan =
            (static_cast<std::uint64_t>(bits) & ~(std::uint64_t{1} << 63)) > kInfinity;
        out.payloads[i] = is_nan ? nan : bits == minus_zero ? 0 : bits;
      }
      return rows;
    }
    case Conversion::kNarrow: {
      std::int64_t wide = 0;
      for (std::size_t i = 0; i < rows; ++i)
        wide |= out.payloads[i] ^ static_cast<std::int32_t>(out.payloads[i]);
      if (wide == 0) return rows;
      const auto is_wide = [](std::int64_t payload) {
        return !std::in_range<std::int32_t>(payload);
      };
      const auto* begin = out.payloads.data();
      return static_cast<std::size_t>(std::find_if(begin, begin + rows, is_wide) - begin);
    }
    case Conversion::kByValue:
      return convert_by_value(rows, out);
  }
  return rows;
}

namespace {

/// The number as its array says it; false: no Value can be it.
bool value_of(const ValueArray& array, std::int64_t payload, Value& value) noexcept {
  Type type = array.type;
  if (is_narrow_type(type) && !std::in_range<std::int32_t>(payload)) {
    if (type != Type::kInt32) return false;
    type = Type::kInt64;
  }
  if (type == Type::kBool) payload = payload != 0 ? 1 : 0;
  value = Value::from_raw(type, payload);
  if (type == Type::kDecimal) value = value.with_scale(array.scale);
  return true;
}

}  // namespace

std::size_t ColumnReader::convert_by_value(std::size_t rows, BlockColumn& out) const {
  for (std::size_t i = 0; i < rows; ++i) {
    if (out.is_null_at(i)) {
      out.payloads[i] = 0;
      out.texts[i] = {};
      continue;
    }
    if (data_->form == ArrayForm::kNulls) return i;
    Value value;
    if (is_texts(data_->form)) {
      value = Value::from_bytes(data_->type, out.texts[i]);
    } else if (!value_of(*data_, out.payloads[i], value)) {
      return i;
    }
    const std::optional<Value> fitted = exact_value(value, defined_.type, defined_.scale);
    if (!fitted) return i;
    const Value own = columns::normalised(*fitted, defined_.type);
    out.payloads[i] = own.raw();
    out.texts[i] = own.as_string();
  }
  return rows;
}

// As `read`, for one row; says what is wrong.
ColumnReader::Found ColumnReader::find(std::size_t row, Value& value, std::string& why) const {
  value = Value::null();
  const ValueArray& values = batch_->values;
  if (is_null_at(values, row)) return Found::kNull;
  std::size_t place = values.first + row;
  if (batch_->dictionary) {
    std::int64_t code = 0;
    if (!payload_at(values, place, code) || code < 0 || std::cmp_greater_equal(code, data_->size)) {
      why = fmt::format("code {} of a dictionary of {} entries", code, data_->size);
      return Found::kDamaged;
    }
    if (is_null_at(*data_, static_cast<std::size_t>(code))) return Found::kNull;
    place = data_->first + static_cast<std::size_t>(code);
  }
  std::string_view text;
  if (is_texts(data_->form)) {
    why = "a text lies outside of its buffer";
    if (!text_at(*data_, place, text)) return Found::kDamaged;
    value = Value::from_bytes(data_->type, text);
    return Found::kValue;
  }
  std::int64_t payload = 0;
  if (payload_at(*data_, place, payload) && value_of(*data_, payload, value)) return Found::kValue;
  why = fmt::format("the number is out of the range of {}", to_string(defined_.type));
  return Found::kOutOfRange;
}

Status ColumnReader::why_stopped(std::size_t row, Value& misfit) const {
  FLUGS_CHECK(!is_constant());
  std::string why;
  const Found found = find(row, misfit, why);
  if (found == Found::kDamaged) return Status(StatusCode::kInvalidArgument, why);
  if (found == Found::kOutOfRange) return Status(StatusCode::kConstraintViolated, why);
  return {};
}

Value ColumnReader::value(std::size_t row) const {
  if (is_constant()) return constant_;
  Value found;
  std::string why;
  if (find(row, found, why) != Found::kValue) return Value::null();
  const std::optional<Value> fitted = exact_value(found, defined_.type, defined_.scale);
  return fitted ? columns::normalised(*fitted, defined_.type) : Value::null();
}

}  // namespace flugs::engine
