#pragma once

#include "flugs/status.h"
#include "pmem/pool/pool.h"
#include "tables/catalog/catalog_layout.h"

namespace flugs::engine {

inline DatabaseLayout& root_of(pmem::Pool& pool) noexcept {
  return *reinterpret_cast<DatabaseLayout*>(pool.application_root());
}
/// The first check of opening: the application root must be that of a database. A root without a
/// magic names nothing yet and passes. Fails with kCorrupt.
Status check_root(pmem::Pool& pool);
/// The catalogue that the root names. Fails with kCorrupt when no catalogue can be at that offset.
Result<CatalogLayout*> find_catalog(pmem::Pool& pool);

}  // namespace flugs::engine
