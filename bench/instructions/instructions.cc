// The work that tools/instructions counts: TPC-C's transactions, TATP's mix, then single
// operations, on small populations in a new pool, one thread, the same work each time.
//     flugs_instructions POOL

#include <fmt/format.h>

#include <array>
#include <utility>

#include "bench/instructions/operations.h"
#include "bench/tatp/tatp_load.h"
#include "bench/tatp/tatp_transactions.h"
#include "bench/tpcc/tpcc_client.h"
#include "bench/tpcc/tpcc_load.h"
#include "flugs/database.h"

namespace {

using flugs::Database, flugs::Result, flugs::Status, flugs::StatusCode;
namespace bench = flugs::bench;

constexpr std::uint32_t kDecksOfTpcc = 40;
constexpr std::uint32_t kRequestsOfMix = 20'000;

Status run_tpcc(Database& database) {
  bench::TpccOptions options;
  options.customers_per_district = 100;
  options.items = 2'000;
  const Result<bench::TpccTables> tables = bench::create_tpcc_tables(database, options.warehouses);
  if (!tables.ok()) return tables.status();
  const Result<bench::TpccLoad> load = bench::load_tpcc(database, *tables, options);
  if (!load.ok()) return load.status();
  const auto client = bench::TpccClient::make(database, *tables);
  if (!client.ok()) return client.status();
  bench::TpccGenerator generator(options, bench::TpccMix::kFull, bench::TpccConstants(1), 1);
  bench::TpccRequest request;
  request.time_us = options.first_entry_us;
  // A deck of 23 transactions has the standard's shares.
  constexpr std::array<std::uint32_t, bench::kTpccTypes> kDeck = {10, 10, 1, 1, 1};
  for (std::uint32_t deck = 0; deck < kDecksOfTpcc; ++deck)
    for (std::size_t type = 0; type < kDeck.size(); ++type)
      for (std::uint32_t i = 0; i < kDeck[type]; ++i) {
        generator.draw(static_cast<bench::TpccType>(type), request);
        ++request.time_us;
        bench::TpccReceipt receipt;
        const auto outcome = (*client)->run(request, receipt);
        if (!outcome.ok()) return outcome.status();
      }
  return {};
}

/// Not inline, so that it can be told from what each type executes.
[[gnu::noinline]] void run_mix(bench::TatpClient& client, bench::TatpGenerator& mix) {
  bench::TatpRequest request;
  mix.next(request);
  client.run(request);
}

Status run_tatp(Database& database) {
  const Result<bench::TatpTables> tables = bench::create_tatp_tables(database);
  if (!tables.ok()) return tables.status();
  bench::PopulationOptions options;
  options.subscribers = 5'000;
  const bench::Population population(options);
  const Result<bench::LoadResult> load = bench::load_population(database, *tables, population, 1);
  if (!load.ok()) return load.status();
  bench::TatpClient client(database, *tables);
  bench::TatpGenerator mix(population, bench::TatpMix::kFull, bench::TatpDistribution::kNuRand, 1);
  for (std::uint32_t i = 0; i < kRequestsOfMix; ++i) run_mix(client, mix);
  return client.failure();
}

Status run(const char* path) {
  flugs::OpenOptions options;
  options.path = path;
  options.mode = flugs::OpenMode::kCreate;
  options.max_bytes = std::uint64_t{1} << 30;  // callgrind has no room for the default
  options.segment_bytes = std::uint64_t{16} << 20;
  options.merge_policy.automatic = false;  // what another thread executes depends on the clock
  Result<Database> database = Database::open(options);
  if (!database.ok()) return std::move(database).status();
  Status status = run_tpcc(*database);
  if (status.ok()) status = run_tatp(*database);
  if (status.ok()) status = bench::run_operations(*database);
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: flugs_instructions POOL\n");
    return 2;
  }
  const Status status = run(argv[1]);
  if (!status.ok()) fmt::print(stderr, "{}\n", status.to_string());
  return status.ok() ? 0 : 1;
}
