#include "verify/isolation/checker/checker.h"

#include <algorithm>

#include "verify/isolation/checker/cycles.h"
#include "verify/isolation/checker/words.h"

namespace flugs::isolation {

namespace {

void count_transactions(const History& history, Report& report) {
  report.transactions = history.transactions().size();
  report.operations = history.operations().size();
  for (const Transaction& transaction : history.transactions()) {
    switch (transaction.outcome) {
      case Outcome::kCommitted:
        ++report.committed;
        break;
      case Outcome::kAborted:
        ++report.aborted;
        break;
      case Outcome::kUnknown:
        ++report.unknown;
        break;
    }
  }
}

}  // namespace

void Report::add(const Report& other) {
  transactions += other.transactions;
  operations += other.operations;
  committed += other.committed;
  aborted += other.aborted;
  unknown += other.unknown;
  unknown_happened += other.unknown_happened;
  dependencies += other.dependencies;
  forbidden += other.forbidden;
  for (std::size_t i = 0; i < kAnomalyCount; ++i) {
    by_kind[i].forbidden += other.by_kind[i].forbidden;
    by_kind[i].allowed += other.by_kind[i].allowed;
  }
  words.insert(words.end(), other.words.begin(), other.words.end());
}

Result<Report> check(const History& history, const CheckOptions& options) {
  Result<Dependencies> dependencies = infer(history);
  if (!dependencies.ok()) return std::move(dependencies).status();
  Report report;
  count_transactions(history, report);
  report.unknown_happened = dependencies->unknown_happened;
  report.dependencies = dependencies->edges.size();
  // True for the first forbidden anomaly of its kind.
  const auto count = [&](Anomaly anomaly, bool in_real_time) {
    Report::Anomalies& kind = report.by_kind[static_cast<std::size_t>(anomaly)];
    if (!forbids(options.level, anomaly, in_real_time)) {
      ++kind.allowed;
      return false;
    }
    ++report.forbidden;
    return ++kind.forbidden == 1;
  };
  for (const Finding& finding : dependencies->findings)
    if (count(finding.anomaly, false)) report.words.push_back(in_words(history, finding));
  std::vector<Cycle> cycles =
      find_cycles(history, *dependencies, options.level, options.reports_allowed);
  std::stable_sort(cycles.begin(), cycles.end(),
                   [](const Cycle& a, const Cycle& b) { return a.steps.size() < b.steps.size(); });
  for (const Cycle& cycle : cycles)
    if (count(cycle.anomaly, cycle.in_real_time))
      report.words.push_back(in_words(history, *dependencies, cycle));
  return report;
}

}  // namespace flugs::isolation
