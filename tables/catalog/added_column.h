#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "columns/cells/unflushed.h"
#include "columns/column/column.h"
#include "flugs/schema.h"
#include "flugs/status.h"
#include "pmem/medium/persist.h"
#include "pmem/pool/pool.h"
#include "pmem/space/extent_allocator.h"
#include "tables/catalog/added_column_layout.h"

namespace flugs::engine {

/// The parts of an added column in its extent.
columns::ColumnLayout& column_layout_of(AddedColumnLayout& added) noexcept;
columns::HintIndexLayout* hints_of(AddedColumnLayout& added) noexcept;
/// The value of rows that lack the column; is_null for NULL, also in a dictionary column. Not for
/// kNone.
columns::Cell constant_of(const AddedColumnLayout& added) noexcept;
pmem::Extent extent_of(pmem::Pool& pool, const AddedColumnLayout& added) noexcept;

/// Finds the layout at `offset`, of a column with this schema, number `column` of the table. Its
/// `nullable` is not compared: it may say less or more than the schema of today. Trusts nothing:
/// fails with kCorrupt.
Result<AddedColumnLayout*> read_added_column(pmem::Pool& pool, std::uint64_t offset,
                                             std::uint32_t table_id, const std::string& table,
                                             std::size_t column, const ColumnSchema& schema);

/// A column on its way into a table. The destructor frees what the column owns in the pool, unless
/// `keep` was called.
class NewColumn {
 public:
  explicit NewColumn(pmem::Pool& pool) : pool_(pool) {}
  NewColumn(const NewColumn&) = delete;
  NewColumn& operator=(const NewColumn&) = delete;
  ~NewColumn();

  /// Writes the layout and the first contents of the column. `constant` is the value of rows that
  /// lack the column, null if there are no such rows. Durable on return. `schema` is complete.
  /// Fails with kOutOfSpace.
  Status make(std::uint32_t table_id, const std::string& table, std::size_t column,
              const ColumnSchema& schema, bool has_hints, const Value* constant,
              columns::Decoder& decoder);
  std::uint64_t offset() const noexcept { return extent_.offset; }
  /// Keeps the column: from then on it is reachable.
  std::unique_ptr<columns::Column> keep() noexcept {
    extent_ = {};
    return std::move(column_);
  }

 private:
  Status write_constant(AddedColumnLayout& added, const Value& constant,
                        columns::Unflushed& unflushed, pmem::Persister& persister);

  pmem::Pool& pool_;
  pmem::Extent extent_{};
  std::unique_ptr<columns::Column> column_;
};

}  // namespace flugs::engine
