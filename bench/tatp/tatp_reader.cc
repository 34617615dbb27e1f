#include "bench/tatp/tatp_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "bench/support/integer.h"

namespace flugs::bench {

namespace {

/// A reading of one subscriber.
class Reader {
 public:
  Reader(const Transaction& transaction, const TatpTables& tables, const Population& population,
         std::uint32_t s_id, InvariantReport& report)
      : transaction_(transaction), tables_(tables), population_(population), report_(report) {
    record_.s_id = s_id;
  }

  Result<std::optional<SubscriberRecord>> read() {
    const Result<Row> row = transaction_.get(tables_.subscriber_by_id, {integer(record_.s_id)});
    if (row.code() == StatusCode::kNotFound) {
      report_.broken(Invariant::kPopulation, fmt::format("subscriber {} is missing", record_.s_id));
      return std::optional<SubscriberRecord>();
    }
    if (!row.ok()) return row.status();
    read_columns(row.value());
    Status status = check_number(row.value());
    for (std::uint32_t type = 1; type <= kTypesMax && status.ok(); ++type) {
      status = read_access(type);
      if (status.ok()) status = read_facility(type);
    }
    if (!status.ok()) return status;
    check_parity();
    return std::optional<SubscriberRecord>(record_);
  }

 private:
  void read_columns(const Row& row) {
    std::array<Value, TatpColumns::kSubscriberColumns> values;
    row.get_all(values);
    for (std::size_t i = 0; i < record_.small.size(); ++i) {
      record_.small[i] = static_cast<std::uint8_t>(small(values[2 + i],
                                                         i < 10   ? 1
                                                         : i < 20 ? 15
                                                                  : 255,
                                                         "bit, hex or byte2"));
    }
    record_.msc_location = location(values[32]);
    record_.vlr_location = location(values[33]);
    if (values[0] != integer(record_.s_id))
      report_.broken(Invariant::kPopulation, fmt::format("subscriber {} is found under key {}",
                                                         values[0].to_string(), record_.s_id));
  }

  // T2
  Status check_number(const Row& row) {
    const SubNbr number(record_.s_id);
    if (row.get_unchecked<std::string_view>(TatpColumns::kSubNbr) != number.text())
      report_.broken(Invariant::kNumbers,
                     fmt::format("subscriber {} has the number '{}'", record_.s_id,
                                 row.get_unchecked<std::string_view>(TatpColumns::kSubNbr)));
    const Result<Row> same =
        transaction_.get(tables_.subscriber_by_number, {Value::string(number.text())});
    if (!same.ok() && same.code() != StatusCode::kNotFound) return same.status();
    if (!same.ok() || same.value().id() != row.id())
      report_.broken(Invariant::kNumbers, fmt::format("number {} does not lead to subscriber {}",
                                                      number.text(), record_.s_id));
    return {};
  }

  Status read_access(std::uint32_t type) {
    const Result<Row> row =
        transaction_.get(tables_.access_info_key, {integer(record_.s_id), integer(type)});
    if (row.code() == StatusCode::kNotFound) return {};
    if (!row.ok()) return row.status();
    AccessInfoRecord& access = record_.access[type - 1];
    access.present = true;
    access.data1 = static_cast<std::uint8_t>(
        small(row.value().get_unchecked(TatpColumns::kAccessData1), 255, "data1"));
    access.data2 = static_cast<std::uint8_t>(
        small(row.value().get_unchecked(TatpColumns::kAccessData2), 255, "data2"));
    letters(row.value().get_unchecked<std::string_view>(TatpColumns::kAccessData3), access.data3);
    letters(row.value().get_unchecked<std::string_view>(TatpColumns::kAccessData4), access.data4);
    return {};
  }

  Status read_facility(std::uint32_t type) {
    const std::array<Value, 2> key = {integer(record_.s_id), integer(type)};
    const Result<Row> row = transaction_.get(tables_.special_facility_key, key);
    if (row.code() == StatusCode::kNotFound) return {};
    if (!row.ok()) return row.status();
    FacilityRecord& facility = record_.facilities[type - 1];
    facility.present = true;
    facility.is_active =
        small(row.value().get_unchecked(TatpColumns::kIsActive), 1, "is_active") != 0;
    facility.error_control = static_cast<std::uint8_t>(
        small(row.value().get_unchecked(TatpColumns::kErrorControl), 255, "error_cntrl"));
    facility.data_a = static_cast<std::uint8_t>(
        small(row.value().get_unchecked(TatpColumns::kDataA), 255, "data_a"));
    letters(row.value().get_unchecked<std::string_view>(TatpColumns::kDataB), facility.data_b);
    return transaction_.rows(tables_.call_forwarding_key, key, [&](const Row& forwarding) {
      read_forwarding(type, forwarding);
      return true;
    });
  }

  // T3 and T4
  void read_forwarding(std::uint32_t type, const Row& row) {
    const std::int64_t start = row.get_unchecked<std::int64_t>(TatpColumns::kStartTime);
    if (start != 0 && start != 8 && start != 16) {
      report_.broken(Invariant::kDomains, fmt::format("call forwarding ({}, {}, {}): start time",
                                                      record_.s_id, type, start));
      return;
    }
    ForwardingRecord& forwarding =
        record_.facilities[type - 1].forwarding[static_cast<std::size_t>(start / 8)];
    if (forwarding.present)
      report_.broken(Invariant::kParents, fmt::format("call forwarding ({}, {}, {}) occurs twice",
                                                      record_.s_id, type, start));
    forwarding.present = true;
    const std::int64_t end = row.get_unchecked<std::int64_t>(TatpColumns::kEndTime);
    const std::int64_t end_max = 16 + std::int64_t{population_.longest_forwarding()};
    const auto named = subscriber_named(row.get_unchecked<std::string_view>(TatpColumns::kNumberx),
                                        population_.subscribers());
    if (end < 1 || end > end_max || !named)
      report_.broken(
          Invariant::kDomains,
          fmt::format("call forwarding ({}, {}, {}): end time {}, number '{}'", record_.s_id, type,
                      start, end, row.get_unchecked<std::string_view>(TatpColumns::kNumberx)));
    forwarding.end_time = static_cast<std::uint8_t>(end);
    forwarding.numberx = named.value_or(0);
  }

  // T8
  void check_parity() {
    if (!population_.options().parity) return;
    const auto lowest =
        std::find_if(record_.facilities.begin(), record_.facilities.end(),
                     [](const FacilityRecord& facility) { return facility.present; });
    if (lowest == record_.facilities.end()) return;
    if (lowest->data_a % 2 != record_.small[0])
      report_.broken(Invariant::kAtomicity,
                     fmt::format("subscriber {}: bit_1 is {}, data_a {}", record_.s_id,
                                 record_.small[0], lowest->data_a));
  }

  std::uint32_t small(const Value& value, std::int64_t max, const char* what) {
    if (!value.is_null() && value.raw() >= 0 && value.raw() <= max)
      return static_cast<std::uint32_t>(value.raw());
    report_.broken(Invariant::kDomains,
                   fmt::format("subscriber {}: {} is {}", record_.s_id, what, value.to_string()));
    return 0;
  }
  std::uint32_t location(const Value& value) {
    if (!value.is_null() && value.raw() >= 1 && value.raw() <= 0xffffffff)
      return static_cast<std::uint32_t>(value.raw());
    report_.broken(Invariant::kDomains,
                   fmt::format("subscriber {}: location {}", record_.s_id, value.to_string()));
    return 0;
  }
  template <std::size_t size>
  void letters(std::string_view text, std::array<char, size>& out) {
    if (text.size() == size)
      std::copy(text.begin(), text.end(), out.begin());
    else
      report_.broken(Invariant::kDomains, fmt::format("subscriber {}: '{}' is not of {} letters",
                                                      record_.s_id, text, size));
  }

  const Transaction& transaction_;
  const TatpTables& tables_;
  const Population& population_;
  InvariantReport& report_;
  SubscriberRecord record_;
};

}  // namespace

Result<std::optional<SubscriberRecord>> read_subscriber(const Transaction& transaction,
                                                        const TatpTables& tables,
                                                        const Population& population,
                                                        std::uint32_t s_id,
                                                        InvariantReport& report) {
  return Reader(transaction, tables, population, s_id, report).read();
}

}  // namespace flugs::bench
