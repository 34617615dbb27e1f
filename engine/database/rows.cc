// Rows that the user pulls: the public side of a RowCursor.

#include "flugs/rows.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "engine/database/database_core.h"
#include "flugs/transaction.h"
#include "tables/table/batch_decoding.h"
#include "tables/table/row_cursor.h"

namespace flugs {

namespace {

Status walk_is_over() {
  return Status(StatusCode::kInvalidArgument,
                "the transaction of these rows has ended, or has undone writes from before the "
                "walk began");
}

}  // namespace

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
  batch_ = std::move(other.batch_);
  return *this;
}
Rows::~Rows() {
  if (cursor_ != nullptr) cursor_->abandon();
}

void Rows::finish(Status why) {
  FLUGS_CHECK(cursor_ != nullptr);
  status_ = std::move(why);
  cursor_->abandon();
  cursor_.reset();
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

// Whether the transaction of a walk that is not over may go on. Within a call of it.
bool Rows::begin_step() {
  engine::TransactionContext& context = cursor_->context();
  if (!context.ending.is_to_end()) return true;
  finish(database_->transaction_manager().end_as_asked(context));
  return false;
}

const Row* Rows::next() {
  if (cursor_ == nullptr) return nullptr;
  if (cursor_->is_over()) {
    finish(walk_is_over());
    return nullptr;
  }
  engine::TransactionContext& context = cursor_->context();
  const engine::Call call(&context);
  if (!begin_step()) return nullptr;
  const Result<std::uint32_t> row = cursor_->next();
  if (row.ok() && *row != engine::kNoRow) {
    row_ = cursor_->table().data().make_row(*row);
    return &row_;
  }
  finish(row.code() == StatusCode::kCancelled
             ? database_->transaction_manager().end_as_asked(context)
             : row.status());
  return nullptr;
}

const ScanBatch* Rows::next_batch(std::span<const ColumnId> columns) {
  if (cursor_ == nullptr) return nullptr;
  if (cursor_->is_over()) {
    finish(walk_is_over());
    return nullptr;
  }
  engine::TransactionContext& context = cursor_->context();
  const engine::Call call(&context);
  if (!begin_step()) return nullptr;
  if (batch_ == nullptr) batch_ = std::make_unique<ScanBatch>();
  const engine::TableData& data = cursor_->table().data();
  Status done = data.check_columns(columns);
  batch_->row_id_buffer().clear();
  if (done.ok()) done = cursor_->next_batch(ScanBatch::kRowsMax, batch_->row_id_buffer());
  const std::size_t count = batch_->row_id_buffer().size();
  FLUGS_CHECK(count <= ScanBatch::kRowsMax);
  if (done.ok() && count != 0) {
    engine::prepare_batch(*batch_, data.columns, columns, count);
    batch_->set_row_count(count);
    engine::decode_batch(*batch_, data.columns, columns, data.rows);
    // Rows that a merge moved after a drop no longer have values of the column.
    done = data.check_columns(columns);
  }
  if (done.ok() && count != 0) return batch_.get();
  finish(done.code() == StatusCode::kCancelled
             ? database_->transaction_manager().end_as_asked(context)
             : std::move(done));
  return nullptr;
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
