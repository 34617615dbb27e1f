#include <limits>
#include <optional>
#include <string>

#include "base/check.h"
#include "columns/main/main_blocks.h"
#include "columns/main/main_column.h"
#include "columns/main/main_text_reader.h"

namespace flugs::columns {
namespace {

constexpr std::int64_t kOrderOrigin = std::numeric_limits<std::int64_t>::min();
// Blocks unpacked at a time: a buffer of 8 KB.
constexpr std::size_t kStepBlocks = 16;

// Mask of the blocks from `first` on without the NULLs.
void mask_values(const std::uint64_t* mask, const std::uint64_t* nulls, std::size_t count,
                 std::uint64_t* out) noexcept {
  for (std::size_t w = 0; w < count; ++w)
    out[w] = ~nulls[w] & (mask != nullptr ? mask[w] : ~std::uint64_t{0});
}

// 64-bit payloads minus the least one are unsigned and keep their order.
MainSum sum_of_payloads(PackedCodes payloads, std::size_t first, std::size_t count,
                        const std::uint64_t* mask) {
  const CodeSum found =
      kernels().sum(payloads, first, count, static_cast<std::uint64_t>(kOrderOrigin), false, mask);
  MainSum sum;
  sum.count = count_bits(mask, 0, count * 64);
  sum.sum = static_cast<Int128>(found.sum) + Int128{kOrderOrigin} * static_cast<Int128>(sum.count);
  return sum;
}

MainSum sum_runs(const MainColumn& column, std::uint32_t first, std::uint32_t count,
                 const std::uint64_t* mask) {
  MainSum total;
  column.for_runs(first, count, [&](std::uint32_t from, std::uint32_t rows, std::uint64_t code) {
    if (column.entry_is_null(code)) return;
    const std::size_t selected = count_bits(mask, from - first, rows);
    total.count += selected;
    total.sum += Int128{column.entry_integer(code)} * static_cast<Int128>(selected);
  });
  return total;
}

MainSum sum_blocks(const MainColumn& column, std::size_t first, std::size_t count,
                   const std::uint64_t* mask) {
  if (column.encoding() == MainEncoding::kPacked) {
    const CodeSum found = kernels().sum(column.packed(), first, count, 0, column.has_nulls(), mask);
    MainSum sum;
    sum.count = column.has_nulls() ? found.not_zero : count_bits(mask, 0, count * 64);
    const Int128 base = Int128{column.min().raw()} - (column.has_nulls() ? 1 : 0);
    sum.sum = static_cast<Int128>(found.sum) + base * static_cast<Int128>(sum.count);
    return sum;
  }
  if (column.encoding() == MainEncoding::kPlain && !column.has_nulls() &&
      column.type() != Type::kDouble)
    return sum_of_payloads(column.packed(), first, count, mask);
  MainSum total;
  std::uint64_t values[kStepBlocks];
  std::uint64_t nulls[kStepBlocks];
  alignas(64) std::uint64_t payloads[kStepBlocks * 64 + 8];  // kernels may read 64 bytes more
  for (std::size_t done = 0; done < count; done += kStepBlocks) {
    const std::size_t blocks = std::min(kStepBlocks, count - done);
    const std::uint64_t* wanted = mask != nullptr ? mask + done : nullptr;
    if (column.has_nulls()) {
      column.null_words(first + done, blocks, nulls);
      mask_values(wanted, nulls, blocks, values);
      wanted = values;
    }
    column.values_of_blocks(first + done, blocks, reinterpret_cast<std::int64_t*>(payloads));
    const MainSum part = sum_of_payloads({payloads, 64}, 0, blocks, wanted);
    total.sum += part.sum;
    total.count += part.count;
  }
  return total;
}

CodeExtremes extremes_of_runs(const MainColumn& column, std::uint32_t first, std::uint32_t count,
                              const std::uint64_t* mask) {
  CodeExtremes found;
  column.for_runs(first, count, [&](std::uint32_t from, std::uint32_t rows, std::uint64_t code) {
    if (column.entry_is_null(code) || count_bits(mask, from - first, rows) == 0) return;
    found.min = std::min(found.min, code);
    found.max = std::max(found.max, code);
  });
  return found;
}

// Codes; for plain payloads their distance from the least one.
CodeExtremes extremes_of_blocks(const MainColumn& column, std::size_t first, std::size_t count,
                                const std::uint64_t* mask) {
  if (column.encoding() != MainEncoding::kPlain) {
    const std::uint64_t skipped = column.has_nulls() ? 1 : 0;
    CodeExtremes found = kernels().extremes(column.packed(), first, count, skipped, 0, mask);
    if (found.min <= found.max) found.min += skipped;
    return found;
  }
  const auto least = static_cast<std::uint64_t>(kOrderOrigin);
  if (!column.has_nulls())
    return kernels().extremes(column.packed(), first, count, least, least, mask);
  CodeExtremes found;
  std::uint64_t values[64];
  for (std::size_t done = 0; done < count; done += 64) {
    const std::size_t blocks = std::min<std::size_t>(64, count - done);
    mask_values(mask != nullptr ? mask + done : nullptr, column.plain_null_words() + first + done,
                blocks, values);
    const CodeExtremes part =
        kernels().extremes(column.packed(), first + done, blocks, least, least, values);
    if (part.min > part.max) continue;
    found.min = std::min(found.min, part.min);
    found.max = std::max(found.max, part.max);
  }
  return found;
}

MainExtremes extremes_of_texts(const MainColumn& column, std::uint32_t first, std::uint32_t count,
                               const std::uint64_t* mask) {
  MainTextReader reader(column);
  std::optional<std::string> least;
  std::optional<std::string> greatest;
  std::uint32_t least_row = 0;
  std::uint32_t greatest_row = 0;
  for (std::uint32_t row = first; row < first + count; ++row) {
    const std::uint32_t i = row - first;
    if (mask != nullptr && ((mask[i / 64] >> (i % 64)) & 1) == 0) continue;
    if (column.is_null(row)) continue;
    const std::string_view text = reader.text(row);
    if (!least || text < *least) {
      least = text;
      least_row = row;
    }
    if (!greatest || text > *greatest) {
      greatest = text;
      greatest_row = row;
    }
  }
  if (!least) return {};
  return {column.value(least_row), column.value(greatest_row)};
}

}  // namespace

MainSum MainColumn::sum(std::uint32_t first, std::uint32_t count, const std::uint64_t* mask) const {
  FLUGS_CHECK(!is_text() && first % 64 == 0 && first <= row_count_ && count <= row_count_ - first);
  MainSum total;
  if (encoding_ == MainEncoding::kConstant) {
    if (has_nulls()) return total;
    total.count = count_bits(mask, 0, count);
    total.sum = Int128{entry_integer(0)} * static_cast<Int128>(total.count);
    return total;
  }
  if (!runs_.empty()) return sum_runs(*this, first, count, mask);
  for_blocks(first, count, mask,
             [&](std::size_t block, std::size_t blocks, const std::uint64_t* wanted) {
               const MainSum part = sum_blocks(*this, block, blocks, wanted);
               total.sum += part.sum;
               total.count += part.count;
             });
  return total;
}

MainRealSum MainColumn::real_sum(std::uint32_t first, std::uint32_t count,
                                 const std::uint64_t* mask) const {
  FLUGS_CHECK(type() == Type::kDouble && first % 64 == 0 && first <= row_count_ &&
              count <= row_count_ - first);
  constexpr std::uint32_t kStep = kStepBlocks * 64;
  constexpr std::size_t kLanes = 8;
  MainRealSum total;
  std::int64_t payloads[kStep];
  std::uint64_t nulls[kStepBlocks];
  double sums[kLanes] = {};
  for (std::uint32_t done = 0; done < count;) {
    const std::uint32_t rows = std::min(kStep, count - done);
    const std::uint64_t* wanted = mask != nullptr ? mask + done / 64 : nullptr;
    integers(first + done, rows, payloads, nulls);
    mask_values(wanted, nulls, (rows + 63) / 64, nulls);
    std::fill_n(payloads + rows, -rows % 64, 0);
    for (std::uint32_t i = 0; i < (rows + 63) / 64 * 64; i += kLanes) {
      const std::uint64_t bits = nulls[i / 64] >> (i % 64);
      for (std::size_t lane = 0; lane < kLanes; ++lane)
        sums[lane] += std::bit_cast<double>(payloads[i + lane] &
                                            -static_cast<std::int64_t>((bits >> lane) & 1));
    }
    total.count += count_bits(nulls, 0, rows);
    done += rows;
  }
  for (const double sum : sums) total.sum += sum;
  return total;
}

MainExtremes MainColumn::extremes(std::uint32_t first, std::uint32_t count,
                                  const std::uint64_t* mask) const {
  FLUGS_CHECK(first % 64 == 0 && first <= row_count_ && count <= row_count_ - first);
  if (mask == nullptr && count == row_count_) return {min(), max()};
  if (encoding_ == MainEncoding::kConstant)
    return count_bits(mask, 0, count) != 0 ? MainExtremes{min(), max()} : MainExtremes{};
  if (cells_ != nullptr || owns_texts()) return extremes_of_texts(*this, first, count, mask);
  CodeExtremes found;
  const auto note = [&](const CodeExtremes& part) {
    if (part.min > part.max) return;
    found.min = std::min(found.min, part.min);
    found.max = std::max(found.max, part.max);
  };
  if (!runs_.empty()) {
    note(extremes_of_runs(*this, first, count, mask));
  } else {
    for_blocks(first, count, mask,
               [&](std::size_t block, std::size_t blocks, const std::uint64_t* wanted) {
                 note(extremes_of_blocks(*this, block, blocks, wanted));
               });
  }
  if (found.min > found.max) return {};
  if (encoding_ != MainEncoding::kPlain)
    return {entry_value(std::min(found.min, code_count() - 1)),
            entry_value(std::min(found.max, code_count() - 1))};
  const auto payload = [&](std::uint64_t x) {
    const auto raw = static_cast<std::int64_t>(x + static_cast<std::uint64_t>(kOrderOrigin));
    return Value::from_raw(type(), type() == Type::kDouble ? ordered_double(raw) : raw);
  };
  return {payload(found.min), payload(found.max)};
}

}  // namespace flugs::columns
