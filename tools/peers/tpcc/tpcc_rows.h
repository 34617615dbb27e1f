#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "bench/tpcc/tpcc_schema.h"
#include "flugs/value.h"

namespace flugs::tools {

// How TPC-C's rows are keys and values in a store of such.

/// Numbers of 32 bits, big-endian, so that the order of bytes is that of the numbers.
class TpccKey {
 public:
  template <typename... Numbers>
  explicit TpccKey(Numbers... numbers) noexcept {
    (add(static_cast<std::uint32_t>(numbers)), ...);
  }
  /// Texts end with a byte that no letter is, so that a shorter one comes first.
  void add(std::string_view text) noexcept {
    size_ += text.copy(bytes_.data() + size_, kTextBytesMax);
    bytes_[size_++] = '\0';
  }
  void add(std::uint32_t number) noexcept {
    for (const int shift : {24, 16, 8, 0}) bytes_[size_++] = static_cast<char>(number >> shift);
  }
  std::string_view text() const noexcept { return {bytes_.data(), size_}; }

 private:
  static constexpr std::size_t kTextBytesMax = 16;  // c_last, c_first

  std::array<char, 64> bytes_;
  std::size_t size_ = 0;
};

/// The number at this place of a key.
inline std::uint32_t number_in(std::string_view key, std::size_t index) noexcept {
  std::uint32_t number = 0;
  for (std::size_t i = 4 * index; i < 4 * index + 4 && i < key.size(); ++i)
    number = number << 8 | static_cast<unsigned char>(key[i]);
  return number;
}

/// A text of at most `capacity` bytes.
template <std::size_t capacity>
struct TpccText {
  std::uint16_t size = 0;
  std::array<char, capacity> letters{};

  std::string_view text() const noexcept { return {letters.data(), size}; }
  void set(std::string_view text) noexcept {
    size = static_cast<std::uint16_t>(text.copy(letters.data(), capacity));
  }
};

struct TpccAddress {
  TpccText<20> street_1 = {};
  TpccText<20> street_2 = {};
  TpccText<20> city = {};
  TpccText<2> state = {};
  TpccText<9> zip = {};
};

// The values, as they are in memory: everything but what the key has.
struct WarehouseValue {
  std::int64_t ytd = 0;
  std::int32_t tax = 0;
  TpccText<10> name = {};
  TpccAddress address = {};
};
struct DistrictValue {
  std::int64_t ytd = 0;
  std::int32_t tax = 0;
  std::uint32_t next_order = 0;
  TpccText<10> name = {};
  TpccAddress address = {};
};
/// Stored as far as its last text goes.
struct CustomerValue {
  std::int64_t since = 0;
  std::int64_t credit_limit = 0;
  std::int64_t balance = 0;
  std::int64_t ytd_payment = 0;
  std::int32_t discount = 0;
  std::int32_t payments = 0;
  std::int32_t deliveries = 0;
  TpccText<16> first = {};
  TpccText<2> middle = {};
  TpccText<16> last = {};
  TpccAddress address = {};
  TpccText<16> phone = {};
  TpccText<2> credit = {};
  TpccText<bench::kCustomerDataMax> data = {};
};
struct HistoryValue {
  std::int64_t date = 0;
  std::int64_t amount = 0;
  std::uint32_t c = 0;
  std::uint32_t c_d = 0;
  std::uint32_t c_w = 0;
  std::uint32_t d = 0;
  std::uint32_t w = 0;
  TpccText<24> data = {};
};
struct OrderValue {
  std::int64_t entry = 0;
  std::uint32_t customer = 0;
  std::uint8_t carrier = 0;  ///< 0: none
  std::uint8_t line_count = 0;
  std::uint8_t all_local = 0;
  std::uint8_t unused = 0;
};
struct LineValue {
  std::int64_t delivery = 0;  ///< 0: none
  std::int64_t amount = 0;
  std::uint32_t item = 0;
  std::uint32_t supply_w = 0;
  std::uint32_t quantity = 0;
  TpccText<bench::kDistrictInfoBytes> info = {};
};
struct StockValue {
  std::int64_t ytd = 0;
  std::int32_t quantity = 0;
  std::int32_t orders = 0;
  std::int32_t remote = 0;
  std::array<std::array<char, bench::kDistrictInfoBytes>, bench::kDistrictsPerWarehouse> info{};
  TpccText<50> data = {};
};
struct ItemValue {
  std::int64_t price = 0;
  std::uint32_t image = 0;
  TpccText<24> name = {};
  TpccText<50> data = {};
};

template <typename V>
std::string_view bytes_of_value(const V& value) noexcept {
  static_assert(std::is_trivially_copyable_v<V>);
  return {reinterpret_cast<const char*>(&value), sizeof value};
}
inline std::string_view bytes_of_value(const CustomerValue& value) noexcept {
  return {reinterpret_cast<const char*>(&value),
          offsetof(CustomerValue, data.letters) + value.data.size};
}

// From a row of the population, one value a column.
inline void set_address(std::span<const Value> row, std::size_t first, TpccAddress& address) {
  address.street_1.set(row[first].as_string());
  address.street_2.set(row[first + 1].as_string());
  address.city.set(row[first + 2].as_string());
  address.state.set(row[first + 3].as_string());
  address.zip.set(row[first + 4].as_string());
}
inline WarehouseValue warehouse_of(std::span<const Value> row) {
  WarehouseValue value{.ytd = row[8].raw(), .tax = row[7].as_int32()};
  value.name.set(row[1].as_string());
  set_address(row, 2, value.address);
  return value;
}
inline DistrictValue district_of(std::span<const Value> row) {
  DistrictValue value{.ytd = row[9].raw(),
                      .tax = row[8].as_int32(),
                      .next_order = static_cast<std::uint32_t>(row[10].raw())};
  value.name.set(row[2].as_string());
  set_address(row, 3, value.address);
  return value;
}
inline CustomerValue customer_of(std::span<const Value> row) {
  CustomerValue value{.since = row[12].raw(),
                      .credit_limit = row[14].raw(),
                      .balance = row[16].raw(),
                      .ytd_payment = row[17].raw(),
                      .discount = row[15].as_int32(),
                      .payments = row[18].as_int32(),
                      .deliveries = row[19].as_int32()};
  value.first.set(row[3].as_string());
  value.middle.set(row[4].as_string());
  value.last.set(row[5].as_string());
  set_address(row, 6, value.address);
  value.phone.set(row[11].as_string());
  value.credit.set(row[13].as_string());
  value.data.set(row[20].as_string());
  return value;
}
inline HistoryValue history_of(std::span<const Value> row) {
  const auto number = [&row](std::size_t i) { return static_cast<std::uint32_t>(row[i].raw()); };
  HistoryValue value{.date = row[5].raw(),
                     .amount = row[6].raw(),
                     .c = number(0),
                     .c_d = number(1),
                     .c_w = number(2),
                     .d = number(3),
                     .w = number(4)};
  value.data.set(row[7].as_string());
  return value;
}
inline OrderValue order_of(std::span<const Value> row) {
  return {.entry = row[4].raw(),
          .customer = static_cast<std::uint32_t>(row[3].raw()),
          .carrier = static_cast<std::uint8_t>(row[5].raw()),
          .line_count = static_cast<std::uint8_t>(row[6].raw()),
          .all_local = static_cast<std::uint8_t>(row[7].raw())};
}
inline LineValue line_of(std::span<const Value> row) {
  LineValue value{.delivery = row[6].raw(),
                  .amount = row[8].raw(),
                  .item = static_cast<std::uint32_t>(row[4].raw()),
                  .supply_w = static_cast<std::uint32_t>(row[5].raw()),
                  .quantity = static_cast<std::uint32_t>(row[7].raw())};
  value.info.set(row[9].as_string());
  return value;
}
inline StockValue stock_of(std::span<const Value> row) {
  StockValue value{.ytd = row[13].raw(),
                   .quantity = row[2].as_int32(),
                   .orders = row[14].as_int32(),
                   .remote = row[15].as_int32()};
  for (std::size_t d = 0; d < value.info.size(); ++d)
    row[3 + d].as_string().copy(value.info[d].data(), value.info[d].size());
  value.data.set(row[16].as_string());
  return value;
}
inline ItemValue item_of(std::span<const Value> row) {
  ItemValue value{.price = row[3].raw(), .image = static_cast<std::uint32_t>(row[1].raw())};
  value.name.set(row[2].as_string());
  value.data.set(row[4].as_string());
  return value;
}

}  // namespace flugs::tools
