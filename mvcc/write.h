#pragma once

#include <cstdint>

#include "mvcc/stamps.h"

namespace flugs::mvcc {

/// A row that a transaction inserted or deleted (an update does both).
struct Write {
  VersionLayout* version;
  std::uint32_t table;
  std::uint32_t row;
  std::uint32_t row_bytes;  ///< to flush from `version` on; for a delete, the MVCC entry only
  bool deletes;
};

}  // namespace flugs::mvcc
