#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "bench/support/random.h"
#include "bench/tpcc/tpcc_population.h"

namespace flugs::bench {

/// TPC-C's transactions (clause 2.4 to 2.8).
enum class TpccType : std::uint8_t { kNewOrder, kPayment, kOrderStatus, kDelivery, kStockLevel };
inline constexpr std::size_t kTpccTypes = 5;
inline constexpr std::array<std::string_view, kTpccTypes> kTpccTypeNames = {
    "new_order", "payment", "order_status", "delivery", "stock_level"};

constexpr std::size_t index_of(TpccType type) noexcept { return static_cast<std::size_t>(type); }
constexpr bool writes(TpccType type) noexcept {
  return type != TpccType::kOrderStatus && type != TpccType::kStockLevel;
}

enum class TpccMix : std::uint8_t {
  kFull,      ///< 45, 43, 4, 4 and 4 %
  kNewOrder,  ///< New-Order alone
  kPayment,   ///< Payment alone
};

struct TpccLine {
  std::uint32_t item = 0;
  std::uint32_t supply_warehouse = 0;
  std::uint32_t quantity = 0;
};

/// A transaction with its inputs. A conflict is retried with the same ones.
struct TpccRequest {
  TpccType type = TpccType::kNewOrder;
  bool by_name = false;          ///< Payment, Order-Status
  bool has_unused_item = false;  ///< New-Order: the last line's; it must be rolled back
  std::uint32_t w = 1;           ///< the user's own warehouse
  std::uint32_t d = 1;           ///< for a Delivery all of them
  std::uint32_t line_count = 0;
  std::uint32_t customer_w = 1;
  std::uint32_t customer_d = 1;
  std::uint32_t customer = 1;  ///< c_id; the number of c_last if `by_name`
  std::uint32_t carrier = 1;
  std::uint32_t threshold = 10;
  std::int64_t amount = 0;   ///< cents
  std::int64_t time_us = 0;  ///< since 1970; set when the request is executed
  std::array<TpccLine, kOrderLinesMax> all_lines{};

  std::span<const TpccLine> lines() const noexcept { return {all_lines.data(), line_count}; }
  bool is_all_local() const noexcept {
    for (const TpccLine& line : lines())
      if (line.supply_warehouse != w) return false;
    return true;
  }
};

/// The constants C of NURand for A = 1023 and 8191, the same for all users of a run.
struct TpccConstants {
  std::uint32_t customer = 0;
  std::uint32_t item = 0;

  explicit TpccConstants(std::uint64_t run_seed) noexcept {
    Random random(mix64(run_seed ^ 0x7470'6363u));
    customer = random.between(0, 1023);
    item = random.between(0, 8191);
  }
};

/// Draws the transactions of one user, inputs included, but for `time_us`.
class TpccGenerator {
 public:
  /// `seed` is the user's own.
  TpccGenerator(const TpccOptions& population, TpccMix mix, const TpccConstants& constants,
                std::uint64_t seed) noexcept;

  /// The user's warehouse, and its district for Stock-Level.
  void set_home(std::uint32_t w, std::uint32_t d) noexcept {
    w_ = w;
    d_ = d;
  }
  /// A transaction of the mix.
  void next(TpccRequest& request) noexcept;
  /// A transaction of this type.
  void draw(TpccType type, TpccRequest& request) noexcept;

 private:
  void draw_order(TpccRequest& request) noexcept;
  void draw_payment(TpccRequest& request) noexcept;
  void draw_customer(TpccRequest& request) noexcept;
  std::uint32_t any_district() noexcept { return random_.between(1, kDistrictsPerWarehouse); }
  std::uint32_t customer_id() noexcept;
  std::uint32_t other_warehouse() noexcept;

  TpccOptions population_;
  TpccMix mix_;
  TpccConstants constants_;
  Random random_;
  std::uint32_t w_ = 1;
  std::uint32_t d_ = 1;
};

}  // namespace flugs::bench
