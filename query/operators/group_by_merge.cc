#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "query/operators/group_by.h"
#include "query/operators/quantile.h"

namespace flugs::query {

namespace {

// Groups of all workers, and pairs of a count distinct, from which merging in parallel pays.
constexpr std::size_t kParallelGroups = 10'000;
constexpr std::size_t kParallelPairs = 100'000;

}  // namespace

std::vector<GroupBySink::Local*> GroupBySink::used_locals() const {
  std::vector<Local*> used;
  for (const auto& local : locals_)
    if (local) used.push_back(local.get());
  return used;
}

// Whether records are, or should be, in parts.
bool GroupBySink::is_parted() const {
  std::size_t groups = 0;
  std::size_t pairs = 0;
  const std::vector<Local*> used = used_locals();
  for (const Local* local : used) {
    if (local->parts || local->rows) return true;
    if (!keys_.empty()) groups += local->groups.table.size();
    for (std::size_t a = 0; a < aggregates_.size(); ++a) {
      if (local->pairs[a]) return true;
      pairs += local->groups.distinct[a].size();
    }
  }
  return used.size() > 1 && (groups >= kParallelGroups || pairs >= kParallelPairs);
}

// Brings the workers' groups together as far as that needs parts. True: groups are in parts.
bool GroupBySink::part() {
  for (Local* local : used_locals()) hand_over(*local);
  if (!is_parted()) return false;
  // While pairs of one aggregate are counted, tables with pairs of others may be emptied.
  for (std::size_t a = 0; a < aggregates_.size(); ++a)
    if (aggregates_[a].is_distinct()) count_pairs(a);
  return !keys_.empty() && is_parted();
}

void GroupBySink::merge_groups(const Groups& from, Groups& into) {
  const std::size_t stride = aggregates_.size();
  const std::uint32_t size = from.table.size();
  std::vector<std::uint32_t> renumbered(size);
  for (std::uint32_t first = 0; first < size; first += kBatchRows)
    into.table.find_rows(from.table.key_row(first), from.table.row_words(),
                         std::min<std::size_t>(kBatchRows, size - first),
                         renumbered.data() + first);
  into.grow_states(stride);
  for (std::uint32_t group = 0; group < size; ++group)
    for (std::size_t a = 0; a < stride; ++a)
      merge(aggregates_[a], from.states[group * stride + a],
            into.states[renumbered[group] * stride + a], kept_.front());
  for (std::size_t a = 0; a < stride; ++a) {
    FLUGS_CHECK(from.bits[a].size() == into.bits[a].size());
    for (std::size_t word = 0; word < from.bits[a].size(); ++word)
      into.bits[a][word] |= from.bits[a][word];
    from.distinct[a].for_each([&](std::uint32_t group, std::uint64_t word, std::uint64_t mark) {
      into.distinct[a].insert(renumbered[group], word, mark);
    });
  }
  into.charge.set(into.bytes());
  context_.check_stop();
}

void GroupBySink::count_bits(Groups& groups) const {
  for (std::size_t a = 0; a < aggregates_.size(); ++a) {
    if (groups.bits[a].empty() || groups.table.size() == 0) continue;
    // Values without a bit have been counted.
    FLUGS_CHECK(keys_.empty() && groups.table.size() == 1);
    for (const std::uint64_t word : groups.bits[a]) groups.states[a].count += std::popcount(word);
  }
}

GroupBySink::Groups GroupBySink::merged() {
  const std::vector<Local*> used = used_locals();
  Groups all(*this, {});
  if (used.size() == 1)
    all = std::move(used[0]->groups);
  else
    for (const Local* local : used) merge_groups(local->groups, all);
  for (std::size_t a = 0; a < aggregates_.size(); ++a)
    all.distinct[a].for_each([&](std::uint32_t group, std::uint64_t, std::uint64_t) {
      ++all.states[group * aggregates_.size() + a].count;
    });
  count_bits(all);
  return all;
}

ColumnView GroupBySink::emit_key(std::size_t k, const Groups& groups, std::size_t first,
                                 std::size_t count, Vec& out) const {
  const std::size_t word = keys_[k].word;
  std::uint8_t* nulls = out.nulls(count);
  bool any_null = false;
  const auto row = [&](std::size_t i) {
    return groups.table.key_row(static_cast<std::uint32_t>(first + i));
  };
  for (std::size_t i = 0; i < count; ++i) {
    nulls[i] = groups.table.is_null(static_cast<std::uint32_t>(first + i), word) ? 1 : 0;
    any_null |= nulls[i] != 0;
  }
  switch (schema_[k].form()) {
    case Form::kCode: {
      std::uint32_t* codes = out.codes(count);
      for (std::size_t i = 0; i < count; ++i) codes[i] = static_cast<std::uint32_t>(row(i)[word]);
      break;
    }
    case Form::kText: {
      std::string_view* texts = out.texts(count);
      for (std::size_t i = 0; i < count; ++i) texts[i] = text_of(row(i)[word], row(i)[word + 1]);
      break;
    }
    default: {
      std::int64_t* ints = out.ints(count);
      for (std::size_t i = 0; i < count; ++i) ints[i] = static_cast<std::int64_t>(row(i)[word]);
    }
  }
  return out.view(any_null);
}

ColumnView GroupBySink::emit_aggregate(std::size_t a, const Groups& groups, std::size_t first,
                                       std::size_t count, Vec& out) const {
  const AggregateState* states = groups.states.data();
  const std::size_t stride = aggregates_.size();
  if (aggregates_[a].keeps_values())
    return finish_quantiles(aggregates_[a], states, stride, a, first, count, out, context_.budget);
  return query::finish(aggregates_[a], states, stride, a, first, count, out);
}

void GroupBySink::emit(const Groups& groups, std::vector<Vec>& columns, Batch& batch,
                       FunctionRef<bool(const Batch&)> take) const {
  FLUGS_CHECK(groups.states.size() >= groups.table.size() * aggregates_.size());
  FLUGS_CHECK(columns.size() == schema_.size());
  batch.columns.resize(schema_.size());
  for (std::size_t first = 0; first < groups.table.size(); first += kBatchRows) {
    batch.rows = std::min<std::size_t>(kBatchRows, groups.table.size() - first);
    for (std::size_t k = 0; k < keys_.size(); ++k)
      batch.columns[k] = emit_key(k, groups, first, batch.rows, columns[k]);
    for (std::size_t a = 0; a < aggregates_.size(); ++a)
      batch.columns[keys_.size() + a] =
          emit_aggregate(a, groups, first, batch.rows, columns[keys_.size() + a]);
    if (!take(batch)) return;
  }
}

// The groups, if they are not in parts.
Rows GroupBySink::all_rows() {
  Rows rows;
  rows.schema = schema_;
  Charge charge(context_.budget, "group by");
  Groups all = merged();
  if (keys_.empty() && all.table.size() == 0) {
    // Without rows there is still one group.
    all.table.find(KeyWords(0), 1, std::vector<std::uint32_t>(1).data());
    all.grow_states(aggregates_.size());
  }
  explain(all.table.size());
  locals_.clear();
  std::vector<Vec> columns(schema_.size());
  Batch batch;
  emit(all, columns, batch, [&](const Batch& next) {
    rows.append(next, charge);
    return true;
  });
  kept_.clear();
  rows.charges.push_back(std::move(charge));
  return rows;
}

void GroupBySink::explain_parts() const {
  std::uint64_t records = 0;
  std::uint64_t spilled = 0;
  for (const Local* local : used_locals()) {
    for (const RecordParts* store : {local->parts.get(), local->rows.get()}) {
      if (store == nullptr) continue;
      records += store->records();
      spilled += store->spilled_bytes();
    }
  }
  if (records == 0) return;
  explain_->details.push_back(
      fmt::format("{} records of groups and rows in {} parts", records, RecordParts::kParts));
  if (spilled != 0)
    explain_->details.push_back(
        fmt::format("{:.1f} MB in temporary files", static_cast<double>(spilled) / 1e6));
}

void GroupBySink::explain(std::uint64_t groups) const {
  const bool is_array = !keys_.empty() && GroupTable(shape_, ranges()).is_array();
  explain_->details.push_back(fmt::format("{} groups, found {}", groups,
                                          keys_.empty() ? "without keys"
                                          : is_array    ? "by indexing an array"
                                                        : "by hash"));
  std::uint64_t by_codes = 0;
  std::uint64_t hand_overs = 0;
  for (const auto& local : locals_) {
    if (!local) continue;
    by_codes += local->rows_by_codes;
    hand_overs += local->hand_overs;
  }
  if (by_codes != 0)
    explain_->details.push_back(fmt::format(
        "{} rows by codes of their row groups, looked up {} times", by_codes, hand_overs));
  for (std::size_t a = 0; a < aggregates_.size(); ++a)
    if (bit_domains_[a].count != 0)
      explain_->details.push_back(
          fmt::format("{}: a bit for each of {} {}", aggregates_[a].name, bit_domains_[a].count,
                      aggregates_[a].form() == Form::kCode ? "codes" : "integers"));
}

}  // namespace flugs::query
