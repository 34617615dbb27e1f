#include "mvcc/commit.h"

#include <xxhash.h>

#include <algorithm>
#include <atomic>

#include "base/check.h"
#include "mvcc/intent_list.h"

namespace flugs::mvcc {

namespace {

// With more writes, a transaction flushes its stamps itself instead of leaving them to the next
// one, and the next one forgets its intents.
constexpr std::size_t kStampsLeftMax = 64;

void store_word(std::uint64_t& word, std::uint64_t value) noexcept {
  std::atomic_ref(word).store(value, std::memory_order_relaxed);
}

/// Adjacent rows, of one block if their columns are apart.
struct RowRun {
  const std::byte* first = nullptr;
  const std::byte* end = nullptr;
  std::span<const RowPart> parts;

  bool goes_on_with(const Write& write) const noexcept {
    return reinterpret_cast<const std::byte*>(write.version) == end &&
           write.parts.data() == parts.data();
  }
  void flush(pmem::Persister& persister, pmem::Label label) const noexcept {
    if (end == nullptr) return;
    const auto bytes = static_cast<std::size_t>(end - first);
    persister.flush(first, bytes, label);
    const std::size_t rows = bytes / RowBlock::kStampBytes;
    FLUGS_DCHECK(parts.empty() || RowBlock::number_of(first) + rows <= RowBlock::kRows);
    for (const RowPart& part : parts) persister.flush(part.in_row(first), rows * part.bytes, label);
  }
};

// Flushes adjacent rows in one call if `writes` has them in the order of their addresses, so each
// line is flushed once. Inserted and deleted rows are separate runs.
void flush_rows(pmem::Persister& persister, std::span<const Write> writes,
                pmem::Label label) noexcept {
  for (const bool deletes : {false, true}) {
    RowRun run;
    for (const Write& write : writes) {
      if (write.deletes != deletes) continue;
      FLUGS_DCHECK(write.row_bytes >= sizeof(VersionLayout));
      FLUGS_DCHECK(write.parts.empty() || write.row_bytes == RowBlock::kStampBytes);
      if (!run.goes_on_with(write)) {
        run.flush(persister, label);
        run.first = reinterpret_cast<const std::byte*>(write.version);
        run.parts = write.parts;
      }
      run.end = reinterpret_cast<const std::byte*>(write.version) + write.row_bytes;
    }
    run.flush(persister, label);
  }
}

void store_record(SlotHalfLayout& half, std::uint32_t slot, std::uint64_t generation,
                  std::uint64_t timestamp) noexcept {
  note_write(SharedWord::kSlotHalf, &half);
  store_word(half.commit_timestamp, timestamp);
  store_word(half.commit_generation, generation);
  store_word(half.commit_check, Commit::check_of(slot, generation, timestamp));
}

void flush_stamps(pmem::Persister& persister, std::span<const Write> writes) noexcept {
  std::uintptr_t flushed_line[2] = {0, 0};  // of rows inserted, and deleted
  for (const Write& write : writes) {
    const std::uintptr_t line = reinterpret_cast<std::uintptr_t>(write.version) / pmem::kLineBytes;
    std::uintptr_t& last = flushed_line[write.deletes ? 1 : 0];
    if (line != last) persister.flush(write.version, sizeof *write.version, "commit/4");
    last = line;
  }
}

}  // namespace

std::uint64_t Commit::check_of(std::uint32_t slot, std::uint64_t generation,
                               std::uint64_t timestamp) noexcept {
  const std::uint64_t words[3] = {slot, generation, timestamp};
  return XXH3_64bits(words, sizeof words);
}

Commit::Lock Commit::lock(VersionLayout& version, const Visibility& visibility) noexcept {
  FLUGS_DCHECK(is_tag(visibility.own_tag()));
  for (;;) {
    const Visibility::Resolved found = visibility.resolve(version.deleted);
    switch (found.fate) {
      case Visibility::Fate::kOwn:
        return Lock::kDeletedBySelf;
      case Visibility::Fate::kInFlight:
      case Visibility::Fate::kCommitted:
        return Lock::kConflict;
      case Visibility::Fate::kNothing:
        break;
    }
    if (exchange_stamp(version.deleted, found.seen, visibility.own_tag())) return Lock::kLocked;
  }
}

Status Commit::store_intents(Slot& slot, const std::vector<Write>& writes) {
  const std::uint32_t half_index = slot.generation_ & 1;
  SlotHalfLayout& half = slots_.slot_layout(slot.index_).half[half_index];
  constexpr std::size_t kInline = SlotHalfLayout::kInlineIntents;
  const auto intent_of = [&](std::size_t i) {
    return make_intent(writes[i].deletes, writes[i].table, writes[i].row);
  };
  note_write(SharedWord::kSlotHalf, &half);
  if (writes.size() <= kInline) {
    for (std::size_t i = 0; i < kInline; ++i)
      store_word(half.intents[i], i < writes.size() ? intent_of(i) : 0);
  } else {
    const std::vector<Intent> rest = intents_of(std::span(writes).subspan(kInline - 1));
    IntentBlocks& blocks = slot.blocks_[half_index];
    pmem::Persister& persister = *slot.persister_;
    if (Status s = blocks.enlarge(slots_.pool_, half.overflow, rest.size(), persister); !s.ok())
      return s;
    for (std::size_t i = 0; i + 1 < kInline; ++i) store_word(half.intents[i], intent_of(i));
    store_word(half.intents[kInline - 1], rest.size());
    blocks.store(slots_.pool_, rest, persister);
  }
  return {};
}

// Protocol write_ahead: flushes early, in a large transaction, what step 1 of the commit would.
//   step  store                                  made durable by  power cut just after it: recovery
//   1     step 0 of commit, of 64 rows or more   flush, and the   tags are stale: rows never
//                                                fence of         created, not deleted
//                                                commit/1
//   2     cells of such a row, changed in place  likewise         the same
//         (RowWriter::update_in_place)
// Need not:   any order. Lines may reach the medium at any time; the commit's fence is what counts.
void Commit::flush_ahead(Slot& slot, std::span<const Write> writes) noexcept {
  flush_rows(*slot.persister_, writes, "write_ahead/1");
  flush_stamps_left(slot);
}

void Commit::flush_stamps_left(Slot& slot) noexcept {
  for (const VersionLayout* version : slot.unflushed_stamps_)
    slot.persister_->flush(version, sizeof *version, "commit/4");
  slot.unflushed_stamps_.clear();
}

// Protocol commit. The transaction is durable after step 2 (with soon: ordered) and visible after
// step 3.
//   step  store                                  made durable by  power cut just after it: recovery
//   0     rows' deleted words := tag (locks),    -                tags are stale: rows never
//         new rows: cells, created := tag                         created, not deleted
//   1     all of step 0, what the rows refer     flush, one       the same
//         to, the intents; the stamps of the     fence
//         slot's former transaction
//   2     commit record: generation, time-       flush, one       completes step 4 from the intents
//         stamp and their check, in one line     fence, waited for
//                                                (soon: not)
//   3     (DRAM) mirror := committed             -                the same
//   4     created and deleted words := time-     flush with step  the same; done: no row bears the
//         stamp                                  1 of the slot's  tag any more
//                                                next commit
// Must hold:  1 before 2, else a committed row could be missing or torn.
//             2 before 3, else a reader could see what a power cut takes back (P1). With soon that
//             is so on a medium with a journal; the order of the journal's records keeps the rest:
//             a transaction that has seen it and commits is taken back with it.
//             4 durable before the half's intents are overwritten: halves alternate, and the fence
//             of step 1 of the other half lies between.
// Need not:   any order inside step 1, inside the record of step 2, inside step 4.
Result<std::uint64_t> Commit::run(Slot& slot, const std::vector<Write>& writes, std::size_t flushed,
                                  FunctionRef<void(pmem::Persister&)> flush_rest,
                                  FunctionRef<void()> is_durable,
                                  FunctionRef<bool(std::uint64_t timestamp)> may_commit) {
  FLUGS_CHECK(flushed <= writes.size());
  FLUGS_CHECK(slot.generation_ < slot.generation_limit_);  // durably taken (begin_writing)
  pmem::Persister& persister = *slot.persister_;
  const std::uint32_t half_index = slot.generation_ & 1;
  SlotMirror::Half& mirror = slots_.mirrors_[slot.index_].half[half_index];
  SlotHalfLayout& half = slots_.slot_layout(slot.index_).half[half_index];

  if (Status s = slots_.pool_.medium().check_writable(); !s.ok()) return s;
  if (Status s = store_intents(slot, writes); !s.ok()) return s;

  // Announced before the time-stamp is taken: a reader with a snapshot at or above it finds us
  // committing and waits (pairs with Visibility::tag_happened). Announced before the flushes,
  // because a locked instruction behind them would wait until they are done.
  note_write(SharedWord::kSlotMirror, &mirror);
  mirror.timestamp.store(0, std::memory_order_release);
  mirror.state.store(SlotMirror::pack(slot.generation_, SlotState::kCommitting),
                     std::memory_order_release);
  const std::uint64_t timestamp = slots_.clock_.take();
  FLUGS_CHECK(timestamp <= kTimestampMax && timestamp > slot.begun_at_);
  mirror.timestamp.store(timestamp, std::memory_order_release);
  // No deadlock: we wait only for lower time-stamps, and all that wait for us have higher ones.
  if (!may_commit(timestamp)) return Status(StatusCode::kConflict);

  persister.flush(&half, sizeof half, "commit/1");
  flush_rows(persister, std::span(writes).subspan(flushed), "commit/1");
  flush_rest(persister);
  flush_stamps_left(slot);
  persister.fence("commit/1");

  if (slot.has_many_intents_)
    TransactionSlots::forget_intents(slots_.slot_layout(slot.index_).half[half_index ^ 1],
                                     persister);
  store_record(half, slot.index_, slot.generation_, timestamp);
  persister.flush(&half, 3 * sizeof(std::uint64_t), "commit/2");
  persister.fence("commit/2");
  if (Status s = make_durable(slot, timestamp); !s.ok()) return s;

  // Every transaction that begins after our return sees this one. The fences took longer than
  // `pass` needs, so this does not wait.
  slots_.clock_.pass(timestamp);
  note_write(SharedWord::kSlotMirror, &mirror);
  mirror.state.store(SlotMirror::pack(slot.generation_, SlotState::kCommitted),
                     std::memory_order_release);
  is_durable();
  for (const Write& write : writes)
    store_stamp(write.deletes ? write.version->deleted : write.version->created, timestamp);
  slot.has_many_intents_ = writes.size() > kStampsLeftMax;
  if (slot.has_many_intents_) {
    flush_stamps(persister, writes);  // the next commit's first fence completes it
  } else {
    for (const Write& write : writes) slot.unflushed_stamps_.push_back(write.version);
  }
  slot.generation_ += 1;
  return timestamp;
}

// What is not waited for must be noted before others see it.
Status Commit::make_durable(Slot& slot, std::uint64_t timestamp) const {
  pmem::Persister& persister = *slot.persister_;
  if (__builtin_expect(!soon_.has_value(), 1)) return persister.wait_durable();
  if (Status s = persister.want_durable(*soon_); !s.ok()) return s;
  slots_.durable_time_.note(slots_.mirrors_[slot.index_], slot.pending_group_, timestamp,
                            persister.appended());
  return {};
}

// Nothing needs to become durable, also if the transaction goes on and commits: recovery completes
// only what its intents name, and this row is not among them. A tag of it on the medium is then as
// stale as the tag of a transaction that never committed.
void Commit::take_back(const Slot& slot, const Write& write) noexcept {
  Stamp& stamp = write.deletes ? write.version->deleted : write.version->created;
  if (load_stamp(stamp) == slot.tag()) store_stamp(stamp, kNoStamp);
}

// In DRAM the words must be free before the generation changes.
void Commit::undo(Slot& slot, const std::vector<Write>& writes) noexcept {
  for (const Write& write : writes) take_back(slot, write);
  SlotMirror::Half& mirror = slots_.mirrors_[slot.index_].half[slot.generation_ & 1];
  mirror.state.store(SlotMirror::pack(slot.generation_, SlotState::kAborted),
                     std::memory_order_release);
  // The half does not change: the stamps of the other half's transaction may not be durable yet.
  slot.generation_ += 2;
}

}  // namespace flugs::mvcc
