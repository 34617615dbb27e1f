#include "bench/tpcc/tpcc_user.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "flugs/try.h"

namespace flugs::bench {

namespace {

/// Attempts that spin before the thread yields to the transaction that was first.
constexpr std::uint64_t kAttemptsInHaste = 4;

std::int64_t wall_clock_us() noexcept {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

TpccUser::TpccUser(const MakeTpccSession& make, const TpccRunOptions& options, std::uint32_t index)
    : make_(make),
      clock_(Ticks::instance()),
      index_(index),
      generator_(options.population, options.mix, TpccConstants(options.seed),
                 mix64(options.seed) + mix64(index)) {
  generator_.set_home(index % options.population.warehouses + 1,
                      index / options.population.warehouses % kDistrictsPerWarehouse + 1);
  if (options.witness != nullptr) log_.emplace(*options.witness, index);
}

Status TpccUser::prepare() {
  FLUGS_ASSIGN(session_, make_(index_));
  return {};
}

Status TpccUser::step(bool is_sampled) {
  generator_.next(request_);
  // Two transactions of a user have different times: they are names of payments for the witness.
  last_time_us_ = std::max(last_time_us_ + 1, wall_clock_us());
  request_.time_us = last_time_us_;
  FLUGS_TRY(log_begin());
  std::uint64_t retries = 0;
  const std::uint64_t begin = clock_.now();
  FLUGS_ASSIGN(const TpccOutcome outcome, attempt(retries));
  const std::uint64_t end = clock_.now();
  log_end(outcome);
  checksum_ += receipt_.checksum;
  if (!is_sampled) return {};
  TpccTypeResult& type = types_[index_of(request_.type)];
  ++type.executed;
  type.rolled_back += outcome == TpccOutcome::kRolledBack ? 1 : 0;
  type.retries += retries;
  type.latency.add(clock_.to_ns(end - begin));
  skipped_deliveries_ += receipt_.skipped;
  return {};
}

Result<TpccOutcome> TpccUser::attempt(std::uint64_t& retries) {
  for (;;) {
    receipt_ = TpccReceipt();
    Result<TpccOutcome> outcome = session_->run(request_, receipt_);
    if (outcome.ok() || outcome.code() != StatusCode::kConflict) return outcome;
    if (++retries > kAttemptsInHaste) sched_yield();
  }
}

Status TpccUser::log_begin() {
  if (!log_ || !writes(request_.type)) return {};
  if (log_->full()) return Status(StatusCode::kOutOfSpace, "the witness's log is full");
  log_->begin(request_);
  return {};
}

void TpccUser::log_end(TpccOutcome outcome) {
  if (!log_ || !writes(request_.type)) return;
  if (outcome == TpccOutcome::kDone)
    log_->acknowledge(receipt_);
  else
    log_->forget();
}

void TpccUser::add_to(TpccRunResult& result) const {
  for (std::size_t i = 0; i < kTpccTypes; ++i) {
    result.types[i].executed += types_[i].executed;
    result.types[i].rolled_back += types_[i].rolled_back;
    result.types[i].retries += types_[i].retries;
    result.types[i].latency.merge(types_[i].latency);
    result.latency.merge(types_[i].latency);
  }
  result.skipped_deliveries += skipped_deliveries_;
  result.checksum += checksum_;
}

}  // namespace flugs::bench
