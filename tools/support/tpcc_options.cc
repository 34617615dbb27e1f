#include "tools/support/tpcc_options.h"

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

std::uint64_t tpcc_pool_bytes(const bench::TpccOptions& population) {
  // Ten warehouses took 1.1 GB after their history; this is twice that.
  constexpr std::uint64_t kBytesPerCustomer = 4'000;  // with an order, its lines, their versions
  constexpr std::uint64_t kBytesPerStock = 800;
  return kBytesPerCustomer * population.orders() +
         kBytesPerStock * population.items * population.warehouses + (std::uint64_t{512} << 20);
}

}  // namespace flugs::tools
