#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "query/operators/hash_join.h"
#include "query/operators/query_node.h"
#include "query/operators/sort.h"
#include "query/plan/estimates.h"
#include "query/scan/pipeline.h"
#include "query/scan/table_scan.h"

namespace flugs::query {

/// How an input's column is used.
struct Use {
  bool codes = false;   ///< its codes suffice, for grouping
  bool values = false;  ///< its values are computed with, or kept for a while
  bool leaves = false;  ///< it leaves the query as it is, in the order of the table
};
using Needed = std::map<std::string, Use>;
/// The same for rows that are kept for a while before they leave the query.
Needed kept(Needed needed);

/// Makes pipelines of a query's steps. On the way it runs each pipeline that ends in held rows:
/// groups, sorted rows, the right side of a join, and a left side that is held first.
class Planner {
 public:
  explicit Planner(RunContext& context) : context_(context), estimates_(context) {}

  /// Names of the output's columns. Fails with kNotFound, kInvalidArgument (a name occurs twice).
  std::vector<std::string> names(const QueryNode& node) const;
  /// The context's query up to its last held rows, for a caller that brings the sink. Fails as
  /// `names`.
  Pipeline open();

 private:
  Pipeline open(const QueryNode& node, const Needed& needed);
  Pipeline open_table(const QueryNode& node, const std::vector<Expr>& conditions,
                      const Needed& needed);
  Pipeline open_result(const QueryNode& node);
  Pipeline open_where(const QueryNode& node, const Needed& needed);
  Pipeline open_select(const QueryNode& node, const Needed& needed);
  Pipeline open_rename(const QueryNode& node, const Needed& needed);
  Pipeline open_join(const QueryNode& node, const Needed& needed);
  Pipeline open_group_by(const QueryNode& node);
  Pipeline open_order_by(const QueryNode& node, const Needed& needed,
                         std::optional<std::uint64_t> rows_max);
  Pipeline open_limit(const QueryNode& node, const Needed& needed);
  Pipeline open_shared(const QueryNode& node, const Needed& needed);

  std::shared_ptr<const QueryNode> arrange(const std::shared_ptr<const QueryNode>& query);
  /// What a step needs of its inputs, so that its own columns `needed` can be had.
  struct InputNeeds {
    Needed input;
    Needed right;
  };
  InputNeeds needs_of(const QueryNode& node, const Needed& needed) const;
  InputNeeds needs_of_join(const QueryNode& node, const Needed& needed) const;
  std::vector<Item> group_keys(const QueryNode& node) const;
  std::vector<bool> dependent_keys(const QueryNode& node, const std::vector<Item>& keys) const;
  void note_readers(const QueryNode& node, const Needed& needed, bool is_first);
  ExplainPtr explain_node(std::string title, std::vector<ExplainPtr> inputs) const;
  Rows hold(Pipeline& pipeline, const std::string& owner);
  std::shared_ptr<const Rows> hold_left(Pipeline& left);
  enum class Side : std::uint8_t { kLeft, kRight };
  void await_keys(const QueryNode& node, const Rows& held, Side side);
  void filter_awaited(const QueryNode& node, Source& scan, const Schema& schema) const;

  RunContext& context_;
  Estimates estimates_;
  /// Keys of the held side of a join, while its other side is opened. The query needs no row of the
  /// table with another value.
  struct AwaitedKeys {
    const QueryNode* table;
    std::string column;
    DataType type;
    std::shared_ptr<const KeyFilter> keys;
  };
  std::vector<AwaitedKeys> awaited_;
  /// The rows of a step kShared.
  struct SharedRows {
    Needed needed;                     // by any reader
    std::size_t readers = 0;           // that have not opened it yet
    std::uint64_t bytes_max = 0;       // 0: it fits
    std::shared_ptr<const Rows> rows;  // null: not yet, all have opened it, or it does not fit
    Schema schema;
  };
  std::shared_ptr<const Rows> keep(Pipeline& pipeline, SharedRows& part);

  bool has_parts_ = false;  // the arranged query has steps kShared
  std::map<const QueryNode*, SharedRows> shared_;
};

}  // namespace flugs::query
