// The program of another engine in `flugs bench restart --figures`: does what `flugs restart-child`
// and `flugs crash-child` do, and takes the same arguments.
//
//   flugs-peer-ENGINE restart-child CONTROL [--load] [--under-load] --spawned-at NS
//   flugs-peer-ENGINE crash-child WITNESS [--populate] [--check] [--run] --spawned-at NS

#include <sys/prctl.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "bench/restart/restart_control.h"
#include "bench/restart/restart_writers.h"
#include "bench/support/clock.h"
#include "bench/support/random.h"
#include "tools/peers/restart/engine.h"
#include "tools/peers/restart/tatp_engine.h"
#include "tools/support/exit_status.h"

namespace flugs::tools {

namespace {

/// Rows of the bulk load that are looked up after the first answer.
constexpr std::uint64_t kSamples = 500;

/// Options of both commands.
struct PeerTask {
  bool is_tatp = false;
  std::string control;  ///< or witness
  bool load = false;
  bool under_load = false;
  bool populate = false;
  bool check = false;
  bool run = false;
  std::uint64_t spawned_at_ns = 0;
};

int exit_status_of(const Status& status) {
  if (status.ok()) return kExitOk;
  std::fprintf(stderr, "flugs: %s\n", status.to_string().c_str());
  return status.code() == StatusCode::kCorrupt ? kExitCheckFailed : kExitCouldNotRun;
}

template <std::size_t size>
void copy_text(const std::string& text, char (&out)[size]) {
  out[text.copy(out, size - 1)] = '\0';
}

PeerRow row_of(std::int64_t id, const bench::RestartRow& values) {
  PeerRow row{.id = id};
  for (std::size_t i = 0; i < values.size(); ++i)
    row.values[i] = static_cast<std::int32_t>(values[i].raw());
  return row;
}

/// One process of a restart benchmark.
class PeerChild {
 public:
  PeerChild(bench::RestartControl& control, PeerTask task)
      : control_(control),
        status_(control.status()),
        data_(control.plan().data()),
        task_(std::move(task)) {}

  Status run(std::uint64_t main_ns) {
    status_.times = bench::RestartTimes();
    status_.times.spawned_ns = task_.spawned_at_ns;
    status_.times.main_ns = main_ns;
    status_.transactions_under_load.store(0);
    ++status_.life;
    Status status = engine_->open(control_.plan().pool_path, task_.load);
    if (!status.ok()) return status;
    status_.times.opened_ns = bench::monotonic_ns();
    status = task_.load ? load() : probe();
    if (!status.ok()) return status;
    if (!task_.under_load) {
      status_.stage.store(bench::RestartStage::kDone);
      return {};
    }
    status_.stage.store(bench::RestartStage::kUnderLoad);
    return write();
  }

 private:
  Status load() {
    status_.stage.store(bench::RestartStage::kLoading);
    copy_text(peer_engine_name(), status_.engine);
    copy_text(engine_->setup(), status_.setup);
    copy_text(engine_->guarantee(), status_.guarantee);
    const std::uint64_t begin = bench::monotonic_ns();
    std::uint64_t next = 0;
    PeerRow row;
    Status status = engine_->load(control_.plan().rows, [&]() -> const PeerRow& {
      row = loaded_row(next++);
      if (next % 4096 == 0) status_.rows_loaded.store(next);
      return row;
    });
    status_.load_seconds = static_cast<double>(bench::monotonic_ns() - begin) * 1e-9;
    return status;
  }

  Status probe() {
    Result<std::unique_ptr<PeerSession>> session = engine_->session();
    if (!session.ok()) return std::move(session).status();
    const auto nth_row = [&](std::uint64_t number) {
      return loaded_row(number % control_.plan().rows);
    };
    Status status = expect(**session, nth_row(bench::mix64(status_.life)));
    status_.times.first_answer_ns = bench::monotonic_ns();
    status_.stage.store(bench::RestartStage::kProbing);
    for (std::uint64_t i = 0; i < kSamples && status.ok(); ++i)
      status = expect(**session, nth_row(bench::mix64(~i)));
    for (std::uint32_t writer = 0; writer < control_.plan().writers && status.ok(); ++writer)
      status = audit(**session, writer);
    return status;
  }

  static Status expect(PeerSession& session, const PeerRow& expected) {
    PeerRow found{.id = expected.id};
    Status status = session.find(found);
    const std::string id = std::to_string(expected.id);
    if (status.code() == StatusCode::kNotFound)
      return Status(StatusCode::kCorrupt, "wrong answer: row " + id + " does not exist");
    if (!status.ok() || found == expected) return status;
    return Status(StatusCode::kCorrupt, "wrong answer: row " + id + " has different values");
  }

  /// Checks that all that a writer of the life before was promised is there, and its transaction in
  /// flight completely or not at all.
  Status audit(PeerSession& session, std::uint32_t writer) {
    const std::uint32_t life = status_.life - 1;
    const std::span<const bench::RestartEntry> log = control_.log(writer);
    const auto is_begun = [&](std::uint64_t number) {
      return number < log.size() && log[number].life == life &&
             log[number].state != bench::RestartEntry::kNothing;
    };
    for (std::uint64_t number = 0; is_begun(number); ++number) {
      if (log[number].state != bench::RestartEntry::kAcknowledged)
        return audit_in_flight(session, life, writer, number);
      // The first row is left out when the next transaction, which changes it, was begun: as that
      // one left it it is looked at there.
      for (std::size_t slot = is_begun(number + 1) ? 1 : 0; slot < kRows; ++slot)
        if (Status s = expect(session, inserted_row(life, writer, number, slot)); !s.ok()) return s;
      if (number > 0)
        if (Status s = expect(session, changed_row(life, writer, number)); !s.ok()) return s;
      ++status_.times.acknowledged_checked;
    }
    return {};
  }

  Status audit_in_flight(PeerSession& session, std::uint32_t life, std::uint32_t writer,
                         std::uint64_t number) {
    std::size_t there = 0;
    for (std::size_t slot = 0; slot < kRows; ++slot) {
      Status status = expect(session, inserted_row(life, writer, number, slot));
      if (status.ok()) ++there;
      if (!status.ok() && status.code() != StatusCode::kCorrupt) return status;
    }
    if (there != 0 && there != kRows)
      return Status(StatusCode::kCorrupt, "wrong answer: a transaction is there in part");
    if (number == 0) return {};
    return expect(session, there != 0 ? changed_row(life, writer, number)
                                      : inserted_row(life, writer, number - 1, 0));
  }

  Status write() {
    return bench::write_until_killed(control_, [this](std::uint32_t writer) {
      Result<std::unique_ptr<PeerSession>> made = engine_->session();
      const Status status = made.status();
      const std::shared_ptr<PeerSession> session = made.ok() ? *std::move(made) : nullptr;
      return [this, writer, status, session](std::uint64_t number, bench::RestartEntry&) {
        return status.ok() ? transact(*session, writer, number) : status;
      };
    });
  }

  Status transact(PeerSession& session, std::uint32_t writer, std::uint64_t number) const {
    std::array<PeerRow, kRows> rows;
    for (std::size_t slot = 0; slot < kRows; ++slot)
      rows[slot] = inserted_row(status_.life, writer, number, slot);
    if (number == 0) return session.write(rows, nullptr);
    const PeerRow changed = changed_row(status_.life, writer, number);
    return session.write(rows, &changed);
  }

  PeerRow loaded_row(std::uint64_t number) const {
    bench::RestartRow row;
    data_.row(number, row);
    return row_of(bench::RestartData::id(number).raw(), row);
  }
  PeerRow inserted_row(std::uint32_t life, std::uint32_t writer, std::uint64_t number,
                       std::size_t slot) const {
    const std::uint64_t serial = bench::restart_serial(life, writer, number, slot);
    bench::RestartRow row;
    data_.load_row(serial, row);
    return row_of(bench::RestartData::load_id(serial).raw(), row);
  }
  /// The first row of the writer's transaction before, as transaction `number` leaves it.
  PeerRow changed_row(std::uint32_t life, std::uint32_t writer, std::uint64_t number) const {
    PeerRow row = inserted_row(life, writer, number - 1, 0);
    const std::uint64_t serial = bench::restart_serial(life, writer, number, kRows);
    row.values[1] = static_cast<std::int32_t>(data_.integer(1, data_.load_ordinal(1, serial)));
    return row;
  }

  static constexpr std::size_t kRows = bench::RestartEntry::kRows;

  bench::RestartControl& control_;
  bench::RestartStatus& status_;
  bench::RestartData data_;
  PeerTask task_;
  std::unique_ptr<PeerEngine> engine_ = make_peer_engine();
};

/// False: that is no command line of ours.
bool parse(std::span<char*> arguments, PeerTask& task) {
  if (arguments.size() < 3) return false;
  const std::string_view command = arguments[1];
  task.is_tatp = command == "crash-child";
  if (!task.is_tatp && command != "restart-child") return false;
  task.control = arguments[2];
  struct Flag {
    std::string_view name;
    bool of_tatp;
    bool& value;
  };
  const Flag flags[] = {{"--load", false, task.load},
                        {"--under-load", false, task.under_load},
                        {"--populate", true, task.populate},
                        {"--check", true, task.check},
                        {"--run", true, task.run}};
  for (std::size_t i = 3; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    const auto flag = std::find_if(std::begin(flags), std::end(flags), [&](const Flag& known) {
      return known.name == argument && known.of_tatp == task.is_tatp;
    });
    if (flag != std::end(flags)) {
      flag->value = true;
    } else if (argument == "--spawned-at" && i + 1 < arguments.size()) {
      task.spawned_at_ns = std::strtoull(arguments[++i], nullptr, 10);
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace

}  // namespace flugs::tools

int main(int argc, char** argv) {
  const std::uint64_t main_ns = flugs::bench::monotonic_ns();
  flugs::tools::PeerTask task;
  if (!flugs::tools::parse({argv, static_cast<std::size_t>(argc)}, task)) {
    std::fprintf(stderr, "usage: see tools/peers/restart/peer.cc\n");
    return flugs::tools::kExitCouldNotRun;
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (task.is_tatp)
    return flugs::tools::run_tatp_child(task.control, task.populate, task.check, task.run, main_ns);
  flugs::Result<flugs::bench::RestartControl> control =
      flugs::bench::RestartControl::open(task.control);
  if (!control.ok()) return flugs::tools::exit_status_of(control.status());
  return flugs::tools::exit_status_of(flugs::tools::PeerChild(*control, task).run(main_ns));
}
