#include "tools/support/tpcc_options.h"

#include <cstdint>
#include <map>

namespace flugs::tools {

namespace {

const std::map<std::string, bench::TpccMix> kTpccMixes = {{"full", bench::TpccMix::kFull},
                                                          {"new-order", bench::TpccMix::kNewOrder},
                                                          {"payment", bench::TpccMix::kPayment}};

}  // namespace

void add_tpcc_mix_option(CLI::App& command, bench::TpccMix& mix) {
  command
      .add_option_function<std::string>(
          "--mix", [&mix](const std::string& word) { mix = kTpccMixes.at(word); }, "Transactions")
      ->check(CLI::IsMember(kTpccMixes))
      ->default_str(to_string(mix));
}

std::string to_string(bench::TpccMix mix) {
  for (const auto& [word, known] : kTpccMixes)
    if (known == mix) return word;
  return "unknown";
}

void add_ch_population_options(CLI::App& command, bench::TpccOptions& population) {
  command.add_option("--warehouses", population.warehouses, "Size of the population")
      ->check(CLI::Range(1u, 1000u))
      ->capture_default_str();
  command
      .add_option(
          "--customers", population.customers_per_district,
          "Customers and orders of each district; any other number differs from CH-benCHmark")
      ->check(CLI::Range(10u, 3000u))
      ->capture_default_str();
  command
      .add_option("--items", population.items, "Items; any other number differs from CH-benCHmark")
      ->check(CLI::Range(100u, 100'000u))
      ->capture_default_str();
}

bench::ChPeriod ch_period(const bench::TpccOptions& population) {
  constexpr std::int64_t kDayUs = 86'400'000'000;
  return {.since_us = population.first_entry_us - kDayUs,
          .until_us = population.first_entry_us + 36'525 * kDayUs};
}

std::uint64_t tpcc_pool_bytes(const bench::TpccOptions& population) {
  // Ten warehouses took 1.1 GB after their history; this is twice that.
  constexpr std::uint64_t kBytesPerCustomer = 4'000;  // with an order, its lines, their versions
  constexpr std::uint64_t kBytesPerStock = 800;
  return kBytesPerCustomer * population.orders() +
         kBytesPerStock * population.items * population.warehouses + (std::uint64_t{512} << 20);
}

}  // namespace flugs::tools
