#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "query/operators/query_node.h"
#include "query/scan/table_view.h"
#include "query/vectors/run_context.h"

namespace flugs::query {

/// The table that a query names. Fails with kNotFound.
const engine::Table& find_table(const RunContext& context, const std::string& name);

/// Guesses numbers of rows from metadata: extremes of columns in row groups, numbers of dictionary
/// entries, and unique keys. In the delta it reads the first and the last rows of each chunk, or
/// some entries of the dictionary. It takes columns as independent of each other, and values as
/// evenly spread.
class Estimates {
 public:
  using NodePtr = std::shared_ptr<const QueryNode>;

  explicit Estimates(const RunContext& context) : context_(context) {}

  /// Rows that come out of a step. `rows_all` ignores conditions that stand directly on the step;
  /// those below a join, a group, a sort or a limit still count.
  double rows(const NodePtr& node);
  double rows_all(const NodePtr& node);
  /// Rows of all tables and results below a step.
  double rows_read(const NodePtr& node);
  /// Different values of a column of a step, without its conditions; at least 1.
  double values(const NodePtr& node, const std::string& column);
  /// True if each row of a step has its own value in a column. False: not known.
  bool is_unique(const NodePtr& node, const std::string& column);
  /// True if a join should hold its left side first, so that its keys filter the right side. The
  /// left side must be much smaller, the right side must have at least 65,536 rows, and the left
  /// side must not be large without its conditions.
  bool is_left_first(const NodePtr& left, const NodePtr& right);
  /// The view of a table, if this run has made one: for the scan, which would make it again.
  std::unique_ptr<TableView> take_view(const std::string& table);

 private:
  struct Table {
    std::unique_ptr<TableView> view;  // null: taken
    double rows = 0;
    std::map<std::string, std::uint32_t> columns;
    std::set<std::uint32_t> unique;
    std::map<std::uint32_t, double> values;
    std::map<std::uint32_t, std::optional<PayloadRange>> ranges;
  };
  /// A column of a table, through the steps that pass it on.
  struct Origin {
    Table* table = nullptr;
    std::uint32_t column = 0;
  };

  Table& table(const std::string& name);
  double count_rows(const NodePtr& node);
  Origin origin(const NodePtr& node, const std::string& column);
  double values_of(const Origin& origin);
  const std::optional<PayloadRange>& range_of(const Origin& origin);
  double join_rows(const NodePtr& node);
  double group_rows(const NodePtr& node);
  /// The part of the rows of `node` for which the condition is true.
  double part(const NodePtr& node, const Expr& condition);
  double part_equal(const NodePtr& node, const Expr& a, const Expr& b);
  /// One end of a range of a column's values.
  struct Bound {
    std::string column;
    bool is_upper = false;
    double below = 0;  ///< the part of the rows that lies below it
  };
  std::optional<Bound> bound_of(const NodePtr& node, const Expr& condition);
  double part_of_all(const NodePtr& node, const std::vector<Expr>& conditions);

  const RunContext& context_;
  std::map<std::string, Table> tables_;
  std::unordered_map<NodePtr, double> rows_;  // known; keeps the steps
};

}  // namespace flugs::query
