#pragma once

#include "flugs/status.h"
#include "pmem/pool/pool.h"
#include "tables/catalog/catalog_layout.h"

namespace flugs::engine {

inline DatabaseLayout& root_of(pmem::Pool& pool) noexcept {
  return *reinterpret_cast<DatabaseLayout*>(pool.application_root());
}
/// What opening goes by first: that the application root is a database's. Without a magic nothing
/// is reachable yet. Fails with kCorrupt.
Status check_root(pmem::Pool& pool);
/// The catalogue that the root names. Fails with kCorrupt when it cannot lie there.
Result<CatalogLayout*> find_catalog(pmem::Pool& pool);

}  // namespace flugs::engine
