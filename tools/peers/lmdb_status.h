#pragma once

#include <lmdb.h>

#include <cstddef>
#include <string>

#include "flugs/status.h"

namespace flugs::tools {

/// Addresses only: the file is as large as what is in it.
inline constexpr std::size_t kLmdbMapBytes = std::size_t{1} << 38;

inline Status lmdb_status(int error) {
  if (error == MDB_SUCCESS) return {};
  if (error == MDB_NOTFOUND) return Status(StatusCode::kNotFound);
  return Status(StatusCode::kIoError, std::string("LMDB: ") + mdb_strerror(error));
}

}  // namespace flugs::tools
