#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "query/expressions/expr_node.h"
#include "query/operators/group_by.h"
#include "query/plan/planner.h"
#include "query/vectors/failure.h"

namespace flugs::query {

namespace {

// With more rows than this, sorting all of them costs no more.
constexpr std::uint64_t kTopRowsMax = 1u << 20;

const char* name_of(JoinKind kind) noexcept {
  switch (kind) {
    case JoinKind::kInner:
      return "join";
    case JoinKind::kLeft:
      return "left join";
    case JoinKind::kSemi:
      return "semi join";
    case JoinKind::kAnti:
      return "anti join";
  }
  return "join";
}

std::string join_title(const QueryNode& node) {
  std::string title = fmt::format("{} on", name_of(node.join));
  for (std::size_t k = 0; k < node.join_keys.size(); ++k)
    title +=
        fmt::format("{} {} = {}", k == 0 ? "" : " and", node.join_keys[k].left.expr().to_string(),
                    node.join_keys[k].right.expr().to_string());
  if (node.condition.is_given()) title += " and " + node.condition.to_string();
  return title;
}

/// Key expressions of both sides, each bound to its own side.
struct BoundKeys {
  BoundKeys(TextStore& texts, const QueryNode& node, const Schema& left_schema,
            const Schema& right_schema)
      : left_binder(texts, left_schema), right_binder(texts, right_schema) {
    for (const JoinKey& key : node.join_keys) {
      BoundPtr a = left_binder.bind(key.left.expr());
      BoundPtr b = right_binder.bind(key.right.expr());
      if (!left_binder.make_equatable(a, b, right_binder))
        fail(StatusCode::kInvalidArgument,
             fmt::format("{}: {} and {} cannot be compared", join_title(node), to_string(a->type),
                         to_string(b->type)));
      left.push_back(std::move(a));
      right.push_back(std::move(b));
    }
  }
  Binder left_binder;
  Binder right_binder;
  std::vector<BoundPtr> left;
  std::vector<BoundPtr> right;
};

/// True if a filter of these keys drops enough rows of the source to be worth its tests. It drops
/// hardly any row if nearly all integers between the column's bounds are keys.
bool drops_many(const KeyFilter& keys, const std::optional<PayloadRange>& of_column) {
  if (!of_column) return true;
  const std::uint64_t rest = static_cast<std::uint64_t>(of_column->greatest) -
                             static_cast<std::uint64_t>(of_column->least);
  const std::uint64_t part = keys.is_exact() ? 2 : 8;  // a Bloom filter may be out of the caches
  return keys.key_count() / 3 * 4 <= rest && keys.key_count() <= of_column->rows / part;
}

/// Rows of the left side without a partner are dropped where they are read, if the join needs none
/// of them.
void filter_left(RunContext& context, const JoinStage::Plan& plan, Pipeline& left) {
  if (plan.kind != JoinKind::kInner && plan.kind != JoinKind::kSemi) return;
  for (std::size_t k = 0; k < plan.left_keys.size(); ++k) {
    const BoundExpr& key = *plan.left_keys[k];
    if (key.op != Op::kColumn || !key.args.empty() || key.form != Form::kInt) continue;
    const std::optional<std::uint32_t> column = left.column_to_filter(key.column);
    if (!column) continue;
    std::shared_ptr<const KeyFilter> keys = plan.table->filter_of(k, context.budget);
    if (keys != nullptr && drops_many(*keys, left.source->likely_range(*column)))
      left.source->add_keys(*column, std::move(keys));
  }
}

}  // namespace

Pipeline Planner::open_join(const QueryNode& node, const Needed& needed) {
  if (node.join_keys.empty()) fail(StatusCode::kInvalidArgument, "a join without keys");
  static_cast<void>(names(node));  // checks that they differ
  const std::vector<std::string> left_names = names(*node.input);
  const std::vector<std::string> right_names = names(*node.right);
  const bool pairs = node.join == JoinKind::kInner || node.join == JoinKind::kLeft;
  Needed also;
  need_values(also, node.condition);
  Needed from_left = among(needed, left_names);
  Needed from_right = pairs ? kept(among(needed, right_names)) : Needed();
  for (const auto& [name, use] : among(also, left_names)) from_left[name].values = true;
  for (const auto& [name, use] : among(also, right_names)) from_right[name].values = true;
  for (const JoinKey& key : node.join_keys) {
    need_values(from_left, key.left.expr());
    need_values(from_right, key.right.expr());
  }
  Pipeline right = open(*node.right, from_right);
  Rows rows = hold(right, "join, right side");
  Pipeline left = open(*node.input, from_left);
  BoundKeys keys(context_.texts, node, left.schema, rows.schema);
  const Schema right_schema = rows.schema;
  JoinStage::Plan plan;
  plan.kind = node.join;
  plan.left = left.schema;
  plan.right = right_schema;
  plan.also = node.condition;
  plan.table = std::make_shared<const JoinTable>(context_, std::move(rows), keys.right,
                                                 keys.right_binder.slot_count());
  plan.left_keys = std::move(keys.left);
  plan.left_slots = keys.left_binder.slot_count();
  FLUGS_CHECK(plan.left_keys.size() == node.join_keys.size());
  const std::size_t right_rows = plan.table->row_count();
  if (!context_.is_dry) filter_left(context_, plan, left);
  if (pairs) left.schema.insert(left.schema.end(), right_schema.begin(), right_schema.end());
  left.add(std::make_unique<JoinStage>(context_, std::move(plan)));
  left.explain = explain_node(join_title(node), {left.explain, right.explain});
  if (!context_.is_dry)
    left.explain->details.push_back(fmt::format("{} rows in the hash table", right_rows));
  return left;
}

Pipeline Planner::open_group_by(const QueryNode& node) {
  return open_group_by(*node.input, node.items, node.aggregates);
}

Pipeline Planner::open_group_by(const QueryNode& input, const std::vector<Item>& keys,
                                const std::vector<Aggregate>& aggregates) {
  Needed needed;
  const auto need = [&](const Expr& expr, bool codes_will_do) {
    if (codes_will_do && expr.is_given() && expr.node()->op == Op::kColumn)
      needed[expr.node()->text].codes = true;
    else
      need_values(needed, expr);
  };
  std::string title = "group by";
  for (const Item& key : keys) {
    need(key.expr(), true);
    title += (&key == keys.data() ? " " : ", ") + key.expr().to_string();
  }
  for (const Aggregate& aggregate : aggregates) {
    need(aggregate.of, aggregate.kind == AggregateKind::kCount ||
                           aggregate.kind == AggregateKind::kCountDistinct);
    title += (&aggregate == aggregates.data() ? ": " : ", ") + output_name(aggregate);
  }
  Pipeline pipeline = open(input, needed);
  ExplainPtr explain = explain_node(std::move(title), {pipeline.explain});
  auto sink = std::make_shared<GroupBySink>(context_, pipeline.schema, keys, aggregates, explain);
  if (pipeline.stages.empty()) sink->expect(*pipeline.source);
  pipeline.run(context_, *sink);
  Pipeline groups;
  groups.schema = sink->output_schema();
  FLUGS_CHECK(groups.schema.size() == keys.size() + aggregates.size());
  groups.explain = std::move(explain);
  if (context_.is_dry)
    groups.source = std::make_unique<RowsSource>(context_, std::make_shared<const Rows>());
  else
    groups.source = GroupBySink::finish(std::move(sink));
  return groups;
}

Pipeline Planner::open_order_by(const QueryNode& node, const Needed& needed,
                                std::optional<std::uint64_t> rows_max) {
  FLUGS_CHECK(node.step == QueryNode::Step::kOrderBy);
  FLUGS_CHECK(!rows_max || *rows_max <= kTopRowsMax);
  Needed wanted = kept(needed);
  std::string title = "order by";
  for (const SortKey& key : node.sort_keys) {
    need_values(wanted, key.item.expr());
    title += (&key == node.sort_keys.data() ? " " : ", ") + key.item.expr().to_string() +
             (key.descending ? " descending" : "");
  }
  if (node.sort_keys.empty()) fail(StatusCode::kInvalidArgument, "order by without keys");
  Pipeline pipeline = open(*node.input, wanted);
  if (rows_max) title += fmt::format(", first {}", *rows_max);
  ExplainPtr explain = explain_node(std::move(title), {pipeline.explain});
  auto sink =
      std::make_shared<SortSink>(context_, pipeline.schema, node.sort_keys, rows_max, explain);
  pipeline.run(context_, *sink);
  Pipeline sorted;
  sorted.schema = pipeline.schema;
  sorted.explain = std::move(explain);
  if (context_.is_dry)
    sorted.source = std::make_unique<RowsSource>(context_, std::make_shared<const Rows>());
  else
    sorted.source = SortSink::finish(std::move(sink));
  FLUGS_CHECK(context_.is_dry || sorted.source->is_ordered());
  return sorted;
}

Pipeline Planner::open_limit(const QueryNode& node, const Needed& needed) {
  const std::uint64_t end =
      node.limit + node.offset < node.offset ? ~std::uint64_t{0} : node.limit + node.offset;
  const bool top = node.input->step == QueryNode::Step::kOrderBy && end <= kTopRowsMax;
  Pipeline pipeline = top ? open_order_by(*node.input, needed, end) : open(*node.input, needed);
  pipeline.add(std::make_unique<LimitStage>(pipeline.schema, node.limit, node.offset));
  pipeline.explain =
      explain_node(node.offset == 0 ? fmt::format("limit {}", node.limit)
                                    : fmt::format("limit {} offset {}", node.limit, node.offset),
                   {pipeline.explain});
  return pipeline;
}

}  // namespace flugs::query
