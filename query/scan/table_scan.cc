#include "query/scan/table_scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "columns/main/main_blocks.h"
#include "query/expressions/expr_node.h"

namespace flugs::query {

namespace {

// Row positions that a worker takes at a time: some hundred microseconds of work.
constexpr std::uint32_t kScanRows = 32 * kBatchRows;
static_assert(kScanRows % ScanUnit::kBlockRowsMax == 0);
// Units per worker when only their headers are read: some hundred microseconds of work.
constexpr std::size_t kHeadersPerWorker = 1024;

Schema without_domains(Schema schema) {
  for (ColumnInfo& column : schema) column.domain = nullptr;
  return schema;
}

// A condition is worth evaluating per dictionary entry if there are far fewer entries than rows.
std::uint32_t lookup_codes_max(const TableView& table) {
  const std::uint64_t codes =
      std::max<std::uint64_t>(Binder::kLookupCodesMax, table.row_positions() / 4);
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(codes, CodeDomain::kNone));
}

std::size_t positions_of(const std::uint64_t* mask, std::size_t count, std::uint32_t* positions) {
  std::size_t n = 0;
  for (std::size_t begin = 0; begin < count; begin += 64)
    for (std::uint64_t bits = mask[begin / 64]; bits != 0; bits &= bits - 1)
      positions[n++] =
          static_cast<std::uint32_t>(begin) + static_cast<std::uint32_t>(std::countr_zero(bits));
  return n;
}

}  // namespace

TableScan::Local::Local(const TableScan& scan)
    : values(scan.value_binder_.slot_count()),
      codes(scan.code_binder_.slot_count()),
      mask(ScanUnit::kBlockRowsMax / 64),
      positions(kBatchRows),
      chosen(kBatchRows),
      columns(scan.plain_schema_.size()),
      texts(scan.plain_schema_.size()),
      outputs(scan.outputs_.size()) {
  batch.columns.resize(columns.size());
  output.columns.resize(outputs.size());
}

TableScan::TableScan(RunContext& context, std::unique_ptr<TableView> table,
                     const std::vector<Expr>& conditions, std::vector<Output> outputs,
                     ExplainPtr explain)
    : context_(context),
      table_(std::move(table)),
      plain_schema_(without_domains(table_->schema())),
      value_binder_(context.texts, plain_schema_),
      code_binder_(context.texts, table_->schema(), lookup_codes_max(*table_)),
      outputs_(std::move(outputs)),
      explain_(std::move(explain)) {
  for (const Expr& condition : conditions) add_filter(condition);
  for (const Output& output : outputs_) {
    has_row_ids_ |= output.column == kRowIds;
    FLUGS_CHECK(output.column < plain_schema_.size() || output.column == kRowIds);
    FLUGS_CHECK(!output.as_codes || table_->schema()[output.column].domain != nullptr);
    output_columns_.push_back(output.column);
  }
  locals_.resize(context.threads);
  ranges_.resize(context.threads);
  explain_->details.push_back(
      fmt::format("{} row positions in {} units", table_->row_positions(), table_->units().size()));
  if (context.is_dry) explain_filters();
}

// `between` is two conditions: the first filter's range becomes that of both. Returns its index.
std::optional<std::size_t> TableScan::join_ranges(const RangeCondition& range) {
  using Kind = RangeCondition::Kind;
  for (std::size_t f = 0; f < filters_.size(); ++f) {
    std::optional<RangeCondition>& other = filters_[f]->range;
    if (!other || filters_[f]->part_of || other->column != range.column ||
        other->kind != Kind::kWithin || range.kind != Kind::kWithin)
      continue;
    if (range.low && !range.high && !other->low) {
      other->low = range.low;
      other->low_excluded = range.low_excluded;
      return f;
    }
    if (range.high && !range.low && !other->high) {
      other->high = range.high;
      other->high_excluded = range.high_excluded;
      return f;
    }
  }
  return std::nullopt;
}

void TableScan::add_filter(const Expr& condition) {
  auto filter = std::make_unique<ScanFilter>();
  filter->text = condition.to_string();
  filter->by_value = value_binder_.bind_condition(condition);
  collect_columns(*filter->by_value, filter->columns);
  filter->range = range_of(*filter->by_value);
  if (filter->range) filter->part_of = join_ranges(*filter->range);
  if (filter->columns.size() == 1) {
    BoundPtr on_codes = code_binder_.bind_condition(condition);
    if (on_codes->op == Op::kLookup) filter->on_codes = std::move(on_codes);
  }
  filters_.push_back(std::move(filter));
}

// Rows outside the keys' bounds are ruled out by row group, or on packed codes.
void TableScan::add_bounds(std::uint32_t column, const KeyFilter& keys) {
  const ColumnInfo& info = plain_schema_[column];
  // The keys of an int32 may be int64.
  const Type type = is_integer(info.type) ? Type::kInt64 : info.type.type;
  const auto bound = [&](std::int64_t payload) {
    return constant(Value::from_raw(type, payload).with_scale(info.type.scale));
  };
  add_filter(col(info.name) >= bound(keys.least()));
  add_filter(col(info.name) <= bound(keys.greatest()));
}

bool TableScan::takes_keys(std::uint32_t output) const {
  FLUGS_CHECK(output < output_columns_.size());
  const std::uint32_t column = output_columns_[output];
  return column != kRowIds && lane_of(plain_schema_[column].type) == Lane::kInt;
}

void TableScan::add_keys(std::uint32_t output, std::shared_ptr<const KeyFilter> keys) {
  FLUGS_CHECK(takes_keys(output) && keys != nullptr);
  const std::uint32_t column = output_columns_[output];
  if (!keys->is_empty() && plain_schema_[column].type.type != Type::kBool)
    add_bounds(column, *keys);
  auto filter = std::make_unique<ScanFilter>();
  filter->text =
      fmt::format("{} among {} keys of a join", plain_schema_[column].name, keys->key_count());
  filter->by_value = value_binder_.bind_is_key(column, std::move(keys), filter->text);
  filter->columns.push_back(column);
  filter->is_optional = true;
  filters_.push_back(std::move(filter));
}

Schema TableScan::output_schema() const {
  Schema schema;
  for (const Output& output : outputs_)
    if (output.column == kRowIds)
      schema.push_back({row_id_name(), {Type::kInt64, 0}, nullptr});
    else
      schema.push_back((output.as_codes ? table_->schema() : plain_schema_)[output.column]);
  return schema;
}

// False: a filter rules the unit out, and later filters have no range yet.
bool TableScan::find_ranges(const ScanUnit& unit, Ranges& ranges) const {
  ranges.resize(filters_.size());
  for (std::size_t f = 0; f < filters_.size(); ++f) {
    if (!filters_[f]->range) continue;
    ranges[f] = unit.range_of(*filters_[f]->range);
    if (unit.reach(ranges[f]) == ScanUnit::Reach::kNone) return false;
  }
  return true;
}

// Whether all rows of a unit meet the filters.
bool TableScan::needs_no_filter(const ScanUnit& unit, const Ranges& ranges) const {
  FLUGS_CHECK(ranges.size() == filters_.size());
  for (std::size_t f = 0; f < filters_.size(); ++f)
    if (!filters_[f]->range || unit.reach(ranges[f]) != ScanUnit::Reach::kAll) return false;
  return true;
}

// The units in the order of their best values, then those that do not know them.
std::vector<std::uint32_t> TableScan::best_first() const {
  std::vector<std::uint32_t> order(table_->units().size());
  std::iota(order.begin(), order.end(), 0u);
  if (!first_rows_) return order;
  std::vector<std::pair<std::uint32_t, std::int64_t>> ranks(order.size());
  for (const std::uint32_t s : order) {
    const columns::MainColumn* column = table_->units()[s]->packed(first_rows_->column);
    if (column == nullptr)
      ranks[s] = {2, 0};
    else if (column->has_nulls() && !first_rows_->descending)
      ranks[s] = {0, 0};
    else if (first_rows_->descending)
      ranks[s] = {1, column->max().is_null() ? std::numeric_limits<std::int64_t>::max()
                                             : ~column->max().raw()};
    else
      ranks[s] = {1, column->min().raw()};
  }
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(ranks[a], a) < std::pair(ranks[b], b);
  });
  return order;
}

void TableScan::begin(const Sink& sink) {
  first_rows_ = sink.first_rows();
  if (first_rows_ && output_columns_[first_rows_->column] == kRowIds) first_rows_.reset();
  if (first_rows_) {
    FLUGS_CHECK(first_rows_->column < output_columns_.size());
    first_rows_->column = output_columns_[first_rows_->column];
  }
  morsels_.clear();
  by_header_ = 0;
  const std::uint32_t at_once = std::min(kScanRows, sink.morsel_rows_max());
  FLUGS_CHECK(at_once >= kBatchRows);
  Ranges ranges;
  for (const std::uint32_t s : best_first()) {
    const ScanUnit& unit = *table_->units()[s];
    const std::uint32_t rows = unit.row_count();
    const bool takes_all = find_ranges(unit, ranges) && needs_no_filter(unit, ranges);
    const bool is_whole = !has_row_ids_ && sink.takes_units() && unit.answers_whole() && takes_all;
    // A filter leaves few of a morsel's rows, and is quicker on many.
    const std::uint32_t step = is_whole ? std::max(rows, 1u) : takes_all ? at_once : kScanRows;
    if (is_whole && rows > 0 && sink.takes_headers() && unit.sees_all()) ++by_header_;
    for (std::uint32_t first = 0; first < rows; first += step)
      morsels_.push_back({s, first, std::min(step, rows - first)});
  }
}

std::size_t TableScan::workers_max() const noexcept {
  FLUGS_DCHECK(by_header_ <= morsels_.size());
  return morsels_.size() - by_header_ + by_header_ / kHeadersPerWorker;
}

std::optional<PayloadRange> TableScan::likely_range(std::uint32_t output) const {
  FLUGS_CHECK(output < output_columns_.size());
  const std::uint32_t c = output_columns_[output];
  return c == kRowIds ? std::nullopt : table_->likely_range(c);
}

// The range of rows that can be among the first ones that the sink wants; nullopt while all rows
// are wanted, or if NULLs are, which are in no range.
std::optional<RangeCondition> TableScan::still_wanted(const ScanUnit& unit,
                                                      const Sink& sink) const {
  if (!first_rows_) return std::nullopt;
  if (unit.may_be_null(first_rows_->column) && !first_rows_->descending) return std::nullopt;
  const std::optional<LastWanted> last = sink.last_wanted();
  if (!last) return std::nullopt;
  RangeCondition range;
  range.column = first_rows_->column;
  (first_rows_->descending ? range.low : range.high) =
      Value::from_raw(plain_schema_[range.column].type.type, last->value);
  range.low_excluded = first_rows_->descending && last->is_excluded;
  range.high_excluded = !first_rows_->descending && last->is_excluded;
  return range;
}

// Offers all visible rows of a unit at once.
bool TableScan::run_whole(const ScanUnit& unit, std::uint32_t worker, Sink& sink) {
  const std::uint32_t rows = unit.row_count();
  SeenMask seen{nullptr, rows};
  if (!unit.sees_all()) {
    seen = unit.seen();
    if (seen.words == nullptr) {
      std::vector<std::uint64_t>& words = local_of(worker).mask;
      words.resize(std::max(words.size(), (std::size_t{rows} + 63) / 64));
      seen = {words.data(), unit.visible(0, rows, words.data())};
    }
    FLUGS_DCHECK(seen.count <= rows);
    if (seen.count == rows) seen.words = nullptr;
  }
  if (seen.count != 0 &&
      !sink.push_masked(unit, output_columns_, 0, rows, seen.words, seen.count, worker))
    return false;
  scanned_.fetch_add(rows, std::memory_order_relaxed);
  visible_.fetch_add(seen.count, std::memory_order_relaxed);
  selected_.fetch_add(seen.count, std::memory_order_relaxed);
  whole_.fetch_add(1, std::memory_order_relaxed);
  context_.batches.fetch_add(1, std::memory_order_relaxed);
  return true;
}

TableScan::Local& TableScan::local_of(std::uint32_t worker) {
  FLUGS_CHECK(worker < locals_.size());
  if (!locals_[worker]) locals_[worker] = std::make_unique<Local>(*this);
  return *locals_[worker];
}

// Outputs as well, although filters may leave few rows: a page that is read by itself takes as long
// as some hundred pages that are read at once.
void TableScan::read_ahead(const ScanUnit& unit) const noexcept {
  const std::byte* last = nullptr;  // all columns of a chunk lie in the same place
  const auto read = [&](std::uint32_t column) {
    const std::span<const std::byte> memory = unit.memory(column);
    if (memory.data() != std::exchange(last, memory.data())) table_->read_ahead(memory);
  };
  for (const auto& filter : filters_)
    for (const std::uint32_t column : filter->columns) read(column);
  for (const Output& output : outputs_)
    if (output.column != kRowIds) read(output.column);
}

void TableScan::run(std::size_t morsel, std::uint32_t worker, Sink& sink) {
  FLUGS_CHECK(morsel < morsels_.size() && worker < ranges_.size());
  const Morsel& part = morsels_[morsel];
  const ScanUnit& unit = *table_->units()[part.unit];
  Ranges& ranges = ranges_[worker];
  if (!find_ranges(unit, ranges)) {
    skipped_.fetch_add(part.rows, std::memory_order_relaxed);
    return;
  }
  const std::optional<RangeCondition> wanted = still_wanted(unit, sink);
  if (wanted && unit.reach(unit.range_of(*wanted)) == ScanUnit::Reach::kNone) {
    skipped_.fetch_add(part.rows, std::memory_order_relaxed);
    behind_.fetch_add(part.rows, std::memory_order_relaxed);
    return;
  }
  context_.check_stop();
  if (part.first == 0) read_ahead(unit);
  if (part.rows == unit.row_count() && part.rows > 0 && !has_row_ids_ && sink.takes_units() &&
      unit.answers_whole() && needs_no_filter(unit, ranges) && run_whole(unit, worker, sink))
    return;
  Local& local = local_of(worker);
  const std::uint32_t block = unit.block_rows();
  FLUGS_CHECK(block != 0 && block % 64 == 0 && block <= ScanUnit::kBlockRowsMax);
  for (std::uint32_t done = 0; done < part.rows; done += block) {
    context_.check_stop();
    if (sink.is_satisfied()) return;
    const std::size_t count = std::min<std::size_t>(block, part.rows - done);
    scanned_.fetch_add(count, std::memory_order_relaxed);
    run_block(unit, part.first + done, count, local, worker, sink);
  }
}

// Returns a bit for each filter that needs no further test.
std::uint64_t TableScan::narrow(const ScanUnit& unit, const Ranges& ranges, std::uint32_t first,
                                std::size_t count, std::uint64_t* mask) {
  FLUGS_CHECK(ranges.size() == filters_.size());
  std::uint64_t by_range = 0;
  std::uint64_t by_entries = 0;
  for (std::size_t f = 0; f < filters_.size() && f < 64; ++f) {
    ScanFilter& filter = *filters_[f];
    const std::uint64_t bit = std::uint64_t{1} << f;
    FLUGS_DCHECK(!filter.part_of || *filter.part_of < f);
    const bool is_done = filter.part_of && (by_range >> *filter.part_of & 1) != 0;
    if (is_done || (filter.range && unit.narrow(ranges[f], first, count, mask)))
      by_range |= bit;
    else if (filter.columns.size() == 1 &&
             unit.narrow_by_entries(*filter.by_value, filter.columns[0], value_binder_.slot_count(),
                                    first, count, mask))
      by_entries |= bit;
    else
      continue;
    FLUGS_DCHECK(!filter.columns.empty());
    const bool is_packed = unit.packed(filter.columns[0]) != nullptr;
    (is_packed ? filter.narrowed : filter.narrowed_in_delta)
        .fetch_add(count, std::memory_order_relaxed);
  }
  return by_range | by_entries;
}

// Leaves the rows that meet the filter in local.positions.
std::size_t TableScan::filter_rows(ScanFilter& filter, const ScanUnit& unit, RowSelection& rows,
                                   Local& local) {
  if (filter.on_codes) fill_lookup(*filter.on_codes);
  const bool by_code = filter.on_codes && !filter.on_codes->lookup->by_value;
  local.batch.rows = rows.count;
  for (const std::uint32_t column : filter.columns)
    local.batch.columns[column] =
        by_code ? unit.codes(column, rows, local.columns[column])
                : unit.values(column, rows, local.columns[column], &local.texts[column]);
  (by_code ? filter.tested_on_codes : filter.tested_by_value)
      .fetch_add(rows.count, std::memory_order_relaxed);
  const std::size_t chosen =
      by_code ? local.codes.select(*filter.on_codes, local.batch, local.chosen.data())
              : local.values.select(*filter.by_value, local.batch, local.chosen.data());
  FLUGS_DCHECK(chosen <= rows.count);
  if (filter.is_optional) filter.passed.fetch_add(chosen, std::memory_order_relaxed);
  if (chosen == rows.count) return chosen;
  if (rows.positions == nullptr)
    std::swap(local.positions, local.chosen);
  else
    for (std::size_t i = 0; i < chosen; ++i) local.positions[i] = local.positions[local.chosen[i]];
  rows.positions = local.positions.data();
  rows.count = chosen;
  return chosen;
}

// Tests visibility and what the unit can test itself, for a block; the rest batch by batch.
void TableScan::run_block(const ScanUnit& unit, std::uint32_t first, std::size_t count,
                          Local& local, std::uint32_t worker, Sink& sink) {
  FLUGS_DCHECK(first % 64 == 0);
  FLUGS_CHECK(count <= local.mask.size() * 64);
  std::uint64_t* mask = local.mask.data();
  std::size_t left = unit.visible(first, count, mask);
  FLUGS_DCHECK(left == columns::count_bits(mask, 0, count));
  visible_.fetch_add(left, std::memory_order_relaxed);
  if (left == 0) return;
  if (!unit.answers_whole()) delta_read_.fetch_add(count, std::memory_order_relaxed);
  if (const std::optional<RangeCondition> wanted = still_wanted(unit, sink);
      wanted && unit.narrow(unit.range_of(*wanted), first, count, mask)) {
    left = columns::count_bits(mask, 0, count);
    if (left == 0) return;
  }
  const std::uint64_t narrowed = narrow(unit, ranges_[worker], first, count, mask);
  if (narrowed != 0) left = columns::count_bits(mask, 0, count);
  if (left == 0) return;
  if (static_cast<std::size_t>(std::popcount(narrowed)) == filters_.size() && !has_row_ids_ &&
      sink.push_masked(unit, output_columns_, first, count, left == count ? nullptr : mask, left,
                       worker)) {
    selected_.fetch_add(left, std::memory_order_relaxed);
    context_.batches.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  for (std::size_t done = 0; done < count; done += kBatchRows) {
    const std::size_t part = std::min(kBatchRows, count - done);
    const std::size_t rows = left == count ? part : columns::count_bits(mask, done, part);
    if (rows == 0) continue;
    RowSelection selection{first + static_cast<std::uint32_t>(done), nullptr, rows};
    if (rows != part) {
      const std::size_t found = positions_of(mask + done / 64, part, local.positions.data());
      FLUGS_CHECK(found == rows);
      selection.positions = local.positions.data();
    }
    run_batch(unit, selection, narrowed, local, worker, sink);
  }
}

ColumnView TableScan::read(const Output& output, const ScanUnit& unit, const RowSelection& rows,
                           Vec& out) const {
  if (output.column == kRowIds) return unit.row_ids(rows, out);
  return output.as_codes ? unit.codes(output.column, rows, out)
                         : unit.values(output.column, rows, out, nullptr);
}

void TableScan::run_batch(const ScanUnit& unit, RowSelection rows, std::uint64_t narrowed,
                          Local& local, std::uint32_t worker, Sink& sink) {
  FLUGS_DCHECK(rows.count <= kBatchRows);
  for (std::size_t f = 0; f < filters_.size() && rows.count != 0; ++f)
    if ((f >= 64 || (narrowed >> f & 1) == 0) && !filters_[f]->drops_few())
      filter_rows(*filters_[f], unit, rows, local);
  if (rows.count == 0) return;
  selected_.fetch_add(rows.count, std::memory_order_relaxed);
  local.output.rows = rows.count;
  for (std::size_t o = 0; o < outputs_.size(); ++o)
    local.output.columns[o] = read(outputs_[o], unit, rows, local.outputs[o]);
  context_.batches.fetch_add(1, std::memory_order_relaxed);
  sink.push(local.output, worker);
}

void TableScan::explain_filters() {
  for (const auto& filter : filters_) {
    std::string line = fmt::format("filter {}:", filter->text);
    if (context_.is_dry) {
      line += filter->on_codes ? fmt::format(" on codes, {} dictionary entries",
                                             filter->on_codes->domain->count())
                               : " by value";
    } else {
      if (filter->narrowed != 0)
        line += fmt::format(" {} rows on packed codes", filter->narrowed.load());
      if (filter->narrowed_in_delta != 0)
        line += fmt::format(" {} rows block by block", filter->narrowed_in_delta.load());
      if (filter->tested_on_codes != 0)
        line += fmt::format(" {} rows on codes ({} dictionary entries evaluated)",
                            filter->tested_on_codes.load(), filter->on_codes->domain->count());
      if (filter->tested_by_value != 0)
        line += fmt::format(" {} rows by value", filter->tested_by_value.load());
      if (line.back() == ':') line += " no row tested";
    }
    explain_->details.push_back(std::move(line));
  }
}

void TableScan::finish() {
  FLUGS_CHECK(selected_ <= visible_ && visible_ <= scanned_);
  table_->note_delta_read(delta_read_);
  context_.rows_scanned += scanned_;
  context_.rows_skipped += skipped_;
  context_.rows_selected += selected_;
  std::uint64_t entries_read = 0;
  for (const auto& unit : table_->units()) entries_read += unit->entries_read();
  context_.entries_read += entries_read;
  explain_->details.push_back(fmt::format("scanned {}, skipped {}, visible {}, selected {}",
                                          scanned_.load(), skipped_.load(), visible_.load(),
                                          selected_.load()));
  if (whole_ != 0)
    explain_->details.push_back(fmt::format("{} row groups as a whole", whole_.load()));
  if (entries_read != 0)
    explain_->details.push_back(
        fmt::format("{} MVCC entries of deleted rows in main read", entries_read));
  if (first_rows_)
    explain_->details.push_back(fmt::format(
        "row groups in the order of their best values; {} row positions skipped, behind "
        "the rows kept",
        behind_.load()));
  explain_filters();
}

}  // namespace flugs::query
