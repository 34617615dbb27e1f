#pragma once

#include "flugs/flugs.h"

// What the code of the documentation's pages works on. The pages show the parts
// of these files that stand between start and end; test `docs/snippets` runs
// all of them.

namespace snippets {

// Fails, with the name of what was expected, unless it holds.
inline flugs::Status expect(bool holds, const char* what) {
  if (holds) return {};
  return flugs::Status(flugs::StatusCode::kCorrupt, what);
}

// Each makes what it needs, in this order, in one pool.
flugs::Status front(const char* path);
flugs::Status tables(flugs::Database& database);
flugs::Status rows(flugs::Database& database);
flugs::Status transactions(flugs::Database& database);
flugs::Status queries(flugs::Database& database);
flugs::Status operating(flugs::Database& database);
flugs::Status opening(const char* path);

}  // namespace snippets
