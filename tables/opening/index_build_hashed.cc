// Unique keys of rows in the delta after opening: made while transactions run, the first that was
// asked for before all others (decision 0020).

#include <chrono>
#include <limits>

#include "mvcc/transaction_slots.h"
#include "tables/data/table_data.h"
#include "tables/opening/index_build.h"

namespace flugs::engine {

// Goes from a version to an older one with the same key that the snapshot sees. The versions
// between them are newer than the snapshot, so no row of them has been reused.
bool IndexBuild::leads_to(const KeyIndex& key, std::uint32_t newer, std::uint32_t row,
                          const mvcc::Visibility& snapshot) const {
  for (std::uint32_t at = newer; at != kNoRow; at = data_.rows.previous(at)) {
    if (at == row) return true;
    if (!key.same_key(at, row) || snapshot.happened(data_.rows.version(at).created)) return false;
  }
  return false;
}

// The key that was asked for first, of those that lack rows; any of them if none was asked for.
KeyIndex* IndexBuild::next_to_enter() const noexcept {
  KeyIndex* next = nullptr;
  std::int64_t asked_at = std::numeric_limits<std::int64_t>::max();
  for (KeyIndex* key : data_.keys) {
    const DeferredRows* deferred = key->entries().deferred_rows();
    if (deferred == nullptr || deferred->entered() == deferred->end()) continue;
    const std::int64_t at = deferred->asked_at();
    if (next != nullptr && (at == 0 || at >= asked_at)) continue;
    next = key;
    asked_at = at == 0 ? asked_at : at;
  }
  return next;
}

Status IndexBuild::build_hash(recovery::Phases& phases) {
  if (Status s = sweep_for_build(phases); !s.ok()) return s;
  const mvcc::Visibility opening(slots_->mirrors(), slots_->opened_at(), mvcc::kNoStamp);
  while (KeyIndex* const key = next_to_enter()) {
    if (data_.is_dropped()) return no_table();
    const auto leads = [&](std::uint32_t newer, std::uint32_t row) {
      return leads_to(*key, newer, row, opening);
    };
    if (Status s = key->entries().enter_deferred(phases, kIndexesPhase, leads); !s.ok()) return s;
  }
  for (KeyIndex* key : data_.keys)
    if (key->entries().deferred_rows() != nullptr) key->entries().finish();
  return {};
}

// Called before the table is used.
void IndexBuild::set_builds_later(bool builds_later) noexcept {
  builds_later_ = builds_later;
  const bool is_left = builds_later && is_deferred(DeferredIndexes::kHashIndexes);
  if (is_left && !keeps_opening_.exchange(true)) slots_->keep_opening();
  if (!is_left) release_opening();
}

void IndexBuild::release_opening() noexcept {
  if (keeps_opening_.exchange(false)) slots_->release_opening();
}

// When missing indexes were first wanted; 0: not yet, or none are missing.
std::int64_t IndexBuild::asked_at() const noexcept {
  return (deferred_.load(std::memory_order_relaxed) & DeferredIndexes::kAllIndexes) == 0
             ? 0
             : asked_at_.load(std::memory_order_relaxed);
}

void IndexBuild::ask_for(KeyMask keys) noexcept {
  for (const std::size_t place : KeySet(static_cast<KeyMask>(keys & data_.keys.kept())))
    if (DeferredRows* deferred = data_.keys[place]->entries().deferred_rows()) deferred->ask();
  if (asked_at_.load(std::memory_order_relaxed) != 0) return;
  std::int64_t nobody = 0;
  asked_at_.compare_exchange_strong(nobody,
                                    std::chrono::steady_clock::now().time_since_epoch().count(),
                                    std::memory_order_relaxed);
}

}  // namespace flugs::engine
