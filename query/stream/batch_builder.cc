#include "query/stream/batch_builder.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "base/check.h"

namespace flugs::query {

namespace {

// The rows of a batch fill about this much memory, so that they are still in the second-level cache
// when the user reads them. Batches of wide rows have kRowsLeast all the same: a batch costs some
// microseconds.
constexpr std::size_t kBytesWanted = std::size_t{512} << 10;
constexpr std::size_t kRowsLeast = 8 * kBatchRows;
static_assert(kRowsLeast <= StreamBatch::kRowsMax && StreamBatch::kRowsMax % kBatchRows == 0);

// Texts have an offset for each row, and one for the end.
std::size_t width_of(const StreamColumn& column) noexcept {
  if (column.form == Form::kText) return 4;
  return column.form == Form::kInt ? bytes_of(column.ints) : bytes_of(column.form);
}

std::size_t rows_max_of(const std::vector<StreamColumn>& columns) noexcept {
  std::size_t width = 0;
  for (const StreamColumn& column : columns) width += width_of(column);
  const std::size_t rows = kBytesWanted / std::max<std::size_t>(width, 1);
  return std::clamp(rows / kBatchRows * kBatchRows, kRowsLeast, StreamBatch::kRowsMax);
}

}  // namespace

TextColumn BatchData::texts(std::size_t column) const noexcept {
  const BatchValues& of = columns[column];
  if (of.dictionary != nullptr)
    return {std::span(of.values.view(false).codes(), rows), of.dictionary.get()};
  return {std::span(static_cast<const std::int32_t*>(of.values.view(false).data), rows + 1),
          of.bytes.data()};
}

BatchBuilder::BatchBuilder(RunContext& context, const std::vector<StreamColumn>& columns,
                           std::shared_ptr<const std::vector<ResultColumn>> schema)
    : context_(context),
      columns_(columns),
      schema_(std::move(schema)),
      building_(columns.size()),
      rows_max_(rows_max_of(columns)),
      charge_(context.budget, "result") {
  FLUGS_CHECK(schema_->size() == columns_.size());
}

// A small result gets little memory; the first batch of a large one grows twice.
void BatchBuilder::make_room(std::size_t rows) {
  if (rows_ + rows <= capacity_) return;
  const std::size_t wanted =
      was_full_ ? rows_max_ : std::max(rows_ + rows, capacity_ == 0 ? rows : capacity_ * 8);
  capacity_ = std::min(wanted, rows_max_);
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    BatchValues& column = building_[c].column;
    const std::size_t width = width_of(columns_[c]);
    column.values.grow((capacity_ + 1) * width, rows_ == 0 ? 0 : (rows_ + 1) * width);
    if (column.has_nulls) column.values.grow_nulls(capacity_, rows_);
  }
  charge_.set(memory());
}

std::uint64_t BatchBuilder::memory() const noexcept {
  std::uint64_t bytes = 0;
  for (const Building& of : building_)
    bytes += of.column.values.bytes() + of.column.bytes.capacity() + of.codes.bytes() +
             of.offsets.capacity() * sizeof of.offsets[0];
  return bytes;
}

std::size_t BatchBuilder::append(const Batch& from, std::size_t first) {
  FLUGS_DCHECK(first < from.rows && from.columns.size() == columns_.size());
  std::size_t count = std::min(from.rows - first, rows_max_ - rows_);
  if (count == 0) return 0;
  make_room(count);
  // A column of texts may have room for fewer rows than the columns before it got. Their surplus
  // rows do not count, and the batch is full.
  for (std::size_t c = 0; c < columns_.size(); ++c)
    count = append_values(c, from.columns[c].from(first, columns_[c].form), count);
  FLUGS_CHECK(count != 0 || rows_ != 0);
  rows_ += count;
  charge_.set(memory());
  return count;
}

std::size_t BatchBuilder::append_packed(const std::vector<const columns::MainColumn*>& from,
                                        std::uint32_t first, std::size_t count) {
  FLUGS_DCHECK(count != 0 && from.size() == columns_.size());
  count = std::min(count, rows_max_ - rows_);
  make_room(count);
  for (std::size_t c = 0; c < columns_.size(); ++c) append_packed(c, *from[c], first, count);
  rows_ += count;
  charge_.set(memory());
  return count;
}

// Unpacks numbers of 64 bits where they stay. Others are unpacked in the first-level cache.
void BatchBuilder::append_packed(std::size_t column, const columns::MainColumn& from,
                                 std::uint32_t first, std::size_t count) {
  const StreamColumn& of = columns_[column];
  FLUGS_DCHECK(of.form == Form::kReal || of.form == Form::kInt);
  BatchValues& to = building_[column].column;
  append_nulls(to, from, first, count);
  const std::uint8_t* const nulls = to.has_nulls ? to.values.nulls(capacity_) + rows_ : nullptr;
  auto* const values = static_cast<std::byte*>(to.values.reserve(0)) + rows_ * bytes_of(of.ints);
  const bool is_direct = of.ints == IntForm::kInt64;
  std::int64_t unpacked[kBatchRows];
  for (std::size_t done = 0; done < count; done += kBatchRows) {
    const std::size_t part = std::min(kBatchRows, count - done);
    std::byte* const out = values + done * bytes_of(of.ints);
    std::int64_t* const at = is_direct ? reinterpret_cast<std::int64_t*>(out) : unpacked;
    from.integers(first + static_cast<std::uint32_t>(done), static_cast<std::uint32_t>(part), at,
                  nullptr);
    if (!is_direct || nulls != nullptr)
      put_integers(of.ints, at, nulls == nullptr ? nullptr : nulls + done, part, out);
  }
}

// Notes which of the packed rows are NULL.
void BatchBuilder::append_nulls(BatchValues& to, const columns::MainColumn& from,
                                std::uint32_t first, std::size_t count) {
  if (!from.has_nulls()) return append_nulls(to, ColumnView(), count);
  std::uint8_t* const nulls = to.values.nulls(capacity_);
  if (!std::exchange(to.has_nulls, true)) std::memset(nulls, 0, rows_);
  std::uint64_t bits[kBatchRows / 64];
  for (std::size_t done = 0; done < count; done += kBatchRows) {
    const std::size_t part = std::min(kBatchRows, count - done);
    from.null_bits(first + static_cast<std::uint32_t>(done), static_cast<std::uint32_t>(part),
                   bits);
    for (std::size_t i = 0; i < part; ++i) nulls[rows_ + done + i] = (bits[i / 64] >> (i % 64)) & 1;
  }
}

std::size_t BatchBuilder::append_values(std::size_t column, const ColumnView& from,
                                        std::size_t count) {
  const StreamColumn& of = columns_[column];
  Building& to = building_[column];
  append_nulls(to.column, from, count);
  if (of.form == Form::kText) return append_texts(to.column, from, count);
  if (of.form == Form::kCode) return append_codes(to, *of.texts, from, count);
  // Doubles are copied as they are: a double of 0 is an int64 of 0.
  auto* const values = static_cast<std::byte*>(to.column.values.reserve(0));
  put_integers(of.ints, from.ints(), from.nulls, count, values + rows_ * bytes_of(of.ints));
  return count;
}

void BatchBuilder::append_nulls(BatchValues& to, const ColumnView& from, std::size_t count) {
  if (from.nulls == nullptr && !to.has_nulls) return;
  std::uint8_t* nulls = to.values.nulls(capacity_);
  if (!std::exchange(to.has_nulls, true)) std::memset(nulls, 0, rows_);
  if (from.nulls != nullptr)
    std::memcpy(nulls + rows_, from.nulls, count);
  else
    std::memset(nulls + rows_, 0, count);
}

namespace {

bool has_room(const std::string& bytes, std::size_t more) noexcept {
  static_assert(StreamBatch::kTextBytesMax <= std::numeric_limits<std::int32_t>::max());
  FLUGS_DCHECK(more <= std::numeric_limits<std::int32_t>::max());
  return bytes.empty() || bytes.size() + more <= StreamBatch::kTextBytesMax;
}

}  // namespace

std::size_t BatchBuilder::append_texts(BatchValues& to, const ColumnView& from, std::size_t count) {
  std::int32_t* offsets = static_cast<std::int32_t*>(to.values.reserve(0)) + rows_;
  if (rows_ == 0) offsets[0] = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (from.nulls == nullptr || from.nulls[i] == 0) {
      const std::string_view text = from.texts()[i];
      if (!has_room(to.bytes, text.size())) return i;
      to.bytes.append(text);
    }
    offsets[i + 1] = static_cast<std::int32_t>(to.bytes.size());
  }
  return count;
}

std::size_t BatchBuilder::append_codes(Building& to, DomainTexts& texts, const ColumnView& from,
                                       std::size_t count) {
  std::uint32_t* codes = static_cast<std::uint32_t*>(to.column.values.reserve(0)) + rows_;
  if (rows_ == 0) to.column.dictionary = texts.shared();
  texts.count_rows(count);
  const auto is_null = [&](std::size_t i) { return from.nulls != nullptr && from.nulls[i] != 0; };
  if (to.column.dictionary != nullptr) {
    std::memcpy(codes, from.data, count * sizeof *codes);
    if (from.nulls != nullptr)
      for (std::size_t i = 0; i < count; ++i) codes[i] = is_null(i) ? 0 : codes[i];
    return count;
  }
  if (to.offsets.empty()) to.offsets.push_back(0);
  for (std::size_t i = 0; i < count; ++i) {
    codes[i] = 0;
    if (is_null(i)) continue;
    bool is_new = false;
    const std::uint32_t code = from.codes()[i];
    codes[i] = to.codes.number(code, is_new);
    if (!is_new) continue;
    const std::string_view text = texts.domain().text(code);
    // The map has the code now, and goes when the batch is taken.
    if (!has_room(to.column.bytes, text.size())) return i;
    to.column.bytes.append(text);
    to.offsets.push_back(static_cast<std::int32_t>(to.column.bytes.size()));
  }
  return count;
}

void BatchBuilder::close(Building& building, const StreamColumn& of) {
  BatchValues& column = building.column;
  column.ints = of.ints;
  // Rows came with places for NULLs, because others next to them have some.
  column.has_nulls =
      column.has_nulls && std::memchr(column.values.view(true).nulls, 1, rows_) != nullptr;
  if (of.form == Form::kText) {
    const auto* offsets = static_cast<const std::int32_t*>(column.values.view(false).data);
    column.bytes.resize(static_cast<std::size_t>(offsets[rows_]));
  } else if (of.form == Form::kCode && column.dictionary == nullptr) {
    column.dictionary = std::make_shared<const TextDictionary>(std::exchange(building.offsets, {}),
                                                               std::exchange(column.bytes, {}));
    building.codes.clear();
  }
  if (keeps_room_ || rows_ * 2 > capacity_) return;
  Vec narrow;
  const std::size_t bytes = (rows_ + 1) * width_of(of);
  std::memcpy(narrow.reserve(bytes), column.values.view(false).data, bytes);
  if (column.has_nulls) std::memcpy(narrow.nulls(rows_), column.values.view(true).nulls, rows_);
  column.values = std::move(narrow);
}

void BatchBuilder::reuse(std::vector<BatchValues> columns) {
  FLUGS_CHECK(rows_ == 0 && columns.size() == building_.size());
  for (std::size_t c = 0; c < columns.size(); ++c) {
    columns[c].bytes.clear();
    columns[c].has_nulls = false;
    columns[c].dictionary.reset();
    building_[c].column = std::move(columns[c]);
  }
}

ReadyBatch BatchBuilder::take() {
  FLUGS_CHECK(rows_ != 0);
  ReadyBatch ready;
  ready.data = std::make_shared<BatchData>();
  ready.data->schema = schema_;
  ready.data->rows = rows_;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    close(building_[c], columns_[c]);
    ready.data->columns.push_back(std::exchange(building_[c].column, {}));
  }
  ready.charge = std::exchange(charge_, Charge(context_.budget, "result"));
  was_full_ = was_full_ || is_full();
  rows_ = capacity_ = 0;
  return ready;
}

}  // namespace flugs::query
