#include <algorithm>
#include <atomic>
#include <limits>

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

}  // namespace

void GroupBySink::Past::note_emptied(std::uint64_t entries) noexcept {
  left = taken < entries * kRowsPerGroupMin ? entries * kRowsPast : 0;
  taken = 0;
}

KeyShape GroupBySink::pair_shape(std::size_t a) const {
  KeyShape shape = shape_;
  shape.add(aggregates_[a].form() == Form::kText);
  return shape;
}

// Stores of a worker: one for groups and rows, and one for the pairs of each count distinct.
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

RecordParts& GroupBySink::rows_of(Local& local) const {
  if (!local.rows)
    local.rows = std::make_unique<RecordParts>(local.row_records.words(), context_, "group by",
                                               store_bytes_max());
  return *local.rows;
}

RecordParts& GroupBySink::pairs_of(std::size_t a, Local& local) const {
  if (!local.pairs[a]) {
    const std::size_t words = pair_shape(a).words();
    local.pairs[a] = std::make_unique<RecordParts>(words + KeyWords::null_words(words), context_,
                                                   "group by", store_bytes_max());
  }
  return *local.pairs[a];
}

// An array may grow beyond the cache: the number of its groups is bounded. Any other table that
// grows has up to four times as much room as it needs.
std::uint64_t GroupBySink::local_bytes_max(bool is_array) const noexcept {
  const std::uint64_t share = context_.budget.bytes_max() / context_.threads / stores();
  if (is_array) return std::max(share / 8, kLocalBytesMin);
  return std::clamp(share / 32, kLocalBytesMin, kLocalBytesMax);
}

// In a hash table that is half full.
std::uint64_t GroupBySink::bytes_of_group() const noexcept {
  return GroupTable::bytes_of_group(shape_) + aggregates_.size() * sizeof(AggregateState);
}

void GroupBySink::empty_if_full(Local& local) const {
  for (std::size_t a = 0; a < aggregates_.size(); ++a) {
    const std::uint64_t entries = local.groups.distinct[a].size();
    if (entries * DistinctSet::kPairBytes > local_bytes_max(false)) {
      empty_pairs(a, local);
      local.pairs_past[a].note_emptied(entries);
    }
    limit_pairs(a, local);
  }
  const GroupTable& table = local.groups.table;
  if (keys_.empty() || table.size() * bytes_of_group() <= local_bytes_max(table.is_array())) return;
  const std::uint64_t entries = table.size();
  empty_groups(local);
  local.table_past.note_emptied(table.is_array() ? 0 : entries);
  limit_records(local);
}

void GroupBySink::put_group(const Groups& groups, std::uint32_t group,
                            std::uint64_t* record) const {
  const std::size_t stride = aggregates_.size();
  std::copy_n(groups.table.key_row(group), groups.table.row_words(), record);
  for (std::size_t a = 0; a < stride; ++a)
    pack(aggregates_[a], groups.states[group * stride + a], record + state_at_[a]);
}

// Pairs name groups by their numbers in the table, so they go first.
void GroupBySink::empty_groups(Local& local) const {
  for (std::size_t a = 0; a < aggregates_.size(); ++a) empty_pairs(a, local);
  GroupTable& table = local.groups.table;
  if (table.size() == 0) return;
  RecordParts& parts = parts_of(local);
  for (std::uint32_t group = 0; group < table.size(); ++group)
    put_group(local.groups, group, parts.add(table.hash(group)));
  table.clear();
  local.groups.states.clear();
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
    if (shape_.is_hashed[w] != 0) hash = combine_hashes(hash, key_row[w]);
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
  const std::size_t rows = batch.rows;
  local.table_past.pass(rows);
  if (local.hashes.empty()) local.hashes.resize(kBatchRows);
  put_keys(batch, local);
  local.groups.table.hash(local.words, rows, local.hashes.data());
  for (std::size_t a = 0; a < aggregates_.size(); ++a) {
    const BoundAggregate& aggregate = aggregates_[a];
    if (!aggregate.of) continue;
    const ColumnView values = local.evaluator.evaluate(*aggregate.of, batch);
    if (aggregate.is_distinct())
      put_distinct_rows(a, values, rows, local);
    else
      local.row_records.set_argument(a, values, rows);
  }
  local.row_records.add(local.words, local.hashes.data(), rows, rows_of(local));
  for (std::size_t a = 0; a < aggregates_.size(); ++a) limit_pairs(a, local);
  limit_records(local);
  local.groups.charge.set(bytes_of(local));
}

void GroupBySink::put_distinct_rows(std::size_t a, ColumnView values, std::size_t rows,
                                    Local& local) const {
  const std::size_t words = shape_.words();
  std::vector<std::uint64_t> key_row(local.groups.table.row_words());
  for (std::size_t i = 0; i < rows; ++i) {
    if (values.nulls != nullptr && values.nulls[i] != 0) continue;
    for (std::size_t w = 0; w < key_row.size(); ++w)
      key_row[w] = w < words ? local.words.keys[w][i] : local.words.nulls[w - words][i];
    add_pair(a, key_row.data(), distinct_of(a, values, i), local);
  }
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
  // From here on several workers read each of the stores.
  for (Local* local : used_locals())
    local->compact_pairs_at[a] = std::numeric_limits<std::uint64_t>::max();
  std::atomic<std::size_t> next{0};
  context_.crew.run(context_.threads, [&](std::uint32_t worker) {
    GroupTable pairs(pair_shape(a), {});
    for (std::size_t part = next++; part < RecordParts::kParts; part = next++)
      count_pairs_of(a, sources, part, pairs, local_of(worker));
  });
  for (Local* local : used_locals()) local->pairs[a].reset();
}

void GroupBySink::count_pairs_of(std::size_t a, const std::vector<RecordParts*>& sources,
                                 std::size_t part, GroupTable& pairs, Local& local) const {
  Charge charge(context_.budget, "group by");
  pairs.clear();
  charge.set(pairs.bytes());
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
  local.table_past.taken += count;
  empty_if_full(local);
  groups.charge.set(bytes_of(local));
}

}  // namespace flugs::query
