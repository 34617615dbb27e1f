#include "test/model/model_database.h"

#include <algorithm>
#include <functional>

namespace flugs::test {

namespace {

/// The first key that begins with the columns and finds rows by them.
std::size_t serving_key(const ModelTable& table, const std::vector<std::size_t>& columns) {
  const auto serves = [&](const ModelKey& key) {
    return !key.dropped && key.columns.size() >= columns.size() &&
           std::equal(columns.begin(), columns.end(), key.columns.begin()) &&
           (key.ordered || !key.unique || key.hashed <= columns.size());
  };
  return static_cast<std::size_t>(std::find_if(table.keys.begin(), table.keys.end(), serves) -
                                  table.keys.begin());
}

}  // namespace

std::vector<Value> values_of(const ModelRow& row) {
  std::vector<Value> values;
  values.reserve(row.size());
  for (const ModelValue& value : row) values.push_back(value.view());
  return values;
}

bool same_key(const ModelKey& key, const ModelRow& a, const ModelRow& b) {
  return std::all_of(key.columns.begin(), key.columns.end(),
                     [&](std::size_t column) { return a[column] == b[column]; });
}

bool key_has_null(const ModelKey& key, const ModelRow& row) {
  return std::any_of(key.columns.begin(), key.columns.end(),
                     [&](std::size_t column) { return row[column].null; });
}

int compare_key(const ModelKey& key, const ModelRow& row, std::span<const ModelValue> values) {
  for (std::size_t i = 0; i < values.size(); ++i)
    if (const int order = compare(row[key.columns[i]], values[i]); order != 0) return order;
  return 0;
}

ModelRow key_of(const std::vector<std::size_t>& columns, const ModelRow& row) {
  ModelRow values;
  values.reserve(columns.size());
  for (const std::size_t column : columns) values.push_back(row[column]);
  return values;
}

std::uint64_t hash_key(std::span<const ModelValue> values) {
  std::uint64_t hash = 0;
  for (const ModelValue& value : values) {
    hash = (hash ^ static_cast<std::uint64_t>(value.null ? 77 : value.raw)) * 0x9e3779b97f4a7c15U;
    if (!value.null && !value.text.empty()) hash ^= std::hash<std::string>{}(value.text);
    hash ^= hash >> 29;
  }
  return hash;
}

std::size_t position_of(const TableSchema& schema, const std::string& column) {
  for (std::size_t i = 0; i < schema.columns.size(); ++i)
    if (!schema.columns[i].dropped && schema.columns[i].name == column) return i;
  return schema.columns.size();
}

std::size_t ModelTable::columns_there() const {
  return static_cast<std::size_t>(std::count_if(schema.columns.begin(), schema.columns.end(),
                                                [](const auto& c) { return !c.dropped; }));
}

// ------------------------------------------------------------------------------------------ tables

ModelTable& ModelDatabase::add_table(const TableSchema& schema, TableId id) {
  tables_.push_back(std::make_unique<ModelTable>());
  ModelTable& table = *tables_.back();
  table.schema = schema;
  table.id = id;
  table.columns_created = schema.columns.size();
  for (std::size_t i = 0; i < schema.keys.size(); ++i) add_key(table, i, schema.keys[i]);
  table.schema.foreign_keys.clear();
  for (const ForeignKeySchema& foreign : schema.foreign_keys) add_foreign_key(table, foreign);
  return table;
}

void ModelDatabase::add_foreign_key(ModelTable& table, const ForeignKeySchema& foreign) {
  ModelForeignKey model;
  for (const std::string& name : foreign.columns)
    model.columns.push_back(position_of(table.schema, name));
  model.parent = find_table(foreign.referenced.table);
  model.parent_key = foreign.referenced.index;
  model.child_key = serving_key(table, model.columns);
  model.on_delete = foreign.on_delete;
  model.on_update = foreign.on_update;
  model.parent->referrers.emplace_back(&table, table.foreign_keys.size());
  table.foreign_keys.push_back(std::move(model));
  table.schema.foreign_keys.push_back(foreign);
}

ModelTable* ModelDatabase::find_table(TableId id) {
  for (const auto& table : tables_)
    if (table->id == id) return table.get();
  return nullptr;
}

void ModelDatabase::drop_table(const ModelTable& dropped) {
  for (const auto& table : tables_)
    std::erase_if(table->referrers, [&](const auto& r) { return r.first == &dropped; });
  std::erase_if(to_prune_, [&](const auto& waiting) { return waiting.first == &dropped; });
  std::erase_if(tables_, [&](const auto& t) { return t.get() == &dropped; });
}

void ModelDatabase::note_opening() {
  for (const auto& table : tables_)
    for (ModelForeignKey& foreign : table->foreign_keys)
      foreign.child_key = serving_key(*table, foreign.columns);
}

// ----------------------------------------------------------------------------------------- records

ModelRecord& ModelDatabase::add_record(ModelTable& table) {
  table.records.push_back(std::make_unique<ModelRecord>());
  table.records.back()->place = table.records.size() - 1;
  return *table.records.back();
}

void ModelDatabase::remove_record(ModelTable& table, ModelRecord& record) {
  if (record.waits_for_pruning)
    std::erase_if(to_prune_, [&](const auto& waiting) { return waiting.second == &record; });
  record.versions.clear();
  record.writer = nullptr;
  enter_again(table, record);
  const std::size_t place = record.place;
  std::swap(table.records[place], table.records.back());
  table.records[place]->place = place;
  table.records.pop_back();
}

void ModelDatabase::enter(ModelTable& table, ModelRecord& record, const ModelRow& row) {
  for (std::size_t i = 0; i < table.keys.size(); ++i) {
    if (!table.keys[i].unique || table.keys[i].dropped) continue;
    const std::pair<std::uint16_t, std::uint64_t> entry(
        static_cast<std::uint16_t>(i), hash_key(key_of(table.keys[i].columns, row)));
    if (std::find(record.entries.begin(), record.entries.end(), entry) != record.entries.end())
      continue;
    record.entries.push_back(entry);
    table.indexes[i].emplace(entry.second, &record);
  }
}

// Enters what the record's current rows need, and removes other entries.
void ModelDatabase::enter_again(ModelTable& table, ModelRecord& record) {
  for (const auto& [key, hash] : record.entries) {
    auto [at, end] = table.indexes[key].equal_range(hash);
    while (at != end && at->second != &record) ++at;
    if (at != end) table.indexes[key].erase(at);
  }
  record.entries.clear();
  for (const ModelVersion& version : record.versions) enter(table, record, version.row);
  if (record.writer == nullptr) return;
  if (!record.own.deleted) enter(table, record, record.own.row);
  for (const ModelRow& row : record.own.superseded) enter(table, record, row);
}

void ModelDatabase::prune() {
  std::uint64_t oldest = now_;
  for (const auto& transaction : open_)
    if (transaction->isolation() != Isolation::kReadCommitted)
      oldest = std::min(oldest, transaction->snapshot());
  std::vector<std::pair<ModelTable*, ModelRecord*>> waiting;
  std::swap(waiting, to_prune_);
  for (const auto& [table, record] : waiting) {
    record->waits_for_pruning = false;
    std::erase_if(record->versions, [&](const ModelVersion& v) { return v.end <= oldest; });
    if (record->versions.empty() && record->writer == nullptr) {
      remove_record(*table, *record);
      continue;
    }
    enter_again(*table, *record);
    const bool is_done = std::all_of(record->versions.begin(), record->versions.end(),
                                     [](const ModelVersion& v) { return v.end == kAlive; });
    if (is_done) continue;
    record->waits_for_pruning = true;
    to_prune_.emplace_back(table, record);
  }
}

// ------------------------------------------------------------------------------------ transactions

ModelTransaction* ModelDatabase::begin(std::uint64_t snapshot, Isolation isolation,
                                       bool read_only) {
  open_.push_back(std::make_unique<ModelTransaction>(snapshot, isolation, read_only));
  return open_.back().get();
}

// A serializable transaction has read nothing of tables that it has not touched. If others changed
// a row that it found, it must fail; if they changed something else there, it may.
Outcomes ModelDatabase::foretell_commit(const ModelTransaction& transaction) const {
  if (!transaction.has_written()) return {};
  if (!references_hold(transaction, 0, kAlive - 1)) return StatusCode::kConflict;
  if (transaction.isolation() != Isolation::kSerializable || transaction.is_read_only()) return {};
  for (const auto& [table, record] : transaction.found_)
    for (const ModelVersion& version : record->versions)
      if (version.begin <= transaction.snapshot() && transaction.snapshot() < version.end &&
          version.end != kAlive)
        return StatusCode::kConflict;
  bool may_conflict = transaction.may_conflict_;
  for (const ModelTable* table : transaction.touched_)
    may_conflict |= table->changed_at > transaction.snapshot();
  if (!may_conflict) return {};
  return Outcomes(StatusCode::kOk) | StatusCode::kConflict;
}

void ModelDatabase::commit(ModelTransaction* transaction, std::uint64_t timestamp) {
  now_ = std::max(now_, timestamp);
  for (const ModelWrite& write : transaction->writes_) {
    ModelRecord& record = *write.record;
    write.table->changed_at = timestamp;
    if (record.writer != transaction) continue;  // written several times
    record.writer = nullptr;
    if (!record.versions.empty()) record.versions.back().end = timestamp;
    for (ModelRow& row : record.own.superseded)
      record.versions.push_back({timestamp, timestamp, RowId(), std::move(row)});
    if (!record.own.deleted)
      record.versions.push_back({timestamp, kAlive, record.own.id, std::move(record.own.row)});
    record.own = {};
    if (record.waits_for_pruning) continue;
    record.waits_for_pruning = true;
    to_prune_.emplace_back(write.table, &record);
  }
  transaction->writes_.clear();
  forget(transaction);
}

void ModelDatabase::abort(ModelTransaction* transaction) {
  undo_since(*transaction, 0);
  forget(transaction);
}

void ModelDatabase::forget(ModelTransaction* transaction) {
  unlock_since(*transaction, 0);
  std::erase_if(open_, [&](const auto& t) { return t.get() == transaction; });
  prune();
}

void ModelDatabase::add_savepoint(ModelTransaction& transaction) {
  transaction.savepoints_.push_back({transaction.writes_.size(), transaction.locks_.size()});
}

void ModelDatabase::roll_back_to(ModelTransaction& transaction, std::size_t savepoint) {
  const ModelTransaction::Mark mark = transaction.savepoints_[savepoint];
  undo_since(transaction, mark.writes);
  unlock_since(transaction, mark.locks);
  transaction.savepoints_.resize(savepoint + 1);
}

void ModelDatabase::release(ModelTransaction& transaction, std::size_t savepoint) {
  transaction.savepoints_.resize(savepoint);
}

void ModelDatabase::undo_since(ModelTransaction& transaction, std::size_t writes) {
  for (; transaction.writes_.size() > writes; transaction.writes_.pop_back()) {
    ModelWrite& write = transaction.writes_.back();
    ModelRecord& record = *write.record;
    if (write.had_writer) {
      record.own = std::move(write.before);
      if (!record.own.deleted) enter(*write.table, record, record.own.row);
      for (const ModelRow& row : record.own.superseded) enter(*write.table, record, row);
      continue;
    }
    record.writer = nullptr;
    record.own = {};
    if (!record.versions.empty()) continue;
    std::erase(transaction.locks_, &record);
    remove_record(*write.table, record);
  }
}

void ModelDatabase::unlock_since(ModelTransaction& transaction, std::size_t locks) {
  for (; transaction.locks_.size() > locks; transaction.locks_.pop_back())
    transaction.locks_.back()->locker = nullptr;
}

// ---------------------------------------------------------------------------------------- reading

std::uint64_t ModelDatabase::snapshot_of(const ModelTransaction& transaction) const {
  return transaction.isolation() == Isolation::kReadCommitted ? now_ : transaction.snapshot();
}

std::optional<SeenRow> ModelDatabase::see_at(const ModelTransaction& transaction,
                                             ModelRecord& record, std::uint64_t snapshot) const {
  if (record.writer == &transaction) {
    if (record.own.deleted) return {};
    return SeenRow{&record, record.own.id, &record.own.row};
  }
  for (const ModelVersion& version : record.versions)
    if (version.begin <= snapshot && snapshot < version.end)
      return SeenRow{&record, version.id, &version.row};
  return {};
}

std::optional<SeenRow> ModelDatabase::see(const ModelTransaction& transaction,
                                          ModelRecord& record) const {
  return see_at(transaction, record, snapshot_of(transaction));
}

std::vector<SeenRow> ModelDatabase::see_all(const ModelTransaction& transaction,
                                            const ModelTable& table) const {
  std::vector<SeenRow> rows;
  rows.reserve(table.records.size());
  const std::uint64_t snapshot = snapshot_of(transaction);
  for (const auto& record : table.records)
    if (const auto seen = see_at(transaction, *record, snapshot)) rows.push_back(*seen);
  return rows;
}

std::vector<SeenRow> ModelDatabase::find(const ModelTransaction& transaction, ModelTable& table,
                                         std::size_t key,
                                         std::span<const ModelValue> values) const {
  const ModelKey& model = table.keys[key];
  std::vector<SeenRow> rows;
  const auto [begin, end] = table.indexes[key].equal_range(hash_key(values));
  for (auto at = begin; at != end; ++at)
    if (const auto seen = see(transaction, *at->second))
      if (compare_key(model, *seen->row, values) == 0) rows.push_back(*seen);
  return rows;
}

void ModelDatabase::note_read(ModelTransaction& transaction, const ModelTable& table,
                              ModelRecord* record) const {
  if (transaction.isolation() != Isolation::kSerializable || transaction.is_read_only()) return;
  transaction.touched_.insert(&table);
  if (record != nullptr && record->writer != &transaction)
    transaction.found_.emplace_back(&table, record);
}

}  // namespace flugs::test
