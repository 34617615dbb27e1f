#pragma once

#include <catch2/catch.hpp>
#include <string>

#include "flugs/merge.h"
#include "flugs/pool_check.h"
#include "test/support/temporary_database.h"

namespace flugs::test {

/// Main thread only, as the next.
inline void merge_everything(TemporaryDatabase& database, TableId table) {
  MergeOptions everything;
  everything.scope = MergeScope::kEverything;
  static_cast<void>(must(database->merge(table, everything)));
}

/// Audits the open database, and the pool when it is closed; it is open again then.
inline void check_pool_is_whole(TemporaryDatabase& database) {
  must(database->check());
  const std::string path = database.options.path;
  database.close();
  CHECK(must(check_pool({path, {}})).damages == 0);
  database.reopen();
}

}  // namespace flugs::test
