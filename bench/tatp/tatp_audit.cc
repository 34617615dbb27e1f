#include "bench/tatp/tatp_audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace flugs::bench {

namespace {

bool before(const TatpEffect& a, const TatpEffect& b) {
  return std::tie(a.s_id, a.field, a.life, a.in_flight, a.commit_timestamp) <
         std::tie(b.s_id, b.field, b.life, b.in_flight, b.commit_timestamp);
}

/// Whether a slot can be empty and whether it can hold a row, given what is known so far.
struct Occupation {
  bool empty = false;
  bool taken = false;
};

/// An acknowledged insert needs an empty slot and a delete a taken one; an unacknowledged
/// transaction of the same life may have made it so, once.
bool alternate(std::span<const TatpEffect> acknowledged, std::span<const TatpEffect> in_flight,
               Occupation& slot) {
  std::size_t inserts = 0;
  std::size_t deletes = 0;
  for (const TatpEffect& effect : in_flight) ++(effect.value != 0 ? inserts : deletes);
  for (const TatpEffect& effect : acknowledged) {
    const bool inserts_row = effect.value != 0;
    std::size_t& helpers = inserts_row ? deletes : inserts;
    const bool possible = inserts_row ? slot.empty : slot.taken;
    if (!possible) {
      if (helpers == 0) return false;
      --helpers;
    }
    slot = inserts_row ? Occupation{false, true} : Occupation{true, false};
  }
  const Occupation known = slot;
  if (known.empty && inserts > 0) slot.taken = true;
  if (known.taken && deletes > 0) slot.empty = true;
  return true;
}

std::string field_name(std::uint32_t s_id, std::uint16_t field) {
  if (field == TatpState::kVlrLocation) return fmt::format("vlr_location of subscriber {}", s_id);
  if (field == TatpState::kBit1) return fmt::format("bit_1 of subscriber {}", s_id);
  if (field < TatpState::kSlots)
    return fmt::format("data_a of facility ({}, {})", s_id, field - TatpState::kDataA + 1);
  const std::size_t slot = field - TatpState::kSlots;
  return fmt::format("call forwarding ({}, {}, {})", s_id, slot / kStartTimes.size() + 1,
                     kStartTimes[slot % kStartTimes.size()]);
}

}  // namespace

void check_constant_columns(const SubscriberRecord& expected, const SubscriberRecord& actual,
                            InvariantReport& report) {
  const bool small_ones =
      std::equal(expected.small.begin() + 1, expected.small.end(), actual.small.begin() + 1);
  if (!small_ones || expected.msc_location != actual.msc_location)
    report.broken(Invariant::kPopulation,
                  fmt::format("subscriber {}: a constant column has changed", expected.s_id));
  if (expected.access != actual.access)
    report.broken(Invariant::kPopulation,
                  fmt::format("access info of subscriber {} has changed", expected.s_id));
  for (std::size_t i = 0; i < kTypesMax; ++i) {
    const FacilityRecord& wanted = expected.facilities[i];
    const FacilityRecord& found = actual.facilities[i];
    if (wanted.present != found.present || wanted.is_active != found.is_active ||
        wanted.error_control != found.error_control || wanted.data_b != found.data_b)
      report.broken(Invariant::kPopulation,
                    fmt::format("facility ({}, {}) has changed", expected.s_id, i + 1));
  }
}

TatpAudit::TatpAudit(const Witness& witness) {
  for (std::uint32_t user = 0; user < witness.plan().users; ++user)
    for (const WitnessEntry& entry : witness.log(user)) add(entry);
  sort();
}

TatpAudit::TatpAudit(std::span<const WitnessEntry> entries) {
  for (const WitnessEntry& entry : entries) add(entry);
  sort();
}

void TatpAudit::add(const WitnessEntry& entry) {
  TatpEffect effect;
  effect.s_id = entry.s_id;
  effect.in_flight = entry.state != WitnessEntry::kAcknowledged;
  effect.life = entry.life;
  effect.value = entry.value;
  effect.commit_timestamp = entry.commit_timestamp;
  ++entries_;
  if (effect.in_flight)
    ++in_flight_;
  else if (entry.commit_timestamp == 0)
    ++unstamped_;
  switch (entry.type) {
    case TatpType::kUpdateLocation:
      effect.field = TatpState::kVlrLocation;
      break;
    case TatpType::kUpdateSubscriberData:
      effect.field = TatpState::kBit1;
      effect.value = entry.value >> 8;
      effects_.push_back(effect);
      effect.field = static_cast<std::uint16_t>(TatpState::data_a_field(entry.sf_type));
      effect.value = entry.value & 0xff;
      break;
    default:
      effect.field =
          static_cast<std::uint16_t>(TatpState::slot_field(entry.sf_type, entry.start_time));
      break;
  }
  effects_.push_back(effect);
}

void TatpAudit::sort() { std::sort(effects_.begin(), effects_.end(), before); }

void TatpAudit::check_subscriber(std::uint32_t s_id, const TatpState& base, const TatpState& actual,
                                 InvariantReport& report) const {
  auto begin = std::lower_bound(
      effects_.begin(), effects_.end(), s_id,
      [](const TatpEffect& effect, std::uint32_t wanted) { return effect.s_id < wanted; });
  for (std::size_t field = 0; field < TatpState::kFields; ++field) {
    auto end = begin;
    while (end != effects_.end() && end->s_id == s_id && end->field == field) ++end;
    if (begin != end) {
      check_field({begin, end}, base[field], actual[field], report);
    } else if (base[field] != actual[field]) {
      const Invariant invariant =
          field < TatpState::kSlots ? Invariant::kAcknowledged : Invariant::kSlots;
      report.broken(invariant, fmt::format("{}: it changed from {} to {} without a write",
                                           field_name(s_id, static_cast<std::uint16_t>(field)),
                                           base[field], actual[field]));
    }
    begin = end;
  }
}

void TatpAudit::check_field(std::span<const TatpEffect> effects, std::uint32_t base,
                            std::uint32_t actual, InvariantReport& report) const {
  const bool is_slot = effects.front().field >= TatpState::kSlots;
  const Invariant invariant = is_slot ? Invariant::kSlots : Invariant::kAcknowledged;
  std::vector<std::uint32_t> allowed = {base};
  Occupation slot{base == 0, base != 0};
  bool acknowledged_any = false;
  for (auto life = effects.begin(); life != effects.end();) {
    const auto life_end = std::find_if(
        life, effects.end(), [&](const TatpEffect& effect) { return effect.life != life->life; });
    const auto flight =
        std::find_if(life, life_end, [](const TatpEffect& effect) { return effect.in_flight; });
    if (is_slot && !alternate({life, flight}, {flight, life_end}, slot)) {
      report.broken(invariant,
                    fmt::format("{}: acknowledged inserts and deletes do not alternate in life {}",
                                field_name(life->s_id, life->field), life->life));
      slot = Occupation{true, true};
    }
    if (flight != life) {
      allowed = {std::prev(flight)->value};
      acknowledged_any = true;
    }
    for (auto effect = flight; effect != life_end; ++effect) allowed.push_back(effect->value);
    life = life_end;
  }
  if (std::find(allowed.begin(), allowed.end(), actual) != allowed.end()) return;
  if (acknowledged_any) report.lost_acknowledged();
  report.broken(invariant, fmt::format("{}: found {}, promised {}",
                                       field_name(effects.front().s_id, effects.front().field),
                                       actual, allowed.front()));
}

void TatpAudit::check_timestamps(InvariantReport& report) const {
  report.check(Invariant::kAcknowledged);
  if (unstamped_ > 0)
    report.broken(Invariant::kAcknowledged,
                  fmt::format("{} acknowledged writes have no commit time-stamp", unstamped_));
  std::vector<std::pair<std::uint64_t, std::uint32_t>> stamps;  // time-stamp, life
  stamps.reserve(effects_.size());
  for (const TatpEffect& effect : effects_) {
    // An UPDATE_SUBSCRIBER_DATA has two effects; its bit_1 stands for both.
    const bool second = effect.field >= TatpState::kDataA && effect.field < TatpState::kSlots;
    if (!effect.in_flight && !second) stamps.emplace_back(effect.commit_timestamp, effect.life);
  }
  std::sort(stamps.begin(), stamps.end());
  for (std::size_t i = 1; i < stamps.size(); ++i) {
    if (stamps[i].first == stamps[i - 1].first)
      report.broken(Invariant::kAcknowledged,
                    fmt::format("commit time-stamp {} was given out twice", stamps[i].first));
    if (stamps[i].second < stamps[i - 1].second)
      report.broken(Invariant::kAcknowledged,
                    fmt::format("commit time-stamp {} of life {} is above one of a later life",
                                stamps[i - 1].first, stamps[i].second));
  }
}

void TatpAudit::check_count(std::uint64_t base_rows, std::uint64_t actual_rows,
                            InvariantReport& report) const {
  std::uint64_t low = base_rows;
  std::uint64_t high = base_rows;
  std::uint64_t removed = 0;
  std::uint64_t removed_maybe = 0;
  for (const TatpEffect& effect : effects_) {
    if (effect.field < TatpState::kSlots) continue;
    if (effect.value != 0) {
      high += 1;
      low += effect.in_flight ? 0 : 1;
    } else {
      removed += effect.in_flight ? 0 : 1;
      removed_maybe += effect.in_flight ? 1 : 0;
    }
  }
  report.check(Invariant::kCount);
  if (actual_rows + removed + removed_maybe < low || actual_rows + removed > high)
    report.broken(Invariant::kCount,
                  fmt::format("call_forwarding has {} rows; {} to {} were promised", actual_rows,
                              low - removed - removed_maybe, high - removed));
}

}  // namespace flugs::bench
