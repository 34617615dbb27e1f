#include "tables/keys/key_entries.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace flugs::engine {

Status missing_entry(std::uint32_t row) {
  return Status(StatusCode::kCorrupt,
                fmt::format("row {}: expected an entry for its key in the index, found none: "
                            "its values changed since the pool was opened",
                            row));
}

namespace {

template <typename Kinds, bool kIsOrdered, std::size_t kAt = 0>
Kinds make_kind(KeyKind kind, const EntriesOrigin& origin) {
  using Entries = std::variant_alternative_t<kAt, Kinds>;
  if constexpr (std::is_same_v<Entries, std::monostate>) {
    FLUGS_CHECK(kind == KeyKind::kNone);
    return Kinds(std::in_place_index<kAt>);
  } else {
    static_assert(facts_of(Entries::kKind).is_ordered == kIsOrdered);
    if (kind == Entries::kKind) return Kinds(std::in_place_index<kAt>, origin);
    return make_kind<Kinds, kIsOrdered, kAt + 1>(kind, origin);
  }
}

}  // namespace

KeyEntries::KeyEntries(const KeyColumns& key, KeyKinds kinds, const KeyParts& parts,
                       const std::string& owner, Origin origin)
    : KeyEntries(kinds, {key, runs_, parts, owner, origin == Origin::kOpening}) {}

KeyEntries::KeyEntries(KeyKinds kinds, const EntriesOrigin& origin)
    : key_(origin.key),
      runs_(origin.parts.runs, origin.parts.rows, origin.parts.number, origin.is_finished),
      hashed_(make_kind<HashedKinds, false>(kinds.for_lookups, origin)),
      ordered_(make_kind<OrderedKinds, true>(kinds.for_ranges, origin)) {
  FLUGS_CHECK((kinds.for_lookups != KeyKind::kNone) == key_.is_unique());
  FLUGS_CHECK((kinds.for_ranges != KeyKind::kNone) == key_.is_ordered());
}

Status KeyEntries::check_free(std::span<const Value> values, const mvcc::Visibility& visibility,
                              columns::Candidates& scratch) const {
  if (!key_.is_unique() ||
      std::any_of(values.begin(), values.end(), [](const Value& value) { return value.is_null(); }))
    return {};
  lookup(values, scratch);
  for (const std::uint32_t candidate : scratch.view())
    if (key_.matches(candidate, values))
      if (Status s = key_.judge(candidate, visibility); !s.ok()) return s;
  return {};
}

Status KeyEntries::insert(std::uint32_t row, std::uint64_t hash, const mvcc::Visibility& visibility,
                          columns::Unflushed& unflushed, pmem::Persister& persister) {
  if (key_.is_hashed(row)) {
    Status s = on_kind(hashed_, [&](auto& entries) {
      return entries.insert(row, hash, visibility, unflushed, persister);
    });
    if (!s.ok()) return s;
  }
  on_kind(ordered_, [&](auto& entries) { entries.insert(row); });
  return {};
}

Status KeyEntries::replace(std::uint32_t row, std::uint32_t replacement, std::uint64_t hash,
                           mvcc::Stamp own_tag, bool& is_first, columns::Unflushed& unflushed,
                           pmem::Persister& persister) {
  FLUGS_DCHECK(row != replacement);
  if (key_.is_hashed(row)) {
    Status s = on_kind(hashed_, [&](auto& entries) {
      return entries.replace(row, replacement, hash, own_tag, is_first, unflushed, persister);
    });
    if (!s.ok()) return s;
  }
  on_kind(ordered_, [&](auto& entries) { entries.insert(replacement); });
  return {};
}

void KeyEntries::undo_replace(std::uint32_t row, std::uint32_t replacement) {
  if (key_.is_hashed(row))
    on_kind(hashed_, [&](auto& entries) { entries.undo_replace(row, replacement); });
  on_kind(ordered_, [&](auto& entries) { entries.erase(replacement); });
}

// Entries in a run stay: `created` says that the row is gone.
void KeyEntries::erase(std::uint32_t row) {
  on_kind(hashed_, [&](auto& entries) { entries.erase(row); });
  if (runs_.serves(row)) return;
  on_kind(ordered_, [&](auto& entries) { entries.erase(row); });
}

void KeyEntries::erase_superseded(std::uint32_t row, KnownHash hash) {
  on_kind(hashed_, [&](auto& entries) { entries.erase_superseded(row, hash); });
  if (runs_.serves(row)) return;
  on_kind(ordered_, [&](auto& entries) { entries.erase(row); });
}

bool KeyEntries::lookup(std::uint64_t hash, columns::Candidates& out) const {
  return on_kind(hashed_, [&](const auto& entries) { return entries.lookup(hash, out); });
}

bool KeyEntries::lookup(std::span<const Value> values, columns::Candidates& out) const {
  return on_kind(hashed_, [&](const auto& entries) { return entries.lookup(values, out); });
}

void KeyEntries::walk(const KeyRange& range, FunctionRef<bool(std::uint32_t row)> visit,
                      std::vector<columns::OrderedEntry>* in_dram) const {
  FLUGS_CHECK(key_.is_ordered());
  on_kind(ordered_, [&](const auto& entries) { entries.walk(range, visit, in_dram); });
}

Status KeyEntries::load() {
  return on_kind(hashed_, [](auto& entries) { return entries.load(); });
}

void KeyEntries::recover(pmem::Persister& persister) {
  on_kind(hashed_, [&](auto& entries) { entries.recover(persister); });
}

bool KeyEntries::is_loaded() const noexcept {
  return on_kind(hashed_, [](const auto& entries) { return entries.is_loaded(); });
}

Status KeyEntries::damage() const {
  return on_kind(hashed_, [](const auto& entries) { return entries.damage(); });
}

Status KeyEntries::check_unread() {
  return on_kind(hashed_, [](auto& entries) { return entries.check_unread(); });
}

bool KeyEntries::has_much_to_check() const noexcept {
  return on_kind(hashed_, [](const auto& entries) { return entries.has_much_to_check(); });
}

void KeyEntries::add_pages(pmem::WarmList& pages) const {
  on_kind(hashed_, [&](const auto& entries) { entries.add_pages(pages); });
}

std::uint8_t KeyEntries::made_at_opening() const noexcept {
  const auto is_made = [](const auto& entries) { return !kind_facts(entries).is_in_pool; };
  return static_cast<std::uint8_t>(
      (on_kind(hashed_, is_made) ? DeferredIndexes::kHashIndexes : 0) |
      (on_kind(ordered_, is_made) ? DeferredIndexes::kOrderedIndexes : 0));
}

Status KeyEntries::rebuild_hashed(recovery::Phases& phases, const char* phase) {
  return on_kind(hashed_, [&](auto& entries) { return entries.rebuild(phases, phase); });
}

void KeyEntries::rebuild_ordered() {
  on_kind(ordered_, [](auto& entries) { entries.rebuild(); });
}

void KeyEntries::defer_rows(std::uint32_t end, std::uint64_t opened_at) {
  on_kind(hashed_, [&](auto& entries) { entries.defer_rows(end, opened_at); });
}

Status KeyEntries::enter_deferred(recovery::Phases& phases, const char* phase, LeadsTo leads_to) {
  return on_kind(hashed_,
                 [&](auto& entries) { return entries.enter_deferred(phases, phase, leads_to); });
}

void KeyEntries::add_existing(std::uint32_t row, std::uint64_t hash, LeadsTo leads_to,
                              FunctionRef<void(std::uint32_t other)> meet) {
  if (!key_.is_hashed(row)) return;
  on_kind(hashed_, [&](auto& entries) { entries.add_existing(row, hash, leads_to, meet); });
}

void KeyEntries::add_existing_ordered(std::vector<columns::OrderedEntry>& entries) {
  FLUGS_CHECK(key_.is_ordered());
  on_kind(ordered_, [&](auto& ordered) { ordered.add_existing(entries); });
}

void KeyEntries::finish() noexcept {
  on_kind(hashed_, [](auto& entries) { entries.finish(); });
}

Status KeyEntries::check_ordered(const std::string& name, std::size_t expected_entries) const {
  return on_kind(ordered_,
                 [&](const auto& entries) { return entries.check(name, expected_entries); });
}

std::size_t KeyEntries::memory_bytes() const noexcept {
  const auto bytes = [](const auto& entries) { return entries.memory_bytes(); };
  return on_kind(hashed_, bytes) + on_kind(ordered_, bytes);
}

std::uint64_t KeyEntries::bytes_in_pool() const noexcept {
  return on_kind(hashed_, [](const auto& entries) { return entries.bytes_in_pool(); });
}

void KeyEntries::release_memory() {
  const auto release = [](auto& entries) { entries.release_memory(); };
  on_kind(hashed_, release);
  on_kind(ordered_, release);
}

}  // namespace flugs::engine
