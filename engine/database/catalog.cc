#include "engine/database/catalog.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "base/check.h"
#include "tables/catalog/foreign_keys.h"
#include "tables/catalog/schema_codec.h"
#include "tables/data/table_hints.h"
#include "tables/data/table_layout.h"

namespace flugs::engine {

namespace {

Status invalid_reference(const TableSchema& schema, const ForeignKeySchema& foreign,
                         const std::string& why) {
  return Status(StatusCode::kInvalidArgument,
                fmt::format("table {}, foreign key {}: {}", schema.name, foreign.name, why));
}

}  // namespace

// Resolves the names in foreign keys, as they are now.
Status Catalog::resolve_foreign_keys(TableSchema& schema) const {
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

// Protocol create_table. The table exists after step 2.
//   step  store                             made durable by     power cut just after it: recovery
//   1     layout, columns, schema           flush, fence        extent unreachable: free space
//   2     its offset in the catalogue       persist (8 bytes)   loads the empty table
// Must hold:  1 before 2, else the catalogue would name noise.
Result<TableId> Catalog::create_table(const TableSchema& wanted) {
  for (std::size_t i = 0; i < wanted.columns.size(); ++i)
    if (wanted.columns[i].dropped)
      return Status(StatusCode::kInvalidArgument,
                    fmt::format("table {}: column {} is dropped: leave it out", wanted.name, i));
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
                  fmt::format("{}: at most {} tables at a time and {} in a pool's life are allowed",
                              pool_.path(), CatalogLayout::kTablesMax, kTableIdsMax - 1));
  };
  const auto free_place = [&] {
    return std::find(std::begin(catalog_layout().tables), std::end(catalog_layout().tables), 0u);
  };
  if (free_place() == std::end(catalog_layout().tables) || next_table_id_ >= kTableIdsMax)
    return full();
  pmem::Persister persister(pool_.medium());
  Result<pmem::Extent> extent =
      make_table_layout(pool_, *schema, next_table_id_, index_place(), segment_bytes_, persister);
  persister.fence("create_table/1");
  if (!extent.ok()) return std::move(extent).status();
  ++next_table_id_;
  auto& layout = *pool_.at(pmem::OffsetPtr<TableLayout>{extent->offset});
  StoredSchema stored;
  stored.created_keys = schema->keys.size();
  stored.schema = std::move(*schema);
  auto made = std::make_unique<Table>(pool_, layout, std::move(stored));
  made->set_dropped(true);  // it cannot be found yet, but its name is taken
  Table* table = adopt(std::move(made));
  FLUGS_CHECK(table->id().value() + 1 == next_table_id_);
  Status s = introduce(*table, guard);
  std::uint64_t* place = free_place();
  if (s.ok() && place == std::end(catalog_layout().tables)) s = full();
  if (!s.ok()) {
    table->references().forget_parents();
    table->set_gone();
    table->release_all();
    pool_.allocator().release(*extent);
    return s;
  }
  std::atomic_ref(*place).store(extent->offset, std::memory_order_relaxed);
  persister.persist(place, sizeof *place, "create_table/2");
  table->set_dropped(false);
  return table->id();
}

// Makes a new table known to the tables that it refers to. A transaction that has deleted rows of
// those without a check of the new table must have ended before the new table can have rows. A
// transaction that deletes such rows meanwhile gets kConflict.
Status Catalog::introduce(Table& table, std::unique_lock<Mutex>& guard) {
  FLUGS_CHECK(guard.owns_lock() && table.is_dropped());
  bool has_others = false;
  for (std::size_t i = 0; i < table.schema().foreign_keys.size(); ++i) {
    const TableId parent = table.schema().foreign_keys[i].referenced.table;
    has_others |= parent != table.id();
    FLUGS_CHECK(known_table(parent) != nullptr);
    table.references().add(i, *known_table(parent));
  }
  if (!has_others) return {};
  guard.unlock();  // transactions we wait for may look tables up before they end
  const bool nobody_is_left = transactions_.wait_for_all();
  guard.lock();
  if (nobody_is_left) return {};
  return Status(StatusCode::kBusy, fmt::format("table {}: it refers to another table, and a "
                                               "transaction that began earlier is still open",
                                               table.name()));
}

// A table that others refer to stays.
Status Catalog::check_unreferenced(const Table& table) const {
  if (table.references().referrers() == nullptr) return {};
  for (const ForeignKey* foreign : *table.references().referrers())
    if (&foreign->child != &table)
      return Status(StatusCode::kConstraintViolated,
                    fmt::format("table {}: foreign key {} of table {} refers to it", table.name(),
                                foreign->schema().name, foreign->child.name()));
  return {};
}

// Protocol drop_table. The table is gone after step 1.
//   step  store                          made durable by     power cut just after it: recovery
//   1     catalogue entry := 0           persist (8 bytes)   the table's extents are unreachable:
//                                                            free space
// Must hold:  no transaction that could see the table is left before step 1; then the extents may
//             be handed out at once.
Status Catalog::drop_table(TableId id) {
  std::unique_lock guard(ddl_mutex_);
  Table* dropped = table(id);
  if (dropped == nullptr) return no_table();
  if (Status s = check_unreferenced(*dropped); !s.ok()) return s;
  dropped->set_dropped(true);
  // Transactions we wait for may look tables up, or make and drop others, before they end.
  guard.unlock();
  const std::lock_guard no_merge(dropped->merge_mutex());  // a running merge ends early
  const bool nobody_is_left = transactions_.wait_for_all();
  if (nobody_is_left) dropped->index_build().wait();
  guard.lock();
  if (!nobody_is_left) {
    dropped->set_dropped(false);
    return Status(
        StatusCode::kBusy,
        fmt::format("table {}: a transaction that began earlier is still open", dropped->name()));
  }
  for (std::uint64_t& entry : catalog_layout().tables) {
    if (entry == 0) continue;
    const auto& layout = *pool_.at(pmem::OffsetPtr<TableLayout>{entry});
    if (layout.table_id != id.value()) continue;
    const pmem::Extent extent{entry, layout.bytes};
    pmem::Persister persister(pool_.medium());
    std::atomic_ref(entry).store(0, std::memory_order_relaxed);
    persister.persist(&entry, sizeof entry, "drop_table/1");
    dropped->references().forget_parents();
    dropped->set_gone();
    dropped->release_all();
    pool_.allocator().release(extent);
    break;
  }
  return {};
}

Table* Catalog::adopt(std::unique_ptr<Table> table) {
  Table* raw = table.get();
  FLUGS_CHECK(raw->id().value() != 0 && raw->id().value() < kTableIdsMax);
  FLUGS_CHECK(known_table(raw->id()) == nullptr);
  owned_tables_.push_back(std::move(table));
  __atomic_store_n(&tables_by_id_.begin(raw->id().value()), raw, __ATOMIC_RELEASE);
  threads_.take_in(*raw);
  return raw;
}

Result<TableId> Catalog::find_table(std::string_view name) const {
  const std::lock_guard guard(ddl_mutex_);
  for (const auto& table : owned_tables_)
    if (!table->is_dropped() && table->name() == name) return table->id();
  return Status(StatusCode::kNotFound, fmt::format("no table '{}'", name));
}

std::vector<TableId> Catalog::tables() const {
  const std::lock_guard guard(ddl_mutex_);
  std::vector<TableId> ids;
  for (const auto& table : owned_tables_)
    if (!table->is_dropped()) ids.push_back(table->id());
  return ids;
}

void Catalog::add_loaded(std::unique_ptr<Table> table) {
  FLUGS_CHECK(table != nullptr && !table->is_dropped());
  next_table_id_ = std::max(next_table_id_, table->id().value() + 1);
  adopt(std::move(table));
}

Status Catalog::finish_loading() {
  std::sort(owned_tables_.begin(), owned_tables_.end(),
            [](const auto& a, const auto& b) { return a->id() < b->id(); });
  return link_foreign_keys();
}

// Called at opening, when all tables are loaded.
Status Catalog::link_foreign_keys() {
  for (const auto& table : owned_tables_)
    for (std::size_t i = 0; i < table->schema().foreign_keys.size(); ++i)
      if (Status s = table->references().link(i, [this](TableId id) { return this->table(id); });
          !s.ok())
        return s;
  for (const auto& table : owned_tables_) table->references().name_parents();
  return {};
}

bool Catalog::keep_hints(pmem::Persister& persister) noexcept {
  constexpr std::uint32_t kHintsAtOnce = 1024;  // others want the mutex
  bool has_more = false;
  for (std::size_t i = 0;; ++i) {
    const std::lock_guard guard(ddl_mutex_);  // the table does not go away meanwhile
    if (i >= owned_tables_.size()) return has_more;
    Table& table = *owned_tables_[i];
    if (!table.is_gone()) has_more |= engine::keep_hints(table.columns(), persister, kHintsAtOnce);
  }
}

void Catalog::enter_left_hints() {
  constexpr std::uint32_t kAtATime = 1024;  // others want the mutex
  constexpr std::chrono::microseconds kOthersTurn(20);
  pmem::Persister persister(pool_.medium());
  for (std::size_t i = 0;;) {
    bool has_more = false;
    {
      const std::lock_guard guard(ddl_mutex_);  // the table does not go away meanwhile
      if (i >= owned_tables_.size()) return;
      Table& table = *owned_tables_[i];
      has_more = !table.is_gone() && engine::enter_left_hints(table.columns(), persister, kAtATime);
    }
    if (has_more)
      std::this_thread::sleep_for(kOthersTurn);
    else
      ++i;
  }
}

}  // namespace flugs::engine
