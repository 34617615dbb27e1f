#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/database/database_core.h"

// The model: what a database must hold, and the steps that change it.

namespace flugs::crash {

/// The status for a finding in a database that must not be.
inline Status wrong(std::string what) { return Status(StatusCode::kCorrupt, std::move(what)); }

/// Keeps a string or bytes for ever, so that a Value can refer to them.
std::string_view keep(std::string text);

/// Rows by the integer in their first column, which is unique in each table of these tests.
struct TableRows : std::map<std::int32_t, std::vector<Value>> {
  std::string shape;            ///< shape_of() its schema
  std::vector<Value> defaults;  ///< by column; for rows without a value
};
/// Describes columns and keys of a schema, by name, in words.
std::string shape_of(const TableSchema& schema);
using DatabaseState = std::map<std::string, TableRows>;

struct RowWrite {
  enum class Kind : std::uint8_t { kInsert, kUpdate, kRemove };
  Kind kind;
  std::string table;
  std::int32_t id;
  std::vector<Value> row = {};            // kInsert
  std::vector<ColumnValue> changes = {};  // kUpdate
  bool by_column = false;                 // kInsert: together with those behind it of the table
};
using Writes = std::vector<RowWrite>;

RowWrite insert(std::string table, std::vector<Value> row);
/// Rows of one table, by one call of Transaction::insert_columns.
Writes insert_columns(const std::string& table, const std::vector<std::vector<Value>>& rows);
RowWrite update(std::string table, std::int32_t id, std::vector<ColumnValue> changes);
RowWrite remove(std::string table, std::int32_t id);

/// Gives a table another schema, by one call of the database. The two schemas differ in one name or
/// key, or the new one has one more column, one dropped column, or one column of another type.
struct Alteration {
  std::string table;
  TableSchema to;
};

/// One durable change of a database: a transaction, a table created, altered or dropped, or merged.
struct Step {
  Writes writes = {};
  std::vector<TableSchema> created = {};  ///< by one call
  std::optional<Alteration> altered = {};
  std::string dropped = {};
  std::string merged = {};  ///< merges a table, which no transaction sees; `writes`: meanwhile
  bool renews = false;      ///< the merge rewrites columns, however little they own

  bool creates(std::string_view table) const noexcept {
    return std::any_of(created.begin(), created.end(),
                       [&](const TableSchema& schema) { return schema.name == table; });
  }
  bool does_nothing() const noexcept {
    return writes.empty() && created.empty() && !altered && dropped.empty() && merged.empty();
  }
};

/// Runs steps on a model, and undoes them at the end: one model serves many images.
class ModelSteps {
 public:
  explicit ModelSteps(DatabaseState& state) : state_(state) {}
  ~ModelSteps() { take_back(0); }
  ModelSteps(const ModelSteps&) = delete;
  ModelSteps& operator=(const ModelSteps&) = delete;

  /// False if the model does not allow the step; then nothing has changed.
  bool run(const Step& step);
  bool run(const Writes& writes);
  void keep() noexcept { changes_.clear(); }

 private:
  struct Change {
    enum class Kind : std::uint8_t { kCreated, kAltered, kDropped, kInserted, kUpdated, kRemoved };
    Kind kind;
    std::string created = {};
    std::string table = {};  ///< kAltered: its name and shape before
    std::string shape = {};
    std::vector<Value> defaults = {};
    std::map<std::int32_t, std::vector<Value>> rows_before = {};  ///< if columns changed
    DatabaseState::node_type dropped = {};
    TableRows* rows = nullptr;
    std::int32_t inserted = 0;
    std::vector<Value>* row = nullptr;
    std::vector<Value> before = {};
    TableRows::node_type removed = {};
  };
  bool run(const RowWrite& write);
  bool run(const Alteration& alteration);
  bool run(const std::vector<TableSchema>& created);
  void take_back(std::size_t count_left);

  DatabaseState& state_;
  std::vector<Change> changes_;
};

/// Runs a step for good; false when the model does not allow it.
bool model_step(const Step& step, DatabaseState& state);

/// Reads all that a transaction sees.
Result<DatabaseState> read_state(engine::DatabaseCore& core, const Transaction& transaction);
/// Whether the transaction sees what is expected; makes no copy of it.
Result<bool> sees(engine::DatabaseCore& core, const Transaction& transaction,
                  const DatabaseState& expected);
/// Fails with the first difference, in words.
Status must_see(engine::DatabaseCore& core, const Transaction& transaction,
                const DatabaseState& expected);
/// The first difference, in words; empty when there is none.
std::string difference(const DatabaseState& expected, const DatabaseState& found);
/// used + free + overhead = allocated.
Status check_space(engine::DatabaseCore& core);

}  // namespace flugs::crash
