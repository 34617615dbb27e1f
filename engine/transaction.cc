#include "flugs/transaction.h"

#include <fmt/format.h>

#include "engine/database_core.h"

namespace flugs {

namespace {

Status ended() { return Status(StatusCode::kInvalidArgument, "the transaction has ended"); }

}  // namespace

Transaction& Transaction::operator=(Transaction&& other) noexcept {
  if (this != &other) {
    abort();
    database_ = other.database_;
    context_ = std::exchange(other.context_, nullptr);
    commit_timestamp_ = other.commit_timestamp_;
  }
  return *this;
}

Result<RowId> Transaction::insert(TableId table, std::span<const Value> values) {
  if (context_ == nullptr) return ended();
  engine::Table* target = database_->table(table);
  if (target == nullptr) return engine::no_table();
  if (Status s = database_->prepare_write(context_); !s.ok()) return s;
  return target->insert(*context_, values);
}

Status Transaction::insert_rows(TableId table, std::span<const Value> values,
                                std::span<RowId> ids) {
  if (context_ == nullptr) return ended();
  engine::Table* target = database_->table(table);
  if (target == nullptr) return engine::no_table();
  if (Status s = database_->prepare_write(context_); !s.ok()) return s;
  return target->insert_rows(*context_, values, ids);
}

Result<RowId> Transaction::update(TableId table, RowId row, std::span<const ColumnValue> changes) {
  if (context_ == nullptr) return ended();
  engine::Table* target = database_->table(table);
  if (target == nullptr) return engine::no_table();
  if (Status s = database_->prepare_write(context_); !s.ok()) return s;
  return target->update(*context_, row, changes);
}

Status Transaction::remove(TableId table, RowId row) {
  if (context_ == nullptr) return ended();
  engine::Table* target = database_->table(table);
  if (target == nullptr) return engine::no_table();
  if (Status s = database_->prepare_write(context_); !s.ok()) return s;
  return target->remove(*context_, row);
}

Result<Row> Transaction::read(TableId table, RowId row) const {
  if (context_ == nullptr) return ended();
  const engine::Table* target = database_->table(table);
  if (target == nullptr) return engine::no_table();
  return target->read(*context_, row);
}

Result<Row> Transaction::find(KeyId key, std::span<const Value> values) const {
  if (context_ == nullptr) return ended();
  const engine::Table* target = database_->table(key.table);
  if (target == nullptr) return engine::no_table();
  if (key.index >= target->keys().size())
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("table {}: no key {}", target->name(), key.index));
  return target->find(*context_, key.index, values);
}

void Transaction::prefetch(KeyId key, std::span<const Value> values) const noexcept {
  if (context_ != nullptr) database_->prefetch(key, values);
}

Status Transaction::find_all(KeyId key, std::span<const Value> prefix,
                             FunctionRef<bool(const Row&)> visit) const {
  if (context_ == nullptr) return ended();
  const engine::Table* target = database_->table(key.table);
  if (target == nullptr) return engine::no_table();
  if (key.index >= target->keys().size())
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("table {}: no key {}", target->name(), key.index));
  return target->find_all(*context_, key.index, prefix, visit);
}

Status Transaction::range(KeyId key, KeyBound lower, KeyBound upper,
                          FunctionRef<bool(const Row&)> visit) const {
  if (context_ == nullptr) return ended();
  const engine::Table* target = database_->table(key.table);
  if (target == nullptr) return engine::no_table();
  if (key.index >= target->keys().size())
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("table {}: no key {}", target->name(), key.index));
  return target->range(*context_, key.index, lower, upper, visit);
}

Status Transaction::scan(TableId table, std::span<const ColumnId> columns, const Predicate& where,
                         FunctionRef<bool(const ScanBatch&)> visit) const {
  if (context_ == nullptr) return ended();
  const engine::Table* target = database_->table(table);
  if (target == nullptr) return engine::no_table();
  return target->scan(*context_, columns, where, visit);
}

Status Transaction::commit() {
  if (context_ == nullptr) return ended();
  Result<std::uint64_t> timestamp = database_->commit(*std::exchange(context_, nullptr));
  if (!timestamp.ok()) return std::move(timestamp).status();
  commit_timestamp_ = *timestamp;
  return {};
}

void Transaction::abort() noexcept {
  if (context_ != nullptr) database_->abort(*std::exchange(context_, nullptr));
}

std::uint64_t Transaction::snapshot() const noexcept {
  return context_ == nullptr ? 0 : context_->visibility.snapshot();
}

}  // namespace flugs
