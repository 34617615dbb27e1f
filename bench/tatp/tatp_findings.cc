#include "bench/tatp/tatp_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace flugs::bench {

TatpFindings::TatpFindings(const Population& population)
    : population_(population), records_(std::size_t{population.subscribers()} + 1) {
  for (const Invariant invariant :
       {Invariant::kPopulation, Invariant::kNumbers, Invariant::kDomains, Invariant::kParents,
        Invariant::kSlots, Invariant::kAcknowledged})
    report_.check(invariant);
  if (population.options().parity) report_.check(Invariant::kAtomicity);
}

SubscriberRecord* TatpFindings::record(std::int64_t s_id, const char* table) {
  if (s_id >= 1 && s_id <= std::int64_t{population_.subscribers()})
    return &records_[static_cast<std::size_t>(s_id)];
  report_.broken(Invariant::kPopulation, fmt::format("{} has a subscriber {}", table, s_id));
  return nullptr;
}

template <typename Record>
Record* TatpFindings::record_of_type(std::array<Record, kTypesMax>& records, std::int64_t type,
                                     const char* table) {
  if (type < 1 || type > std::int64_t{kTypesMax}) {
    report_.broken(Invariant::kDomains, fmt::format("{} has a type {}", table, type));
    return nullptr;
  }
  Record& record = records[static_cast<std::size_t>(type) - 1];
  if (record.present)
    report_.broken(Invariant::kPopulation, fmt::format("a row of {} occurs twice", table));
  record.present = true;
  return &record;
}

std::uint32_t TatpFindings::number(std::int64_t value, std::int64_t min, std::int64_t max,
                                   const char* what) {
  if (value >= min && value <= max) return static_cast<std::uint32_t>(value);
  report_.broken(Invariant::kDomains, fmt::format("{} is {}", what, value));
  return 0;
}

template <std::size_t size>
void TatpFindings::letters(std::string_view text, std::array<char, size>& out) {
  if (text.size() == size)
    std::copy(text.begin(), text.end(), out.begin());
  else
    report_.broken(Invariant::kDomains, fmt::format("'{}' is not of {} letters", text, size));
}

void TatpFindings::add_subscriber(std::int64_t s_id, std::string_view sub_nbr,
                                  std::span<const std::int64_t, 30> small,
                                  std::int64_t msc_location, std::int64_t vlr_location) {
  constexpr std::int64_t kLocationMax = 0xffffffff;
  SubscriberRecord* subscriber = record(s_id, "subscriber");
  if (subscriber == nullptr) return;
  if (subscriber->s_id != 0)
    report_.broken(Invariant::kPopulation, fmt::format("subscriber {} occurs twice", s_id));
  subscriber->s_id = static_cast<std::uint32_t>(s_id);
  for (std::size_t i = 0; i < small.size(); ++i)
    subscriber->small[i] = static_cast<std::uint8_t>(
        number(small[i], 0, i < 10 ? 1 : (i < 20 ? 15 : 255), "a bit, hex or byte2"));
  subscriber->msc_location = number(msc_location, 1, kLocationMax, "msc_location");
  subscriber->vlr_location = number(vlr_location, 1, kLocationMax, "vlr_location");
  add_number(sub_nbr, s_id);
}

void TatpFindings::add_access(std::int64_t s_id, std::int64_t type, std::int64_t data1,
                              std::int64_t data2, std::string_view data3, std::string_view data4) {
  SubscriberRecord* subscriber = record(s_id, "access_info");
  if (subscriber == nullptr) return;
  AccessInfoRecord* access = record_of_type(subscriber->access, type, "access_info");
  if (access == nullptr) return;
  access->data1 = static_cast<std::uint8_t>(number(data1, 0, 255, "data1"));
  access->data2 = static_cast<std::uint8_t>(number(data2, 0, 255, "data2"));
  letters(data3, access->data3);
  letters(data4, access->data4);
}

void TatpFindings::add_facility(std::int64_t s_id, std::int64_t type,
                                std::span<const std::int64_t, 3> numbers, std::string_view data_b) {
  SubscriberRecord* subscriber = record(s_id, "special_facility");
  if (subscriber == nullptr) return;
  FacilityRecord* facility = record_of_type(subscriber->facilities, type, "special_facility");
  if (facility == nullptr) return;
  facility->is_active = number(numbers[0], 0, 1, "is_active") != 0;
  facility->error_control = static_cast<std::uint8_t>(number(numbers[1], 0, 255, "error_cntrl"));
  facility->data_a = static_cast<std::uint8_t>(number(numbers[2], 0, 255, "data_a"));
  letters(data_b, facility->data_b);
}

// A parent may still be to come, so whether there is one is looked at in the end.
void TatpFindings::add_forwarding(std::int64_t s_id, std::int64_t type, std::int64_t start_time,
                                  std::int64_t end_time, std::string_view numberx) {
  SubscriberRecord* subscriber = record(s_id, "call_forwarding");
  if (subscriber == nullptr) return;
  const std::int64_t end_max = 16 + std::int64_t{population_.longest_forwarding()};
  const std::optional<std::uint32_t> named = subscriber_named(numberx, population_.subscribers());
  if (type < 1 || type > std::int64_t{kTypesMax} || start_time < 0 || start_time > 16 ||
      start_time % 8 != 0 || end_time < 1 || end_time > end_max || !named) {
    report_.broken(Invariant::kDomains,
                   fmt::format("call forwarding ({}, {}, {}): end time {}, number '{}'", s_id, type,
                               start_time, end_time, numberx));
    return;
  }
  ForwardingRecord& forwarding = subscriber->facilities[static_cast<std::size_t>(type) - 1]
                                     .forwarding[static_cast<std::size_t>(start_time) / 8];
  if (forwarding.present)
    report_.broken(Invariant::kParents, fmt::format("call forwarding ({}, {}, {}) occurs twice",
                                                    s_id, type, start_time));
  forwarding = {.present = true,
                .end_time = static_cast<std::uint8_t>(end_time),
                .numberx = named.value_or(0)};
}

void TatpFindings::add_number(std::string_view number, std::int64_t s_id) {
  const std::optional<std::uint32_t> named = subscriber_named(number, population_.subscribers());
  if (!named || std::int64_t{*named} != s_id)
    report_.broken(Invariant::kNumbers,
                   fmt::format("number '{}' leads to subscriber {}", number, s_id));
}

void TatpFindings::check_subscriber(std::uint32_t s_id) {
  const SubscriberRecord& found = records_[s_id];
  if (found.s_id == 0)
    report_.broken(Invariant::kPopulation, fmt::format("subscriber {} is missing", s_id));
  bool is_lowest = true;
  for (std::size_t i = 0; i < kTypesMax; ++i) {
    const FacilityRecord& facility = found.facilities[i];
    const bool has_rows = std::any_of(facility.forwarding.begin(), facility.forwarding.end(),
                                      [](const auto& forwarding) { return forwarding.present; });
    if (has_rows && !facility.present)
      report_.broken(Invariant::kParents,
                     fmt::format("call forwarding of ({}, {}) has no parent", s_id, i + 1));
    if (!facility.present || !is_lowest) continue;
    is_lowest = false;
    if (population_.options().parity && facility.data_a % 2 != found.small[0])
      report_.broken(Invariant::kAtomicity, fmt::format("subscriber {}: bit_1 is {}, data_a {}",
                                                        s_id, found.small[0], facility.data_a));
  }
}

InvariantReport TatpFindings::check(const TatpAudit& audit) {
  std::uint64_t base_rows = 0;
  std::uint64_t rows = 0;
  for (std::uint32_t s_id = 1; s_id <= population_.subscribers(); ++s_id) {
    const SubscriberRecord expected = population_.subscriber(s_id);
    const SubscriberRecord& found = records_[s_id];
    check_subscriber(s_id);
    check_constant_columns(expected, found, report_);
    const TatpState base(expected);
    const TatpState actual(found);
    base_rows += base.forwarding_rows();
    rows += actual.forwarding_rows();
    audit.check_subscriber(s_id, base, actual, report_);
  }
  audit.check_count(base_rows, rows, report_);
  audit.check_timestamps(report_);
  return report_;
}

}  // namespace flugs::bench
