// Opening a database: creating it, or recovering it.

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <limits>

#include "base/elapsed.h"
#include "engine/database/database_core.h"
#include "recovery/rebuild_dictionaries.h"
#include "tables/catalog/catalog.h"
#include "tables/catalog/schema_codec.h"
#include "tables/table/table_layout.h"

namespace flugs::engine {

namespace {

// Rows that one task goes through.
constexpr std::uint32_t kRowsPerTask = 1u << 16;
// Fewer are loaded before other threads would have begun.
constexpr std::size_t kTablesWorthThreads = 16;

Status check_options(const OpenOptions& options) {
  if (options.slots_max < 1 || options.slots_max > mvcc::kSlotsMax)
    return Status(StatusCode::kInvalidArgument, fmt::format("slots_max is {}, allowed are 1 to {}",
                                                            options.slots_max, mvcc::kSlotsMax));
  constexpr std::uint32_t kNicenessMax = 19;
  if (options.merge_niceness > kNicenessMax)
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("merge_niceness is {}, allowed are 0 to {}", options.merge_niceness,
                              kNicenessMax));
  constexpr std::chrono::milliseconds kHintIntervalMax = std::chrono::hours(24);
  if (options.hint_interval.count() < 0 || options.hint_interval > kHintIntervalMax)
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("hint_interval is {} ms, allowed are 0 to {}",
                              options.hint_interval.count(), kHintIntervalMax.count()));
  if (options.index_mode != IndexMode::kRebuild && options.index_mode != IndexMode::kHint)
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("index_mode is {}, allowed are 0 and 1",
                              static_cast<unsigned>(options.index_mode)));
  if (options.ready != Ready::kFirstAnswer && options.ready != Ready::kIndexesBuilt)
    return Status(StatusCode::kInvalidArgument, fmt::format("ready is {}, allowed are 0 and 1",
                                                            static_cast<unsigned>(options.ready)));
  if (options.clock > CommitClock::kAutomatic)
    return Status(StatusCode::kInvalidArgument, fmt::format("clock is {}, allowed are 0 to 2",
                                                            static_cast<unsigned>(options.clock)));
  if (options.scm_read_ns != 0 && !pmem::kSeesScmReads)
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("scm_read_ns is {}, but this build of flugs cannot charge reads: use "
                              "one with FLUGS_SCM (cmake --preset scm, build/scm/tools/flugs)",
                              options.scm_read_ns));
  if (options.scm_lines_in_flight == 0)
    return Status(StatusCode::kInvalidArgument, "scm_lines_in_flight is 0, it must be 1 or more");
  if (options.clock == CommitClock::kProcessors)
    if (Status s = mvcc::Clock::check_processors(); !s.ok()) return s;
  return MergeRecord::check(options.merge_policy);
}

pmem::PoolOptions pool_options(const OpenOptions& options) {
  pmem::PoolOptions pool;
  pool.path = options.path;
  pool.max_bytes = options.max_bytes;
  pool.segment_bytes = options.segment_bytes;
  pool.grow_ahead_bytes = options.grow_ahead_bytes;
  pool.latency = {.read_ns = options.scm_read_ns,
                  .write_ns = options.scm_write_ns,
                  .lines_in_flight = options.scm_lines_in_flight,
                  .keeps_lines = options.scm_cache == ScmCache::kProcessor};
  return pool;
}

}  // namespace

Result<std::unique_ptr<DatabaseCore>> DatabaseCore::open(const OpenOptions& options) {
  if (Status s = check_options(options); !s.ok()) return s;
  const auto start = std::chrono::steady_clock::now();
  // Before there are threads: then the kernel need not wait for every processor.
  mvcc::has_membarrier();
  const pmem::PoolOptions wanted = pool_options(options);
  bool created = false;
  Result<std::unique_ptr<pmem::Pool>> pool =
      options.mode == OpenMode::kCreate ? pmem::Pool::create(wanted) : pmem::Pool::open(wanted);
  if (options.mode == OpenMode::kCreate) created = pool.ok();
  if (options.mode == OpenMode::kOpenOrCreate && pool.code() == StatusCode::kNotFound) {
    pool = pmem::Pool::create(wanted);
    created = pool.ok();
    if (pool.code() == StatusCode::kAlreadyExists) pool = pmem::Pool::open(wanted);  // since then
  }
  if (!pool.ok()) return std::move(pool).status();
  const double mapped_us = microseconds_since(start);
  Result<std::unique_ptr<DatabaseCore>> core = open(std::move(*pool), created, options);
  if (core.ok()) {
    RecoveryReport& report = (*core)->report_;
    report.phases.insert(report.phases.begin(), {"map", mapped_us, 1});
    report.total_us += mapped_us;
  }
  return core;
}

Result<std::unique_ptr<DatabaseCore>> DatabaseCore::open(std::unique_ptr<pmem::Pool> pool,
                                                         bool created, const OpenOptions& options,
                                                         OpeningRoom room) {
  if (Status s = check_options(options); !s.ok()) return s;
  std::unique_ptr<DatabaseCore> core(new DatabaseCore(std::move(pool), options));
  core->report_.created = created;
  recovery::ProgressFunction progress;
  if (options.progress)
    progress = [&options](std::string_view phase, std::uint64_t done, std::uint64_t total) {
      options.progress({phase, done, total});
    };
  recovery::Phases phases(core->report_, options.recovery_threads, progress);
  if (Status s = check_root(*core->pool_); !s.ok()) return s;
  // Without the magic a crash interrupted the creation: nothing in the pool is reachable yet.
  const bool is_new = core->root().magic == 0;
  if (is_new && !created) core->pool_->allocator().finish_claims();
  Status s = is_new ? core->create() : core->recover(phases, room);
  if (!s.ok()) return s;
  if (s = phases.run("threads", [&] { return core->start_threads(); }); !s.ok()) return s;
  if (s = core->at_fork_.enter(&DatabaseCore::give_up_in_child, core.get()); !s.ok()) return s;
  phases.finish();
  return core;
}

Result<std::uint64_t> DatabaseCore::start_threads() {
  merger_ = std::make_unique<Merger>(*pool_, *slots_, ddl_mutex_, options_.merge_niceness);
  for (const auto& table : owned_tables_) merger_->watch(*table, options_.merge_policy);
  start_keeping_hints();
  start_sweeping();
  start_warming();
  return std::uint64_t{1} + (hint_keeper_ != nullptr ? 1 : 0) + (warmer_ != nullptr ? 1 : 0) +
         (sweeper_ != nullptr ? 1 : 0);
}

// Protocol create_database. The database exists after step 3.
//   step  store                          made durable by     power cut just after it: recovery
//   1     empty catalogue                flush, fence        creates again: nothing is reachable
//         the root's pointer to it,                          while the magic is 0
//         index_mode
//   2     slot array                     slot_array/2        the same
//   3     magic of the root              persist (8 bytes)   opens the empty database
// Must hold:  1 and 2 before 3.
Status DatabaseCore::create() {
  pmem::Persister persister(pool_->medium());
  Result<pmem::Extent> extent = pool_->allocator().allocate(sizeof(CatalogLayout), persister);
  if (!extent.ok()) return std::move(extent).status();
  root().catalog = extent->offset;
  root().index_mode = static_cast<std::uint64_t>(options_.index_mode);
  persister.flush(&root(), sizeof root(), "create_database/1");
  persister.fence("create_database/1");
  if (Status s = slots_->create(options_.slots_max); !s.ok()) return s;
  std::atomic_ref(root().magic).store(DatabaseLayout::kMagic, std::memory_order_relaxed);
  persister.persist(&root().magic, sizeof root().magic, "create_database/3");
  start();
  return {};
}

Status DatabaseCore::recover(recovery::Phases& phases, OpeningRoom room) {
  found_words_ = std::make_unique<pmem::FoundWords>(*pool_);
  if (Status s = phases.run("catalog", [&] { return load_catalog(phases); }); !s.ok()) return s;
  if (Status s = phases.run("transactions", [&] { return resolve_transactions(); }); !s.ok())
    return s;
  Status s =
      phases.run("dictionary indexes", [&] { return rebuild_dictionary_indexes(phases, room); });
  if (!s.ok()) return s;
  return phases.run("key indexes", [&] { return rebuild_key_indexes(phases); });
}

// Any thread, each another table.
Status DatabaseCore::load_table(std::uint64_t offset, std::unique_ptr<Table>& table) {
  Result<StoredSchema> stored = check_table_layout(*pool_, offset);
  if (!stored.ok()) return std::move(stored).status();
  auto& layout = *pool_->at(pmem::OffsetPtr<TableLayout>{offset});
  const std::string owner = fmt::format("table {}", stored->schema.name);
  if (Status s = pool_->allocator().claim({offset, layout.bytes}, owner); !s.ok()) return s;
  pool_->rely_on(&layout, layout.bytes);
  if (layout.table_id == 0 || layout.table_id >= kTableIdsMax)
    return impossible_id(owner, layout.table_id);
  table = std::make_unique<Table>(*pool_, layout, std::move(*stored));
  return table->load();
}

Status DatabaseCore::impossible_id(const std::string& owner, std::uint32_t id) const {
  return Status(StatusCode::kCorrupt, fmt::format("{}: {}: impossible or repeated table id {}",
                                                  pool_->path(), owner, id));
}

// Of damaged tables the first in the catalogue is reported, whichever thread comes to it first.
Status DatabaseCore::load_tables(recovery::Phases& phases) {
  struct Loaded {
    std::uint64_t offset = 0;
    Status status;
    std::unique_ptr<Table> table;
  };
  std::vector<Loaded> loads;
  for (const std::uint64_t entry : catalog().tables)
    if (entry != 0) loads.push_back({entry, {}, {}});
  if (loads.size() < kTablesWorthThreads) {
    for (Loaded& load : loads)
      if (load.status = load_table(load.offset, load.table); !load.status.ok()) break;
  } else {
    std::vector<std::function<Status()>> tasks;
    tasks.reserve(loads.size());
    for (Loaded& load : loads)
      tasks.emplace_back([this, &load] {
        load.status = load_table(load.offset, load.table);
        return Status();
      });
    if (Status s = phases.run_parallel("catalog", tasks); !s.ok()) return s;
  }
  for (Loaded& load : loads) {
    if (!load.status.ok()) return std::move(load.status);
    const TableId id = load.table->id();
    if (table(id) != nullptr)
      return impossible_id(fmt::format("table {}", load.table->name()), id.value());
    next_table_id_ = std::max(next_table_id_, id.value() + 1);
    adopt(std::move(load.table));
  }
  return {};
}

Result<std::uint64_t> DatabaseCore::load_catalog(recovery::Phases& phases) {
  if (Result<CatalogLayout*> found = find_catalog(*pool_); !found.ok())
    return std::move(found).status();
  if (Status s = pool_->allocator().claim({root().catalog, sizeof(CatalogLayout)}, "catalogue");
      !s.ok())
    return s;
  pool_->rely_on(&catalog(), sizeof catalog());
  if (Status s = load_tables(phases); !s.ok()) return s;
  std::sort(owned_tables_.begin(), owned_tables_.end(),
            [](const auto& a, const auto& b) { return a->id() < b->id(); });
  if (Status s = link_foreign_keys(); !s.ok()) return s;
  return std::uint64_t{owned_tables_.size()};
}

Result<std::uint64_t> DatabaseCore::resolve_transactions() {
  mvcc::TransactionSlots::LoadCounts counts;
  const auto locate = [&](std::uint32_t id, std::uint32_t row) -> mvcc::VersionLayout* {
    const Table* owner = table(TableId(id));
    if (owner == nullptr || !owner->rows().exists(row)) return nullptr;
    return owner->rows().stamped_version(row);
  };
  if (Status s = slots_->load(locate, counts); !s.ok()) return s;
  slots_->forget_all_intents();
  report_.transactions_completed = counts.completed;
  report_.transactions_undone = counts.undone;
  found_words_.reset();
  pool_->allocator().finish_claims();
  // A full pool keeps the slots it has.
  if (Status s = slots_->grow(options_.slots_max); !s.ok() && s.code() != StatusCode::kOutOfSpace)
    return s;
  start();
  return counts.completed + counts.undone;
}

// Finds out what is to be made, and leaves what opening does not take.
Status DatabaseCore::begin_rebuild(OpeningRoom& room) {
  for (const auto& table : owned_tables_) {
    if (Status s = table->index_build().begin_dictionaries(); !s.ok()) return s;
    const DeferredIndexes unbuilt = table->index_build().find_indexes();
    if (!room.takes(unbuilt))
      table->index_build().defer(unbuilt, options_.recovery_threads, *slots_, closing_);
  }
  return {};
}

Result<std::uint64_t> DatabaseCore::rebuild_dictionary_indexes(recovery::Phases& phases,
                                                               OpeningRoom room) {
  if (Status s = begin_rebuild(room); !s.ok()) return s;
  std::vector<columns::Dictionary*> dictionaries;
  for (const auto& table : owned_tables_)
    if (!table->index_build().is_deferred(DeferredIndexes::kDictionaryIndexes))
      table->columns().for_each_used([&](columns::Column& column) {
        if (column.is_dictionary()) dictionaries.push_back(&column.dictionary());
      });
  Result<std::uint64_t> rebuilt =
      recovery::rebuild_dictionaries(dictionaries, *pool_, "dictionary indexes", phases, report_);
  if (!rebuilt.ok() || index_mode() != IndexMode::kHint) return rebuilt;
  const bool has_keeper = options_.hint_interval.count() != 0 || room.is_empty();
  if (has_keeper && !room.takes_hints(*rebuilt)) return rebuilt;
  Status s = recovery::enter_hints(dictionaries, *pool_, "dictionary indexes", phases);
  if (!s.ok()) return s;
  return rebuilt;
}

Status DatabaseCore::sweep_tables(recovery::Phases& phases) {
  struct Swept {
    Table* table;
    std::uint32_t first;
    std::uint32_t end;
    std::vector<std::uint32_t> free;
    RowSweep::Counts counts;
  };
  std::vector<Swept> parts;
  for (const auto& table : owned_tables_) {
    const std::uint32_t end = table->rows().rows_end();
    const bool needs_all = options_.ready == Ready::kIndexesBuilt ||
                           (table->index_build().has_keys_in_dram() &&
                            !table->index_build().is_deferred(DeferredIndexes::kKeyIndexes));
    const std::uint32_t left =
        needs_all ? 0 : table->row_sweep().rows_left_unswept(owned_tables_.size());
    if (left != 0) table->row_sweep().defer(left, *slots_);
    for (std::uint32_t first = left; first < end; first += std::min(kRowsPerTask, end - first))
      parts.push_back({table.get(), first, first + std::min(kRowsPerTask, end - first), {}, {}});
  }
  std::vector<std::function<Status()>> tasks;
  tasks.reserve(parts.size());
  for (Swept& part : parts)
    tasks.emplace_back([&part, this] {
      pmem::Persister persister(pool_->medium());
      Status s = part.table->row_sweep().sweep(part.first, part.end, RowSweep::Moment::kOpening,
                                               *slots_, part.free, persister, part.counts);
      persister.fence("sweep/1");
      return s;
    });
  if (Status s = phases.run_parallel("key indexes", tasks); !s.ok()) return s;
  for (Swept& part : parts) {
    part.table->free_rows().add(std::move(part.free));
    report_.rows_live += part.table->keys().empty() ? 0 : part.counts.live;
    report_.rows_recycled += part.counts.recycled;
  }
  return {};
}

Result<std::uint64_t> DatabaseCore::rebuild_key_indexes(recovery::Phases& phases) {
  pmem::Persister persister(pool_->medium());
  for (const auto& table : owned_tables_)
    for (KeyIndex* key : table->keys()) key->recover(persister);
  if (Status s = sweep_tables(phases); !s.ok()) return s;
  std::vector<std::function<Status()>> ordered;
  for (const auto& owned : owned_tables_) {
    Table* table = owned.get();
    if (table->index_build().is_deferred(DeferredIndexes::kKeyIndexes)) continue;
    for (const std::size_t key : KeyPlaces(table->keys().kept())) {
      if (table->keys()[key]->is_unique() && !table->keys()[key]->has_hints())
        if (Status s = table->index_build().rebuild_hash(key, phases); !s.ok()) return s;
      if (table->keys()[key]->is_ordered())
        ordered.emplace_back([table, key] {
          table->index_build().rebuild_ordered(key);
          return Status();
        });
    }
  }
  if (Status s = phases.run_parallel("key indexes", ordered); !s.ok()) return s;
  return report_.rows_live;
}

}  // namespace flugs::engine
