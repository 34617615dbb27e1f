#include "bench/tatp/tatp_audit.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace flugs::bench {

namespace {

constexpr std::uint32_t kSubscriber = 7;
constexpr std::uint32_t kFacility = 2;
constexpr std::uint32_t kStart = 8;

/// The base of every test: vlr_location 100, bit_1 0, data_a of facility 2 is 20, slot (2, 8) free.
SubscriberRecord base_record() {
  SubscriberRecord record;
  record.s_id = kSubscriber;
  record.vlr_location = 100;
  record.facilities[kFacility - 1].present = true;
  record.facilities[kFacility - 1].data_a = 20;
  return record;
}

SubscriberRecord with_location(std::uint32_t location) {
  SubscriberRecord record = base_record();
  record.vlr_location = location;
  return record;
}

SubscriberRecord with_slot(std::uint8_t end_time, std::uint32_t numberx) {
  SubscriberRecord record = base_record();
  record.facilities[kFacility - 1].forwarding[kStart / 8] = {true, end_time, numberx};
  return record;
}

WitnessEntry entry(TatpType type, std::uint32_t value, std::uint64_t timestamp,
                   std::uint32_t life = 1) {
  WitnessEntry made;
  made.type = type;
  made.s_id = kSubscriber;
  made.sf_type = kFacility;
  made.start_time = kStart;
  made.value = value;
  made.life = life;
  made.commit_timestamp = timestamp;
  made.state = timestamp != 0 ? WitnessEntry::kAcknowledged : WitnessEntry::kBegun;
  return made;
}

WitnessEntry location(std::uint32_t value, std::uint64_t timestamp, std::uint32_t life = 1) {
  return entry(TatpType::kUpdateLocation, value, timestamp, life);
}
WitnessEntry insertion(std::uint32_t numberx, std::uint64_t timestamp, std::uint32_t life = 1) {
  return entry(TatpType::kInsertCallForwarding, TatpState::slot_value(5, numberx), timestamp, life);
}
WitnessEntry deletion(std::uint64_t timestamp, std::uint32_t life = 1) {
  return entry(TatpType::kDeleteCallForwarding, 0, timestamp, life);
}

InvariantReport audit(const std::vector<WitnessEntry>& log, const SubscriberRecord& actual) {
  InvariantReport report;
  const TatpAudit tatp_audit{std::span<const WitnessEntry>(log)};
  tatp_audit.check_subscriber(kSubscriber, TatpState(base_record()), TatpState(actual), report);
  tatp_audit.check_timestamps(report);
  return report;
}

}  // namespace

TEST_CASE("nothing logged, nothing changed", "[audit]") {
  REQUIRE(audit({}, base_record()).all_held());
  const InvariantReport report = audit({}, with_location(101));
  REQUIRE(report.state(Invariant::kAcknowledged) == Check::kBroken);
}

TEST_CASE("the acknowledged location with the highest time-stamp must be there", "[audit]") {
  REQUIRE(audit({location(5, 30), location(6, 20)}, with_location(5)).all_held());
  const InvariantReport report = audit({location(5, 30), location(6, 20)}, with_location(6));
  REQUIRE_FALSE(report.all_held());
  REQUIRE(report.lost_acknowledged_count() == 1);
}

TEST_CASE("a location in flight at the kill may be there or not", "[audit]") {
  REQUIRE(audit({location(5, 30), location(6, 0)}, with_location(5)).all_held());
  REQUIRE(audit({location(5, 30), location(6, 0)}, with_location(6)).all_held());
  REQUIRE_FALSE(audit({location(5, 30), location(6, 0)}, with_location(100)).all_held());
}

TEST_CASE("a later life's acknowledged write hides writes that were in flight before", "[audit]") {
  const std::vector<WitnessEntry> log = {location(5, 30, 1), location(6, 0, 1), location(7, 40, 2)};
  REQUIRE(audit(log, with_location(7)).all_held());
  REQUIRE_FALSE(audit(log, with_location(6)).all_held());
}

TEST_CASE("acknowledged inserts and deletes of a slot decide what it holds", "[audit]") {
  REQUIRE(audit({insertion(3, 10)}, with_slot(5, 3)).all_held());
  REQUIRE(audit({insertion(3, 10), deletion(20)}, base_record()).all_held());
  REQUIRE(audit({insertion(3, 10)}, base_record()).lost_acknowledged_count() == 1);
  REQUIRE(audit({insertion(3, 10), deletion(20)}, with_slot(5, 3)).lost_acknowledged_count() == 1);
  REQUIRE_FALSE(audit({insertion(3, 10)}, with_slot(5, 4)).all_held());
}

TEST_CASE("inserts and deletes of a slot alternate", "[audit]") {
  const InvariantReport twice = audit({insertion(3, 10), insertion(4, 20)}, with_slot(5, 4));
  REQUIRE(twice.state(Invariant::kSlots) == Check::kBroken);
  REQUIRE(audit({deletion(10)}, base_record()).state(Invariant::kSlots) == Check::kBroken);
  // One deletion in flight may lie between the two, but only one.
  REQUIRE(audit({insertion(3, 10), insertion(4, 20), deletion(0)}, with_slot(5, 4)).all_held());
  REQUIRE_FALSE(
      audit({insertion(3, 10), insertion(4, 20), insertion(5, 30), deletion(0)}, with_slot(5, 5))
          .all_held());
}

TEST_CASE("the next life's writes settle what an earlier life left in doubt", "[audit]") {
  REQUIRE(audit({insertion(3, 0, 1), deletion(20, 2)}, base_record()).all_held());
  REQUIRE(audit({insertion(3, 0, 1), insertion(4, 20, 2)}, with_slot(5, 4)).all_held());
  REQUIRE_FALSE(audit({deletion(0, 1), deletion(20, 2)}, base_record()).all_held());
}

TEST_CASE("the audit checks both halves of UPDATE_SUBSCRIBER_DATA", "[audit]") {
  const std::vector<WitnessEntry> log = {entry(TatpType::kUpdateSubscriberData, 1u << 8 | 33, 10)};
  SubscriberRecord actual = base_record();
  REQUIRE(audit(log, actual).lost_acknowledged_count() == 2);
  actual.small[0] = 1;
  REQUIRE(audit(log, actual).lost_acknowledged_count() == 1);
  actual.facilities[kFacility - 1].data_a = 33;
  REQUIRE(audit(log, actual).all_held());
}

TEST_CASE("no commit time-stamp is given out twice or below those of an earlier life", "[audit]") {
  REQUIRE_FALSE(audit({location(5, 30), insertion(3, 30)}, with_location(5)).all_held());
  SubscriberRecord actual = with_slot(5, 3);
  actual.vlr_location = 5;
  REQUIRE(audit({location(5, 30, 1), insertion(3, 31, 2)}, actual).all_held());
  REQUIRE_FALSE(audit({location(5, 30, 1), insertion(3, 29, 2)}, actual).all_held());
}

TEST_CASE("the number of forwarding rows follows from the acknowledged writes", "[audit]") {
  const std::vector<WitnessEntry> log = {insertion(3, 10), deletion(20), insertion(4, 30),
                                         insertion(5, 0), deletion(0)};
  const TatpAudit tatp_audit{std::span<const WitnessEntry>(log)};
  for (const auto& [rows, held] :
       {std::pair{109, false}, {110, true}, {111, true}, {112, true}, {113, false}}) {
    InvariantReport report;
    tatp_audit.check_count(110, static_cast<std::uint64_t>(rows), report);
    CHECK(report.all_held() == held);
  }
}

}  // namespace flugs::bench
