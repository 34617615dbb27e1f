#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "flugs/progress.h"
#include "flugs/status.h"

namespace flugs {

/// Something that a check of a pool found.
struct PoolFinding {
  enum class Kind : std::uint8_t {
    kDamage,  ///< the pool is not as flugs writes it
    kRemark,  ///< a state that a crash may leave behind, and that damage may look like
  };
  Kind kind = Kind::kDamage;
  std::string part;     ///< part of the pool, as in CheckedPart::name
  std::string message;  ///< what is wrong, where (offset, row), expected and found values
};

/// A part of the pool, and its condition.
struct CheckedPart {
  std::string name;
  std::uint64_t items = 0;  ///< entries, rows, slots ... that were checked
  std::uint64_t damages = 0;
  bool is_complete = true;  ///< false: damage hid some of it from the check
};

struct PoolCheckReport {
  std::vector<CheckedPart> parts;
  std::vector<PoolFinding> findings;  ///< the first few of each part; CheckedPart counts them all
  std::uint64_t damages = 0;
  std::uint64_t remarks = 0;
  std::uint64_t pool_bytes = 0;
  std::uint64_t used_bytes = 0;  ///< reachable bytes, each counted once
  std::uint64_t free_bytes = 0;
  std::uint64_t overhead_bytes = 0;

  bool is_clean() const noexcept { return damages == 0; }
};

struct PoolCheckOptions {
  std::string path = {};
  /// As in CallOptions. `progress` is called from the calling thread.
  std::function<void(const Progress&)> progress = {};
  std::stop_token stop = {};
};

/// Audits a pool that no process has open for writing, without changing a byte of the file:
/// everything that is reachable, and that nothing is reached twice. Goes on behind damage as far as
/// it can, so that damage in one table does not hide damage in others. Takes long and much memory
/// on large pools, because it reads every row and entry and sorts every key.
/// Fails with: kNotFound, kBusy, kReadOnly, kIoError, kInvalidArgument (no regular file),
/// kIncompatible (no flugs pool, or one of another version), kCorrupt (nothing in it can be
/// checked), kCancelled.
Result<PoolCheckReport> check_pool(const PoolCheckOptions& options);

}  // namespace flugs
