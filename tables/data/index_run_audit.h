#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "flugs/status.h"
#include "tables/keys/index_runs.h"

namespace flugs::engine {

class KeyIndex;
struct TableData;

/// Checks the runs of a quiet table against its rows: each row that a run covers must have its
/// entries there, in their places, and a run must have no other entry of such a row.
class IndexRunAudit {
 public:
  /// `pool` names the pool in messages.
  IndexRunAudit(const TableData& table, std::string pool) : table_(table), pool_(std::move(pool)) {}

  /// Returns the first mistake, as kCorrupt.
  Status run() const;
  /// Checks only the checksums of the runs.
  Status run_checksums() const;

 private:
  Status audit_hashed(const IndexRuns::Member& member, std::size_t key) const;
  Status audit_ordered(const IndexRuns::Member& member, std::size_t key) const;
  Status corrupt(const IndexRuns::Member& member, const KeyIndex& key, const std::string& what,
                 const char* expected) const;
  bool is_covered(const IndexRuns::Member& member, std::uint32_t row) const noexcept;

  const TableData& table_;
  const std::string pool_;
};

}  // namespace flugs::engine
