#include "tables/rows/seen_parts.h"

#include "base/check.h"
#include "mvcc/asymmetric_barrier.h"

namespace flugs::engine {

// Words are loaded by acquire loads, so the second look at `state` comes behind them. A scan that
// overwrites them has made `state` busy before (`keep`).
bool SeenParts::find(std::uint32_t part, std::uint64_t snapshot,
                     std::uint64_t* mask) const noexcept {
  FLUGS_DCHECK(part < count_);
  const Part& seen = parts_[part];
  const std::uint64_t state = seen.state.load(std::memory_order_acquire);
  if ((state & kValid) == 0 || snapshot < seen.since.load(std::memory_order_acquire)) return false;
  for (std::size_t i = 0; i < kWords; ++i) mask[i] = seen.words[i].load(std::memory_order_acquire);
  return seen.state.load(std::memory_order_relaxed) == state;
}

std::uint64_t SeenParts::ticket(std::uint32_t part) const noexcept {
  FLUGS_DCHECK(part < count_);
  const std::uint64_t state = parts_[part].state.load(std::memory_order_acquire);
  static_assert(kNone == kValid);
  return (state & (kValid | kBusy)) == 0 ? state : kNone;
}

void SeenParts::keep(std::uint32_t part, std::uint64_t ticket, std::uint64_t snapshot,
                     const std::uint64_t* mask) noexcept {
  FLUGS_DCHECK(part < count_ && (ticket & (kValid | kBusy)) == 0);
  Part& seen = parts_[part];
  std::uint64_t state = ticket;
  if (!seen.state.compare_exchange_strong(state, ticket | kBusy, std::memory_order_acq_rel)) return;
  // Released, so that a scan that loads one of them finds the state busy, or a later one.
  seen.since.store(snapshot, std::memory_order_release);
  for (std::size_t i = 0; i < kWords; ++i) seen.words[i].store(mask[i], std::memory_order_release);
  state = ticket | kBusy;
  if (!seen.state.compare_exchange_strong(state, ticket | kValid, std::memory_order_acq_rel))
    seen.state.fetch_and(~kBusy, std::memory_order_acq_rel);
}

void SeenParts::note_tag(std::uint32_t i) noexcept {
  const std::uint32_t part = i / kRows;
  if (part >= count_) return;
  std::atomic<std::uint64_t>& state = parts_[part].state;
  std::uint64_t now = state.load(std::memory_order_relaxed);
  while (!state.compare_exchange_weak(now, (now & ~kValid) + kTag, std::memory_order_acq_rel)) {
  }
}

SeenChunks::~SeenChunks() {
  const std::size_t begun = begun_.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < begun; ++i) delete chunks_[i];
  if (begun != 0) chunks_.begin(begun - 1);  // so that the array knows what it must clear
}

SeenParts& SeenChunks::for_scan(std::size_t chunk, std::uint32_t rows) {
  SeenParts* found = __atomic_load_n(&chunks_[chunk], __ATOMIC_ACQUIRE);
  if (found != nullptr) return *found;
  auto made = std::make_unique<SeenParts>(rows);
  std::size_t begun = begun_.load(std::memory_order_relaxed);
  while (begun <= chunk &&
         !begun_.compare_exchange_weak(begun, chunk + 1, std::memory_order_relaxed)) {
  }
  bytes_.fetch_add(made->bytes(), std::memory_order_relaxed);
  if (__atomic_compare_exchange_n(&chunks_[chunk], &found, made.get(), false, __ATOMIC_ACQ_REL,
                                  __ATOMIC_ACQUIRE))
    return *made.release();
  bytes_.fetch_sub(made->bytes(), std::memory_order_relaxed);
  return *found;
}

// Another scan may make the same parts ready at the same time. Each has passed its own barrier.
void SeenChunks::make_ready(std::span<SeenParts* const> parts) noexcept {
  if (parts.empty()) return;
  mvcc::heavy_barrier();
  for (SeenParts* part : parts) part->set_ready();
}

void SeenChunks::note_tag(std::size_t chunk, std::uint32_t i) const noexcept {
  mvcc::light_barrier();
  if (SeenParts* seen = __atomic_load_n(&chunks_[chunk], __ATOMIC_ACQUIRE); seen != nullptr)
    seen->note_tag(i);
}

std::unique_ptr<SeenParts> SeenChunks::take(std::size_t chunk) noexcept {
  std::unique_ptr<SeenParts> taken(__atomic_exchange_n(&chunks_[chunk], nullptr, __ATOMIC_ACQ_REL));
  if (taken != nullptr) bytes_.fetch_sub(taken->bytes(), std::memory_order_relaxed);
  return taken;
}

}  // namespace flugs::engine
