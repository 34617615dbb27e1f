#include "bench/tatp/tatp_driver.h"

#include <optional>

#include "bench/support/clock.h"
#include "bench/support/environment.h"
#include "bench/support/merge_watch.h"
#include "bench/support/run_watch.h"
#include "bench/tatp/tatp_user.h"

namespace flugs::bench {

TatpRunResult run_tatp(Database& database, const TatpTables& tables, const Population& population,
                       const TatpRunOptions& options) {
  TatpRunResult result;
  TatpUsers users(database, tables, population, options);
  TatpControl& control = users.control();
  const RunWatch watch{.seconds_all = options.ramp_up_seconds + options.seconds,
                       .has_failed = [&control] { return control.failed.load(); },
                       .executed = [&users] { return users.executed(); },
                       .progress = options.progress};
  if (options.ramp_up_seconds > 0) {
    control.set(TatpPhase::kRampUp);
    watch.wait(monotonic_ns(), options.ramp_up_seconds, 0, nullptr);
  }
  result.before = database.statistics();
  std::optional<MergeWatch> merges;
  if (options.watches_merges) {
    merges.emplace(database, [&users] { return users.executed(); });
    control.merges.store(&*merges, std::memory_order_release);
  }
  const ProcessorTime processor = process_processor_time();
  const std::uint64_t begin_ns = monotonic_ns();
  control.set(TatpPhase::kSampling);
  watch.wait(begin_ns, options.seconds, options.ramp_up_seconds, &result.tps_by_second);
  control.set(TatpPhase::kStopped);
  result.seconds = seconds_since(begin_ns);
  const ProcessorTime now = process_processor_time();
  result.processor = {now.user_ns - processor.user_ns, now.system_ns - processor.system_ns};
  result.after = database.statistics();
  if (merges) result.share_during_merge = merges->share_during_merge();
  result.dram_bytes = dram_bytes();
  users.stop();
  users.add_to(result);
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

double TatpRunResult::per_second(std::uint64_t count) const noexcept {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

double TatpRunResult::per_write(std::uint64_t Statistics::* counter) const noexcept {
  const std::uint64_t writes = after.transactions_committed - before.transactions_committed;
  if (writes == 0) return 0;
  return static_cast<double>(after.*counter - before.*counter) / static_cast<double>(writes);
}

double TatpRunResult::ns_per_write(std::uint64_t ns) const noexcept {
  const std::uint64_t writes = after.transactions_committed - before.transactions_committed;
  return writes == 0 ? 0 : static_cast<double>(ns) / static_cast<double>(writes);
}

double TatpRunResult::per_executed(std::uint64_t Statistics::* counter) const noexcept {
  if (executed() == 0) return 0;
  return static_cast<double>(after.*counter - before.*counter) / static_cast<double>(executed());
}

}  // namespace flugs::bench
