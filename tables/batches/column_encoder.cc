#include "tables/batches/column_encoder.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/types.h"

namespace flugs::engine {

namespace {

using columns::Dictionary;
constexpr std::uint64_t kMixer = 0x9e3779b97f4a7c15u;

// Cheap: the result only says where to look for the text. The text itself is compared there.
std::uint64_t sketch_of(std::string_view text) noexcept {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  if (text.size() >= sizeof first) {
    std::memcpy(&first, text.data(), sizeof first);
    std::memcpy(&last, text.data() + text.size() - sizeof last, sizeof last);
  } else if (!text.empty()) {
    std::memcpy(&last, text.data(), text.size());
  }
  return (first * kMixer + last) ^ text.size();
}

bool is_long(std::string_view text) noexcept {
  return text.size() > columns::text_cell::kInlineBytesMax;
}

void encode_numbers(const columns::Column& column, const BlockColumn& values, std::size_t rows,
                    BlockCells& cells) noexcept {
  const std::uint64_t mask = is_narrow_type(column.type()) ? 0xFFFFFFFFu : ~std::uint64_t{0};
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < rows; ++i) {
    cells.low[i] = static_cast<std::uint64_t>(values.payloads[i]) & mask;
    all |= cells.low[i];
  }
  cells.bits = column.bits_for({all, 0, false});
}

Status encode_texts(columns::Column& column, const BlockColumn& values, std::size_t rows,
                    const ColumnEncoder::Call& call, BlockCells& cells) {
  for (std::size_t i = 0; i < rows; ++i) {
    columns::Cell cell;
    if (!is_long(values.texts[i])) {
      cell = columns::text_cell::make_inline(values.texts[i]);
    } else {
      if (column.is_in_key())
        if (Status s = call.before_text(); !s.ok()) return s;
      Result<columns::Cell> made =
          column.encode(values.value(i, column.type()), call.unflushed, call.persister);
      if (!made.ok()) return std::move(made).status();
      cell = *made;
      if (column.is_long_text(cell)) call.note_text(column, cell);
    }
    cells.low[i] = cell.low;
    cells.high[i] = cell.high;
  }
  cells.bits = column.bits_for(columns::text_cell::make_inline({}));
  return {};
}

}  // namespace

void ColumnEncoder::begin_edition(const columns::Column& column) {
  of_ = &column;
  edition_ = column.edition();
  null_code_ = Dictionary::kNone;
  if (entries_ != 0) {
    by_entry_.assign(entries_, Dictionary::kNone);
  } else {
    by_value_.assign(kRemembered, {0, 0, Dictionary::kNone});
  }
}

std::uint32_t* ColumnEncoder::known(const BlockColumn& values, std::size_t row) noexcept {
  if (entries_ != 0) return &by_entry_[values.entries[row]];
  if (values.is_text) {
    const std::string_view text = values.texts[row];
    Remembered& slot = by_value_[sketch_of(text) * kMixer >> 54];
    const bool is_same =
        slot.code != Dictionary::kNone && slot.bytes == text.size() &&
        std::memcmp(reinterpret_cast<const char*>(slot.payload), text.data(), text.size()) == 0;
    return is_same ? &slot.code : nullptr;
  }
  const std::int64_t payload = values.payloads[row];
  Remembered& slot = by_value_[static_cast<std::uint64_t>(payload) * kMixer >> 54];
  return slot.payload == payload ? &slot.code : nullptr;
}

void ColumnEncoder::remember(const BlockColumn& values, std::size_t row,
                             std::uint32_t code) noexcept {
  if (entries_ != 0) {
    by_entry_[values.entries[row]] = code;
    return;
  }
  if (values.is_text) {
    const std::string_view text = values.texts[row];
    if (text.empty()) return;
    by_value_[sketch_of(text) * kMixer >> 54] = {reinterpret_cast<std::intptr_t>(text.data()),
                                                 static_cast<std::uint32_t>(text.size()), code};
    return;
  }
  const std::int64_t payload = values.payloads[row];
  by_value_[static_cast<std::uint64_t>(payload) * kMixer >> 54] = {payload, 0, code};
}

Status ColumnEncoder::encode(columns::Column& column, const BlockColumn& values, std::size_t rows,
                             const Call& call, BlockCells& cells) {
  FLUGS_DCHECK(rows <= kBlockRows);
  if (__builtin_expect(column.is_dropped(), 0)) {
    std::fill_n(cells.low.begin(), rows, std::uint64_t{0});
    std::fill_n(cells.high.begin(), rows, std::uint64_t{0});
    cells.bits = column.bits_for({});
    return {};
  }
  if (column.is_dictionary()) return encode_codes(column, values, rows, call, cells);
  if (column.is_text()) return encode_texts(column, values, rows, call, cells);
  encode_numbers(column, values, rows, cells);
  return {};
}

Status ColumnEncoder::encode_codes(columns::Column& column, const BlockColumn& values,
                                   std::size_t rows, const Call& call, BlockCells& cells) {
  if (of_ != &column || edition_ != column.edition()) begin_edition(column);
  std::array<std::uint16_t, Dictionary::kBatchMax> unknown;
  std::size_t count = 0;
  for (std::size_t i = 0; i < rows; ++i) {
    if (values.is_null_at(i)) {
      if (null_code_ == Dictionary::kNone) {
        const Result<std::uint32_t> code =
            column.dictionary().encode(Value::null(), call.unflushed, call.persister);
        if (!code.ok()) return code.status();
        null_code_ = *code;
      }
      cells.low[i] = null_code_;
      continue;
    }
    const std::uint32_t* code = known(values, i);
    if (code != nullptr && *code != Dictionary::kNone) {
      cells.low[i] = *code;
      continue;
    }
    unknown[count++] = static_cast<std::uint16_t>(i);
    if (count < unknown.size()) continue;
    if (Status s = look_up(column, values, unknown, call, cells); !s.ok()) return s;
    count = 0;
  }
  if (Status s = look_up(column, values, std::span(unknown).first(count), call, cells); !s.ok())
    return s;
  std::uint64_t greatest = 0;
  for (std::size_t i = 0; i < rows; ++i) greatest = std::max(greatest, cells.low[i]);
  cells.bits = column.bits_for({greatest, 0, false});
  return {};
}

// Long texts are added only after before_text: those of a dictionary stay, whatever becomes of
// their rows.
Status ColumnEncoder::look_up(columns::Column& column, const BlockColumn& values,
                              std::span<const std::uint16_t> rows, const Call& call,
                              BlockCells& cells) {
  std::array<Value, Dictionary::kBatchMax> wanted;
  std::array<columns::Cell, Dictionary::kBatchMax> found;
  for (std::size_t i = 0; i < rows.size(); ++i) wanted[i] = values.value(rows[i], column.type());
  const std::span<const Value> all(wanted.data(), rows.size());
  Dictionary& dictionary = column.dictionary();
  if (values.is_text && dictionary.find_many(all, found, call.unflushed) != 0) {
    bool is_any_long = false;
    for (std::size_t i = 0; i < rows.size(); ++i)
      is_any_long |= found[i].low == Dictionary::kNone && is_long(wanted[i].as_string());
    if (is_any_long)
      if (Status s = call.before_text(); !s.ok()) return s;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (found[i].low != Dictionary::kNone) continue;
      const Result<std::uint32_t> code =
          dictionary.encode(wanted[i], call.unflushed, call.persister);
      if (!code.ok()) return code.status();
      found[i].low = *code;
    }
  } else if (!values.is_text) {
    if (Status s = dictionary.encode_many(all, 0, 1, found, call.unflushed, call.persister);
        !s.ok())
      return s;
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    cells.low[rows[i]] = found[i].low;
    remember(values, rows[i], static_cast<std::uint32_t>(found[i].low));
  }
  return {};
}

}  // namespace flugs::engine
