#include "test/support/main_column_group.h"

#include <xxhash.h>

#include <bit>
#include <cstring>
#include <limits>

#include "base/types.h"
#include "columns/column/column.h"

namespace flugs::test {

using columns::Cell;
using columns::MainColumnBuilder;
using columns::MainColumnLayout;

namespace {

std::uint64_t out_of_line_bytes(const std::vector<ModelValue>& values) {
  std::uint64_t bytes = 64;
  for (const ModelValue& value : values)
    if (value.text.size() > columns::text_cell::kInlineBytesMax) bytes += value.text.size();
  return (bytes + 63) / 64 * 64;
}

}  // namespace

MainColumnGroup::MainColumnGroup(Type type, std::vector<ModelValue> values,
                                 columns::MainEncodings allowed)
    : type_(type), values_(std::move(values)), group_offset_(out_of_line_bytes(values_)) {
  // Text cells name offsets, so they can be made before the pool has its size.
  std::string strings(64, 'x');
  std::vector<Cell> cells;
  std::vector<std::int64_t> payloads;
  std::vector<std::uint8_t> nulls;
  bool has_nulls = false;
  for (const ModelValue& value : values_) {
    has_nulls |= value.null;
    nulls.push_back(value.null ? 1 : 0);
    payloads.push_back(value.null ? static_cast<std::int64_t>(payloads.size()) : value.raw);
    Cell cell;
    if (value.text.size() <= columns::text_cell::kInlineBytesMax) {
      cell = columns::text_cell::make_inline(value.text);
    } else {
      cell = columns::text_cell::make_out_of_line(strings.size(),
                                                  static_cast<std::uint32_t>(value.text.size()));
      strings += value.text;
    }
    cell.is_null = value.null;
    cells.push_back(cell);
  }
  if (!has_nulls) nulls.clear();
  strings.resize(group_offset_);
  const std::atomic<std::uint64_t> string_bytes(strings.size());
  const columns::TextMemory strings_only{reinterpret_cast<const std::byte*>(strings.data()),
                                         &string_bytes};
  const MainColumnBuilder builder =
      is_text_type(type) ? MainColumnBuilder::of_texts(type, cells, strings_only, allowed)
                         : MainColumnBuilder::of_integers(type, payloads, nulls, allowed);
  constexpr std::uint64_t kPartsOffset = 192;
  pool_bytes_ = group_offset_ + kPartsOffset + builder.parts_bytes();
  *pool_bytes_word_ = pool_bytes_;
  pool_.reset(static_cast<std::byte*>(::operator new[](pool_bytes_, std::align_val_t{64})));
  std::memset(pool_.get(), 0xA5, pool_bytes_);
  std::memcpy(pool_.get(), strings.data(), strings.size());
  builder.write(group(), kPartsOffset, layout());
}

void MainColumnGroup::sign_parts() {
  layout().parts_checksum = XXH3_64bits(parts().data(), parts().size());
}

void MainColumnGroup::sign() {
  layout().checksum = XXH3_64bits(&layout(), offsetof(MainColumnLayout, checksum));
}

ModelValue integer_value(Type type, std::int64_t raw) { return {type, false, raw, {}}; }
ModelValue text_value(std::string text) { return {Type::kString, false, 0, std::move(text)}; }

std::vector<ModelValue> random_values(const MainColumnShape& shape, Random& random) {
  std::vector<ModelValue> values;
  while (values.size() < shape.rows) {
    ModelValue value{shape.type, false, 0, {}};
    const std::uint64_t number =
        shape.spread == 0 ? random.next() : random.next() % (shape.spread + 1);
    if (random.below(100) < shape.null_percent) {
      value.null = true;
    } else if (is_text_type(shape.type)) {
      value.text = std::to_string(number);
      if (number % 3 == 0) value.text.insert(0, "a longer text that stands out of line ");
      if (number % 5 == 0) value.text.insert(0, std::string("\0\xFF", 2));
      if (number % 101 == 0) value.text.clear();
    } else if (shape.type == Type::kDouble) {
      const double real = static_cast<double>(static_cast<std::int64_t>(number)) / 8 - 100;
      value.raw =
          columns::normalised(
              Value::real(number % 97 == 0 ? std::numeric_limits<double>::quiet_NaN() : real),
              Type::kDouble)
              .raw();
    } else {
      value.raw = static_cast<std::int64_t>(static_cast<std::uint64_t>(shape.base) + number);
    }
    const std::uint64_t rows = shape.run_rows <= 1 ? 1 : 1 + random.below(2 * shape.run_rows);
    for (std::uint64_t i = 0; i < rows && values.size() < shape.rows; ++i) values.push_back(value);
  }
  return values;
}

}  // namespace flugs::test
