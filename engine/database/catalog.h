#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/stable_array.h"
#include "engine/database/background_threads.h"
#include "engine/database/transaction_manager.h"
#include "flugs/schema.h"
#include "pmem/pool/pool.h"
#include "tables/catalog/catalog.h"
#include "tables/table/table.h"

namespace flugs::engine {

/// The tables of a database: makes, drops, finds and owns them.
///
/// Invariants:
/// * The catalogue in the pool names a table exactly while the table exists. It is written under
///   `ddl_mutex()`, and so is the list of tables.
/// * No table id is given to two tables in the life of a pool.
/// * A table that was dropped keeps its place in DRAM, emptied, until the database is closed. So
///   `table` needs no lock, and a pointer to a table stays good.
///
/// Thread-safety: any thread, except `add_loaded` and `finish_loading`.
class Catalog final {
 public:
  static constexpr std::uint32_t kTableIdsMax = 1u << 22;  // creations in a pool's life
  static_assert(CatalogLayout::kTablesMax < kTableIdsMax);

  /// All are used until the object is gone. The pool grows by `segment_bytes`.
  Catalog(pmem::Pool& pool, TransactionManager& transactions, BackgroundThreads& threads,
          std::uint64_t segment_bytes)
      : pool_(pool),
        transactions_(transactions),
        threads_(threads),
        segment_bytes_(segment_bytes),
        tables_by_id_(kTableIdsMax) {}

  /// Protects the catalogue, the list of tables and their definitions; rank: outermost.
  Mutex& ddl_mutex() const noexcept { return ddl_mutex_; }
  /// Null when there is no such table or it was dropped.
  [[gnu::always_inline]] Table* table(TableId id) const noexcept {
    Table* found = known_table(id);
    return found == nullptr || found->is_dropped() ? nullptr : found;
  }
  const StableArray<Table*>& tables_by_id() const noexcept { return tables_by_id_; }
  /// With dropped tables. Under `ddl_mutex()`, or while no tables are made.
  std::span<const std::unique_ptr<Table>> all() const noexcept { return owned_tables_; }
  Result<TableId> find_table(std::string_view name) const;
  std::vector<TableId> tables() const;

  /// Finds what a foreign key of a table with this schema and id refers to, by the names of now.
  /// Under `ddl_mutex()`. Fails with kInvalidArgument.
  Status resolve(const TableSchema& schema, TableId self, ForeignKeySchema& foreign) const {
    return resolve(schema, self, foreign, {});
  }

  Result<TableId> create_table(const TableSchema& schema);
  /// All of them, or none. A schema may refer to tables that stand before it.
  Result<std::vector<TableId>> create_tables(std::span<const TableSchema> schemas);
  Status drop_table(TableId id);

  /// Opening: a table of the pool. Its id is in order, and no other table has it.
  void add_loaded(std::unique_ptr<Table> table);
  /// Opening, when all have been added.
  Status finish_loading();

  /// Keeps some hints of each table; true: there is more to do. Other threads need the catalogue
  /// meanwhile: call it again only after a pause.
  bool keep_hints(pmem::Persister& persister) noexcept;
  /// Enters the hints that opening left, of all dictionaries, as far as there is space for them.
  void enter_left_hints();

  /// Called when the database is being closed: long work ends early.
  void close() noexcept { closing_.store(true, std::memory_order_relaxed); }
  const std::atomic<bool>& is_closing() const noexcept { return closing_; }

 private:
  /// A table that is being made: `is_dropped` until it exists.
  struct NewTable {
    Table* table;
    pmem::Extent extent;
  };

  IndexPlace index_place() const noexcept {
    return static_cast<IndexPlace>(root_of(pool_).index_place);
  }
  CatalogLayout& catalog_layout() const noexcept {
    return *pool_.at(pmem::OffsetPtr<CatalogLayout>{root_of(pool_).catalog});
  }
  Table* known_table(TableId id) const noexcept {
    if (id.value() >= kTableIdsMax) return nullptr;
    return __atomic_load_n(&tables_by_id_[id.value()], __ATOMIC_ACQUIRE);
  }
  Table* adopt(std::unique_ptr<Table> table);
  static Status check_new(const TableSchema& wanted, std::span<const TableSchema> before);
  bool is_taken(std::string_view name) const noexcept;
  bool has_places_for(std::size_t tables) const noexcept;
  Status full() const;
  Status resolve(const TableSchema& schema, TableId self, ForeignKeySchema& foreign,
                 std::span<const NewTable> made) const;
  Status make_tables(std::vector<TableSchema>&& schemas, std::vector<NewTable>& made,
                     pmem::Persister& persister);
  Status link_foreign_keys();
  Status introduce(std::span<const NewTable> made, std::unique_lock<Mutex>& guard);
  Status enter_in_catalogue(std::span<const NewTable> made, pmem::Persister& persister);
  Status replace_catalogue(std::span<const NewTable> made, pmem::Persister& persister);
  void take_back(std::span<const NewTable> made);
  Status check_unreferenced(const Table& table) const;

  pmem::Pool& pool_;
  TransactionManager& transactions_;
  BackgroundThreads& threads_;
  const std::uint64_t segment_bytes_;
  std::atomic<bool> closing_{false};
  mutable Mutex ddl_mutex_;
  std::vector<std::unique_ptr<Table>> owned_tables_;  // with dropped ones, emptied
  StableArray<Table*> tables_by_id_;
  std::uint32_t next_table_id_ = 1;
};

}  // namespace flugs::engine
