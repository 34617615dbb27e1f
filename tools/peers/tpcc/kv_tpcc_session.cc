#include "tools/peers/tpcc/kv_tpcc_session.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "bench/tpcc/tpcc_random.h"
#include "flugs/try.h"

namespace flugs::tools {

namespace {

using bench::TpccOutcome, bench::TpccReceipt, bench::TpccRequest, bench::TpccType;
using Table = TpccKvTable;

constexpr std::uint32_t kOrdersOfStockLevel = 20;

bool is_original(std::string_view data) { return data.find("ORIGINAL") != std::string_view::npos; }

void consume_address(const TpccAddress& address, TpccReceipt& receipt) {
  for (const std::string_view text :
       {address.street_1.text(), address.street_2.text(), address.city.text(), address.state.text(),
        address.zip.text()})
    receipt.consume(text);
}

}  // namespace

Result<TpccOutcome> KvTpccSession::run(const TpccRequest& request, TpccReceipt& receipt) {
  FLUGS_TRY(kv_->begin(bench::writes(request.type)));
  Outcome outcome = execute(request, receipt);
  if (outcome.ok() && *outcome == TpccOutcome::kDone) {
    FLUGS_TRY(kv_->commit());
    return outcome;
  }
  kv_->abort();
  return outcome;
}

/// Copies the value, as far as it goes.
template <typename V>
Status KvTpccSession::read(TpccKvTable table, const TpccKey& key, V& value, bool to_replace) {
  FLUGS_ASSIGN(const std::string_view bytes, kv_->get(table, key.text(), to_replace));
  if (bytes.size() > sizeof value) return Status(StatusCode::kIoError, "a value that is too long");
  std::memcpy(static_cast<void*>(&value), bytes.data(), bytes.size());
  return {};
}

template <typename V>
Status KvTpccSession::write_back(TpccKvTable table, const TpccKey& key, const V& value) {
  return kv_->replace(table, key.text(), bytes_of_value(value));
}

Result<TpccOutcome> KvTpccSession::new_order(const TpccRequest& request, TpccReceipt& receipt) {
  FLUGS_ASSIGN(const std::int64_t taxes, enter_order(request, receipt));
  FLUGS_TRY(read(Table::kCustomer, TpccKey(request.w, request.d, request.customer), customer_));
  receipt.consume(customer_.last.text());
  receipt.consume(customer_.credit.text());
  std::int64_t amounts = 0;
  for (std::uint32_t i = 0; i < request.line_count; ++i) {
    const Result<std::int64_t> amount = take_line(request, i, receipt);
    const bool is_unused = request.has_unused_item && i + 1 == request.line_count;
    if (amount.code() == StatusCode::kNotFound && is_unused) return TpccOutcome::kRolledBack;
    if (!amount.ok()) return amount.status();
    amounts += *amount;
  }
  receipt.total = bench::order_total(amounts, customer_.discount, taxes);
  receipt.consume(receipt.total);
  return TpccOutcome::kDone;
}

Result<std::int64_t> KvTpccSession::enter_order(const TpccRequest& request, TpccReceipt& receipt) {
  const std::uint32_t w = request.w;
  const std::uint32_t d = request.d;
  WarehouseValue warehouse;
  FLUGS_TRY(read(Table::kWarehouse, TpccKey(w), warehouse));
  DistrictValue district;
  FLUGS_TRY(read(Table::kDistrict, TpccKey(w, d), district, true));
  const std::uint32_t o = receipt.order = district.next_order++;
  FLUGS_TRY(write_back(Table::kDistrict, TpccKey(w, d), district));
  const OrderValue order = {.entry = request.time_us,
                            .customer = request.customer,
                            .line_count = static_cast<std::uint8_t>(request.line_count),
                            .all_local = static_cast<std::uint8_t>(request.is_all_local())};
  FLUGS_TRY(kv_->insert(Table::kOrders, TpccKey(w, d, o).text(), bytes_of_value(order)));
  FLUGS_TRY(kv_->insert(Table::kOrdersByCustomer, TpccKey(w, d, request.customer, ~o).text(), {}));
  FLUGS_TRY(kv_->insert(Table::kNewOrder, TpccKey(w, d, o).text(), {}));
  return std::int64_t{warehouse.tax} + district.tax;
}

Result<std::int64_t> KvTpccSession::take_line(const TpccRequest& request, std::uint32_t index,
                                              TpccReceipt& receipt) {
  const bench::TpccLine& line = request.all_lines[index];
  ItemValue item;
  FLUGS_TRY(read(Table::kItem, TpccKey(line.item), item));
  receipt.consume(item.name.text());
  LineValue row = {.amount = line.quantity * item.price,
                   .item = line.item,
                   .supply_w = line.supply_warehouse,
                   .quantity = line.quantity};
  FLUGS_TRY(take_stock(request, line, item, row, receipt));
  FLUGS_TRY(kv_->insert(Table::kOrderLine,
                        TpccKey(request.w, request.d, receipt.order, index + 1).text(),
                        bytes_of_value(row)));
  return row.amount;
}

Status KvTpccSession::take_stock(const TpccRequest& request, const bench::TpccLine& line,
                                 const ItemValue& item, LineValue& row, TpccReceipt& receipt) {
  const TpccKey key(line.supply_warehouse, line.item);
  FLUGS_TRY(read(Table::kStock, key, stock_, true));
  const auto& info = stock_.info[request.d - 1];
  row.info.set({info.data(), info.size()});
  receipt.consume(is_original(item.data.text()) && is_original(stock_.data.text()) ? 'B' : 'G');
  const auto wanted = static_cast<std::int32_t>(line.quantity);
  stock_.quantity = bench::stock_left(stock_.quantity, wanted);
  stock_.ytd += wanted;
  ++stock_.orders;
  stock_.remote += line.supply_warehouse != request.w ? 1 : 0;
  receipt.consume(stock_.quantity);
  return write_back(Table::kStock, key, stock_);
}

/// Reads customer_, to be replaced if the transaction writes.
Status KvTpccSession::find_customer(const TpccRequest& request, std::uint32_t& c) {
  c = request.customer;
  const std::uint32_t w = request.customer_w;
  const std::uint32_t d = request.customer_d;
  if (request.by_name) {
    const std::string name = bench::last_name(request.customer);
    TpccKey prefix(w, d);
    prefix.add(std::string_view(name));
    numbers_.clear();
    FLUGS_TRY(kv_->scan(Table::kCustomerByName, prefix.text(),
                        [&](std::string_view key, std::string_view) {
                          if (!key.starts_with(prefix.text())) return false;
                          numbers_.push_back(number_in(key.substr(key.size() - 4), 0));
                          return true;
                        }));
    if (numbers_.empty()) return Status(StatusCode::kNotFound, "no customer is called " + name);
    c = numbers_[(numbers_.size() + 1) / 2 - 1];
  }
  return read(Table::kCustomer, TpccKey(w, d, c), customer_, bench::writes(request.type));
}

Result<TpccOutcome> KvTpccSession::payment(const TpccRequest& request, TpccReceipt& receipt) {
  WarehouseValue warehouse;
  FLUGS_TRY(read(Table::kWarehouse, TpccKey(request.w), warehouse, true));
  consume_address(warehouse.address, receipt);
  warehouse.ytd += request.amount;
  FLUGS_TRY(write_back(Table::kWarehouse, TpccKey(request.w), warehouse));
  DistrictValue district;
  FLUGS_TRY(read(Table::kDistrict, TpccKey(request.w, request.d), district, true));
  consume_address(district.address, receipt);
  district.ytd += request.amount;
  FLUGS_TRY(write_back(Table::kDistrict, TpccKey(request.w, request.d), district));
  std::uint32_t c = 0;
  FLUGS_TRY(find_customer(request, c));
  receipt.customer = c;
  receipt.consume(customer_.first.text());
  consume_address(customer_.address, receipt);
  receipt.consume(customer_.credit_limit);
  receipt.consume(customer_.discount);
  customer_.balance -= request.amount;
  customer_.ytd_payment += request.amount;
  ++customer_.payments;
  if (customer_.credit.text() == "BC")
    customer_.data.set(bench::bad_credit_data(request, c, customer_.data.text(), data_));
  FLUGS_TRY(
      write_back(Table::kCustomer, TpccKey(request.customer_w, request.customer_d, c), customer_));
  HistoryValue history = {.date = request.time_us,
                          .amount = request.amount,
                          .c = c,
                          .c_d = request.customer_d,
                          .c_w = request.customer_w,
                          .d = request.d,
                          .w = request.w};
  history.data.set(std::string(warehouse.name.text()) + "    " + std::string(district.name.text()));
  const std::uint64_t number = payments_.fetch_add(1);
  FLUGS_TRY(
      kv_->insert(Table::kHistory, TpccKey(number >> 32, number).text(), bytes_of_value(history)));
  return TpccOutcome::kDone;
}

Result<TpccOutcome> KvTpccSession::order_status(const TpccRequest& request, TpccReceipt& receipt) {
  std::uint32_t c = 0;
  FLUGS_TRY(find_customer(request, c));
  receipt.customer = c;
  receipt.consume(customer_.first.text());
  receipt.consume(customer_.last.text());
  receipt.consume(customer_.balance);
  const TpccKey prefix(request.customer_w, request.customer_d, c);
  FLUGS_TRY(kv_->scan(Table::kOrdersByCustomer, prefix.text(),
                      [&](std::string_view key, std::string_view) {
                        if (key.starts_with(prefix.text())) receipt.order = ~number_in(key, 3);
                        return false;
                      }));
  if (receipt.order == 0) return TpccOutcome::kDone;
  const TpccKey id(request.customer_w, request.customer_d, receipt.order);
  OrderValue order;
  FLUGS_TRY(read(Table::kOrders, id, order));
  receipt.consume(order.entry);
  receipt.consume(order.carrier);
  FLUGS_TRY(
      kv_->scan(Table::kOrderLine, id.text(), [&](std::string_view key, std::string_view value) {
        if (!key.starts_with(id.text())) return false;
        LineValue line;
        std::memcpy(&line, value.data(), std::min(value.size(), sizeof line));
        for (const std::int64_t number : {std::int64_t{line.item}, std::int64_t{line.supply_w},
                                          line.delivery, std::int64_t{line.quantity}, line.amount})
          receipt.consume(number);
        return true;
      }));
  return TpccOutcome::kDone;
}

Result<TpccOutcome> KvTpccSession::delivery(const TpccRequest& request, TpccReceipt& receipt) {
  for (std::uint32_t d = 1; d <= bench::kDistrictsPerWarehouse; ++d)
    FLUGS_TRY(deliver(request, d, receipt));
  return TpccOutcome::kDone;
}

Status KvTpccSession::deliver(const TpccRequest& request, std::uint32_t d, TpccReceipt& receipt) {
  const TpccKey prefix(request.w, d);
  std::uint32_t o = 0;
  FLUGS_TRY(kv_->scan(Table::kNewOrder, prefix.text(), [&](std::string_view key, std::string_view) {
    if (key.starts_with(prefix.text())) o = number_in(key, 2);
    return false;
  }));
  receipt.delivered[d - 1] = o;
  if (o == 0) {
    ++receipt.skipped;
    return {};
  }
  const TpccKey id(request.w, d, o);
  FLUGS_TRY(kv_->erase(Table::kNewOrder, id.text()));
  OrderValue order;
  FLUGS_TRY(read(Table::kOrders, id, order, true));
  order.carrier = static_cast<std::uint8_t>(request.carrier);
  FLUGS_TRY(write_back(Table::kOrders, id, order));
  std::int64_t amount = 0;
  FLUGS_TRY(deliver_lines(request, d, o, amount));
  const TpccKey customer(request.w, d, order.customer);
  FLUGS_TRY(read(Table::kCustomer, customer, customer_, true));
  customer_.balance += amount;
  ++customer_.deliveries;
  return write_back(Table::kCustomer, customer, customer_);
}

Status KvTpccSession::deliver_lines(const TpccRequest& request, std::uint32_t d, std::uint32_t o,
                                    std::int64_t& amount) {
  const TpccKey prefix(request.w, d, o);
  numbers_.clear();
  FLUGS_TRY(
      kv_->scan(Table::kOrderLine, prefix.text(), [&](std::string_view key, std::string_view) {
        if (!key.starts_with(prefix.text())) return false;
        numbers_.push_back(number_in(key, 3));
        return true;
      }));
  for (const std::uint32_t number : numbers_) {
    const TpccKey key(request.w, d, o, number);
    LineValue line;
    FLUGS_TRY(read(Table::kOrderLine, key, line, true));
    amount += line.amount;
    line.delivery = request.time_us;
    FLUGS_TRY(write_back(Table::kOrderLine, key, line));
  }
  return {};
}

Result<TpccOutcome> KvTpccSession::stock_level(const TpccRequest& request, TpccReceipt& receipt) {
  DistrictValue district;
  FLUGS_TRY(read(Table::kDistrict, TpccKey(request.w, request.d), district));
  const std::uint32_t next = district.next_order;
  const TpccKey first(request.w, request.d, next - std::min(next - 1, kOrdersOfStockLevel));
  const TpccKey end(request.w, request.d, next);
  numbers_.clear();
  FLUGS_TRY(
      kv_->scan(Table::kOrderLine, first.text(), [&](std::string_view key, std::string_view value) {
        if (key >= end.text()) return false;
        LineValue line;
        std::memcpy(&line, value.data(), std::min(value.size(), sizeof line));
        numbers_.push_back(line.item);
        return true;
      }));
  std::sort(numbers_.begin(), numbers_.end());
  numbers_.erase(std::unique(numbers_.begin(), numbers_.end()), numbers_.end());
  for (const std::uint32_t item : numbers_) {
    FLUGS_ASSIGN(const std::string_view bytes,
                 kv_->get(Table::kStock, TpccKey(request.w, item).text(), false));
    std::int32_t quantity = 0;
    if (bytes.size() < sizeof(StockValue))
      return Status(StatusCode::kIoError, "a stock that is too short");
    std::memcpy(&quantity, bytes.data() + offsetof(StockValue, quantity), sizeof quantity);
    if (quantity < static_cast<std::int32_t>(request.threshold)) ++receipt.low_stock;
  }
  receipt.consume(receipt.low_stock);
  return TpccOutcome::kDone;
}

}  // namespace flugs::tools
