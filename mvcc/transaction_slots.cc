#include "mvcc/transaction_slots.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/check.h"
#include "base/fork.h"
#include "mvcc/commit.h"
#include "mvcc/intent_list.h"

namespace flugs::mvcc {

namespace {

// One fence per million transactions of a slot, and 2^31 crashes before generations run out.
constexpr std::uint64_t kGenerationBlock = std::uint64_t{1} << 20;

// No pool reaches these in centuries. So a larger value shows a damaged word, and a pool that was
// opened never runs out.
constexpr std::uint64_t kTimestampPlausible = kTimestampMax / 2;
constexpr std::uint64_t kGenerationPlausible = kGenerationMax / 2;

std::uint64_t limits_bytes(std::uint64_t slot_count) noexcept {
  return (slot_count * 8 + 63) / 64 * 64;
}
std::uint64_t checksum_of(const SlotArrayLayout& array) noexcept { return XXH3_64bits(&array, 24); }

std::atomic<std::uint64_t> next_slots_id{1};

// Claims without a thread. Both statics live to the end of the process, because threads may outlive
// statics. The mutex is taken within a ForkPause, because a forked child may open a database of its
// own.
std::mutex& idle_claims_mutex() noexcept {  // protects idle_claims; a leaf
  static auto* mutex = new std::mutex;
  return *mutex;
}
std::vector<SlotClaim*>& idle_claims() noexcept {
  static auto* claims = new std::vector<SlotClaim*>;
  return *claims;
}

thread_local SlotClaim* thread_claim = nullptr;

struct ClaimReturn {
  ~ClaimReturn() {
    const ForkPause pause;
    const std::lock_guard guard(idle_claims_mutex());
    idle_claims().push_back(thread_claim);
    thread_claim = nullptr;
  }
};

SlotClaim* take_claim() {
  const ForkPause pause;
  const std::lock_guard guard(idle_claims_mutex());
  if (idle_claims().empty()) {
    static std::uint32_t next_number = 0;
    auto* claim = new SlotClaim;
    claim->number = next_number++;
    return claim;
  }
  SlotClaim* claim = idle_claims().back();
  idle_claims().pop_back();
  return claim;
}

SlotClaim& new_claim_of_this_thread() {
  thread_local const ClaimReturn at_exit;
  static_cast<void>(at_exit);
  thread_claim = take_claim();
  return *thread_claim;
}

SlotClaim& claim_of_this_thread() {
  return thread_claim != nullptr ? *thread_claim : new_claim_of_this_thread();
}

}  // namespace

OtherThread::OtherThread(std::uint32_t number) : own_(thread_claim) {
  thread_claim = take_claim();
  thread_claim->home_slots_id = 0;
  number_ = std::exchange(thread_claim->number, number);
}

OtherThread::~OtherThread() {
  FLUGS_CHECK(thread_claim->in_use.load(std::memory_order_relaxed) == 0);
  thread_claim->number = number_;
  const ForkPause pause;
  const std::lock_guard guard(idle_claims_mutex());
  idle_claims().push_back(std::exchange(thread_claim, own_));
}

SlotClaim* SlotMirror::pinned() noexcept {
  static SlotClaim nobody;
  return &nobody;
}

TransactionSlots::TransactionSlots(pmem::Pool& pool, std::uint64_t& array_offset)
    : pool_(pool),
      id_(next_slots_id.fetch_add(1, std::memory_order_relaxed)),
      root_(array_offset) {}

TransactionSlots::~TransactionSlots() {
  for (Slot& slot : slots_) {
    if (slot.persister_ == nullptr) continue;
    persist_stamps(slot);
    forget_intents(slot.index_, *slot.persister_);
    slot.persister_->fence("forget_intents/1");
  }
}

void TransactionSlots::persist_stamps(Slot& slot) noexcept {
  FLUGS_CHECK(slot.persister_ != nullptr);
  for (const VersionLayout* version : slot.unflushed_stamps_)
    slot.persister_->flush(version, sizeof *version, "commit/4");
  slot.unflushed_stamps_.clear();
  slot.persister_->fence("commit/4");
}

// Protocol forget_intents. Opening goes through the intents that a half's block holds, so a large
// transaction would slow down every opening until its half is used again.
//   step  store                             made durable by    power cut just after it: recovery
//   1     number of intents in the half's   flush, fence; in   goes through them again, and finds
//         block := 0                        a commit with      a time-stamp where each one leads,
// Must hold:  the stamps of the half's last committed transaction are durable before 1, else
//             nothing would lead to the rows that still bear its tag. This holds after resolve,
//             behind the fence of commit/1 of the slot's next transaction, and at the end of
//             persist_stamps when the database is closed.
// Need not:   1 durable soon: the intents are right as long as the half is not used again.
void TransactionSlots::forget_intents(SlotHalfLayout& half, pmem::Persister& persister) noexcept {
  Intent& count = half.intents[SlotHalfLayout::kInlineIntents - 1];
  if (count == 0 || is_intent(count)) return;
  note_write(SharedWord::kSlotHalf, &half);
  std::atomic_ref(count).store(0, std::memory_order_relaxed);
  persister.flush(&count, sizeof count, "forget_intents/1");
}

void TransactionSlots::forget_intents(std::uint32_t slot, pmem::Persister& persister) noexcept {
  for (SlotHalfLayout& half : slot_layout(slot).half) forget_intents(half, persister);
}

void TransactionSlots::forget_all_intents() {
  pmem::Persister persister(pool_.medium());
  for (std::uint32_t slot = 0; slot < array_slots_; ++slot) forget_intents(slot, persister);
  persister.fence("forget_intents/1");
}

std::uint64_t TransactionSlots::array_bytes(std::uint64_t slot_count) noexcept {
  return sizeof(SlotArrayLayout) + limits_bytes(slot_count) +
         slot_count * sizeof(TransactionSlotLayout);
}

SlotArrayLayout& TransactionSlots::array() noexcept {
  return *pool_.at(pmem::OffsetPtr<SlotArrayLayout>{root_});
}
std::uint64_t& TransactionSlots::generation_limit(std::uint32_t slot) noexcept {
  return pool_.at(pmem::OffsetPtr<std::uint64_t>{root_ + sizeof(SlotArrayLayout)})[slot];
}
TransactionSlotLayout& TransactionSlots::slot_layout(std::uint32_t slot) noexcept {
  return pool_.at(pmem::OffsetPtr<TransactionSlotLayout>{root_ + sizeof(SlotArrayLayout) +
                                                         limits_bytes(array_slots_)})[slot];
}

// Protocol slot_array, for the first array and for a larger one. Only when no slot is in use.
//   step  store                             made durable by    power cut just after it: recovery
//   1     header, limits and empty slots    flush, fence       new array unreachable: free space
//   2     the root's pointer to the array   persist (8 bytes)  uses the new array
// Must hold:  1 before 2. The new array's time-stamp floor and generation limits are at or above
//             all values that the old array gave out, so tags left in rows stay stale.
Result<std::uint64_t> TransactionSlots::make_array(std::uint64_t slot_count,
                                                   pmem::Persister& persister) {
  FLUGS_CHECK(slot_count != 0 && slot_count <= kSlotsMax);
  Result<pmem::Extent> extent = pool_.allocator().allocate(array_bytes(slot_count), persister);
  if (!extent.ok()) return std::move(extent).status();
  auto* fresh = pool_.at(pmem::OffsetPtr<SlotArrayLayout>{extent->offset});
  fresh->magic = SlotArrayLayout::kMagic;
  fresh->slot_count = slot_count;
  fresh->timestamp_floor = clock_.read();
  fresh->checksum = checksum_of(*fresh);
  auto* limits = pool_.at(pmem::OffsetPtr<std::uint64_t>{extent->offset + sizeof *fresh});
  for (std::uint64_t slot = 0; slot < slot_count; ++slot) limits[slot] = generation_floor_;
  persister.persist(fresh, sizeof *fresh + limits_bytes(slot_count), "slot_array/1");
  return extent->offset;
}

Status TransactionSlots::create(std::uint32_t slot_count) {
  pmem::Persister persister(pool_.medium());
  Result<std::uint64_t> offset = make_array(slot_count, persister);
  if (!offset.ok()) return std::move(offset).status();
  std::atomic_ref(root_).store(*offset, std::memory_order_relaxed);
  persister.persist(&root_, sizeof root_, "slot_array/2");
  array_slots_ = slot_count;
  blocks_.assign(std::size_t{slot_count} * 2, {});
  return {};
}

Status TransactionSlots::grow(std::uint32_t slot_count) {
  if (slot_count <= array_slots_) return {};
  pmem::Persister persister(pool_.medium());
  Result<std::uint64_t> offset = make_array(slot_count, persister);
  if (!offset.ok()) return std::move(offset).status();
  const pmem::Extent old{root_, array_bytes(array_slots_)};
  std::atomic_ref(root_).store(*offset, std::memory_order_relaxed);
  persister.persist(&root_, sizeof root_, "slot_array/2");
  pool_.allocator().release(old);
  for (IntentBlocks& blocks : blocks_) blocks.release(pool_);
  array_slots_ = slot_count;
  blocks_.assign(std::size_t{slot_count} * 2, {});
  return {};
}

void TransactionSlots::start(std::uint32_t slot_count) {
  slot_count_ = std::min(slot_count, array_slots_);
  FLUGS_CHECK(slot_count_ != 0);
  opened_at_ = now();
  mirrors_ = std::make_unique<SlotMirror[]>(slot_count_);
  durable_time_.connect(pool_.medium().journal(), mirrors(), opened_at_);
  slots_.resize(slot_count_);
  for (std::uint32_t i = 0; i < slot_count_; ++i) {
    slots_[i].index_ = i;
    for (std::uint32_t half = 0; half < 2; ++half) {
      slots_[i].blocks_[half] = std::move(blocks_[i * 2 + half]);
      // No transaction's: tags of generation 0 that a crash left behind must not look active.
      mirrors_[i].half[half].state.store(SlotMirror::pack(0, SlotState::kAborted),
                                         std::memory_order_relaxed);
    }
  }
}

Status TransactionSlots::check_array() const {
  const std::uint64_t pool_bytes = pool_.medium().bytes();
  const auto corrupt = [&](const char* what, std::uint64_t expected, std::uint64_t found) {
    return Status(StatusCode::kCorrupt,
                  fmt::format("{}: transaction slots at offset {}: {}: expected {}, found {}",
                              pool_.path(), root_, what, expected, found));
  };
  if (root_ == 0 || root_ % 64 != 0 || root_ > pool_bytes - sizeof(SlotArrayLayout))
    return corrupt("offset outside the pool or unaligned, pool bytes", pool_bytes, root_);
  const auto* header = pool_.at(pmem::OffsetPtr<SlotArrayLayout>{root_});
  if (header->magic != SlotArrayLayout::kMagic)
    return corrupt("magic", SlotArrayLayout::kMagic, header->magic);
  if (header->checksum != checksum_of(*header))
    return corrupt("checksum", checksum_of(*header), header->checksum);
  if (header->slot_count == 0 || header->slot_count > kSlotsMax)
    return corrupt("slot count, at most", kSlotsMax, header->slot_count);
  return {};
}

Status TransactionSlots::claim_blocks(std::uint32_t slot, std::uint32_t half) {
  return blocks_[slot * 2 + half].claim(
      pool_, slot_layout(slot).half[half].overflow,
      fmt::format("{}: transaction slot {}, half {}", pool_.path(), slot, half));
}

// Rolls forward: a row that still bears the tag of the half's committed transaction gets the
// time-stamp. A tag of another generation belongs to a transaction that did not commit, and is
// stale. Any other word stays: the row was stamped already, or reused since.
void TransactionSlots::resolve(std::uint32_t slot, const SlotHalfLayout& half,
                               const IntentBlocks& blocks,
                               FunctionRef<VersionLayout*(std::uint32_t, std::uint32_t)> locate,
                               pmem::Persister& persister, LoadCounts& counts) {
  const bool committed = Commit::is_committed(slot, half);
  const Stamp tag = make_tag(slot, half.commit_generation);
  bool completed = false;
  bool undone = false;
  const auto visit = [&](Intent intent) {
    if (!is_intent(intent)) return;
    ++counts.intents;
    VersionLayout* version = locate(intent_table(intent), intent_row(intent));
    if (version == nullptr) return;
    Stamp& stamp = intent_deletes(intent) ? version->deleted : version->created;
    const Stamp seen = load_stamp(stamp);
    if (committed && seen == half.commit_timestamp)
      persister.flush(&stamp, sizeof stamp, "resolve/1");  // perhaps its process did not flush it
    if (!is_tag(seen) || slot_of(seen) != slot) return;
    if (!committed || seen != tag) {
      undone = true;
      return;
    }
    store_stamp(stamp, half.commit_timestamp);
    persister.flush(&stamp, sizeof stamp, "resolve/1");
    completed = true;
  };
  for (const Intent intent : half.intents) visit(intent);
  const std::uint64_t count = half.intents[SlotHalfLayout::kInlineIntents - 1];
  if (!is_intent(count)) for_each_intent(blocks.read(pool_, count), visit);
  counts.completed += completed ? 1 : 0;
  counts.undone += undone ? 1 : 0;
}

// A process may have been killed between writing a record and flushing it.
void TransactionSlots::persist_records(pmem::Persister& persister) {
  for (std::uint32_t slot = 0; slot < array_slots_; ++slot)
    for (const SlotHalfLayout& half : slot_layout(slot).half)
      if (Commit::is_committed(slot, half)) persister.flush(&half, sizeof half, "resolve/1");
  persister.fence("resolve/1");
}

// Protocol resolve, run at every opening before any row is read.
//   step  store                                made durable by  power cut just after it: recovery
//   0     (commit records that count, as they  flush, fence     does the same again
//         are found)
//   1     time-stamps in rows that still bear  flush, fence     does the same again: the slots are
//         the tag of a committed transaction;                   not changed
//         those that are there are flushed
// Must hold:  0 before 1, else a row could bear a time-stamp that no record and no clock knows.
//             1 before a slot of this process begins: its intents may overwrite what names the
//             rows. Uncommitted transactions need nothing: the generations of their tags are
//             below the durable limit, hence stale for ever.
Status TransactionSlots::load(FunctionRef<VersionLayout*(std::uint32_t, std::uint32_t)> locate,
                              LoadCounts& counts) {
  if (Status s = check_array(); !s.ok()) return s;
  array_slots_ = static_cast<std::uint32_t>(array().slot_count);
  if (Status s = pool_.allocator().claim({root_, array_bytes(array_slots_)}, "transaction slots");
      !s.ok())
    return s;
  pool_.rely_on(&generation_limit(0), limits_bytes(array_slots_));
  blocks_.assign(std::size_t{array_slots_} * 2, {});
  pmem::Persister persister(pool_.medium());
  persist_records(persister);
  std::uint64_t latest = array().timestamp_floor;
  for (std::uint32_t slot = 0; slot < array_slots_; ++slot) {
    generation_floor_ = std::max(generation_floor_, generation_limit(slot));
    for (std::uint32_t index = 0; index < 2; ++index) {
      if (Status s = claim_blocks(slot, index); !s.ok()) {
        persister.fence("resolve/1");
        return s;
      }
      const SlotHalfLayout& half = slot_layout(slot).half[index];
      if (half.overflow != 0) pool_.rely_on(&half.overflow, sizeof half.overflow);
      // Old or new, a time-stamp in a record was given out, even if its commit was torn.
      latest = std::max(latest, half.commit_timestamp);
      resolve(slot, half, blocks_[slot * 2 + index], locate, persister, counts);
    }
  }
  if (latest > kTimestampPlausible || generation_floor_ > kGenerationPlausible) {
    persister.fence("resolve/1");
    return Status(StatusCode::kCorrupt,
                  fmt::format("{}: transaction slots: latest time-stamp expected at most {}, found "
                              "{}; generation limit at most {}, found {}",
                              pool_.path(), kTimestampPlausible, latest, kGenerationPlausible,
                              generation_floor_));
  }
  persister.fence("resolve/1");
  clock_.set(latest);
  return {};
}

bool TransactionSlots::pin_free(std::uint32_t index) noexcept {
  std::atomic<SlotClaim*>& owner = mirrors_[index].owner;
  SlotClaim* nobody = nullptr;
  return owner.load(std::memory_order_relaxed) == nullptr &&
         owner.compare_exchange_strong(nobody, SlotMirror::pinned(), std::memory_order_acq_rel);
}

// Pins the home of a thread without a transaction in it; the thread may have ended. We store
// `owner` and then read `in_use`; in acquire, the thread stores `in_use` and then reads `owner`.
// Each side has a barrier between the two, so at least one sees the other and backs off.
bool TransactionSlots::pin_idle(std::uint32_t index) noexcept {
  SlotMirror& mirror = mirrors_[index];
  SlotClaim* claim = mirror.owner.load(std::memory_order_acquire);
  if (claim == nullptr) return pin_free(index);
  if (claim == SlotMirror::pinned() ||
      claim->in_use.load(std::memory_order_relaxed) == name_of(index) ||
      !mirror.owner.compare_exchange_strong(claim, SlotMirror::pinned(), std::memory_order_acq_rel))
    return false;
  heavy_barrier();  // pairs with acquire
  if (claim->in_use.load(std::memory_order_acquire) != name_of(index)) return true;
  mirror.owner.store(claim, std::memory_order_release);
  return false;
}

// Its persister is made with its first transaction.
Slot& TransactionSlots::pinned(std::uint32_t index) noexcept {
  Slot& slot = slots_[index];
  if (slot.persister_ == nullptr)
    slot.persister_ = std::make_unique<pmem::Persister>(pool_.medium());
  slot.claim_ = nullptr;
  return slot;
}

Slot* TransactionSlots::acquire_idle(std::uint32_t index) noexcept {
  return pin_idle(index) ? &pinned(index) : nullptr;
}

// Pins a slot, or, if `home_of` is given, makes it that thread's home with a transaction in it.
Slot* TransactionSlots::take_any(std::uint32_t first, SlotClaim* home_of) noexcept {
  std::uint32_t tried = 0;
  const auto at = [&](std::uint32_t i) { return (first + i) % slot_count_; };
  while (tried < slot_count_ && !pin_free(at(tried))) ++tried;
  if (tried == slot_count_)
    for (tried = 0; tried < slot_count_ && !pin_idle(at(tried));) ++tried;
  if (tried == slot_count_) return nullptr;
  Slot& slot = pinned(at(tried));
  if (home_of != nullptr) {
    slot.claim_ = home_of;
    home_of->home_slots_id = id_;
    home_of->home_index = slot.index_;
    home_of->in_use.store(name_of(slot.index_), std::memory_order_relaxed);
    mirrors_[slot.index_].owner.store(home_of, std::memory_order_release);
  }
  return &slot;
}

Slot* TransactionSlots::acquire() noexcept {
  SlotClaim& mine = claim_of_this_thread();
  note_write(SharedWord::kSnapshot, &mine);
  // A second transaction of a thread pins a slot.
  if (mine.in_use.load(std::memory_order_acquire) != 0)
    return take_any(mine.number % slot_count_, nullptr);
  if (mine.home_slots_id == id_) {
    mine.in_use.store(name_of(mine.home_index), std::memory_order_relaxed);
    light_barrier();  // pairs with pin_idle
    note_read(SharedWord::kSnapshot, &mirrors_[mine.home_index].owner);
    if (mirrors_[mine.home_index].owner.load(std::memory_order_acquire) == &mine)
      return &slots_[mine.home_index];
    mine.in_use.store(0, std::memory_order_release);
  }
  return take_any(mine.number % slot_count_, &mine);
}

void TransactionSlots::release(Slot& slot) noexcept {
  FLUGS_DCHECK(slot.claim_ == nullptr ||
               slot.claim_->in_use.load(std::memory_order_relaxed) == name_of(slot.index_));
  SlotMirror& mirror = mirrors_[slot.index_];
  note_write(SharedWord::kSnapshot, &mirror.snapshot);
  mirror.snapshot.store(SlotMirror::kNoSnapshot, std::memory_order_release);
  // Both pair with acquire and pin_idle.
  if (slot.claim_ != nullptr) {
    note_write(SharedWord::kSnapshot, slot.claim_);
    slot.claim_->in_use.store(0, std::memory_order_release);
  } else {
    mirror.owner.store(nullptr, std::memory_order_release);
  }
}

// Protocol generation. A tag of a generation may be stored after step 1.
//   step  store                          made durable by     power cut just after it: recovery
//   1     generation_limit + 2^20        persist (8 bytes)   the next process begins at the limit
// Must hold:  1 before any tag of the block reaches a row, else the next process could give the
//             same tag out again and take a row of the crashed transaction for its own.
void TransactionSlots::begin_writing(Slot& slot) {
  if (slot.generation_ + 2 >= slot.generation_limit_) {
    std::uint64_t& limit = generation_limit(slot.index_);
    if (slot.generation_limit_ == 0) slot.generation_ = limit;
    slot.generation_limit_ = std::max(slot.generation_ + 2, limit) + kGenerationBlock;
    FLUGS_CHECK(slot.generation_limit_ < kGenerationMax);
    std::atomic_ref(limit).store(slot.generation_limit_, std::memory_order_relaxed);
    slot.persister_->persist(&limit, sizeof limit, "generation/1");
  }
  SlotMirror::Half& half = mirrors_[slot.index_].half[slot.generation_ & 1];
  note_write(SharedWord::kSlotMirror, &half);
  // The time-stamp stays until the commit: a reader that still looks for the former transaction
  // must not see its state together with another transaction's time-stamp (pairs with Visibility).
  half.state.store(SlotMirror::pack(slot.generation_, SlotState::kActive),
                   std::memory_order_release);
}

std::uint64_t TransactionSlots::oldest_snapshot() noexcept {
  std::uint64_t oldest = clock_.lowest();
  if (durable_time_.is_behind_clock())
    oldest = std::min(oldest, durable_time_.raise_floor(clock_.read()));
  heavy_barrier();  // pairs with begin_snapshot and begin_durable_snapshot
  for (std::uint32_t i = 0; i < slot_count_; ++i) {
    note_read(SharedWord::kSnapshot, &mirrors_[i].snapshot);
    oldest = std::min(oldest, mirrors_[i].snapshot.load(std::memory_order_acquire));
  }
  return std::min(oldest, held_snapshot_.load(std::memory_order_acquire));
}

// As in begin_snapshot, with the floor in the place of the clock: a thread that computes the oldest
// snapshot and misses the registration has raised the floor before.
std::uint64_t TransactionSlots::begin_durable_snapshot(Slot& slot) noexcept {
  if (!durable_time_.is_behind_clock()) return begin_snapshot(slot);
  std::atomic<std::uint64_t>& registered = mirrors_[slot.index_].snapshot;
  note_write(SharedWord::kSnapshot, &registered);
  registered.store(durable_time_.floor(), std::memory_order_release);
  light_barrier();
  const std::uint64_t snapshot = durable_now(slot);
  registered.store(snapshot, std::memory_order_release);
  return snapshot;
}

// All commits at or below an earlier result are durable for ever, so the highest counts.
std::uint64_t TransactionSlots::durable_now(Slot& slot) noexcept {
  if (!durable_time_.is_behind_clock()) return now();
  const std::uint64_t found = durable_time_.look(clock_.read());
  slot.durable_at_ = std::max({found, durable_time_.floor(), slot.durable_at_});
  return slot.durable_at_;
}

void TransactionSlots::catch_up(std::uint64_t since) noexcept {
  if (!durable_time_.is_behind_clock() || durable_time_.floor() >= since) return;
  static_cast<void>(pool_.medium().wait_durable());  // after a failure nothing catches up
}

// As in begin_snapshot: register first, then read the clock again.
std::uint64_t TransactionSlots::begin_hold() noexcept {
  hold_mutex_.lock();
  held_snapshot_.store(clock_.read(), std::memory_order_release);
  light_barrier();  // pairs with oldest_snapshot
  return clock_.read();
}

void TransactionSlots::end_hold() noexcept {
  FLUGS_CHECK(held_snapshot_.load(std::memory_order_relaxed) != SlotMirror::kNoSnapshot);
  held_snapshot_.store(SlotMirror::kNoSnapshot, std::memory_order_release);
  hold_mutex_.unlock();
}

// A thread that adopts the result is behind all that ended transactions did, like the thread that
// found it.
std::uint64_t TransactionSlots::shared_oldest_snapshot(std::uint64_t& looked_at) noexcept {
  constexpr std::uint64_t kFresher = 4;
  const std::uint64_t at = now();
  const std::uint64_t found_at = found_at_.load(std::memory_order_acquire);
  if (found_at > looked_at && at - std::min(at, found_at) < (at - looked_at) / kFresher) {
    looked_at = found_at;
    return found_oldest_.load(std::memory_order_acquire);
  }
  looked_at = at;
  const std::uint64_t oldest = oldest_snapshot();
  const auto raise = [](std::atomic<std::uint64_t>& word, std::uint64_t value) {
    std::uint64_t seen = word.load(std::memory_order_relaxed);
    while (seen < value && !word.compare_exchange_weak(seen, value, std::memory_order_acq_rel)) {
    }
  };
  raise(found_oldest_, oldest);
  raise(found_at_, at);
  return oldest;
}

TransactionSlots::Oldest TransactionSlots::oldest_transaction() const noexcept {
  Oldest oldest{now(), 0};
  for (std::uint32_t i = 0; i < slot_count_; ++i)
    if (const std::uint64_t s = mirrors_[i].snapshot.load(std::memory_order_acquire);
        s < oldest.snapshot)
      oldest = {s, i};
  return oldest;
}

void TransactionSlots::ask_to_end(std::uint64_t timestamp) noexcept {
  std::uint64_t asked = asked_to_end_.load(std::memory_order_relaxed);
  while (asked < timestamp && !asked_to_end_.compare_exchange_weak(asked, timestamp)) {
  }
  for (std::uint32_t i = 0; i < slot_count_; ++i)
    mirrors_[i].attention.store(1, std::memory_order_release);
}

std::uint32_t TransactionSlots::open_before(std::uint64_t timestamp) const noexcept {
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < slot_count_; ++i)
    count += mirrors_[i].snapshot.load(std::memory_order_acquire) < timestamp ? 1 : 0;
  return count;
}

std::uint32_t TransactionSlots::taken() const noexcept {
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < slot_count_; ++i) {
    const SlotClaim* owner = mirrors_[i].owner.load(std::memory_order_acquire);
    const bool is_taken =
        owner == SlotMirror::pinned() ||
        (owner != nullptr && owner->in_use.load(std::memory_order_acquire) == name_of(i));
    count += is_taken ? 1 : 0;
  }
  return count;
}

std::uint64_t TransactionSlots::bytes_in_pool() const noexcept {
  std::uint64_t bytes = array_bytes(array_slots_);
  for (const Slot& slot : slots_) bytes += slot.blocks_[0].bytes() + slot.blocks_[1].bytes();
  return bytes;
}

}  // namespace flugs::mvcc
