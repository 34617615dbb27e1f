#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "bench/tpcc/tpcc_request.h"
#include "flugs/status.h"

namespace flugs::bench {

enum class TpccOutcome : std::uint8_t {
  kDone,
  kRolledBack,  ///< a New-Order with the item that does not exist: no trace of it is left
};

/// What a transaction told its user. The user may rely on it once the transaction has committed.
struct TpccReceipt {
  std::uint32_t order = 0;      ///< New-Order: o_id. Order-Status: the newest order; 0: none
  std::uint32_t customer = 0;   ///< Payment, Order-Status: c_id
  std::uint32_t low_stock = 0;  ///< Stock-Level
  std::uint32_t skipped = 0;    ///< Delivery: districts without an open order
  std::int64_t total = 0;       ///< New-Order: cents, with taxes and discount
  std::array<std::uint32_t, kDistrictsPerWarehouse> delivered{};  ///< o_id; 0: none was open
  std::uint64_t checksum = 0;  ///< of all that was read, so that reading cannot be left out

  void consume(std::int64_t number) noexcept { checksum += static_cast<std::uint64_t>(number); }
  void consume(std::string_view text) noexcept {
    if (!text.empty()) checksum += text.size() + static_cast<unsigned char>(text.back());
  }
};

/// One user's transactions in a database, flugs or another one.
class TpccSession {
 public:
  virtual ~TpccSession() = default;
  /// One attempt, from begin to commit. Durable when: it returns kDone, as far as the database
  /// guarantees. Fails with kConflict: another transaction was there first, nothing was changed;
  /// with anything else: that must not happen.
  virtual Result<TpccOutcome> run(const TpccRequest& request, TpccReceipt& receipt) = 0;

 protected:
  /// The program that the request names.
  Result<TpccOutcome> execute(const TpccRequest& request, TpccReceipt& receipt);

 private:
  virtual Result<TpccOutcome> new_order(const TpccRequest& request, TpccReceipt& receipt) = 0;
  virtual Result<TpccOutcome> payment(const TpccRequest& request, TpccReceipt& receipt) = 0;
  virtual Result<TpccOutcome> order_status(const TpccRequest& request, TpccReceipt& receipt) = 0;
  virtual Result<TpccOutcome> delivery(const TpccRequest& request, TpccReceipt& receipt) = 0;
  virtual Result<TpccOutcome> stock_level(const TpccRequest& request, TpccReceipt& receipt) = 0;
};

/// New-Order's total, in cents: the amounts with discount and both taxes, rates in 1/10000.
constexpr std::int64_t order_total(std::int64_t amounts, std::int64_t discount,
                                   std::int64_t taxes) noexcept {
  return amounts * (10'000 - discount) / 10'000 * (10'000 + taxes) / 10'000;
}

/// s_quantity after an order of `wanted` (clause 2.4.2.2).
constexpr std::int32_t stock_left(std::int32_t there, std::int32_t wanted) noexcept {
  return there >= wanted + 10 ? there - wanted : there - wanted + 91;
}

/// c_data of a customer with bad credit after a payment, at most kCustomerDataMax bytes. `out` has
/// room for these and a hundred more; gives the text.
std::string_view bad_credit_data(const TpccRequest& request, std::uint32_t customer,
                                 std::string_view data, std::span<char> out) noexcept;

}  // namespace flugs::bench
