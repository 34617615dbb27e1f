#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "tools/peers/tpcc/kv_tpcc.h"
#include "tools/peers/tpcc/tpcc_rows.h"

namespace flugs::tools {

/// The five programs, as bench/tpcc/tpcc_client.cc has them for flugs.
class KvTpccSession final : public bench::TpccSession {
 public:
  /// `payments`: rows of HISTORY so far, in all sessions; it has no key of its own.
  KvTpccSession(std::unique_ptr<TpccKvTransaction> transaction,
                std::atomic<std::uint64_t>& payments)
      : kv_(std::move(transaction)), payments_(payments) {}

  Result<bench::TpccOutcome> run(const bench::TpccRequest& request,
                                 bench::TpccReceipt& receipt) override;

 private:
  using Outcome = Result<bench::TpccOutcome>;

  Outcome new_order(const bench::TpccRequest& request, bench::TpccReceipt& receipt) override;
  Outcome payment(const bench::TpccRequest& request, bench::TpccReceipt& receipt) override;
  Outcome order_status(const bench::TpccRequest& request, bench::TpccReceipt& receipt) override;
  Outcome delivery(const bench::TpccRequest& request, bench::TpccReceipt& receipt) override;
  Outcome stock_level(const bench::TpccRequest& request, bench::TpccReceipt& receipt) override;

  template <typename V>
  Status read(TpccKvTable table, const TpccKey& key, V& value, bool to_replace = false);
  template <typename V>
  Status write_back(TpccKvTable table, const TpccKey& key, const V& value);
  Result<std::int64_t> enter_order(const bench::TpccRequest& request, bench::TpccReceipt& receipt);
  Result<std::int64_t> take_line(const bench::TpccRequest& request, std::uint32_t index,
                                 bench::TpccReceipt& receipt);
  Status take_stock(const bench::TpccRequest& request, const bench::TpccLine& line,
                    const ItemValue& item, LineValue& row, bench::TpccReceipt& receipt);
  Status find_customer(const bench::TpccRequest& request, std::uint32_t& c);
  Status deliver(const bench::TpccRequest& request, std::uint32_t d, bench::TpccReceipt& receipt);
  Status deliver_lines(const bench::TpccRequest& request, std::uint32_t d, std::uint32_t o,
                       std::int64_t& amount);

  std::unique_ptr<TpccKvTransaction> kv_;
  std::atomic<std::uint64_t>& payments_;
  CustomerValue customer_;
  StockValue stock_;
  std::array<char, bench::kCustomerDataMax + 100> data_{};
  std::vector<std::uint32_t> numbers_;
};

}  // namespace flugs::tools
