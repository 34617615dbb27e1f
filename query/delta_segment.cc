#include "query/delta_segment.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "columns/row_layout.h"
#include "query/failure.h"

namespace flugs::query {

namespace {

using columns::RowLayout;

// `get(row)` of each row, with everything that stays the same in registers.
template <typename T, typename Get>
void read_rows(const std::byte* first, std::size_t stride, const RowSelection& rows, T* out,
               Get&& get) {
  const std::size_t n = rows.count;
  if (rows.positions == nullptr) {
    for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<T>(get(first + i * stride));
  } else {
    const std::uint32_t* positions = rows.positions;
    for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<T>(get(first + positions[i] * stride));
  }
}

}  // namespace

// In most blocks of 64 every row was committed before the snapshot and is not deleted; the stamps
// of the others are resolved one by one.
std::size_t DeltaSegment::visible(std::uint32_t first, std::size_t count,
                                  std::uint64_t* mask) const noexcept {
  const std::size_t stride = chunk_.row_bytes;
  const std::uint64_t snapshot = visibility_.snapshot();
  const std::byte* row = chunk_.rows + first * stride;
  std::size_t seen = 0;
  for (std::size_t begin = 0; begin < count; begin += 64, ++mask) {
    const std::size_t n = std::min<std::size_t>(64, count - begin);
    bool all = true;
    for (std::size_t i = 0; i < n; ++i) {
      const auto& version = *reinterpret_cast<const mvcc::VersionLayout*>(row + i * stride);
      // 0 wraps to the greatest number, and a tag is greater than any time-stamp.
      all &= mvcc::load_stamp(version.created) - 1 < snapshot;
      all &= mvcc::load_stamp(version.deleted) == mvcc::kNoStamp;
    }
    std::uint64_t bits = n == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << n) - 1;
    if (!all) {
      bits = 0;
      for (std::size_t i = 0; i < n; ++i) {
        const auto& version = *reinterpret_cast<const mvcc::VersionLayout*>(row + i * stride);
        bits |= std::uint64_t{visibility_.sees(version)} << i;
      }
    }
    *mask = bits;
    seen += static_cast<std::size_t>(std::popcount(bits));
    row += n * stride;
  }
  return seen;
}

void DeltaSegment::wrong_code(std::uint32_t column, const RowSelection& rows,
                              std::uint32_t limit) const {
  const RowLayout::Access access = chunk_.layout->access()[column];
  for (std::size_t i = 0; i < rows.count; ++i) {
    const std::uint32_t row = rows.first + (rows.positions == nullptr ? i : rows.positions[i]);
    const std::uint64_t code =
        RowLayout::load(chunk_.rows + std::size_t{row} * chunk_.row_bytes, access);
    if (code >= limit)
      fail(StatusCode::kCorrupt,
           fmt::format("table {}, column {}, row {}: expected a ValueID below {}, found {}",
                       table_.name(), schema_[column].name, chunk_.first_row + row, limit, code));
  }
  fail(StatusCode::kCorrupt, fmt::format("table {}, column {}: a ValueID not below {}",
                                         table_.name(), schema_[column].name, limit));
}

ColumnView DeltaSegment::codes(std::uint32_t column, const RowSelection& rows, Vec& out) const {
  const RowLayout::Access access = chunk_.layout->access()[column];
  const CodeDomain& domain = *schema_[column].domain;
  const std::byte* base = chunk_.rows + std::size_t{rows.first} * chunk_.row_bytes;
  std::uint32_t* codes = out.codes(rows.count);
  std::uint64_t greatest = 0;
  read_rows(base, chunk_.row_bytes, rows, codes, [&access, &greatest](const std::byte* row) {
    const std::uint64_t code = RowLayout::load(row, access);
    greatest = std::max(greatest, code);
    return code;
  });
  if (rows.count != 0 && greatest >= domain.count()) wrong_code(column, rows, domain.count());
  const std::uint32_t null_code = domain.null_code();
  if (null_code == CodeDomain::kNone) return out.view(false);
  std::uint8_t* nulls = out.nulls(rows.count);
  std::uint8_t any = 0;
  for (std::size_t i = 0; i < rows.count; ++i) {
    nulls[i] = codes[i] == null_code ? 1 : 0;
    any |= nulls[i];
  }
  return out.view(any != 0);
}

ColumnView DeltaSegment::decoded(std::uint32_t column, const RowSelection& rows, Vec& out) const {
  thread_local Vec scratch;
  const CodeDomain& domain = *schema_[column].domain;
  const ColumnView coded = codes(column, rows, scratch);
  const std::uint32_t* codes = coded.codes();
  if (coded.nulls != nullptr) std::copy_n(coded.nulls, rows.count, out.nulls(rows.count));
  if (lane_of(schema_[column].type) == Lane::kText) {
    std::string_view* texts = out.texts(rows.count);
    for (std::size_t i = 0; i < rows.count; ++i) texts[i] = domain.text(codes[i]);
  } else if (const std::int64_t* all = domain.integers(); all != nullptr) {
    std::int64_t* ints = out.ints(rows.count);
    for (std::size_t i = 0; i < rows.count; ++i) ints[i] = all[codes[i]];
  } else {
    const columns::Dictionary& dictionary =
        static_cast<const DictionaryDomain&>(domain).dictionary();
    std::int64_t* ints = out.ints(rows.count);
    for (std::size_t i = 0; i < rows.count; ++i) ints[i] = dictionary.integer(codes[i]);
    if (coded.nulls != nullptr)
      for (std::size_t i = 0; i < rows.count; ++i)
        if (coded.nulls[i] != 0) ints[i] = 0;
  }
  return out.view(coded.nulls != nullptr);
}

bool DeltaSegment::null_flags(std::uint32_t column, const RowSelection& rows, Vec& out) const {
  const RowLayout::Access access = chunk_.layout->access()[column];
  if (access.null_word == 0) return false;
  std::uint8_t* nulls = out.nulls(rows.count);
  const std::byte* base = chunk_.rows + std::size_t{rows.first} * chunk_.row_bytes;
  read_rows(base, chunk_.row_bytes, rows, nulls,
            [&access](const std::byte* row) { return RowLayout::load_null(row, access); });
  return std::any_of(nulls, nulls + rows.count, [](std::uint8_t null) { return null != 0; });
}

ColumnView DeltaSegment::direct_texts(std::uint32_t column, const RowSelection& rows,
                                      Vec& out) const {
  const bool has_nulls = null_flags(column, rows, out);
  const columns::Column& source = *table_.columns()[column];
  const std::byte* base = chunk_.rows + std::size_t{rows.first} * chunk_.row_bytes;
  std::string_view* texts = out.texts(rows.count);
  read_rows(base, chunk_.row_bytes, rows, texts,
            [&](const std::byte* row) { return source.text(*chunk_.layout, row, column); });
  return out.view(has_nulls);
}

ColumnView DeltaSegment::direct(std::uint32_t column, const RowSelection& rows, Vec& out) const {
  const RowLayout::Access access = chunk_.layout->access()[column];
  const bool has_nulls = null_flags(column, rows, out);
  const Type type = schema_[column].type.type;
  const std::byte* base = chunk_.rows + std::size_t{rows.first} * chunk_.row_bytes;
  std::int64_t* ints = out.ints(rows.count);
  // 32-bit types keep their sign; 64-bit payloads in 32 bits are those from 0 to 2^32 - 1.
  if (type == Type::kInt32 || type == Type::kDate)
    read_rows(base, chunk_.row_bytes, rows, ints, [access](const std::byte* row) {
      return static_cast<std::int32_t>(RowLayout::load(row, access));
    });
  else
    read_rows(base, chunk_.row_bytes, rows, ints,
              [access](const std::byte* row) { return RowLayout::load(row, access); });
  return out.view(has_nulls);
}

ColumnView DeltaSegment::values(std::uint32_t column, const RowSelection& rows, Vec& out) const {
  if (schema_[column].domain) return decoded(column, rows, out);
  if (lane_of(schema_[column].type) == Lane::kText) return direct_texts(column, rows, out);
  return direct(column, rows, out);
}

}  // namespace flugs::query
