#include "columns/index/hint_index.h"

#include <bit>
#include <utility>

#include "columns/cells/unflushed.h"
#include "pmem/medium/persist.h"

namespace flugs::columns {

HintIndex::HintIndex(pmem::Pool& pool, HintIndexLayout& layout, std::string owner)
    : layout_(layout),
      segments_(pool, layout, std::move(owner)),
      directory_(layout, segments_),
      growth_(layout, directory_, segments_, locks_) {}

// ------------------------------------------------------------------------------------- opening

Status HintIndex::load() {
  Status s = segments_.load();
  if (s.ok()) s = directory_.load();
  is_loaded_ = s.ok();
  return s;
}

void HintIndex::recover(pmem::Persister& persister) {
  FLUGS_CHECK(is_loaded_);
  directory_.recover(persister);
}

// In pieces, because other threads want the mutex.
Status HintIndex::check_directory() {
  std::size_t first = 0;
  for (bool has_more = true; has_more;) {
    const std::lock_guard structure(structure_mutex_);
    has_more = directory_.read_some(first);
  }
  return damage();
}

// ------------------------------------------------------------------------------------- look-ups

bool HintIndex::lookup(std::uint64_t hash, Candidates& out) const {
  const std::uint32_t fingerprint = fingerprint_of(hash);
  for (;;) {
    out.clear();
    const HintDirectory::Copy* directory = directory_.current();
    if (directory == nullptr) return true;
    const std::size_t index = directory->index_of(fingerprint);
    const std::uint64_t seen = directory_.word_of(*directory, index);
    // Without a branch per slot: no processor can predict in which one an entry is.
    segments_.walk_lines(seen, fingerprint, [&](std::uint64_t*, const HintLine& line) {
      return line.any([&](std::uint32_t, std::uint64_t value) {
        out.push(hint_slot::payload_of(value));
        return false;
      });
    });
    // A segment is reused only after the word had changed.
    if (directory_.is_still(directory, index, seen)) return seen != 0;
  }
}

void HintIndex::prefetch(std::uint64_t hash) const noexcept {
  const std::uint32_t fingerprint = fingerprint_of(hash);
  const std::uint64_t word = directory_.word_for(fingerprint);
  if (word == 0) return;
  __builtin_prefetch(segments_.at(word)->slots[hint_slot::home_of(fingerprint)]);
}

void HintIndex::prefetch_for_edit(std::uint64_t hash) noexcept {
  const std::uint32_t fingerprint = fingerprint_of(hash);
  const std::uint64_t word = directory_.word_for(fingerprint);
  if (word == 0) return;
  __builtin_prefetch(&locks_.of(word), 1);
  __builtin_prefetch(segments_.at(word)->slots[hint_slot::home_of(fingerprint)], 1);
}

void HintIndex::prefetch_for_erase(std::uint64_t hash) const noexcept {
  const std::uint32_t fingerprint = fingerprint_of(hash);
  const std::uint64_t word = directory_.word_for(fingerprint);
  if (word != 0) __builtin_prefetch(segments_.at(word)->slots[hint_slot::home_of(fingerprint)], 1);
}

// ------------------------------------------------------------------------------------- editing

HintIndex::Editor::Editor(HintIndex& index, std::uint64_t hash) noexcept
    : segments_(index.segments_),
      fingerprint_(fingerprint_of(hash)),
      lock_(index.directory_, index.locks_, fingerprint_) {}

Status HintIndex::make_room(std::uint64_t hash, pmem::Persister& persister) {
  const std::lock_guard structure(structure_mutex_);
  return growth_.make_room(fingerprint_of(hash), persister);
}

// A null slot means that there is no room.
HintIndex::Space HintIndex::Editor::put(std::uint64_t* slot, bool is_new, std::uint64_t value,
                                        Unflushed* unflushed) {
  if (slot == nullptr) return Space::kNone;
  FLUGS_DCHECK(lock_.word() != 0 && hint_slot::is_live(value));
  hint_slot::store(*slot, value);
  std::uint32_t lines = 0;
  segments_.for_each_line_to(lock_.word(), fingerprint_, slot, [&](const void* line) {
    if (unflushed != nullptr) unflushed->add(line, pmem::kLineBytes);
    ++lines;
  });
  if (!is_new) return Space::kEnough;
  // Only one entry per line asks for room: the one that fills the line's last slot. By then other
  // entries have filled the beginning of the line.
  const bool is_last = reinterpret_cast<std::uintptr_t>(slot + 1) % pmem::kLineBytes == 0;
  return (lines > kLinesFar && is_last) || is_walk_thin() ? Space::kLittle : Space::kEnough;
}

// Where entries come and go, each line is full some day, and then never ends a look-up again. New
// entries still find an emptied slot near their home, so their distance from it does not show that.
bool HintIndex::Editor::is_walk_thin() const noexcept {
  if (lines_walked_ <= kLinesFar) return false;
  std::uint32_t live = 0;
  std::uint32_t emptied = 0;
  segments_.walk_lines(lock_.word(), fingerprint_, [&](std::uint64_t*, const HintLine& line) {
    live += static_cast<std::uint32_t>(HintLine::kSlots - std::popcount(line.free));
    emptied += static_cast<std::uint32_t>(std::popcount(line.free & ~line.unused));
    return false;
  });
  return emptied > live / 2;
}

HintIndex::Space HintIndex::Editor::insert(std::uint32_t payload, Unflushed* unflushed) {
  const std::uint64_t wanted = hint_slot::make(fingerprint_, payload);
  std::uint64_t* found = nullptr;
  std::uint64_t* free = nullptr;
  walk_lines([&](std::uint64_t* slots, const HintLine& line) {
    HintSegments::note_free(slots, line, free);
    return line.any([&](std::uint32_t i, std::uint64_t value) {
      if (value == wanted) found = &slots[i];
      return found != nullptr;
    });
  });
  return put(found != nullptr ? found : free, found == nullptr, wanted, unflushed);
}

void HintIndex::Editor::take_back(std::uint32_t payload, std::uint32_t successor) noexcept {
  FLUGS_DCHECK(payload != successor);
  const std::uint64_t wanted = hint_slot::make(fingerprint_, successor);
  segments_.walk_lines(lock_.word(), fingerprint_, [&](std::uint64_t* slots, const HintLine& line) {
    return line.any([&](std::uint32_t i, std::uint64_t value) {
      if (value == wanted) hint_slot::store(slots[i], hint_slot::make(fingerprint_, payload));
      return false;
    });
  });
}

void HintIndex::flush(std::uint64_t hash, std::uint32_t payload, pmem::Persister& persister,
                      pmem::Label label) const noexcept {
  const std::uint32_t fingerprint = fingerprint_of(hash);
  // If the entry moves meanwhile, its new place is durable before look-ups find it there.
  const std::uint64_t word = directory_.word_for(fingerprint);
  if (word == 0) return;
  const std::uint64_t wanted = hint_slot::make(fingerprint, payload);
  const std::uint64_t* found = nullptr;
  segments_.walk_lines(word, fingerprint, [&](std::uint64_t* slots, const HintLine& line) {
    return line.any([&](std::uint32_t i, std::uint64_t value) {
      if (value == wanted) found = &slots[i];
      return found != nullptr;
    });
  });
  if (found == nullptr) return;
  segments_.for_each_line_to(word, fingerprint, found, [&](const void* line) {
    persister.flush(line, pmem::kLineBytes, label);
  });
}

void HintIndex::for_each(FunctionRef<void(std::uint32_t, std::uint32_t)> visit) const {
  const HintDirectory::Copy* directory = directory_.current();
  if (directory == nullptr) return;
  for (std::size_t i = 0; i < directory->count(); i += directory_.block_of(*directory, i).span) {
    const std::uint64_t word = directory_.word_of(*directory, i);
    std::uint64_t hops = 0;
    for (const HintSegmentLayout* s = word == 0 ? nullptr : segments_.at(word); s != nullptr;
         s = segments_.next_of(*s, hops))
      for (const auto& line : s->slots)
        for (const std::uint64_t& slot : line)
          if (const std::uint64_t value = hint_slot::load(slot); hint_slot::is_live(value))
            visit(hint_slot::fingerprint_of(value), hint_slot::payload_of(value));
  }
}

void HintIndex::add_pages(pmem::WarmList& pages) const {
  directory_.add_pages(pages);
  segments_.add_pages(pages);
}

void HintIndex::release_all() {
  const std::lock_guard structure(structure_mutex_);
  directory_.release_all();
  segments_.release_all();
  growth_.release_all();
}

}  // namespace flugs::columns
