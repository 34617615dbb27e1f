#include "bench/tpcc/tpcc_client.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "bench/support/integer.h"
#include "bench/tpcc/tpcc_random.h"
#include "flugs/try.h"

namespace flugs::bench {

namespace {

using Columns = TpccColumns;

constexpr std::uint32_t kOrdersOfStockLevel = 20;

/// All columns of a row between two, both included, as Payment shows an address.
template <std::size_t count>
void consume_columns(const Row& row, ColumnId first, TpccReceipt& receipt) {
  std::array<ColumnId, count> columns;
  for (std::size_t i = 0; i < count; ++i)
    columns[i] = ColumnId(static_cast<std::uint16_t>(first.value() + i));
  std::array<Value, count> values;
  row.get_unchecked(columns, values);
  for (const Value& value : values) receipt.consume(value.as_string());
}

}  // namespace

Result<std::unique_ptr<TpccClient>> TpccClient::make(Database& database, const TpccTables& tables,
                                                     Isolation isolation,
                                                     const CommitOptions& commit) {
  std::unique_ptr<TpccClient> client(new TpccClient(database, tables, isolation, commit));
  FLUGS_TRY(client->prepare());
  return client;
}

Status TpccClient::prepare() {
  struct Wanted {
    Prepared* prepared;
    KeyId key;
    std::initializer_list<ColumnId> columns;
  };
  for (const Wanted& wanted :
       {Wanted{&warehouse_, tables_.warehouse_key, {}},
        Wanted{&warehouse_tax_, tables_.warehouse_key, {Columns::kWarehouseTax}},
        Wanted{&district_, tables_.district_key, {}},
        Wanted{&next_order_, tables_.district_key, {Columns::kNextOrder}},
        Wanted{&customer_, tables_.customer_key, {}},
        Wanted{&credit_,
               tables_.customer_key,
               {Columns::kDiscount, Columns::kLastName, Columns::kCredit}},
        Wanted{&orders_, tables_.orders_key, {}}, Wanted{&stock_, tables_.stock_key, {}},
        Wanted{&quantity_, tables_.stock_key, {Columns::kStockQuantity}},
        Wanted{
            &item_, tables_.item_key, {Columns::kPrice, Columns::kItemName, Columns::kItemData}}}) {
    FLUGS_ASSIGN(*wanted.prepared, database_.prepare(wanted.key, wanted.columns));
  }
  return {};
}

Result<Row> TpccClient::find_customer(const Transaction& transaction, const TpccRequest& request) {
  const Value w = integer(request.customer_w);
  const Value d = integer(request.customer_d);
  if (!request.by_name) return customer_.get(transaction, {w, d, integer(request.customer)});
  const std::string name = last_name(request.customer);
  rows_.clear();
  FLUGS_TRY(transaction.rows(tables_.customer_by_name, {w, d, Value::string(name)},
                             [this](const Row& row) {
                               rows_.push_back(row);
                               return true;
                             }));
  if (rows_.empty()) return Status(StatusCode::kNotFound, "no customer is called " + name);
  return rows_[(rows_.size() + 1) / 2 - 1];
}

Result<TpccOutcome> TpccClient::payment(const TpccRequest& request, TpccReceipt& receipt) {
  FLUGS_ASSIGN(Transaction transaction, database_.begin(AccessMode::kReadWrite, isolation_));
  std::array<char, 24> data;
  std::size_t size = 0;
  FLUGS_TRY(book(transaction, request, receipt, data, size));
  FLUGS_ASSIGN(const Row customer, find_customer(transaction, request));
  const std::int32_t c = customer.get_unchecked<std::int32_t>(Columns::kCustomer);
  receipt.customer = static_cast<std::uint32_t>(c);
  consume_columns<9>(customer, Columns::kFirstName, receipt);
  receipt.consume(customer.get_unchecked<std::int64_t>(Columns::kCreditLimit));
  receipt.consume(customer.get_unchecked<std::int64_t>(Columns::kDiscount));
  FLUGS_TRY(charge_customer(transaction, request, customer));
  FLUGS_TRY(transaction.insert(
      tables_.history, {Value::int32(c), integer(request.customer_d), integer(request.customer_w),
                        integer(request.d), integer(request.w), Value::timestamp(request.time_us),
                        Value::decimal_units(request.amount), Value::string({data.data(), size})}));
  FLUGS_TRY(commit_marked(transaction));
  return TpccOutcome::kDone;
}

/// Adds the amount to the warehouse and the district; `data` gets h_data.
Status TpccClient::book(Transaction& transaction, const TpccRequest& request, TpccReceipt& receipt,
                        std::array<char, 24>& data, std::size_t& size) {
  const Value w = integer(request.w);
  const auto append = [&](std::string_view text) {
    size += text.copy(data.data() + size, data.size() - size);
  };
  FLUGS_ASSIGN(const Row warehouse, warehouse_.get(transaction, {w}));
  append(warehouse.get_unchecked<std::string_view>(Columns::kWarehouseName));
  append("    ");
  consume_columns<6>(warehouse, Columns::kWarehouseName, receipt);
  const std::int64_t of_warehouse = warehouse.get_unchecked<std::int64_t>(Columns::kWarehouseYtd);
  FLUGS_TRY(transaction.update(
      tables_.warehouse, warehouse.id(),
      {{Columns::kWarehouseYtd, Value::decimal_units(of_warehouse + request.amount)}}));
  FLUGS_ASSIGN(const Row district, district_.get(transaction, {w, integer(request.d)}));
  append(district.get_unchecked<std::string_view>(Columns::kDistrictName));
  consume_columns<6>(district, Columns::kDistrictName, receipt);
  const std::int64_t of_district = district.get_unchecked<std::int64_t>(Columns::kDistrictYtd);
  return transaction
      .update(tables_.district, district.id(),
              {{Columns::kDistrictYtd, Value::decimal_units(of_district + request.amount)}})
      .status();
}

Status TpccClient::charge_customer(Transaction& transaction, const TpccRequest& request,
                                   const Row& customer) {
  const auto add = [&customer](ColumnId column, std::int64_t units) {
    return Value::decimal_units(customer.get_unchecked<std::int64_t>(column) + units);
  };
  std::array<ColumnValue, 4> changes = {
      {{Columns::kBalance, add(Columns::kBalance, -request.amount)},
       {Columns::kYtdPayment, add(Columns::kYtdPayment, request.amount)},
       {Columns::kPaymentCount,
        Value::int32(customer.get_unchecked<std::int32_t>(Columns::kPaymentCount) + 1)}}};
  std::size_t count = 3;
  if (customer.get_unchecked<std::string_view>(Columns::kCredit) == "BC") {
    const std::string_view data = bad_credit_data(
        request,
        static_cast<std::uint32_t>(customer.get_unchecked<std::int32_t>(Columns::kCustomer)),
        customer.get_unchecked<std::string_view>(Columns::kCustomerData), customer_data_);
    changes[count++] = {Columns::kCustomerData, Value::string(data)};
  }
  return transaction
      .update(tables_.customer, customer.id(), std::span<const ColumnValue>(changes).first(count))
      .status();
}

Result<TpccOutcome> TpccClient::order_status(const TpccRequest& request, TpccReceipt& receipt) {
  FLUGS_ASSIGN(Transaction transaction, database_.begin(AccessMode::kReadOnly, isolation_));
  FLUGS_ASSIGN(const Row customer, find_customer(transaction, request));
  const std::int32_t c = customer.get_unchecked<std::int32_t>(Columns::kCustomer);
  receipt.customer = static_cast<std::uint32_t>(c);
  consume_columns<3>(customer, Columns::kFirstName, receipt);
  receipt.consume(customer.get_unchecked<std::int64_t>(Columns::kBalance));
  const Value w = integer(request.customer_w);
  const Value d = integer(request.customer_d);
  Rows orders =
      transaction.rows(tables_.orders_by_customer, {w, d, Value::int32(c)}).reverse().limit(1);
  const Row* const newest = orders.next();
  if (newest == nullptr) {
    FLUGS_TRY(orders.status());
    FLUGS_TRY(transaction.commit(commit_));
    return TpccOutcome::kDone;
  }
  const std::int32_t o = newest->get_unchecked<std::int32_t>(Columns::kOrder);
  receipt.order = static_cast<std::uint32_t>(o);
  receipt.consume(newest->get_unchecked<std::int64_t>(Columns::kEntry));
  receipt.consume(newest->get_unchecked<std::int64_t>(Columns::kCarrier));
  FLUGS_TRY(transaction.rows(tables_.order_line_key, {w, d, Value::int32(o)},
                             [&receipt](const Row& line) {
                               static constexpr std::array<ColumnId, 5> kShown = {
                                   Columns::kLineItem, Columns::kSupplyWarehouse,
                                   Columns::kDelivery, Columns::kQuantity, Columns::kAmount};
                               std::array<Value, kShown.size()> values;
                               line.get_unchecked(kShown, values);
                               for (const Value& value : values) receipt.consume(value.raw());
                               return true;
                             }));
  FLUGS_TRY(transaction.commit(commit_));
  return TpccOutcome::kDone;
}

Result<TpccOutcome> TpccClient::stock_level(const TpccRequest& request, TpccReceipt& receipt) {
  FLUGS_ASSIGN(Transaction transaction, database_.begin(AccessMode::kReadOnly, isolation_));
  const Value w = integer(request.w);
  Value value;
  FLUGS_TRY(next_order_.read(transaction, {w, integer(request.d)}, std::span(&value, 1)));
  FLUGS_TRY(collect_items(transaction, request, static_cast<std::uint32_t>(value.as_int32())));
  std::sort(items_.begin(), items_.end());
  items_.erase(std::unique(items_.begin(), items_.end()), items_.end());
  for (const std::int32_t item : items_) {
    FLUGS_TRY(quantity_.read(transaction, {w, Value::int32(item)}, std::span(&value, 1)));
    if (value.as_int32() < static_cast<std::int32_t>(request.threshold)) ++receipt.low_stock;
  }
  receipt.consume(receipt.low_stock);
  FLUGS_TRY(transaction.commit(commit_));
  return TpccOutcome::kDone;
}

/// The items of the district's latest orders, before order `next`.
Status TpccClient::collect_items(const Transaction& transaction, const TpccRequest& request,
                                 std::uint32_t next) {
  items_.clear();
  for (std::uint32_t o = next - std::min(next - 1, kOrdersOfStockLevel); o < next; ++o)
    FLUGS_TRY(transaction.rows(
        tables_.order_line_key, {integer(request.w), integer(request.d), integer(o)},
        [this](const Row& line) {
          items_.push_back(line.get_unchecked<std::int32_t>(Columns::kLineItem));
          return true;
        }));
  return {};
}

}  // namespace flugs::bench
