#include "bench/tpcc/tpcc_population.h"

#include <initializer_list>
#include <memory_resource>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/support/clock.h"
#include "bench/support/integer.h"
#include "bench/tpcc/tpcc_random.h"

namespace flugs::bench {

namespace {

/// Collects rows and inserts them a thousand at a time, a transaction each time.
class RowLoader {
 public:
  RowLoader(Database& database, TableId table) : database_(database), table_(table) {}

  /// Texts of the rows to come: valid until they are inserted.
  std::span<char> take(std::size_t size) {
    return {static_cast<char*>(texts_.allocate(size, 1)), size};
  }
  Status add(std::initializer_list<Value> row) {
    values_.insert(values_.end(), row);
    ++rows_;
    return ++waiting_ < kRowsPerTransaction ? Status() : flush();
  }
  Status flush() {
    if (waiting_ == 0) return {};
    Result<Transaction> transaction = database_.begin();
    if (!transaction.ok()) return transaction.status();
    Status status = transaction->insert_rows(table_, values_);
    if (status.ok()) status = transaction->commit();
    values_.clear();
    texts_.release();
    waiting_ = 0;
    return status;
  }
  std::uint64_t rows() const noexcept { return rows_; }

 private:
  static constexpr std::uint32_t kRowsPerTransaction = 1000;

  Database& database_;
  TableId table_;
  std::pmr::monotonic_buffer_resource texts_{std::size_t{1} << 20};
  std::vector<Value> values_;
  std::uint32_t waiting_ = 0;
  std::uint64_t rows_ = 0;
};

class TpccLoader {
 public:
  TpccLoader(Database& database, const TpccTables& tables, const TpccOptions& options,
             const std::function<void(std::uint64_t, std::uint64_t)>& progress)
      : options_(options),
        progress_(progress),
        random_(mix64(options.seed)),
        warehouse_(database, tables.warehouse),
        district_(database, tables.district),
        customer_(database, tables.customer),
        history_(database, tables.history),
        new_order_(database, tables.new_order),
        orders_(database, tables.orders),
        order_line_(database, tables.order_line),
        stock_(database, tables.stock),
        item_(database, tables.item) {}

  Status run(TpccLoad& load) {
    Status status = items();
    for (std::uint32_t w = 1; w <= options_.warehouses && status.ok(); ++w) {
      status = warehouse(w);
      for (std::uint32_t d = 1; d <= kDistrictsPerWarehouse && status.ok(); ++d)
        status = district(w, d);
    }
    for (RowLoader* table : {&warehouse_, &district_, &customer_, &history_, &new_order_, &orders_,
                             &order_line_, &stock_, &item_}) {
      if (status.ok()) status = table->flush();
      load.rows += table->rows();
    }
    load.order_lines = order_line_.rows();
    return status;
  }

 private:
  // Clause 4.3.2.2: a-strings, n-strings, and what is made of them.
  Value letters(RowLoader& table, std::uint32_t low, std::uint32_t high) {
    const std::span<char> text = table.take(random_.between(low, high));
    fill_alphanumeric(random_, text);
    return Value::string({text.data(), text.size()});
  }
  Value digits(RowLoader& table, std::uint32_t size) {
    const std::span<char> text = table.take(size);
    fill_digits(random_, text);
    return Value::string({text.data(), text.size()});
  }
  Value zip(RowLoader& table) {
    const std::span<char> text = table.take(9);
    fill_digits(random_, text.first(4));
    std::fill(text.begin() + 4, text.end(), '1');
    return Value::string({text.data(), text.size()});
  }
  /// i_data and s_data: a tenth of them contain ORIGINAL.
  Value data(RowLoader& table) {
    constexpr std::string_view kOriginal = "ORIGINAL";
    const std::span<char> text = table.take(random_.between(26, 50));
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
    const std::span<char> text = customer_.take(name.size());
    name.copy(text.data(), text.size());
    return Value::string({text.data(), text.size()});
  }

  Status items() {
    for (std::uint32_t i = 1; i <= options_.items; ++i) {
      Status status = item_.add({integer(i), integer(random_.between(1, 10'000)),
                                 letters(item_, 14, 24), decimal(100, 10'000), data(item_)});
      if (!status.ok()) return status;
    }
    return {};
  }

  Status warehouse(std::uint32_t w) {
    const Value name = letters(warehouse_, 6, 10);
    const Value street_1 = letters(warehouse_, 10, 20);
    const Value street_2 = letters(warehouse_, 10, 20);
    const Value city = letters(warehouse_, 10, 20);
    Status status = warehouse_.add(
        {integer(w), name, street_1, street_2, city, letters(warehouse_, 2, 2), zip(warehouse_),
         decimal(0, 2000), Value::decimal_units(kDistrictsPerWarehouse * district_payments())});
    for (std::uint32_t i = 1; i <= options_.items && status.ok(); ++i) status = stock(w, i);
    return status;
  }

  Status stock(std::uint32_t w, std::uint32_t i) {
    const Value quantity = integer(random_.between(10, 100));
    const auto info = [this] { return letters(stock_, 24, 24); };
    return stock_.add({integer(w), integer(i), quantity, info(), info(), info(), info(), info(),
                       info(), info(), info(), info(), info(), Value::int64(0), integer(0),
                       integer(0), data(stock_)});
  }

  /// What all customers of a district have paid: 10.00 each.
  std::int64_t district_payments() const noexcept {
    return std::int64_t{1000} * options_.customers_per_district;
  }

  Status district(std::uint32_t w, std::uint32_t d) {
    const Value name = letters(district_, 6, 10);
    const Value street_1 = letters(district_, 10, 20);
    const Value street_2 = letters(district_, 10, 20);
    const Value city = letters(district_, 10, 20);
    Status status = district_.add({integer(w), integer(d), name, street_1, street_2, city,
                                   letters(district_, 2, 2), zip(district_), decimal(0, 2000),
                                   Value::decimal_units(district_payments()),
                                   integer(options_.customers_per_district + 1)});
    for (std::uint32_t c = 1; c <= options_.customers_per_district && status.ok(); ++c)
      status = customer(w, d, c);
    return status.ok() ? orders(w, d) : status;
  }

  Status customer(std::uint32_t w, std::uint32_t d, std::uint32_t c) {
    const Value first = letters(customer_, 8, 16);
    const Value last = last_name_of(c);
    const Value street_1 = letters(customer_, 10, 20);
    const Value street_2 = letters(customer_, 10, 20);
    const Value city = letters(customer_, 10, 20);
    const Value state = letters(customer_, 2, 2);
    const Value credit = Value::string(random_.below(10) == 0 ? "BC" : "GC");
    const Value since = Value::timestamp(options_.first_entry_us);
    Status status = customer_.add({integer(w),
                                   integer(d),
                                   integer(c),
                                   first,
                                   Value::string("OE"),
                                   last,
                                   street_1,
                                   street_2,
                                   city,
                                   state,
                                   zip(customer_),
                                   digits(customer_, 16),
                                   since,
                                   credit,
                                   Value::decimal_units(5'000'000),
                                   decimal(0, 5000),
                                   Value::decimal_units(-1000),
                                   Value::decimal_units(1000),
                                   integer(1),
                                   integer(0),
                                   letters(customer_, 300, 500)});
    if (!status.ok()) return status;
    return history_.add({integer(c), integer(d), integer(w), integer(d), integer(w), since,
                         Value::decimal_units(1000), letters(history_, 12, 24)});
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
    if (progress_) progress_(orders_.rows(), options_.orders());
    return {};
  }

  Status order(std::uint32_t w, std::uint32_t d, std::uint32_t o, std::uint32_t c) {
    const bool is_delivered = o <= options_.delivered_per_district();
    const Value entry = Value::timestamp(options_.first_entry_us +
                                         kEntryStepUs * static_cast<std::int64_t>(orders_.rows()));
    const Value carrier = is_delivered ? integer(random_.between(1, 10)) : Value::null();
    const std::uint32_t lines = random_.between(5, kOrderLinesMax);
    Status status = orders_.add({integer(w), integer(d), integer(o), integer(c), entry, carrier,
                                 integer(lines), integer(1)});
    if (status.ok() && !is_delivered) status = new_order_.add({integer(w), integer(d), integer(o)});
    for (std::uint32_t line = 1; line <= lines && status.ok(); ++line) {
      const Value item = integer(random_.between(1, options_.items));
      const Value amount = is_delivered ? Value::decimal_units(0) : decimal(1, 999'999);
      status = order_line_.add({integer(w), integer(d), integer(o), integer(line), item, integer(w),
                                is_delivered ? entry : Value::null(), integer(5), amount,
                                letters(order_line_, 24, 24)});
    }
    return status;
  }

  const TpccOptions& options_;
  const std::function<void(std::uint64_t, std::uint64_t)>& progress_;
  Random random_;
  RowLoader warehouse_;
  RowLoader district_;
  RowLoader customer_;
  RowLoader history_;
  RowLoader new_order_;
  RowLoader orders_;
  RowLoader order_line_;
  RowLoader stock_;
  RowLoader item_;
};

}  // namespace

Result<TpccLoad> load_tpcc(Database& database, const TpccTables& tables, const TpccOptions& options,
                           const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  const std::uint64_t begin = monotonic_ns();
  TpccLoad load;
  Status status = TpccLoader(database, tables, options, progress).run(load);
  if (!status.ok()) return status;
  load.seconds = static_cast<double>(monotonic_ns() - begin) * 1e-9;
  return load;
}

}  // namespace flugs::bench
