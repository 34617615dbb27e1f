#include "tables/table/cascade.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_set>
#include <vector>

#include "base/check.h"
#include "base/long_call.h"
#include "base/shown.h"
#include "tables/table/row_writer.h"
#include "tables/table/table.h"
#include "tables/transactions/transaction_context.h"

namespace flugs::engine {

/// Rows that a statement has made so far. They are listed only when needed: cascades hardly ever
/// come to a row that the transaction has replaced by another version.
class RowsMade {
 public:
  RowsMade(const TransactionContext& context, const TransactionMark& mark)
      : context_(context), next_(mark.writes) {}

  bool has(const Table& table, std::uint32_t row) {
    for (; next_ < context_.writes.size(); ++next_)
      if (const mvcc::Write& write = context_.writes[next_]; !write.deletes)
        rows_.insert(name_of(write.table, write.row));
    return rows_.contains(name_of(table.id().value(), row));
  }
  /// The version of the record from before the statement; `row` itself if it is that version, or if
  /// there was none.
  std::uint32_t before(const Table& table, std::uint32_t row) {
    const bool is_own =
        mvcc::load_stamp(table.rows().version(row).created) == context_.visibility.own_tag();
    while (is_own && table.rows().previous(row) != kNoRow && has(table, row))
      row = table.rows().previous(row);
    return row;
  }

 private:
  static std::uint64_t name_of(std::uint32_t table, std::uint32_t row) noexcept {
    return std::uint64_t{table} << 32 | row;
  }

  const TransactionContext& context_;
  std::size_t next_;  // the first write that is not listed yet
  std::unordered_set<std::uint64_t> rows_;
};

namespace {

using CascadeValues = std::array<Value, kKeyColumnsMax>;

/// Checks that one statement gives a column of a row only one value besides NULL. Otherwise rows
/// that refer to their own former values could change in turn for ever (SQL: triggered data change
/// violation).
Status check_first_change(const ForeignKey& foreign, RowsMade& made, std::uint32_t row,
                          std::span<const ColumnValue> changes) {
  const std::uint32_t before = made.before(foreign.child, row);
  if (before == row) return {};
  for (const ColumnValue& change : changes) {
    const std::size_t i = change.column.value();
    const columns::Column& column = *foreign.child.columns()[i];
    const Value now = foreign.child.rows().view(row).value(column, i);
    const Value then = foreign.child.rows().view(before).value(column, i);
    if (compare_values(now, then) != 0 && compare_values(now, change.value) != 0)
      return Status(StatusCode::kConstraintViolated,
                    fmt::format("one statement would change column {} from {} to {} and to {}",
                                column.name(), shown(then), shown(now), shown(change.value)))
          .with_part(SchemaPart::column(foreign.child.name(), column.name()));
  }
  return {};
}

}  // namespace

// Does what the foreign keys demand for rows that refer to the row that this write deleted, or that
// the write before it replaced.
Status Cascade::act_on_children(Table& parent, std::size_t write, RowsMade& made) {
  const std::uint32_t old = context_.writes[write].row;
  const TableData& data = parent.data();
  FLUGS_DCHECK(context_.writes[write].deletes);
  FLUGS_DCHECK(context_.writes[write].table == data.layout.table_id);
  const RowReader reader = parent.reader();
  std::uint32_t replacement = kNoRow;
  if (write > 0 && !context_.writes[write - 1].deletes &&
      context_.writes[write - 1].table == data.layout.table_id &&
      data.rows.previous(context_.writes[write - 1].row) == old)
    replacement = context_.writes[write - 1].row;
  CascadeValues room;
  std::vector<std::uint32_t> found;
  for (const ForeignKey* foreign : *parent.references().referrers()) {
    FLUGS_DCHECK(&foreign->parent == &parent);
    const ReferenceAction action =
        replacement == kNoRow ? foreign->schema().on_delete : foreign->schema().on_update;
    if (action == ReferenceAction::kRestrict) continue;
    const std::span<const std::uint16_t> columns = data.keys[foreign->parent_key]->columns();
    FLUGS_DCHECK(columns.size() == foreign->columns.size());
    const std::span<Value> values(room.data(), columns.size());
    if (!reader.values_of(old, columns, values)) continue;
    if (Status s = reader.collect(foreign->parent_key, values, context_.visibility, 1, found);
        !s.ok())
      return s;
    if (!found.empty()) continue;
    if (foreign->child.is_dropped()) return in_between(*foreign);
    if (Status s = foreign->child.reader().collect(foreign->child_key, values, context_.visibility,
                                                   ~std::size_t{0}, found);
        !s.ok())
      return s;
    // The foreign key may yet be taken back; its changes of rows could not be.
    if (foreign->is_pending() && !found.empty()) return in_between(*foreign);
    const bool cascades = action == ReferenceAction::kCascade;
    std::vector<ColumnValue> changes;
    for (std::size_t i = 0; i < columns.size() && (replacement != kNoRow || !cascades); ++i)
      changes.push_back(
          {ColumnId(foreign->columns[i]),
           cascades ? data.rows.view(replacement).value(*data.columns[columns[i]], columns[i])
                    : Value::null()});
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (Status s = may_go_on(found.size() - i); !s.ok()) return s;
      const std::uint32_t child = found[i];
      Status s;
      if (cascades && !changes.empty()) s = check_first_change(*foreign, made, child, changes);
      if (s.ok()) s = act_on_child(foreign->child, child, changes);
      if (!s.ok()) {
        if (context_.notes_reads())
          context_.reads.add_refused_update(foreign->child, child, changes, s.code());
        return s.code() == StatusCode::kConflict ? s
                                                 : Status(s.code(), part_of(*foreign), s.message());
      }
    }
  }
  return {};
}

// Each row counts as a step: one that is written, and one that is checked. A caller hears how many
// rows are written.
Status Cascade::may_go_on(std::size_t rows_left) {
  if (call_ == nullptr || ++steps_ % LongCall::kRowsPerTell != 0) return {};
  const std::size_t written = context_.writes.size() - mark_.writes;
  if (call_->goes_on(written, written + rows_left)) return {};
  is_stopped_ = true;
  return Status(StatusCode::kCancelled);
}

// Without changes the row is removed.
Status Cascade::act_on_child(Table& child, std::uint32_t row,
                             std::span<const ColumnValue> changes) {
  RowWriter writer(child, context_);
  Status s = changes.empty() ? writer.remove_only(RowId(row))
                             : writer.update_only(RowId(row), changes).status();
  if (s.code() != StatusCode::kNotFound) return s;
  // With read committed: the caller named another row, which is there.
  context_.note_conflict(ConflictReason::kRowWritten, child.id().value(), row, mvcc::kNoStamp);
  return Status(StatusCode::kConflict);
}

// Prepares the indexes that opening left, for tables whose keys will be looked up or whose rows may
// change.
Status Cascade::prepare_related(Table& table) noexcept {
  for (const ForeignKey* foreign : table.references().foreign_keys())
    if (foreign->parent.index_build().is_deferred())
      if (Status s = foreign->parent.index_build().prepare_lookup(foreign->parent_key); !s.ok())
        return s;
  const auto* const referrers = table.references().referrers();
  if (referrers == nullptr) return {};
  for (const ForeignKey* foreign : *referrers)
    if (foreign->child.index_build().is_deferred())
      if (Status s = foreign->child.index_build().prepare_write(); !s.ok()) return s;
  return {};
}

// Follows foreign keys from the statement's writes, and from the writes that follow. Checks the
// rows at the end, when all writes are done. On failure it leaves nothing behind.
Status Cascade::finish() {
  FLUGS_DCHECK(mark_.writes <= context_.writes.size());
  const Visit visiting(context_);  // which may take long
  const std::uint64_t conflicts = context_.conflicts.get();
  Status s;
  RowsMade made(context_, mark_);
  for (std::size_t i = mark_.writes; i < context_.writes.size() && s.ok(); ++i) {
    FLUGS_DCHECK(context_.table_of(context_.writes[i].table) != nullptr);
    Table& table = *context_.table_of(context_.writes[i].table);
    s = may_go_on(0);
    if (s.ok()) s = prepare_related(table);
    if (s.ok() && context_.writes[i].deletes && table.references().referrers() != nullptr)
      s = act_on_children(table, i, made);
  }
  ReadSet* reads = context_.notes_reads() ? &context_.reads : nullptr;
  for (std::size_t i = mark_.writes; i < context_.writes.size() && s.ok(); ++i) {
    s = may_go_on(0);
    if (!s.ok()) break;
    const mvcc::Write& write = context_.writes[i];
    const Result<bool> holds =
        context_.table_of(write.table)->references().check(write, context_.visibility, reads);
    if (!holds.ok()) {
      s = holds.status();
    } else {
      context_.asks_references |= *holds;
    }
  }
  if (s.ok()) return s;
  const bool is_counted = context_.conflicts.get() != conflicts;  // by the write that met it
  if (s.code() == StatusCode::kConflict && !is_counted) context_.conflicts.add();
  // The refusal depends on rows that were changed on the way to it, and undoing leaves no trace of
  // them: so note them as read.
  const bool is_refused = reads != nullptr && !is_stopped_;
  for (std::size_t i = mark_.writes; i < context_.writes.size() && is_refused; ++i)
    if (context_.writes[i].deletes)
      reads->add_row(*context_.table_of(context_.writes[i].table), context_.writes[i].row);
  context_.undo_since(mark_);
  return s;
}

}  // namespace flugs::engine
