#include "bench/tpcc/tpcc_promises.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <functional>
#include <string>

#include "bench/tpcc/tpcc_reader.h"
#include "test/bench/tiny_tpcc.h"

namespace flugs::test {

namespace {

using bench::TpccCondition;
using bench::TpccEntry;
using bench::TpccType;

/// A run whose users' promises are logged.
class PromisedRun {
 public:
  PromisedRun() : path_("/dev/shm/flugs-test-" + std::to_string(getpid()) + ".witness") {
    bench::TpccWitness::Plan plan;
    plan.population = tpcc_.options;
    plan.users = kUsers;
    plan.log_entries = 100'000;
    witness_ = must(bench::TpccWitness::create(path_, plan));
    tpcc_.run(kUsers, 300, &witness_);
  }
  ~PromisedRun() { unlink(path_.c_str()); }
  PromisedRun(const PromisedRun&) = delete;
  PromisedRun& operator=(const PromisedRun&) = delete;

  /// The first acknowledged entry of a type.
  TpccEntry& entry(TpccType type) {
    for (std::uint32_t user = 0; user < kUsers; ++user)
      for (TpccEntry& entry : witness_.log_space(user))
        if (entry.state == TpccEntry::kAcknowledged && entry.type == type) return entry;
    FAIL("the run was too short");
    return witness_.log_space(0)[0];
  }

  bench::TpccReport audit(bench::TpccPromises& promises) {
    bench::TpccFindings findings(tpcc_.options);
    findings.keep_payments_since(witness_.first_time_us());
    const Transaction snapshot = must(tpcc_.database->begin(AccessMode::kReadOnly));
    must(bench::read_tpcc(snapshot, tpcc_.tables, findings));
    bench::TpccReport report = findings.check();
    promises.audit(witness_, findings, report);
    return report;
  }
  bench::TpccReport audit() {
    bench::TpccPromises promises(tpcc_.options);
    return audit(promises);
  }

  TinyTpcc& tpcc() noexcept { return tpcc_; }
  bench::TpccWitness& witness() noexcept { return witness_; }

 private:
  static constexpr std::uint32_t kUsers = 2;

  std::string path_;
  TinyTpcc tpcc_;
  bench::TpccWitness witness_;
};

}  // namespace

TEST_CASE("every acknowledged transaction of TPC-C is found again, run after run", "[tpcc]") {
  PromisedRun run;
  bench::TpccPromises promises(run.tpcc().options);
  CHECK(run.audit(promises).all_held());
  CHECK(promises.audited() > 10);
  CHECK(promises.completed() == 0);
  run.witness().clear_logs();
  run.tpcc().run(2, 100, &run.witness());
  CHECK(run.audit(promises).all_held());
  CHECK(promises.lost() == 0);
}

TEST_CASE("a promise of TPC-C that was not kept is reported", "[tpcc]") {
  PromisedRun run;
  const auto breaks = [&run](TpccType type, const std::function<void(TpccEntry&)>& change) {
    TpccEntry& entry = run.entry(type);
    const TpccEntry kept = entry;
    change(entry);
    const bench::TpccReport report = run.audit();
    entry = kept;
    return report.state(TpccCondition::kAcknowledged) == bench::Check::kBroken;
  };
  CHECK(run.audit().all_held());
  CHECK(breaks(TpccType::kNewOrder, [](TpccEntry& entry) { ++entry.customer; }));
  CHECK(breaks(TpccType::kNewOrder, [](TpccEntry& entry) { ++entry.line_count; }));
  CHECK(breaks(TpccType::kNewOrder, [](TpccEntry& entry) { entry.order = 1'000'000; }));
  CHECK(breaks(TpccType::kPayment, [](TpccEntry& entry) { ++entry.amount; }));
  CHECK(breaks(TpccType::kPayment, [](TpccEntry& entry) { --entry.time_us; }));
  CHECK(breaks(TpccType::kDelivery, [](TpccEntry& entry) { ++entry.carrier; }));
  // Transactions that nobody made.
  for (const TpccType type : {TpccType::kNewOrder, TpccType::kPayment, TpccType::kDelivery})
    CHECK(breaks(type, [](TpccEntry& entry) { entry.type = TpccType::kStockLevel; }));
}

TEST_CASE("a transaction of TPC-C in flight is there wholly or not at all", "[tpcc]") {
  PromisedRun run;
  for (const TpccType type : {TpccType::kNewOrder, TpccType::kPayment, TpccType::kDelivery}) {
    TpccEntry& entry = run.entry(type);
    entry.state = TpccEntry::kBegun;
    bench::TpccPromises promises(run.tpcc().options);
    CHECK(run.audit(promises).all_held());
    CHECK(promises.completed() == 1);
    entry.state = TpccEntry::kAcknowledged;
  }
  // Begun and not there.
  TpccEntry& entry = run.witness().log_space(0)[run.witness().log(0).size()];
  entry = run.entry(TpccType::kPayment);
  entry.state = TpccEntry::kBegun;
  entry.time_us += 10'000'000;
  bench::TpccPromises promises(run.tpcc().options);
  CHECK(run.audit(promises).all_held());
  CHECK(promises.completed() == 0);
}

}  // namespace flugs::test
