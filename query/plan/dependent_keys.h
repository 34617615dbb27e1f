#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "query/operators/query_node.h"
#include "query/vectors/run_context.h"

namespace flugs::query {

/// Finds keys of a group by that follow from its other keys: rows that agree in the others agree in
/// these (decision 0067).
///
/// A column follows from the primary key of its table, which no row may lack and no two rows share.
/// It also follows from a column that an inner join makes equal to it. Both stay true below
/// conditions, projections, sorts, limits and further joins. The right side of a left join says
/// nothing, and neither does a unique key besides the primary key: its columns may be NULL.
class DependentKeys {
 public:
  /// `input` is the step that is grouped.
  DependentKeys(const RunContext& context, const QueryNode& input);

  /// By key: whether it follows from keys for which this is false.
  std::vector<bool> among(const std::vector<Item>& keys) const;

 private:
  /// Numbers of columns by their names in a step. A column without a number says nothing.
  using Columns = std::unordered_map<std::string, std::size_t>;
  /// A table at one place of the query.
  struct Table {
    std::vector<std::size_t> columns;
    std::vector<std::size_t> primary;  // empty: there is none that may be used
  };

  Columns read(const QueryNode& node);
  Columns read_table(const std::string& name);
  Columns read_join(const QueryNode& node);
  std::vector<bool> closure(const std::vector<std::size_t>& of) const;

  const RunContext& context_;
  std::vector<Table> tables_;
  std::vector<bool> is_exact_;  // by column: equal values are the same
  std::vector<std::pair<std::size_t, std::size_t>> equal_;
  Columns columns_;  // of the step that is grouped
};

}  // namespace flugs::query
