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
      runs_as_written(options.runs_as_written),
      database(engine::TransactionAccess::database(open)),
      transaction(engine::TransactionAccess::context(open)),
      visibility(transaction->visibility),
      stop(options.stop),
      progress(options.progress),
      threads(thread_count),
      crew(database->query_crew()),
      budget(options.memory_bytes_max),
      texts(&budget),
      temporary_folder(options.temporary_folder) {
  FLUGS_CHECK(query != nullptr);
  FLUGS_CHECK(threads >= 1);
}

// A caller is told some hundred times for each input, however small its pieces are.
void QueryProgress::begin(std::size_t pieces) {
  const std::lock_guard guard(mutex_);
  FLUGS_CHECK(done_ == pieces_);
  before_ += pieces_;
  done_ = 0;
  pieces_ = pieces;
  tell();
}

void QueryProgress::add_done() {
  constexpr std::uint64_t kCallsWished = 256;
  const std::lock_guard guard(mutex_);
  FLUGS_CHECK(done_ < pieces_);
  if (++done_ % (pieces_ / kCallsWished + 1) == 0) tell();
}

void QueryProgress::finish() {
  const std::lock_guard guard(mutex_);
  done_ = pieces_;
  tell();
}

void QueryProgress::tell() { function_({"query", before_ + done_, before_ + pieces_}); }

void RunContext::check_stop() const {
  if (stop.stop_requested())
    fail(StatusCode::kCancelled, "the caller asked the query to stop (RunOptions::stop)");
  if (transaction->ending.is_to_end()) throw Failure{transaction->ending.why_ended()};
}

std::string expected_text(double rows) {
  return rows < 0 ? std::string() : fmt::format(", about {:.0f} expected", rows);
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
