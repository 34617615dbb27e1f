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

inline std::string lmdb_version() {
  return "LMDB " + std::to_string(MDB_VERSION_MAJOR) + "." + std::to_string(MDB_VERSION_MINOR) +
         "." + std::to_string(MDB_VERSION_PATCH);
}

/// Flags of a database whose commits need survive the death of the process only; else none.
inline constexpr unsigned kLmdbWithoutSync = MDB_NOSYNC | MDB_WRITEMAP;
inline std::string lmdb_setup(unsigned flags) {
  return flags != 0 ? "MDB_NOSYNC, MDB_WRITEMAP" : "no flag that weakens commits";
}
inline std::string lmdb_guarantee(unsigned flags) {
  return flags != 0 ? "commit: stored in the shared mapping of the file, nothing is synced; "
                      "survives the death of the process"
                    : "commit: pages written and synced, then the meta page";
}

}  // namespace flugs::tools
