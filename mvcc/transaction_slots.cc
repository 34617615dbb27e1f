#include "mvcc/transaction_slots.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>

#include "mvcc/commit.h"
#include "pmem/check.h"

namespace flugs::mvcc {

namespace {

// One fence per million transactions of a slot, and 2^31 crashes before generations run out.
constexpr std::uint64_t kGenerationBlock = std::uint64_t{1} << 20;

std::uint64_t limits_bytes(std::uint64_t slot_count) noexcept { return (slot_count * 8 + 63) / 64 * 64; }
std::uint64_t checksum_of(const SlotArrayLayout& array) noexcept { return XXH3_64bits(&array, 24); }
std::uint64_t checksum_of(const IntentBlockLayout& block) noexcept { return XXH3_64bits(&block, 16); }

// An owner that takes no part: its slot is being taken from somebody.
constexpr std::uint64_t kNobodyYet = ~std::uint64_t{0};

// The slot that this thread had last.
struct ThreadSlot {
  std::uint64_t token = 0;
  std::uint64_t slots_id = 0;
  std::uint32_t index = 0;
};
thread_local ThreadSlot thread_slot;
std::atomic<std::uint64_t> next_token{1};
std::atomic<std::uint64_t> next_slots_id{1};

}  // namespace

TransactionSlots::TransactionSlots(pmem::Pool& pool, std::uint64_t& array_offset)
    : pool_(pool),
      id_(next_slots_id.fetch_add(1, std::memory_order_relaxed)),
      root_(array_offset) {}

TransactionSlots::~TransactionSlots() {
  for (Slot& slot : slots_) {
    if (slot.persister_ == nullptr) continue;
    for (const VersionLayout* version : slot.unflushed_stamps_)
      slot.persister_->flush(version, sizeof *version, "commit/4");
    slot.persister_->fence("commit/4");
  }
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
  return pool_.at(pmem::OffsetPtr<TransactionSlotLayout>{
      root_ + sizeof(SlotArrayLayout) + limits_bytes(array_slots_)})[slot];
}

// Protocol slot_array, for the first array and for a larger one. Only when no slot is in use.
//   step  store                             made durable by    power cut just after it: recovery
//   1     header, limits and empty slots    flush, fence       new array unreachable: free space
//   2     the root's pointer to the array   persist (8 bytes)  uses the new array
// Must hold:  1 before 2. The new array's time-stamp floor and generation limits are at or above
//             all that the old one gave out, so that tags left in rows stay stale.
Result<std::uint64_t> TransactionSlots::make_array(std::uint64_t slot_count,
                                                   pmem::Persister& persister) {
  Result<pmem::Extent> extent = pool_.allocator().allocate(array_bytes(slot_count), persister);
  if (!extent.ok()) return std::move(extent).status();
  auto* fresh = pool_.at(pmem::OffsetPtr<SlotArrayLayout>{extent->offset});
  fresh->magic = SlotArrayLayout::kMagic;
  fresh->slot_count = slot_count;
  fresh->timestamp_floor = clock_.load(std::memory_order_relaxed);
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
  overflow_bytes_.assign(std::size_t{slot_count} * 2, 0);
  return {};
}

Status TransactionSlots::grow(std::uint32_t slot_count) {
  if (slot_count <= array_slots_) return {};
  pmem::Persister persister(pool_.medium());
  Result<std::uint64_t> offset = make_array(slot_count, persister);
  if (!offset.ok()) return std::move(offset).status();
  std::vector<pmem::Extent> old = {{root_, array_bytes(array_slots_)}};
  for (std::uint32_t slot = 0; slot < array_slots_; ++slot)
    for (std::uint32_t half = 0; half < 2; ++half)
      if (const std::uint64_t block = slot_layout(slot).half[half].overflow; block != 0)
        old.push_back({block, overflow_bytes_[slot * 2 + half]});
  std::atomic_ref(root_).store(*offset, std::memory_order_relaxed);
  persister.persist(&root_, sizeof root_, "slot_array/2");
  for (const pmem::Extent& extent : old) pool_.allocator().release(extent);
  array_slots_ = slot_count;
  overflow_bytes_.assign(std::size_t{slot_count} * 2, 0);
  return {};
}

void TransactionSlots::start(std::uint32_t slot_count) {
  slot_count_ = std::min(slot_count, array_slots_);
  mirrors_ = std::make_unique<SlotMirror[]>(slot_count_);
  slots_.resize(slot_count_);
  for (std::uint32_t i = 0; i < slot_count_; ++i) {
    slots_[i].index_ = i;
    for (std::uint32_t half = 0; half < 2; ++half) {
      slots_[i].overflow_bytes_[half] = overflow_bytes_[i * 2 + half];
      // Nobody's: tags of generation 0 that a crash left behind must not look active.
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

Status TransactionSlots::claim_overflow(std::uint32_t slot, std::uint32_t half) {
  const std::uint64_t offset = slot_layout(slot).half[half].overflow;
  if (offset == 0) return {};
  const std::uint64_t pool_bytes = pool_.medium().bytes();
  const bool inside = offset % 64 == 0 && offset <= pool_bytes - sizeof(IntentBlockLayout);
  const auto* block = inside ? pool_.at(pmem::OffsetPtr<IntentBlockLayout>{offset}) : nullptr;
  if (block == nullptr || block->magic != IntentBlockLayout::kMagic ||
      block->checksum != checksum_of(*block))
    return Status(StatusCode::kCorrupt,
                  fmt::format("{}: transaction slot {}, half {}: the intent block at offset {} {}",
                              pool_.path(), slot, half, offset,
                              inside ? "has a damaged header" : "lies outside the pool"));
  overflow_bytes_[slot * 2 + half] = block->bytes;
  return pool_.allocator().claim({offset, block->bytes}, fmt::format("transaction slot {}", slot));
}

std::span<const Intent> TransactionSlots::overflow_of(const SlotHalfLayout& half,
                                                      std::uint64_t block_bytes) const {
  const std::uint64_t count = half.intents[SlotHalfLayout::kInlineIntents - 1];
  if (is_intent(count) || half.overflow == 0 || block_bytes < sizeof(IntentBlockLayout)) return {};
  const std::uint64_t capacity = (block_bytes - sizeof(IntentBlockLayout)) / sizeof(Intent);
  const auto* intents =
      pool_.at(pmem::OffsetPtr<Intent>{half.overflow + sizeof(IntentBlockLayout)});
  return {intents, std::min(count, capacity)};
}

// Roll forward: a row whose stamp is still this very transaction's tag gets the time-stamp. Any
// other word is none of its business: stamped already, or the row was reused since.
void TransactionSlots::complete(
    std::uint32_t slot, const SlotHalfLayout& half, std::uint64_t block_bytes,
    FunctionRef<VersionLayout*(std::uint32_t, std::uint32_t)> locate, pmem::Persister& persister) {
  const Stamp tag = make_tag(slot, half.commit_generation);
  const auto visit = [&](Intent intent) {
    if (!is_intent(intent)) return;
    VersionLayout* version = locate(intent_table(intent), intent_row(intent));
    if (version == nullptr) return;
    Stamp& stamp = intent_deletes(intent) ? version->deleted : version->created;
    if (load_stamp(stamp) != tag) return;
    store_stamp(stamp, half.commit_timestamp);
    persister.flush(&stamp, sizeof stamp, "resolve/1");
  };
  for (const Intent intent : half.intents) visit(intent);
  for (const Intent intent : overflow_of(half, block_bytes)) visit(intent);
}

bool TransactionSlots::has_live_intents(const SlotHalfLayout& half) noexcept {
  return std::any_of(std::begin(half.intents), std::end(half.intents), is_intent);
}

// Protocol resolve, run at every opening before anybody reads a row.
//   step  store                                made durable by  power cut just after it: recovery
//   1     time-stamps in rows that still bear  flush, fence     does the same again: the slots are
//         the tag of a committed transaction                    not changed
// Must hold:  1 before a slot of this process begins: its intents may overwrite what names the rows.
// What was not committed needs nothing: its tags are of generations below the durable limit, hence
// stale for ever.
Status TransactionSlots::load(FunctionRef<VersionLayout*(std::uint32_t, std::uint32_t)> locate,
                              LoadCounts& counts) {
  if (Status s = check_array(); !s.ok()) return s;
  array_slots_ = static_cast<std::uint32_t>(array().slot_count);
  if (Status s = pool_.allocator().claim({root_, array_bytes(array_slots_)}, "transaction slots");
      !s.ok())
    return s;
  overflow_bytes_.assign(std::size_t{array_slots_} * 2, 0);
  pmem::Persister persister(pool_.medium());
  std::uint64_t latest = array().timestamp_floor;
  for (std::uint32_t slot = 0; slot < array_slots_; ++slot) {
    generation_floor_ = std::max(generation_floor_, generation_limit(slot));
    for (std::uint32_t index = 0; index < 2; ++index) {
      if (Status s = claim_overflow(slot, index); !s.ok()) return s;
      const SlotHalfLayout& half = slot_layout(slot).half[index];
      // Old or new, a time-stamp that stands here was given out, also if its commit was torn.
      latest = std::max(latest, half.commit_timestamp);
      if (Commit::is_committed(slot, half)) {
        complete(slot, half, overflow_bytes_[slot * 2 + index], locate, persister);
        ++counts.completed;
      } else if (has_live_intents(half)) {
        ++counts.undone;
      }
    }
  }
  if (latest >= kTimestampMax || generation_floor_ >= kGenerationMax - kGenerationBlock) {
    persister.fence("resolve/1");
    return Status(StatusCode::kCorrupt,
                  fmt::format("{}: transaction slots: time-stamp {} or generation {} is impossible",
                              pool_.path(), latest, generation_floor_));
  }
  persister.fence("resolve/1");
  clock_.store(latest, std::memory_order_seq_cst);
  return {};
}

Slot* TransactionSlots::hold(std::uint32_t index) {
  Slot& slot = slots_[index];
  if (slot.persister_ == nullptr)
    slot.persister_ = std::make_unique<pmem::Persister>(pool_.medium());
  return &slot;
}

Slot* TransactionSlots::take_free(std::uint64_t token, std::uint32_t first) noexcept {
  for (std::uint32_t i = 0; i < slot_count_; ++i) {
    const std::uint32_t index = (first + i) % slot_count_;
    SlotMirror& mirror = mirrors_[index];
    std::uint64_t nobody = 0;
    if (mirror.owner.load(std::memory_order_relaxed) != 0 ||
        !mirror.owner.compare_exchange_strong(nobody, token, std::memory_order_acq_rel))
      continue;
    mirror.active.store(1, std::memory_order_relaxed);
    return hold(index);
  }
  return nullptr;
}

// Every slot has an owner, but owners may be idle, or threads that are gone. Taking the ownership
// away and looking at `active` is the mirror image of what the owner does in acquire.
Slot* TransactionSlots::take_idle(std::uint64_t token) noexcept {
  for (std::uint32_t index = 0; index < slot_count_; ++index) {
    SlotMirror& mirror = mirrors_[index];
    std::uint64_t owner = mirror.owner.load(std::memory_order_relaxed);
    if (owner == 0) return take_free(token, index);
    if (mirror.active.load(std::memory_order_acquire) != 0 || owner == kNobodyYet ||
        !mirror.owner.compare_exchange_strong(owner, kNobodyYet, std::memory_order_acq_rel))
      continue;
    heavy_barrier();
    if (mirror.active.load(std::memory_order_acquire) != 0) {
      mirror.owner.store(owner, std::memory_order_release);
      continue;
    }
    mirror.active.store(1, std::memory_order_relaxed);
    mirror.owner.store(token, std::memory_order_release);
    return hold(index);
  }
  return nullptr;
}

Slot* TransactionSlots::acquire() noexcept {
  ThreadSlot& mine = thread_slot;
  if (mine.token == 0) mine.token = next_token.fetch_add(1, std::memory_order_relaxed);
  if (mine.slots_id == id_) {
    SlotMirror& mirror = mirrors_[mine.index];
    if (mirror.active.load(std::memory_order_acquire) == 0) {
      mirror.active.store(1, std::memory_order_relaxed);
      light_barrier();  // pairs with take_idle
      if (mirror.owner.load(std::memory_order_acquire) == mine.token) return &slots_[mine.index];
      mirror.active.store(0, std::memory_order_release);
    }
  }
  Slot* slot = take_free(mine.token, static_cast<std::uint32_t>(mine.token % slot_count_));
  if (slot == nullptr) slot = take_idle(mine.token);
  if (slot != nullptr) {
    mine.slots_id = id_;
    mine.index = slot->index_;
  }
  return slot;
}

void TransactionSlots::release(Slot& slot) noexcept {
  SlotMirror& mirror = mirrors_[slot.index_];
  mirror.snapshot.store(SlotMirror::kNoSnapshot, std::memory_order_release);
  mirror.active.store(0, std::memory_order_release);  // pairs with acquire and take_idle
}

// Protocol generation. A tag of a generation may be stored after step 1.
//   step  store                          made durable by     power cut just after it: recovery
//   1     generation_limit + 2^20        persist (8 bytes)   the next process begins at the limit
// Must hold:  1 before any tag of the block reaches a row, else the next process could give the
//             same tag out again and a row of the crashed transaction would become its own.
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
  half.timestamp.store(0, std::memory_order_relaxed);
  half.state.store(SlotMirror::pack(slot.generation_, SlotState::kActive),
                   std::memory_order_release);
}

std::uint64_t TransactionSlots::oldest_snapshot() const noexcept {
  std::uint64_t oldest = clock_.load(std::memory_order_seq_cst);
  heavy_barrier();  // pairs with begin_snapshot
  for (std::uint32_t i = 0; i < slot_count_; ++i)
    oldest = std::min(oldest, mirrors_[i].snapshot.load(std::memory_order_acquire));
  return oldest;
}

std::uint32_t TransactionSlots::taken() const noexcept {
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < slot_count_; ++i)
    count += mirrors_[i].active.load(std::memory_order_acquire);
  return count;
}

std::uint64_t TransactionSlots::bytes_in_pool() const noexcept {
  std::uint64_t bytes = array_bytes(array_slots_);
  for (const Slot& slot : slots_) bytes += slot.overflow_bytes_[0] + slot.overflow_bytes_[1];
  return bytes;
}

}  // namespace flugs::mvcc
