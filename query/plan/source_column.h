#pragma once

#include <cstddef>
#include <string>

#include "query/operators/query_node.h"

namespace flugs::query {

class Planner;

/// A column of a table in a query, or of a shared part.
struct SourceColumn {
  const QueryNode* step = nullptr;  ///< kTable or kShared; null: there is none
  std::string column;
};

/// Where the step has its column `name` from. The table or part may drop rows by the value of this
/// column: the step's other rows stay the same.
SourceColumn source_of(const Planner& planner, const QueryNode& node, const std::string& name);
/// How often the step is in the query.
std::size_t times_in(const QueryNode& query, const QueryNode& step);

}  // namespace flugs::query
