#include "flugs/transaction.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/names.h"
#include "engine/database/database_core.h"
#include "engine/database/durable_tokens.h"
#include "tables/catalog/schema_codec.h"
#include "tables/table/row_writer.h"

namespace flugs {

namespace {

// Notes a read row: a serializable transaction checks at its commit whether it is still the same.
void note_row(engine::TransactionContext& context, const engine::Table& table, RowId row) {
  if (context.notes_reads()) context.reads.add_row(table, row.value());
}

// Whether the key can be looked up.
inline Status prepare_get(engine::Table& table, KeyId key) {
  if (!table.keys().can_find(key.index)) return table.data().no_key(key.index);
  if (!table.index_build().is_deferred()) return {};
  return table.index_build().prepare_lookup(key.index);
}

inline Result<Row> find(engine::TransactionContext& context, engine::Table& table, std::size_t key,
                        std::span<const Value> values) {
  Result<Row> row = table.reader().find(context, key, values);
  if (__builtin_expect(!context.notes_reads(), 1)) return row;
  if (row.ok()) {
    context.reads.add_row(table, row->id().value());
  } else if (row.code() == StatusCode::kNotFound) {
    context.reads.add_lookup(table, key, values);
  }
  return row;
}

Result<RowId> update_and_note(engine::TransactionContext& context, engine::Table& table, RowId row,
                              std::span<const ColumnValue> changes) {
  FLUGS_DCHECK(context.notes_reads());
  Result<RowId> version = engine::RowWriter(table, context).update(row, changes);
  if (!version.ok()) context.reads.add_refused_update(table, row.value(), changes, version.code());
  return version;
}

// `row`: all values, or some values with their columns.
template <typename Given>
Result<Inserted> insert_and_note(engine::TransactionContext& context, engine::Table& table,
                                 std::span<const Given> row) {
  FLUGS_DCHECK(context.is_writing);
  Result<RowId> id = engine::RowWriter(table, context).insert(row);
  if (id.code() == StatusCode::kAlreadyExists && context.notes_reads())
    context.reads.add_refused_insert(table, context.scratch.inserted,
                                     context.scratch.inserted_width);
  if (!id.ok()) return std::move(id).status();
  return Inserted{*id, table.number_of(context.scratch.inserted)};
}

Status ended() { return Status(StatusCode::kInvalidArgument, "the transaction has ended"); }

}  // namespace

bool Transaction::is_usable() const noexcept {
  if (context_ == nullptr || context_->ending.is_to_end()) return false;
  if (context_->isolation == Isolation::kReadCommitted)
    database_->transaction_manager().begin_statement(*context_);
  return true;
}

Status Transaction::unusable() const {
  return context_ == nullptr ? ended() : database_->transaction_manager().end_as_asked(*context_);
}

// Runs a call that shows rows of a table to `visit` until it returns false or the transaction must
// end. A visitor that writes to the table may have met its own new versions, or missed rows.
template <typename Walk>
Status Transaction::go_through(const engine::Table& table, Walk&& walk,
                               FunctionRef<bool(const Row&)> visit) const {
  FLUGS_DCHECK(context_ != nullptr);
  bool is_cut = false;
  const std::size_t writes = context_->writes.size();
  Status done;
  {
    const engine::Visit visiting(*context_);
    done = walk([&](const Row& row) {
      is_cut = context_->ending.is_to_end();
      return !is_cut && visit(row);
    });
  }
  if (is_cut) return unusable();
  if (__builtin_expect(context_->writes.size() != writes, 0) && done.ok() &&
      context_->writes.has_written_since(writes, table.id().value()))
    return Status(StatusCode::kInvalidArgument, SchemaPart::of(table.name()),
                  "the visitor wrote to the table that it visits: pull the rows (rows without a "
                  "visitor), or write after the call");
  return done;
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

template <typename Given>
Result<Inserted> Transaction::insert_row(TableId table, std::span<const Given> row) {
  const engine::Call call(context_);
  if (!is_usable()) return unusable();
  engine::Table* target = database_->table(table);
  if (target == nullptr) return engine::no_table();
  if (Status s = database_->transaction_manager().prepare_write(context_); !s.ok()) return s;
  if (target->index_build().is_deferred())
    if (Status s = target->index_build().prepare_write(); !s.ok()) return s;
  Result<Inserted> made = insert_and_note(*context_, *target, row);
  database_->explain(made);
  return made;
}

Result<Inserted> Transaction::insert(TableId table, std::span<const Value> values) {
  return insert_row(table, values);
}

Result<Inserted> Transaction::insert(TableId table, std::span<const ColumnValue> given) {
  return insert_row(table, given);
}

// insert(table) inserts many rows, all or none.
template <typename Insert>
Status Transaction::insert_many(TableId table, Insert&& insert) {
  const engine::Call call(context_);
  if (!is_usable()) return unusable();
  engine::Table* target = database_->table(table);
  if (target == nullptr) return engine::no_table();
  if (Status s = database_->transaction_manager().prepare_write(context_); !s.ok()) return s;
  if (target->index_build().is_deferred())
    if (Status s = target->index_build().prepare_write(); !s.ok()) return s;
  Status added;
  {
    const engine::Visit visiting(*context_);
    added = insert(*target);
  }
  if (added.code() == StatusCode::kCancelled && context_->ending.is_to_end()) return unusable();
  database_->explain(added);
  return added;
}

Status Transaction::insert_rows(TableId table, std::span<const Value> values, std::span<RowId> ids,
                                const CallOptions& options) {
  return insert_many(table, [&](engine::Table& target) {
    Status added = engine::RowWriter(target, *context_).insert_rows(values, ids, options);
    if (added.code() == StatusCode::kAlreadyExists && context_->notes_reads())
      context_->reads.add_refused_insert(target, context_->scratch.inserted,
                                         context_->scratch.inserted_width);
    return added;
  });
}

Status Transaction::insert_columns(TableId table, const ColumnBatch& batch, std::span<RowId> ids,
                                   const CallOptions& options) {
  return insert_many(table, [&](engine::Table& target) {
    return engine::RowWriter(target, *context_).insert_columns(batch, ids, options);
  });
}

Result<RowId> Transaction::update(TableId table, RowId row, std::span<const ColumnValue> changes) {
  const engine::Call call(context_);
  if (!is_usable()) return unusable();
  engine::Table* target = database_->table(table);
  if (target == nullptr) return engine::no_table();
  if (Status s = database_->transaction_manager().prepare_write(context_); !s.ok()) return s;
  if (target->index_build().is_deferred())
    if (Status s = target->index_build().prepare_write(); !s.ok()) return s;
  Result<RowId> version = __builtin_expect(context_->notes_reads(), 0)
                              ? update_and_note(*context_, *target, row, changes)
                              : engine::RowWriter(*target, *context_).update(row, changes);
  database_->explain(version);
  return version;
}

Status Transaction::remove(TableId table, RowId row) {
  const engine::Call call(context_);
  if (!is_usable()) return unusable();
  engine::Table* target = database_->table(table);
  if (target == nullptr) return engine::no_table();
  if (Status s = database_->transaction_manager().prepare_write(context_); !s.ok()) return s;
  if (target->index_build().is_deferred())
    if (Status s = target->index_build().prepare_write(); !s.ok()) return s;
  Status removed = engine::RowWriter(*target, *context_).remove(row);
  if (!removed.ok()) note_row(*context_, *target, row);
  database_->explain(removed);
  return removed;
}

Result<Row> Transaction::get(TableId table, RowId row) const {
  const engine::Call call(context_);
  if (!is_usable()) return unusable();
  const engine::Table* target = database_->table(table);
  if (target == nullptr) return engine::no_table();
  note_row(*context_, *target, row);
  return target->reader().read(*context_, row);
}

Result<Row> Transaction::get(KeyId key, std::span<const Value> values) const {
  const engine::Call call(context_);
  if (!is_usable()) return unusable();
  engine::Table* target = database_->table(key.table);
  if (target == nullptr) return engine::no_table();
  if (Status s = prepare_get(*target, key); !s.ok()) return s;
  return find(*context_, *target, key.index, values);
}

Status Transaction::get_many(KeyId key, std::span<const Value> values,
                             std::span<std::optional<Row>> rows) const {
  // As many lines of memory as a processor fetches at the same time, and a few more.
  constexpr std::size_t kTogether = 16;
  const engine::Call call(context_);
  std::fill(rows.begin(), rows.end(), std::nullopt);
  if (!is_usable()) return unusable();
  engine::Table* target = database_->table(key.table);
  if (target == nullptr) return engine::no_table();
  if (Status s = prepare_get(*target, key); !s.ok()) return s;
  const std::size_t width = target->keys()[key.index]->columns().size();
  if (values.size() != rows.size() * width)
    return Status(
        StatusCode::kInvalidArgument,
        SchemaPart::key(target->name(), target->keys()[key.index]->name()),
        fmt::format("get_many needs {} for {}, found {}", counted(rows.size() * width, "value"),
                    counted(rows.size(), "row"), values.size()));
  const engine::RowReader reader = target->reader();
  for (std::size_t first = 0; first < rows.size(); first += kTogether) {
    // Another thread may have asked the transaction to end. is_usable is not asked, because it may
    // take a new snapshot, and the whole call reads one.
    if (context_->ending.is_to_end()) {
      std::fill(rows.begin(), rows.end(), std::nullopt);
      return unusable();
    }
    const std::size_t end = std::min(first + kTogether, rows.size());
    const auto of = [&](std::size_t i) { return values.subspan(i * width, width); };
    for (std::size_t i = first; i < end; ++i) reader.prefetch(key.index, of(i));
    for (std::size_t i = first; i < end; ++i) reader.prefetch_rows(*context_, key.index, of(i));
    for (std::size_t i = first; i < end; ++i) {
      const Result<Row> row = find(*context_, *target, key.index, of(i));
      if (row.ok()) rows[i] = *row;
      if (!row.ok() && row.code() != StatusCode::kNotFound) return row.status();
    }
  }
  return {};
}

void Transaction::prefetch(KeyId key, std::span<const Value> values) const noexcept {
  if (context_ != nullptr) database_->prefetch(key, values);
}

Status Transaction::rows(KeyId key, std::span<const Value> prefix,
                         FunctionRef<bool(const Row&)> visit) const {
  const engine::Call call(context_);
  if (!is_usable()) return unusable();
  engine::Table* target = database_->table(key.table);
  if (target == nullptr) return engine::no_table();
  if (!target->keys().can_find(key.index)) return target->data().no_key(key.index);
  if (target->index_build().is_deferred())
    if (Status s = target->keys()[key.index]->is_ordered()
                       ? target->index_build().prepare_range()
                       : target->index_build().prepare_lookup(key.index);
        !s.ok())
      return s;
  Status done = go_through(
      *target,
      [&](FunctionRef<bool(const Row&)> each) {
        return target->reader().find_all(*context_, key.index, prefix, each);
      },
      visit);
  if (done.ok() && context_->notes_reads()) context_->reads.add_lookup(*target, key.index, prefix);
  return done;
}

Status Transaction::rows(KeyId key, KeyBound lower, KeyBound upper,
                         FunctionRef<bool(const Row&)> visit) const {
  const engine::Call call(context_);
  if (!is_usable()) return unusable();
  engine::Table* target = database_->table(key.table);
  if (target == nullptr) return engine::no_table();
  if (!target->keys().can_find(key.index)) return target->data().no_key(key.index);
  if (target->index_build().is_deferred())
    if (Status s = target->index_build().prepare_range(); !s.ok()) return s;
  std::uint32_t last = engine::kNoRow;
  Status done = go_through(
      *target,
      [&](FunctionRef<bool(const Row&)> each) {
        return target->reader().range(*context_, key.index, lower, upper, each);
      },
      [&](const Row& row) {
        const bool goes_on = visit(row);
        if (!goes_on) last = row.id().value();
        return goes_on;
      });
  if (done.ok() && context_->notes_reads())
    context_->reads.add_range(*target, key.index, lower, upper, last);
  return done;
}

Status Transaction::scan(TableId table, std::span<const ColumnId> columns, const Predicate& where,
                         FunctionRef<bool(const ScanBatch&)> visit) const {
  const engine::Call call(context_);
  if (!is_usable()) return unusable();
  const engine::Table* target = database_->table(table);
  if (target == nullptr) return engine::no_table();
  Status done;
  {
    const engine::Visit visiting(*context_);
    done = target->reader().scan(*context_, columns, where, visit);
  }
  if (done.ok() && context_->notes_reads()) context_->reads.add_scan(*target, where);
  return done.code() == StatusCode::kCancelled ? unusable() : done;
}

Result<Savepoint> Transaction::savepoint() {
  const engine::Call call(context_);
  if (!is_usable()) return unusable();
  return context_->savepoints.add(context_->mark());
}

Status Transaction::rollback_to(Savepoint savepoint) {
  const engine::Call call(context_);
  if (!is_usable()) return unusable();
  return database_->transaction_manager().rollback_to(*context_, savepoint);
}

Status Transaction::release(Savepoint savepoint) {
  const engine::Call call(context_);
  if (!is_usable()) return unusable();
  return database_->transaction_manager().release(*context_, savepoint);
}

// In line, since nearly every transaction ends by them.
[[gnu::always_inline]] inline void Transaction::abort_now() noexcept {
  if (context_ != nullptr)
    database_->transaction_manager().abort(*std::exchange(context_, nullptr));
}

[[gnu::always_inline]] inline Status Transaction::commit_now(const CommitOptions& options) {
  FLUGS_DCHECK(context_->ending.id() != 0);
  context_->ending.enter_last_call();
  if (context_->ending.wants_attention() &&
      database_->transaction_manager().refuses_commit(*context_)) {
    Status why = context_->ending.why_ended();
    abort_now();
    return why;
  }
  Result<std::uint64_t> timestamp =
      database_->transaction_manager().commit(*std::exchange(context_, nullptr), options);
  if (!timestamp.ok()) {
    database_->explain(timestamp);
    return std::move(timestamp).status();
  }
  commit_timestamp_ = *timestamp;
  return {};
}

Status Transaction::commit() { return commit(CommitOptions()); }

Status Transaction::commit(const CommitOptions& options) {
  if (context_ == nullptr) return ended();
  if (__builtin_expect(!engine::DurableTokens::is_usual(options), 0))
    if (Status s = database_->durable_tokens().check(options); !s.ok()) return s;
  if (__builtin_expect(!database_->is_left(), 1)) return commit_now(options);
  Status done;
  database_->end_left_open([&] { done = commit_now(options); });
  return done;
}

void Transaction::abort() noexcept {
  if (context_ == nullptr || __builtin_expect(!database_->is_left(), 1)) return abort_now();
  database_->end_left_open([&] { abort_now(); });
}

TransactionId Transaction::id() const noexcept {
  return TransactionId(context_ == nullptr ? 0 : context_->ending.id());
}

Status Transaction::set_time_limit(std::chrono::milliseconds limit) {
  const engine::Call call(context_);
  if (!is_usable()) return unusable();
  return database_->transaction_manager().set_time_limit(*context_, limit);
}

std::uint64_t Transaction::snapshot() const noexcept {
  return context_ == nullptr ? 0 : context_->visibility.snapshot();
}

}  // namespace flugs
