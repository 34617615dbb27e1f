#include "bench/tatp_driver.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <thread>

#include "bench/clock.h"
#include "bench/environment.h"
#include "bench/merge_watch.h"

namespace flugs::bench {

namespace {

enum class Phase : std::uint32_t { kWaiting, kRampUp, kSampling, kStopped };

struct Control {
  std::atomic<Phase> phase{Phase::kWaiting};
  std::atomic<bool> failed{false};
  std::atomic<const MergeWatch*> merges{nullptr};
};

/// Rule B: reads count whatever they found, updates and deletes when they found a row, inserts when
/// they inserted.
constexpr bool counts_by_rule_b(TatpType type, TatpOutcome outcome) noexcept {
  return outcome == TatpOutcome::kDone || !writes(type) || type == TatpType::kUpdateLocation;
}

/// One user, with everything that its thread writes: on cache lines of its own.
class alignas(64) User {
 public:
  User(Control& control, Database& database, const TatpTables& tables, const Population& population,
       const TatpRunOptions& options, std::uint32_t index)
      : control_(control),
        clock_(Ticks::instance()),
        client_(database, tables, options.isolation),
        generator_(population, options.mix, options.distribution, user_seed(options.seed, index)),
        requests_(options.lookahead + 1) {
    if (options.witness == nullptr) return;
    log_.emplace(*options.witness, index);
    status_ = &options.witness->user(index);
  }

  void run() {
    Phase phase = Phase::kWaiting;
    while ((phase = control_.phase.load(std::memory_order_acquire)) == Phase::kWaiting)
      std::this_thread::yield();
    for (TatpRequest& request : requests_) generator_.next(request);
    for (std::size_t i = 0;
         (phase = control_.phase.load(std::memory_order_relaxed)) != Phase::kStopped;
         i = i + 1 == requests_.size() ? 0 : i + 1) {
      if (!execute(requests_[i], phase == Phase::kSampling)) {
        control_.failed.store(true);
        return;
      }
      generator_.next(requests_[i]);
      if (looks_ahead()) client_.prefetch(requests_[i]);
    }
  }

  std::uint64_t executed() const noexcept {
    return status_->executed.load(std::memory_order_relaxed);
  }

  /// After the thread has ended.
  void add_to(TatpRunResult& result) const {
    for (std::size_t i = 0; i < kTatpTypes; ++i) {
      result.types[i].executed += types_[i].executed;
      result.types[i].found += types_[i].found;
      result.types[i].shared_words += types_[i].shared_words;
      result.types[i].latency.merge(types_[i].latency);
      result.latency.merge(types_[i].latency);
    }
    result.location_during_merge.merge(location_during_merge_);
    result.retries += retries_;
    result.foreign_key_missing += foreign_key_missing_;
    result.forwarding_inserted += forwarding_inserted_;
    result.forwarding_deleted += forwarding_deleted_;
    result.checksum += client_.checksum();
    if (result.failure.ok()) result.failure = failure_.ok() ? client_.failure() : failure_;
  }

 private:
  bool looks_ahead() const noexcept { return requests_.size() > 1; }
  bool is_merging() const noexcept {
    const MergeWatch* merges = control_.merges.load(std::memory_order_acquire);
    return merges != nullptr && merges->is_merging();
  }

  bool execute(const TatpRequest& request, bool sampling) {
    if (log_ && writes(request.type)) {
      if (log_->full()) {
        failure_ = Status(StatusCode::kOutOfSpace, "the witness's log is full");
        return false;
      }
      log_->begin(request);
    }
    const std::uint64_t retries_before = client_.retries();
    SharedWordCounts words_before;
    if constexpr (kCountsSharedWords) words_before = shared_word_counts();
    const std::uint64_t begin = clock_.now();
    if (!looks_ahead()) client_.prefetch(request);
    const TatpOutcome outcome = client_.run(request);
    const std::uint64_t end = clock_.now();
    if (outcome == TatpOutcome::kFailed) return false;
    if (log_ && writes(request.type)) {
      if (outcome == TatpOutcome::kDone)
        log_->acknowledge(client_.commit_timestamp());
      else
        log_->forget();
    }
    const std::uint64_t count = status_->executed.load(std::memory_order_relaxed) + 1;
    status_->executed.store(count, std::memory_order_relaxed);
    if (!answered_) {
      answered_ = true;
      status_->first_answer_ns.store(monotonic_ns(), std::memory_order_relaxed);
    }
    if (outcome == TatpOutcome::kDone) {
      forwarding_inserted_ += request.type == TatpType::kInsertCallForwarding ? 1 : 0;
      forwarding_deleted_ += request.type == TatpType::kDeleteCallForwarding ? 1 : 0;
    }
    if (sampling) {
      TatpTypeResult& type = types_[index_of(request.type)];
      ++type.executed;
      if (outcome == TatpOutcome::kDone) ++type.found;
      if constexpr (kCountsSharedWords) type.shared_words += shared_word_counts() - words_before;
      if (counts_by_rule_b(request.type, outcome)) {
        type.latency.add(clock_.to_ns(end - begin));
        if (request.type == TatpType::kUpdateLocation && is_merging())
          location_during_merge_.add(clock_.to_ns(end - begin));
      }
      retries_ += client_.retries() - retries_before;
      if (request.type == TatpType::kInsertCallForwarding && outcome == TatpOutcome::kNotFound)
        ++foreign_key_missing_;
    }
    return true;
  }

  Control& control_;
  const Ticks& clock_;
  TatpClient client_;
  TatpGenerator generator_;
  std::vector<TatpRequest> requests_;  // a ring: what is known, the next one to execute included
  std::optional<WitnessLog> log_;
  UserStatus own_status_;
  UserStatus* status_ = &own_status_;
  bool answered_ = false;
  std::uint64_t retries_ = 0;
  std::uint64_t foreign_key_missing_ = 0;
  std::uint64_t forwarding_inserted_ = 0;
  std::uint64_t forwarding_deleted_ = 0;
  Status failure_;
  std::array<TatpTypeResult, kTatpTypes> types_;
  Histogram location_during_merge_;
};

using Users = std::vector<std::unique_ptr<User>>;

std::uint64_t executed_by(const Users& users) {
  return std::accumulate(
      users.begin(), users.end(), std::uint64_t{0},
      [](std::uint64_t sum, const auto& user) { return sum + user->executed(); });
}

/// Lets the users run, and looks now and then.
class Watch {
 public:
  Watch(const Control& control, const TatpRunOptions& options, const Users& users)
      : control_(control), options_(options), users_(users) {}

  /// Until `seconds` have passed since `begin_ns`; `tps_by_second` is null or gets the curve.
  void wait(std::uint64_t begin_ns, double seconds, double seconds_before,
            std::vector<double>* tps_by_second) {
    const double seconds_all = options_.ramp_up_seconds + options_.seconds;
    std::uint64_t mark = executed_by(users_);
    double mark_seconds = 0;
    for (double gone = 0; gone < seconds; gone = seconds_since(begin_ns)) {
      if (control_.failed.load()) return;
      if (options_.progress && !options_.progress(seconds_before + gone, seconds_all)) return;
      // The curve has a point each whole second.
      const double next_point = std::floor(gone) + 1;
      const double slice = std::min({0.1, seconds - gone, next_point - gone});
      std::this_thread::sleep_for(std::chrono::duration<double>(slice));
      const double now = seconds_since(begin_ns);
      if (tps_by_second == nullptr || now < next_point) continue;
      const std::uint64_t executed = executed_by(users_);
      tps_by_second->push_back(static_cast<double>(executed - mark) / (now - mark_seconds));
      mark = executed;
      mark_seconds = now;
    }
  }

 private:
  const Control& control_;
  const TatpRunOptions& options_;
  const Users& users_;
};

}  // namespace

TatpRunResult run_tatp(Database& database, const TatpTables& tables, const Population& population,
                       const TatpRunOptions& options) {
  TatpRunResult result;
  Control control;
  Users users;
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < options.users; ++i)
    users.push_back(std::make_unique<User>(control, database, tables, population, options, i));
  for (const auto& user : users) threads.emplace_back([&user] { user->run(); });

  Watch watch(control, options, users);
  if (options.ramp_up_seconds > 0) {
    control.phase.store(Phase::kRampUp, std::memory_order_release);
    watch.wait(monotonic_ns(), options.ramp_up_seconds, 0, nullptr);
  }
  result.before = database.statistics();
  std::optional<MergeWatch> merges;
  if (options.watches_merges) {
    merges.emplace(database, [&users] { return executed_by(users); });
    control.merges.store(&*merges, std::memory_order_release);
  }
  const std::uint64_t begin_ns = monotonic_ns();
  control.phase.store(Phase::kSampling, std::memory_order_release);
  watch.wait(begin_ns, options.seconds, options.ramp_up_seconds, &result.tps_by_second);
  control.phase.store(Phase::kStopped, std::memory_order_release);
  result.seconds = seconds_since(begin_ns);
  result.after = database.statistics();
  if (merges) result.share_during_merge = merges->share_during_merge();
  result.dram_bytes = dram_bytes();

  for (std::thread& thread : threads) thread.join();
  for (const auto& user : users) user->add_to(result);
  return result;
}

std::uint64_t TatpRunResult::executed() const noexcept {
  std::uint64_t sum = 0;
  for (const TatpTypeResult& type : types) sum += type.executed;
  return sum;
}

std::uint64_t TatpRunResult::committed_bytes() const noexcept {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kTatpTypes; ++i)
    sum += types[i].found * bench::committed_bytes(static_cast<TatpType>(i));
  return sum;
}

std::uint64_t TatpRunResult::counted_by_rule_a() const noexcept {
  const TatpTypeResult& insert = types[index_of(TatpType::kInsertCallForwarding)];
  return executed() - (insert.executed - insert.found);
}

std::uint64_t TatpRunResult::counted_by_rule_b() const noexcept { return latency.count(); }

std::uint64_t TatpRunResult::counted_by_rule_c() const noexcept {
  std::uint64_t sum = 0;
  for (const TatpTypeResult& type : types) sum += type.found;
  return sum;
}

}  // namespace flugs::bench
