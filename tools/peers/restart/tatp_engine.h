#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "bench/tatp/tatp_findings.h"
#include "bench/tatp/tatp_population.h"
#include "bench/tatp/tatp_request.h"
#include "bench/tatp/tatp_transactions.h"
#include "flugs/status.h"

namespace flugs::tools {

enum class TatpTable : std::uint8_t {
  kSubscriber,
  kAccessInfo,
  kSpecialFacility,
  kCallForwarding,
};
inline constexpr TatpTable kTatpTables[] = {TatpTable::kSubscriber, TatpTable::kAccessInfo,
                                            TatpTable::kSpecialFacility,
                                            TatpTable::kCallForwarding};

/// Which row of a subscriber: a type from 1, and of CALL_FORWARDING the start time's place.
struct TatpRowId {
  std::uint32_t type = 0;
  std::uint32_t slot = 0;
};

/// Gives all rows that the population has in a table, by ascending key, until one is not taken.
/// Fails as `take`.
Status for_each_row(
    const bench::Population& population, TatpTable table,
    const std::function<Status(const bench::SubscriberRecord&, const TatpRowId&)>& take);

/// Numbers for the audit, which the commits of one row must have in their order: drawn when no
/// other transaction can change any more what this one has changed, and before it commits.
///
/// Thread-safety: any thread.
class CommitStamps {
 public:
  /// Stamps of a later life are above those of an earlier one.
  explicit CommitStamps(std::uint32_t life) noexcept : last_(std::uint64_t{life} << 40) {}
  std::uint64_t draw() noexcept { return last_.fetch_add(1, std::memory_order_relaxed) + 1; }

 private:
  std::atomic<std::uint64_t> last_;
};

/// One user of TATP.
class TatpSession {
 public:
  virtual ~TatpSession() = default;

  /// One transaction, from begin to commit. Durable when: it returns kDone, as far as `guarantee`
  /// says. Fails with kConflict: another was there first, nothing was changed; kIoError.
  virtual Result<bench::TatpOutcome> run(const bench::TatpRequest& request) = 0;
  /// Stamp of the last transaction that was kDone and wrote something.
  virtual std::uint64_t stamp() const = 0;
};

/// TATP in another engine, see PeerEngine.
class TatpEngine {
 public:
  using Progress = std::function<void(std::uint64_t done)>;

  virtual ~TatpEngine() = default;

  /// How it is set up, and what a commit guarantees; for the report.
  virtual std::string setup() const = 0;
  virtual std::string guarantee() const = 0;

  /// Before open: the database will be larger than memory, so the engine is set up for that, if
  /// it knows a way.
  virtual void expect_little_memory() {}
  /// Opens what is in a directory, or makes it with empty tables. Fails with kIoError.
  virtual Status open(const std::string& directory, bool create) = 0;
  /// Loads the population into the empty tables and leaves no log behind; tells the rows loaded.
  /// Fails with kIoError.
  virtual Status load(const bench::Population& population, const Progress& progress) = 0;
  /// Thread-safety: any thread. Fails with kIoError.
  virtual Result<std::unique_ptr<TatpSession>> session(CommitStamps& stamps) = 0;
  /// Reads all rows, for the audit; no other thread is at work. Fails with kIoError.
  virtual Status read_all(bench::TatpFindings& findings) = 0;
};

/// The engine of this program.
std::unique_ptr<TatpEngine> make_tatp_engine();

/// The process that `flugs crash-child` is for flugs, with its arguments; gives the exit status.
/// `main_ns` is when main was entered.
int run_tatp_child(const std::string& witness, bool populate, bool check, bool run,
                   std::uint64_t main_ns);

}  // namespace flugs::tools
