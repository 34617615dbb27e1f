#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "bench/groups/group_data.h"
#include "flugs/query.h"

namespace flugs::bench {

/// Rows of the results that have several.
inline constexpr std::size_t kGroupTop = 10;

/// A query of the group benchmark, and the same for a database that speaks SQL.
struct GroupQuery {
  std::string_view name;
  std::string_view question;  ///< in words
  query::Query query;
  std::string sql;
};

/// All five. Their groups are as many as the data's, and their results are a few rows in an order
/// that leaves no choice: what is measured is grouping and sorting, not handing rows over.
std::vector<GroupQuery> group_queries(const GroupData& data);

}  // namespace flugs::bench
