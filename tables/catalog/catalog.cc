#include "tables/catalog/catalog.h"

#include <fmt/format.h>

#include "tables/catalog/key_kinds.h"

namespace flugs::engine {

Status check_root(pmem::Pool& pool) {
  const DatabaseLayout& root = root_of(pool);
  if (root.magic == 0) return {};
  if (root.magic != DatabaseLayout::kMagic)
    return Status(StatusCode::kCorrupt,
                  fmt::format("{}: application root: magic expected {:016x}, found {:016x}",
                              pool.path(), DatabaseLayout::kMagic, root.magic));
  if (root.index_place > kLastIndexPlace)
    return Status(StatusCode::kCorrupt,
                  fmt::format("{}: application root: index mode expected 0 to {}, found {}",
                              pool.path(), kLastIndexPlace, root.index_place));
  return {};
}

Result<CatalogLayout*> find_catalog(pmem::Pool& pool) {
  const std::uint64_t offset = root_of(pool).catalog;
  const std::uint64_t bytes = pool.medium().bytes();
  if (offset == 0 || offset % 64 != 0 || bytes < sizeof(CatalogLayout) ||
      offset > bytes - sizeof(CatalogLayout))
    return Status(StatusCode::kCorrupt,
                  fmt::format("{}: catalogue at offset {}, expected inside the pool of {} bytes",
                              pool.path(), offset, bytes));
  return pool.at(pmem::OffsetPtr<CatalogLayout>{offset});
}

}  // namespace flugs::engine
