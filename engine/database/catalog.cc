#include "engine/database/catalog.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/names.h"
#include "tables/catalog/foreign_keys.h"
#include "tables/catalog/schema_codec.h"
#include "tables/data/table_hints.h"
#include "tables/data/table_layout.h"

namespace flugs::engine {

namespace {

Status invalid_reference(const TableSchema& schema, const ForeignKeySchema& foreign,
                         const std::string& why) {
  return Status(StatusCode::kInvalidArgument, SchemaPart::foreign_key(schema.name, foreign.name),
                why);
}

}  // namespace

// Tables in `made` count, although no other thread can find them yet.
Status Catalog::resolve(const TableSchema& schema, TableId self, ForeignKeySchema& foreign,
                        std::span<const NewTable> made) const {
  const TableSchema* parent = foreign.table == schema.name ? &schema : nullptr;
  foreign.referenced.table = self;
  const auto look_at = [&](const Table& table) {
    if (parent != nullptr || table.name() != foreign.table) return;
    parent = &table.schema();
    foreign.referenced.table = table.id();
  };
  for (const NewTable& one : made) look_at(*one.table);
  for (const auto& table : owned_tables_)
    if (!table->is_dropped()) look_at(*table);
  if (parent == nullptr)
    return invalid_reference(schema, foreign, fmt::format("no table '{}'", foreign.table));
  const auto key = std::find_if(parent->keys.begin(), parent->keys.end(), [&](const KeySchema& k) {
    return !k.dropped && k.name == foreign.key;
  });
  if (key == parent->keys.end())
    return invalid_reference(schema, foreign,
                             fmt::format("table {} has no key '{}'", parent->name, foreign.key));
  foreign.referenced.index = static_cast<std::uint16_t>(key - parent->keys.begin());
  return check_reference(schema, foreign, *parent);
}

Result<TableId> Catalog::create_table(const TableSchema& wanted) {
  Result<std::vector<TableId>> made = create_tables({&wanted, 1});
  if (!made.ok()) return std::move(made).status();
  return made->front();
}

// Protocol create_table. The table exists after step 2.
//   step  store                             made durable by     power cut just after it: recovery
//   1     layout, columns, schema           flush, fence        extent unreachable: free space
//   2     its offset in the catalogue       persist (8 bytes)   loads the empty table
// Must hold:  1 before 2, else the catalogue would name noise.
//
// Protocol create_tables. For several tables, after step 1 of create_table for each of them. They
// exist after step 3.
//   step  store                             made durable by     power cut just after it: recovery
//   2     a copy of the catalogue with      flush, fence        all extents unreachable: free space
//         the offsets of all of them
//   3     the root's pointer to the copy    persist (8 bytes)   loads the empty tables; the former
//                                                               catalogue is free space
// Must hold:  2 before 3, else the root would name noise.
Result<std::vector<TableId>> Catalog::create_tables(std::span<const TableSchema> wanted) {
  std::vector<TableSchema> schemas;
  schemas.reserve(wanted.size());
  for (const TableSchema& one : wanted) {
    if (Status s = check_new(one, schemas); !s.ok()) return s;
    Result<TableSchema> schema = complete_schema(one);
    if (!schema.ok()) return std::move(schema).status();
    schemas.push_back(*std::move(schema));
  }
  std::unique_lock guard(ddl_mutex_);
  for (const TableSchema& schema : schemas)
    if (is_taken(schema.name))
      return Status(StatusCode::kAlreadyExists, fmt::format("table {} exists", schema.name))
          .with_part(SchemaPart::of(schema.name));
  if (Status s = pool_.medium().check_writable(); !s.ok()) return s;
  if (!has_places_for(schemas.size()) || schemas.size() > kTableIdsMax - next_table_id_)
    return full();
  pmem::Persister persister(pool_.medium());
  std::vector<NewTable> made;
  Status s = make_tables(std::move(schemas), made, persister);
  persister.fence("create_table/1");
  if (s.ok()) s = introduce(made, guard);
  if (s.ok()) s = enter_in_catalogue(made, persister);
  std::vector<TableId> ids;
  if (!s.ok()) {
    take_back(made);
    return s;
  }
  for (const NewTable& one : made) {
    one.table->set_dropped(false);
    ids.push_back(one.table->id());
  }
  return ids;
}

// What a new table's schema must not be, apart from what complete_schema checks.
Status Catalog::check_new(const TableSchema& wanted, std::span<const TableSchema> before) {
  for (std::size_t i = 0; i < wanted.columns.size(); ++i)
    if (wanted.columns[i].dropped)
      return Status(StatusCode::kInvalidArgument, SchemaPart::of(wanted.name),
                    fmt::format("column {} is dropped: leave it out", i));
  for (const TableSchema& other : before)
    if (other.name == wanted.name)
      return Status(StatusCode::kInvalidArgument, SchemaPart::of(wanted.name),
                    "two schemas have this name");
  return {};
}

// A drop that still waits may yet fail: until it is decided the name is taken.
bool Catalog::is_taken(std::string_view name) const noexcept {
  return std::any_of(owned_tables_.begin(), owned_tables_.end(),
                     [&](const auto& table) { return !table->is_gone() && table->name() == name; });
}

bool Catalog::has_places_for(std::size_t tables) const noexcept {
  const auto& places = catalog_layout().tables;
  return tables <= static_cast<std::size_t>(std::count(std::begin(places), std::end(places), 0u));
}

Status Catalog::full() const {
  return Status(StatusCode::kOutOfSpace,
                fmt::format("{}: at most {} tables at a time and {} in a pool's life are allowed",
                            pool_.path(), CatalogLayout::kTablesMax, kTableIdsMax - 1));
}

// Makes the tables, which cannot be found yet, though their names are taken. When it fails, `made`
// has those that were made before.
Status Catalog::make_tables(std::vector<TableSchema>&& schemas, std::vector<NewTable>& made,
                            pmem::Persister& persister) {
  for (TableSchema& schema : schemas) {
    for (ForeignKeySchema& foreign : schema.foreign_keys)
      if (Status s = resolve(schema, TableId(next_table_id_), foreign, made); !s.ok()) return s;
    // In a small pool a chunk is no large part of it: a merge must find room for another one.
    const std::uint64_t segment_bytes = std::min(segment_bytes_, pool_.medium().bytes() / 4);
    Result<pmem::Extent> extent =
        make_table_layout(pool_, schema, next_table_id_, index_place(), segment_bytes, persister);
    if (!extent.ok()) return std::move(extent).status();
    ++next_table_id_;
    auto& layout = *pool_.at(pmem::OffsetPtr<TableLayout>{extent->offset});
    StoredSchema stored;
    stored.created_keys = schema.keys.size();
    stored.schema = std::move(schema);
    auto table = std::make_unique<Table>(pool_, layout, std::move(stored));
    table->set_dropped(true);
    made.push_back({adopt(std::move(table)), *extent});
    FLUGS_CHECK(made.back().table->id().value() + 1 == next_table_id_);
  }
  return {};
}

// Steps 2 and 3 of create_table.
Status Catalog::enter_in_catalogue(std::span<const NewTable> made, pmem::Persister& persister) {
  // Others may have made tables while introduce waited.
  if (!has_places_for(made.size())) return full();
  if (made.size() > 1) return replace_catalogue(made, persister);
  auto& places = catalog_layout().tables;
  for (const NewTable& one : made) {
    std::uint64_t* const place = std::find(std::begin(places), std::end(places), 0u);
    FLUGS_CHECK(place != std::end(places));
    std::atomic_ref(*place).store(one.extent.offset, std::memory_order_relaxed);
    persister.persist(place, sizeof *place, "create_table/2");
  }
  return persister.wait_durable();
}

Status Catalog::replace_catalogue(std::span<const NewTable> made, pmem::Persister& persister) {
  const pmem::Extent former{root_of(pool_).catalog, sizeof(CatalogLayout)};
  const Result<pmem::Extent> extent = pool_.allocator().allocate(sizeof(CatalogLayout), persister);
  if (!extent.ok()) return extent.status();
  auto& copy = *pool_.at(pmem::OffsetPtr<CatalogLayout>{extent->offset});
  copy = catalog_layout();
  std::uint64_t* place = std::begin(copy.tables);
  for (const NewTable& one : made) {
    place = std::find(place, std::end(copy.tables), 0u);
    FLUGS_CHECK(place != std::end(copy.tables));
    *place = one.extent.offset;
  }
  persister.flush(&copy, sizeof copy, "create_tables/2");
  persister.fence("create_tables/2");
  std::uint64_t& root = root_of(pool_).catalog;
  std::atomic_ref(root).store(extent->offset, std::memory_order_relaxed);
  persister.persist(&root, sizeof root, "create_tables/3");
  if (Status s = persister.wait_durable(); !s.ok()) return s;
  pool_.allocator().release(former);
  return {};
}

// Forgets tables that no other thread could find. The last one goes first, because it may refer to
// others.
void Catalog::take_back(std::span<const NewTable> made) {
  for (auto one = made.rbegin(); one != made.rend(); ++one) {
    FLUGS_CHECK(one->table->is_dropped());
    one->table->references().forget_parents();
    one->table->set_gone();
    one->table->release_all();
    pool_.allocator().release(one->extent);
  }
}

// Makes new tables known to the tables that they refer to. A transaction that has deleted rows of
// those without a check of the new table must have ended before the new table can have rows. A
// transaction that deletes such rows meanwhile gets kConflict.
Status Catalog::introduce(std::span<const NewTable> made, std::unique_lock<Mutex>& guard) {
  FLUGS_CHECK(guard.owns_lock());
  const Table* waits_for_others = nullptr;  // refers to a table that others can find
  for (const NewTable& one : made) {
    Table& table = *one.table;
    FLUGS_CHECK(table.is_dropped());
    for (std::size_t i = 0; i < table.schema().foreign_keys.size(); ++i) {
      Table* const parent = known_table(table.schema().foreign_keys[i].referenced.table);
      FLUGS_CHECK(parent != nullptr);
      if (!parent->is_dropped()) waits_for_others = &table;
      table.references().add(i, *parent);
    }
  }
  if (waits_for_others == nullptr) return {};
  guard.unlock();  // transactions we wait for may look tables up before they end
  const bool nobody_is_left = transactions_.wait_for_all();
  guard.lock();
  if (nobody_is_left) return {};
  return transactions_.waited_too_long(
      fmt::format("table {}, which refers to another", waits_for_others->name()));
}

// A table that others refer to stays.
Status Catalog::check_unreferenced(const Table& table) const {
  if (table.references().referrers() == nullptr) return {};
  for (const ForeignKey* foreign : *table.references().referrers())
    if (&foreign->child != &table)
      return Status(StatusCode::kConstraintViolated, SchemaPart::of(table.name()),
                    fmt::format("foreign key {} of table {} refers to it", foreign->schema().name,
                                foreign->child.name()));
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
  if (Status s = pool_.medium().check_writable(); !s.ok()) return s;
  dropped->set_dropped(true);
  // Transactions we wait for may look tables up, or make and drop others, before they end.
  guard.unlock();
  const std::lock_guard no_merge(dropped->merge_mutex());  // a running merge ends early
  const bool nobody_is_left = transactions_.wait_for_all();
  if (nobody_is_left) dropped->index_build().wait();
  guard.lock();
  if (!nobody_is_left) {
    dropped->set_dropped(false);
    return transactions_.waited_too_long(fmt::format("table {}", dropped->name()));
  }
  FLUGS_CHECK(check_unreferenced(*dropped).ok());  // no thread could find it meanwhile
  for (std::uint64_t& entry : catalog_layout().tables) {
    if (entry == 0) continue;
    const auto& layout = *pool_.at(pmem::OffsetPtr<TableLayout>{entry});
    if (layout.table_id != id.value()) continue;
    const pmem::Extent extent{entry, layout.bytes};
    pmem::Persister persister(pool_.medium());
    std::atomic_ref(entry).store(0, std::memory_order_relaxed);
    persister.persist(&entry, sizeof entry, "drop_table/1");
    if (Status s = persister.wait_durable(); !s.ok()) return s;
    dropped->references().forget_parents();
    dropped->set_gone();
    dropped->release_all();
    pool_.allocator().release(extent);
    break;
  }
  guard.unlock();
  pool_.allocator().give_back(pmem::Slack::kSome);
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
  struct Named {
    std::string_view name;
    bool dropped;
  };
  std::vector<Named> all;
  all.reserve(owned_tables_.size());
  for (const auto& table : owned_tables_) all.push_back({table->name(), table->is_dropped()});
  return Status(StatusCode::kNotFound,
                fmt::format("no table '{}'; there are: {}", name, names_of(all)));
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
