#include "bench/tpcc/tpcc_driver.h"

#include "bench/support/run_watch.h"
#include "bench/tpcc/tpcc_user.h"

namespace flugs::bench {

Result<TpccRunResult> run_tpcc(const MakeTpccSession& make, const TpccRunOptions& options) {
  TpccRunResult result;
  TpccUsers users(make, options);
  TpccControl& control = users.control();
  const RunWatch watch{.seconds_all = options.ramp_up_seconds + options.seconds,
                       .has_failed = [&control] { return control.failed.load(); },
                       .executed = [&users] { return users.executed(); },
                       .progress = options.progress};
  if (options.ramp_up_seconds > 0) {
    control.phase.store(TpccPhase::kRampUp, std::memory_order_release);
    watch.wait(monotonic_ns(), options.ramp_up_seconds, 0, nullptr);
  }
  if (options.sampling_begins) options.sampling_begins();
  const ProcessorTime processor = process_processor_time();
  const std::uint64_t begin_ns = monotonic_ns();
  control.phase.store(TpccPhase::kSampling, std::memory_order_release);
  watch.wait(begin_ns, options.seconds, options.ramp_up_seconds, &result.tps_by_second);
  control.phase.store(TpccPhase::kStopped, std::memory_order_release);
  result.seconds = seconds_since(begin_ns);
  const ProcessorTime now = process_processor_time();
  result.processor = {now.user_ns - processor.user_ns, now.system_ns - processor.system_ns};
  if (options.sampling_ends) options.sampling_ends();
  users.stop();
  if (Status s = users.failure(); !s.ok()) return s;
  users.add_to(result);
  return result;
}

std::uint64_t TpccRunResult::executed() const noexcept {
  std::uint64_t sum = 0;
  for (const TpccTypeResult& type : types) sum += type.executed;
  return sum;
}

std::uint64_t TpccRunResult::retries() const noexcept {
  std::uint64_t sum = 0;
  for (const TpccTypeResult& type : types) sum += type.retries;
  return sum;
}

std::uint64_t TpccRunResult::writes_committed() const noexcept {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kTpccTypes; ++i)
    if (writes(static_cast<TpccType>(i))) sum += types[i].executed - types[i].rolled_back;
  return sum;
}

double TpccRunResult::per_second(std::uint64_t count) const noexcept {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

}  // namespace flugs::bench
