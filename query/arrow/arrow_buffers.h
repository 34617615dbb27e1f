#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "query/stream/int_form.h"

namespace flugs::query {

/// Memory in a layout of Arrow.
using ArrowBuffer = std::unique_ptr<std::byte[]>;

/// A bit for each row, 1 where the value is not NULL. `nulls` has 1 where it is.
ArrowBuffer validity_of(std::span<const std::uint8_t> nulls, std::size_t& null_count);
/// A bit for each value, 1 where it is not 0.
ArrowBuffer bits_of(std::span<const std::int64_t> values);
/// Integers. Each of them fits the form.
ArrowBuffer in_form(IntForm form, std::span<const std::int64_t> values);

}  // namespace flugs::query
