#include "flugs/transaction.h"

#include <fmt/format.h>

#include "engine/database_core.h"

namespace flugs {

namespace {

/// While it lives, the transaction is not ended from within what it calls.
class Visit {
 public:
  explicit Visit(engine::TransactionContext& context) : context_(context) { ++context_.visits; }
  ~Visit() { --context_.visits; }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

 private:
  engine::TransactionContext& context_;
};

Status ended() { return Status(StatusCode::kInvalidArgument, "the transaction has ended"); }

}  // namespace

bool Transaction::is_usable() const noexcept {
  return context_ != nullptr && !context_->is_to_end();
}

Status Transaction::unusable() const {
  return context_ == nullptr ? ended() : database_->end_as_asked(*context_);
}

// A call that shows rows to `visit` until it returns false, or the transaction is to end.
template <typename Call>
Status Transaction::go_through(Call&& call, FunctionRef<bool(const Row&)> visit) const {
  bool is_cut = false;
  Status done;
  {
    const Visit visiting(*context_);
    done = call([&](const Row& row) {
      is_cut = context_->is_to_end();
      return !is_cut && visit(row);
    });
  }
  return is_cut ? unusable() : done;
}

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
  if (!is_usable()) return unusable();
  engine::Table* target = database_->table(table);
  if (target == nullptr) return engine::no_table();
  if (Status s = database_->prepare_write(context_); !s.ok()) return s;
  return target->insert(*context_, values);
}

Status Transaction::insert_rows(TableId table, std::span<const Value> values,
                                std::span<RowId> ids) {
  if (!is_usable()) return unusable();
  engine::Table* target = database_->table(table);
  if (target == nullptr) return engine::no_table();
  if (Status s = database_->prepare_write(context_); !s.ok()) return s;
  return target->insert_rows(*context_, values, ids);
}

Result<RowId> Transaction::update(TableId table, RowId row, std::span<const ColumnValue> changes) {
  if (!is_usable()) return unusable();
  engine::Table* target = database_->table(table);
  if (target == nullptr) return engine::no_table();
  if (Status s = database_->prepare_write(context_); !s.ok()) return s;
  return target->update(*context_, row, changes);
}

Status Transaction::remove(TableId table, RowId row) {
  if (!is_usable()) return unusable();
  engine::Table* target = database_->table(table);
  if (target == nullptr) return engine::no_table();
  if (Status s = database_->prepare_write(context_); !s.ok()) return s;
  return target->remove(*context_, row);
}

Result<Row> Transaction::read(TableId table, RowId row) const {
  if (!is_usable()) return unusable();
  const engine::Table* target = database_->table(table);
  if (target == nullptr) return engine::no_table();
  return target->read(*context_, row);
}

Result<Row> Transaction::find(KeyId key, std::span<const Value> values) const {
  if (!is_usable()) return unusable();
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
  if (!is_usable()) return unusable();
  const engine::Table* target = database_->table(key.table);
  if (target == nullptr) return engine::no_table();
  if (key.index >= target->keys().size())
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("table {}: no key {}", target->name(), key.index));
  return go_through(
      [&](FunctionRef<bool(const Row&)> each) {
        return target->find_all(*context_, key.index, prefix, each);
      },
      visit);
}

Status Transaction::range(KeyId key, KeyBound lower, KeyBound upper,
                          FunctionRef<bool(const Row&)> visit) const {
  if (!is_usable()) return unusable();
  const engine::Table* target = database_->table(key.table);
  if (target == nullptr) return engine::no_table();
  if (key.index >= target->keys().size())
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("table {}: no key {}", target->name(), key.index));
  return go_through(
      [&](FunctionRef<bool(const Row&)> each) {
        return target->range(*context_, key.index, lower, upper, each);
      },
      visit);
}

Status Transaction::scan(TableId table, std::span<const ColumnId> columns, const Predicate& where,
                         FunctionRef<bool(const ScanBatch&)> visit) const {
  if (!is_usable()) return unusable();
  const engine::Table* target = database_->table(table);
  if (target == nullptr) return engine::no_table();
  Status done;
  {
    const Visit visiting(*context_);
    done = target->scan(*context_, columns, where, visit);
  }
  return done.code() == StatusCode::kCancelled ? unusable() : done;
}

Status Transaction::commit() {
  if (context_ == nullptr) return ended();
  if (context_->is_undone) {
    abort();
    return engine::ended_as_asked();
  }
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
