#include "flugs/opening_estimate.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <vector>

#include "base/processors.h"
#include "engine/database/opening_budget.h"
#include "pmem/kinds/pool_image.h"
#include "tables/catalog/catalog.h"
#include "tables/data/table_layout.h"
#include "tables/data/table_statistics.h"
#include "tables/table/table.h"

namespace flugs {

namespace {

// Nanoseconds of one thread, measured as docs/benchmarks.md says.
constexpr double kOpenNs = 2e6;  // mapping and slots, for any pool
constexpr double kChunkNs = 400;
constexpr double kGroupNs = 3500;
constexpr double kHintSegmentNs = 0.5;
constexpr double kDictionaryEntryNs = 100;
constexpr double kRowSweptNs = 25;
constexpr double kHashEntryNs = 90;
constexpr double kOrderedComparisonNs = 25;  // not measured
constexpr double kHintSegmentBytes = 4096;

/// `tables`: number of tables.
Status add_table(engine::Table& table, std::size_t tables, Ready ready,
                 engine::OpeningBudget& budget, OpeningEstimate& estimate) {
  ++estimate.tables;
  estimate.chunks += table.rows().chunk_count();
  table.rows().for_each_group([&](const engine::RowGroup&) { ++estimate.groups; });
  estimate.hint_bytes += engine::hint_bytes_of(table.data());
  if (Status s = table.index_build().begin_dictionaries(); !s.ok()) return s;
  table.columns().for_each_used([&](columns::Column& column) {
    if (column.is_dictionary() && column.dictionary().has_hints())
      estimate.dictionary_entries += column.dictionary().count_unproven();
  });
  const engine::DeferredIndexes deferred = table.index_build().find_indexes();
  const bool is_taken = budget.takes(deferred);
  (is_taken ? estimate.dictionary_entries : estimate.dictionary_entries_left) += deferred.entries;
  const bool needs_all =
      ready == Ready::kIndexesBuilt || (is_taken && table.index_build().has_keys_in_dram());
  const std::uint32_t left = needs_all ? 0 : table.row_sweep().rows_left_unswept(tables);
  estimate.rows_unswept += left;
  estimate.rows_swept += table.rows().rows_end() - left;
  for (const engine::KeyIndex* key : table.keys()) {
    const std::uint64_t rows = key->entries().runs().unserved_rows();
    const std::uint8_t made = key->entries().made_at_opening();
    if ((made & engine::DeferredIndexes::kHashIndexes) != 0)
      (is_taken ? estimate.hash_entries : estimate.key_entries_left) += rows;
    if ((made & engine::DeferredIndexes::kOrderedIndexes) != 0)
      (is_taken ? estimate.ordered_entries : estimate.ordered_entries_left) += rows;
  }
  return {};
}

double of(std::uint64_t count, double ns) { return static_cast<double>(count) * ns; }

double sorted_ns(std::uint64_t entries) {
  return of(entries, kOrderedComparisonNs * std::log2(2.0 + of(entries, 1)));
}

double index_later_ms(const OpeningEstimate& e) {
  const double shared = of(e.dictionary_entries_left, kDictionaryEntryNs) +
                        of(e.key_entries_left, kHashEntryNs) + sorted_ns(e.ordered_entries_left);
  return shared / static_cast<double>(e.threads) * 1e-6;
}

double open_ms(const OpeningEstimate& e) {
  const double alone = kOpenNs + of(e.chunks, kChunkNs) + of(e.groups, kGroupNs) +
                       static_cast<double>(e.hint_bytes) / kHintSegmentBytes * kHintSegmentNs;
  const double shared = of(e.dictionary_entries, kDictionaryEntryNs) +
                        of(e.rows_swept, kRowSweptNs) + of(e.hash_entries, kHashEntryNs);
  // A key is sorted by one thread.
  const double sorted = sorted_ns(e.ordered_entries);
  return (alone + shared / static_cast<double>(e.threads) + sorted) * 1e-6;
}

}  // namespace

Result<OpeningEstimate> estimate_opening(const OpenOptions& options) {
  std::vector<pmem::ImageFinding> findings;
  Result<std::unique_ptr<pmem::PoolImage>> image =
      pmem::PoolImage::of_file(options.path, findings, pmem::PoolImage::Depth::kOpening);
  if (!image.ok()) return std::move(image).status();
  for (const pmem::ImageFinding& finding : findings)  // one of the two headers may be damaged
    if (!finding.status.ok() && finding.part != "pool header") return finding.status;
  pmem::Pool& pool = **image;
  OpeningEstimate estimate;
  estimate.threads =
      options.tuning.recovery_threads != 0 ? options.tuning.recovery_threads : processors();
  estimate.pool_bytes = pool.allocator().space().allocated_bytes;
  if (Status s = engine::check_root(pool); !s.ok()) return s;
  if (engine::root_of(pool).magic == 0) return estimate;  // its creation was cut short
  const Result<engine::CatalogLayout*> catalog = engine::find_catalog(pool);
  if (!catalog.ok()) return catalog.status();
  engine::OpeningBudget budget = engine::OpeningBudget::of(options.ready);
  estimate.index_place = static_cast<IndexPlace>(engine::root_of(pool).index_place);
  const auto tables = static_cast<std::size_t>(
      std::count_if(std::begin((*catalog)->tables), std::end((*catalog)->tables),
                    [](std::uint64_t offset) { return offset != 0; }));
  for (const std::uint64_t offset : (*catalog)->tables) {
    if (offset == 0) continue;
    Result<engine::StoredSchema> stored = engine::check_table_layout(pool, offset);
    if (!stored.ok()) return std::move(stored).status();
    engine::Table table(pool, *pool.at(pmem::OffsetPtr<engine::TableLayout>{offset}),
                        *std::move(stored));
    if (Status s = table.load(); !s.ok()) return s;
    if (Status s = add_table(table, tables, options.ready, budget, estimate); !s.ok()) return s;
  }
  estimate.open_ms = open_ms(estimate);
  estimate.index_later_ms = index_later_ms(estimate);
  return estimate;
}

}  // namespace flugs
