#pragma once

#include <memory>
#include <string>
#include <vector>

#include "flugs/query_result.h"
#include "query/stream/batch_sink.h"
#include "query/vectors/rows.h"

namespace flugs::query {

/// The content of a QueryResult: rows without codes. `batches` has the bytes of their texts.
struct ResultData {
  std::vector<ResultColumn> columns;
  std::shared_ptr<const Rows> rows;
  std::vector<std::size_t> first_rows;  ///< of each part
  std::vector<std::shared_ptr<const BatchData>> batches;
  QueryStatistics statistics;
  std::string explain;
};

/// All batches of the sink, with views of their texts.
std::shared_ptr<ResultData> make_result(RunContext& context, BatchSink& sink, bool is_ordered);

}  // namespace flugs::query
