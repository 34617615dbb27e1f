#pragma once

#include <cstdint>

#include "columns/index/hash_index.h"
#include "flugs/function_ref.h"
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

  /// The first thing that is wrong, kCorrupt. Calls `goes_on` now and then with the rows checked so
  /// far; kCancelled if it returns false.
  Status run(const mvcc::Visibility& visibility,
             FunctionRef<bool(std::uint32_t rows)> goes_on) const;
  /// Whether a row fulfils the table's checks. Fails with kCorrupt, as they were made when the row
  /// was written.
  Status check_conditions(std::uint32_t row) const;

 private:
  Status check_parts(FunctionRef<bool(std::uint32_t rows)> goes_on) const;
  Status check_groups(FunctionRef<bool(std::uint32_t rows)> goes_on) const;
  Status stopped() const;
  Status check_entries(const KeyIndex& key, std::uint32_t row, const mvcc::Visibility& visibility,
                       columns::Candidates& candidates) const;

  const TableData& data_;
};

}  // namespace flugs::engine
