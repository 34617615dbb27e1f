#include "query/plan/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/check.h"
#include "base/names.h"
#include "engine/database/database_core.h"
#include "query/expressions/expr_node.h"
#include "query/operators/stages.h"
#include "query/plan/arrangement.h"
#include "query/plan/result_data.h"
#include "query/vectors/failure.h"

namespace flugs::query {

using Step = QueryNode::Step;

namespace {

// A row group has codes of its own. With more values than this, translating them to the domain's
// codes costs more than using values.
constexpr std::uint32_t kTextCodesMax = 1u << 20;
constexpr std::uint32_t kNumberCodesMax = 1u << 16;
// Texts that only leave the query cost little as values. With no more than this, groups keep the
// domain's codes from query to query (RowGroup::kept_codes).
constexpr std::uint32_t kLeavingCodesMax = 12u << 10;
static_assert(kTextCodesMax < CodeDomain::kNone && kNumberCodesMax < CodeDomain::kNone);

std::vector<std::string> unique(std::vector<std::string> names, std::string_view step) {
  std::set<std::string_view> seen;
  for (const std::string& name : names)
    if (!seen.insert(name).second)
      fail(StatusCode::kInvalidArgument,
           fmt::format("{}: two columns named {}: give one another name, by as()", step, name));
  return names;
}

// Whether a scan gives the column's codes instead of its values.
bool has_codes(const TableView& view, std::uint32_t number, const Use& use) noexcept {
  const ColumnInfo& column = view.schema()[number];
  if (column.domain == nullptr) return false;
  const bool is_text = lane_of(column.type) == Lane::kText;
  if (!is_text && (use.values || use.leaves)) return false;
  if (view.main_row_positions() == 0) return true;
  std::uint32_t codes_max = is_text ? kTextCodesMax : kNumberCodesMax;
  // The delta has the domain's codes: there, values are what must be looked up.
  const bool is_mostly_main = view.main_row_positions() >= view.row_positions() / 2;
  if (is_text && is_mostly_main && !use.codes && !use.values) codes_max = kLeavingCodesMax;
  // Looking a number's codes up in each query costs more than its values.
  if (!is_text && is_mostly_main && !view.keeps_codes(number)) return false;
  return column.domain->count() <= codes_max;
}

// Larger queries are made by programs, which would wait for their arrangement.
constexpr std::uint32_t kStepsArranged = 128;

std::string list_of(const std::vector<Item>& items) {
  std::string text;
  for (const Item& item : items) text += (text.empty() ? "" : ", ") + item.expr().to_string();
  return text;
}

}  // namespace

ExplainPtr Planner::explain_node(std::string title, std::vector<ExplainPtr> inputs) const {
  auto node = std::make_shared<ExplainNode>();
  node->title = std::move(title);
  node->inputs = std::move(inputs);
  return node;
}

std::vector<std::string> Planner::names(const QueryNode& node) const {
  std::vector<std::string> names;
  switch (node.step) {
    case Step::kTable:
      for (const ColumnSchema& column : find_table(context_, node.text).schema().columns)
        if (!column.dropped) names.push_back(column.name);
      return names;
    case Step::kResult:
      for (const ResultColumn& column : node.result->columns) names.push_back(column.name);
      return unique(std::move(names), "a result as input");
    case Step::kSelect:
      for (const Item& item : node.items) names.push_back(output_name(item.expr()));
      return unique(std::move(names), "select");
    case Step::kRename:
      FLUGS_CHECK(node.input != nullptr);
      for (const std::string& name : this->names(*node.input))
        names.push_back(node.text + "." + name);
      return names;
    case Step::kJoin: {
      FLUGS_CHECK(node.input != nullptr && node.right != nullptr);
      names = this->names(*node.input);
      const std::vector<std::string> right = this->names(*node.right);
      const bool pairs = node.join == JoinKind::kInner || node.join == JoinKind::kLeft;
      std::vector<std::string> both = names;
      both.insert(both.end(), right.begin(), right.end());
      if (pairs || node.condition.is_given()) both = unique(std::move(both), "join");
      return pairs ? both : names;
    }
    case Step::kGroupBy:
      for (const Item& item : node.items) names.push_back(output_name(item.expr()));
      for (const Aggregate& aggregate : node.aggregates) names.push_back(output_name(aggregate));
      return unique(std::move(names), "group by");
    default:
      FLUGS_CHECK(node.input != nullptr);
      return this->names(*node.input);
  }
}

Pipeline Planner::open(const QueryNode& node, const Needed& needed) {
  switch (node.step) {
    case Step::kTable:
      return open_table(node, {}, needed);
    case Step::kResult:
      return open_result(node);
    case Step::kWhere:
      return open_where(node, needed);
    case Step::kSelect:
      return open_select(node, needed);
    case Step::kRename:
      return open_rename(node, needed);
    case Step::kJoin:
      return open_join(node, needed);
    case Step::kGroupBy:
    case Step::kDistinct:
      return open_group_by(node);
    case Step::kOrderBy:
      return open_order_by(node, needed, std::nullopt);
    case Step::kLimit:
      return open_limit(node, needed);
    case Step::kShared:
      return open_shared(node, needed);
  }
  fail(StatusCode::kInvalidArgument, "an unknown step");
}

Pipeline Planner::open_table(const QueryNode& node, const std::vector<Expr>& conditions,
                             const Needed& needed) {
  const engine::Table& of = find_table(context_, node.text);
  if (!context_.is_dry && context_.transaction->notes_reads())
    context_.transaction->reads.add_scan(of, Predicate::all());
  std::unique_ptr<TableView> view = estimates_.take_view(node.text);
  if (view == nullptr) view = std::make_unique<TableView>(of.data(), context_.visibility);
  std::vector<TableScan::Output> outputs;
  std::set<std::string_view> known;
  for (std::size_t c = 0; c < view->schema().size(); ++c) {
    const ColumnInfo& column = view->schema()[c];
    if (column.is_dropped) continue;
    known.insert(column.name);
    const auto use = needed.find(column.name);
    if (use == needed.end()) continue;
    outputs.push_back({static_cast<std::uint32_t>(c),
                       has_codes(*view, static_cast<std::uint32_t>(c), use->second)});
  }
  for (const auto& [name, use] : needed)
    if (name == row_id_name())
      outputs.push_back({TableScan::kRowIds, false});
    else if (known.count(name) == 0)
      fail(StatusCode::kInvalidArgument, fmt::format("table {}: no column {}, it has {}", node.text,
                                                     name, names_of(of.schema().columns)));
  Pipeline pipeline;
  pipeline.explain = explain_node("scan " + node.text, {});
  auto scan = std::make_unique<TableScan>(context_, std::move(view), conditions, std::move(outputs),
                                          pipeline.explain);
  pipeline.schema = scan->output_schema();
  filter_awaited(node, *scan, pipeline.schema);
  pipeline.source = std::move(scan);
  return pipeline;
}

Pipeline Planner::open_result(const QueryNode& node) {
  Pipeline pipeline;
  pipeline.explain =
      explain_node(fmt::format("result of {} rows", node.result->rows->row_count), {});
  pipeline.schema = node.result->rows->schema;
  FLUGS_CHECK(pipeline.schema.size() == node.result->columns.size());
  pipeline.source = std::make_unique<RowsSource>(context_, node.result->rows);
  return pipeline;
}

Pipeline Planner::open_where(const QueryNode& node, const Needed& needed) {
  // A chain of conditions down to a table belongs to its scan.
  FLUGS_CHECK(node.step == Step::kWhere);
  std::vector<const QueryNode*> chain{&node};
  while (chain.back()->input->step == Step::kWhere) chain.push_back(chain.back()->input.get());
  if (chain.back()->input->step == Step::kTable) {
    std::vector<Expr> conditions;
    for (auto where = chain.rbegin(); where != chain.rend(); ++where)
      split_conjunction((*where)->condition, conditions);
    return open_table(*chain.back()->input, conditions, needed);
  }
  Pipeline pipeline = open(*node.input, needs_of(node, needed).input);
  pipeline.explain = explain_node("where " + node.condition.to_string(), {pipeline.explain});
  pipeline.add(std::make_unique<FilterStage>(context_, pipeline.schema, node.condition));
  return pipeline;
}

Pipeline Planner::open_select(const QueryNode& node, const Needed& needed) {
  std::vector<Item> outputs;
  for (const Item& item : node.items)
    if (needed.contains(output_name(item.expr()))) outputs.push_back(item);
  Pipeline pipeline = open(*node.input, needs_of(node, needed).input);
  auto stage = std::make_unique<ProjectStage>(context_, pipeline.schema, outputs);
  pipeline.schema = stage->output_schema();
  FLUGS_CHECK(pipeline.schema.size() == outputs.size());
  pipeline.explain = explain_node("select " + list_of(outputs), {pipeline.explain});
  pipeline.add(std::move(stage));
  return pipeline;
}

Pipeline Planner::open_rename(const QueryNode& node, const Needed& needed) {
  Pipeline pipeline = open(*node.input, needs_of(node, needed).input);
  for (ColumnInfo& column : pipeline.schema) column.name = node.text + "." + column.name;
  return pipeline;
}

Rows Planner::hold(Pipeline& pipeline, const std::string& owner) {
  RowsSink sink(context_, pipeline.schema, owner);
  pipeline.run(context_, sink);
  Rows rows = sink.finish();
  FLUGS_CHECK(!context_.is_dry || rows.row_count == 0);
  return rows;
}

Pipeline Planner::open() {
  context_.arranged = context_.query;
  if (!context_.runs_as_written && context_.query->steps <= kStepsArranged)
    context_.arranged = arrange(context_.query);
  Needed needed;
  for (const std::string& name : names(*context_.query)) needed[name].leaves = true;
  if (has_parts_) note_readers(*context_.arranged, needed, true);
  Pipeline pipeline = open(*context_.arranged, needed);
  FLUGS_CHECK(pipeline.source != nullptr && pipeline.explain != nullptr);
  return pipeline;
}

}  // namespace flugs::query
