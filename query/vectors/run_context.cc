#include "query/vectors/run_context.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"
#include "engine/database/database_core.h"
#include "engine/database/transaction_access.h"

namespace flugs::query {

RunContext::RunContext(std::shared_ptr<const QueryNode> node, const Transaction& open,
                       const RunOptions& options, std::uint32_t thread_count)
    : query(std::move(node)),
      database(engine::TransactionAccess::database(open)),
      transaction(engine::TransactionAccess::context(open)),
      stop(options.stop),
      threads(thread_count),
      crew(database->query_crew()),
      budget(options.memory_bytes_max) {
  FLUGS_CHECK(query != nullptr);
  FLUGS_CHECK(threads >= 1);
}

void RunContext::check_stop() const {
  if (stop.stop_requested()) fail(StatusCode::kCancelled, "the query was asked to stop");
  if (transaction->ending.is_to_end()) throw Failure{transaction->ending.why_ended()};
}

std::string to_text(const ExplainNode& node, unsigned depth) {
  std::string text = fmt::format("{:{}}{}", "", depth * 2, node.title);
  if (node.seconds >= 0) text += fmt::format("  [{:.3f} ms]", node.seconds * 1e3);
  text += "\n";
  for (const std::string& detail : node.details)
    text += fmt::format("{:{}}- {}\n", "", depth * 2 + 4, detail);
  for (const ExplainPtr& input : node.inputs) text += to_text(*input, depth + 1);
  return text;
}

}  // namespace flugs::query
