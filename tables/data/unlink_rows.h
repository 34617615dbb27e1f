#pragma once

#include "mvcc/stamps.h"

namespace flugs::engine {

struct DeadRow;
struct IndexChange;
struct LongText;
struct TableData;

// How rows leave a table: those of a transaction that is undone at once, those that were deleted by
// garbage collection, when no reader can want them any more.

/// Undoes one change of a key index. Changes are undone in reverse order.
void undo_index_change(TableData& data, const IndexChange& change);

/// Garbage collection, step 1: takes the row out of every index that names it, then stamps it as
/// never created. Returns the stamped entry, to be flushed; null when the row has none any more.
mvcc::VersionLayout* unlink_dead(TableData& data, const DeadRow& dead);
/// Lets later texts use the place of one that rows have left, if its column still has the edition
/// of then.
void give_back_text(TableData& data, const LongText& text) noexcept;
/// Starts fetching the memory that unlink_dead will touch.
void prefetch_unlinking(const TableData& data, const DeadRow& dead) noexcept;

}  // namespace flugs::engine
