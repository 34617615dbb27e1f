#pragma once

#include <memory>
#include <utility>

#include "base/check.h"
#include "engine/database/database_core.h"
#include "flugs/database.h"

namespace flugs::engine {

/// Converts between a Database and its DatabaseCore, for code that opens a database on a pool of
/// its own.
struct DatabaseAccess {
  static Database wrap(std::unique_ptr<DatabaseCore> core) {
    FLUGS_CHECK(core != nullptr);
    Database database;
    database.core_ = std::move(core);
    return database;
  }
  static DatabaseCore& core(Database& database) { return *database.core_; }
};

}  // namespace flugs::engine
