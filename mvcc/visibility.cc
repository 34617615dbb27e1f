#include "mvcc/visibility.h"

#include "base/check.h"

namespace flugs::mvcc {

Visibility::Resolved Visibility::resolve(const Stamp& stamp) const noexcept {
  Stamp seen = load_stamp(stamp);
  for (;;) {
    if (seen == kNoStamp) return {Fate::kNothing, seen, 0};
    if (!is_tag(seen)) return {Fate::kCommitted, seen, seen};
    if (seen == own_tag_) return {Fate::kOwn, seen, 0};
    const std::uint32_t slot = slot_of(seen);
    if (slot >= mirror_count_) return {Fate::kNothing, seen, 0};
    const std::uint64_t generation = generation_of(seen);
    const SlotMirror::Half& half = mirrors_[slot].half[generation & 1];
    note_read(SharedWord::kSlotMirror, &half);
    const std::uint64_t state = half.state.load(std::memory_order_acquire);
    if (SlotMirror::generation_in(state) == generation) {
      switch (SlotMirror::state_in(state)) {
        case SlotState::kActive:
        case SlotState::kCommitting:
          return {Fate::kInFlight, seen, 0};
        case SlotState::kAborted:
          return {Fate::kNothing, seen, 0};
        case SlotState::kCommitted:
          break;
      }
      const std::uint64_t timestamp = half.timestamp.load(std::memory_order_acquire);
      // Still the same transaction, so the time-stamp is its own. The tag, or a time-stamp, is
      // still there, so it was not taken back before the commit (Commit::take_back).
      const Stamp still = load_stamp(stamp);
      if (half.state.load(std::memory_order_relaxed) == state) {
        FLUGS_DCHECK(timestamp != 0);  // stored before the state
        if (still == seen) return {Fate::kCommitted, seen, timestamp};
        seen = still;
        continue;
      }
    }
    // Another transaction has the half by now. The one that we look for stamped all its rows
    // before, so a tag that is still there was left behind without effect.
    const Stamp again = load_stamp(stamp);
    if (again == seen) return {Fate::kNothing, seen, 0};
    seen = again;
  }
}

bool Visibility::tag_happened(const Stamp& stamp, Stamp seen) const noexcept {
  SpinWait wait;
  for (;;) {
    if (seen == kNoStamp) return false;
    if (!is_tag(seen)) return seen <= snapshot_;
    const std::uint32_t slot = slot_of(seen);
    if (slot >= mirror_count_) return false;
    const std::uint64_t generation = generation_of(seen);
    const SlotMirror::Half& half = mirrors_[slot].half[generation & 1];
    note_read(SharedWord::kSlotMirror, &half);
    const std::uint64_t state = half.state.load(std::memory_order_acquire);
    if (SlotMirror::generation_in(state) == generation) {
      const SlotState phase = SlotMirror::state_in(state);
      // Active after our snapshot was taken: its time-stamp will be above the snapshot.
      if (phase == SlotState::kActive || phase == SlotState::kAborted) return false;
      const std::uint64_t timestamp = half.timestamp.load(std::memory_order_acquire);
      if (half.state.load(std::memory_order_relaxed) != state) continue;
      if (timestamp != 0 && timestamp > snapshot_) return false;
      // Two transactions with one time-stamp must not wait for each other.
      if (is_at_commit_ && timestamp == snapshot_ && slot > slot_of(own_tag_)) return false;
      if (phase == SlotState::kCommitted) return true;
      wait.once();  // at or below our snapshot, or not known yet; the commit is one fence away
      continue;
    }
    const Stamp again = load_stamp(stamp);
    if (again == seen) return false;  // left behind, see resolve
    seen = again;
  }
}

}  // namespace flugs::mvcc
