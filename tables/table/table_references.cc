// Foreign keys: what a statement does to rows that refer to those that it deletes or changes, and
// whether in the end every row refers to one that is there.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_set>

#include "base/shown.h"
#include "tables/catalog/schema_codec.h"
#include "tables/table/definition_of_now.h"
#include "tables/table/table.h"

namespace flugs::engine {

/// Rows that a statement has made so far. They are listed when somebody asks, as cascades hardly
/// ever come to a row of which the transaction has made another version.
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
  /// The version of the record that was there before the statement; the row itself, if that was
  /// there, or there was none.
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
  std::size_t next_;  // of the writes: not listed yet
  std::unordered_set<std::uint64_t> rows_;
};

namespace {

using KeyValues = std::array<Value, kKeyColumnsMax>;

std::string words_of(const ForeignKey& foreign, std::span<const Value> values) {
  std::string words;
  for (std::size_t i = 0; i < values.size(); ++i)
    words +=
        fmt::format("{}{} = {}", i == 0 ? "" : ", ", foreign.schema().columns[i], shown(values[i]));
  return words;
}

std::string name_of(const ForeignKey& foreign) {
  return fmt::format("table {}, foreign key {}", foreign.child.name(), foreign.schema().name);
}

/// In one statement a column of a row gets one value, but for NULL. Else rows that refer to what
/// they were before could take turns for ever (SQL: triggered data change violation).
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
                                column.name(), shown(then), shown(now), shown(change.value)));
  }
  return {};
}

Status in_between(const ForeignKey& foreign) {
  return Status(StatusCode::kConflict,
                fmt::format("{}: is being created or dropped", name_of(foreign)));
}

}  // namespace

// ------------------------------------------------------------------------------- who knows whom

const ForeignKeySchema& ForeignKey::schema() const noexcept {
  return child.schema().foreign_keys[number];
}

void Table::add_foreign_key(std::size_t index, Table& parent) {
  const ForeignKeySchema& foreign = schema().foreign_keys[index];
  const std::size_t child_key = key_for(schema(), foreign.columns);
  const auto leading = data_.keys[child_key]->columns().first(foreign.columns.size());
  std::vector<std::uint16_t> columns(leading.begin(), leading.end());
  foreign_keys_.push_back(std::make_unique<ForeignKey>(
      ForeignKey{index, *this, parent, std::move(columns), child_key, foreign.referenced.index}));
  std::vector<const ForeignKey*> referrers;
  if (const auto* known = parent.referrers(); known != nullptr) referrers = *known;
  referrers.push_back(foreign_keys_.back().get());
  parent.set_referrers(std::move(referrers));
  data_.constraints.add(RowConstraints::kReferring);
}

Status Table::link_foreign_key(std::size_t index, FunctionRef<Table*(TableId id)> find) {
  const ForeignKeySchema& foreign = schema().foreign_keys[index];
  Table* parent = find(foreign.referenced.table);
  if (parent == nullptr)
    return Status(
        StatusCode::kCorrupt,
        fmt::format("{}: table {}, foreign key {}: refers to table id {}, which is not "
                    "there",
                    data_.pool.path(), name(), foreign.name, foreign.referenced.table.value()));
  if (Status s = check_reference(schema(), foreign, parent->schema()); !s.ok())
    return Status(StatusCode::kCorrupt, fmt::format("{}: {}", data_.pool.path(), s.message()));
  add_foreign_key(index, *parent);
  return {};
}

void Table::forget_parents() {
  for (const auto& foreign : foreign_keys_) {
    std::vector<const ForeignKey*> left;
    for (const ForeignKey* other : *foreign->parent.referrers())
      if (&other->child != this) left.push_back(other);
    foreign->parent.set_referrers(std::move(left));
  }
}

// Lists that were replaced may still be read; there are as many as foreign keys came and went.
void Table::set_referrers(std::vector<const ForeignKey*> referrers) {
  const bool is_any = !referrers.empty();
  referrer_lists_.push_back(
      std::make_unique<const std::vector<const ForeignKey*>>(std::move(referrers)));
  referrers_.store(referrer_lists_.back().get(), std::memory_order_release);
  if (is_any) {
    data_.constraints.add(RowConstraints::kReferenced);
  } else {
    data_.constraints.remove(RowConstraints::kReferenced);
  }
}

// Whether the row was made from one of another transaction's that refers to the same: whoever
// wants to delete what it refers to must have asked that one.
bool Table::keeps_reference(const ForeignKey& foreign, std::uint32_t row,
                            const mvcc::Visibility& visibility) const noexcept {
  const std::uint32_t before = data_.rows.previous(row);
  if (before == kNoRow ||
      mvcc::load_stamp(data_.rows.version(before).created) == visibility.own_tag())
    return false;
  const RowView now = data_.rows.view(row);
  const RowView then = data_.rows.view(before);
  return std::all_of(foreign.columns.begin(), foreign.columns.end(), [&](std::uint16_t column) {
    return now.value(*data_.columns[column], column) == then.value(*data_.columns[column], column);
  });
}

// ------------------------------------------------------------------------------------- asking

Result<bool> Table::check_parents(std::uint32_t row, const mvcc::Visibility& visibility,
                                  ReadSet* reads) const {
  if (!visibility.sees(data_.rows.version(row))) return false;
  bool is_referring = false;
  KeyValues room;
  std::vector<std::uint32_t> found;
  for (const auto& foreign : foreign_keys_) {
    const std::span<Value> values(room.data(), foreign->columns.size());
    if (!reader().values_of(row, foreign->columns, values)) continue;
    if (keeps_reference(*foreign, row, visibility)) continue;
    is_referring = true;
    if (Status s =
            foreign->parent.reader().collect(foreign->parent_key, values, visibility, 1, found);
        !s.ok())
      return s;
    if (!found.empty()) continue;
    if (reads != nullptr) reads->add_lookup(foreign->parent, foreign->parent_key, values);
    return Status(
        StatusCode::kConstraintViolated,
        fmt::format("{}: {} is not in table {}, key {}", name_of(*foreign),
                    words_of(*foreign, values), foreign->parent.name(), foreign->schema().key));
  }
  return is_referring;
}

// Of a row that the transaction has deleted, or replaced.
Result<bool> Table::check_children(std::uint32_t row, const mvcc::Visibility& visibility,
                                   ReadSet* reads) const {
  bool is_referenced = false;
  KeyValues room;
  std::vector<std::uint32_t> found;
  for (const ForeignKey* foreign : *referrers()) {
    const std::span<const std::uint16_t> columns = data_.keys[foreign->parent_key]->columns();
    const std::span<Value> values(room.data(), columns.size());
    if (!reader().values_of(row, columns, values)) continue;
    if (Status s = reader().collect(foreign->parent_key, values, visibility, 1, found); !s.ok())
      return s;
    if (!found.empty()) continue;
    if (foreign->child.is_dropped()) return in_between(*foreign);
    is_referenced = true;
    if (Status s =
            foreign->child.reader().collect(foreign->child_key, values, visibility, 1, found);
        !s.ok())
      return s;
    if (found.empty()) continue;
    if (reads != nullptr) reads->add_lookup(foreign->child, foreign->child_key, values);
    return Status(StatusCode::kConstraintViolated,
                  fmt::format("{}: rows with {} refer to table {}, key {}", name_of(*foreign),
                              words_of(*foreign, values), name(), foreign->schema().key));
  }
  return is_referenced;
}

Result<bool> Table::check_references(const mvcc::Write& write, const mvcc::Visibility& visibility,
                                     ReadSet* reads) const {
  if (!write.deletes)
    return foreign_keys_.empty() ? false : check_parents(write.row, visibility, reads);
  return referrers() == nullptr ? false : check_children(write.row, visibility, reads);
}

// --------------------------------------------------------------------------------------- acting

// What the foreign keys say is to be done with rows that referred to the one that was deleted by
// the write, or replaced by the row of the write before it.
Status Table::act_on_children(TransactionContext& context, std::size_t write, RowsMade& made) {
  const std::uint32_t old = context.writes[write].row;
  std::uint32_t replacement = kNoRow;
  if (write > 0 && !context.writes[write - 1].deletes &&
      context.writes[write - 1].table == data_.layout.table_id &&
      data_.rows.previous(context.writes[write - 1].row) == old)
    replacement = context.writes[write - 1].row;
  KeyValues room;
  std::vector<std::uint32_t> found;
  for (const ForeignKey* foreign : *referrers()) {
    const ReferenceAction action =
        replacement == kNoRow ? foreign->schema().on_delete : foreign->schema().on_update;
    if (action == ReferenceAction::kRestrict) continue;
    const std::span<const std::uint16_t> columns = data_.keys[foreign->parent_key]->columns();
    const std::span<Value> values(room.data(), columns.size());
    if (!reader().values_of(old, columns, values)) continue;
    if (Status s = reader().collect(foreign->parent_key, values, context.visibility, 1, found);
        !s.ok())
      return s;
    if (!found.empty()) continue;
    if (foreign->child.is_dropped()) return in_between(*foreign);
    if (Status s = foreign->child.reader().collect(foreign->child_key, values, context.visibility,
                                                   ~std::size_t{0}, found);
        !s.ok())
      return s;
    const bool cascades = action == ReferenceAction::kCascade;
    std::vector<ColumnValue> changes;
    for (std::size_t i = 0; i < columns.size() && (replacement != kNoRow || !cascades); ++i)
      changes.push_back(
          {ColumnId(foreign->columns[i]),
           cascades ? data_.rows.view(replacement).value(*data_.columns[columns[i]], columns[i])
                    : Value::null()});
    for (const std::uint32_t child : found) {
      Status s;
      if (cascades && !changes.empty()) s = check_first_change(*foreign, made, child, changes);
      if (s.ok()) s = foreign->child.act_on_child(context, child, changes);
      if (!s.ok()) {
        if (context.notes_reads())
          context.reads.add_refused_update(foreign->child, child, changes, s.code());
        return s.code() == StatusCode::kConflict
                   ? s
                   : Status(s.code(), fmt::format("{}: {}", name_of(*foreign), s.message()));
      }
    }
  }
  return {};
}

// No changes: it goes.
Status Table::act_on_child(TransactionContext& context, std::uint32_t row,
                           std::span<const ColumnValue> changes) {
  if (changes.empty()) return remove_row(context, RowId(row));
  return with_definition_of_now(*this, context, [&](const TableDefinition& now) -> Status {
    if (Status s = check_changes(now, changes); !s.ok()) return s;
    if (Status s = check_changed_row(now, row, changes); !s.ok()) return s;
    return update_row(now, context, RowId(row), changes).status();
  });
}

// Indexes that opening left, of tables whose keys will be looked up or whose rows may be changed.
Status Table::prepare_related() noexcept {
  for (const auto& foreign : foreign_keys_)
    if (foreign->parent.index_build().is_deferred())
      if (Status s = foreign->parent.index_build().prepare_lookup(foreign->parent_key); !s.ok())
        return s;
  if (referrers() == nullptr) return {};
  for (const ForeignKey* foreign : *referrers())
    if (foreign->child.index_build().is_deferred())
      if (Status s = foreign->child.index_build().prepare_write(); !s.ok()) return s;
  return {};
}

// Follows foreign keys from what the statement has written, and from what that has written in turn.
// Rows are asked at the end, when all is done that is to be done. On failure nothing is left.
Status Table::finish_statement(TransactionContext& context, const TransactionMark& mark) {
  const Visit visiting(context);  // which may take long
  Status s;
  RowsMade made(context, mark);
  for (std::size_t i = mark.writes; i < context.writes.size() && s.ok(); ++i) {
    Table& table = *context.table_of(context.writes[i].table);
    s = table.prepare_related();
    if (s.ok() && context.writes[i].deletes && table.referrers() != nullptr)
      s = table.act_on_children(context, i, made);
  }
  ReadSet* reads = context.notes_reads() ? &context.reads : nullptr;
  for (std::size_t i = mark.writes; i < context.writes.size() && s.ok(); ++i) {
    const mvcc::Write& write = context.writes[i];
    const Result<bool> holds =
        context.table_of(write.table)->check_references(write, context.visibility, reads);
    if (!holds.ok()) {
      s = holds.status();
    } else {
      context.asks_references |= *holds;
    }
  }
  if (s.ok()) return s;
  if (s.code() == StatusCode::kConflict) context.conflicts.add();
  // The refusal rests on the rows on the way to it, which keep no trace of the statement.
  for (std::size_t i = mark.writes; i < context.writes.size() && reads != nullptr; ++i)
    if (context.writes[i].deletes)
      reads->add_row(*context.table_of(context.writes[i].table), context.writes[i].row);
  context.undo_since(mark);
  return s;
}

// The row that a statement has made of another, and its own cascades of that.
RowId Table::newest_since(const TransactionContext& context, const TransactionMark& mark,
                          RowId row) const noexcept {
  std::uint32_t newest = row.value();
  for (std::size_t i = mark.writes; i < context.writes.size(); ++i) {
    const mvcc::Write& write = context.writes[i];
    if (!write.deletes && write.table == data_.layout.table_id &&
        data_.rows.previous(write.row) == newest)
      newest = write.row;
  }
  return RowId(newest);
}

// ---------------------------------------------------------------------------------------- audits

Status Table::verify_references(const mvcc::Visibility& visibility) const {
  if (foreign_keys_.empty()) return {};
  const std::uint32_t end = data_.rows.rows_end();
  KeyValues room;
  std::vector<std::uint32_t> found;
  for (std::uint32_t row = 0; row < end; ++row) {
    if (!visibility.sees(data_.rows.version(row))) continue;
    for (const auto& foreign : foreign_keys_) {
      const std::span<Value> values(room.data(), foreign->columns.size());
      if (!reader().values_of(row, foreign->columns, values)) continue;
      if (Status s =
              foreign->parent.reader().collect(foreign->parent_key, values, visibility, 1, found);
          !s.ok())
        return s;
      if (found.empty()) return unreferenced(*foreign, row);
    }
  }
  return {};
}

Status Table::unreferenced(const ForeignKey& foreign, std::uint32_t row) const {
  KeyValues room;
  const std::span<Value> values(room.data(), foreign.columns.size());
  reader().values_of(row, foreign.columns, values);
  return Status(StatusCode::kCorrupt,
                fmt::format("{}: {}: row {}: {} is not in table {}, key {}", data_.pool.path(),
                            name_of(foreign), row, words_of(foreign, values), foreign.parent.name(),
                            foreign.schema().key));
}

}  // namespace flugs::engine
