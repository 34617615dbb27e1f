#include "bench/tpcc/tpcc_request.h"

#include <algorithm>

#include "bench/tpcc/tpcc_random.h"

namespace flugs::bench {

TpccGenerator::TpccGenerator(const TpccOptions& population, TpccMix mix,
                             const TpccConstants& constants, std::uint64_t seed) noexcept
    : population_(population), mix_(mix), constants_(constants), random_(seed) {}

void TpccGenerator::next(TpccRequest& request) noexcept {
  constexpr std::array<std::uint32_t, kTpccTypes> kShares = {45, 88, 92, 96, 100};
  if (mix_ == TpccMix::kNewOrder) return draw(TpccType::kNewOrder, request);
  if (mix_ == TpccMix::kPayment) return draw(TpccType::kPayment, request);
  const std::uint32_t percent = random_.below(100);
  std::size_t type = 0;
  while (percent >= kShares[type]) ++type;
  draw(static_cast<TpccType>(type), request);
}

void TpccGenerator::draw(TpccType type, TpccRequest& request) noexcept {
  request.type = type;
  request.w = request.customer_w = w_;
  request.d = request.customer_d = any_district();
  switch (type) {
    case TpccType::kNewOrder:
      draw_order(request);
      break;
    case TpccType::kPayment:
      draw_payment(request);
      break;
    case TpccType::kOrderStatus:
      draw_customer(request);
      break;
    case TpccType::kDelivery:
      request.carrier = random_.between(1, 10);
      break;
    case TpccType::kStockLevel:
      request.d = d_;
      request.threshold = random_.between(10, 20);
      break;
  }
}

void TpccGenerator::draw_order(TpccRequest& request) noexcept {
  request.customer = customer_id();
  request.line_count = random_.between(5, kOrderLinesMax);
  for (TpccLine& line : std::span(request.all_lines).first(request.line_count)) {
    line.item = nurand(random_, 8191, constants_.item, 1, population_.items);
    const bool is_remote = population_.warehouses > 1 && random_.below(100) == 0;
    line.supply_warehouse = is_remote ? other_warehouse() : w_;
    line.quantity = random_.between(1, 10);
  }
  // One percent of the orders have an item that does not exist.
  request.has_unused_item = random_.below(100) == 0;
  if (request.has_unused_item)
    request.all_lines[request.line_count - 1].item = population_.items + 1;
}

void TpccGenerator::draw_payment(TpccRequest& request) noexcept {
  request.amount = random_.between(100, 500'000);
  if (population_.warehouses > 1 && random_.below(100) >= 85) {
    request.customer_w = other_warehouse();
    request.customer_d = any_district();
  }
  draw_customer(request);
}

void TpccGenerator::draw_customer(TpccRequest& request) noexcept {
  request.by_name = random_.below(100) < 60;
  // A district with fewer than 1000 customers has the first names only.
  const std::uint32_t names = std::min(population_.customers_per_district, 1000u);
  request.customer =
      request.by_name ? nurand(random_, 255, kNameConstantRun, 0, names - 1) : customer_id();
}

std::uint32_t TpccGenerator::customer_id() noexcept {
  return nurand(random_, 1023, constants_.customer, 1, population_.customers_per_district);
}

std::uint32_t TpccGenerator::other_warehouse() noexcept {
  const std::uint32_t other = random_.between(1, population_.warehouses - 1);
  return other < w_ ? other : other + 1;
}

}  // namespace flugs::bench
