// New-Order and Delivery.

#include <algorithm>

#include "bench/support/integer.h"
#include "bench/tpcc/tpcc_client.h"
#include "flugs/try.h"

namespace flugs::bench {

namespace {

using OrderColumns = TpccColumns;

bool is_original(std::string_view data) { return data.find("ORIGINAL") != std::string_view::npos; }

/// s_quantity, s_ytd, s_order_cnt, s_remote_cnt, s_data, and the text of district `d`.
constexpr std::array<ColumnId, 6> stock_columns(std::uint32_t d) noexcept {
  return {OrderColumns::kStockQuantity,
          OrderColumns::kStockYtd,
          OrderColumns::kOrderCount,
          OrderColumns::kRemoteCount,
          OrderColumns::kStockData,
          ColumnId(static_cast<std::uint16_t>(OrderColumns::kFirstDistrictInfo + d - 1))};
}

}  // namespace

Result<TpccOutcome> TpccClient::new_order(const TpccRequest& request, TpccReceipt& receipt) {
  FLUGS_ASSIGN(Transaction transaction, database_.begin(AccessMode::kReadWrite, isolation_));
  FLUGS_ASSIGN(const std::int64_t taxes, enter_order(transaction, request, receipt));
  std::array<Value, 3> credit;
  FLUGS_TRY(credit_.read(
      transaction, {integer(request.w), integer(request.d), integer(request.customer)}, credit));
  receipt.consume(credit[1].as_string());
  receipt.consume(credit[2].as_string());
  std::int64_t amounts = 0;
  for (std::size_t i = 0; i < request.line_count; ++i) {
    const Result<std::int64_t> amount = take_line(transaction, request, i, receipt);
    const bool is_unused = request.has_unused_item && i + 1 == request.line_count;
    if (amount.code() == StatusCode::kNotFound && is_unused) {
      FLUGS_TRY(insert_lines(transaction, request, receipt.order, i));
      transaction.abort();
      return TpccOutcome::kRolledBack;
    }
    if (!amount.ok()) return amount.status();
    amounts += *amount;
  }
  FLUGS_TRY(insert_lines(transaction, request, receipt.order, request.line_count));
  receipt.total = order_total(amounts, credit[0].raw(), taxes);
  receipt.consume(receipt.total);
  FLUGS_TRY(commit_marked(transaction));
  return TpccOutcome::kDone;
}

/// Takes the district's next number for the order, and inserts it; gives the sum of the taxes.
Result<std::int64_t> TpccClient::enter_order(Transaction& transaction, const TpccRequest& request,
                                             TpccReceipt& receipt) {
  const Value w = integer(request.w);
  const Value d = integer(request.d);
  Value tax;
  FLUGS_TRY(warehouse_tax_.read(transaction, {w}, std::span(&tax, 1)));
  FLUGS_ASSIGN(const Row district, district_.get(transaction, {w, d}));
  const std::int32_t o = district.get_unchecked<std::int32_t>(OrderColumns::kNextOrder);
  const std::int64_t taxes =
      tax.raw() + district.get_unchecked<std::int64_t>(OrderColumns::kDistrictTax);
  FLUGS_TRY(transaction.update(tables_.district, district.id(),
                               {{OrderColumns::kNextOrder, Value::int32(o + 1)}}));
  receipt.order = static_cast<std::uint32_t>(o);
  FLUGS_TRY(transaction.insert(
      tables_.orders,
      {w, d, Value::int32(o), integer(request.customer), Value::timestamp(request.time_us),
       Value::null(), integer(request.line_count), integer(request.is_all_local() ? 1 : 0)}));
  FLUGS_TRY(transaction.insert(tables_.new_order, {w, d, Value::int32(o)}));
  return taxes;
}

Result<std::int64_t> TpccClient::take_line(Transaction& transaction, const TpccRequest& request,
                                           std::size_t index, TpccReceipt& receipt) {
  const TpccLine& line = request.all_lines[index];
  std::array<Value, 3> item;
  FLUGS_TRY(item_.read(transaction, {integer(line.item)}, item));
  receipt.consume(item[1].as_string());
  FLUGS_TRY(take_stock(transaction, request, index, is_original(item[2].as_string()), receipt));
  amounts_[index] = line.quantity * item[0].raw();
  return amounts_[index];
}

Status TpccClient::take_stock(Transaction& transaction, const TpccRequest& request,
                              std::size_t index, bool item_is_original, TpccReceipt& receipt) {
  const TpccLine& line = request.all_lines[index];
  FLUGS_ASSIGN(const Row stock,
               stock_.get(transaction, {integer(line.supply_warehouse), integer(line.item)}));
  std::array<Value, 6> values;
  stock.get_unchecked(stock_columns(request.d), values);
  // The row's texts are gone when it is written.
  LineText& info = info_[index];
  info.size = values[5].as_string().copy(info.letters.data(), info.letters.size());
  receipt.consume(item_is_original && is_original(values[4].as_string()) ? 'B' : 'G');
  const auto wanted = static_cast<std::int32_t>(line.quantity);
  const std::int32_t left = stock_left(values[0].as_int32(), wanted);
  receipt.consume(left);
  const std::int32_t remote = line.supply_warehouse != request.w ? 1 : 0;
  return transaction
      .update(tables_.stock, stock.id(),
              {{OrderColumns::kStockQuantity, Value::int32(left)},
               {OrderColumns::kStockYtd, Value::int64(values[1].as_int64() + wanted)},
               {OrderColumns::kOrderCount, Value::int32(values[2].as_int32() + 1)},
               {OrderColumns::kRemoteCount, Value::int32(values[3].as_int32() + remote)}})
      .status();
}

/// The first `count` lines of the order.
Status TpccClient::insert_lines(Transaction& transaction, const TpccRequest& request,
                                std::uint32_t order, std::size_t count) {
  if (count == 0) return {};
  Value* next = line_values_.data();
  for (std::size_t i = 0; i < count; ++i) {
    const TpccLine& line = request.all_lines[i];
    const LineText& info = info_[i];
    const std::array<Value, kLineColumns> row = {integer(request.w),
                                                 integer(request.d),
                                                 integer(order),
                                                 integer(static_cast<std::uint32_t>(i + 1)),
                                                 integer(line.item),
                                                 integer(line.supply_warehouse),
                                                 Value::null(),
                                                 integer(line.quantity),
                                                 Value::decimal_units(amounts_[i]),
                                                 Value::string({info.letters.data(), info.size})};
    next = std::copy(row.begin(), row.end(), next);
  }
  return transaction.insert_rows(tables_.order_line,
                                 std::span<const Value>(line_values_).first(count * kLineColumns));
}

Result<TpccOutcome> TpccClient::delivery(const TpccRequest& request, TpccReceipt& receipt) {
  FLUGS_ASSIGN(Transaction transaction, database_.begin(AccessMode::kReadWrite, isolation_));
  for (std::uint32_t d = 1; d <= kDistrictsPerWarehouse; ++d)
    FLUGS_TRY(deliver(transaction, request, d, receipt));
  FLUGS_TRY(commit_marked(transaction));
  return TpccOutcome::kDone;
}

/// Delivers a district's oldest open order, if there is any.
Status TpccClient::deliver(Transaction& transaction, const TpccRequest& request, std::uint32_t d,
                           TpccReceipt& receipt) {
  std::array<Value, 3> order = {integer(request.w), integer(d)};
  RowId open;
  FLUGS_TRY(transaction.rows(tables_.new_order_key, {order[0], order[1]},
                             [&open, &order](const Row& row) {
                               open = row.id();
                               order[2] = row.get_unchecked(OrderColumns::kNewOrder);
                               return false;
                             }));
  if (order[2].is_null()) {
    ++receipt.skipped;
    return {};
  }
  FLUGS_TRY(transaction.remove(tables_.new_order, open));
  FLUGS_ASSIGN(const Row row, orders_.get(transaction, order));
  const Value c = row.get_unchecked(OrderColumns::kOrderCustomer);
  FLUGS_TRY(transaction.update(tables_.orders, row.id(),
                               {{OrderColumns::kCarrier, integer(request.carrier)}}));
  std::int64_t amount = 0;
  FLUGS_TRY(deliver_lines(transaction, order, Value::timestamp(request.time_us), amount));

  FLUGS_ASSIGN(const Row customer, customer_.get(transaction, {order[0], order[1], c}));
  const std::int32_t deliveries =
      customer.get_unchecked<std::int32_t>(OrderColumns::kDeliveryCount) + 1;
  const std::int64_t balance =
      customer.get_unchecked<std::int64_t>(OrderColumns::kBalance) + amount;
  receipt.delivered[d - 1] = static_cast<std::uint32_t>(order[2].as_int32());
  return transaction
      .update(tables_.customer, customer.id(),
              {{OrderColumns::kBalance, Value::decimal_units(balance)},
               {OrderColumns::kDeliveryCount, Value::int32(deliveries)}})
      .status();
}

Status TpccClient::deliver_lines(Transaction& transaction, std::span<const Value> order, Value time,
                                 std::int64_t& amount) {
  row_ids_.clear();
  FLUGS_TRY(transaction.rows(tables_.order_line_key, order, [this, &amount](const Row& row) {
    row_ids_.push_back(row.id());
    amount += row.get_unchecked<std::int64_t>(OrderColumns::kAmount);
    return true;
  }));
  for (const RowId line : row_ids_)
    FLUGS_TRY(transaction.update(tables_.order_line, line, {{OrderColumns::kDelivery, time}}));
  return {};
}

}  // namespace flugs::bench
