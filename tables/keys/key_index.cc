#include "tables/keys/key_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/check.h"
#include "base/hash.h"
#include "base/shown.h"
#include "base/types.h"
#include "tables/catalog/schema_codec.h"
#include "tables/keys/key_prefix.h"
#include "tables/keys/run_walk.h"

namespace flugs::engine {

namespace {

/// -1, 0, 1: a key is before, inside or behind the range. `of_lower` and `of_upper` compare the key
/// with the bounds.
template <typename OfLower, typename OfUpper>
int place_in(const KeyRange& range, OfLower&& of_lower, OfUpper&& of_upper) {
  if (!range.lower.empty()) {
    const int order = of_lower();
    if (order < 0 || (order == 0 && !range.lower_inclusive)) return -1;
  }
  if (!range.upper.empty()) {
    const int order = of_upper();
    if (order > 0 || (order == 0 && !range.upper_inclusive)) return 1;
  }
  return 0;
}

}  // namespace

KeyIndex::KeyIndex(pmem::Pool& pool, columns::HintIndexLayout* hints, const std::string& table,
                   const RowStore& rows, const IndexRuns& runs, std::size_t number,
                   const columns::ColumnArray& columns, const KeySchema& schema,
                   std::vector<std::uint16_t> key_columns, Origin origin)
    : rows_(rows),
      runs_(runs),
      number_(number),
      uses_runs_(origin == Origin::kOpening),
      is_finished_(origin == Origin::kOpening),
      columns_(columns),
      name_(schema.name),
      compare_(columns, std::move(key_columns)),
      unique_(schema.unique),
      hashed_columns_(schema.hashed_columns) {
  FLUGS_CHECK(number < kKeysMax && !schema.dropped);
  const std::size_t key_size = compare_.columns().size();
  FLUGS_CHECK(key_size != 0 && key_size <= kKeyColumnsMax);
  FLUGS_CHECK(hashed_columns_ <= key_size);
  if (hints == nullptr) {
    hash_.emplace();
  } else {
    hints_ = std::make_unique<columns::HintIndex>(
        pool, *hints, fmt::format("table {}, key {} index", table, name()));
  }
  for (const std::uint16_t column : compare_.columns())
    if (!facts_of(columns_[column]->type()).is_always_normal) set_needs_normalising();
  for (std::size_t i = 0; i < hashed_columns_; ++i)
    hashes_nullable_ |= columns_[compare_.columns()[i]]->nullable();
  if (schema.ordered) ordered_ = std::make_unique<columns::OrderedIndex>(this);
}

std::string KeyIndex::describe(std::span<const Value> values) const {
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i)
    text += fmt::format("{}{} = {}", i == 0 ? "" : ", ", columns_[columns()[i]]->name(),
                        shown(values[i]));
  return text;
}

std::string KeyIndex::describe(std::uint32_t row) const {
  std::array<Value, kKeyColumnsMax> values;
  for (std::size_t i = 0; i < columns().size(); ++i) values[i] = value(row, i);
  return describe(std::span(values.data(), columns().size()));
}

bool KeyIndex::has_column(std::size_t column) const noexcept {
  return std::find(columns().begin(), columns().end(), column) != columns().end();
}

Value KeyIndex::value(std::uint32_t row, std::size_t key_position) const noexcept {
  const std::uint16_t column = columns()[key_position];
  return rows_.view(row).value(*columns_[column], column);
}

bool KeyIndex::has_null(std::uint32_t row) const noexcept {
  const RowView view = rows_.view(row);
  for (const std::uint16_t column : columns())
    if (columns_[column]->nullable() && view.is_null(*columns_[column], column)) return true;
  return false;
}

bool KeyIndex::is_hashed(std::uint32_t row) const noexcept {
  if (!unique_) return false;
  if (!hashes_nullable_) return true;
  const RowView view = rows_.view(row);
  for (std::size_t i = 0; i < hashed_columns_; ++i)
    if (view.is_null(*columns_[columns()[i]], columns()[i])) return false;
  return true;
}

bool KeyIndex::is_hashed(std::span<const Value> values) const noexcept {
  FLUGS_DCHECK(values.size() >= hashed_columns_);
  if (!hashes_nullable_) return true;  // no row has NULL there; NULL finds nothing
  const auto hashed = values.first(hashed_columns_);
  return std::none_of(hashed.begin(), hashed.end(), [](const Value& v) { return v.is_null(); });
}

inline std::uint64_t KeyIndex::hash_of(std::uint32_t row, std::size_t count) const noexcept {
  const RowView view = rows_.view(row);
  std::uint64_t hash = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint16_t position = columns()[i];
    const columns::Column& column = *columns_[position];
    std::uint64_t part = kHashOfNull;
    if (!column.nullable() || !view.is_null(column, position))
      part = column.is_text() ? hash_text(view.text(column, position))
                              : hash_integer(view.integer(column, position));
    hash = i == 0 ? part : combine_hashes(hash, part);
  }
  return hash;
}

std::uint64_t KeyIndex::hash_of(std::uint32_t row) const noexcept {
  return hash_of(row, hashed_columns_);
}

std::uint64_t KeyIndex::record_hash(std::uint32_t row) const noexcept {
  return hash_of(row, columns().size());
}

std::uint64_t KeyIndex::hash_of(std::span<const Value> values) const noexcept {
  FLUGS_DCHECK(values.size() >= hashed_columns_);
  std::uint64_t hash = 0;
  for (std::size_t i = 0; i < hashed_columns_; ++i) {
    const Value& v = values[i];
    std::uint64_t part = kHashOfNull;
    if (!v.is_null())
      part = columns_[columns()[i]]->is_text() ? hash_text(v.as_string()) : hash_integer(v.raw());
    hash = i == 0 ? part : combine_hashes(hash, part);
  }
  return hash;
}

// What an existing entry with the same key means for a transaction that inserts this key.
Status KeyIndex::judge(std::uint32_t candidate, const mvcc::Visibility& visibility) const {
  using Fate = mvcc::Visibility::Fate;
  const mvcc::VersionLayout& version = rows_.version(candidate);
  const mvcc::Visibility::Resolved created = visibility.resolve(version.created);
  if (created.fate == Fate::kNothing) return {};
  if (created.fate == Fate::kInFlight) return Status(StatusCode::kConflict);
  const mvcc::Visibility::Resolved deleted = visibility.resolve(version.deleted);
  switch (deleted.fate) {
    case Fate::kOwn:
      return {};
    case Fate::kInFlight:
      return Status(StatusCode::kConflict);
    case Fate::kCommitted:
      // Deleted before our snapshot, or only after it: then the deleter was concurrent.
      return deleted.timestamp <= visibility.snapshot() ? Status() : Status(StatusCode::kConflict);
    case Fate::kNothing:
      break;
  }
  const bool concurrent =
      created.fate == Fate::kCommitted && created.timestamp > visibility.snapshot();
  return Status(concurrent ? StatusCode::kConflict : StatusCode::kAlreadyExists);
}

Status KeyIndex::check_free(std::span<const Value> values, const mvcc::Visibility& visibility,
                            columns::Candidates& scratch) const {
  if (!unique_ ||
      std::any_of(values.begin(), values.end(), [](const Value& value) { return value.is_null(); }))
    return {};
  lookup(values, scratch);
  for (const std::uint32_t candidate : scratch.view())
    if (matches(candidate, values))
      if (Status s = judge(candidate, visibility); !s.ok()) return s;
  return {};
}

bool KeyIndex::lookup(std::uint64_t hash, columns::Candidates& out) const {
  const bool is_whole = lookup_outside_runs(hash, out);
  any_in_runs(hash, [&](std::uint32_t row) {
    out.push(row);
    return false;
  });
  return is_whole;
}

Status KeyIndex::insert(std::uint32_t row, std::uint64_t hash, const mvcc::Visibility& visibility,
                        columns::Unflushed& unflushed, pmem::Persister& persister) {
  Status outcome;
  if (hints_ != nullptr && is_hashed(row)) {
    outcome = insert_hint(row, hash, visibility, unflushed, persister);
  } else if (is_hashed(row)) {
    const bool may_repeat = has_null(row);
    const bool is_deferred = !may_repeat && deferred_rows() != nullptr;
    const std::uint32_t unindexed = is_deferred ? deferred_row_like(row) : kNoRow;
    outcome = hash_->edit(hash, [&](columns::HashIndex::Editor& editor) {
      Status found;
      const auto refuses = [&](std::uint32_t candidate) {
        if (same_key(candidate, row)) found = judge(candidate, visibility);
        return !found.ok();
      };
      const bool is_refused = unindexed != kNoRow && refuses(unindexed);
      if (!may_repeat && !is_refused && !editor.any(refuses)) any_in_runs(hash, refuses);
      if (found.ok()) editor.insert(row);
      return found;
    });
  }
  if (outcome.ok() && ordered_ != nullptr) ordered_->insert(ordered_entry(row));
  return outcome;
}

// Protocol hint. A row is found through it after a crash if it committed.
//   step  store                         made durable by      power cut just after it: recovery
//   1     (fingerprint, row) in a slot  commit/1 of the      leads to a row that never was, or to
//         of the key's hint index       row's transaction    one that is something else: harmless
//   2     0, or another row of the      -                    is there again: harmless
//         record, in its place (the one
//         before it, when it is undone)
// Must hold:  1 before commit/2 of the transaction. 2 only when the row cannot become the newest of
//             its record again: a later one is durable, or its transaction was undone.
Status KeyIndex::insert_hint(std::uint32_t row, std::uint64_t hash,
                             const mvcc::Visibility& visibility, columns::Unflushed& unflushed,
                             pmem::Persister& persister) {
  const bool may_repeat = has_null(row);
  const RowView view = rows_.view(row);
  Status found;
  const auto refuses = [&](std::uint32_t candidate) {
    if (may_repeat || !rows_.exists(candidate)) return false;
    if (compare_.is_same(rows_.view(candidate), view)) found = judge(candidate, visibility);
    return !found.ok();
  };
  bool refused = false;
  Status s = hints_->edit(hash, persister, [&](columns::HintIndex::Editor& editor) {
    return editor.insert_unless(refuses, row, unflushed, refused);
  });
  return refused ? found : s;
}

// After a crash `row` would be the newest version, so its own entry stays. The entry of the version
// before it, with the same key, is not needed any more: readers reach that version from a newer
// one. If the key may repeat, the former version's row may be of another record by now.
Status KeyIndex::replace_hint(std::uint32_t row, std::uint32_t replacement, std::uint64_t hash,
                              columns::Unflushed& unflushed, pmem::Persister& persister) {
  std::optional<std::uint32_t> previous;  // far from the row: loaded only if needed
  const auto is_obsolete = [&](std::uint32_t candidate) {
    if (!previous) previous = rows_.previous(row);
    if (candidate != *previous) return false;
    const mvcc::Stamp created = mvcc::load_stamp(rows_.version(row).created);
    const bool is_durable = created != mvcc::kNoStamp && !mvcc::is_tag(created);
    return is_durable && !has_null(row) && same_key(candidate, row);
  };
  bool found = false;
  Status s = hints_->edit(hash, persister, [&](columns::HintIndex::Editor& editor) {
    return editor.succeed(row, replacement, is_obsolete, unflushed, found);
  });
  if (found) return s;
  if (Status damage = hint_damage(); !damage.ok()) return damage;
  return missing(row);
}

// The hash is of bytes in the pool. They do not change while the row lives, unless data that
// opening cannot check is damaged.
Status KeyIndex::missing(std::uint32_t row) const {
  return Status(StatusCode::kCorrupt,
                fmt::format("row {}: expected an entry for its key in the index, found none: "
                            "its values changed since the pool was opened",
                            row));
}

// While a key is being made, the index may lack the row. There are two cases.
// The row is of an earlier transaction: KeyBuild has not entered it yet. KeyBuild passes the row by
// when it finds the replacement in the index (add_existing). So an undo must put the row in the
// place of the replacement (undo_replace).
// The row is the transaction's own: the transaction began before the key, and KeyBuild begins after
// the transaction has ended (KeyChanges::make_key). An undo must leave nothing in the index: an
// entry of the row would stay when the row is undone, too, and KeyBuild would take it for a newer
// version of the row before it, and pass that one by.
Status KeyIndex::replace(std::uint32_t row, std::uint32_t replacement, std::uint64_t hash,
                         mvcc::Stamp own_tag, bool& is_first, columns::Unflushed& unflushed,
                         pmem::Persister& persister) {
  FLUGS_DCHECK(row != replacement);
  if (hints_ != nullptr && is_hashed(row)) {
    if (Status s = replace_hint(row, replacement, hash, unflushed, persister); !s.ok()) return s;
    if (ordered_ != nullptr) ordered_->insert(ordered_entry(replacement));
    return {};
  }
  const bool is_in_run = is_served(row);
  const bool replaced =
      !is_hashed(row) || hash_->edit(hash, [&](columns::HashIndex::Editor& editor) {
        if (!is_in_run && editor.replace(row, replacement)) return true;
        if (!is_in_run && is_finished_.load(std::memory_order_acquire)) return false;
        is_first = mvcc::load_stamp(rows_.version(row).created) == own_tag;
        editor.insert(replacement);  // older versions are reached from it; they have entries, too
        return true;
      });
  if (!replaced) return missing(row);
  if (ordered_ != nullptr) ordered_->insert(ordered_entry(replacement));
  return {};
}

void KeyIndex::undo_replace(std::uint32_t row, std::uint32_t replacement) {
  const bool is_in_run = is_served(row);
  if (hints_ != nullptr) {
    if (is_hashed(row))
      columns::HintIndex::Editor(*hints_, hash_of(row)).take_back(row, replacement);
  } else if (is_hashed(row)) {
    hash_->edit(hash_of(row), [&](columns::HashIndex::Editor& editor) {
      return is_in_run ? editor.erase(replacement) : editor.replace(replacement, row);
    });
  }
  if (ordered_ != nullptr) ordered_->erase(ordered_entry(replacement));
}

// Removes the entry of one row of a record, under the key of another row that has the same key.
void KeyIndex::erase_hint(std::uint32_t keyed, std::uint32_t row, KnownHash hash) {
  if (!is_hashed(keyed)) return;
  hints_->erase(hash ? *hash : hash_of(keyed), row);
}

// Entries in a run stay: `created` says that the row is gone.
void KeyIndex::erase_superseded(std::uint32_t row, KnownHash hash) {
  if (hints_ != nullptr) erase_hint(row, row, hash);
  if (is_served(row)) return;
  if (ordered_ != nullptr) ordered_->erase(ordered_entry(row));
}

void KeyIndex::erase(std::uint32_t row) {
  if (hints_ != nullptr) erase_hint(row, row, {});
  if (is_served(row)) return;
  if (hints_ == nullptr && is_hashed(row))
    hash_->edit(hash_of(row),
                [&](columns::HashIndex::Editor& editor) { return editor.erase(row); });
  if (ordered_ != nullptr) ordered_->erase(ordered_entry(row));
}

columns::OrderedEntry KeyIndex::ordered_entry(std::uint32_t row) const noexcept {
  KeyPrefix prefix;
  const RowView view = rows_.view(row);
  for (const std::uint16_t i : columns())
    prefix.add(view.value(*columns_[i], i), columns_[i]->type());
  return {prefix.bits(), row};
}

KeyPrefix KeyIndex::prefix_of(std::span<const Value> values) const noexcept {
  KeyPrefix prefix;
  for (std::size_t i = 0; i < values.size(); ++i)
    prefix.add(values[i], columns_[columns()[i]]->type());
  return prefix;
}

int KeyIndex::rows(std::uint32_t a, std::uint32_t b) const {
  return compare_.order(rows_.view(a), rows_.view(b));
}

int KeyIndex::place_of(std::uint32_t row, const KeyRange& range) const noexcept {
  const RowView view = rows_.view(row);
  return place_in(
      range, [&] { return compare_.order(view, range.lower); },
      [&] { return compare_.order(view, range.upper); });
}

// The prefix decides; for a bound that does not fit into its prefix, the row decides. An entry's
// prefix is that of its row's key.
int KeyIndex::place_of(const columns::OrderedEntry& entry, const KeyRange& range,
                       const KeyPrefix& lower, const KeyPrefix& upper) const noexcept {
  const auto order = [&](const KeyPrefix& prefix, std::span<const Value> bound) {
    if (entry.prefix < prefix.bits()) return -1;
    if (entry.prefix > prefix.greatest()) return 1;
    return prefix.is_whole() ? 0 : compare_.order(rows_.view(entry.row), bound);
  };
  return place_in(
      range, [&] { return order(lower, range.lower); }, [&] { return order(upper, range.upper); });
}

void KeyIndex::sort(std::vector<columns::OrderedEntry>& entries) const {
  std::sort(entries.begin(), entries.end(),
            [&](const auto& a, const auto& b) { return columns::precedes(this, a, b); });
}

// A heap, so that a caller that wants the first few does not wait until all are sorted.
void KeyIndex::visit_in_order(std::vector<columns::OrderedEntry>& entries,
                              columns::OrderedIndex::Visit visit) const {
  const auto is_later = [&](const auto& a, const auto& b) { return columns::precedes(this, b, a); };
  std::make_heap(entries.begin(), entries.end(), is_later);
  while (!entries.empty() && visit(entries.front())) {
    std::pop_heap(entries.begin(), entries.end(), is_later);
    entries.pop_back();
  }
}

void KeyIndex::walk(const KeyRange& range, FunctionRef<bool(std::uint32_t row)> visit,
                    std::vector<columns::OrderedEntry>* in_dram) const {
  FLUGS_CHECK(ordered_ != nullptr);
  FLUGS_DCHECK(range.lower.size() <= columns().size() && range.upper.size() <= columns().size());
  const KeyPrefix lower = prefix_of(range.lower);
  const KeyPrefix upper = prefix_of(range.upper);
  const auto scan = [&](columns::OrderedIndex::Visit visit_entry) {
    if (in_dram != nullptr) return visit_in_order(*in_dram, visit_entry);
    ordered_->scan(
        lower.bits(),
        [&](const columns::OrderedEntry& entry) { return place_of(entry, range, lower, upper); },
        visit_entry);
  };
  const auto visit_entry = [&](const columns::OrderedEntry& entry) { return visit(entry.row); };
  if (!uses_runs_ || !runs_.serves_any()) return scan(visit_entry);
  // The probe compares rows, not prefixes: those come from the pool and may be damaged.
  const auto probe = [&](const columns::OrderedEntry& entry) { return place_of(entry.row, range); };
  RunWalk runs(runs_, number_, *this, lower.bits(), probe);
  bool goes_on = true;
  scan([&](const columns::OrderedEntry& entry) {
    goes_on = runs.visit_before(&entry, visit_entry) && visit(entry.row);
    return goes_on;
  });
  if (goes_on) runs.visit_before(nullptr, visit_entry);
}

void KeyIndex::add_existing(std::uint32_t row, std::uint64_t hash,
                            FunctionRef<bool(std::uint32_t newer)> leads_to,
                            FunctionRef<void(std::uint32_t other)> meet) {
  if (!is_hashed(row)) return;
  FLUGS_CHECK(hash_);
  hash_->edit(hash, [&](columns::HashIndex::Editor& editor) {
    bool is_in = false;
    editor.any([&](std::uint32_t candidate) {
      if (candidate == row) {
        is_in = true;
      } else if (same_key(candidate, row)) {
        const bool is_newer = leads_to(candidate);
        is_in |= is_newer;
        if (!is_newer && !has_null(row)) meet(candidate);
      }
      return false;
    });
    if (!is_in) editor.insert(row);
  });
}

// In sorted order, most entries go into a leaf that is in the caches.
void KeyIndex::add_existing_ordered(std::vector<columns::OrderedEntry>& entries) {
  FLUGS_CHECK(ordered_ != nullptr);
  sort(entries);
  for (const columns::OrderedEntry& entry : entries) ordered_->insert_unless_there(entry);
  entries.clear();
}

void KeyIndex::build_ordered(std::span<const std::uint32_t> live_rows) {
  FLUGS_CHECK(ordered_ != nullptr);
  std::vector<columns::OrderedEntry> entries;
  entries.reserve(live_rows.size());
  for (const std::uint32_t row : live_rows) entries.push_back(ordered_entry(row));
  sort(entries);
  ordered_->build_sorted(entries);
}

Status KeyIndex::check_ordered(std::size_t expected_entries) const {
  if (Status s = ordered_->check(); !s.ok()) return s;
  if (ordered_->size() < expected_entries)
    return Status(StatusCode::kCorrupt,
                  fmt::format("key {}: {} entries in the ordered index, but {} live rows", name(),
                              ordered_->size(), expected_entries));
  return {};
}

void KeyIndex::release_memory() {
  if (hash_) hash_->release_memory();
  if (hints_ != nullptr) hints_->release_all();
  if (ordered_ != nullptr) ordered_->clear();
}

std::size_t KeyIndex::memory_bytes() const noexcept {
  return (hash_ ? hash_->memory_bytes() : 0) + (ordered_ != nullptr ? ordered_->memory_bytes() : 0);
}

}  // namespace flugs::engine
