#include "mvcc/durable_time.h"

#include <algorithm>

#include "base/check.h"

namespace flugs::mvcc {

namespace {

/// Between the two stores of a commit that takes its time-stamp lie some 20 ns, if its thread keeps
/// its processor.
constexpr int kLooksMax = 64;

/// A time-stamp below that of the half's commit, if it is committing.
std::uint64_t before_commit(const SlotMirror& mirror, const SlotMirror::Half& half) noexcept {
  const std::uint64_t state = half.state.load(std::memory_order_acquire);
  if (SlotMirror::state_in(state) != SlotState::kCommitting) return SlotMirror::kNoSnapshot;
  for (int looks = 0; looks < kLooksMax; ++looks) {
    // 0: not known yet. A later commit of the half has a higher one: then this one has ended.
    const std::uint64_t timestamp = half.timestamp.load(std::memory_order_acquire);
    if (timestamp != 0) return timestamp - 1;
    __builtin_ia32_pause();
  }
  // The committing thread has lost its processor. Its time-stamp will be above its snapshot. A
  // later snapshot of the slot, or none, shows that the commit has ended.
  return mirror.snapshot.load(std::memory_order_acquire);
}

}  // namespace

void DurableTime::connect(const pmem::LineJournal* journal, std::span<const SlotMirror> mirrors,
                          std::uint64_t now) noexcept {
  journal_ = journal;
  mirrors_ = mirrors;
  floor_.store(now, std::memory_order_release);
}

// The commits of a slot are in the journal in their order. Those that may not be durable are in two
// groups, each with the time-stamp of its first and the end of its last. The younger one grows as
// long as the older one is not durable; then it becomes the older one.
void DurableTime::note(SlotMirror& mirror, std::uint32_t& group, std::uint64_t timestamp,
                       pmem::JournalPlace end) const noexcept {
  if (journal_ == nullptr) return;
  SlotMirror::Half& older = mirror.half[group ^ 1];
  if (older.pending_end.load(std::memory_order_relaxed) <= journal_->durable()) {
    older.pending_since.store(timestamp, std::memory_order_release);
    older.pending_end.store(end, std::memory_order_release);
    group ^= 1;
  } else {
    mirror.half[group].pending_end.store(end, std::memory_order_release);
  }
}

// The order of the loads matters: the journal's place, then the states of a slot, then its groups.
// A commit at or below `now` announced itself before `now` was read. So its state here is
// *committing*, or it has ended, and then its group has it. A group whose end is not seen to be
// durable may have become so meanwhile, and begin anew: then its later beginning is right as well.
std::uint64_t DurableTime::look(std::uint64_t now) const noexcept {
  FLUGS_DCHECK(journal_ != nullptr);
  const pmem::JournalPlace durable = journal_->durable();
  std::uint64_t latest = now;
  for (const SlotMirror& mirror : mirrors_) {
    for (const SlotMirror::Half& half : mirror.half)
      latest = std::min(latest, before_commit(mirror, half));
    for (const SlotMirror::Half& half : mirror.half)
      if (half.pending_end.load(std::memory_order_acquire) > durable)
        latest = std::min(latest, half.pending_since.load(std::memory_order_acquire) - 1);
  }
  return latest;
}

std::uint64_t DurableTime::raise_floor(std::uint64_t now) noexcept {
  const std::uint64_t found = look(now);
  std::uint64_t seen = floor_.load(std::memory_order_acquire);
  while (seen < found && !floor_.compare_exchange_weak(seen, found, std::memory_order_acq_rel)) {
  }
  return std::max(seen, found);
}

}  // namespace flugs::mvcc
