#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bench/support/invariant_report.h"
#include "bench/tpcc/tpcc_population.h"

namespace flugs::bench {

/// What must hold at any time when no transaction is open: clause 3.3.2 of the specification by its
/// numbers (11 holds after loading only, and then follows from 5), and E1 to E10, which follow from
/// the programs. docs/benchmarks.md lists them.
enum class TpccCondition : std::uint8_t {
  kRows,  ///< the population's rows are all there, each once, and no other ones
  k1,
  k2,
  k3,
  k4,
  k5,
  k6,
  k7,
  k8,
  k9,
  k10,
  k12,
  kE1,
  kE2,
  kE3,
  kE4,
  kE5,
  kE6,
  kE7,
  kE8,
  kE9,
  kE10,
  kAcknowledged,  ///< what users were promised is there (TpccPromises)
};
inline constexpr std::array<std::string_view, 23> kTpccConditionNames = {
    "rows", "1",  "2",  "3",  "4",  "5",  "6",  "7",  "8",  "9",   "10",          "12",
    "E1",   "E2", "E3", "E4", "E5", "E6", "E7", "E8", "E9", "E10", "acknowledged"};

class TpccReport {
 public:
  /// The condition is looked at: it holds unless something is found.
  void check(TpccCondition condition) noexcept;
  /// Says what is wrong, in words that name the row. Only the first few are kept.
  void broken(TpccCondition condition, const std::string& problem);

  Check state(TpccCondition condition) const noexcept {
    return states_[static_cast<std::size_t>(condition)];
  }
  bool all_held() const noexcept;  ///< none is broken
  const std::vector<std::string>& problems() const noexcept { return problems_; }
  /// "rows 1 2 3 held; 4 BROKEN; E10 not checked".
  std::string describe() const;

 private:
  static constexpr std::size_t kProblemsMax = 20;

  std::array<Check, kTpccConditionNames.size()> states_{};
  std::vector<std::string> problems_;
};

/// An order's place.
struct TpccOrderId {
  std::uint32_t w = 0;
  std::uint32_t d = 0;
  std::uint32_t o = 0;
};

// What the conditions need of each row.
struct TpccCustomerRow {
  std::uint32_t w = 0;
  std::uint32_t d = 0;
  std::uint32_t c = 0;
  std::int64_t balance = 0;
  std::int64_t ytd_payment = 0;
  std::int64_t payments = 0;
  std::int64_t deliveries = 0;
};
struct TpccHistoryRow {
  std::uint32_t c = 0;
  std::uint32_t c_d = 0;
  std::uint32_t c_w = 0;
  std::uint32_t d = 0;
  std::uint32_t w = 0;
  std::int64_t date_us = 0;
  std::int64_t amount = 0;
};
struct TpccOrderRow {
  TpccOrderId id;
  std::uint32_t c = 0;
  std::int64_t entry_us = 0;
  std::uint32_t carrier = 0;  ///< 0: NULL
  std::uint32_t line_count = 0;
  bool all_local = true;
};
struct TpccLineRow {
  TpccOrderId id;
  std::uint32_t number = 0;
  std::uint32_t item = 0;
  std::uint32_t supply_w = 0;
  bool is_delivered = false;
  std::int64_t delivery_us = 0;
  std::int64_t quantity = 0;
  std::int64_t amount = 0;
};
struct TpccStockRow {
  std::uint32_t w = 0;
  std::uint32_t i = 0;
  std::int64_t quantity = 0;
  std::int64_t ytd = 0;
  std::int64_t order_count = 0;
  std::int64_t remote_count = 0;
};

/// Takes all rows of a database, flugs or another one, and checks the conditions on them. The rows
/// of a table come in any order, the tables as their functions stand here.
class TpccFindings {
 public:
  explicit TpccFindings(const TpccOptions& population);

  void item(std::uint32_t i, std::int64_t price);
  void warehouse(std::uint32_t w, std::int64_t ytd);
  void district(std::uint32_t w, std::uint32_t d, std::int64_t ytd, std::int64_t next_order);
  void stock(const TpccStockRow& row);
  void customer(const TpccCustomerRow& row);
  void history(const TpccHistoryRow& row);
  void order(const TpccOrderRow& row);
  void new_order(const TpccOrderId& id);
  void order_line(const TpccLineRow& row);

  /// Before the rows: payments from this time on are kept.
  void keep_payments_since(std::int64_t time_us) noexcept { keep_since_us_ = time_us; }
  const std::vector<TpccHistoryRow>& payments_kept() const noexcept { return payments_kept_; }
  std::uint64_t payments() const noexcept { return payments_; }  ///< rows of HISTORY

  /// After all rows. E10 and `acknowledged` are the caller's.
  TpccReport check();

  /// An order and the sums over its lines.
  struct Order {
    std::uint32_t customer = 0;
    std::uint32_t lines = 0;
    std::uint32_t lines_delivered = 0;
    std::uint32_t numbers = 0;  ///< a bit for each ol_number
    std::int64_t amount = 0;
    std::int64_t entry_us = 0;
    std::int64_t delivery_us = 0;  ///< of the last delivered line
    std::uint8_t line_count = 0;
    std::uint8_t carrier = 0;
    bool is_there = false;
    bool is_open = false;
    bool all_local = true;
    bool has_remote_line = false;
  };
  /// Orders of a district by o_id, the first one 1.
  const std::vector<Order>& orders(std::uint32_t w, std::uint32_t d) const {
    return district_of(w, d)->orders;
  }

 private:
  struct Warehouse {
    std::uint32_t rows = 0;
    std::int64_t ytd = 0;
    std::int64_t districts_ytd = 0;
    std::int64_t paid = 0;
  };
  struct District {
    std::uint32_t rows = 0;
    std::int64_t ytd = 0;
    std::int64_t next = 0;
    std::int64_t paid = 0;
    std::uint64_t lines = 0;
    std::vector<Order> orders;
  };
  struct Customer {
    std::uint32_t rows = 0;
    std::int64_t balance = 0;
    std::int64_t ytd_payment = 0;
    std::int64_t payments = 0;
    std::int64_t deliveries = 0;
    std::int64_t paid = 0;
    std::int64_t payments_found = 0;
    std::int64_t delivered = 0;
    std::int64_t deliveries_found = 0;
  };
  struct Stock {
    std::uint32_t rows = 0;
    TpccStockRow row;
    std::int64_t quantity = 0;
    std::int64_t orders = 0;
    std::int64_t remote = 0;
  };

  const District* district_of(std::uint32_t w, std::uint32_t d) const noexcept;
  District* district_of(std::uint32_t w, std::uint32_t d) noexcept;
  Customer* customer_of(std::uint32_t w, std::uint32_t d, std::uint32_t c) noexcept;
  Stock* stock_of(std::uint32_t w, std::uint32_t i) noexcept;
  Order* order_of(const TpccOrderId& id);

  void check_rows();
  void check_warehouses();
  void check_district(std::uint32_t w, std::uint32_t d, District& district);
  void check_open_orders(std::uint32_t w, std::uint32_t d, const District& district);
  void check_order(const TpccOrderId& id, const Order& order);
  void check_customers();
  void check_stocks();

  TpccOptions population_;
  TpccReport report_;
  std::int64_t keep_since_us_ = INT64_MAX;
  std::vector<TpccHistoryRow> payments_kept_;
  std::uint64_t payments_ = 0;
  std::vector<std::int64_t> prices_;  ///< 0: no row
  std::vector<Warehouse> warehouses_;
  std::vector<District> districts_;
  std::vector<Customer> customers_;
  std::vector<Stock> stocks_;
};

}  // namespace flugs::bench
