#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "flugs/database.h"
#include "test/model/outcomes.h"
#include "test/support/model_value.h"

// The expected database: records with all versions that an open snapshot may need. It predicts the
// outcome of every call for one thread with several open transactions.
//
// Statements run first in the model and then in the database. The model does not know the RowId of
// a new version: it is set afterwards (ModelDatabase::settle).

namespace flugs::test {

inline constexpr std::uint64_t kAlive = ~std::uint64_t{0};
/// RowId of a version before it is known.
inline constexpr RowId kUnknownRow{~std::uint32_t{0}};

class ModelTransaction;

/// A committed version of a record, visible to snapshots from `begin` on and before `end`.
struct ModelVersion {
  std::uint64_t begin = 0;
  std::uint64_t end = kAlive;
  RowId id;
  ModelRow row;
};

/// The record's state within the transaction that writes it.
struct OwnRow {
  bool deleted = false;
  RowId id;
  ModelRow row;
  std::vector<ModelRow> superseded;  ///< versions that it made and replaced: still in the indexes
};

struct ModelRecord {
  std::vector<ModelVersion> versions;        ///< oldest first; none: inserted by `writer`
  ModelTransaction* writer = nullptr;        ///< has inserted, updated or deleted it
  const ModelTransaction* locker = nullptr;  ///< has locked it
  OwnRow own;                                ///< of the writer
  std::vector<std::pair<std::uint16_t, std::uint64_t>> entries = {};  ///< in ModelTable::indexes
  std::size_t place = 0;                                              ///< in ModelTable::records
  bool waits_for_pruning = false;
};

struct ModelKey {
  std::vector<std::size_t> columns;
  std::size_t hashed = 0;
  bool unique = false;
  bool ordered = false;
  bool dropped = false;
};

struct ModelTable;

struct ModelForeignKey {
  std::vector<std::size_t> columns;
  ModelTable* parent = nullptr;
  std::size_t parent_key = 0;
  std::size_t child_key = 0;  ///< its rows are found by this key
  ReferenceAction on_delete = ReferenceAction::kRestrict;
  ReferenceAction on_update = ReferenceAction::kRestrict;
};

struct ModelTable {
  TableSchema schema;  ///< as it is now
  TableId id;
  std::vector<ModelKey> keys;
  std::vector<ModelForeignKey> foreign_keys;
  std::vector<std::pair<ModelTable*, std::size_t>> referrers;  ///< table and foreign key of it
  std::vector<std::unique_ptr<ModelRecord>> records;
  /// For unique keys: records that have or had a row with the hash of the key's values.
  std::vector<std::unordered_multimap<std::uint64_t, ModelRecord*>> indexes;
  std::set<std::int64_t> numbers;   ///< that its auto-increment column was given
  std::size_t columns_created = 0;  ///< rows may have only these columns
  std::uint64_t changed_at = 0;     ///< the latest commit that wrote to it
  bool had_rows = false;            ///< an insert was attempted

  bool is_related() const { return !foreign_keys.empty() || !referrers.empty(); }
  std::size_t columns_there() const;
};

/// A row as a transaction sees it.
struct SeenRow {
  ModelRecord* record;
  RowId id;
  const ModelRow* row;
};

/// One write of a transaction, and how to undo it.
struct ModelWrite {
  ModelTable* table;
  ModelRecord* record;
  bool had_writer;              ///< the transaction had written the record before
  OwnRow before;                ///< then this was the record's state
  std::optional<ModelRow> old;  ///< what was replaced or deleted, in tables with foreign keys
  std::optional<ModelRow> made;
};

class ModelTransaction {
 public:
  ModelTransaction(std::uint64_t snapshot, Isolation isolation, bool read_only)
      : snapshot_(snapshot), isolation_(isolation), read_only_(read_only) {}

  std::uint64_t snapshot() const { return snapshot_; }
  Isolation isolation() const { return isolation_; }
  bool is_read_only() const { return read_only_; }
  bool has_written() const { return !writes_.empty(); }

 private:
  friend class ModelDatabase;
  struct Mark {
    std::size_t writes;
    std::size_t locks;
  };
  std::uint64_t snapshot_;
  Isolation isolation_;
  bool read_only_;
  bool may_conflict_ = false;  // a serializable one: a schema that it may have read by has changed
  std::vector<ModelWrite> writes_;
  std::vector<ModelRecord*> locks_;
  std::vector<Mark> savepoints_;
  std::set<const ModelTable*> touched_;
  std::vector<std::pair<const ModelTable*, ModelRecord*>> found_;
};

class ModelDatabase {
 public:
  ModelTable& add_table(const TableSchema& complete_schema, TableId id);
  void drop_table(const ModelTable& table);
  std::vector<std::unique_ptr<ModelTable>>& tables() { return tables_; }
  ModelTable* find_table(TableId id);

  // Transactions.
  ModelTransaction* begin(std::uint64_t snapshot, Isolation isolation, bool read_only);
  Outcomes foretell_commit(const ModelTransaction& transaction) const;
  void commit(ModelTransaction* transaction, std::uint64_t timestamp);
  void abort(ModelTransaction* transaction);
  void add_savepoint(ModelTransaction& transaction);
  void roll_back_to(ModelTransaction& transaction, std::size_t savepoint);
  void release(ModelTransaction& transaction, std::size_t savepoint);
  std::uint64_t now() const { return now_; }
  bool has_open() const { return !open_.empty(); }

  // What a transaction sees.
  std::optional<SeenRow> see(const ModelTransaction& transaction, ModelRecord& record) const;
  std::vector<SeenRow> see_all(const ModelTransaction& transaction, const ModelTable& table) const;
  /// By a unique key; for keys with NULL any row.
  std::vector<SeenRow> find(const ModelTransaction& transaction, ModelTable& table, std::size_t key,
                            std::span<const ModelValue> values) const;
  /// At its commit, a serializable transaction answers for its reads.
  void note_read(ModelTransaction& transaction, const ModelTable& table,
                 ModelRecord* record = nullptr) const;

  // Statements. A statement that must succeed is already applied, and its writes wait for their
  // RowIds. Untold: the effect of its cascades depends on the order in which they reach rows.
  Outcomes insert(ModelTransaction& transaction, ModelTable& table, std::vector<ModelRow> rows);
  /// By Transaction::insert_columns, which may meet a key that is taken before a value of a later
  /// row that does not fit.
  Outcomes insert_by_column(ModelTransaction& transaction, ModelTable& table,
                            std::vector<ModelRow> rows);
  /// `named`: the columns that the call names. `row`: the whole row as it will be.
  Outcomes update(ModelTransaction& transaction, ModelTable& table, const SeenRow& seen,
                  const std::vector<std::size_t>& named, const ModelRow& row);
  Outcomes remove(ModelTransaction& transaction, ModelTable& table,
                  const std::vector<SeenRow>& rows);
  Outcomes lock(ModelTransaction& transaction, const SeenRow& seen);
  /// Versions without a RowId, in the order in which they were written.
  const std::vector<std::pair<ModelTable*, ModelRecord*>>& unsettled() const { return unsettled_; }
  void settle(ModelTable& table, ModelRecord& record, RowId id);
  void settle_number(ModelTable& table, ModelRecord& record, std::size_t column, std::int64_t raw);
  void all_settled() { unsettled_.clear(); }

  // Changes of an existing table, which the database has already made.
  void add_column(ModelTable& table, const ColumnSchema& column, const ModelValue& value);
  void drop_column(ModelTable& table, std::size_t column);
  void change_type(ModelTable& table, std::size_t column, Type type);
  void add_key(ModelTable& table, std::size_t place, const KeySchema& key);
  void drop_key(ModelTable& table, std::size_t place);
  /// Its key is there; `referenced` says what it refers to.
  void add_foreign_key(ModelTable& table, const ForeignKeySchema& foreign);
  void drop_foreign_key(ModelTable& table, std::size_t number);
  void rename_column(ModelTable& table, std::size_t column, const std::string& name);
  void rename_key(ModelTable& table, std::size_t place, const std::string& name);
  void rename_table(ModelTable& table, const std::string& name);
  /// A serializable transaction that has read the table may fail at its commit.
  void note_schema_change(const ModelTable& table);
  /// Foreign keys find their rows by the first suitable key, chosen at opening.
  void note_opening();
  /// Whether a row that exists has NULL in the column, breaks the check (as the database completed
  /// it), or refers to none.
  bool has_null(const ModelTable& table, std::size_t column) const;
  bool breaks(const ModelTable& table, const Condition& condition) const;
  bool lacks_parent(const ModelTable& table, const std::vector<std::size_t>& columns,
                    const ModelTable& parent, std::size_t parent_key) const;
  /// Whether two existing rows have the same values of these columns, without NULLs.
  bool has_duplicates(const ModelTable& table, const std::vector<std::size_t>& columns) const;

 private:
  struct Replaced {
    ModelTable* table;
    ModelRecord* record;
    RowId id;
    ModelRow row;
  };
  Outcomes judge(ModelTable& table, std::size_t key, const ModelTransaction& transaction,
                 const ModelRow& row);
  Outcomes judge_keys(ModelTable& table, const ModelTransaction& transaction, const ModelRow* old,
                      const ModelRow& row);
  void note_key_owner(ModelTransaction& transaction, const ModelTable& table, Outcomes judged);
  Outcomes judge_change(const ModelTransaction& transaction, const ModelRecord& record) const;
  Outcomes change_row(ModelTransaction& transaction, ModelTable& table, const SeenRow& seen,
                      const std::vector<std::size_t>& named, const ModelRow& row);
  Outcomes remove_row(ModelTransaction& transaction, ModelTable& table, const SeenRow& seen);
  /// A row that cascades reach.
  struct Reached {
    std::size_t from;      ///< the write that reaches it first
    bool several = false;  ///< other writes reach it, too
    bool changes = false;  ///< one of them changes the row instead of deleting it
  };
  using ReachedRows = std::map<const ModelRecord*, Reached>;
  Outcomes finish_statement(ModelTransaction& transaction, std::size_t first_write);
  Outcomes act_on_children(ModelTransaction& transaction, std::size_t first_write,
                           std::size_t write);
  static bool changes_once_more(const ModelTransaction& transaction, std::size_t first_write,
                                const SeenRow& seen, const ModelRow& row);
  void note_reached(const ModelTransaction& transaction, std::size_t first_write,
                    std::size_t cascades_begin, std::size_t write, ReachedRows& reached) const;
  bool references_hold(const ModelTransaction& transaction, std::size_t first_write,
                       std::uint64_t snapshot) const;
  bool has_row(const ModelTransaction& transaction, const ModelTable& table, std::size_t key,
               std::span<const ModelValue> values, std::uint64_t snapshot) const;
  std::vector<SeenRow> children(const ModelTransaction& transaction, const ModelTable& child,
                                const ModelForeignKey& foreign, std::span<const ModelValue> values,
                                std::uint64_t snapshot) const;
  std::optional<SeenRow> see_at(const ModelTransaction& transaction, ModelRecord& record,
                                std::uint64_t snapshot) const;
  std::uint64_t snapshot_of(const ModelTransaction& transaction) const;
  ModelWrite& begin_write(ModelTransaction& transaction, ModelTable& table, ModelRecord& record);
  void undo_since(ModelTransaction& transaction, std::size_t writes);
  void unlock_since(ModelTransaction& transaction, std::size_t locks);
  ModelRecord& add_record(ModelTable& table);
  void remove_record(ModelTable& table, ModelRecord& record);
  void enter(ModelTable& table, ModelRecord& record, const ModelRow& row);
  void enter_again(ModelTable& table, ModelRecord& record);
  void forget(ModelTransaction* transaction);
  void prune();
  template <typename Change>
  void change_rows(ModelTable& table, Change&& change);

  std::vector<std::unique_ptr<ModelTable>> tables_;
  std::vector<std::unique_ptr<ModelTransaction>> open_;
  std::vector<std::pair<ModelTable*, ModelRecord*>> unsettled_;
  std::vector<Replaced> replaced_;  // by what is unsettled
  std::vector<std::pair<ModelTable*, ModelRecord*>> to_prune_;
  ModelRecord* key_owner_ = nullptr;  // of the key because of which a row was refused last
  std::uint64_t now_ = 0;
};

inline ColumnId column_id(std::size_t column) {
  return ColumnId(static_cast<std::uint16_t>(column));
}
inline KeyId key_id(const ModelTable& table, std::size_t key) {
  return {table.id, static_cast<std::uint16_t>(key)};
}
inline bool is_integer(Type type) { return type == Type::kInt32 || type == Type::kInt64; }
inline bool is_number(Type type) { return is_integer(type) || type == Type::kDecimal; }
inline bool is_text(Type type) { return type == Type::kString || type == Type::kBytes; }
/// Views, valid as long as the row.
std::vector<Value> values_of(const ModelRow& row);

bool same_key(const ModelKey& key, const ModelRow& a, const ModelRow& b);
bool key_has_null(const ModelKey& key, const ModelRow& row);
/// Compares the row's first key columns with `values`.
int compare_key(const ModelKey& key, const ModelRow& row, std::span<const ModelValue> values);
ModelRow key_of(const std::vector<std::size_t>& columns, const ModelRow& row);
/// Hash of a key's values, in the key's order.
std::uint64_t hash_key(std::span<const ModelValue> values);
/// The column of that name; the number of columns if there is none.
std::size_t position_of(const TableSchema& schema, const std::string& column);
/// Whether the check passes, with SQL's three truth values.
bool holds(const TableSchema& schema, const Condition& condition, const ModelRow& row);
/// Whether a check of the schema uses the column.
bool looks_at(const TableSchema& schema, const Condition& condition, std::size_t column);
/// ok, or the reason why values are refused independently of other rows: NULL, or a check. With
/// `named`, only checks of these columns are evaluated.
Outcomes judge_values(const ModelTable& table, const ModelRow& row,
                      const std::vector<std::size_t>* named = nullptr);

}  // namespace flugs::test
