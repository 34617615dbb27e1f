#include "bench/htap/htap_stream.h"

#include <cmath>
#include <utility>

#include "bench/support/clock.h"
#include "bench/support/random.h"
#include "flugs/try.h"

namespace flugs::bench {

HtapQueries::HtapQueries() {
  for (const ChQuery& query : ch_queries()) queries.push_back({query.name, {}});
}

std::uint64_t HtapQueries::executed() const noexcept {
  std::uint64_t sum = 0;
  for (const OfQuery& query : queries) sum += query.latency.count();
  return sum;
}

Histogram HtapQueries::latency() const {
  Histogram all;
  for (const OfQuery& query : queries) all.merge(query.latency);
  return all;
}

std::optional<double> HtapQueries::mean_ms() const {
  double logarithms = 0;
  double counted = 0;
  for (const OfQuery& query : queries) {
    if (query.name == "Q22") continue;
    if (query.latency.count() == 0) return std::nullopt;
    logarithms += std::log(static_cast<double>(query.latency.percentile(0.5)) * 1e-6);
    ++counted;
  }
  return std::exp(logarithms / counted);
}

HtapStream::HtapStream(Database& database, const HtapStreamOptions& options, std::uint32_t index)
    : database_(database),
      options_(options),
      equations_(options.period),
      numbers_(options.users),
      sights_(options.users) {
  run_.threads = options.threads;
  for (const ChQuery& query : ch_queries()) queries_.push_back(query.make(options.period));
  // Users draw from the sum of the same two numbers.
  Random random(mix64(options.seed) ^ mix64(index));
  item_ = random.below(queries_.size() + 1);
  equation_ = random.below(equations_.size());
}

Status HtapStream::prepare() {
  if (options_.users == 0) return {};
  FLUGS_ASSIGN(reader_, FreshnessReader::make(database_, options_.freshness));
  sights_.reserve(options_.sights);
  return {};
}

Status HtapStream::step(bool is_sampled) {
  const std::size_t item = item_;
  const std::uint64_t start_ns = monotonic_ns();
  FLUGS_ASSIGN(const Transaction snapshot, database_.begin(AccessMode::kReadOnly));
  // Before the query: the versions that the snapshot sees are still the newest ones, or nearly.
  FLUGS_TRY(reader_.read(snapshot, numbers_));
  FLUGS_TRY(execute(snapshot));
  const std::uint64_t end_ns = monotonic_ns();
  if (options_.users > 0) sights_.add(start_ns, is_sampled, numbers_);
  if (!is_sampled) return {};
  Histogram& latency = item < queries_.size() ? done_.queries[item].latency : done_.equations;
  latency.add(end_ns - start_ns);
  return {};
}

Status HtapStream::execute(const Transaction& snapshot) {
  const std::size_t item = item_;
  item_ = (item_ + 1) % (queries_.size() + 1);
  if (item == queries_.size()) return check_equation(snapshot);
  const Result<query::QueryResult> result = queries_[item].run(snapshot, run_);
  if (result.ok()) return {};
  return Status(result.code(), std::string(done_.queries[item].name) + ": " +
                                   std::string(result.status().message()));
}

Status HtapStream::check_equation(const Transaction& snapshot) {
  FLUGS_ASSIGN(std::string problem, equations_.check(equation_, snapshot, run_));
  equation_ = (equation_ + 1) % equations_.size();
  if (!problem.empty()) done_.problems.push_back(std::move(problem));
  return {};
}

void HtapStream::add_to(HtapQueries& result) const {
  for (std::size_t i = 0; i < done_.queries.size(); ++i)
    result.queries[i].latency.merge(done_.queries[i].latency);
  result.equations.merge(done_.equations);
  result.problems.insert(result.problems.end(), done_.problems.begin(), done_.problems.end());
}

}  // namespace flugs::bench
