#include "bench/tpcc/tpcc_history.h"

#include <memory>

#include "bench/support/clock.h"
#include "bench/tpcc/tpcc_client.h"
#include "flugs/try.h"

namespace flugs::bench {

namespace {

constexpr std::uint32_t kTransactionsPerRound = 21;

/// Executes transactions one after the other.
class TpccTerminal {
 public:
  TpccTerminal(TpccClient& client, const TpccOptions& population, std::uint64_t seed)
      : client_(client), generator_(population, TpccMix::kFull, TpccConstants(seed), mix64(seed)) {
    done_.last_us =
        population.first_entry_us + kEntryStepUs * static_cast<std::int64_t>(population.orders());
  }

  Status execute(TpccType type, std::uint32_t w) {
    TpccRequest request;
    generator_.set_home(w, 1);
    generator_.draw(type, request);
    done_.last_us += kEntryStepUs;
    request.time_us = done_.last_us;
    TpccReceipt receipt;
    FLUGS_ASSIGN(const TpccOutcome outcome, client_.run(request, receipt));
    switch (type) {
      case TpccType::kNewOrder:
        ++(outcome == TpccOutcome::kDone ? done_.orders_entered : done_.orders_rolled_back);
        break;
      case TpccType::kPayment:
        ++done_.payments;
        break;
      case TpccType::kDelivery:
        done_.orders_delivered += kDistrictsPerWarehouse - receipt.skipped;
        break;
      case TpccType::kOrderStatus:
      case TpccType::kStockLevel:
        break;
    }
    return {};
  }
  TpccHistory& done() noexcept { return done_; }

 private:
  TpccClient& client_;
  TpccGenerator generator_;
  TpccHistory done_;
};

}  // namespace

Result<TpccHistory> run_tpcc_history(
    Database& database, const TpccTables& tables, const TpccOptions& population,
    const TpccHistoryOptions& options,
    const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  const std::uint64_t begin = monotonic_ns();
  FLUGS_ASSIGN(const std::unique_ptr<TpccClient> client, TpccClient::make(database, tables));
  TpccTerminal terminal(*client, population, options.seed);
  const std::uint64_t rounds = std::uint64_t{options.rounds} * population.warehouses;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const auto w = static_cast<std::uint32_t>(round % population.warehouses + 1);
    for (int i = 0; i < 10; ++i) {
      FLUGS_TRY(terminal.execute(TpccType::kNewOrder, w));
      FLUGS_TRY(terminal.execute(TpccType::kPayment, w));
    }
    FLUGS_TRY(terminal.execute(TpccType::kDelivery, w));
    if (progress) progress(round * kTransactionsPerRound, rounds * kTransactionsPerRound);
  }
  terminal.done().seconds = static_cast<double>(monotonic_ns() - begin) * 1e-9;
  return terminal.done();
}

}  // namespace flugs::bench
