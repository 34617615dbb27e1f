#include "tools/peers/tpcc/kv_tpcc.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <utility>

#include "flugs/try.h"
#include "tools/peers/tpcc/kv_tpcc_session.h"
#include "tools/peers/tpcc/tpcc_rows.h"

namespace flugs::tools {

namespace {

using bench::TpccTable;

std::uint32_t number_of(const Value& value) { return static_cast<std::uint32_t>(value.raw()); }

/// Gives the population's rows to the store.
class StoreSink : public bench::TpccSink {
 public:
  StoreSink(TpccKvStore& store, std::uint64_t& payments) : store_(store), payments_(payments) {}

  Status add(TpccTable table, std::span<const Value> row) override {
    switch (table) {
      case TpccTable::kItem:
        return put(TpccKvTable::kItem, key_of<1>(row), item_of(row));
      case TpccTable::kWarehouse:
        return put(TpccKvTable::kWarehouse, key_of<1>(row), warehouse_of(row));
      case TpccTable::kStock:
        return put(TpccKvTable::kStock, key_of<2>(row), stock_of(row));
      case TpccTable::kDistrict:
        return put(TpccKvTable::kDistrict, key_of<2>(row), district_of(row));
      case TpccTable::kCustomer:
        return add_customer(row);
      case TpccTable::kHistory:
        ++payments_;
        return put(TpccKvTable::kHistory, TpccKey(payments_ >> 32, payments_), history_of(row));
      case TpccTable::kOrders:
        FLUGS_TRY(put(TpccKvTable::kOrders, key_of<3>(row), order_of(row)));
        return store_.load(
            TpccKvTable::kOrdersByCustomer,
            TpccKey(number_of(row[0]), number_of(row[1]), number_of(row[3]), ~number_of(row[2]))
                .text(),
            {});
      case TpccTable::kNewOrder:
        return store_.load(TpccKvTable::kNewOrder, key_of<3>(row).text(), {});
      case TpccTable::kOrderLine:
        return put(TpccKvTable::kOrderLine, key_of<4>(row), line_of(row));
    }
    return Status(StatusCode::kInvalidArgument, "no such table");
  }

 private:
  template <std::size_t count>
  static TpccKey key_of(std::span<const Value> row) {
    TpccKey key;
    for (std::size_t i = 0; i < count; ++i) key.add(number_of(row[i]));
    return key;
  }
  template <typename V>
  Status put(TpccKvTable table, const TpccKey& key, const V& value) {
    return store_.load(table, key.text(), bytes_of_value(value));
  }
  Status add_customer(std::span<const Value> row) {
    FLUGS_TRY(put(TpccKvTable::kCustomer, key_of<3>(row), customer_of(row)));
    TpccKey name(number_of(row[0]), number_of(row[1]));
    name.add(row[5].as_string());
    name.add(row[3].as_string());
    name.add(number_of(row[2]));
    return store_.load(TpccKvTable::kCustomerByName, name.text(), {});
  }

  TpccKvStore& store_;
  std::uint64_t& payments_;
};

/// Reads all rows in one transaction.
class StoreReader {
 public:
  StoreReader(TpccKvTransaction& transaction, bench::TpccFindings& findings)
      : transaction_(transaction), findings_(findings) {}

  Status read_all() {
    FLUGS_TRY(each<ItemValue>(TpccKvTable::kItem, [&](std::string_view key, const ItemValue& v) {
      findings_.item(number_in(key, 0), v.price);
    }));
    FLUGS_TRY(each<WarehouseValue>(TpccKvTable::kWarehouse,
                                   [&](std::string_view key, const WarehouseValue& v) {
                                     findings_.warehouse(number_in(key, 0), v.ytd);
                                   }));
    FLUGS_TRY(each<DistrictValue>(
        TpccKvTable::kDistrict, [&](std::string_view key, const DistrictValue& v) {
          findings_.district(number_in(key, 0), number_in(key, 1), v.ytd, v.next_order);
        }));
    FLUGS_TRY(each<StockValue>(TpccKvTable::kStock, [&](std::string_view key, const StockValue& v) {
      findings_.stock(
          {number_in(key, 0), number_in(key, 1), v.quantity, v.ytd, v.orders, v.remote});
    }));
    FLUGS_TRY(each<CustomerValue>(
        TpccKvTable::kCustomer, [&](std::string_view key, const CustomerValue& v) {
          findings_.customer({number_in(key, 0), number_in(key, 1), number_in(key, 2), v.balance,
                              v.ytd_payment, v.payments, v.deliveries});
        }));
    FLUGS_TRY(
        each<HistoryValue>(TpccKvTable::kHistory, [&](std::string_view, const HistoryValue& v) {
          findings_.history({v.c, v.c_d, v.c_w, v.d, v.w, v.date, v.amount});
        }));
    return read_orders();
  }

  std::uint64_t entries(TpccKvTable table) const {
    return entries_[static_cast<std::size_t>(table)];
  }
  Status count(TpccKvTable table) {
    return each<char>(table, [](std::string_view, char) {});
  }

 private:
  static bench::TpccOrderId order_in(std::string_view key) {
    return {number_in(key, 0), number_in(key, 1), number_in(key, 2)};
  }

  Status read_orders() {
    FLUGS_TRY(
        each<OrderValue>(TpccKvTable::kOrders, [&](std::string_view key, const OrderValue& v) {
          findings_.order(
              {order_in(key), v.customer, v.entry, v.carrier, v.line_count, v.all_local != 0});
        }));
    FLUGS_TRY(each<char>(TpccKvTable::kNewOrder,
                         [&](std::string_view key, char) { findings_.new_order(order_in(key)); }));
    return each<LineValue>(TpccKvTable::kOrderLine, [&](std::string_view key, const LineValue& v) {
      findings_.order_line({order_in(key), number_in(key, 3), v.item, v.supply_w, v.delivery != 0,
                            v.delivery, v.quantity, v.amount});
    });
  }

  template <typename V>
  Status each(TpccKvTable table, FunctionRef<void(std::string_view, const V&)> take) {
    return transaction_.scan(table, {}, [&](std::string_view key, std::string_view bytes) {
      V value{};
      std::memcpy(static_cast<void*>(&value), bytes.data(), std::min(bytes.size(), sizeof value));
      take(key, value);
      ++entries_[static_cast<std::size_t>(table)];
      return true;
    });
  }

  TpccKvTransaction& transaction_;
  bench::TpccFindings& findings_;
  std::array<std::uint64_t, kTpccKvTables> entries_{};
};

class KvTpccEngine : public TpccEngine {
 public:
  explicit KvTpccEngine(std::unique_ptr<TpccKvStore> store) : store_(std::move(store)) {}

  std::string name() const override { return store_->name(); }
  std::string setup() const override { return store_->setup(); }
  std::string guarantee() const override { return store_->guarantee(); }
  Status open(const std::string& directory, bool survives_kill_only) override {
    return store_->open(directory, survives_kill_only);
  }

  Status load(const bench::TpccOptions& population, bench::TpccLoad& load) override {
    std::uint64_t payments = 0;
    StoreSink sink(*store_, payments);
    FLUGS_TRY(bench::make_tpcc_rows(population, sink, load));
    payments_.store(payments + 1);
    return store_->finish_load();
  }

  Result<std::unique_ptr<bench::TpccSession>> session() override {
    return std::unique_ptr<bench::TpccSession>(
        std::make_unique<KvTpccSession>(store_->transactions(), payments_));
  }

  Result<bool> read_all(bench::TpccFindings& findings) override {
    const std::unique_ptr<TpccKvTransaction> transaction = store_->transactions();
    FLUGS_TRY(transaction->begin(false));
    StoreReader reader(*transaction, findings);
    FLUGS_TRY(reader.read_all());
    FLUGS_TRY(reader.count(TpccKvTable::kCustomerByName));
    FLUGS_TRY(reader.count(TpccKvTable::kOrdersByCustomer));
    transaction->abort();
    return reader.entries(TpccKvTable::kCustomerByName) == reader.entries(TpccKvTable::kCustomer) &&
           reader.entries(TpccKvTable::kOrdersByCustomer) == reader.entries(TpccKvTable::kOrders);
  }

 private:
  std::unique_ptr<TpccKvStore> store_;
  std::atomic<std::uint64_t> payments_{0};
};

}  // namespace

std::unique_ptr<TpccEngine> make_kv_tpcc(std::unique_ptr<TpccKvStore> store) {
  return std::make_unique<KvTpccEngine>(std::move(store));
}

}  // namespace flugs::tools
