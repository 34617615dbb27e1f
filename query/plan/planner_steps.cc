#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "query/expressions/expr_node.h"
#include "query/operators/group_by.h"
#include "query/plan/dependent_keys.h"
#include "query/plan/planner.h"
#include "query/vectors/failure.h"

namespace flugs::query {

namespace {

// With more rows than this, sorting all of them costs no more.
constexpr std::uint64_t kTopRowsMax = 1u << 20;

std::string names_of_dependent(const std::vector<Item>& keys,
                               const std::vector<bool>& is_dependent) {
  std::string names;
  for (std::size_t k = 0; k < keys.size(); ++k)
    if (is_dependent[k]) names += (names.empty() ? "" : ", ") + keys[k].expr().to_string();
  return names;
}

}  // namespace

std::vector<bool> Planner::dependent_keys(const QueryNode& node,
                                          const std::vector<Item>& keys) const {
  if (keys.size() < 2 || context_.runs_as_written) return std::vector<bool>(keys.size());
  return DependentKeys(context_, *node.input).among(keys);
}

Pipeline Planner::open_group_by(const QueryNode& node) {
  const std::vector<Item> keys = group_keys(node);
  const std::vector<Aggregate>& aggregates = node.aggregates;
  std::string title = "group by";
  for (const Item& key : keys) title += (&key == keys.data() ? " " : ", ") + key.expr().to_string();
  for (const Aggregate& aggregate : aggregates)
    title += (&aggregate == aggregates.data() ? ": " : ", ") + output_name(aggregate);
  Pipeline pipeline = open(*node.input, needs_of(node, {}).input);
  ExplainPtr explain = explain_node(std::move(title), {pipeline.explain});
  const std::vector<bool> is_dependent = dependent_keys(node, keys);
  if (const std::string names = names_of_dependent(keys, is_dependent); !names.empty())
    explain->details.push_back(names + " from the first row of each group");
  auto sink = std::make_shared<GroupBySink>(context_, pipeline.schema, keys, is_dependent,
                                            aggregates, explain);
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
  std::string title = "order by";
  for (const SortKey& key : node.sort_keys)
    title += (&key == node.sort_keys.data() ? " " : ", ") + key.item.expr().to_string() +
             (key.descending ? " descending" : "");
  if (node.sort_keys.empty()) fail(StatusCode::kInvalidArgument, "order by without keys");
  Pipeline pipeline = open(*node.input, needs_of(node, needed).input);
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
