#include "bench/tpcc/tpcc_promises.h"

#include <fmt/format.h>

#include <algorithm>

namespace flugs::bench {

namespace {

std::string described(const TpccEntry& entry) {
  switch (entry.type) {
    case TpccType::kNewOrder:
      return fmt::format("New-Order {}/{}/{} of customer {} at {}", entry.w, entry.d, entry.order,
                         entry.customer, entry.time_us);
    case TpccType::kPayment:
      return fmt::format("Payment of {} by customer {}/{}/{} in district {}/{} at {}", entry.amount,
                         entry.customer_w, entry.customer_d, entry.customer, entry.w, entry.d,
                         entry.time_us);
    default:
      return fmt::format("Delivery in warehouse {} by carrier {} at {}", entry.w, entry.carrier,
                         entry.time_us);
  }
}

}  // namespace

TpccPromises::TpccPromises(const TpccOptions& population)
    : warehouses_(population.warehouses),
      base_(std::size_t{population.warehouses} * kDistrictsPerWarehouse,
            {population.customers_per_district + 1, population.delivered_per_district() + 1}),
      base_payments_(population.orders()) {}

void TpccPromises::audit(const TpccWitness& witness, const TpccFindings& findings,
                         TpccReport& report) {
  report.check(TpccCondition::kAcknowledged);
  begin_audit(findings, report);
  // Those in flight may be what is left when the acknowledged ones have theirs.
  for (std::uint32_t user = 0; user < witness.plan().users; ++user)
    for (const TpccEntry& entry : witness.log(user))
      if (entry.state == TpccEntry::kAcknowledged) acknowledged(entry, findings, report);
  for (std::uint32_t user = 0; user < witness.plan().users; ++user)
    for (const TpccEntry& entry : witness.log(user))
      if (entry.state == TpccEntry::kBegun) in_flight(entry, findings, report);
  end_audit(findings, report);
}

void TpccPromises::begin_audit(const TpccFindings& findings, TpccReport& report) {
  payments_.clear();
  for (const TpccHistoryRow& row : findings.payments_kept()) payments_.emplace(row.date_us, row);
  now_.assign(base_.size(), District());
  claims_.assign(base_.size(), Claims());
  for (std::uint32_t w = 1; w <= warehouses_; ++w)
    for (std::uint32_t d = 1; d <= kDistrictsPerWarehouse; ++d) {
      const std::vector<TpccFindings::Order>& orders = findings.orders(w, d);
      const District& base = base_[place(w, d)];
      District& now = now_[place(w, d)];
      now.next = static_cast<std::uint32_t>(orders.size()) + 1;
      const auto open =
          std::find_if(orders.begin(), orders.end(),
                       [](const TpccFindings::Order& order) { return order.is_open; });
      now.open = static_cast<std::uint32_t>(open - orders.begin()) + 1;
      if (now.next < base.next || now.open < base.open) {
        ++lost_;
        report.broken(
            TpccCondition::kAcknowledged,
            fmt::format("district {}/{}: orders end before {}, the oldest open one is {}; "
                        "these were {} and {}",
                        w, d, now.next, now.open, base.next, base.open));
        now = base;
      }
      claims_[place(w, d)] = {std::vector<const TpccEntry*>(now.next - base.next, nullptr),
                              std::vector<const TpccEntry*>(now.open - base.open, nullptr)};
    }
}

void TpccPromises::lose(const TpccEntry& entry, TpccReport& report) {
  ++lost_;
  report.broken(TpccCondition::kAcknowledged, "lost: " + described(entry));
}

void TpccPromises::acknowledged(const TpccEntry& entry, const TpccFindings& findings,
                                TpccReport& report) {
  ++audited_;
  switch (entry.type) {
    case TpccType::kNewOrder:
      if (!claim_order(entry, entry.order, findings)) lose(entry, report);
      break;
    case TpccType::kPayment:
      if (!claim_payment(entry)) lose(entry, report);
      break;
    case TpccType::kDelivery:
      acknowledged_delivery(entry, findings, report);
      break;
    case TpccType::kOrderStatus:
    case TpccType::kStockLevel:
      break;
  }
}

void TpccPromises::acknowledged_delivery(const TpccEntry& entry, const TpccFindings& findings,
                                         TpccReport& report) {
  for (std::uint32_t d = 1; d <= kDistrictsPerWarehouse; ++d) {
    const std::uint32_t o = entry.delivered[d - 1];
    if (o != 0 && !claim_delivery(entry, d, o, findings)) return lose(entry, report);
  }
}

bool TpccPromises::claim_order(const TpccEntry& entry, std::uint32_t o,
                               const TpccFindings& findings) {
  std::vector<const TpccEntry*>& claims = claims_[place(entry.w, entry.d)].orders;
  const std::uint32_t index = o - base_[place(entry.w, entry.d)].next;
  if (index >= claims.size() || claims[index] != nullptr) return false;
  const TpccFindings::Order& order = findings.orders(entry.w, entry.d)[o - 1];
  if (!order.is_there || order.customer != entry.customer || order.entry_us != entry.time_us ||
      order.line_count != entry.line_count)
    return false;
  claims[index] = &entry;
  return true;
}

bool TpccPromises::claim_delivery(const TpccEntry& entry, std::uint32_t d, std::uint32_t o,
                                  const TpccFindings& findings) {
  std::vector<const TpccEntry*>& claims = claims_[place(entry.w, d)].deliveries;
  const std::uint32_t index = o - base_[place(entry.w, d)].open;
  if (index >= claims.size() || claims[index] != nullptr) return false;
  const TpccFindings::Order& order = findings.orders(entry.w, d)[o - 1];
  if (order.carrier != entry.carrier || order.delivery_us != entry.time_us) return false;
  claims[index] = &entry;
  return true;
}

bool TpccPromises::claim_payment(const TpccEntry& entry) {
  const auto [first, last] = payments_.equal_range(entry.time_us);
  const auto found = std::find_if(first, last, [&entry](const auto& payment) {
    const TpccHistoryRow& row = payment.second;
    return row.w == entry.w && row.d == entry.d && row.c_w == entry.customer_w &&
           row.c_d == entry.customer_d && row.amount == entry.amount &&
           (entry.customer == 0 || row.c == entry.customer);
  });
  if (found == last) return false;
  payments_.erase(found);
  ++base_payments_;
  return true;
}

void TpccPromises::in_flight(const TpccEntry& entry, const TpccFindings& findings,
                             TpccReport& report) {
  bool is_there = false;
  if (entry.type == TpccType::kNewOrder) is_there = order_in_flight(entry, findings);
  if (entry.type == TpccType::kPayment) is_there = claim_payment(entry);
  if (entry.type == TpccType::kDelivery) is_there = delivery_in_flight(entry, findings, report);
  completed_ += is_there ? 1 : 0;
}

bool TpccPromises::order_in_flight(const TpccEntry& entry, const TpccFindings& findings) {
  const District& now = now_[place(entry.w, entry.d)];
  for (std::uint32_t o = base_[place(entry.w, entry.d)].next; o < now.next; ++o)
    if (claim_order(entry, o, findings)) return true;
  return false;
}

bool TpccPromises::delivery_in_flight(const TpccEntry& entry, const TpccFindings& findings,
                                      TpccReport& report) {
  std::uint32_t found = 0;
  // Districts with an order that was open when this life began, and still is: a Delivery of this
  // life has one of theirs.
  std::uint32_t left_out = 0;
  for (std::uint32_t d = 1; d <= kDistrictsPerWarehouse; ++d) {
    const District& base = base_[place(entry.w, d)];
    const District& now = now_[place(entry.w, d)];
    bool is_found = false;
    for (std::uint32_t o = base.open; o < now.open && !is_found; ++o)
      is_found = claim_delivery(entry, d, o, findings);
    if (is_found)
      ++found;
    else if (now.open < base.next)
      ++left_out;
  }
  if (found != 0 && left_out != 0)
    report.broken(TpccCondition::kAcknowledged,
                  fmt::format("in flight, and there in part, {} districts without it: {}", left_out,
                              described(entry)));
  return found != 0;
}

void TpccPromises::end_audit(const TpccFindings& findings, TpccReport& report) {
  for (std::size_t i = 0; i < claims_.size(); ++i) {
    const auto orders = std::count(claims_[i].orders.begin(), claims_[i].orders.end(), nullptr);
    const auto deliveries =
        std::count(claims_[i].deliveries.begin(), claims_[i].deliveries.end(), nullptr);
    if (orders != 0 || deliveries != 0)
      report.broken(TpccCondition::kAcknowledged,
                    fmt::format("district {}/{}: {} orders and {} deliveries that no user made",
                                i / kDistrictsPerWarehouse + 1, i % kDistrictsPerWarehouse + 1,
                                orders, deliveries));
  }
  if (findings.payments() != base_payments_)
    report.broken(
        TpccCondition::kAcknowledged,
        fmt::format("history has {} payments, users made {}", findings.payments(), base_payments_));
  base_ = now_;
}

}  // namespace flugs::bench
