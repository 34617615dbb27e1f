#include "bench/tpcc/tpcc_population.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "bench/support/integer.h"
#include "bench/tpcc/tpcc_random.h"

namespace flugs::bench {

namespace {

/// Draws the rows, and the texts of one row at a time.
class TpccRows {
 public:
  TpccRows(const TpccOptions& options, TpccSink& sink, TpccLoad& load,
           const std::function<void(std::uint64_t, std::uint64_t)>& progress)
      : options_(options),
        sink_(sink),
        load_(load),
        progress_(progress),
        random_(mix64(options.seed)) {}

  Status run() {
    Status status = items();
    for (std::uint32_t w = 1; w <= options_.warehouses && status.ok(); ++w) {
      status = warehouse(w);
      for (std::uint32_t d = 1; d <= kDistrictsPerWarehouse && status.ok(); ++d)
        status = district(w, d);
    }
    return status;
  }

 private:
  Status add(TpccTable table, std::initializer_list<Value> row) {
    ++load_.rows;
    used_ = 0;
    return sink_.add(table, std::span<const Value>(row.begin(), row.size()));
  }
  /// Space for a text of the row to come.
  std::span<char> take(std::size_t size) {
    FLUGS_CHECK(used_ + size <= texts_.size());
    return std::span(texts_).subspan(std::exchange(used_, used_ + size), size);
  }

  // Clause 4.3.2.2: a-strings, n-strings, and what is made of them.
  Value letters(std::uint32_t low, std::uint32_t high) {
    const std::span<char> text = take(random_.between(low, high));
    fill_alphanumeric(random_, text);
    return Value::string({text.data(), text.size()});
  }
  Value digits(std::uint32_t size) {
    const std::span<char> text = take(size);
    fill_digits(random_, text);
    return Value::string({text.data(), text.size()});
  }
  Value zip() {
    const std::span<char> text = take(9);
    fill_digits(random_, text.first(4));
    std::fill(text.begin() + 4, text.end(), '1');
    return Value::string({text.data(), text.size()});
  }
  /// i_data and s_data: a tenth of them contain ORIGINAL.
  Value data() {
    constexpr std::string_view kOriginal = "ORIGINAL";
    const std::span<char> text = take(random_.between(26, 50));
    fill_alphanumeric(random_, text);
    if (random_.below(10) == 0)
      kOriginal.copy(text.data() + random_.below(text.size() - kOriginal.size() + 1),
                     kOriginal.size());
    return Value::string({text.data(), text.size()});
  }
  Value decimal(std::uint32_t low, std::uint32_t high) {
    return Value::decimal_units(random_.between(low, high));
  }
  Value last_name_of(std::uint32_t customer) {
    const std::uint32_t number =
        customer <= 1000 ? customer - 1 : nurand(random_, 255, kNameConstantLoad, 0, 999);
    const std::string name = last_name(number);
    const std::span<char> text = take(name.size());
    name.copy(text.data(), text.size());
    return Value::string({text.data(), text.size()});
  }

  Status items() {
    for (std::uint32_t i = 1; i <= options_.items; ++i) {
      Status status = add(TpccTable::kItem, {integer(i), integer(random_.between(1, 10'000)),
                                             letters(14, 24), decimal(100, 10'000), data()});
      if (!status.ok()) return status;
    }
    return {};
  }

  Status warehouse(std::uint32_t w) {
    const Value name = letters(6, 10);
    const Value street_1 = letters(10, 20);
    const Value street_2 = letters(10, 20);
    const Value city = letters(10, 20);
    Status status =
        add(TpccTable::kWarehouse,
            {integer(w), name, street_1, street_2, city, letters(2, 2), zip(), decimal(0, 2000),
             Value::decimal_units(kDistrictsPerWarehouse * district_payments())});
    for (std::uint32_t i = 1; i <= options_.items && status.ok(); ++i) status = stock(w, i);
    return status;
  }

  Status stock(std::uint32_t w, std::uint32_t i) {
    const Value quantity = integer(initial_quantity(options_, w, i));
    const auto info = [this] { return letters(24, 24); };
    return add(TpccTable::kStock,
               {integer(w), integer(i), quantity, info(), info(), info(), info(), info(), info(),
                info(), info(), info(), info(), Value::int64(0), integer(0), integer(0), data()});
  }

  /// What all customers of a district have paid: 10.00 each.
  std::int64_t district_payments() const noexcept {
    return std::int64_t{1000} * options_.customers_per_district;
  }

  Status district(std::uint32_t w, std::uint32_t d) {
    const Value name = letters(6, 10);
    const Value street_1 = letters(10, 20);
    const Value street_2 = letters(10, 20);
    const Value city = letters(10, 20);
    Status status = add(TpccTable::kDistrict,
                        {integer(w), integer(d), name, street_1, street_2, city, letters(2, 2),
                         zip(), decimal(0, 2000), Value::decimal_units(district_payments()),
                         integer(options_.customers_per_district + 1)});
    for (std::uint32_t c = 1; c <= options_.customers_per_district && status.ok(); ++c)
      status = customer(w, d, c);
    return status.ok() ? orders(w, d) : status;
  }

  Status customer(std::uint32_t w, std::uint32_t d, std::uint32_t c) {
    const Value first = letters(8, 16);
    const Value last = last_name_of(c);
    const Value street_1 = letters(10, 20);
    const Value street_2 = letters(10, 20);
    const Value city = letters(10, 20);
    const Value state = letters(2, 2);
    const Value credit = Value::string(random_.below(10) == 0 ? "BC" : "GC");
    const Value since = Value::timestamp(options_.first_entry_us);
    Status status = add(TpccTable::kCustomer, {integer(w),
                                               integer(d),
                                               integer(c),
                                               first,
                                               Value::string("OE"),
                                               last,
                                               street_1,
                                               street_2,
                                               city,
                                               state,
                                               zip(),
                                               digits(16),
                                               since,
                                               credit,
                                               Value::decimal_units(5'000'000),
                                               decimal(0, 5000),
                                               Value::decimal_units(-1000),
                                               Value::decimal_units(1000),
                                               integer(1),
                                               integer(0),
                                               letters(300, 500)});
    if (!status.ok()) return status;
    return add(TpccTable::kHistory, {integer(c), integer(d), integer(w), integer(d), integer(w),
                                     since, Value::decimal_units(1000), letters(12, 24)});
  }

  /// One order for each customer, in random order.
  Status orders(std::uint32_t w, std::uint32_t d) {
    std::vector<std::uint32_t> customers(options_.customers_per_district);
    std::iota(customers.begin(), customers.end(), 1u);
    for (std::size_t i = customers.size(); i > 1; --i)
      std::swap(customers[i - 1], customers[random_.below(i)]);
    for (std::uint32_t o = 1; o <= customers.size(); ++o) {
      Status status = order(w, d, o, customers[o - 1]);
      if (!status.ok()) return status;
    }
    if (progress_) progress_(orders_, options_.orders());
    return {};
  }

  Status order(std::uint32_t w, std::uint32_t d, std::uint32_t o, std::uint32_t c) {
    const bool is_delivered = o <= options_.delivered_per_district();
    const Value entry = Value::timestamp(options_.first_entry_us +
                                         kEntryStepUs * static_cast<std::int64_t>(orders_++));
    const Value carrier = is_delivered ? integer(random_.between(1, 10)) : Value::null();
    const std::uint32_t lines = random_.between(5, kOrderLinesMax);
    Status status = add(TpccTable::kOrders, {integer(w), integer(d), integer(o), integer(c), entry,
                                             carrier, integer(lines), integer(1)});
    if (status.ok() && !is_delivered)
      status = add(TpccTable::kNewOrder, {integer(w), integer(d), integer(o)});
    for (std::uint32_t line = 1; line <= lines && status.ok(); ++line) {
      ++load_.order_lines;
      const Value item = integer(random_.between(1, options_.items));
      const Value amount = is_delivered ? Value::decimal_units(0) : decimal(1, 999'999);
      status = add(TpccTable::kOrderLine,
                   {integer(w), integer(d), integer(o), integer(line), item, integer(w),
                    is_delivered ? entry : Value::null(), integer(5), amount, letters(24, 24)});
    }
    return status;
  }

  static constexpr std::size_t kTextBytesMax = 1024;  // of one row: c_data has up to 500

  const TpccOptions& options_;
  TpccSink& sink_;
  TpccLoad& load_;
  const std::function<void(std::uint64_t, std::uint64_t)>& progress_;
  Random random_;
  std::uint64_t orders_ = 0;
  std::array<char, kTextBytesMax> texts_;
  std::size_t used_ = 0;
};

}  // namespace

std::uint32_t initial_quantity(const TpccOptions& options, std::uint32_t w,
                               std::uint32_t i) noexcept {
  return 10 +
         static_cast<std::uint32_t>(mix64(mix64(options.seed) ^ (std::uint64_t{w} << 32 | i)) % 91);
}

Status make_tpcc_rows(const TpccOptions& options, TpccSink& sink, TpccLoad& load,
                      const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  return TpccRows(options, sink, load, progress).run();
}

}  // namespace flugs::bench
