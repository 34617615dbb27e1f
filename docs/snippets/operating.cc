// Code of docs/howto/operating.md.
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <stop_token>
#include <string>

#include "shop.h"

using namespace flugs;
using namespace std::chrono_literals;

namespace snippets {

namespace {

Status merge(Database& database) {
  FLUGS_ASSIGN(const Table orders, database.table("orders"));
  // --8<-- [start:merge]
  FLUGS_ASSIGN(const MergeReport report,
               database.merge(orders, {.scope = MergeScope::kEverything}));
  std::cout << report.rows << " rows, " << report.bytes_before
            << " bytes before, " << report.bytes_after << " after\n";
  // --8<-- [end:merge]
  // --8<-- [start:policy]
  MergePolicy policy;
  policy.automatic = true;   // the default
  policy.idle_percent = 30;  // only while 30 % of the processors is idle
  // Writes to a delta of 512 MiB fail with kBusy, after waiting for a merge
  // that is under way.
  policy.delta_bytes_max = std::uint64_t{512} << 20;
  policy.write_patience = 100ms;
  FLUGS_TRY(database.set_merge_policy(orders, policy));
  // --8<-- [end:policy]
  // --8<-- [start:merge_status]
  FLUGS_ASSIGN(const MergeStatus status, database.merge_status(orders));
  std::cout << status.delta_bytes << " bytes in the delta, "
            << status.main_bytes << " in main: " << status.reason << '\n';
  // --8<-- [end:merge_status]
  return database.set_merge_policy(orders, {});
}

void watch(const Database& database) {
  // --8<-- [start:medium]
  const Statistics now = database.statistics();
  std::cout << "medium " << now.medium << ": " << now.guarantee << '\n';
  // --8<-- [end:medium]
  // --8<-- [start:watch]
  const double used = static_cast<double>(now.pool_used_bytes) /
                      static_cast<double>(now.pool_reserved_bytes);
  if (used > 0.8) std::cout << used * 100 << " % of the pool is used\n";
  if (now.idle_ms_max > 60'000)
    std::cout << "a transaction has made no call for a minute\n";
  if (now.merge_failures > 0)
    std::cout << "merges have failed: see merge_status\n";
  // --8<-- [end:watch]
}

Status look_at_space(const Database& database) {
  // --8<-- [start:space]
  const Statistics pool = database.statistics();
  std::cout << pool.pool_used_bytes << " bytes used, " << pool.pool_left_bytes
            << " left for new rows\n";
  for (const TableId table : database.tables()) {
    FLUGS_ASSIGN(const TableStatistics space, database.table_statistics(table));
    FLUGS_ASSIGN(const MergeEstimate merge, database.estimate_merge(table));
    std::cout << space.name << ": " << space.pool_bytes << " bytes, about "
              << merge.bytes() << " of them dead; open transactions keep "
              << merge.bytes_kept() << " more\n";
  }
  // --8<-- [end:space]
  return {};
}

void look_at_opening(const Database& database) {
  // --8<-- [start:recovery]
  const RecoveryReport& report = database.recovery_report();
  for (const RecoveryReport::Phase& phase : report.phases)
    std::cout << phase.name << ": " << phase.duration_us << " us\n";
  std::cout << report.transactions_completed << " commits completed, "
            << report.transactions_undone << " transactions undone\n";
  // --8<-- [end:recovery]
}

// --8<-- [start:backup]
Status back_up(Database& database, const OpenOptions& options,
               const std::string& copy) {
  FLUGS_TRY(database.close());  // fails with kBusy while a transaction is open
  std::error_code failed;
  std::filesystem::copy_file(options.path, copy,
                             std::filesystem::copy_options::overwrite_existing,
                             failed);
  if (failed) return Status(StatusCode::kIoError, failed.message());
  FLUGS_ASSIGN(database, Database::open(options));
  return {};
}
// --8<-- [end:backup]

Status check(const std::string& path) {
  // --8<-- [start:check]
  PoolCheckOptions what;
  what.path = path;  // no process has it open for writing
  FLUGS_ASSIGN(const PoolCheckReport report, check_pool(what));
  for (const PoolFinding& finding : report.findings)
    if (finding.kind == PoolFinding::Kind::kDamage)
      std::cout << finding.message << '\n';
  // --8<-- [end:check]
  return expect(report.is_clean(), "a clean pool");
}

Status estimate(const OpenOptions& options) {
  // --8<-- [start:estimate]
  FLUGS_ASSIGN(const OpeningEstimate work, estimate_opening(options));
  std::cout << "opening takes some " << work.open_ms << " ms, indexes "
            << work.index_later_ms << " ms more, later\n";
  // --8<-- [end:estimate]
  return {};
}

Status look_only(const std::string& path) {
  // --8<-- [start:read_only]
  OpenOptions options;
  options.path = path;
  options.mode = OpenMode::kReadOnly;
  FLUGS_ASSIGN(const Database database, Database::open(options));
  // --8<-- [end:read_only]
  return expect(!database.tables().empty(), "tables");
}

Status forget() {
  // --8<-- [start:in_memory]
  OpenOptions options;
  options.in_memory = true;  // gone when the database is closed
  FLUGS_ASSIGN(const Database database, Database::open(options));
  // --8<-- [end:in_memory]
  return expect(database.tables().empty(), "a new database");
}

Status listen(const std::string& path) {
  // --8<-- [start:events]
  OpenOptions options;
  options.path = path;
  options.on_event = [](const Event& event) {
    std::cerr << event.table << ": " << event.text << '\n';
    if (!event.status.ok()) std::cerr << event.status.to_string() << '\n';
  };
  FLUGS_ASSIGN(const Database database, Database::open(options));
  // --8<-- [end:events]
  return expect(database.is_open(), "an open database");
}

}  // namespace

Status operating(Database& database) {
  FLUGS_TRY(merge(database));
  watch(database);
  FLUGS_TRY(look_at_space(database));
  look_at_opening(database);
  // --8<-- [start:verify]
  FLUGS_TRY(database.check());  // fails with kBusy if a transaction is open
  // --8<-- [end:verify]
  // --8<-- [start:progress]
  std::stop_source source;  // any thread may call source.request_stop()
  FLUGS_TRY(database.check({.progress =
                                [](const Progress& p) {
                                  std::cout << p.phase << ": " << p.done
                                            << " of " << p.total << '\n';
                                },
                            .stop = source.get_token()}));
  // --8<-- [end:progress]
  return {};
}

Status opening(const char* path) {
  // --8<-- [start:options]
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
  OpenOptions options;
  options.path = path;
  options.max_bytes = 256 * kMiB;    // it takes no more than this
  options.segment_bytes = 8 * kMiB;  // a small pool grows in small steps
  // --8<-- [end:options]
  FLUGS_TRY(estimate(options));
  // --8<-- [start:ready]
  // Or call Database::finish_opening later.
  options.ready = Ready::kIndexesBuilt;
  FLUGS_ASSIGN(Database database, Database::open(options));
  // --8<-- [end:ready]
  // --8<-- [start:grow]
  FLUGS_TRY(database.grow(512 * kMiB));  // durable when it returns ok
  // --8<-- [end:grow]
  options.max_bytes = 0;  // as the pool is
  const std::string copy = std::string(path) + ".copy";
  const Status copied = back_up(database, options, copy);
  std::filesystem::remove(copy);
  FLUGS_TRY(copied);
  // --8<-- [start:close]
  if (const Status closed = database.close();
      closed.code() == StatusCode::kBusy)
    std::cout << closed.to_string() << '\n';  // names the oldest
  // --8<-- [end:close]
  FLUGS_TRY(look_only(path));
  FLUGS_TRY(listen(path));
  FLUGS_TRY(forget());
  return check(path);
}

}  // namespace snippets
