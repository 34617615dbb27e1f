#include "query/arrow/arrow_import_array.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "base/check.h"

namespace flugs::query {

namespace {

Status damaged(std::string_view what) {
  return Status(StatusCode::kInvalidArgument, fmt::format("Arrow array: {}", what));
}

template <typename T>
T load_value(const void* values, std::size_t place) noexcept {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(values) + place * sizeof(T), sizeof(T));
  return value;
}

bool is_valid(const std::uint8_t* validity, std::size_t place) noexcept {
  return validity == nullptr || (validity[place / 8] >> (place % 8) & 1) != 0;
}

double double_of_half(std::uint16_t half) noexcept {
  const int exponent = half >> 10 & 31;
  const double fraction = half & 1023;
  const double sign = (half & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == 31)
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity()
                         : std::numeric_limits<double>::quiet_NaN();
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

/// Number of buffers, without those of views.
std::int64_t buffers_of(const ArrowFormat& format) noexcept {
  if (format.form == ArrayForm::kNulls) return 0;
  const bool has_offsets = format.form == ArrayForm::kText32 || format.form == ArrayForm::kText64;
  return has_offsets && format.change != ArrowChange::kFixedSize ? 3 : 2;
}

/// Whether rows [first, first + size) are in the array, whose own fields are sound.
Status check_bounds(const ArrowArray& array, std::int64_t first, std::int64_t size) {
  constexpr std::int64_t kPlacesMax = std::int64_t{1} << 56;
  // The place of a value is below the sum of three; it may have 16 bytes.
  static_assert(kPlacesMax <= std::numeric_limits<std::int64_t>::max() / (3 * 16));
  if (array.length < 0 || array.offset < 0 || array.null_count < -1)
    return damaged("a length, offset or count is below 0");
  if (array.length > kPlacesMax || array.offset > kPlacesMax || first > kPlacesMax)
    return damaged("a length or offset is too large");
  if (first > array.length || size > array.length - first)
    return damaged(fmt::format("{} values, {} wanted", array.length, first + size));
  if (array.n_buffers < 0 || (array.n_buffers != 0 && array.buffers == nullptr))
    return damaged("no list of buffers");
  return {};
}

}  // namespace

Status ArrowBatch::set_texts(const ArrowArray& array, ValueArray& values) {
  values.offsets = array.buffers[1];
  values.values = array.buffers[2];
  if (values.size == 0) return {};
  if (values.offsets == nullptr) return damaged("no offsets");
  const std::size_t end = values.first + values.size;
  const std::int64_t bytes = values.form == ArrayForm::kText32
                                 ? load_value<std::int32_t>(values.offsets, end)
                                 : load_value<std::int64_t>(values.offsets, end);
  if (bytes < 0) return damaged("an offset below 0");
  values.text_bytes = static_cast<std::size_t>(bytes);
  if (bytes != 0 && values.values == nullptr) return damaged("no texts");
  return {};
}

// Buffers: validity, views, any number with texts, and the sizes of those.
Status ArrowBatch::set_views(const ArrowArray& array, ValueArray& values) {
  values.values = array.buffers[1];
  const auto count = static_cast<std::size_t>(array.n_buffers - 3);
  std::vector<std::string_view>& buffers = buffers_.emplace_back();
  const void* const sizes = array.buffers[array.n_buffers - 1];
  if (count != 0 && sizes == nullptr) return damaged("no sizes of buffers");
  for (std::size_t i = 0; i < count; ++i) {
    const auto bytes = load_value<std::int64_t>(sizes, i);
    const auto* const text = static_cast<const char*>(array.buffers[i + 2]);
    if (bytes < 0 || (bytes != 0 && text == nullptr)) return damaged("a buffer of wrong size");
    buffers.emplace_back(text, static_cast<std::size_t>(bytes));
  }
  values.buffers = buffers;
  return {};
}

// The array's values at [first, first + size).
Result<ValueArray> ArrowBatch::values_of(const ArrowArray& array, const ArrowFormat& format,
                                         std::int64_t first, std::int64_t size) {
  if (Status s = check_bounds(array, first, size); !s.ok()) return s;
  ValueArray values;
  values.form = format.form;
  values.type = format.type;
  values.scale = format.scale;
  values.size = static_cast<std::size_t>(size);
  values.first = static_cast<std::size_t>(array.offset + first);
  const bool has_views = format.form == ArrayForm::kViews;
  const std::int64_t wanted = buffers_of(format);
  // Some producers give an array of nulls a buffer, although it has none.
  const bool is_right = has_views                          ? array.n_buffers >= 3
                        : format.form == ArrayForm::kNulls ? array.n_buffers <= 1
                                                           : array.n_buffers == wanted;
  if (!is_right) return damaged(fmt::format("{} buffers", array.n_buffers));
  if (format.form == ArrayForm::kNulls) return values;
  if (array.null_count != 0) values.validity = static_cast<const std::uint8_t*>(array.buffers[0]);
  if (array.null_count > 0 && values.validity == nullptr && size != 0)
    return damaged("NULLs without a validity buffer");
  if (has_views) {
    if (Status s = set_views(array, values); !s.ok()) return s;
  } else if (wanted == 3) {
    if (Status s = set_texts(array, values); !s.ok()) return s;
    return values;
  } else {
    values.values = array.buffers[1];
  }
  const bool has_no_bytes = format.change == ArrowChange::kFixedSize && format.factor == 0;
  if (values.values == nullptr && size != 0 && !has_no_bytes) return damaged("no values");
  if (format.change != ArrowChange::kNone)
    if (Status s = change(format, values); !s.ok()) return s;
  return values;
}

// The new buffer begins at the byte of the validity in which the first value has its bit.
Status ArrowBatch::change(const ArrowFormat& format, ValueArray& values) {
  FLUGS_CHECK(fits_change(format));
  const std::size_t skipped = values.first / 8 * 8;
  const std::size_t before = values.first - skipped;
  std::vector<std::int64_t>& changed = changed_.emplace_back(before + values.size + 1, 0);
  if (format.change == ArrowChange::kFixedSize) {
    const auto bytes = static_cast<std::size_t>(format.factor);
    if (bytes != 0 && values.first + values.size > (std::size_t{1} << 62) / bytes)
      return damaged("a length or offset is too large");
    for (std::size_t i = before; i < changed.size(); ++i)
      changed[i] = static_cast<std::int64_t>((i - before) * bytes);
    if (bytes != 0) values.values = static_cast<const char*>(values.values) + values.first * bytes;
    values.offsets = changed.data();
    values.text_bytes = values.size * bytes;
  } else {
    for (std::size_t i = 0; i < values.size; ++i) {
      const std::size_t place = values.first + i;
      if (!is_valid(values.validity, place)) continue;
      std::int64_t& to = changed[before + i];
      if (format.change == ArrowChange::kHalf) {
        to = std::bit_cast<std::int64_t>(
            double_of_half(load_value<std::uint16_t>(values.values, place)));
        continue;
      }
      const auto from = load_value<std::int64_t>(values.values, place);
      const bool is_exact = format.change == ArrowChange::kDivided
                                ? from % format.factor == 0
                                : !__builtin_mul_overflow(from, format.factor, &to);
      if (format.change == ArrowChange::kDivided) to = from / format.factor;
      if (!is_exact)
        return Status(StatusCode::kConstraintViolated,
                      fmt::format("value {}: {} is no exact {}", i, from, to_string(format.type)));
    }
    values.values = changed.data();
  }
  if (values.validity != nullptr) values.validity += skipped / 8;
  values.first = before;
  return {};
}

Result<ArrowBatch> ArrowBatch::make(const ArrowArray& array,
                                    const std::vector<ArrowField>& fields) {
  if (Status s = check_bounds(array, 0, array.length); !s.ok()) return s;
  if (array.n_buffers != 1) return damaged("a struct has one buffer");
  if (array.n_children < 0 || static_cast<std::size_t>(array.n_children) != fields.size())
    return damaged(fmt::format("{} columns, the schema has {}", array.n_children, fields.size()));
  if (!fields.empty() && array.children == nullptr) return damaged("no columns");
  const auto* const validity = static_cast<const std::uint8_t*>(array.buffers[0]);
  for (std::int64_t i = 0; array.null_count != 0 && validity != nullptr && i < array.length; ++i)
    if (!is_valid(validity, static_cast<std::size_t>(array.offset + i)))
      return damaged(fmt::format("row {} is NULL as a whole", i));
  ArrowBatch batch;
  batch.rows_ = static_cast<std::size_t>(array.length);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const ArrowField& field = fields[i];
    FLUGS_CHECK(!field.entries || field.format.change == ArrowChange::kNone);
    const auto failed = [&](const Status& why) {
      return why.with_message(fmt::format("field {}: {}", field.name, why.message()));
    };
    const ArrowArray* const child = array.children[i];
    if (child == nullptr) return failed(damaged("it is not there"));
    if ((child->dictionary != nullptr) != field.entries.has_value())
      return failed(damaged("a dictionary, or none, against the schema"));
    Result<ValueArray> values = batch.values_of(*child, field.format, array.offset, array.length);
    if (!values.ok()) return failed(values.status());
    flugs::BatchColumn& column = batch.columns_.emplace_back();
    column.column = field.column;
    column.values = *values;
    if (!field.entries) continue;
    Result<ValueArray> entries =
        batch.values_of(*child->dictionary, *field.entries, 0, child->dictionary->length);
    if (!entries.ok()) return failed(entries.status());
    column.dictionary = *entries;
  }
  return batch;
}

}  // namespace flugs::query
