#include <cstring>
#include <utility>

#include "bindings/duckdb/copy.h"

namespace flugs::duckdb {

namespace {

constexpr std::uint32_t kInlined = 12;

std::string_view view_of_bytes(const duckdb_v2_bytes& text) noexcept {
  const std::uint32_t length = text.value.inlined.length;
  return {length <= kInlined ? text.value.inlined.inlined : text.value.pointer.ptr, length};
}

bool is_valid(const std::uint64_t* validity, std::size_t row) noexcept {
  return validity == nullptr || (validity[row / 64] >> (row % 64) & 1) != 0;
}

}  // namespace

void CopiedVector::read_texts(const duckdb_v2_bytes* texts, const std::uint64_t* validity,
                              std::size_t rows, ValueArray& array) {
  bytes_.clear();
  offsets_.assign(1, 0);
  for (std::size_t row = 0; row < rows; ++row) {
    if (is_valid(validity, row)) bytes_.append(view_of_bytes(texts[row]));
    offsets_.push_back(static_cast<std::int64_t>(bytes_.size()));
  }
  array.values = bytes_.data();
  array.offsets = offsets_.data();
  array.text_bytes = bytes_.size();
}

Result<ValueArray> CopiedVector::read(const CopyColumn& column, duckdb_v2_vector_handle vector,
                                      std::size_t rows) {
  FLUGS_TRY(ask(duckdb_v2_vector_flatten, vector));
  duckdb_v2_vector_view view{};
  FLUGS_TRY(ask(duckdb_v2_vector_get_view, vector, &view));
  ValueArray array;
  array.form = column.form;
  array.type = column.type;
  if (column.type == Type::kDecimal) array.scale = column.scale;
  array.size = rows;
  array.values = view.data;
  // The bits of DuckDB are those of Arrow: the least significant one first.
  array.validity = reinterpret_cast<const std::uint8_t*>(view.validity);
  if (column.form == ArrayForm::kText64) {
    read_texts(static_cast<const duckdb_v2_bytes*>(view.data), view.validity, rows, array);
  } else if (column.form == ArrayForm::kBits) {
    bits_.assign((rows + 7) / 8, 0);
    const auto* const flags = static_cast<const std::uint8_t*>(view.data);
    for (std::size_t row = 0; row < rows; ++row)
      if (is_valid(view.validity, row) && flags[row] != 0)
        bits_[row / 8] = static_cast<std::uint8_t>(bits_[row / 8] | 1U << (row % 8));
    array.values = bits_.data();
  }
  return array;
}

}  // namespace flugs::duckdb
