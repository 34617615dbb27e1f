#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

#include "flugs/ids.h"
#include "flugs/value.h"

namespace flugs {

/// How values of a ValueArray lie in memory: as in the arrays of Apache Arrow, least significant
/// byte first.
enum class ArrayForm : std::uint8_t {
  kNulls,  ///< every value is NULL; no memory
  kBits,   ///< a bit each, the least significant bit of a byte first
  kInt8,
  kUint8,
  kInt16,
  kUint16,
  kInt32,
  kUint32,
  kInt64,
  kUint64,
  kInt128,  ///< for decimals: 16 bytes with a sign
  kFloat,
  kDouble,
  kText32,  ///< bytes of all texts side by side, and offsets of 32 bits: one more than values
  kText64,  ///< the same with offsets of 64 bits
  kViews,   ///< 16 bytes each: the length, then 12 bytes of text; above 12 bytes 4 bytes of text,
            ///< the number of a buffer, an offset into it, in 32 bits each
};

/// Values side by side, in memory that the array does not own. Value i is at place `first` + i of
/// each buffer. Buffers need no alignment.
struct ValueArray {
  ArrayForm form = ArrayForm::kNulls;
  /// What a value is, as in a Value: an integer may be kInt32 or kInt64, whatever its form.
  Type type = Type::kInt64;
  std::uint8_t scale = Value::kScaleOfColumn;  ///< of decimals
  std::size_t size = 0;                        ///< number of values
  std::size_t first = 0;
  const void* values = nullptr;                    ///< numbers, bits, views, or the bytes of texts
  const void* offsets = nullptr;                   ///< of texts
  std::size_t text_bytes = 0;                      ///< of kText32 and kText64: no text goes beyond
  std::span<const std::string_view> buffers = {};  ///< of kViews
  /// A bit per value, 0 for NULL. Null: no value is NULL.
  const std::uint8_t* validity = nullptr;
};

/// One column of a batch: a value per row, or a code per row that names an entry of `dictionary`.
struct BatchColumn {
  ColumnId column = {};
  ValueArray values;  ///< with a dictionary: integers from 0 on
  std::optional<ValueArray> dictionary = {};
};

/// Rows to insert, column by column (Transaction::insert_columns). Columns may be in any order; one
/// that is not there gets its default, or NULL. For a column given twice the later one counts. The
/// memory is only read, and only during the call.
struct ColumnBatch {
  std::size_t rows = 0;
  std::span<const BatchColumn> columns = {};
};
// Nothing in a batch owns memory.
static_assert(std::is_trivially_copyable_v<ValueArray>);
static_assert(std::is_trivially_copyable_v<BatchColumn>);
static_assert(std::is_trivially_copyable_v<ColumnBatch>);

}  // namespace flugs
