// A process of TATP through a crash (`flugs bench restart --figures`, 8a and 8b) with another
// engine: what `flugs crash-child` is for flugs, with the same population, draws, witness and
// audit.

#include <fmt/format.h>
#include <linux/magic.h>
#include <sched.h>
#include <sys/statfs.h>

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "bench/support/clock.h"
#include "bench/tatp/tatp_audit.h"
#include "bench/tatp/witness.h"
#include "tools/peers/restart/engine.h"
#include "tools/peers/restart/tatp_engine.h"
#include "tools/support/exit_status.h"
#include "tools/support/memory_group.h"

namespace flugs::tools {

Status for_each_row(
    const bench::Population& population, TatpTable table,
    const std::function<Status(const bench::SubscriberRecord&, const TatpRowId&)>& take) {
  for (std::uint32_t s_id = 1; s_id <= population.subscribers(); ++s_id) {
    const bench::SubscriberRecord record = population.subscriber(s_id);
    Status status;
    if (table == TatpTable::kSubscriber) status = take(record, {});
    for (std::uint32_t i = 0; i < bench::kTypesMax && status.ok(); ++i) {
      const bench::FacilityRecord& facility = record.facilities[i];
      if (table == TatpTable::kAccessInfo && record.access[i].present)
        status = take(record, {.type = i + 1});
      if (table == TatpTable::kSpecialFacility && facility.present)
        status = take(record, {.type = i + 1});
      if (table != TatpTable::kCallForwarding || !facility.present) continue;
      for (std::uint32_t slot = 0; slot < bench::kStartTimes.size() && status.ok(); ++slot)
        if (facility.forwarding[slot].present) status = take(record, {.type = i + 1, .slot = slot});
    }
    if (!status.ok()) return status;
  }
  return {};
}

namespace {

int could_not_run(const Status& status) {
  fmt::print(stderr, "flugs: {}\n", status.to_string());
  return kExitCouldNotRun;
}

template <std::size_t size>
void fill_text(const std::string& text, char (&out)[size]) {
  out[text.copy(out, size - 1)] = '\0';
}

/// As flugs names them: a tmpfs keeps what a process wrote, as memory does, and a file is synced.
const char* medium_of(const std::string& directory) {
  struct statfs system{};
  const bool is_known = statfs(directory.c_str(), &system) == 0;
  return is_known && system.f_type == TMPFS_MAGIC ? "tmpfs" : "file";
}

std::uint64_t bytes_in(const std::string& directory) {
  std::uint64_t bytes = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory, error))
    if (entry.is_regular_file(error)) bytes += entry.file_size(error);
  return bytes;
}

/// One user: a thread that issues one transaction after the other until the process is killed.
class TatpUser {
 public:
  TatpUser(bench::Witness& witness, std::uint32_t index)
      : log_(witness, index),
        status_(witness.user(index)),
        generator_(bench::Population(witness.plan().population), witness.plan().mix,
                   witness.plan().distribution,
                   bench::user_seed(witness.plan().run_seed(witness.life()), index)) {}

  Status run(TatpSession& session, const std::atomic<bool>& stopped) {
    bool answered = false;
    bench::TatpRequest request;
    while (!stopped.load(std::memory_order_relaxed)) {
      generator_.next(request);
      Status status = execute(session, request);
      if (!status.ok()) return status;
      status_.executed.fetch_add(1, std::memory_order_relaxed);
      if (!std::exchange(answered, true))
        status_.first_answer_ns.store(bench::monotonic_ns(), std::memory_order_relaxed);
    }
    return {};
  }

 private:
  Status execute(TatpSession& session, const bench::TatpRequest& request) {
    const bool is_logged = bench::writes(request.type);
    if (is_logged && log_.full())
      return Status(StatusCode::kOutOfSpace, "the witness's log is full");
    if (is_logged) log_.begin(request);
    Result<bench::TatpOutcome> outcome = session.run(request);
    while (outcome.code() == StatusCode::kConflict) {
      sched_yield();
      outcome = session.run(request);
    }
    if (!outcome.ok()) return std::move(outcome).status();
    if (is_logged && *outcome == bench::TatpOutcome::kDone) log_.acknowledge(session.stamp());
    if (is_logged && *outcome != bench::TatpOutcome::kDone) log_.forget();
    return {};
  }

  bench::WitnessLog log_;
  bench::UserStatus& status_;
  bench::TatpGenerator generator_;
};

class TatpChild {
 public:
  explicit TatpChild(bench::Witness& witness)
      : witness_(witness), status_(witness.status()), population_(witness.plan().population) {}

  int run(bool populate, bool check, bool run_users, std::uint64_t main_ns) {
    status_.main_ns.store(main_ns);
    status_.audited_entries.store(0);
    status_.lost_acknowledged.store(0);
    witness_.begin_life();
    status_.stage.store(bench::Stage::kOpening);
    if (*witness_.plan().memory_group != '\0') engine_->expect_little_memory();
    Status status = engine_->open(witness_.plan().pool_path, populate);
    if (!status.ok()) return could_not_run(status);
    publish_opening();
    if (populate) status = load();
    bool good = true;
    if (status.ok() && check) status = audit(good);
    if (!status.ok()) return could_not_run(status);
    if (!good) return kExitCheckFailed;
    if (run_users) return run_until_killed();
    status_.stage.store(bench::Stage::kDone);
    return kExitOk;
  }

 private:
  void publish_opening() {
    fill_text(medium_of(witness_.plan().pool_path), status_.medium);
    fill_text(engine_->guarantee(), status_.guarantee);
    fill_text(peer_engine_name(), status_.engine);
    fill_text(engine_->setup(), status_.setup);
    status_.opened_ns.store(bench::monotonic_ns());
  }

  Status load() {
    constexpr std::uint64_t kRowsPerSubscriber = 10;  // 9.75 on an average
    status_.stage.store(bench::Stage::kPopulating);
    status_.progress_total.store(kRowsPerSubscriber * population_.subscribers());
    const std::uint64_t begin = bench::monotonic_ns();
    Status status = engine_->load(population_, [this](std::uint64_t rows) {
      status_.progress_done.store(rows, std::memory_order_relaxed);
      status_.rows_loaded.store(rows, std::memory_order_relaxed);
    });
    status_.load_seconds.store(static_cast<double>(bench::monotonic_ns() - begin) * 1e-9);
    status_.pool_bytes.store(bytes_in(witness_.plan().pool_path));
    return status;
  }

  Status audit(bool& good) {
    status_.stage.store(bench::Stage::kChecking);
    for (std::uint32_t user = 0; user < witness_.plan().users; ++user)
      status_.audited_entries.fetch_add(witness_.log(user).size());
    bench::TatpFindings findings(population_);
    Status status = engine_->read_all(findings);
    if (!status.ok()) return status;
    const bench::InvariantReport report = findings.check(bench::TatpAudit(witness_));
    status_.lost_acknowledged.store(report.lost_acknowledged_count());
    for (std::size_t i = 0; i < bench::kInvariants; ++i)
      status_.invariants[i].store(static_cast<std::uint32_t>(report.state(i)));
    for (const std::string& problem : report.problems()) fmt::print(stderr, "flugs: {}\n", problem);
    good = report.all_held();
    return {};
  }

  int run_until_killed() {
    CommitStamps stamps(witness_.life());
    std::atomic<bool> failed{false};
    std::vector<Status> statuses(witness_.plan().users);
    std::vector<std::thread> threads;
    threads.reserve(statuses.size());
    status_.stage.store(bench::Stage::kRunning);
    for (std::uint32_t i = 0; i < statuses.size(); ++i)
      threads.emplace_back([&, i] {
        Result<std::unique_ptr<TatpSession>> session = engine_->session(stamps);
        statuses[i] =
            session.ok() ? TatpUser(witness_, i).run(**session, failed) : session.status();
        failed.store(true, std::memory_order_relaxed);
      });
    for (std::thread& thread : threads) thread.join();
    for (const Status& status : statuses)
      if (!status.ok())
        fmt::print(stderr, "flugs: a transaction failed that must not fail: {}\n",
                   status.to_string());
    return kExitCouldNotRun;
  }

  bench::Witness& witness_;
  bench::CrashStatus& status_;
  bench::Population population_;
  std::unique_ptr<TatpEngine> engine_ = make_tatp_engine();
};

}  // namespace

int run_tatp_child(const std::string& witness, bool populate, bool check, bool run,
                   std::uint64_t main_ns) {
  Result<bench::Witness> opened = bench::Witness::open(witness);
  if (!opened.ok()) return could_not_run(opened.status());
  if (const std::string group = opened->plan().memory_group; !group.empty())
    if (const Status s = MemoryGroup::join(group); !s.ok()) return could_not_run(s);
  return TatpChild(*opened).run(populate, check, run, main_ns);
}

}  // namespace flugs::tools
