#pragma once

#include <cstdint>

#include "columns/index/hash_index.h"
#include "flugs/status.h"
#include "mvcc/visibility.h"

namespace flugs::engine {

class KeyIndex;
struct TableData;

/// Full audit of a quiet table: dictionaries, groups, rows, check conditions, key indexes and index
/// runs. Foreign keys are audited elsewhere (TableReferences::verify), as they need two tables.
/// Thread-safety: one thread; no transaction writes to the table.
class TableAudit final {
 public:
  explicit TableAudit(const TableData& data) noexcept : data_(data) {}

  /// The first thing that is wrong, kCorrupt.
  Status run(const mvcc::Visibility& visibility) const;
  /// Whether a row fulfils the table's checks. Fails with kCorrupt, as they were made when the row
  /// was written.
  Status check_conditions(std::uint32_t row) const;

 private:
  Status check_groups() const;
  Status check_entries(const KeyIndex& key, std::uint32_t row, const mvcc::Visibility& visibility,
                       columns::Candidates& candidates) const;

  const TableData& data_;
};

}  // namespace flugs::engine
