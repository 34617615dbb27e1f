#include "test/model/model_database.h"

#include <algorithm>

namespace flugs::test {

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

bool ModelTransaction::has_written() const {
  return std::any_of(own_.begin(), own_.end(), [](const auto& t) { return !t.second.empty(); });
}

const OwnRows& ModelTransaction::own_in(const ModelTable& table) const {
  static const OwnRows none;
  const auto found = own_.find(&table);
  return found == own_.end() ? none : found->second;
}

std::optional<SeenRow> ModelTransaction::see(const ModelTable& table, std::uint32_t record) const {
  const OwnRows& own = own_in(table);
  if (const auto mine = own.find(record); mine != own.end()) {
    if (mine->second.deleted) return {};
    return SeenRow{record, mine->second.id, &mine->second.row};
  }
  const auto found = table.records.find(record);
  if (found == table.records.end()) return {};
  for (const ModelVersion& version : found->second.versions)
    if (version.begin <= snapshot_ && snapshot_ < version.end)
      return SeenRow{record, version.id, &version.row};
  return {};
}

std::vector<SeenRow> ModelTransaction::see_all(const ModelTable& table) const {
  std::vector<SeenRow> rows;
  for (const auto& [record, versions] : table.records)
    if (const auto seen = see(table, record)) rows.push_back(*seen);
  for (const auto& [record, own] : own_in(table))
    if (!own.deleted && !table.records.contains(record)) rows.push_back({record, own.id, &own.row});
  return rows;
}

ModelTable& ModelDatabase::add_table(const TableSchema& schema, TableId id) {
  auto table = std::make_unique<ModelTable>();
  table->schema = schema;
  table->id = id;
  for (const KeySchema& key : schema.keys) {
    ModelKey model{{}, key.hashed_columns, key.unique, key.ordered};
    for (const std::string& name : key.columns)
      for (std::size_t i = 0; i < schema.columns.size(); ++i)
        if (schema.columns[i].name == name) model.columns.push_back(i);
    table->keys.push_back(std::move(model));
  }
  tables_.push_back(std::move(table));
  return *tables_.back();
}

void ModelDatabase::drop_table(const ModelTable& table) {
  std::erase_if(tables_, [&](const auto& t) { return t.get() == &table; });
}

ModelTransaction* ModelDatabase::begin(std::uint64_t snapshot) {
  open_.push_back(std::make_unique<ModelTransaction>(snapshot));
  return open_.back().get();
}

void ModelDatabase::commit(ModelTransaction* transaction, std::uint64_t timestamp) {
  for (auto& [const_table, rows] : transaction->own()) {
    ModelTable& table = const_cast<ModelTable&>(*const_table);
    for (auto& [number, own] : rows) {
      ModelRecord& record = table.records[number];
      if (record.writer == transaction) {
        record.versions.back().end = timestamp;
        record.writer = nullptr;
      }
      for (ModelRow& row : own.superseded)
        record.versions.push_back({timestamp, timestamp, RowId(), std::move(row)});
      if (!own.deleted) record.versions.push_back({timestamp, kAlive, own.id, std::move(own.row)});
    }
  }
  forget(transaction);
}

void ModelDatabase::abort(ModelTransaction* transaction) {
  for (auto& [const_table, rows] : transaction->own()) {
    ModelTable& table = const_cast<ModelTable&>(*const_table);
    for (const auto& [number, own] : rows)
      if (const auto found = table.records.find(number); found != table.records.end())
        if (found->second.writer == transaction) found->second.writer = nullptr;
  }
  forget(transaction);
}

void ModelDatabase::roll_back(ModelTransaction& transaction,
                              const std::map<const ModelTable*, OwnRows>& own) {
  for (const auto& table : tables_)
    for (auto& [number, record] : table->records) {
      const auto before = own.find(table.get());
      if (record.writer == &transaction &&
          (before == own.end() || !before->second.contains(number)))
        record.writer = nullptr;
    }
  transaction.own() = own;
}

void ModelDatabase::forget(ModelTransaction* transaction) {
  std::erase_if(open_, [&](const auto& t) { return t.get() == transaction; });
  prune();
}

void ModelDatabase::prune() {
  std::uint64_t oldest = kAlive - 1;
  for (const auto& transaction : open_) oldest = std::min(oldest, transaction->snapshot());
  for (const auto& table : tables_)
    for (auto record = table->records.begin(); record != table->records.end();) {
      auto& versions = record->second.versions;
      if (versions.front().end <= oldest)
        std::erase_if(versions, [&](const ModelVersion& v) { return v.end <= oldest; });
      record = versions.empty() ? table->records.erase(record) : std::next(record);
    }
}

StatusCode ModelDatabase::judge_in_flight(const ModelTable& table, const ModelKey& key,
                                          const ModelTransaction& transaction,
                                          const ModelRow& row) const {
  StatusCode outcome = StatusCode::kOk;
  for (const auto& other : open_)
    for (const auto& [number, own] : other->own_in(table)) {
      const bool current = !own.deleted && same_key(key, own.row, row);
      if (other.get() == &transaction) {
        if (current) outcome = StatusCode::kAlreadyExists;
        continue;
      }
      const bool former = std::any_of(own.superseded.begin(), own.superseded.end(),
                                      [&](const auto& r) { return same_key(key, r, row); });
      if (current || former) return StatusCode::kConflict;
    }
  return outcome;
}

StatusCode ModelDatabase::judge(const ModelTable& table, const ModelKey& key,
                                const ModelTransaction& transaction, const ModelRow& row) const {
  if (!key.unique || key_has_null(key, row)) return StatusCode::kOk;
  StatusCode outcome = judge_in_flight(table, key, transaction, row);
  for (const auto& [number, record] : table.records)
    for (const ModelVersion& version : record.versions) {
      if (!same_key(key, version.row, row)) continue;
      if (version.end != kAlive) {
        if (version.end > transaction.snapshot()) return StatusCode::kConflict;
        continue;
      }
      if (record.writer == &transaction) continue;
      if (record.writer != nullptr || version.begin > transaction.snapshot())
        return StatusCode::kConflict;
      outcome = StatusCode::kAlreadyExists;
    }
  return outcome;
}

StatusCode ModelDatabase::foretell_insert(const ModelTable& table,
                                          const ModelTransaction& transaction,
                                          const ModelRow& row) const {
  for (const ModelKey& key : table.keys)
    if (const StatusCode code = judge(table, key, transaction, row); code != StatusCode::kOk)
      return code;
  return StatusCode::kOk;
}

StatusCode ModelDatabase::foretell_change(const ModelTable& table,
                                          const ModelTransaction& transaction,
                                          std::uint32_t number) const {
  if (transaction.own_in(table).contains(number)) return StatusCode::kOk;
  const ModelRecord& record = table.records.at(number);
  const bool is_newest = record.versions.back().end == kAlive &&
                         record.versions.back().begin <= transaction.snapshot();
  return record.writer == nullptr && is_newest ? StatusCode::kOk : StatusCode::kConflict;
}

// Keys whose columns stay as they are need no look. The version that makes way is the
// transaction's own to delete, so that it does not stand in the way.
StatusCode ModelDatabase::foretell_keys(const ModelTable& table,
                                        const ModelTransaction& transaction, const SeenRow& old,
                                        const ModelRow& row) const {
  for (const ModelKey& key : table.keys) {
    if (same_key(key, *old.row, row)) continue;
    if (const StatusCode code = judge(table, key, transaction, row); code != StatusCode::kOk)
      return code;
  }
  return StatusCode::kOk;
}

void ModelDatabase::note_insert(ModelTable& table, ModelTransaction& transaction, RowId id,
                                ModelRow row) {
  transaction.own()[&table][table.next_record++] = {false, id, std::move(row), {}};
}

void ModelDatabase::note_update(ModelTable& table, ModelTransaction& transaction,
                                std::uint32_t number, RowId id, ModelRow row) {
  OwnRows& rows = transaction.own()[&table];
  const auto mine = rows.find(number);
  if (mine == rows.end()) {
    table.records.at(number).writer = &transaction;
    rows[number] = {false, id, std::move(row), {}};
    return;
  }
  if (mine->second.id != id) mine->second.superseded.push_back(std::move(mine->second.row));
  mine->second.id = id;
  mine->second.row = std::move(row);
}

void ModelDatabase::note_remove(ModelTable& table, ModelTransaction& transaction,
                                std::uint32_t number) {
  OwnRows& rows = transaction.own()[&table];
  const auto mine = rows.find(number);
  if (mine == rows.end()) {
    table.records.at(number).writer = &transaction;
    rows[number] = {true, RowId(), {}, {}};
    return;
  }
  mine->second.deleted = true;
  mine->second.superseded.push_back(std::move(mine->second.row));
}

}  // namespace flugs::test
