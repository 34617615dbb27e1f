#pragma once

#include <cstdint>
#include <span>

#include "base/row_blocks.h"
#include "mvcc/stamps.h"

namespace flugs::mvcc {

/// A row that a transaction inserted or deleted (an update does both).
struct Write {
  VersionLayout* version;
  std::uint32_t table;
  std::uint32_t row;
  std::uint32_t row_bytes;  ///< to flush from `version` on; for a delete, the MVCC entry only
  bool deletes;
  /// What to flush of an inserted row besides its MVCC entry, if its columns are apart (RowBlock).
  std::span<const RowPart> parts = {};
};

}  // namespace flugs::mvcc
