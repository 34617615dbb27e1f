#include "bench/tatp/tatp_user.h"

#include "base/check.h"

namespace flugs::bench {

namespace {

/// Rule B: reads count whatever they found, updates and deletes when they found a row, inserts when
/// they inserted.
constexpr bool counts_by_rule_b(TatpType type, TatpOutcome outcome) noexcept {
  return outcome == TatpOutcome::kDone || !writes(type) || type == TatpType::kUpdateLocation;
}

}  // namespace

TatpUser::TatpUser(TatpControl& control, Database& database, const TatpTables& tables,
                   const Population& population, const TatpRunOptions& options, std::uint32_t index)
    : control_(control),
      clock_(Ticks::instance()),
      client_(database, tables, options.isolation),
      generator_(population, options.mix, options.distribution, user_seed(options.seed, index)),
      requests_(options.lookahead + 1) {
  client_.set_commit(options.commit);
  if (options.prepares) FLUGS_CHECK(client_.prepare().ok());  // the keys are those of the tables
  if (options.witness == nullptr) return;
  log_.emplace(*options.witness, index);
  status_ = &options.witness->user(index);
}

void TatpUser::run() {
  TatpPhase phase = TatpPhase::kWaiting;
  while ((phase = control_.phase.load(std::memory_order_acquire)) == TatpPhase::kWaiting)
    std::this_thread::yield();
  for (TatpRequest& request : requests_) generator_.next(request);
  std::size_t i = 0;
  while ((phase = control_.phase.load(std::memory_order_relaxed)) != TatpPhase::kStopped) {
    if (phase == TatpPhase::kPaused) {
      control_.phase.wait(TatpPhase::kPaused);
      continue;
    }
    if (!execute(requests_[i], phase == TatpPhase::kSampling)) {
      control_.failed.store(true);
      return;
    }
    generator_.next(requests_[i]);
    if (looks_ahead()) client_.prefetch(requests_[i]);
    i = i + 1 == requests_.size() ? 0 : i + 1;
  }
}

void TatpUser::add_to(TatpRunResult& result) const {
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

bool TatpUser::is_merging() const noexcept {
  const MergeWatch* merges = control_.merges.load(std::memory_order_acquire);
  return merges != nullptr && merges->is_merging();
}

bool TatpUser::execute(const TatpRequest& request, bool sampling) {
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
  const std::uint64_t executed = status_->executed.load(std::memory_order_relaxed) + 1;
  status_->executed.store(executed, std::memory_order_relaxed);
  if (!answered_) {
    answered_ = true;
    status_->first_answer_ns.store(monotonic_ns(), std::memory_order_relaxed);
  }
  if (outcome == TatpOutcome::kDone) {
    forwarding_inserted_ += request.type == TatpType::kInsertCallForwarding ? 1 : 0;
    forwarding_deleted_ += request.type == TatpType::kDeleteCallForwarding ? 1 : 0;
  }
  if (!sampling) return true;
  if constexpr (kCountsSharedWords)
    types_[index_of(request.type)].shared_words += shared_word_counts() - words_before;
  count(request, outcome, end - begin);
  retries_ += client_.retries() - retries_before;
  return true;
}

void TatpUser::count(const TatpRequest& request, TatpOutcome outcome, std::uint64_t ticks) {
  TatpTypeResult& type = types_[index_of(request.type)];
  ++type.executed;
  if (outcome == TatpOutcome::kDone) ++type.found;
  if (counts_by_rule_b(request.type, outcome)) {
    type.latency.add(clock_.to_ns(ticks));
    if (request.type == TatpType::kUpdateLocation && is_merging())
      location_during_merge_.add(clock_.to_ns(ticks));
  }
  if (request.type == TatpType::kInsertCallForwarding && outcome == TatpOutcome::kNotFound)
    ++foreign_key_missing_;
}

TatpUsers::TatpUsers(Database& database, const TatpTables& tables, const Population& population,
                     const TatpRunOptions& options) {
  for (std::uint32_t i = 0; i < options.users; ++i)
    users_.push_back(
        std::make_unique<TatpUser>(control_, database, tables, population, options, i));
  for (const auto& user : users_) threads_.emplace_back([&user = *user] { user.run(); });
}

std::uint64_t TatpUsers::executed() const noexcept {
  std::uint64_t sum = 0;
  for (const auto& user : users_) sum += user->executed();
  return sum;
}

void TatpUsers::stop() {
  control_.set(TatpPhase::kStopped);
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void TatpUsers::add_to(TatpRunResult& result) const {
  for (const auto& user : users_) user->add_to(result);
}

}  // namespace flugs::bench
