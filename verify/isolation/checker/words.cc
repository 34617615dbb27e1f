#include "verify/isolation/checker/words.h"

#include <fmt/format.h>

#include <algorithm>

namespace flugs::isolation {

namespace {

constexpr std::size_t kElementsShown = 12;

std::string list_words(std::span<const std::uint32_t> elements) {
  const std::size_t shown = std::min(elements.size(), kElementsShown);
  const auto last = elements.subspan(elements.size() - shown);
  return fmt::format("[{}{}]", shown < elements.size() ? "... " : "", fmt::join(last, " "));
}

std::string operation_words(const History& history, const Operation& operation) {
  const char* how = operation.is_predicate ? " by range" : "";
  switch (operation.kind) {
    case OperationKind::kAppend:
      return fmt::format("append {} to {}", operation.value, operation.key);
    case OperationKind::kWrite:
      return fmt::format("write {} to {}", operation.value, operation.key);
    case OperationKind::kReadList:
      return fmt::format("read {}{}: {}", operation.key, how,
                         list_words(history.elements(operation)));
    case OperationKind::kReadRegister:
      return fmt::format("read {}{}: {}", operation.key, how,
                         operation.value == 0 ? "nothing" : std::to_string(operation.value));
  }
  return {};
}

std::string_view outcome_words(Outcome outcome) {
  switch (outcome) {
    case Outcome::kCommitted:
      return "committed";
    case Outcome::kAborted:
      return "aborted";
    case Outcome::kUnknown:
      return "killed before the answer";
  }
  return {};
}

std::string transaction_words(const History& history, std::uint32_t index) {
  const Transaction& transaction = history.transactions()[index];
  std::string words =
      fmt::format("  T{} (process {}, {} to {} ns, {}):", index, transaction.process,
                  transaction.begin_ns, transaction.end_ns, outcome_words(transaction.outcome));
  for (const Operation& operation : history.operations(transaction))
    words += fmt::format("\n    {}", operation_words(history, operation));
  return words + "\n";
}

std::string version_words(std::uint32_t value) {
  return value == 0 ? "nothing" : std::to_string(value);
}

std::string step_words(const History& history, const Dependencies& dependencies,
                       const Cycle::Step& step) {
  if (step.is_real_time) {
    const auto transactions = history.transactions();
    return fmt::format("  T{} had its answer {} ns before T{} began (real time)\n", step.from,
                       transactions[step.to].begin_ns - transactions[step.from].end_ns, step.to);
  }
  const Dependency& edge = dependencies.edges[step.dependency];
  switch (edge.edge) {
    case Edge::kWw:
      return fmt::format("  T{} wrote {} to {}, before T{} wrote {} (ww)\n", step.from, edge.before,
                         edge.key, step.to, edge.value);
    case Edge::kWr:
      return fmt::format("  T{} wrote {} to {}, which T{} read (wr)\n", step.from, edge.value,
                         edge.key, step.to);
    case Edge::kRw:
      return fmt::format("  T{} read {} of {}{}, and not {}, which T{} wrote next (rw)\n",
                         step.from, version_words(edge.before), edge.key,
                         edge.is_predicate ? " by range" : "", edge.value, step.to);
  }
  return {};
}

std::string finding_words(const Finding& f) {
  switch (f.anomaly) {
    case Anomaly::kGarbage:
      return fmt::format("T{} read {} of {}, which no transaction had written there", f.transaction,
                         f.value, f.key);
    case Anomaly::kDuplicate:
      return fmt::format("T{} read {} twice in {}", f.transaction, f.value, f.key);
    case Anomaly::kIncompatibleOrder:
      return fmt::format("T{} read {} in another order than T{}", f.transaction, f.key, f.other);
    case Anomaly::kLost:
      return fmt::format("T{} began after T{} had its answer, and read {} without {}",
                         f.transaction, f.other, f.key, f.value);
    case Anomaly::kInternal:
      return fmt::format("T{} read {} without its own {}", f.transaction, f.key, f.value);
    case Anomaly::kG1a:
      return fmt::format("T{} read {} of {}, of T{}, which did not happen", f.transaction, f.value,
                         f.key, f.other);
    case Anomaly::kG1b:
      return fmt::format("T{} read {} of {}, which T{} itself wrote over", f.transaction, f.value,
                         f.key, f.other);
    default:
      return fmt::format("T{} and T{} both wrote {} on top of {}", f.other, f.transaction, f.key,
                         version_words(f.value));
  }
}

}  // namespace

std::string in_words(const History& history, const Finding& finding) {
  std::string words = fmt::format("{}: {}\n", to_string(finding.anomaly), finding_words(finding));
  words += transaction_words(history, finding.transaction);
  if (finding.other != kNobody && finding.other != finding.transaction)
    words += transaction_words(history, finding.other);
  return words;
}

std::string in_words(const History& history, const Dependencies& dependencies, const Cycle& cycle) {
  std::string words = fmt::format("{}{}: a cycle of {} transactions\n", to_string(cycle.anomaly),
                                  cycle.in_real_time ? " in real time" : "", cycle.steps.size());
  for (const Cycle::Step& step : cycle.steps) words += step_words(history, dependencies, step);
  words += " where\n";
  for (const Cycle::Step& step : cycle.steps) words += transaction_words(history, step.from);
  return words;
}

}  // namespace flugs::isolation
