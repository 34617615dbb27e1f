#pragma once

#include <memory>
#include <optional>
#include <string>

#include "bindings/pools/open_files.h"
#include "bindings/sqlite/changes.h"
#include "flugs/database.h"
#include "flugs/open_options.h"
#include "flugs/status.h"

namespace flugs::sqlite {

/// A pool that connections of this process have open. The last of them closes it.
struct Pool {
  std::string path;
  std::optional<PoolFile> file;
  bool is_read_only = false;
  Database database;
  std::unique_ptr<Definitions> definitions = std::make_unique<Definitions>();
};

/// The pool at the path of `options`, opened now or by another connection; the other options count
/// only when it is opened now. Waits for a connection that is just closing it. Fails with: as
/// Database::open.
///
/// Thread-safety: any thread.
Result<std::shared_ptr<Pool>> open_pool(const OpenOptions& options);

}  // namespace flugs::sqlite
