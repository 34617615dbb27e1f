#include "query/operators/group_by.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "query/expressions/expr_node.h"
#include "query/vectors/failure.h"

namespace flugs::query {

namespace {
// Number of groups from which merging in parallel pays.
constexpr std::size_t kParallelGroups = 10'000;
}  // namespace

GroupBySink::Groups::Groups(const GroupBySink& sink, std::vector<std::uint32_t> ranges)
    : table(sink.keys_.size(), std::move(ranges)),
      distinct(sink.aggregates_.size()),
      bits(sink.aggregates_.size()),
      charge(sink.context_.budget, "group by") {
  for (std::size_t a = 0; a < bits.size(); ++a)
    if (sink.bit_domains_[a].count != 0) bits[a].assign(sink.bit_domains_[a].count / 64 + 1, 0);
}

void GroupBySink::Groups::grow_states(std::size_t aggregates) {
  const std::size_t wanted = table.size() * aggregates;
  if (states.size() < wanted) {
    if (states.capacity() < wanted) states.reserve(wanted * 2);
    states.resize(wanted);
  }
}

std::uint64_t GroupBySink::Groups::bytes() const noexcept {
  std::uint64_t sum = table.bytes() + states.capacity() * sizeof(AggregateState);
  for (const DistinctSet& set : distinct) sum += set.bytes();
  for (const auto& words : bits) sum += words.size() * 8;
  return sum;
}

GroupBySink::Local::Local(const GroupBySink& sink)
    : evaluator(sink.binder_.slot_count()),
      groups(sink, sink.ranges()),
      words(sink.keys_.size()),
      group_of(kBatchRows),
      marks(sink.aggregates_.size()) {
  if (sink.is_by_codes_) codes.emplace(sink.columns_of_keys(), sink.aggregates_);
}

GroupBySink::GroupBySink(RunContext& context, const Schema& input, const std::vector<Item>& keys,
                         const std::vector<Aggregate>& aggregates, ExplainPtr explain)
    : context_(context), binder_(context.texts, input), explain_(std::move(explain)) {
  for (const Item& item : keys) {
    Key key{binder_.bind(item.expr(), true), nullptr};
    if (key.expr->form == Form::kText) key.pool = std::make_shared<TextPool>(key.expr->type.type);
    std::shared_ptr<const CodeDomain> domain = key.expr->result_domain;
    if (key.pool) domain = key.pool;
    schema_.push_back({output_name(item.expr()), key.expr->type, std::move(domain)});
    keys_.push_back(std::move(key));
  }
  for (const Aggregate& aggregate : aggregates) bind_aggregate(aggregate);
  is_of_columns_ = is_of_columns();
  is_by_codes_ = !keys_.empty() && std::all_of(keys_.begin(), keys_.end(), [](const Key& key) {
    return key.expr->op == Op::kColumn;
  }) && std::all_of(aggregates_.begin(), aggregates_.end(), CodeGroups::can_aggregate);
  choose_bits();
  locals_.resize(context.threads);
}

void GroupBySink::bind_aggregate(const Aggregate& aggregate) {
  BoundAggregate bound;
  bound.kind = aggregate.kind;
  bound.name = output_name(aggregate);
  const AggregateKind kind = aggregate.kind;
  if (kind != AggregateKind::kCountRows) {
    const bool any_form = kind == AggregateKind::kCount || kind == AggregateKind::kCountDistinct;
    Expr of = aggregate.of;
    const bool is_deviation = kind >= AggregateKind::kVariance;
    bound.of = binder_.bind(is_deviation ? to_double(of) : of, any_form);
    if (kind == AggregateKind::kCountDistinct && bound.of->form == Form::kText)
      bound.pool = std::make_shared<TextPool>(bound.of->type.type);
  }
  const bool is_sum = kind == AggregateKind::kSum || kind == AggregateKind::kAvg;
  if (is_sum && !is_number(bound.of->type))
    fail(StatusCode::kInvalidArgument,
         fmt::format("{}: expected a number, found {}", bound.name, to_string(bound.of->type)));
  if (kind == AggregateKind::kMin || kind == AggregateKind::kMax)
    bound.type = bound.of->type;
  else if (kind == AggregateKind::kSum)
    bound.type = is_integer(bound.of->type) ? DataType{Type::kInt64, 0} : bound.of->type;
  else if (kind >= AggregateKind::kAvg)
    bound.type = {Type::kDouble, 0};
  schema_.push_back({bound.name, bound.type, nullptr});
  aggregates_.push_back(std::move(bound));
}

bool GroupBySink::is_of_columns() const noexcept {
  return keys_.empty() && std::all_of(aggregates_.begin(), aggregates_.end(), [](const auto& a) {
           return !a.of || a.of->op == Op::kColumn;
         });
}

bool GroupBySink::takes_headers() const noexcept {
  return is_of_columns_ && std::all_of(aggregates_.begin(), aggregates_.end(), [](const auto& a) {
           return a.kind == AggregateKind::kMin || a.kind == AggregateKind::kMax ||
                  a.kind == AggregateKind::kCountRows;
         });
}

std::vector<std::uint32_t> GroupBySink::ranges() const {
  std::vector<std::uint32_t> ranges;
  for (const Key& key : keys_) {
    const CodeDomain* domain = key.expr->result_domain.get();
    if (key.expr->type.type == Type::kBool && key.expr->form == Form::kInt)
      ranges.push_back(2);
    else if (key.expr->form == Form::kCode && domain->count() != 0)
      ranges.push_back(domain->count());
    else
      return {};
  }
  return ranges;
}

void GroupBySink::put_key(std::size_t key, ColumnView values, std::size_t rows,
                          KeyWords& words) const {
  FLUGS_CHECK(rows <= kBatchRows);
  std::uint64_t* to = words.keys[key].data();
  const Key& from = keys_[key];
  if (from.pool) {
    for (std::size_t i = 0; i < rows; ++i) to[i] = from.pool->intern(values.texts()[i]);
  } else if (from.expr->form == Form::kCode) {
    for (std::size_t i = 0; i < rows; ++i) to[i] = values.codes()[i];
  } else if (from.expr->type.type == Type::kBool) {
    // A damaged payload may be neither 0 nor 1. GroupTable uses the word as an index.
    for (std::size_t i = 0; i < rows; ++i) to[i] = values.ints()[i] != 0 ? 1 : 0;
  } else {
    for (std::size_t i = 0; i < rows; ++i) to[i] = static_cast<std::uint64_t>(values.ints()[i]);
  }
  if (values.nulls == nullptr) return;
  for (std::size_t i = 0; i < rows; ++i) {
    if (values.nulls[i] == 0) continue;
    to[i] = 0;
    words.note_null(key, i);
  }
}

void GroupBySink::count_distinct(std::size_t a, ColumnView values, const std::uint32_t* groups,
                                 std::size_t rows, Groups& into) const {
  const BoundAggregate& aggregate = aggregates_[a];
  if (bit_domains_[a].count != 0 && aggregate.form() == Form::kCode && values.nulls == nullptr) {
    // Codes of the domain; each has a bit.
    FLUGS_CHECK(into.bits[a].size() * 64 > bit_domains_[a].count);
    std::uint64_t* bits = into.bits[a].data();
    for (std::size_t i = 0; i < rows; ++i)
      bits[values.codes()[i] / 64] |= std::uint64_t{1} << (values.codes()[i] % 64);
    return;
  }
  for (std::size_t i = 0; i < rows; ++i) {
    if (values.nulls != nullptr && values.nulls[i] != 0) continue;
    std::uint64_t word = 0;
    if (aggregate.pool)
      word = aggregate.pool->intern(values.texts()[i]);
    else if (aggregate.form() == Form::kCode)
      word = values.codes()[i];
    else
      word = static_cast<std::uint64_t>(values.ints()[i]);
    note_distinct(a, groups[i], word, into);
  }
}

GroupBySink::Local& GroupBySink::local_of(std::uint32_t worker) {
  FLUGS_CHECK(worker < locals_.size());
  if (!locals_[worker]) locals_[worker] = std::make_unique<Local>(*this);
  return *locals_[worker];
}

void GroupBySink::find_groups(const Batch& batch, Local& local) const {
  GroupTable& table = local.groups.table;
  if (keys_.size() == 1 && keys_[0].expr->form == Form::kCode && table.is_array()) {
    const ColumnView codes = local.evaluator.evaluate(*keys_[0].expr, batch);
    if (codes.nulls == nullptr)
      return table.find_codes(codes.codes(), batch.rows, local.group_of.data());
  }
  local.words.clear_nulls(batch.rows);
  for (std::size_t k = 0; k < keys_.size(); ++k)
    put_key(k, local.evaluator.evaluate(*keys_[k].expr, batch), batch.rows, local.words);
  table.find(local.words, batch.rows, local.group_of.data());
}

void GroupBySink::push(const Batch& batch, std::uint32_t worker) {
  Local& local = local_of(worker);
  Groups& groups = local.groups;
  find_groups(batch, local);
  groups.grow_states(aggregates_.size());
  for (std::size_t a = 0; a < aggregates_.size(); ++a) {
    const BoundAggregate& aggregate = aggregates_[a];
    ColumnView values;
    if (aggregate.of) values = local.evaluator.evaluate(*aggregate.of, batch);
    if (aggregate.is_distinct())
      count_distinct(a, values, local.group_of.data(), batch.rows, groups);
    else
      accumulate(aggregate, values, local.group_of.data(), batch.rows, keys_.empty(),
                 groups.states.data(), aggregates_.size(), a);
  }
  groups.charge.set(bytes_of(local));
}

void GroupBySink::merge_distinct(std::size_t a, const Groups& from,
                                 const std::vector<std::uint32_t>& renumbered, Groups& into) const {
  FLUGS_CHECK(from.bits[a].size() == into.bits[a].size());
  for (std::size_t word = 0; word < from.bits[a].size(); ++word)
    into.bits[a][word] |= from.bits[a][word];
  from.distinct[a].for_each([&](std::uint32_t group, std::uint64_t value) {
    if (renumbered[group] != kNoGroup && into.distinct[a].insert(renumbered[group], value))
      ++into.states[renumbered[group] * aggregates_.size() + a].count;
  });
}

// Merges each worker's groups whose hash belongs to the part.
void GroupBySink::merge_part(std::size_t part, std::size_t parts, Groups& into) const {
  FLUGS_CHECK(part < parts);
  const std::size_t stride = aggregates_.size();
  for (const auto& local : locals_) {
    if (!local) continue;
    const Groups& from = local->groups;
    std::vector<std::uint32_t> renumbered(from.table.size(), kNoGroup);
    for (std::uint32_t group = 0; group < from.table.size(); ++group) {
      const std::uint64_t hash = from.table.hash(group);
      if ((hash >> 40) % parts != part) continue;
      renumbered[group] = into.table.find(from.table.key_row(group), hash);
      into.grow_states(stride);
      for (std::size_t a = 0; a < stride; ++a)
        merge(aggregates_[a], from.states[group * stride + a],
              into.states[renumbered[group] * stride + a]);
    }
    for (std::size_t a = 0; a < stride; ++a)
      if (aggregates_[a].is_distinct()) merge_distinct(a, from, renumbered, into);
    into.charge.set(into.bytes());
    context_.check_stop();
  }
  count_bits(into);
}

void GroupBySink::count_bits(Groups& groups) const {
  for (std::size_t a = 0; a < aggregates_.size(); ++a) {
    if (groups.bits[a].empty() || groups.table.size() == 0) continue;
    // Values without a bit have been counted.
    FLUGS_CHECK(keys_.empty() && groups.table.size() == 1);
    for (const std::uint64_t word : groups.bits[a]) groups.states[a].count += std::popcount(word);
  }
}

std::vector<GroupBySink::Groups> GroupBySink::merged() {
  std::size_t groups = 0;
  std::vector<Local*> used;
  for (const auto& local : locals_) {
    if (!local) continue;
    hand_over(*local);
    groups += local->groups.table.size();
    used.push_back(local.get());
  }
  if (used.size() == 1) {
    // Nothing to merge; but distinct values are not counted yet.
    Groups& only = used[0]->groups;
    for (std::size_t a = 0; a < aggregates_.size(); ++a)
      only.distinct[a].for_each([&](std::uint32_t group, std::uint64_t) {
        ++only.states[group * aggregates_.size() + a].count;
      });
    count_bits(only);
    std::vector<Groups> all;
    all.push_back(std::move(only));
    return all;
  }
  const std::uint32_t parts = groups < kParallelGroups ? 1 : context_.threads;
  std::vector<Groups> merged;
  merged.reserve(parts);
  for (std::uint32_t part = 0; part < parts; ++part)
    merged.emplace_back(*this, std::vector<std::uint32_t>());
  context_.crew.for_each(parts, parts, [&](std::size_t part) {
    merge_part(static_cast<std::uint32_t>(part), parts, merged[part]);
  });
  return merged;
}

ColumnView GroupBySink::emit_key(std::size_t key, const Groups& groups, std::size_t first,
                                 std::size_t count, Vec& out) const {
  std::uint8_t* nulls = out.nulls(count);
  bool any_null = false;
  const auto row = [&](std::size_t i) {
    return groups.table.key_row(static_cast<std::uint32_t>(first + i));
  };
  for (std::size_t i = 0; i < count; ++i) {
    nulls[i] = groups.table.is_null(static_cast<std::uint32_t>(first + i), key) ? 1 : 0;
    any_null |= nulls[i] != 0;
  }
  if (schema_[key].domain)
    for (std::size_t i = 0; i < count; ++i)
      out.codes(count)[i] = static_cast<std::uint32_t>(row(i)[key]);
  else
    for (std::size_t i = 0; i < count; ++i)
      out.ints(count)[i] = static_cast<std::int64_t>(row(i)[key]);
  return out.view(any_null);
}

void GroupBySink::emit(const Groups& groups, Rows& rows, Charge& charge) const {
  FLUGS_CHECK(groups.states.size() >= groups.table.size() * aggregates_.size());
  std::vector<Vec> columns(schema_.size());
  Batch batch;
  batch.columns.resize(schema_.size());
  for (std::size_t first = 0; first < groups.table.size(); first += kBatchRows) {
    batch.rows = std::min<std::size_t>(kBatchRows, groups.table.size() - first);
    for (std::size_t k = 0; k < keys_.size(); ++k)
      batch.columns[k] = emit_key(k, groups, first, batch.rows, columns[k]);
    for (std::size_t a = 0; a < aggregates_.size(); ++a)
      batch.columns[keys_.size() + a] =
          query::finish(aggregates_[a], groups.states.data(), aggregates_.size(), a, first,
                        batch.rows, columns[keys_.size() + a]);
    rows.append(batch, charge);
  }
}

Rows GroupBySink::finish() {
  Rows rows;
  rows.schema = schema_;
  Charge charge(context_.budget, "group by");
  std::vector<Groups> all = merged();
  const bool is_array = !keys_.empty() && Groups(*this, ranges()).table.is_array();
  if (keys_.empty() && all[0].table.size() == 0) {
    // Without rows there is still one group.
    all[0].table.find(KeyWords(0), 1, std::vector<std::uint32_t>(1).data());
    all[0].grow_states(aggregates_.size());
  }
  explain(all, is_array);
  locals_.clear();
  for (Groups& groups : all) {
    const Groups emitted = std::move(groups);
    emit(emitted, rows, charge);
  }
  rows.charges.push_back(std::move(charge));
  return rows;
}

}  // namespace flugs::query
