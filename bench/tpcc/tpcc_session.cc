#include "bench/tpcc/tpcc_session.h"

#include <algorithm>
#include <charconv>

namespace flugs::bench {

Result<TpccOutcome> TpccSession::execute(const TpccRequest& request, TpccReceipt& receipt) {
  switch (request.type) {
    case TpccType::kNewOrder:
      return new_order(request, receipt);
    case TpccType::kPayment:
      return payment(request, receipt);
    case TpccType::kOrderStatus:
      return order_status(request, receipt);
    case TpccType::kDelivery:
      return delivery(request, receipt);
    case TpccType::kStockLevel:
      return stock_level(request, receipt);
  }
  return Status(StatusCode::kInvalidArgument, "no such TPC-C transaction");
}

std::string_view bad_credit_data(const TpccRequest& request, std::uint32_t customer,
                                 std::string_view data, std::span<char> out) noexcept {
  char* end = out.data();
  for (const std::uint64_t number :
       {std::uint64_t{customer}, std::uint64_t{request.customer_d},
        std::uint64_t{request.customer_w}, std::uint64_t{request.d}, std::uint64_t{request.w},
        static_cast<std::uint64_t>(request.amount)}) {
    end = std::to_chars(end, out.data() + out.size(), number).ptr;
    *end++ = ' ';
  }
  const auto used = static_cast<std::size_t>(end - out.data());
  const std::size_t taken = std::min(data.size(), kCustomerDataMax - used);
  data.copy(end, taken);
  return {out.data(), used + taken};
}

}  // namespace flugs::bench
