#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "flugs/function_ref.h"
#include "flugs/status.h"
#include "mvcc/visibility.h"
#include "tables/catalog/foreign_keys.h"
#include "tables/data/check_constraint.h"

namespace flugs {
class LongCall;
}  // namespace flugs

namespace flugs::engine {

class TableReferences;
struct TableData;

/// Checks whether the rows of a table fulfil a constraint that is being added to it, while
/// transactions go on.
///
/// Writers have obeyed the constraint since before the snapshot: transactions that began earlier
/// have ended. So if all rows that the snapshot sees fulfil it, all later rows do.
///
/// Each function reads all rows, and fails with kConstraintViolated, which names a row that breaks
/// the constraint; kNotFound (the table is being dropped); kCancelled (`stops`, or the caller has
/// asked to stop).
/// Thread-safety: one thread, in an open transaction.
class RowValidation final {
 public:
  /// `references` are the table's.
  RowValidation(const TableData& data, const TableReferences& references,
                const mvcc::Visibility& snapshot, const std::atomic<bool>& stops,
                LongCall& call) noexcept
      : data_(data), references_(references), snapshot_(snapshot), stops_(stops), call_(call) {}

  Status check(const CheckConstraint& check) const;
  Status not_null(std::size_t column) const;
  /// Also fails with kCorrupt.
  Status foreign_key(const ForeignKey& foreign) const;

 private:
  std::string name_of(std::uint32_t row) const;
  Status each_row(FunctionRef<Status(std::uint32_t row)> judge) const;

  const TableData& data_;
  const TableReferences& references_;
  const mvcc::Visibility& snapshot_;
  const std::atomic<bool>& stops_;
  LongCall& call_;
};

}  // namespace flugs::engine
