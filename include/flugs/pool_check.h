#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "flugs/database.h"
#include "flugs/status.h"

namespace flugs {

/// Something that a check of a pool found.
struct PoolFinding {
  enum class Kind : std::uint8_t {
    kDamage,  ///< the pool is not as flugs writes it
    kRemark,  ///< what a crash may leave behind, and damage may look like
  };
  Kind kind = Kind::kDamage;
  std::string part;     ///< of the pool: as CheckedPart::name
  std::string message;  ///< what, where (offset, row), what was expected, what was found
};

/// A part of the pool, and how it is.
struct CheckedPart {
  std::string name;
  std::uint64_t items = 0;  ///< what was looked at: entries, rows, slots ...
  std::uint64_t damages = 0;
  bool is_complete = true;  ///< false: damage hid some of it from the check
};

struct PoolCheckReport {
  std::vector<CheckedPart> parts;
  std::vector<PoolFinding> findings;  ///< of each part the first few; CheckedPart counts them all
  std::uint64_t damages = 0;
  std::uint64_t remarks = 0;
  std::uint64_t pool_bytes = 0;
  std::uint64_t used_bytes = 0;  ///< what was reached, each byte once
  std::uint64_t free_bytes = 0;
  std::uint64_t overhead_bytes = 0;

  bool is_clean() const noexcept { return damages == 0; }
};

struct PoolCheckOptions {
  std::string path = {};
  /// Called now and then, from the calling thread. Must not throw.
  std::function<void(const Progress&)> progress = {};
};

/// Audits a pool that nobody has open for writing, without changing a byte of the file: everything
/// that is reachable, and that nothing is reached twice. Goes on behind what is broken as far as it
/// can, so that damage in one table does not hide what is in others.
/// Takes long and much memory on large pools: every row and entry is read, every key sorted.
/// Fails with: kNotFound, kBusy, kReadOnly, kIoError, kInvalidArgument (no regular file),
/// kIncompatible (no pool of ours or of another version), kCorrupt (nothing in it to look at).
Result<PoolCheckReport> check_pool(const PoolCheckOptions& options);

}  // namespace flugs
