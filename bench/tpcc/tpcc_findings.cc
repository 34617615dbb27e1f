#include "bench/tpcc/tpcc_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

namespace flugs::bench {

namespace {

/// Far beyond what a run enters; a number above is damage, and must not take memory.
constexpr std::uint32_t kOrdersPerDistrictMax = 1u << 24;

std::string name_of(const TpccOrderId& id) {
  return fmt::format("order {}/{}/{}", id.w, id.d, id.o);
}

}  // namespace

void TpccReport::check(TpccCondition condition) noexcept {
  Check& state = states_[static_cast<std::size_t>(condition)];
  if (state == Check::kNotChecked) state = Check::kHeld;
}

void TpccReport::broken(TpccCondition condition, const std::string& problem) {
  states_[static_cast<std::size_t>(condition)] = Check::kBroken;
  if (problems_.size() < kProblemsMax)
    problems_.push_back(fmt::format(
        "condition {}: {}", kTpccConditionNames[static_cast<std::size_t>(condition)], problem));
}

bool TpccReport::all_held() const noexcept {
  return std::none_of(states_.begin(), states_.end(),
                      [](Check state) { return state == Check::kBroken; });
}

std::string TpccReport::describe() const {
  std::string text;
  for (const auto& [state, words] :
       {std::pair{Check::kHeld, "held"}, std::pair{Check::kBroken, "BROKEN"},
        std::pair{Check::kNotChecked, "not checked"}}) {
    std::string names;
    for (std::size_t i = 0; i < states_.size(); ++i)
      if (states_[i] == state) names += fmt::format("{} ", kTpccConditionNames[i]);
    if (!names.empty()) text += fmt::format("{}{}{}", text.empty() ? "" : "; ", names, words);
  }
  return text;
}

TpccFindings::TpccFindings(const TpccOptions& population) : population_(population) {
  const std::size_t districts = std::size_t{population.warehouses} * kDistrictsPerWarehouse;
  prices_.resize(population.items);
  warehouses_.resize(population.warehouses);
  districts_.resize(districts);
  customers_.resize(districts * population.customers_per_district);
  stocks_.resize(std::size_t{population.warehouses} * population.items);
}

const TpccFindings::District* TpccFindings::district_of(std::uint32_t w,
                                                        std::uint32_t d) const noexcept {
  if (w - 1 >= population_.warehouses || d - 1 >= kDistrictsPerWarehouse) return nullptr;
  return &districts_[std::size_t{w - 1} * kDistrictsPerWarehouse + d - 1];
}
TpccFindings::District* TpccFindings::district_of(std::uint32_t w, std::uint32_t d) noexcept {
  return const_cast<District*>(std::as_const(*this).district_of(w, d));
}

TpccFindings::Customer* TpccFindings::customer_of(std::uint32_t w, std::uint32_t d,
                                                  std::uint32_t c) noexcept {
  const District* district = district_of(w, d);
  if (district == nullptr || c - 1 >= population_.customers_per_district) return nullptr;
  const auto place = static_cast<std::size_t>(district - districts_.data());
  return &customers_[place * population_.customers_per_district + c - 1];
}

TpccFindings::Stock* TpccFindings::stock_of(std::uint32_t w, std::uint32_t i) noexcept {
  if (w - 1 >= population_.warehouses || i - 1 >= population_.items) return nullptr;
  return &stocks_[std::size_t{w - 1} * population_.items + i - 1];
}

/// Null: there can be no such order, which is noted.
TpccFindings::Order* TpccFindings::order_of(const TpccOrderId& id) {
  District* district = district_of(id.w, id.d);
  if (district == nullptr || id.o < 1 || id.o >= district->next || id.o > kOrdersPerDistrictMax) {
    report_.broken(TpccCondition::kE6,
                   fmt::format("{} is not below its district's d_next_o_id", name_of(id)));
    return nullptr;
  }
  if (district->orders.size() < id.o) district->orders.resize(id.o);
  return &district->orders[id.o - 1];
}

void TpccFindings::item(std::uint32_t i, std::int64_t price) {
  if (i - 1 >= prices_.size() || prices_[i - 1] != 0 || price <= 0)
    return report_.broken(TpccCondition::kRows, fmt::format("item {} with the price {}", i, price));
  prices_[i - 1] = price;
}

void TpccFindings::warehouse(std::uint32_t w, std::int64_t ytd) {
  if (w - 1 >= warehouses_.size())
    return report_.broken(TpccCondition::kRows, fmt::format("there is a warehouse {}", w));
  ++warehouses_[w - 1].rows;
  warehouses_[w - 1].ytd = ytd;
}

void TpccFindings::district(std::uint32_t w, std::uint32_t d, std::int64_t ytd,
                            std::int64_t next_order) {
  District* district = district_of(w, d);
  if (district == nullptr)
    return report_.broken(TpccCondition::kRows, fmt::format("there is a district {}/{}", w, d));
  ++district->rows;
  district->ytd = ytd;
  district->next = next_order;
  warehouses_[w - 1].districts_ytd += ytd;
}

void TpccFindings::stock(const TpccStockRow& row) {
  Stock* stock = stock_of(row.w, row.i);
  if (stock == nullptr)
    return report_.broken(TpccCondition::kRows,
                          fmt::format("there is a stock {}/{}", row.w, row.i));
  ++stock->rows;
  stock->row = row;
}

void TpccFindings::customer(const TpccCustomerRow& row) {
  Customer* customer = customer_of(row.w, row.d, row.c);
  if (customer == nullptr)
    return report_.broken(TpccCondition::kRows,
                          fmt::format("there is a customer {}/{}/{}", row.w, row.d, row.c));
  ++customer->rows;
  customer->balance = row.balance;
  customer->ytd_payment = row.ytd_payment;
  customer->payments = row.payments;
  customer->deliveries = row.deliveries;
}

void TpccFindings::history(const TpccHistoryRow& row) {
  ++payments_;
  if (row.date_us >= keep_since_us_) payments_kept_.push_back(row);
  District* district = district_of(row.w, row.d);
  Customer* customer = customer_of(row.c_w, row.c_d, row.c);
  if (district == nullptr || customer == nullptr)
    return report_.broken(TpccCondition::kRows,
                          fmt::format("a payment of customer {}/{}/{} in district {}/{}", row.c_w,
                                      row.c_d, row.c, row.w, row.d));
  warehouses_[row.w - 1].paid += row.amount;
  district->paid += row.amount;
  customer->paid += row.amount;
  ++customer->payments_found;
}

void TpccFindings::order(const TpccOrderRow& row) {
  Order* order = order_of(row.id);
  if (order == nullptr) return;
  if (order->is_there) report_.broken(TpccCondition::kRows, name_of(row.id) + " is there twice");
  order->is_there = true;
  order->customer = row.c;
  order->entry_us = row.entry_us;
  order->carrier = static_cast<std::uint8_t>(std::min(row.carrier, 255u));
  order->line_count = static_cast<std::uint8_t>(std::min(row.line_count, 255u));
  order->all_local = row.all_local;
}

void TpccFindings::new_order(const TpccOrderId& id) {
  Order* order = order_of(id);
  if (order == nullptr) return;
  if (order->is_open) report_.broken(TpccCondition::kRows, name_of(id) + " is open twice");
  order->is_open = true;
}

void TpccFindings::order_line(const TpccLineRow& row) {
  if (District* district = district_of(row.id.w, row.id.d)) ++district->lines;
  Order* order = order_of(row.id);
  if (order == nullptr) return;
  ++order->lines;
  order->numbers |= row.number < 32 ? 1u << row.number : 1u;
  order->has_remote_line |= row.supply_w != row.id.w;
  if (row.is_delivered) {
    ++order->lines_delivered;
    order->amount += row.amount;
    order->delivery_us = row.delivery_us;
  }
  Stock* stock = stock_of(row.supply_w, row.item);
  if (stock == nullptr)
    return report_.broken(
        TpccCondition::kRows,
        fmt::format("{} has a line of stock {}/{}", name_of(row.id), row.supply_w, row.item));
  if (row.id.o <= population_.customers_per_district) return;  // as loaded
  stock->quantity += row.quantity;
  ++stock->orders;
  if (row.supply_w != row.id.w) ++stock->remote;
  const std::int64_t amount = row.quantity * prices_[row.item - 1];
  if (row.amount != amount)
    report_.broken(TpccCondition::kE9,
                   fmt::format("{}, line {}: ol_amount is {}, {} times the price is {}",
                               name_of(row.id), row.number, row.amount, row.quantity, amount));
}

TpccReport TpccFindings::check() {
  for (std::size_t i = 0; i < kTpccConditionNames.size(); ++i)
    if (i < static_cast<std::size_t>(TpccCondition::kE10))
      report_.check(static_cast<TpccCondition>(i));
  check_rows();
  check_warehouses();
  for (std::uint32_t w = 1; w <= population_.warehouses; ++w)
    for (std::uint32_t d = 1; d <= kDistrictsPerWarehouse; ++d)
      check_district(w, d, *district_of(w, d));
  check_customers();
  check_stocks();
  return report_;
}

void TpccFindings::check_rows() {
  const auto once = [this](const auto& rows, const char* what) {
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (rows[i].rows != 1)
        report_.broken(TpccCondition::kRows,
                       fmt::format("{} number {} has {} rows", what, i + 1, rows[i].rows));
  };
  once(warehouses_, "warehouse");
  once(districts_, "district");
  once(customers_, "customer");
  once(stocks_, "stock");
  for (std::size_t i = 0; i < prices_.size(); ++i)
    if (prices_[i] == 0)
      report_.broken(TpccCondition::kRows, fmt::format("item {} is missing", i + 1));
}

void TpccFindings::check_warehouses() {
  for (std::size_t i = 0; i < warehouses_.size(); ++i) {
    const Warehouse& warehouse = warehouses_[i];
    if (warehouse.ytd != warehouse.districts_ytd)
      report_.broken(TpccCondition::k1,
                     fmt::format("warehouse {}: w_ytd is {}, the sum of d_ytd {}", i + 1,
                                 warehouse.ytd, warehouse.districts_ytd));
    if (warehouse.ytd != warehouse.paid)
      report_.broken(TpccCondition::k8,
                     fmt::format("warehouse {}: w_ytd is {}, the sum of h_amount {}", i + 1,
                                 warehouse.ytd, warehouse.paid));
  }
}

void TpccFindings::check_district(std::uint32_t w, std::uint32_t d, District& district) {
  if (district.ytd != district.paid)
    report_.broken(TpccCondition::k9,
                   fmt::format("district {}/{}: d_ytd is {}, the sum of h_amount {}", w, d,
                               district.ytd, district.paid));
  std::uint64_t line_count = 0;
  std::uint32_t newest = 0;
  for (std::uint32_t o = 1; o <= district.orders.size(); ++o) {
    const Order& order = district.orders[o - 1];
    if (!order.is_there) {
      report_.broken(TpccCondition::kE6, name_of({w, d, o}) + " is missing");
      continue;
    }
    newest = o;
    line_count += order.line_count;
    check_order({w, d, o}, order);
  }
  if (newest + 1 != district.next)
    report_.broken(TpccCondition::k2,
                   fmt::format("district {}/{}: d_next_o_id is {}, the last order {}", w, d,
                               district.next, newest));
  if (line_count != district.lines)
    report_.broken(TpccCondition::k4,
                   fmt::format("district {}/{}: the sum of o_ol_cnt is {}, there are {} lines", w,
                               d, line_count, district.lines));
  check_open_orders(w, d, district);
}

void TpccFindings::check_open_orders(std::uint32_t w, std::uint32_t d, const District& district) {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  std::uint32_t count = 0;
  for (std::uint32_t o = 1; o <= district.orders.size(); ++o) {
    if (!district.orders[o - 1].is_open) continue;
    if (count++ == 0) first = o;
    last = o;
  }
  if (count > 0 && last + 1 != district.next)
    report_.broken(TpccCondition::k2,
                   fmt::format("district {}/{}: d_next_o_id is {}, the last open order {}", w, d,
                               district.next, last));
  if (count > 0 && last - first + 1 != count)
    report_.broken(TpccCondition::k3, fmt::format("district {}/{}: {} open orders from {} to {}", w,
                                                  d, count, first, last));
  for (std::uint32_t o = 1; o <= district.orders.size(); ++o) {
    const Order& order = district.orders[o - 1];
    const bool must_be_delivered = count == 0 || o < first;
    if (order.is_there && (order.carrier != 0) != must_be_delivered)
      report_.broken(TpccCondition::kE7,
                     fmt::format("{}: o_carrier_id is {}, the oldest open order {}",
                                 name_of({w, d, o}), order.carrier, first));
  }
}

void TpccFindings::check_order(const TpccOrderId& id, const Order& order) {
  if (order.is_open != (order.carrier == 0))
    report_.broken(TpccCondition::k5,
                   fmt::format("{}: o_carrier_id is {}, a row of new_order is {}there", name_of(id),
                               order.carrier, order.is_open ? "" : "not "));
  const std::uint32_t all_numbers = ((1u << std::min<unsigned>(order.line_count, 31)) - 1) << 1;
  if (order.lines != order.line_count || order.numbers != all_numbers)
    report_.broken(
        TpccCondition::k6,
        fmt::format("{}: o_ol_cnt is {}, it has {} lines, {} of their numbers", name_of(id),
                    order.line_count, order.lines, std::popcount(order.numbers)));
  if (order.lines_delivered != (order.carrier != 0 ? order.lines : 0))
    report_.broken(TpccCondition::k7,
                   fmt::format("{}: o_carrier_id is {}, {} of {} lines are delivered", name_of(id),
                               order.carrier, order.lines_delivered, order.lines));
  if (order.all_local == order.has_remote_line)
    report_.broken(TpccCondition::kE8,
                   fmt::format("{}: o_all_local is {}", name_of(id), order.all_local));
  Customer* customer = customer_of(id.w, id.d, order.customer);
  if (customer == nullptr)
    return report_.broken(TpccCondition::kRows,
                          fmt::format("{} is of customer {}", name_of(id), order.customer));
  customer->delivered += order.amount;
  if (order.carrier != 0 && id.o > population_.delivered_per_district())
    ++customer->deliveries_found;
}

void TpccFindings::check_customers() {
  const std::size_t per_district = population_.customers_per_district;
  for (std::size_t i = 0; i < customers_.size(); ++i) {
    const Customer& customer = customers_[i];
    const auto differ = [&](TpccCondition condition, const char* what, std::int64_t found,
                            std::int64_t wanted) {
      if (found == wanted) return;
      const std::size_t district = i / per_district;
      report_.broken(condition, fmt::format("customer {}/{}/{}: {} is {} instead of {}",
                                            district / kDistrictsPerWarehouse + 1,
                                            district % kDistrictsPerWarehouse + 1,
                                            i % per_district + 1, what, found, wanted));
    };
    differ(TpccCondition::k10, "c_balance", customer.balance, customer.delivered - customer.paid);
    differ(TpccCondition::k12, "c_balance + c_ytd_payment", customer.balance + customer.ytd_payment,
           customer.delivered);
    differ(TpccCondition::kE3, "c_payment_cnt", customer.payments, customer.payments_found);
    differ(TpccCondition::kE4, "c_ytd_payment", customer.ytd_payment, customer.paid);
    differ(TpccCondition::kE5, "c_delivery_cnt", customer.deliveries, customer.deliveries_found);
  }
}

void TpccFindings::check_stocks() {
  for (const Stock& stock : stocks_) {
    const TpccStockRow& row = stock.row;
    if (stock.rows == 0) continue;  // noted already
    if (row.ytd != stock.quantity || row.order_count != stock.orders ||
        row.remote_count != stock.remote)
      report_.broken(
          TpccCondition::kE1,
          fmt::format("stock {}/{}: s_ytd, s_order_cnt, s_remote_cnt are {}, {}, {}, the "
                      "lines have {}, {}, {}",
                      row.w, row.i, row.ytd, row.order_count, row.remote_count, stock.quantity,
                      stock.orders, stock.remote));
    const std::int64_t initial = initial_quantity(population_, row.w, row.i);
    if (row.quantity < 10 || row.quantity > 100 || (row.quantity + row.ytd - initial) % 91 != 0)
      report_.broken(TpccCondition::kE2,
                     fmt::format("stock {}/{}: s_quantity is {}, it was {}, s_ytd is {}", row.w,
                                 row.i, row.quantity, initial, row.ytd));
  }
}

}  // namespace flugs::bench
