#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "engine/database/catalog.h"
#include "engine/database/opening_budget.h"
#include "engine/database/transaction_manager.h"
#include "flugs/database.h"
#include "flugs/recovery_report.h"
#include "pmem/pool/found_words.h"
#include "pmem/pool/pool.h"
#include "recovery/phases.h"
#include "tables/catalog/key_kinds.h"

namespace flugs::engine {

/// One opening of a database: creates it in an empty pool, or recovers it (docs/recovery.md). Long
/// work is left to the threads of the database.
///
/// Invariants:
/// * Recovery claims every extent that the catalogue reaches, before anything is allocated.
/// * No transaction is open, and no thread of the database runs, before it returns.
/// * It may be cut short anywhere and simply run again.
///
/// Thread-safety: one thread; it shares its work out itself.
class Opening final {
 public:
  /// All are used until the object is gone; the rest of what it needs to know is in `options`.
  Opening(pmem::Pool& pool, const OpenOptions& options, TransactionManager& transactions,
          Catalog& catalog, recovery::Phases& phases, RecoveryReport& report,
          OpeningBudget budget) noexcept
      : pool_(pool),
        options_(options),
        transactions_(transactions),
        catalog_(catalog),
        phases_(phases),
        report_(report),
        budget_(budget) {}

  /// An empty pool becomes an empty database.
  Status create();
  Status recover();

 private:
  mvcc::TransactionSlots& slots() noexcept { return transactions_.slots(); }
  DatabaseLayout& root() const noexcept { return root_of(pool_); }
  CatalogLayout& catalog_layout() const noexcept {
    return *pool_.at(pmem::OffsetPtr<CatalogLayout>{root().catalog});
  }
  bool has_hints() const noexcept {
    return is_in_pool(static_cast<IndexPlace>(root().index_place));
  }
  void start_transactions() {
    transactions_.start(options_.slots_max, catalog_.ddl_mutex(), catalog_.tables_by_id());
  }

  Result<std::uint64_t> load_catalog();
  Status load_tables();
  Status load_table(std::uint64_t offset, std::unique_ptr<Table>& table);
  Status impossible_id(const std::string& owner, std::uint32_t id) const;
  Result<std::uint64_t> resolve_transactions();
  Status begin_rebuild();
  Result<std::uint64_t> rebuild_dictionary_indexes();
  Status sweep_tables();
  Result<std::uint64_t> rebuild_key_indexes();

  pmem::Pool& pool_;
  const OpenOptions& options_;
  TransactionManager& transactions_;
  Catalog& catalog_;
  recovery::Phases& phases_;
  RecoveryReport& report_;
  OpeningBudget budget_;
  std::unique_ptr<pmem::FoundWords> found_words_;  // while opening claims what it reaches
};

}  // namespace flugs::engine
