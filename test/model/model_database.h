#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "flugs/database.h"
#include "test/support/model_value.h"

// A database as it should be: plain maps with all versions that an open snapshot may need. It
// foretells the outcome of every call, as far as one thread with several open transactions goes.

namespace flugs::test {

inline constexpr std::uint64_t kAlive = ~std::uint64_t{0};

/// A committed version of a record, visible to snapshots from `begin` on and before `end`.
struct ModelVersion {
  std::uint64_t begin = 0;
  std::uint64_t end = kAlive;
  RowId id;
  ModelRow row;
};

class ModelTransaction;

struct ModelRecord {
  std::vector<ModelVersion> versions;        // oldest first
  const ModelTransaction* writer = nullptr;  // has updated or deleted the newest version
};

struct ModelKey {
  std::vector<std::size_t> columns;
  std::size_t hashed = 0;
  bool unique = false;
  bool ordered = false;
};

struct ModelTable {
  TableSchema schema;
  TableId id;
  std::vector<ModelKey> keys;
  std::map<std::uint32_t, ModelRecord> records;
  std::uint32_t next_record = 0;
};

/// What one transaction has done to a record.
struct OwnRow {
  bool deleted = false;
  RowId id;
  ModelRow row;
  std::vector<ModelRow> superseded;  // versions that it made and took back: still in the indexes
};

/// A row as a transaction sees it.
struct SeenRow {
  std::uint32_t record;
  RowId id;
  const ModelRow* row;
};

using OwnRows = std::map<std::uint32_t, OwnRow>;

class ModelTransaction {
 public:
  explicit ModelTransaction(std::uint64_t snapshot) : snapshot_(snapshot) {}

  std::uint64_t snapshot() const { return snapshot_; }
  bool has_written() const;
  std::map<const ModelTable*, OwnRows>& own() { return own_; }
  const OwnRows& own_in(const ModelTable& table) const;

  std::optional<SeenRow> see(const ModelTable& table, std::uint32_t record) const;
  std::vector<SeenRow> see_all(const ModelTable& table) const;

 private:
  std::uint64_t snapshot_;
  std::map<const ModelTable*, OwnRows> own_;
};

class ModelDatabase {
 public:
  ModelTable& add_table(const TableSchema& complete_schema, TableId id);
  void drop_table(const ModelTable& table);
  std::vector<std::unique_ptr<ModelTable>>& tables() { return tables_; }

  ModelTransaction* begin(std::uint64_t snapshot);
  void commit(ModelTransaction* transaction, std::uint64_t timestamp);
  void abort(ModelTransaction* transaction);
  /// What the transaction had done is this again.
  void roll_back(ModelTransaction& transaction, const std::map<const ModelTable*, OwnRows>& own);

  /// What the call should return; kOk: then it is to be noted with `note_...`.
  StatusCode foretell_insert(const ModelTable& table, const ModelTransaction& transaction,
                             const ModelRow& row) const;
  StatusCode foretell_change(const ModelTable& table, const ModelTransaction& transaction,
                             std::uint32_t record) const;
  StatusCode foretell_keys(const ModelTable& table, const ModelTransaction& transaction,
                           const SeenRow& old, const ModelRow& row) const;
  void note_insert(ModelTable& table, ModelTransaction& transaction, RowId id, ModelRow row);
  void note_update(ModelTable& table, ModelTransaction& transaction, std::uint32_t record, RowId id,
                   ModelRow row);
  void note_remove(ModelTable& table, ModelTransaction& transaction, std::uint32_t record);

 private:
  StatusCode judge(const ModelTable& table, const ModelKey& key,
                   const ModelTransaction& transaction, const ModelRow& row) const;
  StatusCode judge_in_flight(const ModelTable& table, const ModelKey& key,
                             const ModelTransaction& transaction, const ModelRow& row) const;
  void forget(ModelTransaction* transaction);
  void prune();

  std::vector<std::unique_ptr<ModelTable>> tables_;
  std::vector<std::unique_ptr<ModelTransaction>> open_;
};

bool same_key(const ModelKey& key, const ModelRow& a, const ModelRow& b);
bool key_has_null(const ModelKey& key, const ModelRow& row);
/// The row's first key columns against `values`.
int compare_key(const ModelKey& key, const ModelRow& row, std::span<const ModelValue> values);

}  // namespace flugs::test
