#include "query/vectors/rows.h"

#include <cstring>
#include <iterator>
#include <utility>

#include "base/check.h"

namespace flugs::query {

void copy_column(ColumnView from, Form form, std::size_t count, Vec& to, std::size_t at,
                 std::size_t capacity, bool with_nulls) {
  FLUGS_DCHECK(at + count <= capacity);
  const std::size_t width = bytes_of(form);
  auto* data = static_cast<std::byte*>(to.reserve(capacity * width));
  if (count != 0) std::memcpy(data + at * width, from.data, count * width);
  if (!with_nulls) return;
  std::uint8_t* nulls = to.nulls(capacity) + at;
  if (from.nulls != nullptr)
    std::memcpy(nulls, from.nulls, count);
  else
    std::memset(nulls, 0, count);
}

void Rows::append(const Batch& batch, Charge& charge) {
  FLUGS_DCHECK(batch.rows <= kBatchRows);
  FLUGS_CHECK(batch.columns.size() >= schema.size());
  if (batch.rows == 0) return;
  Part part;
  part.rows = batch.rows;
  part.columns.resize(schema.size());
  part.has_nulls.resize(schema.size());
  std::uint64_t bytes = 0;
  for (std::size_t c = 0; c < schema.size(); ++c)
    bytes += batch.rows * (bytes_of(schema[c].form()) + (batch.columns[c].nulls != nullptr));
  charge.add(bytes);
  for (std::size_t c = 0; c < schema.size(); ++c) {
    part.has_nulls[c] = batch.columns[c].nulls != nullptr;
    copy_column(batch.columns[c], schema[c].form(), batch.rows, part.columns[c], 0, batch.rows,
                part.has_nulls[c]);
  }
  row_count += batch.rows;
  parts.push_back(std::move(part));
}

void Rows::take(Rows&& other) {
  FLUGS_CHECK(other.schema.size() == schema.size());
  row_count += std::exchange(other.row_count, 0);
  std::move(other.parts.begin(), other.parts.end(), std::back_inserter(parts));
  std::move(other.charges.begin(), other.charges.end(), std::back_inserter(charges));
  other.parts.clear();
  other.charges.clear();
}

void Rows::flatten(Charge charge) {
  if (parts.size() == 1) return;
  Part all;
  all.rows = row_count;
  all.columns.resize(schema.size());
  all.has_nulls.resize(schema.size());
  for (std::size_t c = 0; c < schema.size(); ++c) {
    for (const Part& part : parts) all.has_nulls[c] = all.has_nulls[c] || part.has_nulls[c];
    charge.add(row_count * (bytes_of(schema[c].form()) + all.has_nulls[c]));
    all.columns[c].reserve(row_count * bytes_of(schema[c].form()));
    std::size_t at = 0;
    for (Part& part : parts) {
      copy_column(part.view(c), schema[c].form(), part.rows, all.columns[c], at, row_count,
                  all.has_nulls[c]);
      at += part.rows;
      part.columns[c] = Vec();
    }
    FLUGS_CHECK(at == row_count);
  }
  parts.clear();
  parts.push_back(std::move(all));
  charges.clear();
  charges.push_back(std::move(charge));
}

}  // namespace flugs::query
