#include "query/vectors/vec.h"

#include "base/check.h"

namespace flugs::query {

namespace {

template <typename T>
void gather_values(const T* from, const std::uint32_t* positions, std::size_t count, T* out) {
  for (std::size_t i = 0; i < count; ++i) {
    FLUGS_DCHECK(positions[i] != kNoPosition);
    out[i] = from[positions[i]];
  }
}

template <typename T>
void gather_optional(const T* from, const std::uint32_t* positions, std::size_t count, T* out) {
  for (std::size_t i = 0; i < count; ++i)
    out[i] = positions[i] == kNoPosition ? T{} : from[positions[i]];
}

template <typename T>
void gather_as(ColumnView from, const std::uint32_t* positions, std::size_t count, Vec& out,
               bool optional) {
  const T* source = static_cast<const T*>(from.data);
  T* target = static_cast<T*>(out.reserve(count * sizeof(T)));
  if (optional)
    gather_optional(source, positions, count, target);
  else
    gather_values(source, positions, count, target);
}

}  // namespace

ColumnView gather(ColumnView from, Form form, const std::uint32_t* positions, std::size_t count,
                  Vec& out, bool optional) {
  switch (form) {
    case Form::kText:
      gather_as<std::string_view>(from, positions, count, out, optional);
      break;
    case Form::kCode:
      gather_as<std::uint32_t>(from, positions, count, out, optional);
      break;
    case Form::kInt:
    case Form::kReal:
      gather_as<std::int64_t>(from, positions, count, out, optional);
      break;
  }
  if (optional) {
    std::uint8_t* nulls = out.nulls(count);
    for (std::size_t i = 0; i < count; ++i)
      nulls[i] = positions[i] == kNoPosition
                     ? 1
                     : (from.nulls == nullptr ? std::uint8_t{0} : from.nulls[positions[i]]);
  } else if (from.nulls != nullptr) {
    gather_values(from.nulls, positions, count, out.nulls(count));
  }
  return out.view(optional || from.nulls != nullptr);
}

void gather(const Batch& from, const Schema& schema, const std::uint32_t* positions,
            std::size_t count, std::vector<Vec>& out, Batch& result) {
  FLUGS_CHECK(from.columns.size() >= schema.size());
  FLUGS_CHECK(out.size() >= schema.size());
  result.rows = count;
  result.columns.resize(schema.size());
  for (std::size_t c = 0; c < schema.size(); ++c)
    result.columns[c] = gather(from.columns[c], schema[c].form(), positions, count, out[c]);
}

}  // namespace flugs::query
