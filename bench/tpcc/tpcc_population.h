#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "bench/tpcc/tpcc_schema.h"

namespace flugs::bench {

/// What a population is made by; the same options give the same rows. With the defaults for
/// customers and items it is that of the specification (clause 4.3); fewer of them make a database
/// for tests, in which all proportions are kept.
struct TpccOptions {
  std::uint32_t warehouses = 1;
  std::uint32_t customers_per_district = 3000;  ///< and as many orders; at least 10
  std::uint32_t items = 100'000;                ///< and as many rows of STOCK in each warehouse
  std::uint64_t seed = 1;
  /// When the first order was entered, microseconds since 1970: 2026-01-01. The specification
  /// has all rows loaded "now"; here each order is a millisecond later than the one before.
  std::int64_t first_entry_us = 1'767'225'600'000'000;

  /// Orders of each district that are delivered when loaded: those with the lowest ids, 70 %.
  std::uint32_t delivered_per_district() const noexcept { return customers_per_district * 7 / 10; }
  std::uint64_t orders() const noexcept {
    return std::uint64_t{warehouses} * kDistrictsPerWarehouse * customers_per_district;
  }
};

inline constexpr std::int64_t kEntryStepUs = 1000;

/// s_quantity as loaded, 10 to 100: a function of the row, so that an audit can ask for it.
std::uint32_t initial_quantity(const TpccOptions& options, std::uint32_t w,
                               std::uint32_t i) noexcept;

/// Takes the rows of a population, one value a column.
class TpccSink {
 public:
  virtual ~TpccSink() = default;
  /// Texts of the row are valid during the call.
  virtual Status add(TpccTable table, std::span<const Value> row) = 0;
};

struct TpccLoad {
  std::uint64_t rows = 0;
  std::uint64_t order_lines = 0;
  double seconds = 0;
};

/// Gives the rows of the population to `sink`, warehouse by warehouse, each table by ascending key
/// but CUSTOMER's second one. `progress(done, total)` is told the orders given now and then.
/// Fails as the sink.
Status make_tpcc_rows(const TpccOptions& options, TpccSink& sink, TpccLoad& load,
                      const std::function<void(std::uint64_t, std::uint64_t)>& progress = {});

}  // namespace flugs::bench
