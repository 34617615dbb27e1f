#pragma once

#include <cstdint>
#include <vector>

#include "tables/rows/row_store.h"
#include "tables/transactions/auto_increment.h"

namespace flugs::engine {

class Table;

/// Rows that a slot may use next, per table; kept between transactions.
struct LocalRows {
  Table* table = nullptr;
  RowRange range;
  std::vector<std::uint32_t> free;
  std::uint64_t checked_at = 0;  ///< RowStore::last_emptied_at when these rows were last checked
  ValueBlock numbers;
};

/// The local rows of one slot, table by table. A slot works with few tables, so they are searched
/// from the first to the last.
///
/// Invariant: no row is with two slots, nor with a slot and a table's free rows at the same time.
/// Thread-safety: the thread that has the slot.
class SlotRows final {
 public:
  LocalRows& of(Table& table) {
    for (LocalRows& local : tables_)
      if (local.table == &table) return local;
    return add(table);
  }
  std::vector<LocalRows>::iterator begin() noexcept { return tables_.begin(); }
  std::vector<LocalRows>::iterator end() noexcept { return tables_.end(); }

 private:
  LocalRows& add(Table& table);

  std::vector<LocalRows> tables_;
};

}  // namespace flugs::engine
