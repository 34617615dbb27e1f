// Statements in the model: keys, conflicts, foreign keys.
#include <algorithm>

#include "test/model/model_database.h"

namespace flugs::test {

namespace {

/// The failure of a cascade depends on the order in which it reaches rows.
Outcomes any_failure() {
  return Outcomes(StatusCode::kConflict) | StatusCode::kConstraintViolated |
         StatusCode::kAlreadyExists;
}

/// The order in which several rows are refused is not defined.
Outcomes judged_of_many() { return Outcomes(StatusCode::kConflict) | StatusCode::kAlreadyExists; }

}  // namespace

Outcomes judge_values(const ModelTable& table, const ModelRow& row,
                      const std::vector<std::size_t>* named) {
  const TableSchema& schema = table.schema;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const bool is_given =
        named == nullptr || std::find(named->begin(), named->end(), i) != named->end();
    if (is_given && row[i].null && !schema.columns[i].nullable && !schema.columns[i].dropped)
      return StatusCode::kConstraintViolated;
  }
  for (const CheckSchema& check : schema.checks) {
    const bool is_asked =
        named == nullptr || std::any_of(named->begin(), named->end(), [&](std::size_t column) {
          return looks_at(schema, check.condition, column);
        });
    if (is_asked && !holds(schema, check.condition, row)) return StatusCode::kConstraintViolated;
  }
  return {};
}

// --------------------------------------------------------------------------- keys and conflicts

Outcomes ModelDatabase::judge(ModelTable& table, std::size_t number,
                              const ModelTransaction& transaction, const ModelRow& row) {
  const ModelKey& key = table.keys[number];
  if (!key.unique || key.dropped || key_has_null(key, row)) return {};
  const std::uint64_t snapshot = snapshot_of(transaction);
  key_owner_ = nullptr;
  const auto [begin, end] = table.indexes[number].equal_range(hash_key(key_of(key.columns, row)));
  for (auto at = begin; at != end; ++at) {
    ModelRecord& record = *at->second;
    if (record.writer != nullptr) {
      const bool current = !record.own.deleted && same_key(key, record.own.row, row);
      const bool former = std::any_of(record.own.superseded.begin(), record.own.superseded.end(),
                                      [&](const ModelRow& r) { return same_key(key, r, row); });
      if (record.writer != &transaction && (current || former)) return StatusCode::kConflict;
      if (current && record.writer == &transaction) key_owner_ = &record;
    }
    for (const ModelVersion& version : record.versions) {
      if (!same_key(key, version.row, row)) continue;
      if (version.end != kAlive) {
        if (version.end > snapshot) return StatusCode::kConflict;
        continue;
      }
      if (record.writer == &transaction) continue;
      if (record.writer != nullptr || version.begin > snapshot) return StatusCode::kConflict;
      key_owner_ = &record;
    }
  }
  return key_owner_ != nullptr ? StatusCode::kAlreadyExists : StatusCode::kOk;
}

// Keys with unchanged columns need no check. The transaction itself deletes the replaced version,
// so it does not conflict.
Outcomes ModelDatabase::judge_keys(ModelTable& table, const ModelTransaction& transaction,
                                   const ModelRow* old, const ModelRow& row) {
  for (std::size_t i = 0; i < table.keys.size(); ++i) {
    if (table.keys[i].dropped) continue;
    if (old != nullptr && same_key(table.keys[i], *old, row)) continue;
    if (const Outcomes judged = judge(table, i, transaction, row); !judged.ok()) return judged;
  }
  return {};
}

// A transaction that learns that a key is taken has read the record with the key.
void ModelDatabase::note_key_owner(ModelTransaction& transaction, const ModelTable& table,
                                   Outcomes judged) {
  if (judged.is_only(StatusCode::kAlreadyExists)) note_read(transaction, table, key_owner_);
}

Outcomes ModelDatabase::judge_change(const ModelTransaction& transaction,
                                     const ModelRecord& record) const {
  if (record.writer == &transaction) return {};
  if (record.writer != nullptr) return StatusCode::kConflict;
  if (record.locker != nullptr && record.locker != &transaction) return StatusCode::kConflict;
  const ModelVersion& newest = record.versions.back();
  const bool is_newest = newest.end == kAlive && newest.begin <= snapshot_of(transaction);
  return is_newest ? StatusCode::kOk : StatusCode::kConflict;
}

Outcomes ModelDatabase::lock(ModelTransaction& transaction, const SeenRow& seen) {
  ModelRecord& record = *seen.record;
  // No other transaction sees a row that it made itself.
  if (record.writer == &transaction) return {};
  const ModelVersion& newest = record.versions.back();
  // Locks use the values of a key, which an older version lacks, or another record has now.
  if (newest.end != kAlive || newest.begin > snapshot_of(transaction))
    return Outcomes(StatusCode::kConflict) | StatusCode::kBusy;
  if (record.locker != nullptr && record.locker != &transaction) return StatusCode::kBusy;
  if (record.writer != nullptr) return StatusCode::kBusy;
  if (record.locker == nullptr) transaction.locks_.push_back(&record);
  record.locker = &transaction;
  return {};
}

// ------------------------------------------------------------------------------------- statements

ModelWrite& ModelDatabase::begin_write(ModelTransaction& transaction, ModelTable& table,
                                       ModelRecord& record) {
  const bool had_writer = record.writer == &transaction;
  transaction.writes_.push_back({&table, &record, had_writer, {}, {}, {}});
  if (had_writer) transaction.writes_.back().before = record.own;
  record.writer = &transaction;
  return transaction.writes_.back();
}

Outcomes ModelDatabase::insert(ModelTransaction& transaction, ModelTable& table,
                               std::vector<ModelRow> rows) {
  note_read(transaction, table);
  for (const auto& foreign : table.foreign_keys) note_read(transaction, *foreign.parent);
  if (transaction.is_read_only()) return StatusCode::kReadOnly;
  for (const ModelRow& row : rows)
    if (const Outcomes judged = judge_values(table, row); !judged.ok()) return judged;
  for (const ModelRow& row : rows)
    if (const Outcomes judged = judge_keys(table, transaction, nullptr, row); !judged.ok()) {
      if (rows.size() > 1) return judged_of_many();
      note_key_owner(transaction, table, judged);
      return judged;
    }
  const std::size_t mark = transaction.writes_.size();
  table.had_rows = true;
  for (ModelRow& row : rows) {
    if (const Outcomes judged = judge_keys(table, transaction, nullptr, row); !judged.ok()) {
      undo_since(transaction, mark);
      unsettled_.clear();
      return judged_of_many();
    }
    ModelRecord& record = add_record(table);
    ModelWrite& write = begin_write(transaction, table, record);
    if (table.is_related()) write.made = row;
    enter(table, record, row);
    record.own = {false, kUnknownRow, std::move(row), {}};
    unsettled_.emplace_back(&table, &record);
  }
  return table.foreign_keys.empty() ? Outcomes() : finish_statement(transaction, mark);
}

Outcomes ModelDatabase::insert_by_column(ModelTransaction& transaction, ModelTable& table,
                                         std::vector<ModelRow> rows) {
  const auto fits = [&](const ModelRow& row) { return judge_values(table, row).ok(); };
  const bool is_later_refused =
      !rows.empty() && fits(rows.front()) && !std::all_of(rows.begin(), rows.end(), fits);
  const Outcomes judged = insert(transaction, table, std::move(rows));
  return is_later_refused ? judged | judged_of_many() : judged;
}

Outcomes ModelDatabase::update(ModelTransaction& transaction, ModelTable& table,
                               const SeenRow& seen, const std::vector<std::size_t>& named,
                               const ModelRow& row) {
  note_read(transaction, table);
  if (transaction.is_read_only()) return StatusCode::kReadOnly;
  const std::size_t mark = transaction.writes_.size();
  if (const Outcomes done = change_row(transaction, table, seen, named, row); !done.ok()) {
    note_key_owner(transaction, table, done);
    return done;
  }
  return table.is_related() ? finish_statement(transaction, mark) : Outcomes();
}

Outcomes ModelDatabase::change_row(ModelTransaction& transaction, ModelTable& table,
                                   const SeenRow& seen, const std::vector<std::size_t>& named,
                                   const ModelRow& row) {
  ModelRecord& record = *seen.record;
  const ModelRow old = *seen.row;
  if (const Outcomes judged = judge_values(table, row, &named); !judged.ok()) return judged;
  if (const Outcomes judged = judge_change(transaction, record); !judged.ok()) return judged;
  if (const Outcomes judged = judge_keys(table, transaction, &old, row); !judged.ok())
    return judged;
  const bool was_own = record.writer == &transaction;
  ModelWrite& write = begin_write(transaction, table, record);
  if (table.is_related()) {
    write.old = old;
    write.made = row;
  }
  if (was_own) replaced_.push_back({&table, &record, record.own.id, record.own.row});
  std::vector<ModelRow> superseded =
      was_own ? std::move(record.own.superseded) : std::vector<ModelRow>();
  record.own = {false, kUnknownRow, row, std::move(superseded)};
  enter(table, record, row);
  unsettled_.emplace_back(&table, &record);
  return {};
}

Outcomes ModelDatabase::remove(ModelTransaction& transaction, ModelTable& table,
                               const std::vector<SeenRow>& rows) {
  note_read(transaction, table);
  if (transaction.is_read_only()) return StatusCode::kReadOnly;
  const std::size_t mark = transaction.writes_.size();
  for (const SeenRow& seen : rows)
    if (const Outcomes done = remove_row(transaction, table, seen); !done.ok()) {
      undo_since(transaction, mark);
      return done;
    }
  return table.referrers.empty() ? Outcomes() : finish_statement(transaction, mark);
}

Outcomes ModelDatabase::remove_row(ModelTransaction& transaction, ModelTable& table,
                                   const SeenRow& seen) {
  ModelRecord& record = *seen.record;
  if (const Outcomes judged = judge_change(transaction, record); !judged.ok()) return judged;
  ModelRow old = *seen.row;
  const bool was_own = record.writer == &transaction;
  ModelWrite& write = begin_write(transaction, table, record);
  if (was_own) {
    record.own.superseded.push_back(std::move(record.own.row));
    record.own.row = {};
    record.own.deleted = true;
  } else {
    record.own = {true, RowId(), {}, {}};
  }
  if (table.is_related()) write.old = std::move(old);
  return {};
}

void ModelDatabase::settle(ModelTable& table, ModelRecord& record, RowId id) {
  for (Replaced& replaced : replaced_) {
    if (replaced.record != &record || replaced.id == id) continue;
    enter(table, record, replaced.row);
    record.own.superseded.push_back(std::move(replaced.row));
  }
  std::erase_if(replaced_, [&](const Replaced& replaced) { return replaced.record == &record; });
  record.own.id = id;
}

// ----------------------------------------------------------------------------------- foreign keys

// Follows foreign keys from the statement's writes, and from the writes that these cause. Rows are
// checked at the end, when everything is done.
//
// The database also follows the list of writes, but the order in which it finds referring rows is
// its own. The order matters when two writes reach the same row and one of them changes it: a NULL
// in a column of both foreign keys hides the row from the other one's deletion.
Outcomes ModelDatabase::finish_statement(ModelTransaction& transaction, std::size_t first_write) {
  Outcomes done;
  ReachedRows reached;
  const std::size_t cascades_begin = transaction.writes_.size();
  for (std::size_t i = first_write; i < transaction.writes_.size() && done.ok(); ++i) {
    const ModelTable& table = *transaction.writes_[i].table;
    for (const auto& referrer : table.referrers) note_read(transaction, *referrer.first);
    for (const auto& foreign : table.foreign_keys) note_read(transaction, *foreign.parent);
    if (!transaction.writes_[i].old || table.referrers.empty()) continue;
    note_reached(transaction, first_write, cascades_begin, i, reached);
    done = act_on_children(transaction, first_write, i);
  }
  if (done.ok() && !references_hold(transaction, first_write, snapshot_of(transaction)))
    done = StatusCode::kConstraintViolated;
  if (std::any_of(reached.begin(), reached.end(),
                  [](const auto& row) { return row.second.several && row.second.changes; }))
    done = Outcomes::untold();
  if (done.ok()) return done;
  undo_since(transaction, first_write);
  unsettled_.clear();
  replaced_.clear();
  return done;
}

// Rows that refer, or referred during this statement, to what the write deleted or replaced.
void ModelDatabase::note_reached(const ModelTransaction& transaction, std::size_t first_write,
                                 std::size_t cascades_begin, std::size_t number,
                                 ReachedRows& reached) const {
  const std::vector<ModelWrite>& writes = transaction.writes_;
  const ModelTable& table = *writes[number].table;
  for (const auto& [child, index] : table.referrers) {
    const ModelForeignKey& foreign = child->foreign_keys[index];
    const ReferenceAction action = writes[number].made ? foreign.on_update : foreign.on_delete;
    const ModelKey& key = table.keys[foreign.parent_key];
    if (action == ReferenceAction::kRestrict || key_has_null(key, *writes[number].old)) continue;
    const ModelRow values = key_of(key.columns, *writes[number].old);
    if (writes[number].made && key_of(key.columns, *writes[number].made) == values) continue;
    const auto note = [&](const ModelRecord* record, const ModelRow& row) {
      if (key_of(foreign.columns, row) != values) return;
      Reached& one = reached.try_emplace(record, Reached{number}).first->second;
      one.several |= one.from != number;
      one.changes |= action == ReferenceAction::kSetNull || writes[number].made;
    };
    for (const SeenRow& seen : see_all(transaction, *child)) note(seen.record, *seen.row);
    for (std::size_t i = first_write; i < writes.size(); ++i) {
      // Cascades do not reach rows that the statement itself deleted.
      const bool is_gone = i < cascades_begin && !writes[i].made;
      if (writes[i].table == child && writes[i].old && !is_gone)
        note(writes[i].record, *writes[i].old);
    }
  }
}

// Whether a column would get a second value in the statement that begins with `first_write`.
bool ModelDatabase::changes_once_more(const ModelTransaction& transaction, std::size_t first_write,
                                      const SeenRow& seen, const ModelRow& row) {
  for (std::size_t i = first_write; i < transaction.writes_.size(); ++i) {
    const ModelWrite& write = transaction.writes_[i];
    if (write.record != seen.record || !write.old) continue;
    const ModelRow& before = *write.old;
    for (std::size_t column = 0; column < row.size(); ++column)
      if (!(before[column] == (*seen.row)[column]) && !((*seen.row)[column] == row[column]))
        return true;
    return false;
  }
  return false;
}

Outcomes ModelDatabase::act_on_children(ModelTransaction& transaction, std::size_t first_write,
                                        std::size_t number) {
  ModelTable& table = *transaction.writes_[number].table;
  const ModelRow old = *transaction.writes_[number].old;
  const std::optional<ModelRow> made = transaction.writes_[number].made;
  const std::uint64_t snapshot = snapshot_of(transaction);
  for (const auto& [child, index] : table.referrers) {
    const ModelForeignKey& foreign = child->foreign_keys[index];
    const ReferenceAction action = made ? foreign.on_update : foreign.on_delete;
    if (action == ReferenceAction::kRestrict) continue;
    const ModelKey& key = table.keys[foreign.parent_key];
    if (key_has_null(key, old)) continue;
    const ModelRow values = key_of(key.columns, old);
    if (has_row(transaction, table, foreign.parent_key, values, snapshot)) continue;
    for (const SeenRow& seen : children(transaction, *child, foreign, values, snapshot)) {
      if (action == ReferenceAction::kCascade && !made) {
        // An earlier cascade may have reached it already.
        if (!see_at(transaction, *seen.record, snapshot)) continue;
        if (!remove_row(transaction, *child, seen).ok()) return any_failure();
        continue;
      }
      ModelRow row = *seen.row;
      for (std::size_t i = 0; i < foreign.columns.size(); ++i) {
        ModelValue& value = row[foreign.columns[i]];
        value = action == ReferenceAction::kCascade ? (*made)[key.columns[i]] : ModelValue();
        value.type = child->schema.columns[foreign.columns[i]].type;
      }
      if (action == ReferenceAction::kCascade &&
          changes_once_more(transaction, first_write, seen, row))
        return any_failure();
      if (!change_row(transaction, *child, seen, foreign.columns, row).ok()) return any_failure();
    }
  }
  return {};
}

bool ModelDatabase::references_hold(const ModelTransaction& transaction, std::size_t first_write,
                                    std::uint64_t snapshot) const {
  for (std::size_t i = first_write; i < transaction.writes_.size(); ++i) {
    const ModelWrite& write = transaction.writes_[i];
    const ModelTable& table = *write.table;
    if (write.record->writer == &transaction && !write.record->own.deleted)
      for (const ModelForeignKey& foreign : table.foreign_keys) {
        const ModelRow values = key_of(foreign.columns, write.record->own.row);
        const bool is_any_null =
            std::any_of(values.begin(), values.end(), [](const ModelValue& v) { return v.null; });
        // A transaction that deletes the row's former parent must have checked that row.
        const bool keeps =
            !write.had_writer && write.old && key_of(foreign.columns, *write.old) == values;
        if (!is_any_null && !keeps &&
            !has_row(transaction, *foreign.parent, foreign.parent_key, values, snapshot))
          return false;
      }
    if (!write.old) continue;
    for (const auto& [child, index] : table.referrers) {
      const ModelForeignKey& foreign = child->foreign_keys[index];
      const ModelKey& key = table.keys[foreign.parent_key];
      if (key_has_null(key, *write.old)) continue;
      const ModelRow values = key_of(key.columns, *write.old);
      if (!has_row(transaction, table, foreign.parent_key, values, snapshot) &&
          !children(transaction, *child, foreign, values, snapshot).empty())
        return false;
    }
  }
  return true;
}

bool ModelDatabase::has_row(const ModelTransaction& transaction, const ModelTable& table,
                            std::size_t key, std::span<const ModelValue> values,
                            std::uint64_t snapshot) const {
  const ModelKey& model = table.keys[key];
  const auto [begin, end] = table.indexes[key].equal_range(hash_key(values));
  for (auto at = begin; at != end; ++at)
    if (const auto seen = see_at(transaction, *at->second, snapshot))
      if (compare_key(model, *seen->row, values) == 0) return true;
  return false;
}

std::vector<SeenRow> ModelDatabase::children(const ModelTransaction& transaction,
                                             const ModelTable& child,
                                             const ModelForeignKey& foreign,
                                             std::span<const ModelValue> values,
                                             std::uint64_t snapshot) const {
  std::vector<SeenRow> rows;
  for (const auto& record : child.records) {
    const auto seen = see_at(transaction, *record, snapshot);
    if (!seen) continue;
    bool is_same = true;
    for (std::size_t i = 0; i < values.size() && is_same; ++i)
      is_same = (*seen->row)[foreign.columns[i]] == values[i];
    if (is_same) rows.push_back(*seen);
  }
  return rows;
}

}  // namespace flugs::test
