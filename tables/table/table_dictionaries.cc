// Columns that change from codes to values while the table is written (decision 0027).

#include <algorithm>
#include <limits>
#include <mutex>

#include "base/check.h"
#include "mvcc/transaction_slots.h"
#include "tables/table/table.h"
#include "tables/transactions/transaction_context.h"

namespace flugs::engine {

namespace {

// With this many entries of 8 bytes a dictionary takes 8 MB, and its index more: each read or write
// of a value is then a cache miss.
constexpr std::uint32_t kEntriesMax = 1u << 20;
// Bytes per entry in the column's hash index (decision 0015).
constexpr std::uint64_t kIndexBytes = 15;

bool has_judged_dictionary(const columns::Column& column) noexcept {
  return column.is_dictionary() && !column.is_text() &&
         column.dictionary().count() >= column.judged_from() && !column.is_dropped();
}

// Whether codes save more bytes in the rows than the dictionary takes.
bool pays(const columns::Column& column, std::uint64_t rows) noexcept {
  FLUGS_DCHECK(column.is_dictionary());
  const std::uint64_t entries = column.dictionary().count();
  const unsigned code_bits = columns::code_bits_for(entries);
  const unsigned direct_bits = column.direct_bits();
  if (entries >= kEntriesMax || direct_bits <= code_bits) return false;
  const std::uint64_t bytes = entries * (column.dictionary().entry_bytes() + kIndexBytes);
  return rows * (direct_bits - code_bits) / 8 >= bytes;
}

}  // namespace

bool Table::give_up_dictionaries(TransactionContext& context) {
  const auto is_judged = [&](std::size_t i) { return has_judged_dictionary(*data_.columns[i]); };
  std::size_t i = 0;
  const std::size_t end = data_.columns.size();
  while (i < end && !is_judged(i)) ++i;
  if (__builtin_expect(i == end, 1)) return false;
  // The holder of one of them may be waiting for this transaction to end, so only try.
  const std::unique_lock no_merge(merge_mutex_, std::try_to_lock);
  if (!no_merge.owns_lock()) return false;
  const std::unique_lock guard(*context.ddl_mutex, std::try_to_lock);
  if (!guard.owns_lock() || is_dropped()) return false;
  bool have_changed = false;
  for (; i < end; ++i) {
    if (!is_judged(i)) continue;
    columns::Column& column = *data_.columns[i];
    const std::uint32_t entries = column.dictionary().count();
    column.set_judged_from(entries + entries / 4);
    if (!schema().columns[i].chooses_encoding)
      column.set_judged_from(std::numeric_limits<std::uint32_t>::max());
    else if (!pays(column, data_.rows.rows_end()))
      have_changed |= column_reclaim().rewrite_column(i).ok();  // if not, it stays as it is
  }
  if (have_changed) note_readers_of_replaced(context.slots->advance());
  return have_changed;
}

}  // namespace flugs::engine
