#include <algorithm>
#include <atomic>

#include "base/check.h"
#include "query/operators/group_by.h"

namespace flugs::query {

namespace {

// A worker's groups, and the pairs of a count distinct, up to this size stay in the third-level
// cache: there a lookup costs less than to write a record and read it again.
constexpr std::uint64_t kLocalBytesMax = std::uint64_t{8} << 20;
// Below this size, emptying a table frees less than the records take.
constexpr std::uint64_t kLocalBytesMin = std::uint64_t{32} << 10;
// A table with fewer rows per group than this is not worth its lookups. After it has been emptied,
// kRowsPast rows for each of its groups go past it.
constexpr std::uint64_t kRowsPerGroupMin = 2;
constexpr std::uint64_t kRowsPast = 32;
// Records that a task merges, so that its start and its results are worth it.
constexpr std::uint64_t kTaskRecords = 16 * kBatchRows;

}  // namespace

KeyShape GroupBySink::pair_shape(std::size_t a) const {
  KeyShape shape = shape_;
  shape.add(aggregates_[a].form() == Form::kText);
  return shape;
}

// Stores of a worker: one for groups, and one for the pairs of each count distinct.
std::uint64_t GroupBySink::stores() const noexcept {
  const auto distinct = std::count_if(aggregates_.begin(), aggregates_.end(),
                                      [](const BoundAggregate& a) { return a.is_distinct(); });
  return 1 + static_cast<std::uint64_t>(distinct);
}

// Half of the budget is for tables, for the result, and for other operators.
std::uint64_t GroupBySink::store_bytes_max() const noexcept {
  return context_.budget.bytes_max() / 2 / context_.threads / stores();
}

RecordParts& GroupBySink::parts_of(Local& local) const {
  if (!local.parts)
    local.parts =
        std::make_unique<RecordParts>(record_words_, context_, "group by", store_bytes_max());
  return *local.parts;
}

RecordParts& GroupBySink::pairs_of(std::size_t a, Local& local) const {
  if (!local.pairs[a]) {
    const std::size_t words = pair_shape(a).words();
    local.pairs[a] = std::make_unique<RecordParts>(words + KeyWords::null_words(words), context_,
                                                   "group by", store_bytes_max());
  }
  return *local.pairs[a];
}

// Records are not merged before the end, so their number grows with that of the rows. When a store
// is filling up, its worker's table may therefore grow beyond the cache. An array may do so from
// the beginning: the number of its groups is bounded.
std::uint64_t GroupBySink::local_bytes_max(const RecordParts* store, bool is_array) const noexcept {
  const std::uint64_t share = context_.budget.bytes_max() / context_.threads / stores();
  if (is_array) return std::max(share / 8, kLocalBytesMin);
  // A table that grows has up to four times as much room as it needs.
  if (store != nullptr && store->is_filling()) return std::max(share / 16, kLocalBytesMin);
  return std::clamp(share / 32, kLocalBytesMin, kLocalBytesMax);
}

// In a hash table that is half full.
std::uint64_t GroupBySink::bytes_of_group() const noexcept {
  return GroupTable::bytes_of_group(shape_) + aggregates_.size() * sizeof(AggregateState);
}

void GroupBySink::empty_if_full(Local& local) const {
  for (std::size_t a = 0; a < aggregates_.size(); ++a)
    if (local.groups.distinct[a].size() * DistinctSet::kPairBytes >
        local_bytes_max(local.pairs[a].get(), false))
      empty_pairs(a, local);
  const GroupTable& table = local.groups.table;
  const RecordParts* store = local.parts.get();
  if (keys_.empty() || table.size() * bytes_of_group() <= local_bytes_max(store, table.is_array()))
    return;
  const bool is_filling = store != nullptr && store->is_filling();
  if (!table.is_array() && !is_filling && local.rows_taken < table.size() * kRowsPerGroupMin)
    local.rows_past_left = table.size() * kRowsPast;
  empty_groups(local);
}

// Pairs name groups by their numbers in the table, so they go first.
void GroupBySink::empty_groups(Local& local) const {
  for (std::size_t a = 0; a < aggregates_.size(); ++a) empty_pairs(a, local);
  GroupTable& table = local.groups.table;
  const std::size_t stride = aggregates_.size();
  if (table.size() == 0) return;
  RecordParts& parts = parts_of(local);
  for (std::uint32_t group = 0; group < table.size(); ++group) {
    std::uint64_t* record = parts.add(table.hash(group));
    std::copy_n(table.key_row(group), table.row_words(), record);
    for (std::size_t a = 0; a < stride; ++a)
      pack(aggregates_[a], local.groups.states[group * stride + a], record + state_at_[a]);
  }
  table.clear();
  local.groups.states.clear();
  local.rows_taken = 0;
}

void GroupBySink::empty_pairs(std::size_t a, Local& local) const {
  DistinctSet& set = local.groups.distinct[a];
  if (set.size() == 0) return;
  set.for_each([&](std::uint32_t group, std::uint64_t word, std::uint64_t mark) {
    add_pair(a, local.groups.table.key_row(group), {word, mark}, local);
  });
  set.clear();
}

// A pair is a key row of the keys and the value.
void GroupBySink::add_pair(std::size_t a, const std::uint64_t* key_row, Distinct value,
                           Local& local) const {
  RecordParts& pairs = pairs_of(a, local);
  const std::size_t words = shape_.words();
  const bool is_text = aggregates_[a].form() == Form::kText;
  // Both words of a text are not hashed: the address differs between equal texts.
  std::uint64_t hash = is_text ? value.mark : value.word;
  for (std::size_t w = 0; w < words; ++w)
    if (shape_.is_address[w] == 0) hash = combine_hashes(hash, key_row[w]);
  std::uint64_t* record = pairs.add(combine_hashes(hash, key_row[words]));
  std::uint64_t* end = std::copy_n(key_row, words, record);
  *end++ = value.word;
  if (is_text) *end++ = value.mark;
  // The value is not NULL, so its bits, the last ones, are 0.
  end = std::copy_n(key_row + words, KeyWords::null_words(words), end);
  std::fill(end, record + pairs.words(), 0);
}

// Rows become records of their own, without a lookup.
void GroupBySink::push_past_table(const Batch& batch, Local& local) const {
  const std::size_t stride = aggregates_.size();
  const std::size_t rows = batch.rows;
  local.rows_past_left -= std::min<std::uint64_t>(local.rows_past_left, rows);
  if (local.hashes.empty()) {
    local.hashes.resize(kBatchRows);
    local.key_rows.resize(kBatchRows * local.groups.table.row_words());
  }
  put_keys(batch, local);
  local.groups.table.hash(local.words, rows, local.hashes.data());
  for (std::size_t i = 0; i < rows; ++i) local.group_of[i] = static_cast<std::uint32_t>(i);
  local.row_states.assign(rows * stride, AggregateState());
  const std::size_t row_words = local.groups.table.row_words();
  const std::size_t words = shape_.words();
  for (std::size_t w = 0; w < row_words; ++w) {
    const auto& column = w < words ? local.words.keys[w] : local.words.nulls[w - words];
    for (std::size_t i = 0; i < rows; ++i) local.key_rows[i * row_words + w] = column[i];
  }
  for (std::size_t a = 0; a < stride; ++a) {
    const BoundAggregate& aggregate = aggregates_[a];
    ColumnView values;
    if (aggregate.of) values = local.evaluator.evaluate(*aggregate.of, batch);
    if (aggregate.is_distinct())
      put_distinct_rows(a, values, rows, local);
    else
      accumulate(aggregate, values, local.group_of.data(), rows, false, local.row_states.data(),
                 stride, a);
  }
  RecordParts& parts = parts_of(local);
  for (std::size_t i = 0; i < rows; ++i) {
    std::uint64_t* record = parts.add(local.hashes[i]);
    std::copy_n(local.key_rows.data() + i * row_words, row_words, record);
    for (std::size_t a = 0; a < stride; ++a)
      pack(aggregates_[a], local.row_states[i * stride + a], record + state_at_[a]);
  }
  if (parts.is_filling()) local.rows_past_left = 0;
  local.groups.charge.set(bytes_of(local));
}

void GroupBySink::put_distinct_rows(std::size_t a, ColumnView values, std::size_t rows,
                                    Local& local) const {
  const std::size_t row_words = local.groups.table.row_words();
  for (std::size_t i = 0; i < rows; ++i)
    if (values.nulls == nullptr || values.nulls[i] == 0)
      add_pair(a, local.key_rows.data() + i * row_words, distinct_of(a, values, i), local);
}

// Gives each distinct pair to the state of its group, in a table of the worker that met it: as if
// rows with one value each came in.
void GroupBySink::count_pairs(std::size_t a) {
  std::vector<RecordParts*> sources;
  for (Local* local : used_locals()) {
    empty_pairs(a, *local);
    if (local->pairs[a]) sources.push_back(local->pairs[a].get());
  }
  if (sources.empty()) return;
  std::atomic<std::size_t> next{0};
  context_.crew.run(context_.threads, [&](std::uint32_t worker) {
    for (std::size_t part = next++; part < RecordParts::kParts; part = next++)
      count_pairs_of(a, sources, part, local_of(worker));
  });
  for (Local* local : used_locals()) local->pairs[a].reset();
}

void GroupBySink::count_pairs_of(std::size_t a, const std::vector<RecordParts*>& sources,
                                 std::size_t part, Local& local) const {
  GroupTable pairs(pair_shape(a), {});
  Charge charge(context_.budget, "group by");
  std::vector<std::uint32_t> numbers(kBatchRows);
  for (RecordParts* source : sources) {
    source->visit(part, [&](const std::uint64_t* records, std::size_t count) {
      const std::uint32_t before = pairs.size();
      pairs.find_rows(records, source->words(), count, numbers.data());
      charge.set(pairs.bytes());
      count_new_pairs(a, pairs, before, local);
      context_.check_stop();
    });
    source->release(part);
  }
}

void GroupBySink::count_new_pairs(std::size_t a, const GroupTable& pairs, std::uint32_t first,
                                  Local& local) const {
  const std::size_t count = pairs.size() - first;
  const std::size_t words = shape_.words();
  const std::size_t row_words = local.groups.table.row_words();
  const std::size_t pair_words = pair_shape(a).words();
  FLUGS_DCHECK(count <= kBatchRows);
  local.key_rows.resize(kBatchRows * row_words);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t* pair = pairs.key_row(static_cast<std::uint32_t>(first + i));
    std::uint64_t* to = std::copy_n(pair, words, local.key_rows.data() + i * row_words);
    std::copy_n(pair + pair_words, row_words - words, to);
  }
  Groups& groups = local.groups;
  groups.table.find_rows(local.key_rows.data(), row_words, count, local.group_of.data());
  groups.grow_states(aggregates_.size());
  for (std::size_t i = 0; i < count; ++i)
    ++groups.states[local.group_of[i] * aggregates_.size() + a].count;
  local.rows_taken += count;
  empty_if_full(local);
  groups.charge.set(bytes_of(local));
}

std::size_t GroupBySink::parts_per_task() const {
  std::uint64_t records = 0;
  for (Local* local : used_locals())
    if (local->parts) records += local->parts->records();
  const std::uint64_t of_task =
      std::min(kTaskRecords, local_bytes_max(nullptr, false) / bytes_of_group());
  std::size_t parts = 1;
  while (parts < RecordParts::kParts && records * parts < of_task * RecordParts::kParts) parts *= 2;
  return parts;
}

void GroupBySink::merge_part(std::size_t part, Groups& into) const {
  const std::size_t stride = aggregates_.size();
  std::vector<std::uint32_t> groups(kBatchRows);
  for (const auto& local : locals_) {
    if (!local || !local->parts) continue;
    local->parts->visit(part, [&](const std::uint64_t* records, std::size_t count) {
      into.table.find_rows(records, record_words_, count, groups.data());
      into.grow_states(stride);
      into.charge.set(into.bytes());
      for (std::size_t a = 0; a < stride; ++a)
        merge_packed(aggregates_[a], records + state_at_[a], record_words_, count, groups.data(),
                     into.states.data(), stride, a);
      context_.check_stop();
    });
    local->parts->release(part);
  }
}

Rows GroupBySink::merge_parts() {
  for (Local* local : used_locals()) {
    empty_groups(*local);
    local->groups = Groups(*this, {});
  }
  const std::size_t parts = parts_per_task();
  std::vector<Rows> results(RecordParts::kParts / parts);
  context_.crew.for_each(context_.threads, results.size(), [&](std::size_t task) {
    Groups groups(*this, {});
    for (std::size_t part = task * parts; part < (task + 1) * parts; ++part)
      merge_part(part, groups);
    Rows& rows = results[task];
    rows.schema = schema_;
    Charge charge(context_.budget, "group by");
    emit(groups, rows, charge);
    rows.charges.push_back(std::move(charge));
  });
  Rows all;
  all.schema = schema_;
  for (Rows& rows : results) all.take(std::move(rows));
  return all;
}

}  // namespace flugs::query
