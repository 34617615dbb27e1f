#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "flugs/database.h"

namespace flugs::bench {

/// TPC-C's nine tables (standard specification 5.11, clause 1.3). Positions of the columns that
/// transactions name; the schema gives all their names.
struct TpccColumns {
  static constexpr ColumnId kWarehouseName{1};
  static constexpr ColumnId kWarehouseZip{6};
  static constexpr ColumnId kWarehouseTax{7};
  static constexpr ColumnId kWarehouseYtd{8};

  static constexpr ColumnId kDistrictName{2};
  static constexpr ColumnId kDistrictZip{7};
  static constexpr ColumnId kDistrictTax{8};
  static constexpr ColumnId kDistrictYtd{9};
  static constexpr ColumnId kNextOrder{10};

  static constexpr ColumnId kCustomer{2};
  static constexpr ColumnId kFirstName{3};
  static constexpr ColumnId kLastName{5};
  static constexpr ColumnId kCredit{13};
  static constexpr ColumnId kCreditLimit{14};
  static constexpr ColumnId kDiscount{15};
  static constexpr ColumnId kBalance{16};
  static constexpr ColumnId kYtdPayment{17};
  static constexpr ColumnId kPaymentCount{18};
  static constexpr ColumnId kDeliveryCount{19};
  static constexpr ColumnId kCustomerData{20};

  static constexpr ColumnId kNewOrder{2};

  static constexpr ColumnId kOrder{2};
  static constexpr ColumnId kOrderCustomer{3};
  static constexpr ColumnId kEntry{4};
  static constexpr ColumnId kCarrier{5};
  static constexpr ColumnId kLineCount{6};
  static constexpr ColumnId kAllLocal{7};

  static constexpr ColumnId kLineItem{4};
  static constexpr ColumnId kSupplyWarehouse{5};
  static constexpr ColumnId kDelivery{6};
  static constexpr ColumnId kQuantity{7};
  static constexpr ColumnId kAmount{8};

  static constexpr ColumnId kHistoryDate{5};
  static constexpr ColumnId kHistoryAmount{6};

  static constexpr ColumnId kStockQuantity{2};
  static constexpr std::uint16_t kFirstDistrictInfo = 3;  ///< s_dist_01 to s_dist_10
  static constexpr ColumnId kStockYtd{13};
  static constexpr ColumnId kOrderCount{14};
  static constexpr ColumnId kRemoteCount{15};
  static constexpr ColumnId kStockData{16};

  static constexpr ColumnId kItemName{2};
  static constexpr ColumnId kPrice{3};
  static constexpr ColumnId kItemData{4};
};

inline constexpr std::uint32_t kDistrictsPerWarehouse = 10;
inline constexpr std::uint32_t kOrderLinesMax = 15;
inline constexpr std::size_t kDistrictInfoBytes = 24;  ///< of s_dist_01 to s_dist_10
inline constexpr std::size_t kCustomerDataMax = 500;   ///< of c_data

/// The tables, in the order in which they are loaded.
enum class TpccTable : std::uint8_t {
  kItem,
  kWarehouse,
  kStock,
  kDistrict,
  kCustomer,
  kHistory,
  kOrders,
  kNewOrder,
  kOrderLine,
};
inline constexpr std::size_t kTpccTables = 9;

/// Tables and keys of a database that holds TPC-C.
struct TpccTables {
  TableId warehouse;
  TableId district;
  TableId customer;
  TableId history;
  TableId new_order;
  TableId orders;
  TableId order_line;
  TableId stock;
  TableId item;
  KeyId warehouse_key;
  KeyId district_key;
  KeyId customer_key;
  KeyId customer_by_name;  ///< (c_w_id, c_d_id, c_last, c_first), ordered
  KeyId new_order_key;     ///< ordered: a delivery takes the oldest one
  KeyId orders_key;
  KeyId orders_by_customer;  ///< (o_w_id, o_d_id, o_c_id, o_id), ordered
  KeyId order_line_key;      ///< hashed by the order: all its lines are found at once
  KeyId stock_key;
  KeyId item_key;

  TableId of(TpccTable which) const noexcept {
    const std::array<TableId, kTpccTables> all = {
        item, warehouse, stock, district, customer, history, orders, new_order, order_line};
    return all[static_cast<std::size_t>(which)];
  }
};

/// Fails as Database::create_table; kAlreadyExists when the database holds TPC-C already.
Result<TpccTables> create_tpcc_tables(Database& database, std::uint32_t warehouses);
/// Fails with kNotFound.
Result<TpccTables> find_tpcc_tables(const Database& database);

}  // namespace flugs::bench
