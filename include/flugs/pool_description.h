#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "flugs/index_place.h"
#include "flugs/schema.h"
#include "flugs/status.h"

namespace flugs {

/// What a pool says of itself without being opened. Sizes in bytes.
struct PoolDescription {
  std::string medium;     ///< "dax", "emulated" or "file"
  std::string guarantee;  ///< as in Statistics
  std::uint32_t format_version = 0;
  std::uint64_t max_bytes = 0;       ///< the largest size it can grow to
  std::uint64_t pool_bytes = 0;      ///< what it has grown to
  std::uint64_t medium_bytes = 0;    ///< what the file takes on the medium
  bool is_open_for_writing = false;  ///< by another process, or by this one
  IndexPlace index_place = kDefaultIndexPlace;
  /// In the order of creation, as Database::schema has them. Nothing while the pool is open for
  /// writing, because tables may change meanwhile.
  std::optional<std::vector<TableSchema>> tables;
};

/// Describes a pool without opening it and without changing a byte of it, so that a pool on a
/// read-only medium has a description, and a pool that another process has open.
/// Thread-safety: any thread. Fails with: kNotFound, kIncompatible (no flugs pool, or one of
/// another version), kCorrupt, kReadOnly (no permission to read), kInvalidArgument (no regular
/// file), kIoError.
Result<PoolDescription> describe_pool(const std::string& path);

}  // namespace flugs
