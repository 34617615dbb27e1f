#include "bench/tatp/tatp_invariants.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "bench/tatp/tatp_audit.h"
#include "bench/tatp/tatp_reader.h"

namespace flugs::bench {

namespace {

constexpr std::uint32_t kSubscribersPerStep = 1000;

/// Rows of the population or the database, table by table.
struct RowCounts {
  std::uint64_t subscribers = 0;
  std::uint64_t access_info = 0;
  std::uint64_t facilities = 0;
  std::uint64_t forwarding = 0;

  void add(const SubscriberRecord& record) {
    ++subscribers;
    for (const AccessInfoRecord& access : record.access) access_info += access.present ? 1 : 0;
    for (const FacilityRecord& facility : record.facilities) {
      facilities += facility.present ? 1 : 0;
      for (const ForwardingRecord& row : facility.forwarding) forwarding += row.present ? 1 : 0;
    }
  }
  void add(const RowCounts& other) {
    subscribers += other.subscribers;
    access_info += other.access_info;
    facilities += other.facilities;
    forwarding += other.forwarding;
  }
};

Result<std::uint64_t> count_rows(const Transaction& transaction, TableId table) {
  std::uint64_t rows = 0;
  Status status = transaction.scan(table, {ColumnId{0}}, [&rows](const ScanBatch& batch) {
    rows += batch.row_count();
    return true;
  });
  if (!status.ok()) return status;
  return rows;
}

/// The check, shared by its threads; each takes the next thousand subscribers.
class Checker {
 public:
  Checker(Database& database, const TatpTables& tables, const Population& population,
          const InvariantOptions& options)
      : database_(database), tables_(tables), population_(population), options_(options) {
    if (options.witness != nullptr) audit_.emplace(*options.witness);
  }

  /// One thread's share of everything.
  struct Share {
    InvariantReport report;
    RowCounts expected;
    RowCounts found;
    std::uint64_t base_forwarding = 0;  ///< before the witness's logs
    Status status;
  };

  void run(Share& share) {
    share.status = check_subscribers(share);
    if (!share.status.ok()) failed_.store(true, std::memory_order_relaxed);
  }

  std::uint64_t done() const noexcept {
    return std::min<std::uint64_t>(next_.load(std::memory_order_relaxed),
                                   population_.subscribers());
  }

  /// What needs the whole: counts, and the witness's time-stamps.
  Status finish(Share& total) {
    Result<Transaction> transaction = database_.begin(AccessMode::kReadOnly);
    if (!transaction.ok()) return transaction.status();
    InvariantReport& report = total.report;
    const std::array<std::pair<TableId, std::uint64_t>, 3> constant = {
        std::pair{tables_.subscriber, total.expected.subscribers},
        std::pair{tables_.access_info, total.expected.access_info},
        std::pair{tables_.special_facility, total.expected.facilities}};
    for (const auto& [table, wanted] : constant) {
      const Result<std::uint64_t> rows = count_rows(*transaction, table);
      if (!rows.ok()) return rows.status();
      if (rows.value() != wanted)
        report.broken(Invariant::kPopulation, fmt::format("table {} has {} rows instead of {}",
                                                          table.value(), rows.value(), wanted));
    }
    const Result<std::uint64_t> forwarding = count_rows(*transaction, tables_.call_forwarding);
    if (!forwarding.ok()) return forwarding.status();
    if (forwarding.value() != total.found.forwarding)
      report.broken(Invariant::kParents,
                    fmt::format("call_forwarding has {} rows, {} have a parent and a key",
                                forwarding.value(), total.found.forwarding));
    if (options_.forwarding_rows) {
      report.check(Invariant::kCount);
      if (forwarding.value() != *options_.forwarding_rows)
        report.broken(Invariant::kCount,
                      fmt::format("call_forwarding has {} rows instead of {}", forwarding.value(),
                                  *options_.forwarding_rows));
    }
    if (audit_) {
      audit_->check_count(total.base_forwarding, forwarding.value(), report);
      audit_->check_timestamps(report);
    }
    return {};
  }

 private:
  Status check_subscribers(Share& share) {
    for (const Invariant invariant :
         {Invariant::kPopulation, Invariant::kNumbers, Invariant::kDomains, Invariant::kParents})
      share.report.check(invariant);
    if (population_.options().parity) share.report.check(Invariant::kAtomicity);
    if (audit_) {
      share.report.check(Invariant::kSlots);
      share.report.check(Invariant::kAcknowledged);
    }
    Result<Transaction> transaction = database_.begin(AccessMode::kReadOnly);
    if (!transaction.ok()) return transaction.status();
    while (!failed_.load(std::memory_order_relaxed)) {
      const std::uint32_t begin = next_.fetch_add(kSubscribersPerStep);
      if (begin >= population_.subscribers()) break;
      const std::uint32_t end = std::min(begin + kSubscribersPerStep, population_.subscribers());
      for (std::uint32_t s_id = begin + 1; s_id <= end; ++s_id) {
        Status status = check_subscriber(*transaction, s_id, share);
        if (!status.ok()) return status;
      }
    }
    return {};
  }

  Status check_subscriber(const Transaction& transaction, std::uint32_t s_id, Share& share) {
    const SubscriberRecord expected = population_.subscriber(s_id);
    share.expected.add(expected);
    const Result<std::optional<SubscriberRecord>> actual =
        read_subscriber(transaction, tables_, population_, s_id, share.report);
    if (!actual.ok()) return actual.status();
    const SubscriberRecord found = actual.value().value_or(SubscriberRecord());
    if (actual.value()) {
      share.found.add(found);
      check_constant_columns(expected, found, share.report);
    }
    if (options_.witness == nullptr) return {};
    Witness& witness = *options_.witness;
    const TatpState base = witness.base_life() == 0 ? TatpState(expected) : witness.base(s_id);
    const TatpState state(found);
    share.base_forwarding += base.forwarding_rows();
    audit_->check_subscriber(s_id, base, state, share.report);
    if (options_.store_next_base) witness.store_next_base(s_id, state);
    return {};
  }

  Database& database_;
  const TatpTables& tables_;
  const Population& population_;
  const InvariantOptions& options_;
  std::optional<TatpAudit> audit_;
  std::atomic<std::uint32_t> next_{0};
  std::atomic<bool> failed_{false};
};

}  // namespace

Result<InvariantReport> check_tatp(Database& database, const TatpTables& tables,
                                   const Population& population, const InvariantOptions& options) {
  Checker checker(database, tables, population, options);
  std::vector<Checker::Share> shares(options.threads);
  std::atomic<unsigned> running{options.threads};
  std::vector<std::thread> threads;
  threads.reserve(shares.size());
  for (Checker::Share& share : shares)
    threads.emplace_back([&] {
      checker.run(share);
      running.fetch_sub(1, std::memory_order_release);
    });
  while (running.load(std::memory_order_acquire) > 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (options.progress) options.progress(checker.done(), population.subscribers());
  }
  for (std::thread& thread : threads) thread.join();

  Checker::Share total;
  for (const Checker::Share& share : shares) {
    if (!share.status.ok()) return share.status;
    total.report.merge(share.report);
    total.expected.add(share.expected);
    total.found.add(share.found);
    total.base_forwarding += share.base_forwarding;
  }
  Status status = checker.finish(total);
  if (!status.ok()) return status;
  return total.report;
}

}  // namespace flugs::bench
