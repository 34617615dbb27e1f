#pragma once

#include <cstddef>
#include <cstdint>

#include "base/types.h"

namespace flugs::query {

/// How a column of a batch keeps its integers: as StreamBatch::column shows them, or as Arrow wants
/// them.
enum class IntForm : std::uint8_t { kInt64, kInt32, kInt128 };

constexpr std::size_t bytes_of(IntForm form) noexcept {
  return form == IntForm::kInt32 ? 4 : form == IntForm::kInt64 ? 8 : 16;
}
/// The form that Arrow gives the values of a type. A bool, which Arrow has as a bit, stays int64.
constexpr IntForm arrow_form(Type type) noexcept {
  if (is_narrow_type(type)) return IntForm::kInt32;
  return type == Type::kDecimal ? IntForm::kInt128 : IntForm::kInt64;
}

/// Writes `count` integers in a form that each of them fits; 0 where `nulls`, which may be null, is
/// 1.
void put_integers(IntForm form, const std::int64_t* from, const std::uint8_t* nulls,
                  std::size_t count, void* out) noexcept;

}  // namespace flugs::query
