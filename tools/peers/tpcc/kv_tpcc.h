#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "flugs/function_ref.h"
#include "flugs/status.h"
#include "tools/peers/tpcc/tpcc_engine.h"

namespace flugs::tools {

/// TPC-C's tables in a store of keys and values, in bench::TpccTable's order, and two indexes.
enum class TpccKvTable : std::uint8_t {
  kItem,
  kWarehouse,
  kStock,
  kDistrict,
  kCustomer,
  kHistory,
  kOrders,
  kNewOrder,
  kOrderLine,
  kCustomerByName,    ///< w, d, c_last, c_first, c; no value
  kOrdersByCustomer,  ///< w, d, c, and o with all bits turned: the newest order is the first
};
inline constexpr std::size_t kTpccKvTables = 11;
inline constexpr std::array<const char*, kTpccKvTables> kTpccKvNames = {
    "item",   "warehouse", "stock",      "district",         "customer",          "history",
    "orders", "new_order", "order_line", "customer_by_name", "orders_by_customer"};

/// One thread's transactions, one after the other. Keys are in the order of their bytes.
class TpccKvTransaction {
 public:
  /// False ends a scan.
  using Take = FunctionRef<bool(std::string_view key, std::string_view value)>;

  virtual ~TpccKvTransaction() = default;

  virtual Status begin(bool writes) = 0;
  /// The value stays as it is until the next call. `to_replace`: `replace` follows, or nothing on
  /// this table. Fails with kNotFound, kConflict, kIoError.
  virtual Result<std::string_view> get(TpccKvTable table, std::string_view key,
                                       bool to_replace) = 0;
  /// Gives the row that `get` has just found in the table another value.
  virtual Status replace(TpccKvTable table, std::string_view key, std::string_view value) = 0;
  /// The key is not there.
  virtual Status insert(TpccKvTable table, std::string_view key, std::string_view value) = 0;
  virtual Status erase(TpccKvTable table, std::string_view key) = 0;
  /// All from this key on, by ascending key. Fails with kIoError.
  virtual Status scan(TpccKvTable table, std::string_view from, Take take) = 0;
  virtual Status commit() = 0;
  /// Ends it without effect; nothing when none is begun.
  virtual void abort() = 0;
};

class TpccKvStore {
 public:
  virtual ~TpccKvStore() = default;

  virtual std::string name() const = 0;
  virtual std::string setup() const = 0;
  virtual std::string guarantee() const = 0;
  virtual Status open(const std::string& directory, bool survives_kill_only) = 0;
  /// Rows of the bulk load, each table but for the indexes by ascending key. Fails with kIoError.
  virtual Status load(TpccKvTable table, std::string_view key, std::string_view value) = 0;
  virtual Status finish_load() = 0;
  /// Thread-safety: any thread.
  virtual std::unique_ptr<TpccKvTransaction> transactions() = 0;
};

/// TPC-C on such a store.
std::unique_ptr<TpccEngine> make_kv_tpcc(std::unique_ptr<TpccKvStore> store);

}  // namespace flugs::tools
