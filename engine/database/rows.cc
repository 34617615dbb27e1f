// Rows that the user pulls: the public side of a RowCursor.

#include "flugs/rows.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "engine/database/database_core.h"
#include "flugs/transaction.h"
#include "tables/table/row_cursor.h"

namespace flugs {

Rows::Rows(Status why) : status_(std::move(why)) {}
Rows::Rows(engine::DatabaseCore* database, std::shared_ptr<engine::RowCursor> cursor) noexcept
    : database_(database), cursor_(std::move(cursor)) {}
Rows::Rows(Rows&&) noexcept = default;
Rows& Rows::operator=(Rows&& other) noexcept {
  if (this == &other) return *this;
  if (cursor_ != nullptr) cursor_->abandon();
  database_ = other.database_;
  cursor_ = std::move(other.cursor_);
  status_ = std::move(other.status_);
  row_ = other.row_;
  return *this;
}
Rows::~Rows() {
  if (cursor_ != nullptr) cursor_->abandon();
}

const Row* Rows::finish(Status why) {
  status_ = std::move(why);
  cursor_->abandon();
  cursor_.reset();
  return nullptr;
}

Rows Rows::reverse() && {
  if (cursor_ != nullptr && !cursor_->reverse())
    finish(Status(StatusCode::kInvalidArgument, "reverse: the first row has been read"));
  return std::move(*this);
}

Rows Rows::limit(std::uint64_t rows) && {
  if (cursor_ != nullptr && !cursor_->limit(rows))
    finish(Status(StatusCode::kInvalidArgument, "limit: the first row has been read"));
  return std::move(*this);
}

const Row* Rows::next() {
  if (cursor_ == nullptr) return nullptr;
  if (cursor_->is_over())
    return finish(Status(StatusCode::kInvalidArgument,
                         "the transaction of these rows has ended, or has undone writes from "
                         "before the walk began"));
  engine::TransactionContext& context = cursor_->context();
  const engine::Call call(&context);
  const auto cancelled = [&] {
    return finish(database_->transaction_manager().end_as_asked(context));
  };
  if (context.ending.is_to_end()) return cancelled();
  const Result<std::uint32_t> row = cursor_->next();
  if (row.code() == StatusCode::kCancelled) return cancelled();
  if (!row.ok()) return finish(row.status());
  if (*row == engine::kNoRow) return finish({});
  row_ = cursor_->table().data().make_row(*row);
  return &row_;
}

Rows Transaction::begin_rows(TableId table, engine::RowCursorWay&& way) const {
  const engine::Call call(context_);
  if (!is_usable()) return Rows(unusable());
  engine::Table* target = database_->table(table);
  if (target == nullptr) return Rows(engine::no_table());
  auto cursor = std::make_shared<engine::RowCursor>(*target, *context_, std::move(way));
  context_->walks.add(cursor);
  return {database_, std::move(cursor)};
}

Rows Transaction::rows(KeyId key, std::span<const Value> prefix) const {
  engine::RowCursorWay way;
  way.key = key.index;
  way.lower = engine::OwnedValues(prefix);
  way.is_prefix = true;
  return begin_rows(key.table, std::move(way));
}

Rows Transaction::rows(KeyId key, KeyBound lower, KeyBound upper) const {
  engine::RowCursorWay way;
  way.key = key.index;
  way.lower = engine::OwnedValues(lower.values);
  way.upper = engine::OwnedValues(upper.values);
  way.lower_inclusive = lower.inclusive;
  way.upper_inclusive = upper.inclusive;
  return begin_rows(key.table, std::move(way));
}

}  // namespace flugs
