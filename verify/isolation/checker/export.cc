#include "verify/isolation/checker/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <vector>

namespace flugs::isolation {

namespace {

struct Event {
  std::uint64_t time_ns;
  std::uint32_t transaction;
  bool is_completion;
};

/// Events in the order of time; those of one process stay in its own order.
std::vector<Event> events_of(const History& history) {
  std::vector<Event> events;
  const auto transactions = history.transactions();
  events.reserve(transactions.size() * 2);
  for (std::uint32_t t = 0; t < transactions.size(); ++t) {
    events.push_back({transactions[t].begin_ns, t, false});
    events.push_back({transactions[t].end_ns, t, true});
  }
  std::stable_sort(events.begin(), events.end(),
                   [](const Event& a, const Event& b) { return a.time_ns < b.time_ns; });
  return events;
}

class HistoryWriter {
 public:
  HistoryWriter(const History& history, bool is_edn, std::ostream& out)
      : history_(history), is_edn_(is_edn), out_(out) {}

  void write(std::size_t index, const Event& event) {
    const Transaction& transaction = history_.transactions()[event.transaction];
    const char* type = "invoke";
    if (event.is_completion) {
      const Outcome outcome = transaction.outcome;
      type = outcome == Outcome::kCommitted ? "ok" : outcome == Outcome::kAborted ? "fail" : "info";
    }
    line_.clear();
    const auto out = std::back_inserter(line_);
    if (is_edn_) {
      fmt::format_to(out, "{{:index {}, :time {}, :type :{}, :process {}, :f :txn, :value [", index,
                     event.time_ns, type, transaction.process);
    } else {
      fmt::format_to(out, R"({{"index":{},"time":{},"type":"{}","process":{},"f":"txn","value":[)",
                     index, event.time_ns, type, transaction.process);
    }
    const char* separator = "";
    for (const Operation& operation : history_.operations(transaction)) {
      line_ += separator;
      add(operation, event.is_completion && transaction.outcome == Outcome::kCommitted);
      separator = is_edn_ ? " " : ",";
    }
    line_ += "]}\n";
    out_ << line_;
  }

 private:
  // If a transaction has no good answer, no one has heard what it read.
  void add(const Operation& operation, bool has_answer) {
    const char* const nothing = is_edn_ ? "nil" : "null";
    const char* const comma = is_edn_ ? " " : ",";
    std::string value = nothing;
    const char* name = "r";
    switch (operation.kind) {
      case OperationKind::kAppend:
        name = "append";
        value = std::to_string(operation.value);
        break;
      case OperationKind::kWrite:
        name = "w";
        value = std::to_string(operation.value);
        break;
      case OperationKind::kReadList:
        if (has_answer) value = fmt::format("[{}]", fmt::join(history_.elements(operation), comma));
        break;
      case OperationKind::kReadRegister:
        if (has_answer && operation.value != 0) value = std::to_string(operation.value);
        break;
    }
    const auto out = std::back_inserter(line_);
    if (is_edn_) {
      fmt::format_to(out, "[:{} {} {}]", name, operation.key, value);
    } else {
      fmt::format_to(out, R"(["{}",{},{}])", name, operation.key, value);
    }
  }

  const History& history_;
  const bool is_edn_;
  std::ostream& out_;
  std::string line_;
};

}  // namespace

Status export_history(const History& history, const std::string& path) {
  const auto operations = history.operations();
  const auto is_list = [](const Operation& operation) { return is_of_list(operation.kind); };
  if (!std::all_of(operations.begin(), operations.end(), is_list) &&
      std::any_of(operations.begin(), operations.end(), is_list))
    return Status(StatusCode::kInvalidArgument,
                  "a history of lists and registers cannot be exported: checkers take one kind");
  std::ofstream out(path);
  HistoryWriter writer(history, path.ends_with(".edn"), out);
  const std::vector<Event> events = events_of(history);
  for (std::size_t i = 0; i < events.size(); ++i) writer.write(i, events[i]);
  out.close();
  if (!out.good())
    return Status(StatusCode::kIoError, "cannot write " + path + ": " + std::strerror(errno));
  return {};
}

}  // namespace flugs::isolation
