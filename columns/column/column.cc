#include "columns/column/column.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/hash.h"
#include "base/shown.h"
#include "base/types.h"
#include "columns/cells/unflushed.h"

namespace flugs::columns {

namespace {

DecodeKind decode_kind(Type type, bool is_dictionary) noexcept {
  if (is_text_type(type)) return is_dictionary ? DecodeKind::kCodeText : DecodeKind::kText;
  if (is_dictionary)
    return facts_of(type).entry_bytes == 8 ? DecodeKind::kCode8 : DecodeKind::kCode16;
  return is_narrow_type(type) ? DecodeKind::kNarrow : DecodeKind::kWide;
}

}  // namespace

Value normalised(const Value& value, Type column_type) noexcept {
  if (value.is_null()) return value;
  if (column_type == Type::kDouble && value.type() == Type::kDouble) {
    const double v = value.as_double();
    if (std::isnan(v)) return Value::real(std::numeric_limits<double>::quiet_NaN());
    if (v == 0.0) return Value::real(0.0);
  }
  // Value::from_raw takes any payload: a payload wider than its type must not get into a cell.
  const std::uint8_t bits = facts_of(value.type()).payload_bits;
  if (bits == 1) return Value::boolean(value.as_bool());
  if (bits != 32) return value;
  const bool widens = column_type != value.type() && may_stand_for(value.type(), column_type);
  return Value::from_raw(widens ? column_type : value.type(), value.as_int32());
}

Value with_type(const Value& value, Type type) noexcept {
  if (value.is_null()) return value;
  return is_text_type(type) ? Value::from_bytes(type, value.as_string())
                            : Value::from_raw(type, value.raw());
}

bool keeps_payloads(Type from, Type to) noexcept {
  return may_stand_for(from, to) || (is_text_type(from) && is_text_type(to));
}

Column::Column(pmem::Pool& pool, ColumnLayout& layout, HintIndexLayout* hints, Decoder& decoder,
               const std::string& name, const std::string& table)
    : pool_(pool),
      medium_(pool.medium()),
      layout_(layout),
      decoder_(decoder),
      names_(names_of(name, table)),
      type_(static_cast<Type>(layout.type)),
      scale_(layout.scale),
      own_kinds_(type_, scale_),
      nullable_(layout.nullable != 0),
      is_dictionary_(layout.encoding == static_cast<std::uint8_t>(Encoding::kDictionary)),
      is_text_(is_text_type(type_)),
      is_narrow_(is_narrow_type(type_)),
      is_plain_(!is_text_ && facts_of(type_).is_always_normal),
      widths_{facts_of(type_).cell_bits_min, facts_of(type_).payload_bits},
      heap_(pool, layout.heap, owner()),
      dictionary_(pool, layout.dictionary,
                  is_dictionary_ ? Dictionary::Use::kValues : Dictionary::Use::kNone,
                  is_dictionary_ ? hints : nullptr, heap_, type_, decoder, owner()) {
  decoder.set_type(type_, scale_);
  decoder.kind.store(decode_kind(type_, is_dictionary_), std::memory_order_relaxed);
}

void Column::initialise(ColumnLayout& layout, const ColumnSchema& schema) noexcept {
  FLUGS_CHECK(schema.encoding == Encoding::kDictionary || schema.encoding == Encoding::kDirect);
  layout.type = static_cast<std::uint8_t>(schema.type);
  layout.encoding = static_cast<std::uint8_t>(schema.encoding);
  layout.nullable = schema.nullable ? 1 : 0;
  layout.scale = schema.scale;
  layout.expected_distinct = schema.expected_distinct;
}

Column::Names Column::names_of(const std::string& name, const std::string& table) {
  SchemaPart part = SchemaPart::column(table, name);
  std::string owner = flugs::to_string(part);
  return {std::move(part), std::move(owner)};
}

void Column::rename(const std::string& name, const std::string& table) {
  Names next = names_of(name, table);
  if (next.owner != owner()) names_.put(std::move(next));
}

Status Column::load() {
  if (Status s = heap_.load(); !s.ok()) return s;
  return dictionary_.load();
}

// A thread that makes a chunk or a group without the column's values sees the second store, and so
// the first.
void Column::set_dropped() noexcept {
  decoder_.kind.store(DecodeKind::kDropped, std::memory_order_relaxed);
  dropped_.store(true, std::memory_order_release);
}

void Column::set_former(std::unique_ptr<Column> former, std::size_t number,
                        std::uint16_t edition) noexcept {
  FLUGS_CHECK(former != nullptr && owned_former_ == nullptr);
  edition_ = edition;
  mark_ = edition_mark(number, edition_);
  if (former->is_in_key()) note_in_key();
  owned_former_ = std::move(former);
  former_.store(owned_former_.get(), std::memory_order_release);
  decoder_.kind.store(DecodeKind::kChanged, std::memory_order_relaxed);
}

void Column::forget_middle_editions() noexcept {
  if (owned_former_ == nullptr) return;
  while (owned_former_->owned_former_ != nullptr) {
    std::unique_ptr<Column> before = std::move(owned_former_->owned_former_);
    former_.store(before.get(), std::memory_order_release);
    owned_former_ = std::move(before);
  }
}

void Column::for_each_used(FunctionRef<void(Column&)> visit) {
  for (Column* edition = this; edition != nullptr; edition = edition->former())
    if (edition->is_used()) visit(*edition);
}

void Column::describe(Decoder& decoder) const noexcept {
  decoder.set_type(type_, scale_);
  decoder.kind.store(decode_kind(type_, false), std::memory_order_release);
}

const Column* Column::at_edition(std::uint16_t edition) const noexcept {
  const Column* found = this;
  while (found != nullptr && found->edition_ != edition) found = found->former();
  return found;
}

// All rows that lack the column have the text, and so have those that are made of them.
void Column::set_constant(const Cell& cell) {
  constant_ = cell;
  keep_texts(std::span(&cell, 1));
}

Value Column::constant_value() const noexcept {
  FLUGS_CHECK(has_constant());
  if (is_dictionary_) return dictionary_.value(static_cast<std::uint32_t>(constant_->low));
  if (constant_->is_null) return Value::null();
  if (!is_text_) return Value::from_raw(type_, from_bits(constant_->low));
  return Value::from_bytes(type_, text_cell::view(reinterpret_cast<const std::byte*>(&*constant_),
                                                  medium_.base(), medium_.bytes()));
}

bool Column::has_plausible_constant() const noexcept {
  FLUGS_CHECK(has_constant());
  if (is_dictionary_) return constant_->low < dictionary_.count();
  if (!is_text_) return true;
  return text_cell::is_plausible(constant_->low, constant_->high, medium_.bytes()) &&
         (text_cell::tag_of(constant_->high) != text_cell::kOutOfLine ||
          heap_.held_at_opening(constant_->low, text_cell::length_of(constant_->high)));
}

Status Column::misfit(StatusCode code, const Value& value, Type type,
                      std::string_view purpose) const {
  const std::string expected = type == Type::kDecimal ? fmt::format("decimal of scale {}", scale_)
                                                      : std::string(to_string(type));
  const char* hint = "";
  if (type == Type::kDecimal && value.type() == Type::kDouble)
    hint = ": a double is no exact decimal, give Value::decimal(\"12.34\")";
  else if (value.scale() > Value::kScaleMax && value.scale() != Value::kScaleOfColumn)
    hint = ": a decimal has a scale of at most 18";
  return Status(code, names_.get().part,
                fmt::format("expected {}, found {} {}{}{}", expected, to_string(value.type()),
                            shown(value), hint, purpose));
}

Status Column::check(const Value& value, Type type) const {
  if (value.is_null()) {
    if (nullable_) return {};
    return Status(StatusCode::kConstraintViolated, names_.get().part, "NULL is not allowed");
  }
  if (!exact_value(value, type, scale_).has_value())
    return misfit(StatusCode::kConstraintViolated, value, type);
  if (is_text_ && value.as_string().size() > kTextBytesMax)
    return Status(
        StatusCode::kConstraintViolated, names_.get().part,
        fmt::format("{} bytes, at most {} are allowed", value.as_string().size(), kTextBytesMax));
  return {};
}

Result<Cell> Column::encode(const Value& value, Unflushed& unflushed, pmem::Persister& persister) {
  if (__builtin_expect(is_dropped(), 0)) return Cell{};
  if (is_dictionary_) {
    Result<std::uint32_t> code = dictionary_.encode(value, unflushed, persister);
    if (!code.ok()) return std::move(code).status();
    return Cell{*code, 0, false};
  }
  if (is_text_) {
    FLUGS_DCHECK(value.is_null() || value.as_string().size() <= kTextBytesMax);  // checked
    if (value.is_null()) {
      Cell cell = text_cell::make_inline({});
      cell.is_null = true;
      return cell;
    }
    const std::string_view text = value.as_string();
    if (text.size() <= text_cell::kInlineBytesMax) return text_cell::make_inline(text);
    Result<Cell> cell = heap_.append(text, persister);
    if (cell.ok()) unflushed.add(pool_.base() + cell->low, text.size());
    return cell;
  }
  Cell cell;
  cell.is_null = value.is_null();
  if (!cell.is_null) {
    cell.low = static_cast<std::uint64_t>(value.raw());
    if (is_narrow_) cell.low &= 0xFFFFFFFFu;
  }
  return cell;
}

Cell Column::cell_of_stored(std::string_view text) const noexcept {
  if (text.size() <= text_cell::kInlineBytesMax) return text_cell::make_inline(text);
  const auto offset = reinterpret_cast<const std::byte*>(text.data()) - medium_.base();
  FLUGS_CHECK(offset > 0 && text.size() <= medium_.bytes() &&
              static_cast<std::uint64_t>(offset) <= medium_.bytes() - text.size());
  return text_cell::make_out_of_line(static_cast<std::uint64_t>(offset),
                                     static_cast<std::uint32_t>(text.size()));
}

Result<Cell> Column::encode_stored(const Value& value, Unflushed& unflushed,
                                   pmem::Persister& persister) {
  if (!is_dropped() && !is_dictionary_ && is_text_ && !value.is_null())
    return cell_of_stored(value.as_string());
  return encode(value, unflushed, persister);
}

Status Column::encode_many(std::span<const Value> values, std::size_t first, std::size_t stride,
                           std::span<Cell> cells, Unflushed& unflushed,
                           pmem::Persister& persister) {
  FLUGS_DCHECK(stride != 0 && cells.size() >= values.size());
  // `normalised` changes values of some types; for 32-bit types the dictionary itself cuts them to
  // size.
  if (__builtin_expect(is_dropped(), 0)) {
    for (std::size_t i = first; i < values.size(); i += stride) cells[i] = {};
    return {};
  }
  if (is_dictionary_ && facts_of(type_).is_always_normal)
    return dictionary_.encode_many(values, first, stride, cells, unflushed, persister);
  for (std::size_t i = first; i < values.size(); i += stride) {
    Result<Cell> cell = encode(normalised(values[i], type_), unflushed, persister);
    if (!cell.ok()) return std::move(cell).status();
    cells[i] = *cell;
  }
  return {};
}

// The column may be dropped between encode and here. A cell with a value still goes only where it
// fits, although it will never be read.
std::uint8_t Column::bits_for(const Cell& cell) const noexcept {
  if (__builtin_expect(is_dropped(), 0) && cell.low == 0 && cell.high == 0) return 0;
  if (is_dictionary_) return code_bits_for(cell.low + 1);
  if (is_text_) return 128;
  return widths_.nearest(integer_bits_for(cell.low));
}

CellNeed Column::need(std::uint8_t bits, unsigned more_bits) const noexcept {
  if (is_dropped()) return {CellKind::kNone, 0, false, 0};
  if (!is_dictionary_) {
    if (is_text_) return {CellKind::kText, 128, nullable_, edition_};
    // The wanted width may have been that of a code, for an earlier edition.
    return {CellKind::kInteger, widths_.nearest(bits), nullable_, edition_};
  }
  // Each widening opens a new chunk: leave room for the dictionary to double, unless its size was
  // foretold and the forecast still holds.
  const std::uint64_t expected = layout_.expected_distinct;
  const std::uint64_t count = dictionary_.count();
  const bool foretold = expected != 0 && count <= expected;
  const std::uint64_t codes = foretold ? expected : std::max<std::uint64_t>(count * 2, 256);
  const std::uint8_t least = std::max(bits, code_bits_for(codes));
  if (foretold || least <= kSmallCodeBits) return {CellKind::kCode, least, false, edition_};
  return {CellKind::kCode, static_cast<std::uint8_t>(std::min(least + more_bits, 32u)), false,
          edition_};
}

std::uint8_t Column::direct_bits() const noexcept {
  constexpr std::uint32_t kSampled = 64;
  const std::uint32_t count = dictionary_.count();
  std::uint64_t all = 0;
  for (std::uint32_t code = count - std::min(count, kSampled); code < count; ++code)
    if (code != dictionary_.null_code())
      all |= static_cast<std::uint64_t>(dictionary_.integer(code)) &
             (is_narrow_ ? 0xFFFFFFFFu : ~std::uint64_t{0});
  FLUGS_DCHECK(is_dictionary_ && !is_text_);
  return widths_.nearest(integer_bits_for(all));
}

Value Column::direct_value(const RowLayout& layout, const std::byte* row,
                           std::size_t index) const noexcept {
  if (layout.load_null(row, index)) return Value::null();
  if (is_text_) return Value::from_bytes(type_, text(layout, row, index));
  return Value::from_raw(type_, from_bits(layout.load(row, index)));
}

bool Column::equals_in_general(const RowLayout& layout, const std::byte* row, std::size_t index,
                               const Value& value) const noexcept {
  const Column* former = former_of(layout, index);
  return (former == nullptr ? this : former)->own_equals(layout, row, index, value);
}

bool Column::own_equals(const RowLayout& layout, const std::byte* row, std::size_t index,
                        const Value& value) const noexcept {
  const bool null = is_dictionary_ ? layout.load(row, index) == dictionary_.null_code()
                                   : layout.load_null(row, index);
  if (null || value.is_null()) return null && value.is_null();
  if (is_text_) return own_text(layout, row, index) == value.as_string();
  return own_integer(layout, row, index) == value.raw();
}

bool Column::is_plausible(const RowLayout& layout, const std::byte* row,
                          std::size_t index) const noexcept {
  if (is_dropped()) return true;
  if (const Column* former = former_of(layout, index))
    return former->is_plausible(layout, row, index);
  if (is_dictionary_) return layout.load(row, index) < dictionary_.count();
  if (!is_text_) return true;
  const Cell cell = layout.load_cell(row, index);
  return text_cell::is_plausible(cell.low, cell.high, pool_.medium().bytes());
}

bool Column::has_whole_entry(const RowLayout& layout, const std::byte* row,
                             std::size_t index) const noexcept {
  if (is_dropped()) return true;
  if (const Column* former = former_of(layout, index))
    return former->has_whole_entry(layout, row, index);
  return !is_dictionary_ ||
         dictionary_.is_present(static_cast<std::uint32_t>(layout.load(row, index)));
}

bool Column::was_plausible_at_opening(const RowLayout& layout, const std::byte* row,
                                      std::size_t index) const noexcept {
  if (!layout.access()[index].has_cell()) return true;  // see has_plausible_constant
  const Column* former = former_of(layout, index);
  if (former != nullptr && !is_dropped())
    return former->was_plausible_at_opening(layout, row, index);
  if (!is_plausible(layout, row, index)) return false;
  const Column& edition = former == nullptr ? *this : *former;
  if (edition.is_dictionary_ || !is_text_) return true;
  const Cell cell = layout.load_cell(row, index);
  return text_cell::tag_of(cell.high) != text_cell::kOutOfLine ||
         edition.heap_.held_at_opening(cell.low, text_cell::length_of(cell.high));
}

std::size_t Column::first_implausible(const RowLayout& layout,
                                      std::span<const std::byte* const> rows,
                                      std::size_t index) const noexcept {
  const RowLayout::Access& cell = layout.access()[index];
  if (is_dropped() || !cell.has_cell()) return rows.size();
  if (const Column* former = former_of(layout, index))
    return former->first_implausible(layout, rows, index);
  if (!is_dictionary_ && !is_text_) return rows.size();
  const std::uint32_t codes_end = dictionary_.count();
  // Entries that opening has dropped were torn, and no row has them; or they were damaged.
  const bool has_dropped = is_dictionary_ && dictionary_.has_dropped();
  // True for columns of few values, once all values have entries.
  if (is_dictionary_ && !has_dropped && cell.mask < codes_end) return rows.size();
  const auto is_wrong = [&](const std::byte* row) {
    if (is_dictionary_) {
      const std::uint64_t code = RowLayout::load(row, cell);
      return code >= codes_end ||
             (has_dropped && !dictionary_.is_present(static_cast<std::uint32_t>(code)));
    }
    // Most texts are in their cells, and their upper words suffice.
    return text_cell::tag_of(RowLayout::load_text_high(row, cell)) > text_cell::kInlineBytesMax &&
           !was_plausible_at_opening(layout, row, index);
  };
  return static_cast<std::size_t>(std::find_if(rows.begin(), rows.end(), is_wrong) - rows.begin());
}

bool Column::fits(CellKind kind, std::uint8_t bits) const noexcept {
  if (bits == 0) return is_dropped();
  if (is_dictionary_) return kind == CellKind::kCode;
  if (is_text_) return kind == CellKind::kText;
  return kind == CellKind::kInteger && bits >= need(1).bits;
}

void Column::release_all() {
  dictionary_.release_all();
  heap_.release_all();
}

void Column::add_pages(pmem::WarmList& pages) const {
  dictionary_.add_pages(pages);
  heap_.add_pages(pages);
}

}  // namespace flugs::columns
