#include "bench/tatp/tatp_findings.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace flugs::bench {

namespace {

const Population kPopulation({.subscribers = 40, .parity = true});

template <std::size_t size>
std::string_view text_of(const std::array<char, size>& letters) {
  return {letters.data(), letters.size()};
}

void add_row(const SubscriberRecord& record, std::int64_t msc_location, TatpFindings& findings) {
  std::array<std::int64_t, 30> small{};
  std::copy(record.small.begin(), record.small.end(), small.begin());
  findings.add_subscriber(record.s_id, SubNbr(record.s_id).text(), small, msc_location,
                          record.vlr_location);
}

void add_children(const SubscriberRecord& record, TatpFindings& findings) {
  for (std::uint32_t type = 1; type <= kTypesMax; ++type) {
    const AccessInfoRecord& access = record.access[type - 1];
    if (access.present)
      findings.add_access(record.s_id, type, access.data1, access.data2, text_of(access.data3),
                          text_of(access.data4));
    const FacilityRecord& facility = record.facilities[type - 1];
    if (facility.present)
      findings.add_facility(
          record.s_id, type,
          std::array<std::int64_t, 3>{facility.is_active, facility.error_control, facility.data_a},
          text_of(facility.data_b));
    for (std::size_t slot = 0; slot < kStartTimes.size(); ++slot) {
      const ForwardingRecord& forwarding = facility.forwarding[slot];
      if (forwarding.present)
        findings.add_forwarding(record.s_id, type, kStartTimes[slot], forwarding.end_time,
                                SubNbr(forwarding.numberx).text());
    }
  }
}

/// Findings for the population with the changes of `change` to one subscriber and of `add`.
InvariantReport found(
    const std::function<void(SubscriberRecord&)>& change,
    const std::function<void(TatpFindings&)>& add = [](TatpFindings&) {},
    const std::vector<WitnessEntry>& log = {}) {
  TatpFindings findings(kPopulation);
  for (std::uint32_t s_id = 1; s_id <= kPopulation.subscribers(); ++s_id) {
    SubscriberRecord record = kPopulation.subscriber(s_id);
    if (s_id == 7) change(record);
    add_row(record, record.msc_location, findings);
    add_children(record, findings);
  }
  add(findings);
  return findings.check(TatpAudit(std::span<const WitnessEntry>(log)));
}

void as_it_is(SubscriberRecord&) {}

FacilityRecord& lowest_facility(SubscriberRecord& record) {
  return *std::find_if(record.facilities.begin(), record.facilities.end(),
                       [](const FacilityRecord& facility) { return facility.present; });
}

bool is_broken(const InvariantReport& report, Invariant invariant) {
  return report.state(invariant) == Check::kBroken;
}

}  // namespace

TEST_CASE("a freshly loaded population passes every check", "[audit]") {
  const InvariantReport report = found(as_it_is);
  REQUIRE(report.all_held());
  for (std::size_t i = 0; i < kInvariants; ++i) REQUIRE(report.state(i) == Check::kHeld);
}

TEST_CASE("the check finds a changed constant column", "[audit]") {
  const auto change = [](SubscriberRecord& record) { record.small[12] ^= 1; };
  REQUIRE(is_broken(found(change), Invariant::kPopulation));
}

TEST_CASE("the check finds a row that was never loaded, and a duplicate row", "[audit]") {
  const SubscriberRecord seventh = kPopulation.subscriber(7);
  const auto unknown = [&](TatpFindings& findings) {
    findings.add_access(41, 1, 0, 0, "AAA", "AAAAA");
  };
  const auto twice = [&](TatpFindings& findings) { add_row(seventh, 1, findings); };
  REQUIRE(is_broken(found(as_it_is, unknown), Invariant::kPopulation));
  REQUIRE(is_broken(found(as_it_is, twice), Invariant::kPopulation));
  REQUIRE(is_broken(found(as_it_is, [&](auto& findings) { add_children(seventh, findings); }),
                    Invariant::kPopulation));
}

TEST_CASE("the check finds a missing subscriber", "[audit]") {
  TatpFindings findings(kPopulation);
  REQUIRE(is_broken(findings.check(TatpAudit(std::span<const WitnessEntry>())),
                    Invariant::kPopulation));
}

TEST_CASE("the check finds a number that leads to another subscriber", "[audit]") {
  const auto add = [](TatpFindings& findings) { findings.add_number("000000000000007", 8); };
  REQUIRE(is_broken(found(as_it_is, add), Invariant::kNumbers));
}

TEST_CASE("the check finds values outside of their domains", "[audit]") {
  const std::vector<std::function<void(TatpFindings&)>> rows = {
      [](TatpFindings& findings) { findings.add_access(7, 5, 0, 0, "AAA", "AAAAA"); },
      [](TatpFindings& findings) { findings.add_access(7, 1, 256, 0, "AAA", "AAAAA"); },
      [](TatpFindings& findings) { findings.add_access(7, 1, 0, 0, "AA", "AAAAA"); },
      [](TatpFindings& findings) { findings.add_forwarding(7, 1, 4, 5, "000000000000001"); },
      [](TatpFindings& findings) { findings.add_forwarding(7, 1, 8, 25, "000000000000001"); },
      [](TatpFindings& findings) { findings.add_forwarding(7, 1, 8, 9, "000000000000041"); }};
  for (const auto& add : rows) REQUIRE(is_broken(found(as_it_is, add), Invariant::kDomains));
  const auto no_location = [](TatpFindings& findings) {
    add_row(kPopulation.subscriber(7), 0, findings);
  };
  REQUIRE(is_broken(found(as_it_is, no_location), Invariant::kDomains));
}

TEST_CASE("the check finds half of an update of two tables", "[audit]") {
  const auto change = [](SubscriberRecord& record) { record.small[0] ^= 1; };
  REQUIRE(is_broken(found(change), Invariant::kAtomicity));
}

TEST_CASE("the check finds a forwarding without a parent", "[audit]") {
  const auto change = [](SubscriberRecord& record) { lowest_facility(record) = FacilityRecord(); };
  const auto add = [](TatpFindings& findings) {
    SubscriberRecord record = kPopulation.subscriber(7);
    const auto type = &lowest_facility(record) - record.facilities.data() + 1;
    findings.add_forwarding(7, type, 0, 3, "000000000000001");
  };
  REQUIRE(is_broken(found(change, add), Invariant::kParents));
}

TEST_CASE("the check finds missing promised writes, and writes of no user", "[audit]") {
  const auto change = [](SubscriberRecord& record) { record.vlr_location = 5; };
  REQUIRE(is_broken(found(change), Invariant::kAcknowledged));
  WitnessEntry entry;
  entry.type = TatpType::kUpdateLocation;
  entry.s_id = 7;
  entry.value = 5;
  entry.life = 1;
  entry.commit_timestamp = 1;
  entry.state = WitnessEntry::kAcknowledged;
  REQUIRE(found(change, [](TatpFindings&) {}, {entry}).all_held());
  const InvariantReport lost = found(as_it_is, [](TatpFindings&) {}, {entry});
  REQUIRE(is_broken(lost, Invariant::kAcknowledged));
  REQUIRE(lost.lost_acknowledged_count() == 1);
}

}  // namespace flugs::bench
