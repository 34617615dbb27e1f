// Parts of a query that several of its steps read.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "query/plan/arrangement.h"
#include "query/plan/planner.h"
#include "query/plan/shared_parts.h"

namespace flugs::query {

namespace {

// Parts of the memory of a query. Estimates may be wrong: a part that grows beyond the second limit
// is let go, and each reader makes its rows.
constexpr std::uint64_t kPartExpected = 16;
constexpr std::uint64_t kPartKept = 4;

}  // namespace

std::shared_ptr<const QueryNode> Planner::arrange(const std::shared_ptr<const QueryNode>& query) {
  SharedParts parts(*this, estimates_, context_.budget.bytes_max() / kPartExpected);
  for (;;) {
    const std::shared_ptr<const QueryNode> marked = parts.mark(query);
    Arrangement arrangement(*this, estimates_);
    std::shared_ptr<const QueryNode> arranged = arrangement.arrange(marked);
    FLUGS_CHECK(marked->steps == query->steps);
    has_parts_ = marked != query;
    if (!has_parts_ || parts.are_worth_it(arranged, arrangement)) return arranged;
  }
}

Pipeline Planner::open_shared(const QueryNode& node, const Needed& needed) {
  SharedRows& part = shared_.at(&node);
  FLUGS_CHECK(part.readers != 0);
  --part.readers;
  Pipeline reader;
  reader.explain = explain_node(fmt::format("rows of part {}", node.part), {});
  if (part.rows == nullptr && part.bytes_max == 0) {
    // The keys that this reader's joins await are not all that another reader wants.
    std::vector<AwaitedKeys> awaited = std::exchange(awaited_, {});
    Pipeline made = open(*node.input, part.needed);
    awaited_ = std::move(awaited);
    part.schema = made.schema;
    part.rows = keep(made, part);
    reader.explain = explain_node(
        fmt::format("part {}, read {} times", node.part, part.readers + 1), {made.explain});
    if (!context_.is_dry && part.rows != nullptr)
      reader.explain->details.push_back(fmt::format("{} rows kept", part.rows->row_count));
  }
  if (part.rows == nullptr) {
    note_readers(*node.input, needed, true);  // it is opened once more
    Pipeline own = open(*node.input, needed);
    own.explain->details.push_back(fmt::format(
        "made for one reader: part {} needs more than {} bytes", node.part, part.bytes_max));
    return own;
  }
  reader.schema = part.schema;
  FLUGS_CHECK(context_.is_dry || part.rows->schema.size() == part.schema.size());
  reader.source = std::make_unique<RowsSource>(context_, part.rows);
  if (part.readers == 0) part.rows = nullptr;
  return reader;
}

// Null: the rows do not fit.
std::shared_ptr<const Rows> Planner::keep(Pipeline& pipeline, SharedRows& part) {
  if (context_.is_dry) return std::make_shared<const Rows>();
  if (pipeline.stages.empty())
    if (std::shared_ptr<const Rows> rows = pipeline.source->held_rows(); rows != nullptr)
      return rows;
  const std::uint64_t bytes_max = context_.budget.bytes_max() / kPartKept;
  RowsSink sink(context_, pipeline.schema, "part read several times", bytes_max);
  pipeline.run(context_, sink);
  if (sink.is_satisfied()) {
    part.bytes_max = std::max<std::uint64_t>(1, bytes_max);
    return nullptr;
  }
  Rows rows = sink.finish();
  rows.is_ordered = pipeline.source->is_ordered();
  return std::make_shared<const Rows>(std::move(rows));
}

}  // namespace flugs::query
