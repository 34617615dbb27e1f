#include "bench/tatp/tatp_load.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <span>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "bench/support/clock.h"
#include "bench/support/random.h"

namespace flugs::bench {

namespace {

constexpr std::uint32_t kSubscribersPerTransaction = 1000;

template <std::size_t size>
std::string_view text_of(const std::array<char, size>& letters) noexcept {
  return {letters.data(), letters.size()};
}

Status insert_facilities(Transaction& transaction, const TatpTables& tables,
                         const SubscriberRecord& record, LoadResult& result) {
  const Value s_id = Value::int32(static_cast<std::int32_t>(record.s_id));
  for (std::uint32_t type = 1; type <= kTypesMax; ++type) {
    const FacilityRecord& facility = record.facilities[type - 1];
    if (!facility.present) continue;
    const Value sf_type = Value::int32(static_cast<std::int32_t>(type));
    const Result<RowId> row = transaction.insert(
        tables.special_facility,
        {s_id, sf_type, Value::int32(facility.is_active), Value::int32(facility.error_control),
         Value::int32(facility.data_a), Value::string(text_of(facility.data_b))});
    if (!row.ok()) return row.status();
    ++result.rows;
    for (std::size_t i = 0; i < kStartTimes.size(); ++i) {
      const ForwardingRecord& forwarding = facility.forwarding[i];
      if (!forwarding.present) continue;
      const SubNbr numberx(forwarding.numberx);
      const Result<RowId> child =
          transaction.insert(tables.call_forwarding,
                             {s_id, sf_type, Value::int32(kStartTimes[i]),
                              Value::int32(forwarding.end_time), Value::string(numberx.text())});
      if (!child.ok()) return child.status();
      ++result.rows;
      ++result.forwarding_rows;
    }
  }
  return {};
}

Status insert_subscriber(Transaction& transaction, const TatpTables& tables,
                         const SubscriberRecord& record, LoadResult& result) {
  const Value s_id = Value::int32(static_cast<std::int32_t>(record.s_id));
  const SubNbr number(record.s_id);
  std::array<Value, TatpColumns::kSubscriberColumns> values;
  values[0] = s_id;
  values[1] = Value::string(number.text());
  for (std::size_t i = 0; i < record.small.size(); ++i)
    values[2 + i] = Value::int32(record.small[i]);
  values[32] = Value::int64(record.msc_location);
  values[33] = Value::int64(record.vlr_location);
  const Result<RowId> row = transaction.insert(tables.subscriber, std::span<const Value>(values));
  if (!row.ok()) return row.status();
  ++result.rows;
  for (std::uint32_t type = 1; type <= kTypesMax; ++type) {
    const AccessInfoRecord& access = record.access[type - 1];
    if (!access.present) continue;
    const Result<RowId> child = transaction.insert(
        tables.access_info,
        {s_id, Value::int32(static_cast<std::int32_t>(type)), Value::int32(access.data1),
         Value::int32(access.data2), Value::string(text_of(access.data3)),
         Value::string(text_of(access.data4))});
    if (!child.ok()) return child.status();
    ++result.rows;
  }
  return insert_facilities(transaction, tables, record, result);
}

/// Loaders take the next thousand places of the random order each.
class Loader {
 public:
  Loader(Database& database, const TatpTables& tables, const Population& population)
      : database_(database),
        tables_(tables),
        population_(population),
        order_(population.subscribers(), mix64(population.options().seed)) {}

  void run(Status& status, LoadResult& result) {
    const std::uint64_t total = population_.subscribers();
    while (!failed_.load(std::memory_order_relaxed)) {
      const std::uint64_t begin = next_.fetch_add(kSubscribersPerTransaction);
      if (begin >= total) return;
      const std::uint64_t end = std::min<std::uint64_t>(begin + kSubscribersPerTransaction, total);
      status = load(begin, end, result);
      if (!status.ok()) {
        failed_.store(true, std::memory_order_relaxed);
        return;
      }
      loaded_.fetch_add(end - begin, std::memory_order_relaxed);
    }
  }
  std::uint64_t loaded() const noexcept { return loaded_.load(std::memory_order_relaxed); }

 private:
  Status load(std::uint64_t begin, std::uint64_t end, LoadResult& result) {
    Result<Transaction> transaction = database_.begin();
    if (!transaction.ok()) return transaction.status();
    for (std::uint64_t place = begin; place < end; ++place) {
      const auto s_id = static_cast<std::uint32_t>(order_(place) + 1);
      Status status =
          insert_subscriber(*transaction, tables_, population_.subscriber(s_id), result);
      if (!status.ok()) return status;
    }
    return transaction->commit();
  }

  Database& database_;
  const TatpTables& tables_;
  const Population& population_;
  Permutation order_;
  std::atomic<std::uint64_t> next_{0};
  std::atomic<std::uint64_t> loaded_{0};
  std::atomic<bool> failed_{false};
};

}  // namespace

Result<LoadResult> load_population(
    Database& database, const TatpTables& tables, const Population& population, unsigned threads,
    const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  const std::uint64_t begin = monotonic_ns();
  Loader loader(database, tables, population);
  std::vector<Status> statuses(threads);
  std::vector<LoadResult> results(threads);
  std::atomic<unsigned> running{threads};
  std::vector<std::thread> loaders;
  loaders.reserve(threads);
  for (unsigned i = 0; i < threads; ++i)
    loaders.emplace_back([&, i] {
      loader.run(statuses[i], results[i]);
      running.fetch_sub(1, std::memory_order_release);
    });
  while (running.load(std::memory_order_acquire) > 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (progress) progress(loader.loaded(), population.subscribers());
  }
  for (std::thread& thread : loaders) thread.join();
  LoadResult total;
  for (unsigned i = 0; i < threads; ++i) {
    if (!statuses[i].ok()) return statuses[i];
    total.rows += results[i].rows;
    total.forwarding_rows += results[i].forwarding_rows;
  }
  total.seconds = static_cast<double>(monotonic_ns() - begin) * 1e-9;
  return total;
}

}  // namespace flugs::bench
