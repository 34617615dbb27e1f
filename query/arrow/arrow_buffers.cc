#include "query/arrow/arrow_buffers.h"

#include <bit>

#include "base/check.h"

namespace flugs::query {

// Arrow's integers are little-endian, and so are its bits: the first value is the lowest one.
static_assert(std::endian::native == std::endian::little);
// A decimal there has 128 bits.
static_assert(bytes_of(arrow_form(Type::kDecimal)) == 128 / 8);

namespace {

/// Calls `bit(i)` for each i below `count`, and packs the results.
template <typename Bit>
ArrowBuffer pack(std::size_t count, Bit&& bit) {
  const std::size_t bytes = (count + 7) / 8;
  auto out = std::make_unique_for_overwrite<std::byte[]>(bytes);
  for (std::size_t byte = 0; byte < bytes; ++byte) {
    unsigned packed = 0;
    const std::size_t first = byte * 8;
    const std::size_t end = first + 8 < count ? first + 8 : count;
    for (std::size_t i = first; i < end; ++i) packed |= (bit(i) ? 1u : 0u) << (i - first);
    out[byte] = static_cast<std::byte>(packed);
  }
  return out;
}

}  // namespace

ArrowBuffer validity_of(std::span<const std::uint8_t> nulls, std::size_t& null_count) {
  null_count = 0;
  for (const std::uint8_t is_null : nulls) null_count += is_null;
  FLUGS_CHECK(null_count <= nulls.size());  // each is 0 or 1
  return pack(nulls.size(), [&](std::size_t i) { return nulls[i] == 0; });
}

ArrowBuffer bits_of(std::span<const std::int64_t> values) {
  return pack(values.size(), [&](std::size_t i) { return values[i] != 0; });
}

ArrowBuffer in_form(IntForm form, std::span<const std::int64_t> values) {
  auto out = std::make_unique_for_overwrite<std::byte[]>(values.size() * bytes_of(form));
  put_integers(form, values.data(), nullptr, values.size(), out.get());
  return out;
}

}  // namespace flugs::query
