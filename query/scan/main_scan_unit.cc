#include "query/scan/main_scan_unit.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "columns/main/main_blocks.h"
#include "columns/main/main_text_reader.h"
#include "query/vectors/failure.h"

namespace flugs::query {

namespace {

using columns::MainColumn;
using columns::MainRange;
using columns::Match;

// If fewer than one in this many rows of a range are wanted, they are read one by one.
constexpr std::size_t kSparseRows = 16;
// Few rows means: at most one in this many of a group.
constexpr std::uint32_t kFewRows = 8;

std::size_t extent_of(const RowSelection& rows) noexcept {
  FLUGS_DCHECK(rows.positions == nullptr ||
               std::is_sorted(rows.positions, rows.positions + rows.count));
  if (rows.positions == nullptr || rows.count == 0) return rows.count;
  return rows.positions[rows.count - 1] + std::size_t{1};
}

bool is_sparse(const RowSelection& rows) noexcept {
  return rows.positions != nullptr && rows.count * kSparseRows < extent_of(rows);
}

std::uint32_t place(const RowSelection& rows, std::size_t i) noexcept {
  FLUGS_DCHECK(i < rows.count);
  return rows.first +
         (rows.positions == nullptr ? static_cast<std::uint32_t>(i) : rows.positions[i]);
}

// Expands a bit per row to a byte per row; returns whether any bit is set.
bool spread(const std::uint64_t* bits, std::size_t count, std::uint8_t* out) noexcept {
  std::uint64_t any = 0;
  for (std::size_t i = 0; i < count; ++i) out[i] = (bits[i / 64] >> (i % 64)) & 1;
  for (std::size_t word = 0; word < (count + 63) / 64; ++word) any |= bits[word];
  return any != 0;
}

ColumnView read_sparse(const MainColumn& column, Form form, const RowSelection& rows, Vec& out,
                       columns::TextScratch* texts) {
  const std::span places(rows.positions, rows.count);
  if (form == Form::kText)
    column.texts_at(rows.first, places, out.texts(rows.count), texts);
  else
    column.integers_at(rows.first, places, out.ints(rows.count));
  if (!column.has_nulls()) return out.view(false);
  std::uint8_t* nulls = out.nulls(rows.count);
  std::uint8_t any_null = 0;
  for (std::size_t i = 0; i < rows.count; ++i) {
    nulls[i] = column.is_null(rows.first + places[i]) ? 1 : 0;
    any_null |= nulls[i];
  }
  return out.view(any_null != 0);
}

ColumnView read_dense(const MainColumn& column, Form form, std::uint32_t first, std::size_t count,
                      Vec& out, columns::TextScratch* texts) {
  FLUGS_CHECK(count <= kBatchRows);
  std::uint64_t bits[kBatchRows / 64] = {};
  std::uint64_t* nulls = column.has_nulls() ? bits : nullptr;
  const auto n = static_cast<std::uint32_t>(count);
  if (form == Form::kText)
    column.texts(first, n, out.texts(count), nulls, texts);
  else
    column.integers(first, n, out.ints(count), nulls);
  return out.view(nulls != nullptr && spread(nulls, count, out.nulls(count)));
}

std::optional<Value> bound_of(const std::optional<Value>& value, Type type, bool is_low,
                              bool& is_empty) {
  if (!value) return value;
  if (lane_of(type) == Lane::kText) return Value::from_bytes(type, value->as_string());
  if (!is_narrow_type(type)) return Value::from_raw(type, value->raw());
  // A bound beyond 32 bits excludes nothing, or everything.
  const std::int64_t raw = value->raw();
  if (raw >= std::numeric_limits<std::int32_t>::min() &&
      raw <= std::numeric_limits<std::int32_t>::max())
    return Value::from_raw(type, raw);
  is_empty |= (raw > 0) == is_low;
  return std::nullopt;
}

}  // namespace

MainScanUnit::MainScanUnit(std::string table, const Schema& schema,
                           std::vector<const MainColumn*> columns, std::uint32_t row_count,
                           std::unique_ptr<Rows> rows)
    : table_(std::move(table)),
      schema_(schema),
      columns_(std::move(columns)),
      row_count_(row_count),
      rows_(std::move(rows)),
      own_translations_(std::make_unique<OwnTranslation[]>(columns_.size())) {
  FLUGS_CHECK(columns_.size() == schema.size());
  FLUGS_CHECK(rows_ != nullptr);
}

ColumnView MainScanUnit::values(std::uint32_t column, const RowSelection& rows, Vec& out,
                                columns::TextScratch* texts) const {
  FLUGS_DCHECK(extent_of(rows) <= row_count_ && rows.first <= row_count_ - extent_of(rows));
  const MainColumn& from = *columns_[column];
  const Form form = form_of(lane_of(schema_[column].type));
  // Compressed texts of rows that are not selected need not be read.
  if (is_sparse(rows) || (rows.positions != nullptr && from.owns_texts()))
    return read_sparse(from, form, rows, out, texts);
  if (rows.positions == nullptr) return read_dense(from, form, rows.first, rows.count, out, texts);
  thread_local Vec scratch;
  const ColumnView dense = read_dense(from, form, rows.first, extent_of(rows), scratch, texts);
  return gather(dense, form, rows.positions, rows.count, out);
}

std::uint32_t MainScanUnit::code_of_value(std::uint32_t column, const Value& value) const {
  FLUGS_CHECK(schema_[column].domain != nullptr);
  const auto& domain = static_cast<const DictionaryDomain&>(*schema_[column].domain);
  const std::uint32_t code = domain.dictionary().find(value);
  // The dictionary keeps the values of groups.
  if (code >= domain.count())
    fail(StatusCode::kCorrupt,
         fmt::format("table {}, column {}: expected the value {} of a row group in the dictionary "
                     "of {} entries, found ValueID {}",
                     table_, schema_[column].name, value.to_string(), domain.count(), code));
  return code;
}

// Without kept codes the value is looked up: the caller may need few of many entries.
std::uint32_t MainScanUnit::domain_code(std::uint32_t column, std::uint64_t entry) const {
  FLUGS_DCHECK(entry < columns_[column]->code_count() && !columns_[column]->entry_is_null(entry));
  if (Translation kept = rows_->kept_codes(column)) return translated(column, kept, entry);
  return code_of_value(column, columns_[column]->entry_value(entry));
}

ColumnView MainScanUnit::codes_by_value(std::uint32_t column, const RowSelection& rows,
                                        Vec& out) const {
  const MainColumn& from = *columns_[column];
  std::uint32_t* codes = out.codes(rows.count);
  std::uint8_t* nulls = out.nulls(rows.count);
  bool any_null = false;
  columns::MainTextReader reader(from);
  const auto value_at = [&](std::uint32_t row) {
    if (!from.owns_texts() || from.is_null(row)) return from.value(row);
    return Value::from_bytes(from.type(), reader.text(row));
  };
  for (std::size_t i = 0; i < rows.count; ++i) {
    const Value value = value_at(place(rows, i));
    nulls[i] = value.is_null() ? 1 : 0;
    any_null |= value.is_null();
    codes[i] = value.is_null() ? 0 : code_of_value(column, value);
  }
  return out.view(any_null);
}

ColumnView MainScanUnit::codes(std::uint32_t column, const RowSelection& rows, Vec& out) const {
  FLUGS_DCHECK(extent_of(rows) <= row_count_ && rows.first <= row_count_ - extent_of(rows));
  const MainColumn& from = *columns_[column];
  const std::uint64_t local_codes = from.code_count();
  // By value for payloads without codes, and if most codes in the range belong to no row.
  if (local_codes == 0 || local_codes > std::uint64_t{row_count_} * 4 + 65536)
    return codes_by_value(column, rows, out);
  const Translation translation = translation_of(column);
  thread_local Vec scratch;
  const std::size_t extent = extent_of(rows);
  std::uint32_t* local = scratch.codes(extent);
  from.codes(rows.first, static_cast<std::uint32_t>(extent), local);
  std::uint32_t* codes = out.codes(rows.count);
  const auto local_code = [&](std::size_t i) {
    return local[rows.positions == nullptr ? i : rows.positions[i]];
  };
  if (!from.has_nulls()) {
    bool are_known = true;
    for (std::size_t i = 0; i < rows.count; ++i) {
      const std::uint32_t known = translation[local_code(i)].load(std::memory_order_relaxed);
      are_known &= known != 0;
      codes[i] = known - 1;
    }
    for (std::size_t i = 0; !are_known && i < rows.count; ++i)
      codes[i] = translated(column, translation, local_code(i));
    return out.view(false);
  }
  std::uint8_t* nulls = out.nulls(rows.count);
  bool any_null = false;
  for (std::size_t i = 0; i < rows.count; ++i) {
    const std::uint32_t code = local_code(i);
    nulls[i] = from.entry_is_null(code) ? 1 : 0;
    any_null |= nulls[i] != 0;
    codes[i] = nulls[i] != 0 ? 0 : translated(column, translation, code);
  }
  return out.view(any_null);
}

MainScanUnit::Translation MainScanUnit::translation_of(std::uint32_t column) const {
  if (Translation kept = rows_->kept_codes(column)) return kept;
  OwnTranslation& own = own_translations_[column];
  std::call_once(own.once, [&] {
    own.codes = std::vector<std::atomic<std::uint32_t>>(columns_[column]->code_count());
  });
  FLUGS_CHECK(own.codes.size() == columns_[column]->code_count());
  return own.codes.data();
}

std::uint32_t MainScanUnit::look_up(std::uint32_t column, Translation translation,
                                    std::uint64_t code) const {
  // Two workers may look the same code up: they get the same result.
  const std::uint32_t found = code_of_value(column, columns_[column]->entry_value(code));
  translation[code].store(found + 1, std::memory_order_relaxed);
  return found;
}

// For kIsNull there are no codes: `reach` and `narrow` look at the column itself.
MainRange MainScanUnit::codes_of(const RangeCondition& range) const {
  const MainColumn& column = *columns_[range.column];
  if (range.kind == RangeCondition::Kind::kIsNull) return {};
  if (range.kind == RangeCondition::Kind::kIsNotNull) return column.not_null();
  bool is_empty = false;
  columns::ValueBounds bounds;
  bounds.low = bound_of(range.low, column.type(), true, is_empty);
  bounds.high = bound_of(range.high, column.type(), false, is_empty);
  bounds.low_excluded = range.low_excluded && bounds.low;
  bounds.high_excluded = range.high_excluded && bounds.high;
  const bool outside = range.kind == RangeCondition::Kind::kOutside;
  if (is_empty) return outside ? column.not_null() : MainRange{};
  return outside ? column.outside(bounds) : column.within(bounds);
}

ScanUnit::Reach MainScanUnit::reach(const ScanUnitRange& range) const {
  FLUGS_CHECK(range.condition != nullptr);
  if (range.condition->kind == RangeCondition::Kind::kIsNull) {
    const std::uint32_t nulls = columns_[range.condition->column]->null_count();
    return nulls == 0 ? Reach::kNone : nulls == row_count_ ? Reach::kAll : Reach::kSome;
  }
  const Match match = range.codes.match;
  return match == Match::kNone ? Reach::kNone : match == Match::kAll ? Reach::kAll : Reach::kSome;
}

bool MainScanUnit::narrow(const ScanUnitRange& range, std::uint32_t first, std::size_t count,
                          std::uint64_t* mask) const {
  FLUGS_CHECK(range.condition != nullptr);
  FLUGS_DCHECK(first % 64 == 0);
  const MainColumn& column = *columns_[range.condition->column];
  const auto n = static_cast<std::uint32_t>(count);
  if (range.condition->kind == RangeCondition::Kind::kIsNull)
    column.filter_is_null(first, n, mask);
  else if (range.codes.match == Match::kNone)
    std::fill_n(mask, (count + 63) / 64, 0);
  else if (range.codes.match == Match::kSome)
    column.filter(first, n, range.codes, mask);
  return true;
}

void MainScanUnit::evaluate_entries(const BoundExpr& condition, std::uint32_t column,
                                    std::uint32_t slots, Wanted& wanted) const {
  const MainColumn& from = *columns_[column];
  const std::uint64_t entries = from.code_count();
  const bool is_text = lane_of(schema_[column].type) == Lane::kText;
  wanted.bits.assign((entries + 63) / 64, 0);
  Evaluator evaluator(slots);
  Vec values;
  std::vector<std::uint32_t> positions(kBatchRows);
  Batch batch;
  batch.columns.resize(schema_.size());
  for (std::uint64_t first = 0; first < entries; first += kBatchRows) {
    batch.rows = std::min<std::uint64_t>(kBatchRows, entries - first);
    std::fill_n(values.nulls(kBatchRows), batch.rows, 0);
    for (std::size_t i = 0; i < batch.rows; ++i) {
      if (is_text)
        values.texts(kBatchRows)[i] = from.entry_text(first + i);
      else
        values.ints(kBatchRows)[i] = from.entry_integer(first + i);
      values.nulls(kBatchRows)[i] = from.entry_is_null(first + i) ? 1 : 0;
    }
    batch.columns[column] = values.view(from.has_nulls());
    const std::size_t chosen = evaluator.select(condition, batch, positions.data());
    FLUGS_DCHECK(chosen <= batch.rows);
    for (std::size_t i = 0; i < chosen; ++i)
      wanted.bits[(first + positions[i]) / 64] |= std::uint64_t{1} << ((first + positions[i]) % 64);
  }
}

const MainScanUnit::Wanted& MainScanUnit::wanted(const BoundExpr& condition, std::uint32_t column,
                                                 std::uint32_t slots) const {
  const std::lock_guard guard(wanted_mutex_);
  std::unique_ptr<Wanted>& known = wanted_[&condition];
  if (known) return *known;
  known = std::make_unique<Wanted>();
  const std::uint64_t entries = columns_[column]->code_count();
  known->by_value = entries == 0 || entries > std::uint64_t{row_count_} / 2;
  if (known->by_value) return *known;
  try {
    evaluate_entries(condition, column, slots, *known);
  } catch (const Failure&) {
    known->by_value = true;  // perhaps for an entry that only dead rows have
  }
  return *known;
}

bool MainScanUnit::narrow_by_entries(const BoundExpr& condition, std::uint32_t column,
                                     std::uint32_t slots, std::uint32_t first, std::size_t count,
                                     std::uint64_t* mask) const {
  const Wanted& codes = wanted(condition, column, slots);
  if (codes.by_value) return false;
  FLUGS_CHECK(codes.bits.size() * 64 >= columns_[column]->code_count());
  columns_[column]->filter_codes(first, static_cast<std::uint32_t>(count), codes.bits.data(), mask);
  return true;
}

bool MainScanUnit::add_up(std::uint32_t column, std::uint32_t first, std::size_t count,
                          const std::uint64_t* mask, Totals& totals) const {
  const MainColumn& from = *columns_[column];
  const auto n = static_cast<std::uint32_t>(count);
  if (from.is_text()) return false;
  if (from.type() == Type::kDouble) {
    const columns::MainRealSum sum = from.real_sum(first, n, mask);
    totals = {0, sum.sum, static_cast<std::int64_t>(sum.count)};
  } else {
    const columns::MainSum sum = from.sum(first, n, mask);
    totals = {sum.sum, 0, static_cast<std::int64_t>(sum.count)};
  }
  return true;
}

// Whether few rows are left out, and the others include rows with the least and the greatest value
// of all. A row of each kind is searched once, and again when it is deleted.
bool MainScanUnit::sees_extremes(std::uint32_t column, const std::uint64_t* mask) const {
  FLUGS_DCHECK(mask != nullptr);
  columns::ExtremePlaces* places = rows_->extreme_places(column);
  if (places == nullptr) return false;
  const SeenMask seen = rows_->seen();
  const std::size_t count =
      mask == seen.words ? seen.count : columns::count_bits(mask, 0, row_count_);
  if (count < row_count_ - row_count_ / kFewRows) return false;
  const auto sees = [&](std::atomic<std::uint32_t>& known, const Value& value) {
    if (value.is_null()) return true;
    const std::uint32_t place = known.load(std::memory_order_relaxed);
    if (place < row_count_ && (mask[place / 64] >> (place % 64) & 1) != 0) return true;
    const std::optional<std::uint32_t> found = columns_[column]->find(value, mask);
    if (found) known.store(*found, std::memory_order_relaxed);
    return found.has_value();
  };
  return sees(places->least, columns_[column]->min()) &&
         sees(places->greatest, columns_[column]->max());
}

bool MainScanUnit::extremes(std::uint32_t column, std::uint32_t first, std::size_t count,
                            const std::uint64_t* mask, Value& least, Value& greatest) const {
  const MainColumn& from = *columns_[column];
  FLUGS_DCHECK(count <= row_count_ && first <= row_count_ - count);
  if (count == row_count_ && (mask == nullptr || sees_extremes(column, mask))) {
    least = from.min();
    greatest = from.max();
    return true;
  }
  const columns::MainExtremes found = from.extremes(first, static_cast<std::uint32_t>(count), mask);
  least = found.min;
  greatest = found.max;
  return true;
}

}  // namespace flugs::query
