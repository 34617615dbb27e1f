#include "query/operators/group_by.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "query/expressions/expr_node.h"
#include "query/vectors/failure.h"

namespace flugs::query {

namespace {

// Texts from the prefetch of their bytes to their hash.
constexpr std::size_t kTextsAhead = 16;

}  // namespace

GroupBySink::Groups::Groups(const GroupBySink& sink, std::vector<std::uint32_t> ranges)
    : table(sink.shape_, std::move(ranges)),
      bits(sink.aggregates_.size()),
      charge(sink.context_.budget, "group by") {
  for (const BoundAggregate& aggregate : sink.aggregates_)
    distinct.emplace_back(aggregate.form() == Form::kText);
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

GroupBySink::Local::Local(const GroupBySink& sink, KeptMemory& memory)
    : kept(memory),
      evaluator(sink.binder_.slot_count()),
      groups(sink, sink.ranges()),
      words(sink.shape_.words()),
      group_of(kBatchRows),
      marks(sink.aggregates_.size()),
      pairs(sink.aggregates_.size()),
      compact_pairs_at(sink.aggregates_.size()),
      pairs_past(sink.aggregates_.size()),
      row_records(sink.shape_, sink.aggregates_) {
  if (sink.is_by_codes_) codes.emplace(sink.columns_of_keys(), sink.aggregates_);
}

GroupBySink::GroupBySink(RunContext& context, const Schema& input, const std::vector<Item>& keys,
                         const std::vector<bool>& is_dependent,
                         const std::vector<Aggregate>& aggregates, ExplainPtr explain)
    : context_(context), binder_(context.texts, input), explain_(std::move(explain)) {
  FLUGS_CHECK(is_dependent.size() == keys.size());
  for (const Item& item : keys) {
    Key key{binder_.bind(item.expr(), true), 0, is_dependent[keys_.size()]};
    key.word = shape_.add(key.is_text(), key.is_dependent);
    std::shared_ptr<const CodeDomain> domain;
    if (key.expr->form == Form::kCode) domain = key.expr->result_domain;
    schema_.push_back({output_name(item.expr()), key.expr->type, std::move(domain)});
    keys_.push_back(std::move(key));
  }
  for (const Aggregate& aggregate : aggregates) bind_aggregate(aggregate);
  is_of_columns_ = is_of_columns();
  is_by_codes_ = !keys_.empty() && std::all_of(keys_.begin(), keys_.end(), [](const Key& key) {
    return key.expr->op == Op::kColumn;
  }) && std::all_of(aggregates_.begin(), aggregates_.end(), CodeGroups::can_aggregate);
  choose_bits();
  record_words_ = shape_.words() + KeyWords::null_words(shape_.words());
  for (const BoundAggregate& aggregate : aggregates_) {
    state_at_.push_back(record_words_);
    record_words_ += packed_words(aggregate);
  }
  keeps_values_ = std::any_of(aggregates_.begin(), aggregates_.end(),
                              [](const auto& a) { return a.keeps_values() || a.is_sketch(); });
  for (std::uint32_t worker = 0; worker < context.threads; ++worker)
    kept_.emplace_back(context.budget);
  locals_.resize(context.threads);
}

void GroupBySink::bind_aggregate(const Aggregate& aggregate) {
  BoundAggregate bound;
  bound.kind = aggregate.kind;
  bound.name = output_name(aggregate);
  const AggregateKind kind = aggregate.kind;
  if (kind != AggregateKind::kCountRows) {
    const bool any_form = kind == AggregateKind::kCount || kind == AggregateKind::kCountDistinct;
    bound.of = binder_.bind(aggregate.of, any_form);
  }
  bound.q = aggregate.q;
  check_type(bound);
  if (bound.is_deviation()) bound.of = binder_.bind(to_double(aggregate.of));
  if (kind == AggregateKind::kMin || kind == AggregateKind::kMax ||
      kind == AggregateKind::kQuantile)
    bound.type = bound.of->type;
  else if (kind == AggregateKind::kSum)
    bound.type = is_integer(bound.of->type) ? DataType{Type::kInt64, 0} : bound.of->type;
  else if (!bound.is_count())
    bound.type = {Type::kDouble, 0};
  schema_.push_back({bound.name, bound.type, nullptr});
  aggregates_.push_back(std::move(bound));
}

void GroupBySink::check_type(const BoundAggregate& aggregate) const {
  const AggregateKind kind = aggregate.kind;
  const bool is_computed = kind == AggregateKind::kSum || kind == AggregateKind::kAvg ||
                           kind == AggregateKind::kMedian || aggregate.is_deviation();
  if (is_computed && !is_number(aggregate.of->type))
    fail(StatusCode::kInvalidArgument, fmt::format("{}: expected a number, found {}",
                                                   aggregate.name, to_string(aggregate.of->type)));
  if (kind == AggregateKind::kQuantile && !(aggregate.q >= 0 && aggregate.q <= 1))
    fail(StatusCode::kInvalidArgument, aggregate.name + ": the part must be 0 to 1");
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
  const Key& from = keys_[key];
  std::uint64_t* to = words.keys[from.word].data();
  if (from.is_text() && from.is_dependent) {
    const std::string_view* texts = values.texts();
    for (std::size_t i = 0; i < rows; ++i) words.put_dependent_text(from.word, i, texts[i]);
  } else if (from.is_text()) {
    const std::string_view* texts = values.texts();
    for (std::size_t i = 0; i < rows; ++i) {
      if (i + kTextsAhead < rows) __builtin_prefetch(texts[i + kTextsAhead].data());
      words.put_text(from.word, i, texts[i]);
    }
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
    if (from.is_text()) words.keys[from.word + 1][i] = 0;
    words.note_null(from.word, i);
  }
}

GroupBySink::Distinct GroupBySink::distinct_of(std::size_t a, ColumnView values,
                                               std::size_t row) const {
  switch (aggregates_[a].form()) {
    case Form::kText: {
      const std::string_view text = values.texts()[row];
      return {reinterpret_cast<std::uint64_t>(text.data()), text_mark(text)};
    }
    case Form::kCode:
      return {values.codes()[row], 0};
    default:
      return {static_cast<std::uint64_t>(values.ints()[row]), 0};
  }
}

void GroupBySink::count_distinct(std::size_t a, ColumnView values, std::size_t rows,
                                 Local& local) const {
  const BoundAggregate& aggregate = aggregates_[a];
  if (bit_domains_[a].count != 0 && aggregate.form() == Form::kCode && values.nulls == nullptr) {
    // Codes of the domain; each has a bit.
    FLUGS_CHECK(local.groups.bits[a].size() * 64 > bit_domains_[a].count);
    std::uint64_t* bits = local.groups.bits[a].data();
    for (std::size_t i = 0; i < rows; ++i)
      bits[values.codes()[i] / 64] |= std::uint64_t{1} << (values.codes()[i] % 64);
    return;
  }
  Past& past = local.pairs_past[a];
  const bool goes_past = past.left != 0;
  if (goes_past)
    past.pass(rows);
  else
    past.taken += rows;
  for (std::size_t i = 0; i < rows; ++i) {
    if (values.nulls != nullptr && values.nulls[i] != 0) continue;
    const Distinct value = distinct_of(a, values, i);
    if (goes_past)
      add_pair(a, local.groups.table.key_row(local.group_of[i]), value, local);
    else
      note_distinct(a, local.group_of[i], value, local);
  }
}

GroupBySink::Local& GroupBySink::local_of(std::uint32_t worker) {
  FLUGS_CHECK(worker < locals_.size());
  if (!locals_[worker]) locals_[worker] = std::make_unique<Local>(*this, kept_[worker]);
  return *locals_[worker];
}

void GroupBySink::put_keys(const Batch& batch, Local& local) const {
  local.words.clear_nulls(batch.rows);
  for (std::size_t k = 0; k < keys_.size(); ++k)
    put_key(k, local.evaluator.evaluate(*keys_[k].expr, batch), batch.rows, local.words);
}

void GroupBySink::find_groups(const Batch& batch, Local& local) const {
  GroupTable& table = local.groups.table;
  if (keys_.size() == 1 && keys_[0].expr->form == Form::kCode && table.is_array()) {
    const ColumnView codes = local.evaluator.evaluate(*keys_[0].expr, batch);
    if (codes.nulls == nullptr)
      return table.find_codes(codes.codes(), batch.rows, local.group_of.data());
  }
  put_keys(batch, local);
  table.find(local.words, batch.rows, local.group_of.data());
}

void GroupBySink::push(const Batch& batch, std::uint32_t worker) {
  Local& local = local_of(worker);
  if (local.table_past.left != 0) return push_past_table(batch, local);
  Groups& groups = local.groups;
  find_groups(batch, local);
  groups.grow_states(aggregates_.size());
  for (std::size_t a = 0; a < aggregates_.size(); ++a) {
    const BoundAggregate& aggregate = aggregates_[a];
    ColumnView values;
    if (aggregate.of) values = local.evaluator.evaluate(*aggregate.of, batch);
    if (aggregate.is_distinct())
      count_distinct(a, values, batch.rows, local);
    else
      accumulate(aggregate, values, local.group_of.data(), batch.rows, keys_.empty(),
                 groups.states.data(), aggregates_.size(), a, local.kept);
  }
  local.table_past.taken += batch.rows;
  empty_if_full(local);
  groups.charge.set(bytes_of(local));
}

}  // namespace flugs::query
