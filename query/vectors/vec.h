#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "query/vectors/code_domain.h"
#include "query/vectors/data_type.h"

namespace flugs::query {

/// Rows that pass through the operators together: a few columns of them fit the first-level cache.
inline constexpr std::size_t kBatchRows = 2048;
/// Rows of a held result that a worker takes at a time.
inline constexpr std::size_t kMorselRows = 16 * kBatchRows;
static_assert(kBatchRows % 64 == 0);  // a batch begins at a word of a mask

/// NaN equals NaN and is above every number: the order in which flugs keeps doubles.
inline bool real_equal(double a, double b) noexcept { return a == b || (a != a && b != b); }
inline bool real_less(double a, double b) noexcept { return a < b || (a == a && b != b); }

/// The single form of a double that is compared and hashed.
inline double normal(double v) noexcept {
  if (v != v) return std::numeric_limits<double>::quiet_NaN();
  return v == 0 ? 0.0 : v;
}

/// The form of a column in memory: a Lane's values, or codes of a domain.
enum class Form : std::uint8_t { kInt, kReal, kText, kCode };

constexpr Form form_of(Lane lane) noexcept { return static_cast<Form>(lane); }
static_assert(form_of(Lane::kInt) == Form::kInt);
static_assert(form_of(Lane::kReal) == Form::kReal);
static_assert(form_of(Lane::kText) == Form::kText);
constexpr std::size_t bytes_of(Form form) noexcept {
  return form == Form::kText ? sizeof(std::string_view) : form == Form::kCode ? 4 : 8;
}

/// A column of a batch, wherever it lies. At a NULL it has 0, an empty text, or any code. For a
/// text it has only the view: RunContext says what owns the bytes.
struct ColumnView {
  const void* data = nullptr;
  const std::uint8_t* nulls = nullptr;  ///< 1 at a NULL; null when no value is NULL

  const std::int64_t* ints() const noexcept { return static_cast<const std::int64_t*>(data); }
  const double* reals() const noexcept { return static_cast<const double*>(data); }
  const std::string_view* texts() const noexcept {
    return static_cast<const std::string_view*>(data);
  }
  const std::uint32_t* codes() const noexcept { return static_cast<const std::uint32_t*>(data); }

  ColumnView from(std::size_t row, Form form) const noexcept {
    FLUGS_DCHECK(data != nullptr || row == 0);
    return {static_cast<const std::byte*>(data) + row * bytes_of(form),
            nulls == nullptr ? nullptr : nulls + row};
  }
};

/// Memory for a column. It grows, and keeps its content only where a function says so.
class Vec {
 public:
  std::int64_t* ints(std::size_t n) { return static_cast<std::int64_t*>(reserve(n * 8)); }
  double* reals(std::size_t n) { return static_cast<double*>(reserve(n * 8)); }
  std::string_view* texts(std::size_t n) {
    return static_cast<std::string_view*>(reserve(n * sizeof(std::string_view)));
  }
  std::uint32_t* codes(std::size_t n) { return static_cast<std::uint32_t*>(reserve(n * 4)); }
  void* reserve(std::size_t bytes) {
    if (bytes > data_bytes_) {
      data_bytes_ = std::max(bytes, data_bytes_ * 2);
      data_ = std::make_unique_for_overwrite<std::byte[]>(data_bytes_);
    }
    return data_.get();
  }
  std::uint8_t* nulls(std::size_t n) {
    if (n > nulls_bytes_) {
      nulls_bytes_ = std::max(n, nulls_bytes_ * 2);
      nulls_ = std::make_unique_for_overwrite<std::uint8_t[]>(nulls_bytes_);
    }
    return nulls_.get();
  }
  /// Makes room, and keeps the first bytes of the content.
  void grow(std::size_t bytes, std::size_t kept) {
    FLUGS_DCHECK(kept <= data_bytes_ && kept <= bytes);
    if (bytes <= data_bytes_) return;
    auto wider = std::make_unique_for_overwrite<std::byte[]>(bytes);
    if (kept != 0) std::memcpy(wider.get(), data_.get(), kept);
    data_ = std::move(wider);
    data_bytes_ = bytes;
  }
  void grow_nulls(std::size_t n, std::size_t kept) {
    FLUGS_DCHECK(kept <= nulls_bytes_ && kept <= n);
    if (n <= nulls_bytes_) return;
    auto wider = std::make_unique_for_overwrite<std::uint8_t[]>(n);
    if (kept != 0) std::memcpy(wider.get(), nulls_.get(), kept);
    nulls_ = std::move(wider);
    nulls_bytes_ = n;
  }
  ColumnView view(bool with_nulls) const noexcept {
    return {data_.get(), with_nulls ? nulls_.get() : nullptr};
  }
  std::size_t bytes() const noexcept { return data_bytes_ + nulls_bytes_; }

 private:
  std::unique_ptr<std::byte[]> data_;
  std::unique_ptr<std::uint8_t[]> nulls_;
  std::size_t data_bytes_ = 0;
  std::size_t nulls_bytes_ = 0;
};

/// A column of an operator's output. With a domain, its values are codes.
struct ColumnInfo {
  std::string name;
  DataType type;
  std::shared_ptr<const CodeDomain> domain;
  bool is_dropped = false;  ///< keeps its place, and has no name
  /// Edition of a table's column. Rows may be of an earlier one.
  std::uint16_t edition = 0;
  /// The domain of codes of an earlier edition, which had a dictionary of numbers.
  struct Former {
    std::uint16_t edition;
    std::shared_ptr<const CodeDomain> domain;
  };
  std::vector<Former> formers{};

  Form form() const noexcept { return domain ? Form::kCode : form_of(lane_of(type)); }
};
using Schema = std::vector<ColumnInfo>;

/// Some rows on their way through a pipeline; kBatchRows at most. Views are valid as long as the
/// batch.
struct Batch {
  std::size_t rows = 0;
  std::vector<ColumnView> columns;
};

/// Stands for no row, where a left join found no partner.
inline constexpr std::uint32_t kNoPosition = 0xFFFFFFFFu;

/// out[i] = from[positions[i]]; NULL for kNoPosition, which only `optional` allows.
ColumnView gather(ColumnView from, Form form, const std::uint32_t* positions, std::size_t count,
                  Vec& out, bool optional = false);
/// The same for every column; `out` has as many elements.
void gather(const Batch& from, const Schema& schema, const std::uint32_t* positions,
            std::size_t count, std::vector<Vec>& out, Batch& result);

}  // namespace flugs::query
