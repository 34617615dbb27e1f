#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "flugs/arrow_abi.h"
#include "flugs/column_batch.h"
#include "flugs/status.h"

namespace flugs::query {

/// What is done to a value of an Arrow array before it is a value of a ValueArray.
enum class ArrowChange : std::uint8_t {
  kNone,
  kHalf,        ///< float16 to double
  kMultiplied,  ///< integers of 64 bits, by `factor`
  kDivided,     ///< the same; what is left must be 0
  kFixedSize,   ///< texts of `factor` bytes each get offsets
};

/// How values of an Arrow type are read.
struct ArrowFormat {
  ArrayForm form = ArrayForm::kNulls;
  Type type = Type::kInt64;
  std::uint8_t scale = 0;
  ArrowChange change = ArrowChange::kNone;
  std::int64_t factor = 1;
};

/// Whether values of this form can be changed in this way.
constexpr bool fits_change(const ArrowFormat& format) noexcept {
  switch (format.change) {
    case ArrowChange::kNone:
      return true;
    case ArrowChange::kHalf:
      return format.form == ArrayForm::kDouble;
    case ArrowChange::kMultiplied:
    case ArrowChange::kDivided:
      return format.form == ArrayForm::kInt64 && format.factor > 0;
    case ArrowChange::kFixedSize:
      return format.form == ArrayForm::kText64 && format.factor >= 0;
  }
  return false;
}

/// Reads a format string of the Arrow C data interface. Fails with kInvalidArgument when no column
/// takes the type.
Result<ArrowFormat> read_arrow_format(const char* format);

/// A field of a stream: its format, and that of its dictionary's entries if it has one.
struct ArrowField {
  std::string name;
  ColumnId column = {};
  ArrowFormat format;
  std::optional<ArrowFormat> entries = {};
};

/// Reads one field. Fails as read_arrow_format; the message has the field's name.
Result<ArrowField> read_arrow_field(const ArrowSchema& schema);

}  // namespace flugs::query
