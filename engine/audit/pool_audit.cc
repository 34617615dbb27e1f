#include "engine/audit/pool_audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/long_call.h"
#include "columns/index/hash_index_builder.h"
#include "pmem/space/extent_allocator.h"
#include "tables/catalog/catalog.h"
#include "tables/catalog/schema_codec.h"
#include "tables/data/index_run_audit.h"
#include "tables/data/table_audit.h"
#include "tables/data/table_layout.h"

namespace flugs::engine {

namespace {

// Findings kept per part; all are counted.
constexpr std::size_t kFindingsKept = 20;
constexpr std::uint32_t kRowsPerProgress = 1u << 16;

const char* const kRootPart = "database root";
const char* const kCatalogPart = "catalogue";
const char* const kSlotsPart = "transaction slots";

}  // namespace

CheckedPart& AuditReport::part(const std::string& name) {
  const auto [place, is_new] = index_.try_emplace(name, report_.parts.size());
  if (is_new) {
    report_.parts.emplace_back();
    report_.parts.back().name = name;
  }
  return report_.parts[place->second];
}

void AuditReport::add(PoolFinding::Kind kind, const std::string& part_name,
                      const std::string& message) {
  if (++kept_[part_name] <= kFindingsKept) report_.findings.push_back({kind, part_name, message});
}

void AuditReport::damage(const std::string& part_name, const std::string& message) {
  ++part(part_name).damages;
  ++report_.damages;
  add(PoolFinding::Kind::kDamage, part_name, message);
}

void AuditReport::remark(const std::string& part_name, const std::string& message) {
  static_cast<void>(part(part_name));
  ++report_.remarks;
  add(PoolFinding::Kind::kRemark, part_name, message);
}

void AuditReport::note(const std::string& part_name, const Status& status) {
  CheckedPart& checked = part(part_name);
  if (status.ok()) return;
  checked.is_complete = false;
  damage(part_name, std::string(status.message()));
}

void PoolAudit::tell(std::string_view part, std::uint64_t done, std::uint64_t total) const {
  if (caller_.progress) caller_.progress({part, done, total});
}

void PoolAudit::run(const std::vector<pmem::ImageFinding>& head) {
  FLUGS_CHECK(tables_.empty() && slots_ == nullptr);  // once: it changes the image
  for (const pmem::ImageFinding& finding : head) audit_.note(finding.part, finding.status);
  DatabaseLayout& root = root_of(pool_);
  audit_.part(kRootPart).items = 1;
  if (root.magic == 0 && root.catalog == 0 && root.slot_array == 0) {
    audit_.remark(kRootPart, fmt::format("{}: holds no database: its creation was interrupted or "
                                         "has not begun; the next opening creates it",
                                         pool_.path()));
  } else {
    if (root.magic != DatabaseLayout::kMagic)
      audit_.damage(kRootPart, fmt::format("{}: application root: magic expected {:016x}, found "
                                           "{:016x}",
                                           pool_.path(), DatabaseLayout::kMagic, root.magic));
    load_catalog();
    link_foreign_keys();
    load_slots(root.slot_array);
  }
  pool_.allocator().finish_claims();
  const pmem::SpaceReport space = pool_.allocator().space();
  report_.pool_bytes = space.allocated_bytes;
  report_.used_bytes = space.used_bytes;
  report_.overhead_bytes = space.overhead_bytes;
  report_.free_bytes = pool_.allocator().free_bytes();
  for (std::size_t i = 0; i < tables_.size(); ++i) {
    if (is_stopped()) return;
    tell("check", i, tables_.size());
    audit_dictionaries(*tables_[i]);
    audit_constants(*tables_[i]);
    audit_rows(*tables_[i]);
  }
  for (const auto& table : tables_) {
    if (is_stopped()) return;
    audit_foreign_keys(*table);
  }
  tell("check", tables_.size(), tables_.size());
}

void PoolAudit::link_foreign_keys() {
  const auto find = [&](TableId id) -> Table* {
    const auto found = by_id_.find(id.value());
    return found == by_id_.end() ? nullptr : found->second;
  };
  for (const auto& table : tables_)
    for (std::size_t i = 0; i < table->schema().foreign_keys.size(); ++i)
      audit_.note(fmt::format("table {}, foreign key {}", table->name(),
                              table->schema().foreign_keys[i].name),
                  table->references().link(i, find));
  for (const auto& table : tables_) table->references().name_parents();
}

// Uses no indexes, but sorted hashes of the rows.
void PoolAudit::audit_foreign_keys(const Table& table) {
  for (const ForeignKey* foreign : table.references().foreign_keys()) {
    const std::string part =
        fmt::format("table {}, foreign key {}", table.name(), foreign->schema().name);
    const KeyIndex& key = *foreign->parent.keys()[foreign->parent_key];
    std::vector<std::pair<std::uint64_t, std::uint32_t>> referenced;
    for (const std::uint32_t row : live_[&foreign->parent])
      referenced.emplace_back(key.hash_of(row), row);
    std::sort(referenced.begin(), referenced.end());
    std::array<Value, kKeyColumnsMax> room;
    const std::span<Value> values(room.data(), foreign->columns.size());
    std::uint64_t referring = 0;
    for (const std::uint32_t row : live_[&table]) {
      if (!table.reader().values_of(row, foreign->columns, values)) continue;
      ++referring;
      const std::uint64_t hash = key.hash_of(values);
      auto candidate =
          std::lower_bound(referenced.begin(), referenced.end(), std::pair(hash, std::uint32_t{0}));
      while (candidate != referenced.end() && candidate->first == hash &&
             !key.matches(candidate->second, values))
        ++candidate;
      if (candidate == referenced.end() || candidate->first != hash)
        audit_.damage(part, std::string(table.references().unreferenced(*foreign, row).message()));
    }
    audit_.part(part).items = referring;
  }
}

void PoolAudit::load_catalog() {
  const Result<CatalogLayout*> catalog = find_catalog(pool_);
  if (!catalog.ok()) {
    audit_.note(kCatalogPart, catalog.status());
    return;
  }
  const Status claimed =
      pool_.allocator().claim({root_of(pool_).catalog, sizeof(CatalogLayout)}, kCatalogPart);
  if (!claimed.ok()) audit_.damage(kCatalogPart, std::string(claimed.message()));
  for (const std::uint64_t entry : (*catalog)->tables)
    if (entry != 0) load_table(entry);
  audit_.part(kCatalogPart).items = tables_.size();
}

void PoolAudit::load_table(std::uint64_t offset) {
  Result<StoredSchema> stored = check_table_layout(pool_, offset);
  if (!stored.ok()) {
    audit_.note(fmt::format("table at offset {}", offset), stored.status());
    return;
  }
  auto& layout = *pool_.at(pmem::OffsetPtr<TableLayout>{offset});
  const std::string part = fmt::format("table {}", stored->schema.name);
  audit_.part(part).items = 1;
  audit_.note(part, pool_.allocator().claim({offset, layout.bytes}, part));
  for (const auto& other : tables_)
    if (other->name() == stored->schema.name || other->id() == TableId(layout.table_id))
      audit_.damage(
          part, fmt::format(
                    "{}: table at offset {}: expected a unique name and id, found {} and {} twice",
                    pool_.path(), offset, stored->schema.name, layout.table_id));
  auto table = std::make_unique<Table>(pool_, layout, *std::move(stored));
  table->load_what_is_whole(
      [&](const std::string& name, const Status& status) { audit_.note(name, status); });
  by_id_.try_emplace(layout.table_id, table.get());
  tables_.push_back(std::move(table));
}

void PoolAudit::load_slots(std::uint64_t& offset) {
  slots_ = std::make_unique<mvcc::TransactionSlots>(pool_, offset);
  mvcc::TransactionSlots::LoadCounts counts;
  const auto locate = [&](std::uint32_t id, std::uint32_t row) -> mvcc::VersionLayout* {
    const auto table = by_id_.find(id);
    if (table == by_id_.end() || !table->second->rows().exists(row)) return nullptr;
    return table->second->rows().stamped_version(row);
  };
  const Status loaded = slots_->load(locate, counts);
  audit_.note(kSlotsPart, loaded);
  if (!loaded.ok()) return;
  knows_slots_ = true;
  timestamp_limit_ = slots_->timestamp_limit();
  audit_.part(kSlotsPart).items = slots_->slots_in_pool();
  slots_->audit([&](bool damaged, const std::string& words) {
    damaged ? audit_.damage(kSlotsPart, words) : audit_.remark(kSlotsPart, words);
  });
  if (counts.completed != 0)
    audit_.remark(kSlotsPart, fmt::format("{}: {} committed transactions whose time-stamps the "
                                          "next opening writes into their rows",
                                          pool_.path(), counts.completed));
}

void PoolAudit::audit_dictionaries(Table& table) {
  table.columns().for_each_used([&](columns::Column& column) {
    if (!column.is_dictionary()) return;
    const std::string part = fmt::format("table {}, column {}", table.name(), column.name());
    columns::Dictionary& dictionary = column.dictionary();
    pmem::Persister persister(pool_.medium());
    columns::Dictionary::RebuildCounts counts;
    if (Status s = dictionary.begin_rebuild(); !s.ok()) {
      audit_.damage(part, std::string(s.message()));
      return;
    }
    columns::DictionaryHints* const hints = dictionary.hints();
    if (hints != nullptr) {
      Status s = hints->recover(counts, persister);
      persister.fence("recover_dictionary/1");
      if (!s.ok()) {
        audit_.damage(part, std::string(s.message()));
        return;
      }
      counts.entries = dictionary.count();
    } else {
      columns::HashIndexBuilder builder(dictionary.index(), dictionary.rebuild_end(), 1);
      dictionary.rebuild_range(0, dictionary.rebuild_end(), builder.source(0), counts, persister);
      persister.fence("rebuild_dictionary/1");
      for (std::size_t group = 0; group < builder.groups(); ++group) builder.insert_group(group);
    }
    audit_.part(part).items = counts.entries;
    if (counts.dropped != 0)
      audit_.remark(part, fmt::format("{}: {} dictionary entries with an invalid proof: torn by a "
                                      "crash, or damaged; {} are valid",
                                      pool_.path(), counts.dropped, counts.entries));
    // Entries are looked up only in a complete index.
    Status s = dictionary.finish_rebuild(counts);
    while (hints != nullptr && hints->enter_left(persister)) {
    }
    if (s.ok() && hints != nullptr) s = hints->check_index();
    if (s.ok()) s = dictionary.verify();
    audit_.note(part, s);
  });
}

// Checks the constants of rows that lack a column.
void PoolAudit::audit_constants(const Table& table) {
  for (const columns::Column* column : table.columns())
    if (!column->is_dropped() && column->has_constant() && !column->has_plausible_constant())
      audit_.damage(fmt::format("table {}, column {}", table.name(), column->name()),
                    fmt::format("{}: the constant of rows that lack it: expected an assigned "
                                "ValueID, or text in the column's strings, found {:#x}",
                                pool_.path(), column->constant().low));
}

/// Whether the row is live. A transaction that recovery has not finished on the image left stale
/// tags.
bool PoolAudit::audit_stamps(const Table& table, std::uint32_t row, const std::string& part) {
  const mvcc::VersionLayout& version = table.rows().version(row);
  for (const mvcc::Stamp stamp : {version.created, version.deleted}) {
    if (stamp == mvcc::kNoStamp) continue;
    if (!mvcc::is_tag(stamp) && stamp > timestamp_limit_)
      audit_.damage(part, fmt::format("{}: row {} at offset {}: time-stamp expected at most {}, "
                                      "found {}",
                                      pool_.path(), row, pool_.offset_of(&version).offset,
                                      timestamp_limit_, stamp));
    if (mvcc::is_tag(stamp) && knows_slots_ && !slots_->is_known_tag(stamp))
      audit_.damage(part, fmt::format("{}: row {} at offset {}: expected an assigned tag, found "
                                      "that of slot {}, generation {}",
                                      pool_.path(), row, pool_.offset_of(&version).offset,
                                      mvcc::slot_of(stamp), mvcc::generation_of(stamp)));
  }
  const bool created = version.created != mvcc::kNoStamp && !mvcc::is_tag(version.created);
  const bool deleted = version.deleted != mvcc::kNoStamp && !mvcc::is_tag(version.deleted);
  if (created && deleted && version.deleted < version.created)
    audit_.damage(
        part,
        fmt::format(
            "{}: row {} at offset {}: expected a deletion not before the creation at {}, found {}",
            pool_.path(), row, pool_.offset_of(&version).offset, version.created, version.deleted));
  return created && !deleted;
}

void PoolAudit::audit_groups(const Table& table, const std::string& part) {
  table.rows().for_each_group([&](const RowGroup& group) {
    group.audit([&](std::size_t, const Status& status) {
      if (!status.ok()) audit_.damage(part, std::string(status.message()));
    });
  });
}

void PoolAudit::audit_cells(const Table& table, std::uint32_t row) {
  if (table.rows().view(row).is_in_group()) return;  // audit_groups
  const columns::RowLayout& layout = table.rows().layout(row);
  const std::byte* cells = table.rows().address(row);
  for (std::size_t i = 0; i < table.columns().size(); ++i) {
    const columns::Column& newest = *table.columns()[i];
    const columns::Column* edition = newest.at_edition(layout.edition(i));
    const columns::Column& column = newest.is_dropped() || edition == nullptr ? newest : *edition;
    const char* expected = nullptr;
    if (!column.was_plausible_at_opening(layout, cells, i)) {
      expected = "an assigned ValueID, or text in the column's strings";
    } else if (column.is_dropped()) {
      continue;
    } else if (column.is_dictionary() &&
               !column.dictionary().is_present(static_cast<std::uint32_t>(layout.load(cells, i)))) {
      expected = "a ValueID with an intact entry";
    } else if (!column.nullable() && column.is_null(layout, cells, i)) {
      expected = "a value in a column that is NOT NULL";
    }
    if (expected == nullptr) continue;
    const columns::Cell cell = layout.load_cell(cells, i);
    audit_.damage(
        fmt::format("table {}, rows", table.name()),
        fmt::format("{}: row {} at offset {}, column {}: expected {}, found {:#x}", pool_.path(),
                    row, cells - pool_.base(), column.name(), expected, cell.low));
  }
}

void PoolAudit::audit_rows(Table& table) {
  const std::string part = fmt::format("table {}, rows", table.name());
  const std::uint32_t end = table.rows().rows_end();
  audit_groups(table, part);
  std::vector<std::uint32_t> live;
  for (std::uint32_t row = 0; row < end; ++row) {
    if (row % kRowsPerProgress == 0) {
      if (is_stopped()) return;
      tell(part, row, end);
    }
    const RowStore& rows = table.rows();
    if (row == rows.first_row_of(rows.chunk_of(row)) && !rows.view(row).is_in_group())
      audit_.note(part, table.rows().check_header(row));
    if (!audit_stamps(table, row, part)) continue;
    live.push_back(row);
    const std::uint64_t damages = audit_.part(part).damages;
    audit_cells(table, row);
    // A cell that is damaged has no value.
    if (audit_.part(part).damages == damages)
      if (Status s = TableAudit(table.data()).check_conditions(row); !s.ok())
        audit_.damage(part, std::string(s.message()));
  }
  audit_.part(part).items = live.size();
  if (!table.references().foreign_keys().empty() || table.references().referrers() != nullptr)
    live_[&table] = live;
  for (KeyIndex* key : table.keys()) {
    if (is_stopped()) return;
    if (key->is_unique()) audit_unique_key(table, *key, live);
  }
  audit_index_runs(table, audit_.part(part).damages == 0);
}

// Checks runs against rows only if the rows are undamaged, because the rows decide.
void PoolAudit::audit_index_runs(const Table& table, bool has_whole_rows) {
  const std::size_t runs = table.runs().list().members.size();
  if (runs == 0) return;
  const std::string part = fmt::format("table {}, index runs", table.name());
  audit_.part(part).items = runs;
  const IndexRunAudit audit(table.data(), pool_.path());
  audit_.note(part, has_whole_rows ? audit.run() : audit.run_checksums());
}

void PoolAudit::audit_unique_key(const Table& table, KeyIndex& key,
                                 const std::vector<std::uint32_t>& live) {
  const std::string part = fmt::format("table {}, key {}", table.name(), key.name());
  struct Entry {
    std::uint64_t hash;
    std::uint32_t row;
  };
  std::vector<Entry> entries;
  entries.reserve(live.size());
  for (const std::uint32_t row : live)
    if (!key.has_null(row)) entries.push_back({key.hash_of(row), row});
  std::sort(entries.begin(), entries.end(), [&](const Entry& a, const Entry& b) {
    if (a.hash != b.hash) return a.hash < b.hash;
    return key.rows(a.row, b.row) < 0;
  });
  audit_.part(part).items = entries.size();
  audit_.note(part, key.entries().check_unread());
  for (std::size_t i = 1; i < entries.size(); ++i)
    if (entries[i].hash == entries[i - 1].hash && key.same_key(entries[i].row, entries[i - 1].row))
      audit_.damage(part,
                    fmt::format("{}: rows {} and {}: expected different keys, found equal keys",
                                pool_.path(), entries[i - 1].row, entries[i].row));
  if (!key.entries().is_loaded()) return;
  pmem::Persister persister(pool_.medium());
  key.entries().recover(persister);
  std::uint64_t missing = 0;
  std::uint32_t first = 0;
  columns::Candidates candidates;
  for (const Entry& entry : entries) {
    if (!key.is_hashed(entry.row)) continue;
    key.entries().lookup(entry.hash, candidates);
    const auto rows = candidates.view();
    if (std::find(rows.begin(), rows.end(), entry.row) == rows.end() && missing++ == 0)
      first = entry.row;
  }
  if (missing != 0)
    audit_.damage(part, fmt::format("{}: row {}: expected an entry in the key's index, found none; "
                                    "{} more rows lack an entry",
                                    pool_.path(), first, missing - 1));
}

Result<PoolCheckReport> check_pool_in_memory(std::span<std::byte> pool) {
  std::vector<pmem::ImageFinding> head;
  auto image = pmem::PoolImage::of_buffer(pool, head);
  if (!image.ok()) return image.status();
  PoolCheckReport report;
  const CallOptions caller;
  PoolAudit(**image, report, caller).run(head);
  return report;
}

}  // namespace flugs::engine

namespace flugs {

Result<PoolCheckReport> check_pool(const PoolCheckOptions& options) {
  std::vector<pmem::ImageFinding> head;
  auto image = pmem::PoolImage::of_file(options.path, head);
  if (!image.ok()) return image.status();
  PoolCheckReport report;
  const CallOptions caller = {.progress = options.progress, .stop = options.stop};
  engine::PoolAudit(**image, report, caller).run(head);
  if (caller.stop.stop_requested()) return stopped_by_caller(options.path);
  return report;
}

}  // namespace flugs
