// Look-ups and writes whose table, key and columns have been found once.

#include "flugs/prepared.h"

#include <fmt/format.h>

#include <array>

#include "base/check.h"
#include "engine/database/database_core.h"
#include "engine/database/transaction_access.h"
#include "tables/table/table.h"

namespace flugs {

using engine::TransactionAccess;

// After that, the table that was found is still in DRAM: its database is open.
inline Status Prepared::check(const Transaction& transaction) const {
  if (Status s = TransactionAccess::check(transaction); !s.ok()) return s;
  if (__builtin_expect(TransactionAccess::database(transaction)->opening() == opening_, 1)) {
    FLUGS_DCHECK(table_ != nullptr);
    return {};
  }
  return Status(StatusCode::kInvalidArgument,
                table_ == nullptr ? "the Prepared is empty: Database::prepare makes one"
                                  : "the transaction is of another database than the Prepared");
}

Result<Row> Prepared::get(const Transaction& transaction, std::span<const Value> values) const {
  engine::TransactionContext* const context = TransactionAccess::context(transaction);
  const engine::Call call(context);
  if (Status s = check(transaction); !s.ok()) return s;
  const bool is_plain = !table_->is_dropped() && table_->keys().can_find(key_.index) &&
                        !table_->index_build().is_deferred() && !context->notes_reads();
  if (__builtin_expect(!is_plain, 0)) return transaction.get(key_, values);
  return table_->reader().find(*context, key_.index, values);
}

Status Prepared::read(const Transaction& transaction, std::span<const Value> values,
                      std::span<Value> out) const {
  if (out.size() != columns_.size())
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("read: room for {} values, {} columns are prepared", out.size(),
                              columns_.size()));
  const Result<Row> row = get(transaction, values);
  if (!row.ok()) return row.status();
  row->get_unchecked(columns_, out);
  return {};
}

Result<RowId> Prepared::update(Transaction& transaction, std::span<const Value> values,
                               std::span<const Value> changed) const {
  const engine::Call call(TransactionAccess::context(transaction));
  if (Status s = check(transaction); !s.ok()) return s;
  if (changed.size() != columns_.size())
    return Status(StatusCode::kInvalidArgument, SchemaPart::of(table_->name()),
                  fmt::format("update got {} values, {} columns are prepared", changed.size(),
                              columns_.size()));
  constexpr std::size_t kFew = 16;
  std::array<ColumnValue, kFew> few;
  std::vector<ColumnValue> many(columns_.size() > kFew ? columns_.size() : 0);
  const std::span<ColumnValue> changes =
      many.empty() ? std::span(few.data(), columns_.size()) : std::span(many);
  for (std::size_t i = 0; i < changes.size(); ++i) changes[i] = {columns_[i], changed[i]};
  return transaction.update(key_, values, changes);
}

Status Prepared::remove(Transaction& transaction, std::span<const Value> values) const {
  const engine::Call call(TransactionAccess::context(transaction));
  if (Status s = check(transaction); !s.ok()) return s;
  return transaction.remove(key_, values);
}

Result<Prepared> engine::DatabaseCore::prepare(KeyId key, std::span<const ColumnId> columns) const {
  Table* const table = this->table(key.table);
  if (table == nullptr) return no_table();
  if (!table->keys().can_find(key.index)) return table->data().no_key(key.index);
  if (!table->keys()[key.index]->is_unique())
    return Status(StatusCode::kInvalidArgument,
                  SchemaPart::key(table->name(), table->keys()[key.index]->name()),
                  "not unique, use rows");
  for (const ColumnId column : columns)
    if (!table->data().has_column(column)) return table->data().no_column(column);
  return Prepared(opening_, *table, key, {columns.begin(), columns.end()});
}

}  // namespace flugs
