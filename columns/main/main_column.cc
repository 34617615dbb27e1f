#include "columns/main/main_column.h"

#include "base/check.h"
#include "columns/main/main_blocks.h"

namespace flugs::columns {
namespace {

constexpr std::uint64_t padded(std::uint64_t bytes) noexcept { return (bytes + 63) / 64 * 64; }

// Zeroes out[i] where bit i is set.
void zero_where(const std::uint64_t* bits, std::size_t words, std::int64_t* out) noexcept {
  for (std::size_t w = 0; w < words; ++w)
    for (std::uint64_t rest = bits[w]; rest != 0; rest &= rest - 1)
      out[w * 64 + static_cast<unsigned>(std::countr_zero(rest))] = 0;
}

// Calls `blocks(first block, count, where)` for whole blocks of rows: directly into `out` where all
// rows of the blocks are wanted, else through a buffer.
template <typename T, typename Blocks>
void unpack_rows(std::uint32_t first, std::uint32_t count, T* out, const Blocks& blocks) {
  T buffer[64];
  const auto part = [&](std::uint32_t rows) {
    blocks(first / 64, std::size_t{1}, buffer);
    std::copy_n(buffer + first % 64, rows, out);
    first += rows;
    out += rows;
    count -= rows;
  };
  if (first % 64 != 0 && count != 0) part(std::min(64 - first % 64, count));
  if (const std::uint32_t whole = count / 64; whole != 0) {
    blocks(first / 64, std::size_t{whole}, out);
    first += whole * 64;
    out += whole * 64;
    count -= whole * 64;
  }
  if (count != 0) part(count);
}

}  // namespace

MainColumnParts MainColumnParts::of(const MainColumnLayout& layout) noexcept {
  const bool is_text = is_text_type(static_cast<Type>(layout.type));
  const auto encoding = static_cast<MainEncoding>(layout.encoding);
  MainColumnParts parts;
  std::uint64_t end = padded(std::uint64_t{layout.entry_count} * (is_text ? 16 : 8));
  parts.run_ends = end;
  end += padded(std::uint64_t{layout.run_count} * 4);
  parts.run_starts = end;
  constexpr std::uint32_t kStep = 1u << MainColumnLayout::kRowsPerRunStartLog2;
  if (layout.run_count != 0) end += padded(((layout.row_count + kStep - 1) / kStep) * 4ull);
  parts.codes = end;
  const std::uint64_t codes = layout.run_count != 0 ? layout.run_count : layout.row_count;
  if (layout.code_bits != 0) end += padded((codes + 63) / 64 * 8 * layout.code_bits + 64);
  parts.cells = end;
  if (encoding == MainEncoding::kPlain && is_text)
    end += padded(std::uint64_t{layout.row_count} * 16);
  parts.null_bits = end;
  if (encoding == MainEncoding::kPlain && !is_text && layout.null_count != 0)
    end += padded((std::uint64_t{layout.row_count} + 63) / 64 * 8);
  parts.symbols = end;
  if (encoding == MainEncoding::kCompressed) {
    end += padded(TextSymbols::stored_bytes(layout.symbol_count));
    parts.starts = end;
    end +=
        padded((std::uint64_t{layout.row_count} + kRowsPerTextStart - 1) / kRowsPerTextStart * 8);
    parts.texts = end;
    end += padded(layout.text_bytes);
  }
  parts.bytes = end;
  return parts;
}

MainColumn::MainColumn(const MainColumnLayout& layout, const std::byte* group, TextMemory memory,
                       ReadTexts* read_texts) noexcept
    : layout_(&layout),
      domain_(layout, group + layout.parts_offset, memory),
      parts_(group + layout.parts_offset),
      parts_bytes_(layout.parts_bytes),
      row_count_(layout.row_count),
      null_count_(layout.null_count),
      code_bits_(layout.code_bits),
      encoding_(static_cast<MainEncoding>(layout.encoding)) {
  const MainColumnParts parts = MainColumnParts::of(layout);
  const std::byte* begin = group + layout.parts_offset;
  if (layout.run_count != 0)
    runs_ = {reinterpret_cast<const std::uint32_t*>(begin + parts.run_ends),
             reinterpret_cast<const std::uint32_t*>(begin + parts.run_starts), layout.run_count,
             layout.row_count};
  if (code_bits_ != 0) codes_ = reinterpret_cast<const std::uint64_t*>(begin + parts.codes);
  if (encoding_ == MainEncoding::kPlain && is_text()) cells_ = begin + parts.cells;
  if (encoding_ == MainEncoding::kPlain && !is_text() && null_count_ != 0)
    null_bits_ = reinterpret_cast<const std::uint64_t*>(begin + parts.null_bits);
  if (encoding_ == MainEncoding::kCompressed) {
    FLUGS_CHECK(read_texts != nullptr);
    read_texts_ = read_texts;
  }
}

CompressedTexts MainColumn::compressed_texts(const MainColumnLayout& layout,
                                             const std::byte* group) noexcept {
  if (static_cast<MainEncoding>(layout.encoding) != MainEncoding::kCompressed) return {};
  const MainColumnParts parts = MainColumnParts::of(layout);
  const std::byte* begin = group + layout.parts_offset;
  return {{begin + parts.symbols, layout.symbol_count},
          {reinterpret_cast<const std::uint64_t*>(begin + parts.codes), layout.code_bits},
          reinterpret_cast<const std::uint64_t*>(begin + parts.starts),
          {reinterpret_cast<const std::uint8_t*>(begin + parts.texts), layout.text_bytes},
          layout.row_count};
}

Value MainColumn::bound(const std::uint64_t* words) const noexcept {
  if (null_count_ == row_count_) return Value::null();
  if (owns_texts())
    return Value::from_bytes(type(), read_texts_->text(static_cast<std::uint32_t>(words[0])));
  if (is_text())
    return Value::from_bytes(type(), domain_.text_at(reinterpret_cast<const std::byte*>(words)));
  return Value::from_raw(type(), static_cast<std::int64_t>(words[0]));
}

std::string_view MainColumn::bound_text(const std::uint64_t* words, std::string& memory) const {
  FLUGS_DCHECK(is_text() && null_count_ != row_count_);
  if (!owns_texts()) return domain_.text_at(reinterpret_cast<const std::byte*>(words));
  CompressedTextReader reader(read_texts_->compressed());
  memory = reader.text(static_cast<std::uint32_t>(words[0]));
  return memory;
}

Value MainColumn::value(std::uint32_t row) const noexcept {
  if (code_count() != 0) return entry_value(code(row));
  if (is_null(row)) return Value::null();
  return is_text() ? Value::from_bytes(type(), text(row)) : Value::from_raw(type(), integer(row));
}

Value MainColumn::entry_value(std::uint64_t code) const noexcept { return domain_.value(code); }

void MainColumn::codes(std::uint32_t first, std::uint32_t count, std::uint32_t* out) const {
  FLUGS_CHECK(code_count() != 0 && code_count() <= (std::uint64_t{1} << 32));
  FLUGS_CHECK(first <= row_count_ && count <= row_count_ - first);
  if (encoding_ == MainEncoding::kConstant) {
    std::fill_n(out, count, 0);
  } else if (!runs_.empty()) {
    for_runs(first, count, [&](std::uint32_t from, std::uint32_t rows, std::uint64_t code) {
      std::fill_n(out + (from - first), rows, static_cast<std::uint32_t>(code));
    });
  } else {
    const auto limit = static_cast<std::uint32_t>(code_count() - 1);
    unpack_rows(first, count, out, [&](std::size_t block, std::size_t blocks, std::uint32_t* at) {
      kernels().codes(packed(), block, blocks, limit, at);
    });
  }
}

void MainColumn::stored_plus(std::uint32_t first, std::uint32_t count, std::uint64_t addend,
                             std::int64_t* out) const {
  FLUGS_CHECK(code_bits_ != 0 && first <= row_count_ && count <= row_count_ - first);
  if (!runs_.empty()) {
    for_runs(first, count, [&](std::uint32_t from, std::uint32_t rows, std::uint64_t code) {
      std::fill_n(out + (from - first), rows, static_cast<std::int64_t>(code + addend));
    });
    return;
  }
  unpack_rows(first, count, out, [&](std::size_t block, std::size_t blocks, std::int64_t* at) {
    kernels().values(packed(), block, blocks, addend, at);
  });
}

void MainColumn::values_of_blocks(std::size_t first, std::size_t count, std::int64_t* out) const {
  FLUGS_DCHECK(runs_.empty() && encoding_ != MainEncoding::kConstant);
  if (has_entries()) {
    kernels().decode(packed(), first, count,
                     reinterpret_cast<const std::int64_t*>(domain_.entries()),
                     static_cast<std::uint32_t>(code_count() - 1), out);
    return;
  }
  if (encoding_ == MainEncoding::kPlain) {
    std::memcpy(out, codes_ + first * 64, count * 64 * 8);
    for (std::size_t i = 0; type() == Type::kDouble && i < count * 64; ++i)
      out[i] = ordered_double(out[i]);
    return;
  }
  kernels().values(packed(), first, count, domain_.base(), out);
  if (!has_nulls()) return;
  constexpr std::size_t kStep = 64;
  std::uint64_t nulls[kStep];
  for (std::size_t done = 0; done < count; done += kStep) {
    const std::size_t blocks = std::min(kStep, count - done);
    null_words(first + done, blocks, nulls);
    zero_where(nulls, blocks, out + done * 64);
  }
}

void MainColumn::integers(std::uint32_t first, std::uint32_t count, std::int64_t* out,
                          std::uint64_t* nulls) const {
  FLUGS_CHECK(!is_text() && first <= row_count_ && count <= row_count_ - first);
  if (encoding_ == MainEncoding::kConstant) {
    std::fill_n(out, count, entry_integer(0));
  } else if (!runs_.empty()) {
    for_runs(first, count, [&](std::uint32_t from, std::uint32_t rows, std::uint64_t code) {
      std::fill_n(out + (from - first), rows, entry_integer(code));
    });
  } else {
    unpack_rows(first, count, out, [&](std::size_t block, std::size_t blocks, std::int64_t* at) {
      values_of_blocks(block, blocks, at);
    });
  }
  if (nulls != nullptr) null_bits(first, count, nulls);
}

void MainColumn::integers_at(std::uint32_t first, std::span<const std::uint32_t> places,
                             std::int64_t* out) const {
  FLUGS_CHECK(!is_text() && (places.empty() || first + places.back() < row_count_));
  if (code_count() != 0) {
    for (std::size_t i = 0; i < places.size(); ++i)
      out[i] = entry_integer(packed_code(first + places[i]));
  } else {
    const bool is_real = type() == Type::kDouble;
    for (std::size_t i = 0; i < places.size(); ++i) {
      const auto payload = static_cast<std::int64_t>(codes_[first + places[i]]);
      out[i] = is_real ? ordered_double(payload) : payload;
    }
  }
}

void MainColumn::texts_at(std::uint32_t first, std::span<const std::uint32_t> places,
                          std::string_view* out, TextScratch* scratch) const {
  FLUGS_CHECK(is_text() && (places.empty() || first + places.back() < row_count_));
  if (owns_texts() && scratch != nullptr && read_texts_->is_full())
    return read_texts_->compressed().decode(
        places.size(), [&](std::size_t i) { return first + places[i]; }, *scratch, out);
  for (std::size_t i = 0; i < places.size(); ++i) {
    const std::uint32_t row = first + places[i];
    out[i] = code_count() != 0 ? entry_text(packed_code(row)) : plain_text(row);
  }
}

void MainColumn::texts(std::uint32_t first, std::uint32_t count, std::string_view* out,
                       std::uint64_t* nulls, TextScratch* scratch) const {
  FLUGS_CHECK(is_text() && first <= row_count_ && count <= row_count_ - first);
  if (encoding_ == MainEncoding::kPlain) {
    for (std::uint32_t i = 0; i < count; ++i)
      out[i] = domain_.text_at(cells_ + (std::size_t{first} + i) * 16);
  } else if (owns_texts() && scratch != nullptr && read_texts_->is_full()) {
    read_texts_->compressed().decode(
        count, [&](std::size_t i) { return first + static_cast<std::uint32_t>(i); }, *scratch, out);
  } else if (owns_texts()) {
    for (std::uint32_t i = 0; i < count; ++i) out[i] = read_texts_->text(first + i);
  } else {
    std::uint32_t buffer[256];
    for (std::uint32_t done = 0; done < count;) {
      const std::uint32_t rows = std::min<std::uint32_t>(256, count - done);
      codes(first + done, rows, buffer);
      for (std::uint32_t i = 0; i < rows; ++i) out[done + i] = entry_text(buffer[i]);
      done += rows;
    }
  }
  if (nulls != nullptr) null_bits(first, count, nulls);
}

void MainColumn::null_words(std::size_t first, std::size_t count, std::uint64_t* out) const {
  FLUGS_DCHECK(runs_.empty());
  if (null_bits_ != nullptr) {
    std::copy_n(null_bits_ + first, count, out);
  } else if (cells_ != nullptr) {
    for (std::size_t w = 0; w < count; ++w) {
      const std::size_t row = (first + w) * 64;
      const std::size_t rows = std::min<std::size_t>(64, row_count_ - row);
      out[w] = 0;
      for (std::size_t i = 0; i < rows; ++i)
        out[w] |= std::uint64_t{is_plain_null(static_cast<std::uint32_t>(row + i))} << i;
    }
  } else {
    std::fill_n(out, count, ~std::uint64_t{0});
    if (code_bits_ != 0) kernels().filter(packed(), first, count, 0, 0, false, out);
  }
}

std::uint64_t MainColumn::long_text_bytes() const noexcept {
  if (!is_text() || owns_texts()) return 0;
  std::uint64_t bytes = 0;
  const auto add = [&](std::string_view text) {
    if (text.size() > text_cell::kInlineBytesMax) bytes += text.size();
  };
  if (code_count() == 0) {
    for (std::uint32_t row = 0; row < row_count_; ++row) add(text(row));
  } else {
    for (std::uint64_t code = 0; code < code_count(); ++code) add(entry_text(code));
  }
  return bytes;
}

void MainColumn::null_bits(std::uint32_t first, std::uint32_t count, std::uint64_t* nulls) const {
  FLUGS_CHECK(first <= row_count_ && count <= row_count_ - first);
  const std::size_t words = (std::size_t{count} + 63) / 64;
  std::fill_n(nulls, words, 0);
  if (!has_nulls() || count == 0) return;
  if (!runs_.empty()) {
    for_runs(first, count, [&](std::uint32_t from, std::uint32_t rows, std::uint64_t code) {
      if (code == 0) set_bits(nulls, from - first, rows);
    });
    return;
  }
  if (first % 64 == 0) {
    null_words(first / 64, words, nulls);
  } else {
    const std::size_t last_block = (row_count_ - 1) / 64;
    for (std::size_t w = 0; w < words; ++w) {
      const std::size_t block = first / 64 + w;
      std::uint64_t pair[2] = {};
      null_words(block, block < last_block ? 2 : 1, pair);
      nulls[w] = (pair[0] >> (first % 64)) | (pair[1] << (64 - first % 64));
    }
  }
  if (count % 64 != 0) nulls[words - 1] &= low_bits(count % 64);
}

}  // namespace flugs::columns
