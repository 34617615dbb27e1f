#include "tables/table/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "base/shown.h"
#include "tables/catalog/schema_codec.h"

namespace flugs::engine {

Table::Table(pmem::Pool& pool, TableLayout& layout, StoredSchema stored)
    : Table(pool, layout, std::exchange(stored.changed_columns, {}), std::move(stored)) {}

Table::Table(pmem::Pool& pool, TableLayout& layout, std::vector<ChangedColumnLayout> changed,
             StoredSchema&& stored)
    : changed_columns_(std::move(changed)), data_(pool, layout, std::move(stored)) {
  make_columns();
  data_.make_keys();
  if (!definition().checks.empty()) data_.constraints.add(RowConstraints::kChecked);
  for (std::size_t i = 0; i < data_.columns.size(); ++i) {
    if (!schema().columns[i].auto_increment) continue;
    auto* column_layouts = reinterpret_cast<columns::ColumnLayout*>(&data_.layout + 1);
    numbered_ = i;
    numbers_ = std::make_unique<AutoIncrement>(
        pool, column_layouts[i].last_taken, data_.columns[i]->type(),
        fmt::format("table {}, column {}", name(), data_.columns[i]->name()));
    data_.constraints.add(RowConstraints::kNumbered);
  }
}

void Table::begin_key(std::size_t place, const KeySchema& key) {
  data_.keys.begin_making(
      place, std::make_unique<KeyIndex>(data_.pool, nullptr, name(), data_.rows, data_.runs, place,
                                        data_.columns, key, positions_of(schema(), key),
                                        KeyIndex::Origin::kAdded));
}

Status Table::finish_key(std::size_t place, StoredSchema next) {
  next.added_keys |= static_cast<std::uint16_t>(1U << place);
  ++next.key_additions;
  if (Status s = alter(std::move(next)); !s.ok()) return s;
  const StoredSchema& stored = definition().stored;  // what `next` left open is in it
  const KeySchema& key = stored.schema.keys[place];
  data_.runs.add_key(place, {key.unique, key.ordered, key.dropped, true}, stored.key_additions);
  data_.keys[place]->finish();
  data_.keys.finish_making(place);
  return {};
}

Status Table::load() {
  if (Status s = claim_schema(); !s.ok()) return s;
  if (Status s = claim_added_columns(); !s.ok()) return s;
  if (Status s = load_columns(false); !s.ok()) return s;
  if (numbers_ != nullptr)
    if (Status s = numbers_->load(); !s.ok()) return s;
  for (KeyIndex* key : data_.keys)
    if (Status s = key->load(); !s.ok()) return s;
  if (Status s = data_.rows.load(); !s.ok()) return s;
  if (Status s = load_former_editions(); !s.ok()) return s;
  if (Status s = load_columns(true); !s.ok()) return s;
  if (Status s = data_.runs.load(); !s.ok()) return s;
  data_.find_keys_in_runs();
  return {};
}

void Table::load_what_is_whole(
    FunctionRef<void(const std::string& part, const Status& status)> visit) {
  if (data_.layout.schema_block != 0)
    visit(fmt::format("table {}, schema", name()), claim_schema());
  if (!definition().stored.added_columns.empty() || !changed_columns_.empty())
    visit(fmt::format("table {}, schema", name()), claim_added_columns());
  for (columns::Column* column : data_.columns)
    if (!column->is_dropped())
      visit(fmt::format("table {}, column {}", name(), column->name()), column->load());
  if (numbers_ != nullptr)
    visit(fmt::format("table {}, column {}", name(), data_.columns[numbered_]->name()),
          numbers_->load());
  for (const auto& key : data_.keys)
    if (key->has_hints()) visit(fmt::format("table {}, key {}", name(), key->name()), key->load());
  const Status rows = data_.rows.load();
  visit(fmt::format("table {}, rows", name()), rows);
  if (rows.ok() && !changed_columns_.empty())
    visit(fmt::format("table {}, schema", name()), load_former_editions());
  for (std::size_t i = 0; rows.ok() && i < data_.columns.size(); ++i)
    if (data_.columns[i]->is_dropped())
      visit(fmt::format("table {}, column {}", name(), i), load_dropped(i));
  // What they cover is judged by the rows.
  if (rows.ok() && data_.layout.index_runs != 0)
    visit(fmt::format("table {}, index runs", name()), data_.runs.load());
  data_.find_keys_in_runs();
}

void Table::release_replaced() {
  data_.rows.release_replaced();
  settle_editions();
  data_.runs.release_replaced();
  for (const std::size_t chunk : data_.runs.take_emptied()) {
    std::vector<std::uint32_t> ids(data_.rows.rows_of(chunk));
    std::iota(ids.begin(), ids.end(), data_.rows.first_row_of(chunk));
    free_rows_.add(ids);
  }
}

void Table::release_all() {
  index_build_.release_opening();
  row_sweep_.forget();
  if (const pmem::Extent block = schema_block_of(data_.pool, data_.layout); block.bytes != 0)
    data_.pool.allocator().release(block);
  data_.columns.for_each_used([](columns::Column& column) { column.release_all(); });
  release_added_columns();
  data_.runs.release_all();
  data_.rows.release_all();
  data_.keys.release_all();
  free_rows_.release_all();
}

// ---------------------------------------------------------------------------------------- reading

Result<Row> Table::read(const TransactionContext& context, RowId row) const {
  if (!data_.rows.exists(row.value()) || !context.visibility.sees(data_.rows.version(row.value())))
    return Status(StatusCode::kNotFound);
  return data_.make_row(row.value());
}

// From the newest version with the key to the one that the snapshot sees. A version with another
// key than the head's ends the chain: what lies behind it has an entry of its own. So does one that
// is deleted in the snapshot: what lies behind it died before, and its row may be another record's.
std::uint32_t Table::visible_version(const KeyIndex& key, std::uint32_t head,
                                     std::span<const Value> values,
                                     const mvcc::Visibility& visibility) const noexcept {
  const bool is_part = values.size() < key.columns().size();
  for (std::uint32_t row = head; row != kNoRow; row = data_.rows.previous(row)) {
    if (!key.matches(row, values)) return kNoRow;
    if (is_part && row != head && !key.same_key(row, head)) return kNoRow;
    if (visibility.happened(data_.rows.version(row).deleted)) return kNoRow;
    if (visibility.happened(data_.rows.version(row).created)) return row;
  }
  return kNoRow;
}

// Visible rows whose key begins with `values`, found without the hash index.
void Table::walk_unhashed(const KeyIndex& key, std::span<const Value> values,
                          const mvcc::Visibility& visibility,
                          FunctionRef<bool(const Row&)> visit) const {
  if (key.is_ordered()) {
    const auto is_seen = [&](std::uint32_t row) {
      return visibility.sees(data_.rows.version(row));
    };
    index_build_.walk(key, KeyRange::equal(values), visibility.snapshot(), is_seen,
                      [&](std::uint32_t row) { return visit(data_.make_row(row)); });
    return;
  }
  const std::uint32_t end = data_.rows.rows_end();
  for (std::uint32_t row = 0; row < end; ++row)
    if (visibility.sees(data_.rows.version(row)) && key.matches(row, values) &&
        !visit(data_.make_row(row)))
      return;
}

Status Table::check_key_values(const KeyIndex& key, std::span<const Value> values) const {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const columns::Column& column = *data_.columns[key.columns()[i]];
    const bool widened = column.type() == Type::kInt64 && values[i].type() == Type::kInt32;
    if (!values[i].is_null() && values[i].type() != column.type() && !widened)
      return Status(StatusCode::kInvalidArgument,
                    fmt::format("table {}, key {}, column {}: expected {}, found {} {}", name(),
                                key.name(), column.name(), to_string(column.type()),
                                to_string(values[i].type()), shown(values[i])));
  }
  return {};
}

std::span<const Value> Table::normalise(TransactionContext& context, const KeyIndex& key,
                                        std::span<const Value> values) const {
  if (!key.needs_normalising()) return values;
  context.scratch.values.clear();
  for (std::size_t i = 0; i < values.size(); ++i)
    context.scratch.values.push_back(
        columns::normalised(values[i], data_.columns[key.columns()[i]]->type()));
  return context.scratch.values;
}

Result<Row> Table::find(TransactionContext& context, std::size_t key_index,
                        std::span<const Value> values) {
  const KeyIndex& key = *data_.keys[key_index];
  bool is_late = false;
  if (index_build_.is_deferred()) {
    if (Status s = index_build_.prepare_lookup(key_index); !s.ok()) return s;
    is_late = key.late() != nullptr;
  }
  if (!key.is_unique())
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("table {}, key {}: not unique, use find_all", name(), key.name()));
  if (values.size() != key.columns().size())
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("table {}, key {}: find needs {} values, found {}", name(),
                              key.name(), key.columns().size(), values.size()));
  if (Status s = check_key_values(key, values); !s.ok()) return s;
  const std::span<const Value> wanted = normalise(context, key, values);
  if (!key.is_hashed(wanted)) {
    Result<Row> found = Status(StatusCode::kNotFound);
    walk_unhashed(key, wanted, context.visibility, [&](const Row& row) {
      found = row;
      return false;
    });
    return found;
  }
  const std::uint64_t hash = key.hash_of(wanted);
  const bool is_whole = key.lookup_outside_runs(hash, context.scratch.candidates);
  const std::span<const std::uint32_t> heads = context.scratch.candidates.view();
  for (const std::uint32_t head : heads) data_.rows.prefetch(head);
  std::uint32_t row = kNoRow;
  const auto is_found = [&](std::uint32_t head) {
    row = visible_version(key, head, wanted, context.visibility);
    return row != kNoRow;
  };
  if (std::any_of(heads.begin(), heads.end(), is_found) || key.any_in_runs(hash, is_found))
    return data_.make_row(row);
  if (__builtin_expect(is_late, 0)) row = find_late(context, key, wanted);
  if (__builtin_expect(row != kNoRow, 0)) return data_.make_row(row);
  return is_whole ? Status(StatusCode::kNotFound) : key.hint_damage();
}

// What has not been found in the index.
std::uint32_t Table::find_late(TransactionContext& context, const KeyIndex& key,
                               std::span<const Value> values) const {
  static_cast<void>(key.lookup(values, context.scratch.candidates));
  for (const std::uint32_t head : context.scratch.candidates.view())
    if (const std::uint32_t row = visible_version(key, head, values, context.visibility);
        row != kNoRow)
      return row;
  return kNoRow;
}

void Table::prefetch(std::size_t key_index, std::span<const Value> values) const noexcept {
  const KeyIndex& key = *data_.keys[key_index];
  if (!key.is_unique() || values.size() < key.hashed_columns()) return;
  if (!key.needs_normalising()) {
    key.prefetch(key.hash_of(values));
    return;
  }
  std::array<Value, kKeyColumnsMax> wanted;
  for (std::size_t i = 0; i < key.hashed_columns(); ++i)
    wanted[i] = columns::normalised(values[i], data_.columns[key.columns()[i]]->type());
  key.prefetch(key.hash_of(std::span(wanted.data(), key.hashed_columns())));
}

Status Table::find_all(TransactionContext& context, std::size_t key_index,
                       std::span<const Value> prefix, FunctionRef<bool(const Row&)> visit) const {
  const KeyIndex& key = *data_.keys[key_index];
  if (prefix.size() > key.columns().size())
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("table {}, key {}: {} values for {} columns", name(), key.name(),
                              prefix.size(), key.columns().size()));
  if (key.is_ordered()) return range(context, key_index, {prefix, true}, {prefix, true}, visit);
  if (prefix.size() < key.hashed_columns())
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("table {}, key {}: not ordered, so that a look-up must cover the {} "
                              "hashed columns; found {} values",
                              name(), key.name(), key.hashed_columns(), prefix.size()));
  if (Status s = check_key_values(key, prefix); !s.ok()) return s;
  // A local copy: the visitor may call find, which uses the context's scratch space.
  std::array<Value, kKeyColumnsMax> copy;
  const std::span<const Value> normal = normalise(context, key, prefix);
  std::copy(normal.begin(), normal.end(), copy.begin());
  const std::span<const Value> wanted(copy.data(), prefix.size());
  if (!key.is_hashed(wanted)) {
    walk_unhashed(key, wanted, context.visibility, visit);
    return {};
  }
  columns::Candidates candidates;
  const bool is_late = key.late() != nullptr;
  const bool is_whole = key.lookup(wanted, candidates);
  for (const std::uint32_t head : candidates.view()) data_.rows.prefetch(head);
  // An old snapshot may be led from a newer version to one that has an entry of its own as well: in
  // a run, which comes later, or in a hint index or among rows without an entry, in any order.
  std::vector<std::uint32_t> led_to;
  const bool is_any_order = (key.has_hints() || is_late) && candidates.view().size() > 1;
  for (const std::uint32_t head : candidates.view()) {
    const std::uint32_t row = visible_version(key, head, wanted, context.visibility);
    if (row == kNoRow || std::find(led_to.begin(), led_to.end(), row) != led_to.end()) continue;
    if (is_any_order || (row != head && data_.runs.serves(row))) led_to.push_back(row);
    if (!visit(data_.make_row(row))) break;
  }
  return is_whole ? Status() : key.hint_damage();
}

Status Table::normalise_bounds(const KeyIndex& key, const KeyBound& bound,
                               std::vector<Value>& values) const {
  if (bound.values.size() > key.columns().size())
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("table {}, key {}: a bound of {} values for {} columns", name(),
                              key.name(), bound.values.size(), key.columns().size()));
  if (Status s = check_key_values(key, bound.values); !s.ok()) return s;
  for (std::size_t i = 0; i < bound.values.size(); ++i)
    values.push_back(columns::normalised(bound.values[i], data_.columns[key.columns()[i]]->type()));
  return {};
}

Status Table::range(TransactionContext& context, std::size_t key_index, const KeyBound& lower,
                    const KeyBound& upper, FunctionRef<bool(const Row&)> visit) const {
  const KeyIndex& key = *data_.keys[key_index];
  if (!key.is_ordered())
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("table {}, key {}: not ordered", name(), key.name()));
  std::vector<Value> low;
  std::vector<Value> high;
  if (Status s = normalise_bounds(key, lower, low); !s.ok()) return s;
  if (Status s = normalise_bounds(key, upper, high); !s.ok()) return s;
  // Without the index all rows are looked at: whoever wants the transaction to end is not to wait.
  constexpr std::uint32_t kRowsLookedAt = 1024;
  bool is_to_end = false;
  const auto is_seen = [&](std::uint32_t row) {
    if (row % kRowsLookedAt == 0 && context.ending.is_to_end()) is_to_end = true;
    return !is_to_end && context.visibility.sees(data_.rows.version(row));
  };
  index_build_.walk(key, {low, lower.inclusive, high, upper.inclusive},
                    context.visibility.snapshot(), is_seen,
                    [&](std::uint32_t row) { return visit(data_.make_row(row)); });
  return is_to_end ? context.ending.why_ended() : Status();
}

}  // namespace flugs::engine
