#pragma once

#include <memory>
#include <string>
#include <vector>

#include "flugs/query_result.h"
#include "query/vectors/rows.h"

namespace flugs::query {

/// The content of a QueryResult: rows without codes, texts in memory of its own.
struct ResultData {
  std::vector<ResultColumn> columns;
  std::shared_ptr<const Rows> rows;
  std::vector<std::size_t> first_rows;  ///< of each part
  std::vector<std::unique_ptr<char[]>> texts;
  QueryStatistics statistics;
  std::string explain;
};

/// The columns of `names`, in this order, decoded and copied.
std::shared_ptr<ResultData> make_result(RunContext& context, Rows rows,
                                        const std::vector<std::string>& names);

}  // namespace flugs::query
