#include "tables/keys/hint_entries.h"

#include <optional>

#include "base/check.h"

namespace flugs::engine {

namespace {

columns::HintIndexLayout& layout_of(const KeyParts& parts) {
  FLUGS_CHECK(parts.room != nullptr);
  return *reinterpret_cast<columns::HintIndexLayout*>(parts.room);
}

}  // namespace

HintEntries::HintEntries(const EntriesOrigin& origin)
    : key_(origin.key),
      rows_(origin.parts.rows),
      index_(origin.parts.pool, layout_of(origin.parts), origin.owner) {}

// Protocol hint. A row is found through it after a crash if it committed.
//   step  store                         made durable by      power cut just after it: recovery
//   1     (fingerprint, row) in a slot  commit/1 of the      leads to a row that never was, or to
//         of the key's hint index       row's transaction    one that is something else: harmless
//   2     0, or another row of the      -                    is there again: harmless
//         record, in its place (the one
//         before it, when it is undone)
// Must hold:  1 before commit/2 of the transaction. 2 only when the row cannot become the newest of
//             its record again: a later one is durable, or its transaction was undone.
Status HintEntries::insert(std::uint32_t row, std::uint64_t hash,
                           const mvcc::Visibility& visibility, columns::Unflushed& unflushed,
                           pmem::Persister& persister) {
  const bool may_repeat = key_.has_null(row);
  const RowView view = rows_.view(row);
  Status found;
  const auto refuses = [&](std::uint32_t candidate) {
    if (may_repeat || !rows_.exists(candidate)) return false;
    if (key_.same_key(candidate, view)) found = key_.judge(candidate, visibility);
    return !found.ok();
  };
  bool refused = false;
  Status s = index_.edit(hash, persister, [&](columns::HintIndex::Editor& editor) {
    return editor.insert_unless(refuses, row, unflushed, refused);
  });
  return refused ? found : s;
}

// After a crash `row` would be the newest version, so its own entry stays. The entry of the version
// before it, with the same key, is not needed any more: readers reach that version from a newer
// one. If the key may repeat, the former version's row may be of another record by now.
Status HintEntries::replace(std::uint32_t row, std::uint32_t replacement, std::uint64_t hash,
                            mvcc::Stamp, bool&, columns::Unflushed& unflushed,
                            pmem::Persister& persister) {
  std::optional<std::uint32_t> previous;  // far from the row: loaded only if needed
  const auto is_obsolete = [&](std::uint32_t candidate) {
    if (!previous) previous = rows_.previous(row);
    if (candidate != *previous) return false;
    const mvcc::Stamp created = mvcc::load_stamp(rows_.version(row).created);
    const bool is_durable = created != mvcc::kNoStamp && !mvcc::is_tag(created);
    return is_durable && !key_.has_null(row) && key_.same_key(candidate, row);
  };
  bool found = false;
  Status s = index_.edit(hash, persister, [&](columns::HintIndex::Editor& editor) {
    return editor.succeed(row, replacement, is_obsolete, unflushed, found);
  });
  if (found) return s;
  if (Status damage = index_.damage(); !damage.ok()) return damage;
  return missing_entry(row);
}

void HintEntries::undo_replace(std::uint32_t row, std::uint32_t replacement) {
  columns::HintIndex::Editor(index_, key_.hash_of(row)).take_back(row, replacement);
}

void HintEntries::erase_superseded(std::uint32_t row, KnownHash hash) {
  if (!key_.is_hashed(row)) return;
  index_.erase(hash ? *hash : key_.hash_of(row), row);
}

}  // namespace flugs::engine
