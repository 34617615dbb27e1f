#include "tables/keys/hash_entries.h"

#include "base/check.h"

namespace flugs::engine {

HashEntries::HashEntries(const EntriesOrigin& origin)
    : key_(origin.key),
      rows_(origin.parts.rows),
      columns_(origin.parts.columns),
      runs_(origin.runs),
      is_finished_(origin.is_finished) {}

bool HashEntries::lookup(std::uint64_t hash, columns::Candidates& out) const {
  index_.lookup(hash, out);
  runs_.any(hash, [&](std::uint32_t row) {
    out.push(row);
    return false;
  });
  return true;
}

Status HashEntries::insert(std::uint32_t row, std::uint64_t hash,
                           const mvcc::Visibility& visibility, columns::Unflushed&,
                           pmem::Persister&) {
  const bool may_repeat = key_.has_null(row);
  const bool is_deferred = !may_repeat && deferred_rows() != nullptr;
  const std::uint32_t unindexed = is_deferred ? deferred_row_like(row) : kNoRow;
  return index_.edit(hash, [&](columns::HashIndex::Editor& editor) {
    Status found;
    const auto refuses = [&](std::uint32_t candidate) {
      if (key_.same_key(candidate, row)) found = key_.judge(candidate, visibility);
      return !found.ok();
    };
    const bool is_refused = unindexed != kNoRow && refuses(unindexed);
    if (!may_repeat && !is_refused && !editor.any(refuses)) runs_.any(hash, refuses);
    if (found.ok()) editor.insert(row);
    return found;
  });
}

// While a key is being made, the index may lack the row. There are two cases.
// The row is of an earlier transaction: KeyBuild has not entered it yet. KeyBuild passes the row by
// when it finds the replacement in the index (add_existing). So an undo must put the row in the
// place of the replacement (undo_replace).
// The row is the transaction's own: the transaction began before the key, and KeyBuild begins after
// the transaction has ended (KeyChanges::make_key). An undo must leave nothing in the index: an
// entry of the row would stay when the row is undone, too, and KeyBuild would take it for a newer
// version of the row before it, and pass that one by.
Status HashEntries::replace(std::uint32_t row, std::uint32_t replacement, std::uint64_t hash,
                            mvcc::Stamp own_tag, bool& is_first, columns::Unflushed&,
                            pmem::Persister&) {
  const bool is_in_run = runs_.serves(row);
  const bool is_replaced = index_.edit(hash, [&](columns::HashIndex::Editor& editor) {
    if (!is_in_run && editor.replace(row, replacement)) return true;
    if (!is_in_run && is_finished_.load(std::memory_order_acquire)) return false;
    is_first = mvcc::load_stamp(rows_.version(row).created) == own_tag;
    editor.insert(replacement);  // older versions are reached from it; they have entries, too
    return true;
  });
  return is_replaced ? Status() : missing_entry(row);
}

void HashEntries::undo_replace(std::uint32_t row, std::uint32_t replacement) {
  const bool is_in_run = runs_.serves(row);
  index_.edit(key_.hash_of(row), [&](columns::HashIndex::Editor& editor) {
    return is_in_run ? editor.erase(replacement) : editor.replace(replacement, row);
  });
}

// Entries in a run stay: `created` says that the row is gone.
void HashEntries::erase(std::uint32_t row) {
  if (runs_.serves(row) || !key_.is_hashed(row)) return;
  index_.edit(key_.hash_of(row),
              [&](columns::HashIndex::Editor& editor) { return editor.erase(row); });
}

void HashEntries::add_existing(std::uint32_t row, std::uint64_t hash, LeadsTo leads_to,
                               FunctionRef<void(std::uint32_t other)> meet) {
  index_.edit(hash, [&](columns::HashIndex::Editor& editor) {
    bool is_in = false;
    editor.any([&](std::uint32_t candidate) {
      if (candidate == row) {
        is_in = true;
      } else if (key_.same_key(candidate, row)) {
        const bool is_newer = leads_to(candidate, row);
        is_in |= is_newer;
        if (!is_newer && !key_.has_null(row)) meet(candidate);
      }
      return false;
    });
    if (!is_in) editor.insert(row);
  });
}

}  // namespace flugs::engine
