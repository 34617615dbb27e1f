#include "flugs/pool_description.h"

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "pmem/kinds/pool_file.h"
#include "pmem/kinds/pool_image.h"
#include "tables/catalog/catalog.h"
#include "tables/data/table_layout.h"

namespace flugs {

namespace {

Result<std::vector<TableSchema>> schemas_in(pmem::Pool& pool) {
  std::vector<TableSchema> schemas;
  const Result<engine::CatalogLayout*> catalog = engine::find_catalog(pool);
  if (!catalog.ok()) return catalog.status();
  for (const std::uint64_t offset : (*catalog)->tables) {
    if (offset == 0) continue;
    Result<engine::StoredSchema> stored = engine::check_table_layout(pool, offset);
    if (!stored.ok()) return std::move(stored).status();
    schemas.push_back(std::move(stored->schema));
  }
  return schemas;
}

}  // namespace

Result<PoolDescription> describe_pool(const std::string& path) {
  using Depth = pmem::PoolImage::Depth;
  std::vector<pmem::ImageFinding> findings;
  PoolDescription description;
  Result<std::unique_ptr<pmem::PoolImage>> image =
      pmem::PoolImage::of_file(path, findings, Depth::kOpening);
  description.is_open_for_writing = image.code() == StatusCode::kBusy;
  // While another process lets the pool grow, the limits read may contradict each other.
  constexpr int kAttempts = 3;
  for (int i = 0; description.is_open_for_writing && i < kAttempts; ++i) {
    image = pmem::PoolImage::of_file(path, findings, Depth::kHead);
    if (image.code() != StatusCode::kCorrupt) break;
  }
  if (!image.ok()) return std::move(image).status();
  const Result<pmem::PoolFile> file = pmem::PoolFile::open_to_peek(path);
  if (!file.ok()) return file.status();
  const Result<pmem::MediumKind> medium = file->detect_medium();
  if (!medium.ok()) return medium.status();
  const Result<std::uint64_t> occupied = file->occupied_bytes();
  if (!occupied.ok()) return occupied.status();
  pmem::Pool& pool = **image;
  const pmem::SpaceReport space = pool.allocator().space();
  description.medium = pmem::facts_of(*medium).name;
  description.guarantee = pmem::facts_of(*medium).guarantee;
  description.format_version = pool.format_version();
  description.max_bytes = space.reserved_bytes;
  description.pool_bytes = space.allocated_bytes;
  description.medium_bytes = *occupied;
  if (Status s = engine::check_root(pool); !s.ok()) return s;
  const engine::DatabaseLayout& root = engine::root_of(pool);
  const bool is_made = root.magic != 0;  // else its creation was cut short, or goes on
  if (is_made) description.index_place = static_cast<IndexPlace>(root.index_place);
  if (description.is_open_for_writing) return description;
  description.tables.emplace();
  if (!is_made) return description;
  Result<std::vector<TableSchema>> tables = schemas_in(pool);
  if (!tables.ok()) return std::move(tables).status();
  description.tables = *std::move(tables);
  return description;
}

}  // namespace flugs
