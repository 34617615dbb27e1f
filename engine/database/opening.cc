#include "engine/database/opening.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "recovery/rebuild_dictionaries.h"
#include "tables/catalog/catalog.h"
#include "tables/catalog/schema_codec.h"
#include "tables/data/table_layout.h"

namespace flugs::engine {

namespace {

// Rows per task.
constexpr std::uint32_t kRowsPerTask = 1u << 16;
// Fewer tables are loaded before other threads have started.
constexpr std::size_t kTablesWorthThreads = 16;

}  // namespace

// Protocol create_database. The database exists after step 3.
//   step  store                          made durable by     power cut just after it: recovery
//   1     empty catalogue                flush, fence        creates again: nothing is reachable
//         the root's pointer to it,                          while the magic is 0
//         index_place
//   2     slot array                     slot_array/2        the same
//   3     magic of the root              persist (8 bytes)   opens the empty database
// Must hold:  1 and 2 before 3.
Status Opening::create() {
  FLUGS_CHECK(catalog_.all().empty());
  pmem::Persister persister(pool_.medium());
  Result<pmem::Extent> extent = pool_.allocator().allocate(sizeof(CatalogLayout), persister);
  if (!extent.ok()) return std::move(extent).status();
  root().catalog = extent->offset;
  root().index_place = static_cast<std::uint64_t>(options_.index_place);
  persister.flush(&root(), sizeof root(), "create_database/1");
  persister.fence("create_database/1");
  if (Status s = slots().create(options_.slots_max); !s.ok()) return s;
  std::atomic_ref(root().magic).store(DatabaseLayout::kMagic, std::memory_order_relaxed);
  persister.persist(&root().magic, sizeof root().magic, "create_database/3");
  if (Status s = persister.wait_durable(); !s.ok()) return s;
  start_transactions();
  return {};
}

Status Opening::recover() {
  FLUGS_CHECK(found_words_ == nullptr && catalog_.all().empty());
  found_words_ = std::make_unique<pmem::FoundWords>(pool_);
  if (Status s = phases_.run("catalog", [&] { return load_catalog(); }); !s.ok()) return s;
  if (Status s = phases_.run("transactions", [&] { return resolve_transactions(); }); !s.ok())
    return s;
  Status s = phases_.run("dictionary indexes", [&] { return rebuild_dictionary_indexes(); });
  if (!s.ok()) return s;
  return phases_.run("key indexes", [&] { return rebuild_key_indexes(); });
}

// Thread-safety: any thread, each with its own table.
Status Opening::load_table(std::uint64_t offset, std::unique_ptr<Table>& table) {
  Result<StoredSchema> stored = check_table_layout(pool_, offset);
  if (!stored.ok()) return std::move(stored).status();
  auto& layout = *pool_.at(pmem::OffsetPtr<TableLayout>{offset});
  const std::string owner = fmt::format("table {}", stored->schema.name);
  if (Status s = pool_.allocator().claim({offset, layout.bytes}, owner); !s.ok()) return s;
  pool_.rely_on(&layout, layout.bytes);
  if (layout.table_id == 0 || layout.table_id >= Catalog::kTableIdsMax)
    return impossible_id(owner, layout.table_id);
  table = std::make_unique<Table>(pool_, layout, std::move(*stored));
  return table->load();
}

Status Opening::impossible_id(const std::string& owner, std::uint32_t id) const {
  return Status(StatusCode::kCorrupt,
                fmt::format("{}: {}: impossible or repeated table id {}", pool_.path(), owner, id));
}

// If tables are damaged, the first of them in the catalogue is reported, whichever thread finds
// damage first.
Status Opening::load_tables() {
  FLUGS_CHECK(found_words_ != nullptr);  // for those that tables claim
  struct Loaded {
    std::uint64_t offset = 0;
    Status status;
    std::unique_ptr<Table> table;
  };
  std::vector<Loaded> loads;
  for (const std::uint64_t entry : catalog_layout().tables)
    if (entry != 0) loads.push_back({entry, {}, {}});
  if (loads.size() < kTablesWorthThreads) {
    for (Loaded& load : loads) {
      if (Status s = phases_.stopped(); !s.ok()) return s;
      if (load.status = load_table(load.offset, load.table); !load.status.ok()) break;
    }
  } else {
    std::vector<std::function<Status()>> tasks;
    tasks.reserve(loads.size());
    for (Loaded& load : loads)
      tasks.emplace_back([this, &load] {
        load.status = load_table(load.offset, load.table);
        return Status();
      });
    if (Status s = phases_.run_parallel("catalog", tasks); !s.ok()) return s;
  }
  for (Loaded& load : loads) {
    if (!load.status.ok()) return std::move(load.status);
    FLUGS_CHECK(load.table != nullptr);
    const TableId id = load.table->id();
    if (catalog_.table(id) != nullptr)
      return impossible_id(fmt::format("table {}", load.table->name()), id.value());
    catalog_.add_loaded(std::move(load.table));
  }
  return {};
}

Result<std::uint64_t> Opening::load_catalog() {
  if (Result<CatalogLayout*> found = find_catalog(pool_); !found.ok())
    return std::move(found).status();
  if (Status s = pool_.allocator().claim({root().catalog, sizeof(CatalogLayout)}, "catalogue");
      !s.ok())
    return s;
  pool_.rely_on(&root().catalog, sizeof root().catalog);
  pool_.rely_on(&catalog_layout(), sizeof catalog_layout());
  if (Status s = load_tables(); !s.ok()) return s;
  if (Status s = catalog_.finish_loading(); !s.ok()) return s;
  return std::uint64_t{catalog_.all().size()};
}

Result<std::uint64_t> Opening::resolve_transactions() {
  mvcc::TransactionSlots::LoadCounts counts;
  const auto locate = [&](std::uint32_t id, std::uint32_t row) -> mvcc::VersionLayout* {
    const Table* owner = catalog_.table(TableId(id));
    if (owner == nullptr || !owner->rows().exists(row)) return nullptr;
    return owner->rows().stamped_version(row);
  };
  if (Status s = slots().load(locate, counts); !s.ok()) return s;
  slots().forget_all_intents();
  report_.transactions_completed = counts.completed;
  report_.transactions_undone = counts.undone;
  FLUGS_CHECK(found_words_ != nullptr);
  found_words_.reset();
  pool_.allocator().finish_claims();
  // A full pool keeps the slots it has.
  if (Status s = slots().grow(options_.slots_max); !s.ok() && s.code() != StatusCode::kOutOfSpace)
    return s;
  start_transactions();
  return counts.completed + counts.undone;
}

// Finds out which indexes must be made, and leaves for later those that opening does not make
// itself.
Status Opening::begin_rebuild() {
  FLUGS_CHECK(found_words_ == nullptr);  // all extents have been claimed
  for (const auto& table : catalog_.all()) {
    if (Status s = table->index_build().begin_dictionaries(); !s.ok()) return s;
    const DeferredIndexes deferred = table->index_build().find_indexes();
    if (!budget_.takes(deferred))
      table->index_build().defer(deferred, options_.tuning.recovery_threads, slots(),
                                 catalog_.is_closing());
  }
  return {};
}

Result<std::uint64_t> Opening::rebuild_dictionary_indexes() {
  if (Status s = begin_rebuild(); !s.ok()) return s;
  std::vector<columns::Dictionary*> dictionaries;
  for (const auto& table : catalog_.all())
    if (!table->index_build().is_deferred(DeferredIndexes::kDictionaryIndexes))
      table->columns().for_each_used([&](columns::Column& column) {
        if (column.is_dictionary()) dictionaries.push_back(&column.dictionary());
      });
  Result<std::uint64_t> rebuilt =
      recovery::rebuild_dictionaries(dictionaries, pool_, "dictionary indexes", phases_, report_);
  if (!rebuilt.ok() || !has_hints()) return rebuilt;
  const bool has_keeper = options_.tuning.hint_interval.count() != 0 || budget_.is_empty();
  if (has_keeper && !budget_.takes_hints(*rebuilt)) return rebuilt;
  Status s = recovery::enter_hints(dictionaries, pool_, "dictionary indexes", phases_);
  if (!s.ok()) return s;
  return rebuilt;
}

Status Opening::sweep_tables() {
  struct Swept {
    Table* table;
    std::uint32_t first;
    std::uint32_t end;
    std::vector<std::uint32_t> free;
    RowSweep::Counts counts;
  };
  std::vector<Swept> parts;
  for (const auto& table : catalog_.all()) {
    const std::uint32_t end = table->rows().rows_end();
    const bool needs_all = options_.ready == Ready::kIndexesBuilt ||
                           (table->index_build().has_keys_in_dram() &&
                            !table->index_build().is_deferred(DeferredIndexes::kKeyIndexes));
    const std::uint32_t left =
        needs_all ? 0 : table->row_sweep().rows_left_unswept(catalog_.all().size());
    FLUGS_CHECK(left <= end);
    if (left != 0) table->row_sweep().defer(left, slots());
    for (std::uint32_t first = left; first < end; first += std::min(kRowsPerTask, end - first))
      parts.push_back({table.get(), first, first + std::min(kRowsPerTask, end - first), {}, {}});
  }
  std::vector<std::function<Status()>> tasks;
  tasks.reserve(parts.size());
  for (Swept& part : parts)
    tasks.emplace_back([&part, this] {
      FLUGS_DCHECK(part.first < part.end);
      pmem::Persister persister(pool_.medium());
      Status s = part.table->row_sweep().sweep(part.first, part.end, RowSweep::Moment::kOpening,
                                               slots(), part.free, persister, part.counts);
      persister.fence("sweep/1");
      return s;
    });
  if (Status s = phases_.run_parallel("key indexes", tasks); !s.ok()) return s;
  for (Swept& part : parts) {
    part.table->free_rows().add(std::move(part.free));
    report_.rows_live += part.table->keys().empty() ? 0 : part.counts.live;
    report_.rows_recycled += part.counts.recycled;
  }
  return {};
}

Result<std::uint64_t> Opening::rebuild_key_indexes() {
  pmem::Persister persister(pool_.medium());
  for (const auto& table : catalog_.all())
    for (KeyIndex* key : table->keys()) key->entries().recover(persister);
  if (Status s = sweep_tables(); !s.ok()) return s;
  std::vector<std::function<Status()>> ordered;
  for (const auto& owned : catalog_.all()) {
    Table* table = owned.get();
    if (table->index_build().is_deferred(DeferredIndexes::kKeyIndexes)) continue;
    for (const std::size_t key : KeySet(table->keys().kept())) {
      KeyEntries& entries = table->keys()[key]->entries();
      if (Status s = entries.rebuild_hashed(phases_, "key indexes"); !s.ok()) return s;
      if ((entries.made_at_opening() & DeferredIndexes::kOrderedIndexes) != 0)
        ordered.emplace_back([&entries] {
          entries.rebuild_ordered();
          return Status();
        });
    }
  }
  if (Status s = phases_.run_parallel("key indexes", ordered); !s.ok()) return s;
  return report_.rows_live;
}

}  // namespace flugs::engine
