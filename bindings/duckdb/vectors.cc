#include "bindings/duckdb/vectors.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>

namespace flugs::duckdb {

namespace {

constexpr std::size_t kInlineBytes = 12;

duckdb_v2_bytes bytes_of(std::string_view text, char* longer) noexcept {
  duckdb_v2_bytes bytes{};
  if (text.size() <= kInlineBytes) {
    bytes.value.inlined.length = static_cast<std::uint32_t>(text.size());
    std::memcpy(bytes.value.inlined.inlined, text.data(), text.size());
    return bytes;
  }
  bytes.value.pointer.length = static_cast<std::uint32_t>(text.size());
  std::memcpy(bytes.value.pointer.prefix, text.data(), sizeof bytes.value.pointer.prefix);
  bytes.value.pointer.ptr = longer;
  return bytes;
}

bool is_ascii(std::string_view text) noexcept {
  std::uint64_t all = 0;
  std::size_t i = 0;
  for (; i + sizeof all <= text.size(); i += sizeof all) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + i, sizeof word);
    all |= word;
  }
  for (; i < text.size(); ++i) all |= std::uint64_t{static_cast<unsigned char>(text[i])};
  return (all & 0x8080808080808080u) == 0;
}

bool is_utf8(std::string_view text) noexcept {
  if (is_ascii(text)) return true;
  const duckdb_v2_str view = str_of(text);
  duckdb_v2_error_info_handle reason = nullptr;
  const bool is = duckdb_v2_validate_utf8(&view, &reason) == DUCKDB_V2_ERROR_NONE;
  duckdb_v2_error_info_destroy(&reason);
  return is;
}

template <typename T>
void narrow(std::span<const std::int64_t> values, void* to) noexcept {
  auto* out = static_cast<T*>(to);
  for (std::size_t i = 0; i < values.size(); ++i) out[i] = static_cast<T>(values[i]);
}

// The values of a type that needs no look at them.
void copy_integers(Type type, std::span<const std::int64_t> values, void* to) noexcept {
  if (type == Type::kBool)
    narrow<std::uint8_t>(values, to);
  else if (type == Type::kInt32 || type == Type::kDate)
    narrow<std::int32_t>(values, to);
  else
    std::memcpy(to, values.data(), values.size_bytes());
}

// 64 rows a word, the first row in the lowest bit; 1: not NULL.
void write_validity(std::span<const std::uint8_t> nulls, std::uint64_t* words) noexcept {
  for (std::size_t i = 0; i < nulls.size(); i += 64) {
    std::uint64_t word = 0;
    const std::size_t rows = std::min<std::size_t>(64, nulls.size() - i);
    for (std::size_t r = 0; r < rows; ++r) word |= std::uint64_t{nulls[i + r] == 0} << r;
    words[i / 64] = word | (rows == 64 ? 0 : ~std::uint64_t{0} << rows);
  }
}

}  // namespace

VectorWriter::VectorWriter(std::string table, std::vector<ScanColumn> columns)
    : table_(std::move(table)), columns_(std::move(columns)), texts_(columns_.size()) {}

Status VectorWriter::write(duckdb_v2_vector_handle vector, const query::StreamBatch& batch,
                           std::size_t column, std::size_t first, std::size_t count) {
  FLUGS_TRY(ask(duckdb_v2_vector_set_size, vector, idx_t{count}));
  void* out = nullptr;
  FLUGS_TRY(ask(duckdb_v2_vector_get_data_mutable, vector, &out));
  const std::span<const std::uint8_t> nulls = batch.nulls(column);
  const bool has_nulls = !nulls.empty() && std::memchr(nulls.data() + first, 1, count) != nullptr;
  if (has_nulls) {
    std::uint64_t* words = nullptr;
    FLUGS_TRY(ask(duckdb_v2_vector_flat_get_validity_mutable, vector, &words));
    write_validity(nulls.subspan(first, count), words);
  }
  const ScanColumn& of = columns_[column];
  if (of.type == Type::kString || of.type == Type::kBytes)
    return write_texts(vector, batch, column, first, count, static_cast<duckdb_v2_bytes*>(out));
  if (of.type == Type::kDouble) {
    FLUGS_ASSIGN(const std::span<const double> values, batch.column<double>(column));
    std::memcpy(out, values.data() + first, count * sizeof values[0]);
    return {};
  }
  FLUGS_ASSIGN(std::span<const std::int64_t> values, batch.column<std::int64_t>(column));
  values = values.subspan(first, count);
  if (of.type == Type::kDecimal) return write_decimals(of, values, static_cast<std::int64_t*>(out));
  copy_integers(of.type, values, out);
  return {};
}

Status VectorWriter::write_decimals(const ScanColumn& of, std::span<const std::int64_t> values,
                                    std::int64_t* out) const {
  // Nearly all values are small, which takes no branch to see.
  constexpr std::uint64_t kSmall = std::uint64_t{1} << 59;
  static_assert(kSmall <= kDecimalUnitsMax);
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    out[i] = values[i];
    all |= static_cast<std::uint64_t>(values[i]) + kSmall;
  }
  if (all < 2 * kSmall) return {};
  for (const std::int64_t v : values)
    if (v > kDecimalUnitsMax || v < -kDecimalUnitsMax)
      return Status(StatusCode::kOverflow, "table " + table_ + ", column " + of.name + ": " +
                                               Value::decimal(v, of.scale).to_string() +
                                               " has more digits than a DECIMAL(18) of DuckDB");
  return {};
}

Status VectorWriter::bad_text(std::size_t column, std::string_view text) const {
  return Status(StatusCode::kInvalidArgument,
                "table " + table_ + ", column " + columns_[column].name + ": a text of " +
                    std::to_string(text.size()) +
                    " bytes is no UTF-8, which DuckDB wants; make it a column of bytes");
}

Status VectorWriter::read_dictionary(const query::StreamBatch& batch, std::size_t column,
                                     bool begins) {
  DictionaryTexts& known = texts_[column];
  std::shared_ptr<const query::TextDictionary> dictionary = batch.dictionary(column);
  if (known.dictionary == dictionary) {
    if (!known.is_shared && begins) {
      known.is_shared = true;
      kept_.push_back(std::move(dictionary));
    }
    return {};
  }
  known.texts.clear();
  for (std::uint32_t code = 0; code < dictionary->size(); ++code) {
    const std::string_view text = (*dictionary)[code];
    if (columns_[column].type == Type::kString && !is_utf8(text)) return bad_text(column, text);
    known.texts.push_back(bytes_of(text, const_cast<char*>(text.data())));
  }
  if (known.texts.empty()) known.texts.push_back(bytes_of({}, nullptr));  // all rows are NULL
  known.dictionary = std::move(dictionary);
  known.is_shared = false;
  return {};
}

// Long texts of a dictionary that goes with its batch are copied.
Status VectorWriter::write_codes(duckdb_v2_vector_handle vector, const DictionaryTexts& known,
                                 std::span<const std::uint32_t> codes, duckdb_v2_bytes* out) {
  std::size_t longer = 0;
  for (std::size_t i = 0; i < codes.size(); ++i) {
    out[i] = known.texts[codes[i]];
    const std::size_t length = out[i].value.inlined.length;
    longer += length > kInlineBytes ? length : 0;
  }
  if (known.is_shared || longer == 0) return {};
  duckdb_v2_arena_handle arena = nullptr;
  std::uint8_t* place = nullptr;
  FLUGS_TRY(ask(duckdb_v2_vector_get_arena, vector, &arena));
  FLUGS_TRY(ask(duckdb_v2_arena_allocate, arena, idx_t{longer}, &place));
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const std::size_t length = out[i].value.inlined.length;
    if (length <= kInlineBytes) continue;
    std::memcpy(place, out[i].value.pointer.ptr, length);
    out[i].value.pointer.ptr = reinterpret_cast<char*>(place);
    place += length;
  }
  return {};
}

Status VectorWriter::write_texts(duckdb_v2_vector_handle vector, const query::StreamBatch& batch,
                                 std::size_t column, std::size_t first, std::size_t count,
                                 duckdb_v2_bytes* out) {
  FLUGS_ASSIGN(const query::TextColumn texts, batch.texts(column));
  if (texts.dictionary() != nullptr) {
    FLUGS_TRY(read_dictionary(batch, column, first == 0));
    return write_codes(vector, texts_[column], texts.codes().subspan(first, count), out);
  }
  // All texts of these rows lie side by side: one copy of them is enough.
  const std::span<const std::int32_t> offsets = texts.offsets();
  const auto begin = static_cast<std::size_t>(offsets[first]);
  const std::string_view all(texts.bytes() + begin,
                             static_cast<std::size_t>(offsets[first + count]) - begin);
  const bool is_text = columns_[column].type == Type::kString && !is_ascii(all);
  duckdb_v2_arena_handle arena = nullptr;
  std::uint8_t* copy = nullptr;
  if (!all.empty()) {
    FLUGS_TRY(ask(duckdb_v2_vector_get_arena, vector, &arena));
    FLUGS_TRY(ask(duckdb_v2_arena_allocate, arena, idx_t{all.size()}, &copy));
    std::memcpy(copy, all.data(), all.size());
  }
  for (std::size_t i = 0; i < count; ++i) {
    const std::string_view text = texts[first + i];
    if (is_text && !is_utf8(text)) return bad_text(column, text);
    char* const place = reinterpret_cast<char*>(copy) + (text.data() - all.data());
    out[i] = bytes_of(text, place);
  }
  return {};
}

}  // namespace flugs::duckdb
