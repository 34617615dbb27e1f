#include "tables/table/row_cursor.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "tables/opening/index_build.h"
#include "tables/table/table.h"
#include "tables/transactions/transaction_context.h"

namespace flugs::engine {

RowCursor::RowCursor(Table& table, TransactionContext& context, RowCursorWay way)
    : OpenWalk(context.writes.size()),
      table_(table),
      context_(context),
      way_(std::move(way)),
      visibility_(context.visibility) {}

bool RowCursor::reverse() noexcept {
  if (!has_begun_) way_.descending = !way_.descending;
  return !has_begun_;
}

bool RowCursor::limit(std::uint64_t rows) noexcept {
  if (!has_begun_) left_ = std::min(left_, rows);
  return !has_begun_;
}

Result<std::uint32_t> RowCursor::next() {
  const Result<bool> has = has_row();
  if (!has.ok()) return has.status();
  return *has ? rows_[at_++] : kNoRow;
}

Status RowCursor::next_batch(std::size_t rows_max, std::vector<RowId>& rows) {
  while (rows.size() < rows_max) {
    const Result<bool> has = has_row();
    if (!has.ok()) return has.status();
    if (!*has) break;
    const std::size_t count = std::min(rows_max - rows.size(), rows_.size() - at_);
    for (std::size_t i = 0; i < count; ++i) rows.emplace_back(rows_[at_++]);
  }
  return {};
}

Result<bool> RowCursor::has_row() {
  while (at_ == rows_.size()) {
    if (!failure_.ok()) return failure_;
    if (has_read_all_) return false;
    failure_ = read_batch(std::min(batch_rows_, left_));
    // Without its index a walk looks at all rows for each batch: it must not have many.
    const bool is_slow = table_.index_build().is_deferred();
    batch_rows_ = is_slow ? batch_rows_ * 4 : std::min(batch_rows_ * 4, kBatchMax);
  }
  return true;
}

// Reads the remaining rows, and puts them behind the rows that were read but not given yet.
void RowCursor::read_rest() {
  if (has_read_all_ || !failure_.ok()) return;
  std::vector<std::uint32_t> waiting(rows_.begin() + static_cast<std::ptrdiff_t>(at_), rows_.end());
  failure_ = read_batch(left_);
  has_read_all_ = true;
  waiting.insert(waiting.end(), rows_.begin(), rows_.end());
  rows_ = std::move(waiting);
  at_ = 0;
}

Status RowCursor::read_batch(std::uint64_t rows_max) {
  FLUGS_DCHECK(!has_read_all_ && failure_.ok());
  has_begun_ = true;
  rows_.clear();
  at_ = 0;
  if (rows_max == 0) {
    has_read_all_ = true;
    return {};
  }
  if (!table_.keys().can_find(way_.key)) return table_.data().no_key(way_.key);
  const Visit visiting(context_);
  const bool is_ordered = table_.keys()[way_.key]->is_ordered();
  if (table_.index_build().is_deferred())
    if (Status s = is_ordered ? table_.index_build().prepare_range()
                              : table_.index_build().prepare_lookup(way_.key);
        !s.ok())
      return s;
  Status done;
  if (is_ordered || !way_.is_prefix) {
    done = table_.reader().range_part(
        context_, way_.key, {way_.from(), way_.to(), way_.descending, last_}, visibility_,
        [&](std::uint32_t row) {
          if (rows_.size() < rows_max) rows_.push_back(row);
          return rows_.size() < rows_max && !context_.ending.is_to_end();
        });
    has_read_all_ = rows_.size() < rows_max || rows_.size() == left_;
  } else {
    done = read_unordered();
  }
  if (done.ok() && context_.ending.is_to_end()) done = context_.ending.why_ended();
  if (!done.ok()) return done;
  left_ -= rows_.size();
  if (!rows_.empty()) last_ = rows_.back();
  if (context_.notes_reads()) note_read();
  return {};
}

// A hash gives few rows: all are read at once.
Status RowCursor::read_unordered() {
  FLUGS_CHECK(last_ == kNoRow);
  if (way_.descending)
    return Status(StatusCode::kInvalidArgument,
                  SchemaPart::key(table_.name(), table_.keys()[way_.key]->name()),
                  "not ordered, so it cannot be walked in reverse");
  has_read_all_ = true;
  return table_.reader().find_all(context_, way_.key, way_.lower.view(), [&](const Row& row) {
    if (rows_.size() < left_) rows_.push_back(row.id().value());
    return rows_.size() < left_;
  });
}

void RowCursor::note_read() {
  const bool is_ordered = table_.keys()[way_.key]->is_ordered();
  if (!is_ordered) return context_.reads.add_lookup(table_, way_.key, way_.lower.view());
  if (!noted_)
    noted_ = context_.reads.add_walk(table_, way_.key, way_.from(), way_.to(), way_.descending);
  // A walk that stopped at its limit says nothing of the rows behind it.
  const bool is_to_end = has_read_all_ && left_ != 0;
  context_.reads.note_walked(*noted_, is_to_end ? kNoRow : last_);
}

}  // namespace flugs::engine
