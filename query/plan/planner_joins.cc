// Joins.

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/check.h"
#include "engine/database/database_core.h"
#include "query/expressions/expr_node.h"
#include "query/expressions/expr_rewrite.h"
#include "query/plan/planner.h"
#include "query/plan/source_column.h"
#include "query/vectors/failure.h"

namespace flugs::query {

using Step = QueryNode::Step;

namespace {

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

void explain_join(const QueryNode& node, std::size_t right_rows, bool is_dry, ExplainNode& out) {
  if (!is_dry)
    out.details.push_back(
        fmt::format("{} rows in the hash table{}", right_rows, expected_text(node.right_expected)));
  else if (node.rows_expected >= 0)
    out.details.push_back(fmt::format("about {:.0f} rows in the hash table, {:.0f} out",
                                      node.right_expected, node.rows_expected));
  if (node.is_left_first) out.details.push_back("left side first: its keys filter the right side");
}

}  // namespace

Pipeline Planner::open_join(const QueryNode& node, const Needed& needed) {
  if (node.join_keys.empty()) fail(StatusCode::kInvalidArgument, "a join without keys");
  static_cast<void>(names(node));  // checks that they differ
  const bool pairs = node.join == JoinKind::kInner || node.join == JoinKind::kLeft;
  const auto [from_left, from_right] = needs_of(node, needed);
  Pipeline left;
  std::shared_ptr<const Rows> held_left;
  const bool is_reduced = node.is_left_first && !context_.is_dry;
  if (is_reduced) {
    left = open(*node.input, kept(from_left));
    held_left = hold_left(left);
  }
  const std::size_t awaited = awaited_.size();
  if (is_reduced) await_keys(node, *held_left, Side::kRight);
  Pipeline right = open(*node.right, from_right);
  awaited_.resize(awaited);
  Rows rows = hold(right, "join, right side");
  if (!is_reduced) {
    rows.flatten(Charge(context_.budget, "join, right side"));
    const bool needs_partner = node.join == JoinKind::kInner || node.join == JoinKind::kSemi;
    if (needs_partner && !context_.is_dry) await_keys(node, rows, Side::kLeft);
    left = open(*node.input, from_left);
    awaited_.resize(awaited);
  }
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
  if (pairs) left.schema.insert(left.schema.end(), right_schema.begin(), right_schema.end());
  left.explain = explain_node(join_title(node), {left.explain, right.explain});
  explain_join(node, right_rows, context_.is_dry, *left.explain);
  plan.explain = left.explain;
  plan.rows_expected = node.rows_expected;
  left.add(std::make_unique<JoinStage>(context_, std::move(plan)));
  return left;
}

// Runs the pipeline and holds its rows. The pipeline then reads the held rows.
std::shared_ptr<const Rows> Planner::hold_left(Pipeline& left) {
  Rows rows = hold(left, "join, left side");
  rows.flatten(Charge(context_.budget, "join, left side"));
  auto held = std::make_shared<const Rows>(std::move(rows));
  left.stages.clear();
  left.source = std::make_unique<RowsSource>(context_, held);
  return held;
}

// Makes filters from the keys of the held side. The scan of the other side drops rows whose key is
// not among them.
void Planner::await_keys(const QueryNode& node, const Rows& held, Side side) {
  FLUGS_CHECK(held.parts.size() == 1);
  const bool is_right = side == Side::kRight;
  const QueryNode& read = is_right ? *node.right : *node.input;
  for (const JoinKey& key : node.join_keys) {
    const std::string* const from = column_name((is_right ? key.left : key.right).expr());
    const std::string* const wanted = column_name((is_right ? key.right : key.left).expr());
    if (from == nullptr || wanted == nullptr) continue;
    const auto column = std::find_if(held.schema.begin(), held.schema.end(),
                                     [&](const ColumnInfo& info) { return info.name == *from; });
    if (column == held.schema.end() || column->form() != Form::kInt) continue;
    const SourceColumn to = source_of(*this, read, *wanted);
    if (to.step == nullptr || to.step->step != Step::kTable || times_in(read, *to.step) != 1)
      continue;
    const ColumnView values =
        held.parts[0].view(static_cast<std::size_t>(column - held.schema.begin()));
    std::vector<std::uint8_t> is_null(held.row_count, 0);
    if (values.nulls != nullptr) std::copy_n(values.nulls, held.row_count, is_null.begin());
    std::shared_ptr<const KeyFilter> keys =
        KeyFilter::make({values.ints(), held.row_count}, is_null, context_.budget);
    if (keys != nullptr) awaited_.push_back({to.step, to.column, column->type, std::move(keys)});
  }
}

// The scan drops rows whose value is none of the keys that a join awaits, if that is worth the
// tests.
void Planner::filter_awaited(const QueryNode& node, Source& scan, const Schema& schema) const {
  for (const AwaitedKeys& awaited : awaited_) {
    if (awaited.table != &node) continue;
    for (std::uint32_t i = 0; i < schema.size(); ++i) {
      const DataType type = schema[i].type;
      const bool is_same = type == awaited.type || (is_integer(type) && is_integer(awaited.type));
      if (schema[i].name == awaited.column && is_same && scan.takes_keys(i) &&
          drops_many(*awaited.keys, scan.likely_range(i)))
        scan.add_keys(i, awaited.keys);
    }
  }
}

}  // namespace flugs::query
