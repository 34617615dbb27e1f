#include "query/stream/int_form.h"

#include <cstring>

namespace flugs::query {

namespace {

void put_one(std::int64_t value, std::int32_t* out) noexcept {
  *out = static_cast<std::int32_t>(value);
}
void put_one(std::int64_t value, std::int64_t* out) noexcept { *out = value; }

// The low half comes first, and the high half repeats the sign.
struct Wide {
  std::int64_t low;
  std::int64_t high;
};
static_assert(sizeof(Wide) == bytes_of(IntForm::kInt128));

void put_one(std::int64_t value, Wide* out) noexcept { *out = {value, value >> 63}; }

template <typename Integer>
void put_as(const std::int64_t* from, const std::uint8_t* nulls, std::size_t count,
            void* to) noexcept {
  auto* out = static_cast<Integer*>(to);
  if (nulls == nullptr)
    for (std::size_t i = 0; i < count; ++i) put_one(from[i], out + i);
  else
    for (std::size_t i = 0; i < count; ++i) put_one(nulls[i] != 0 ? 0 : from[i], out + i);
}

}  // namespace

void put_integers(IntForm form, const std::int64_t* from, const std::uint8_t* nulls,
                  std::size_t count, void* out) noexcept {
  switch (form) {
    case IntForm::kInt32:
      return put_as<std::int32_t>(from, nulls, count, out);
    case IntForm::kInt64:
      if (nulls != nullptr) return put_as<std::int64_t>(from, nulls, count, out);
      std::memcpy(out, from, count * sizeof *from);
      return;
    case IntForm::kInt128:
      return put_as<Wide>(from, nulls, count, out);
  }
}

}  // namespace flugs::query
