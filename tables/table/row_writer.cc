#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>

#include "base/check.h"
#include "base/hash.h"
#include "mvcc/commit.h"
#include "tables/catalog/schema_codec.h"
#include "tables/data/definition_of_now.h"
#include "tables/data/unlink_rows.h"
#include "tables/table/row_writer.h"
#include "tables/table/table.h"
#include "tables/transactions/transaction_context.h"

namespace flugs::engine {

namespace {

// How often a write that waits for a merge checks again.
constexpr std::chrono::milliseconds kDeltaPause{1};

}  // namespace

void RowWriter::note_cells(const std::byte* row, const columns::RowLayout& layout) noexcept {
  if (!kCountsSharedWords) return;
  for (std::uint32_t at = 0; at < layout.stride(); at += pmem::kLineBytes)
    note_write(SharedWord::kRowCells, row + at);
  for (const RowPart& part : layout.parts()) note_write(SharedWord::kRowCells, part.in_row(row));
}

RowWriter::RowWriter(Table& table, TransactionContext& context) noexcept
    : table_(table), data_(table.data()), columns_(table.table_columns()), context_(context) {
  FLUGS_DCHECK(context.is_writing);
}

// Checks the values of rows of `width` values each. If some stand for a column's values but are not
// of its type, `values` refers to a copy with the column's values in their place from then on.
Status RowWriter::fit_values(const TableDefinition& now, std::span<const Value>& values,
                             std::size_t width) const {
  const DefinedColumn* const columns = now.columns.data();
  const Value* given = values.data();
  const std::size_t count = values.size();
  std::size_t column = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (__builtin_expect(!columns[column].takes(given[i]), 0)) {
      Value fitted = given[i];
      if (Status s = fit_value(now, column, fitted); !s.ok()) return s;
      if (values.data() != context_.scratch.numbered.data())
        context_.scratch.numbered.assign(values.begin(), values.end());
      context_.scratch.numbered[i] = fitted;
      values = context_.scratch.numbered;
      given = values.data();
    }
    if (++column == width) column = 0;
  }
  return {};
}

// Takes a row that no other transaction may touch and no reader can reach: a dead row, or a fresh
// one.
Result<std::uint32_t> RowWriter::take_row() {
  FLUGS_DCHECK(context_.scratch.bits.size() <= data_.columns.size());
  LocalRows& local = context_.local_rows.of(table_);
  const columns::RowLayout* layout = data_.rows.current_layout();
  const auto fits = [&](const columns::RowLayout& l) {
    return l.editions() == context_.scratch.editions && l.has_room(context_.scratch.bits) &&
           fits_constants(l, context_.scratch.bits.size());
  };
  const auto is_ours = [&](std::uint32_t row) {  // not taken by a merge, nor about to be
    return data_.rows.layout_to_write(row, local.checked_at) != nullptr;
  };
  while (!local.free.empty() || table_.free_rows().refill(local)) {
    const std::uint32_t row = local.free.back();
    const columns::RowLayout* const found = data_.rows.layout_to_write(row, local.checked_at);
    if (found != nullptr && fits(*found)) {
      local.free.pop_back();
      if (!local.free.empty())
        data_.rows.prefetch_for_writing(local.free.back());  // for the next time
      return row;
    }
    // Rows of older, narrower chunks are not worth keeping: the table has outgrown them.
    if (found != nullptr && found == layout) break;
    local.free.pop_back();
  }
  if (local.range.next == local.range.end || local.range.layout != layout || !fits(*layout) ||
      !is_ours(local.range.next)) {
    table_.free_rows().forget_emptied(local);
    if (Status s = grant_rows(local); !s.ok()) {
      // Rows not yet swept may be dead: sweep them for the next transaction.
      if (s.code() == StatusCode::kOutOfSpace) static_cast<void>(table_.row_sweep().sweep_all());
      return s;
    }
    if (__builtin_expect(!fits(*local.range.layout), 0)) return changed_meanwhile();
  }
  FLUGS_DCHECK(local.range.next < local.range.end);
  const std::uint32_t row = local.range.next++;
  if (local.range.next != local.range.end) data_.rows.prefetch_for_writing(local.range.next);
  return row;
}

// Whether rows of the layout have space for the constants of columns from `first` on: those were
// added since the call began, and the call has asked no width for them.
bool RowWriter::fits_constants(const columns::RowLayout& layout, std::size_t first) const noexcept {
  for (std::size_t i = first; __builtin_expect(i < layout.cells().size(), 0); ++i) {
    const columns::Column& column = *data_.columns[i];
    if (column.is_dropped() || !column.has_constant()) continue;
    if (layout.bits(i) < column.bits_for(column.constant())) return false;
  }
  return true;
}

// The cells are of an edition that no row will have any more, or a column was added whose value
// does not fit into the row.
Status RowWriter::changed_meanwhile() const {
  context_.scratch.columns_changed = true;
  return Status(StatusCode::kConflict, SchemaPart::of(data_.name()),
                "a column was added, or its type has changed, during the call");
}

// Waits only for a merge that already moves chunks: before that, the merge waits for this
// transaction.
Status RowWriter::grant_rows(LocalRows& local) {
  if (__builtin_expect(table_.give_up_dictionaries(context_), 0)) return changed_meanwhile();
  std::chrono::steady_clock::time_point deadline{};
  for (;;) {
    Status s = data_.rows.grant(context_.scratch.bits, local.range, context_.slot->persister());
    if (s.ok()) return s;
    if (s.code() != StatusCode::kBusy) {
      context_.dead_rows.set_wants_rows(s.code() == StatusCode::kOutOfSpace);
      return s;
    }
    const auto now = std::chrono::steady_clock::now();
    const bool is_first = deadline == std::chrono::steady_clock::time_point{};
    if (is_first) deadline = now + table_.merge_record().policy().write_patience;
    if (table_.merge_record().is_moving() && now < deadline && !data_.is_dropped()) {
      std::this_thread::sleep_for(kDeltaPause);
      continue;
    }
    context_.dead_rows.set_wants_rows(true);
    table_.merge_record().note_refused();
    return s.with_message(
        fmt::format("{}; automatic merge: {}", s.message(), table_.merge_record().status().reason));
  }
}

void RowWriter::give_back(std::uint32_t row) { context_.dead_rows.give_back(table_, row); }

// Computes hashes of some keys of a row, and starts fetching their places in the indexes. `found`
// may have one of the hashes.
void RowWriter::hash_keys(std::uint32_t row, KeyMask keys, KeyHashes& hashes,
                          const FoundRow& found) const noexcept {
  for (const std::size_t i : KeySet(keys)) {
    KeyIndex& key = *data_.keys[i];
    if (!key.is_unique()) continue;
    hashes[i] = found.is(key, row) ? found.hash() : key.hash_of(row);
    FLUGS_DCHECK(hashes[i] == key.hash_of(row));
    key.entries().prefetch_for_edit(hashes[i]);
  }
}

// Enters a written row, whose created word already has the transaction's tag, into every index that
// the statement has found kept. On failure takes out what was entered.
Status RowWriter::enter_indexes(std::uint32_t row, std::uint32_t replaced, KeyMask kept,
                                KeyMask changed_keys, const KeyHashes& hashes) {
  FLUGS_DCHECK(row != replaced && (changed_keys & ~kept) == 0);
  FLUGS_DCHECK(data_.rows.version(row).created == context_.visibility.own_tag());
  const std::size_t first_change = context_.index_changes.size();
  pmem::Persister& persister = context_.slot->persister();
  for (const std::size_t i : KeySet(kept)) {
    const auto key = static_cast<std::uint16_t>(i);
    const bool keeps = replaced != kNoRow && (changed_keys & (1u << i)) == 0;
    bool is_first = false;
    KeyEntries& entries = data_.keys[i]->entries();
    Status outcome;
    if (keeps) {
      outcome = entries.replace(replaced, row, hashes[i], context_.visibility.own_tag(), is_first,
                                context_.unflushed, persister);
    } else {
      outcome = entries.insert(row, hashes[i], context_.visibility, context_.unflushed, persister);
    }
    if (!outcome.ok()) {
      undo_index_changes(first_change);
      if (outcome.code() == StatusCode::kConflict) note_key_conflict(key, row);
      if (outcome.code() == StatusCode::kAlreadyExists)
        return Status(outcome.code(), SchemaPart::key(data_.name(), data_.keys[i]->name()),
                      fmt::format("{} exists", data_.keys[i]->describe(row)));
      return Status(outcome.code(), SchemaPart::key(data_.name(), data_.keys[i]->name()),
                    outcome.message());
    }
    context_.index_changes.push_back({&table_, row, keeps && !is_first ? replaced : kNoRow, key});
  }
  return {};
}

// The unique key was refused to the row with kConflict. Looks once more for the row that has it.
void RowWriter::note_key_conflict(std::uint16_t key, std::uint32_t row) {
  const KeyIndex& index = *data_.keys[key];
  std::array<Value, kKeyColumnsMax> values;
  const std::size_t count = index.columns().size();
  for (std::size_t i = 0; i < count; ++i) values[i] = index.value(row, i);
  note_key_conflict(key, std::span<const Value>(values.data(), count));
}

void RowWriter::note_key_conflict(std::uint16_t key, std::span<const Value> values) {
  const KeyIndex& index = *data_.keys[key];
  std::uint32_t row = kNoRow;
  mvcc::Stamp other = mvcc::kNoStamp;
  static_cast<void>(index.entries().lookup(values, context_.scratch.candidates));
  for (const std::uint32_t candidate : context_.scratch.candidates.view()) {
    const mvcc::VersionLayout& version = data_.rows.version(candidate);
    if (mvcc::load_stamp(version.created) == context_.visibility.own_tag() ||
        !index.matches(candidate, values) ||
        index.judge(candidate, context_.visibility).code() != StatusCode::kConflict)
      continue;
    row = candidate;
    other = mvcc::load_stamp(version.deleted);
    using Fate = mvcc::Visibility::Fate;
    if (context_.visibility.resolve(other).fate == Fate::kNothing)
      other = mvcc::load_stamp(version.created);
  }
  context_.note_conflict(ConflictReason::kKeyTaken, data_.layout.table_id, row, other, key);
}

// Undoes the changes from `first` on, which are all of this table.
void RowWriter::undo_index_changes(std::size_t first) {
  FLUGS_DCHECK(first <= context_.index_changes.size());
  while (context_.index_changes.size() > first) {
    FLUGS_DCHECK(context_.index_changes.back().table == &table_);
    undo_index_change(data_, context_.index_changes.back());
    context_.index_changes.pop_back();
  }
}

void RowWriter::note_inserted(std::uint32_t row) {
  const RowChunk& chunk = data_.rows.chunk_with(row);
  const columns::RowLayout& layout = *chunk.layout;
  context_.add_write(
      {&chunk.version(row), data_.layout.table_id, row, layout.stride(), false, layout.parts()});
}

Result<RowId> RowWriter::insert(std::span<const Value> values) {
  return with_definition_of_now(
      data_, context_, [&](const TableDefinition& now) { return insert_values(now, values); });
}

Result<RowId> RowWriter::insert(std::span<const ColumnValue> given) {
  return with_definition_of_now(data_, context_, [&](const TableDefinition& now) -> Result<RowId> {
    if (Status s = complete_row(now, given, context_.scratch.numbered); !s.ok()) return s;
    return insert_values(now, context_.scratch.numbered);
  });
}

// The definition was taken first: if it has columns that were added to the table, the table has
// constraints.
Result<RowId> RowWriter::insert_values(const TableDefinition& now, std::span<const Value> values) {
  if (data_.constraints.any()) return insert_constrained(now, values);
  if (Status s = check_width(now, values.size()); !s.ok()) return s;
  if (Status s = fit_values(now, values, values.size()); !s.ok()) return s;
  return insert_row(values);
}

// The values have been checked.
Result<RowId> RowWriter::insert_row(std::span<const Value> values) {
  FLUGS_DCHECK(values.size() <= data_.columns.size());
  context_.scratch.inserted = values;
  context_.scratch.inserted_width = values.size();
  const KeyMask kept = data_.keys.kept();
  // First, so that the processor loads the lines of the indexes while the row is encoded.
  KeyHashes hashes{};
  const std::uint64_t editions = data_.columns.editions();
  KeyMask left = hash_keys_of_new(values, kept, hashes);
  bool has_texts_left = false;
  if (Status s = encode_new_row(values, kept, has_texts_left); !s.ok()) return s;
  std::uint32_t row = kNoRow;
  if (Status s = write_new_row(context_.scratch.cells, row); !s.ok()) return s;
  // The row may have cells of another edition than the values were hashed for.
  if (__builtin_expect(data_.columns.editions() != editions, 0)) left = kept;
  if (__builtin_expect(left != 0, 0)) hash_keys(row, left, hashes);
  const std::size_t first_change = context_.index_changes.size();
  Status entered = enter_indexes(row, kNoRow, kept, kept, hashes);
  if (entered.ok() && has_texts_left) {
    entered = store_texts_left(row, values, kept);
    if (!entered.ok()) undo_index_changes(first_change);
  }
  if (!entered.ok()) {
    mvcc::store_stamp(data_.rows.version(row).created, mvcc::kNoStamp);
    give_back(row);
    return entered;
  }
  note_inserted(row);
  return RowId(row);
}

// Writes cells and stamps of a row that no index names yet. `context_.scratch.bits` has the widths
// that it needs.
Status RowWriter::write_new_row(std::span<const columns::Cell> cells, std::uint32_t& row) {
  Result<std::uint32_t> taken = take_row();
  if (!taken.ok()) return std::move(taken).status();
  row = *taken;
  const columns::RowLayout& layout = data_.rows.layout(row);
  std::byte* const target = data_.rows.address(row);
  note_cells(target, layout);
  const columns::RowLayout::Access* const places = layout.access();
  for (std::size_t i = 0; i < cells.size(); ++i)
    columns::RowLayout::store(target, places[i], cells[i]);
  // Columns that were added while the row was prepared.
  for (std::size_t i = cells.size(); __builtin_expect(i < layout.cells().size(), 0); ++i) {
    if (!data_.columns[i]->has_constant()) {
      give_back(row);
      return changed_meanwhile();
    }
    // A column dropped meanwhile was never checked for width: store an empty cell.
    layout.store(target, i,
                 data_.is_dropped_column(i) ? columns::Cell{} : data_.columns[i]->constant());
  }
  data_.rows.begin_row(row, context_.visibility.own_tag());
  data_.rows.forget_previous(row);
  return {};
}

// The merge may move the row's entry at any time: the lock counts only if the entry is still the
// row's after it was locked (pairs with RowStore::Move).
Status RowWriter::lock_row(std::uint32_t row, mvcc::VersionLayout*& locked) {
  if (!data_.rows.exists(row)) return Status(StatusCode::kNotFound);
  const RowChunk& chunk = data_.rows.chunk_with(row);
  for (;;) {
    if (!context_.visibility.sees(chunk.version(row))) return Status(StatusCode::kNotFound);
    Result<mvcc::VersionLayout*> version = chunk.writable_version(row, context_.slot->persister());
    if (!version.ok()) return std::move(version).status();
    locked = *version;
    switch (mvcc::Commit::lock(*locked, context_.visibility)) {
      case mvcc::Commit::Lock::kLocked:
        if (__builtin_expect(chunk.is_still(row, locked), 1)) {
          if (__builtin_expect(!table_.has_locked_rows(), 1)) return {};
          return respect_lock(row, *locked);
        }
        mvcc::store_stamp(locked->deleted, mvcc::kNoStamp);
        data_.rows.wait_for_move(row);
        continue;
      case mvcc::Commit::Lock::kDeletedBySelf:
        return Status(StatusCode::kNotFound);
      case mvcc::Commit::Lock::kConflict:
        if (__builtin_expect(!context_.locks.empty(), 0) && is_giving_way(row)) {
          std::this_thread::yield();
          continue;
        }
        // Committed since the call's snapshot: the caller may look again.
        if (context_.reads_anew() && has_newer_version(*locked))
          return Status(StatusCode::kNotFound);
        break;
    }
    context_.note_conflict(ConflictReason::kRowWritten, data_.layout.table_id, row, mvcc::kNoStamp);
    return Status(StatusCode::kConflict);
  }
}

// If this transaction has locked the row, a tag in it belongs to a writer that is about to find the
// lock and to take the tag back (respect_lock): when the lock was taken no transaction was writing
// the row.
bool RowWriter::is_giving_way(std::uint32_t row) const {
  if (!context_.locks.is_own(table_.lock_name(row))) return false;
  return !has_newer_version(data_.rows.version(row));
}

// A writer stores its tag and then looks for a lock; a locker does it the other way round
// (TransactionManager::lock_record). So at least one of the two sees the other.
Status RowWriter::respect_lock(std::uint32_t row, mvcc::VersionLayout& locked) const {
  if (!context_.locks.is_others(table_.lock_name(row))) return {};
  mvcc::store_stamp(locked.deleted, mvcc::kNoStamp);
  context_.note_conflict(ConflictReason::kRowLocked, data_.layout.table_id, row, mvcc::kNoStamp);
  return Status(StatusCode::kConflict, SchemaPart::of(data_.name()),
                "another transaction has locked the row");
}

void RowWriter::note_deleted(std::uint32_t row, mvcc::VersionLayout* locked, std::uint16_t keys) {
  FLUGS_DCHECK(locked != nullptr);
  if (data_.rows.mark_deleted(row)) context_.deletes_in_main = true;
  context_.dead_rows.add_dying({&table_, 0, 0, row, keys});
  context_.add_write({locked, data_.layout.table_id, row, sizeof(mvcc::VersionLayout), true});
}

// `keys`: the keys whose hash of the row is in `hashes`.
void RowWriter::note_hashes(DeadRow& dead, KeyMask keys, const KeyHashes& hashes) const noexcept {
  constexpr KeyMask kKept = (1U << DeadRow::kHashesKept) - 1;
  for (const std::size_t i : KeySet(static_cast<KeyMask>(keys & kKept)))
    if (data_.keys[i]->entries().erases_by_hash()) dead.keep_hash(i, hashes[i]);
}

// As fit_values; `fitted` keeps the copy.
Status RowWriter::fit_changes(const TableDefinition& now, std::span<const ColumnValue>& changes,
                              std::vector<ColumnValue>& fitted) const {
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const std::size_t column = changes[i].column.value();
    if (__builtin_expect(!now.has_column(column), 0))
      return data_.no_column(now, changes[i].column);
    if (__builtin_expect(now.columns[column].takes(changes[i].value), 1)) continue;
    Value value = changes[i].value;
    if (Status s = fit_value(now, column, value); !s.ok()) return s;
    if (fitted.empty()) fitted.assign(changes.begin(), changes.end());
    fitted[i].value = value;
    changes = fitted;
  }
  return {};
}

// No other transaction sees a row that this one inserted: change it in place, unless an undo may
// need its present state.
bool RowWriter::update_in_place(const RowChunk& chunk, std::uint32_t row,
                                std::span<const ColumnValue> changes) {
  if (mvcc::load_stamp(chunk.version(row).created) != context_.visibility.own_tag()) return false;
  if (!context_.may_change_in_place(data_.layout.table_id, row)) return false;
  FLUGS_DCHECK(context_.scratch.cells.size() == changes.size());
  const columns::RowLayout& layout = *chunk.layout;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const std::size_t column = changes[i].column.value();
    if (layout.bits(column) < context_.scratch.bits[column]) return false;
    for (const KeyIndex* key : data_.keys)
      if (key->has_column(column)) return false;
  }
  if (__builtin_expect(may_replace_text(layout, changes), 0)) note_replaced(row, changes);
  for (std::size_t i = 0; i < changes.size(); ++i)
    layout.store(chunk.address(row), changes[i].column.value(), context_.scratch.cells[i]);
  if (__builtin_expect(context_.writes.flushed_ahead() != 0, 0)) {
    pmem::Persister& persister = context_.slot->persister();
    persister.flush(chunk.address(row), layout.stride(), "write_ahead/2");
    for (const RowPart& part : layout.parts())
      persister.flush(part.in_row(chunk.address(row)), part.bytes, "write_ahead/2");
  }
  return true;
}

// Makes a copy of the row with the changes, its cells packed for its new chunk; stamped.
Result<std::uint32_t> RowWriter::make_version(const RowChunk& chunk, std::uint32_t row,
                                              std::span<const ColumnValue> changes) {
  Result<std::uint32_t> fresh = take_row();
  if (!fresh.ok()) return fresh;
  FLUGS_DCHECK(*fresh != row);
  FLUGS_DCHECK(context_.scratch.cells.size() == changes.size());
  const RowChunk& fresh_chunk = data_.rows.chunk_with(*fresh);
  const columns::RowLayout& from = *chunk.layout;
  const columns::RowLayout& to = *fresh_chunk.layout;
  const std::byte* source = chunk.address(row);
  std::byte* target = fresh_chunk.address(*fresh);
  note_cells(target, to);
  if (&from == &to) {
    from.copy_cells(source, target);
  } else {
    // A dropped column was never checked for width: store an empty cell.
    for (std::size_t i = 0; i < to.cells().size(); ++i)
      to.store(target, i, data_.is_dropped_column(i) ? columns::Cell{} : from.load_cell(source, i));
  }
  for (std::size_t i = 0; i < changes.size(); ++i)
    to.store(target, changes[i].column.value(), context_.scratch.cells[i]);
  data_.rows.begin_row(*fresh, context_.visibility.own_tag());
  return fresh;
}

Result<RowId> RowWriter::update(RowId row_id, std::span<const ColumnValue> changes) {
  return with_definition_of_now(data_, context_, [&](const TableDefinition& now) {
    return data_.constraints.any() ? update_constrained(now, row_id, changes)
                                   : update_row(now, row_id, changes);
  });
}

// Those of `kept` that the changes give the new version another value of.
KeyMask RowWriter::keys_changed(std::uint32_t row, std::uint32_t fresh, KeyMask kept,
                                std::span<const ColumnValue> changes) const noexcept {
  KeyMask changed = 0;
  for (const std::size_t k : KeySet(kept))
    for (const ColumnValue& change : changes)
      if (data_.keys[k]->has_column(change.column.value()) && !data_.keys[k]->same_key(row, fresh))
        changed |= static_cast<KeyMask>(1U << k);
  return changed;
}

Result<RowId> RowWriter::update_row(const TableDefinition& now, RowId row_id,
                                    std::span<const ColumnValue> changes) {
  const std::uint32_t row = row_id.value();
  if (!data_.rows.exists(row)) return Status(StatusCode::kNotFound);
  const RowChunk& chunk = data_.rows.chunk_with(row);
  const mvcc::VersionLayout& before = chunk.version(row);
  if (!context_.visibility.sees(before)) return Status(StatusCode::kNotFound);
  KeyMask kept = data_.keys.kept();
  KeyHashes hashes{};
  const bool is_own = mvcc::load_stamp(before.created) == context_.visibility.own_tag();
  hash_keys(row, kept, hashes, is_own ? FoundRow() : context_.found);
  std::vector<ColumnValue> fitted;
  if (Status s = fit_changes(now, changes, fitted); !s.ok()) return s;
  const bool is_whole =
      chunk.group_now() != nullptr || chunk.layout->editions() != data_.columns.editions();
  if (Status s = is_whole ? encode_whole_row(row, changes) : encode_changes(*chunk.layout, changes);
      !s.ok())
    return s;
  if (!is_whole && update_in_place(chunk, row, changes)) return row_id;
  mvcc::VersionLayout* locked = nullptr;
  if (Status s = lock_row(row, locked); !s.ok()) return s;
  // A key may have been begun since the look above, and its index may have the row: another
  // transaction updated the row and was undone (KeyEntries::undo_replace). This update must then
  // put the new version in the row's place. From here on no other transaction can enter the row.
  if (const KeyMask now_kept = data_.keys.kept(); __builtin_expect(now_kept != kept, 0)) {
    kept = now_kept;
    hash_keys(row, kept, hashes);
  }
  const auto unlock = [&] { mvcc::store_stamp(locked->deleted, mvcc::kNoStamp); };
  std::uint32_t fresh = kNoRow;
  Status written;
  if (is_whole) {
    written = write_new_row(context_.scratch.cells, fresh);
  } else {
    Result<std::uint32_t> version = make_version(chunk, row, changes);
    if (version.ok()) fresh = *version;
    written = version.status();
  }
  if (!written.ok()) {
    unlock();
    return written;
  }
  FLUGS_DCHECK(fresh != kNoRow);
  data_.rows.set_previous(fresh, row);

  const KeyMask changed_keys = keys_changed(row, fresh, kept, changes);
  if (changed_keys != 0) hash_keys(fresh, changed_keys, hashes);
  if (Status s = enter_indexes(fresh, row, kept, changed_keys, hashes); !s.ok()) {
    mvcc::store_stamp(data_.rows.version(fresh).created, mvcc::kNoStamp);
    give_back(fresh);
    unlock();
    return s;
  }
  note_inserted(fresh);
  note_deleted(row, locked, changed_keys);
  if (is_whole || may_replace_text(data_.rows.layout(row), changes)) note_replaced(row, changes);
  note_hashes(context_.dead_rows.newest_dying(), static_cast<KeyMask>(kept & ~changed_keys),
              hashes);
  return RowId(fresh);
}

Status RowWriter::remove(RowId row_id) {
  if (data_.constraints.any()) return remove_constrained(row_id);
  return remove_only(row_id);
}

Status RowWriter::remove_only(RowId row_id) {
  const std::uint32_t row = row_id.value();
  mvcc::VersionLayout* locked = nullptr;
  if (Status s = lock_row(row, locked); !s.ok()) return s;
  note_deleted(row, locked, kEveryKey);
  if (const RowView view = data_.rows.view(row); !view.is_in_group() && view.layout->has_texts())
    note_removed(view);
  return {};
}

}  // namespace flugs::engine
