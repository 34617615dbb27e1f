#pragma once

#include <memory>
#include <utility>

#include "engine/database/database_core.h"
#include "flugs/database.h"

namespace flugs::engine {

/// The way from what lies behind a Database to the Database, for those who open it on a pool of
/// their own.
struct DatabaseAccess {
  static Database wrap(std::unique_ptr<DatabaseCore> core) {
    Database database;
    database.core_ = std::move(core);
    return database;
  }
  static DatabaseCore& core(Database& database) { return *database.core_; }
};

}  // namespace flugs::engine
