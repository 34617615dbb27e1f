#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "flugs/query.h"

namespace flugs::query {

enum class JoinKind : std::uint8_t { kInner, kLeft, kSemi, kAnti };

/// A step of a query as the user wrote it.
///
/// Every function that walks a query is recursive, its destructor too. So no query has more steps
/// than kStepsMax: beyond that, the functions of Query return a step without inputs whose `error`
/// says why, and so does each function that gets such a query.
struct QueryNode {
  static constexpr std::uint32_t kStepsMax = 500;

  enum class Step : std::uint8_t {
    kTable,
    kResult,
    kWhere,
    kSelect,
    kRename,
    kJoin,
    kGroupBy,
    kDistinct,
    kOrderBy,
    kLimit,
    kShared,  ///< only Arrangement's queries have it: rows that several steps read (SharedParts)
  };
  Step step = Step::kTable;
  std::shared_ptr<const QueryNode> input;
  std::shared_ptr<const QueryNode> right;  ///< kJoin
  std::string text;                        ///< a table's name; a prefix
  std::shared_ptr<const ResultData> result;
  Expr condition;  ///< kWhere; `also` of kJoin
  std::vector<Item> items;
  std::vector<Aggregate> aggregates;
  JoinKind join = JoinKind::kInner;
  std::vector<JoinKey> join_keys;
  std::vector<SortKey> sort_keys;
  std::uint64_t limit = 0;
  std::uint64_t offset = 0;
  // kJoin: rows that come out, of the left side and of the right one, as Arrangement expects them.
  // Below 0: unknown.
  double rows_expected = -1;
  double left_expected = -1;
  double right_expected = -1;
  std::size_t part = 0;        ///< kShared: its number, from 1 on
  bool is_left_first = false;  ///< kJoin: the left side is held, and drops rows of the right one
  std::string error;           ///< why there is no such query
  std::uint32_t steps = 1;  ///< steps of the whole query, each counted as often as it is an input
};

/// The step with other inputs; the same step if they are the same.
inline std::shared_ptr<const QueryNode> with_inputs(
    const std::shared_ptr<const QueryNode>& node, std::shared_ptr<const QueryNode> input,
    std::shared_ptr<const QueryNode> right = nullptr) {
  if (node->input == input && node->right == right) return node;
  auto made = std::make_shared<QueryNode>(*node);
  made->input = std::move(input);
  made->right = std::move(right);
  return made;
}

}  // namespace flugs::query
