// Making and dropping tables.

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "engine/database/database_core.h"
#include "tables/catalog/foreign_keys.h"
#include "tables/catalog/schema_codec.h"
#include "tables/table/table_layout.h"

namespace flugs::engine {

namespace {

Status invalid_reference(const TableSchema& schema, const ForeignKeySchema& foreign,
                         const std::string& why) {
  return Status(StatusCode::kInvalidArgument,
                fmt::format("table {}, foreign key {}: {}", schema.name, foreign.name, why));
}

}  // namespace

// What the names in foreign keys mean, as of now.
Status DatabaseCore::resolve_foreign_keys(TableSchema& schema) const {
  for (ForeignKeySchema& foreign : schema.foreign_keys) {
    const TableSchema* parent = foreign.table == schema.name ? &schema : nullptr;
    foreign.referenced.table = TableId(next_table_id_);
    for (const auto& table : owned_tables_) {
      if (parent != nullptr || table->is_dropped() || table->name() != foreign.table) continue;
      parent = &table->schema();
      foreign.referenced.table = table->id();
    }
    if (parent == nullptr)
      return invalid_reference(schema, foreign, fmt::format("no table '{}'", foreign.table));
    const auto key = std::find_if(parent->keys.begin(), parent->keys.end(),
                                  [&](const KeySchema& k) { return k.name == foreign.key; });
    if (key == parent->keys.end())
      return invalid_reference(schema, foreign,
                               fmt::format("table {} has no key '{}'", parent->name, foreign.key));
    foreign.referenced.index = static_cast<std::uint16_t>(key - parent->keys.begin());
    if (Status s = check_reference(schema, foreign, *parent); !s.ok()) return s;
  }
  return {};
}

// Opening: all tables are there.
Status DatabaseCore::link_foreign_keys() {
  for (const auto& table : owned_tables_)
    for (std::size_t i = 0; i < table->schema().foreign_keys.size(); ++i)
      if (Status s = table->references().link(i, [this](TableId id) { return this->table(id); });
          !s.ok())
        return s;
  for (const auto& table : owned_tables_) table->references().name_parents();
  return {};
}

// Protocol create_table. The table exists after step 2.
//   step  store                             made durable by     power cut just after it: recovery
//   1     layout, columns, schema           flush, fence        extent unreachable: free space
//   2     its offset in the catalogue       persist (8 bytes)   loads the empty table
// Must hold:  1 before 2, else the catalogue would name noise.
Result<TableId> DatabaseCore::create_table(const TableSchema& wanted) {
  for (std::size_t i = 0; i < wanted.columns.size(); ++i)
    if (wanted.columns[i].dropped)
      return Status(StatusCode::kInvalidArgument,
                    fmt::format("table {}: column {} is a dropped one", wanted.name, i));
  Result<TableSchema> schema = complete_schema(wanted);
  if (!schema.ok()) return std::move(schema).status();
  std::unique_lock guard(ddl_mutex_);
  // A drop that still waits may yet fail: until it is decided the name is taken.
  for (const auto& table : owned_tables_)
    if (!table->is_gone() && table->name() == schema->name)
      return Status(StatusCode::kAlreadyExists, fmt::format("table {} exists", schema->name));
  if (Status s = resolve_foreign_keys(*schema); !s.ok()) return s;
  const auto full = [&] {
    return Status(StatusCode::kOutOfSpace,
                  fmt::format("{}: {} tables at a time and {} in a pool's life at most",
                              pool_->path(), CatalogLayout::kTablesMax, kTableIdsMax - 1));
  };
  const auto free_place = [&] {
    return std::find(std::begin(catalog().tables), std::end(catalog().tables), 0u);
  };
  if (free_place() == std::end(catalog().tables) || next_table_id_ >= kTableIdsMax) return full();
  pmem::Persister persister(pool_->medium());
  Result<pmem::Extent> extent = make_table_layout(*pool_, *schema, next_table_id_, index_mode(),
                                                  options_.segment_bytes, persister);
  persister.fence("create_table/1");
  if (!extent.ok()) return std::move(extent).status();
  ++next_table_id_;
  auto& layout = *pool_->at(pmem::OffsetPtr<TableLayout>{extent->offset});
  StoredSchema stored;
  stored.created_keys = schema->keys.size();
  stored.schema = std::move(*schema);
  auto made = std::make_unique<Table>(*pool_, layout, std::move(stored));
  made->set_dropped(true);  // nobody finds it so far, but its name is taken
  Table* table = adopt(std::move(made));
  Status s = introduce(*table, guard);
  std::uint64_t* place = free_place();
  if (s.ok() && place == std::end(catalog().tables)) s = full();
  if (!s.ok()) {
    table->references().forget_parents();
    table->set_gone();
    table->release_all();
    pool_->allocator().release(*extent);
    return s;
  }
  std::atomic_ref(*place).store(extent->offset, std::memory_order_relaxed);
  persister.persist(place, sizeof *place, "create_table/2");
  table->set_dropped(false);
  return table->id();
}

// Tells the tables that a new one refers to. Who has deleted rows of them without asking it must
// have ended before it can have rows; who deletes some meanwhile gets kConflict.
Status DatabaseCore::introduce(Table& table, std::unique_lock<Mutex>& guard) {
  bool has_others = false;
  for (std::size_t i = 0; i < table.schema().foreign_keys.size(); ++i) {
    const TableId parent = table.schema().foreign_keys[i].referenced.table;
    has_others |= parent != table.id();
    table.references().add(i, *known_table(parent));
  }
  if (!has_others) return {};
  guard.unlock();  // those we wait for may look tables up before they end
  const bool nobody_is_left = wait_for_transactions();
  guard.lock();
  if (nobody_is_left) return {};
  return Status(StatusCode::kBusy,
                fmt::format("table {}: a transaction that began before it refers to another table "
                            "is still open",
                            table.name()));
}

// A table that others refer to stays.
Status DatabaseCore::check_unreferenced(const Table& table) const {
  if (table.references().referrers() == nullptr) return {};
  for (const ForeignKey* foreign : *table.references().referrers())
    if (&foreign->child != &table)
      return Status(StatusCode::kConstraintViolated,
                    fmt::format("table {}: foreign key {} of table {} refers to it", table.name(),
                                foreign->schema().name, foreign->child.name()));
  return {};
}

// Until no transaction is left whose snapshot is below; not for long.
bool DatabaseCore::wait_for_snapshots(std::uint64_t since,
                                      std::chrono::milliseconds patience) noexcept {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (slots_->oldest_snapshot() < since) {
    if (wait_observer != nullptr) {  // patience is for the clock of the machine
      wait_observer->on_wait();
      continue;
    }
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return true;
}

// Protocol drop_table. The table is gone after step 1.
//   step  store                          made durable by     power cut just after it: recovery
//   1     catalogue entry := 0           persist (8 bytes)   the table's extents are unreachable:
//                                                            free space
// Must hold:  no transaction that could see the table is left before step 1; then the extents may
//             be handed out at once.
Status DatabaseCore::drop_table(TableId id) {
  std::unique_lock guard(ddl_mutex_);
  Table* dropped = table(id);
  if (dropped == nullptr) return no_table();
  if (Status s = check_unreferenced(*dropped); !s.ok()) return s;
  dropped->set_dropped(true);
  // Those we wait for may look tables up, or make and drop others, before they end.
  guard.unlock();
  const std::lock_guard no_merge(dropped->merge_mutex());  // one that runs ends early
  const bool nobody_is_left = wait_for_transactions();
  if (nobody_is_left) dropped->wait_for_build();
  guard.lock();
  if (!nobody_is_left) {
    dropped->set_dropped(false);
    return Status(
        StatusCode::kBusy,
        fmt::format("table {}: a transaction that began earlier is still open", dropped->name()));
  }
  for (std::uint64_t& entry : catalog().tables) {
    if (entry == 0) continue;
    const auto& layout = *pool_->at(pmem::OffsetPtr<TableLayout>{entry});
    if (layout.table_id != id.value()) continue;
    const pmem::Extent extent{entry, layout.bytes};
    pmem::Persister persister(pool_->medium());
    std::atomic_ref(entry).store(0, std::memory_order_relaxed);
    persister.persist(&entry, sizeof entry, "drop_table/1");
    dropped->references().forget_parents();
    dropped->set_gone();
    dropped->release_all();
    pool_->allocator().release(extent);
    break;
  }
  return {};
}

}  // namespace flugs::engine
