// Calls of a transaction that find their rows by an expression.

#include <fmt/format.h>

#include <unordered_map>
#include <vector>

#include "base/long_call.h"
#include "base/names.h"
#include "engine/database/database_core.h"
#include "engine/database/transaction_access.h"
#include "flugs/query.h"
#include "flugs/transaction.h"
#include "tables/data/table_data.h"
#include "tables/table/row_writer.h"
#include "tables/table/table.h"

namespace flugs {

namespace {

using query::Assignment;
using query::Query;
using query::QueryResult;

// The ids of the rows, and the new values of their columns.
Query rows_to_write(const engine::TableData& table, const query::Expr& where,
                    std::span<const Assignment> changes) {
  std::vector<query::Item> outputs = {query::row_id()};
  for (std::size_t i = 0; i < changes.size(); ++i)
    outputs.emplace_back(changes[i].value.as(fmt::format("new {}", i)));
  return Query::table(table.name()).where(where).select(std::move(outputs));
}

/// For the first search: one that begins anew does not tell its progress.
query::RunOptions run_options(const CallOptions& options) {
  return {.progress = options.progress, .stop = options.stop};
}

// The caller has not made the query: a stop is told in the words of its own call.
Status why_not_found(const Status& failed, const engine::TableData& table,
                     const CallOptions& options, const engine::TransactionContext& context) {
  const bool is_stopped = failed.code() == StatusCode::kCancelled &&
                          options.stop.stop_requested() && !context.ending.is_to_end();
  return is_stopped ? stopped_by_caller("table " + table.name()) : failed;
}

RowId id_in(const QueryResult& rows, std::size_t row) {
  return RowId(static_cast<std::uint32_t>(rows.get_unchecked(row, 0).raw()));
}

/// The versions that a statement has made of rows that it is yet to change: a change of another row
/// may have cascaded to them.
class VersionsMade {
 public:
  VersionsMade(const engine::TableData& table, const engine::TransactionContext& context) noexcept
      : table_(table), context_(context), next_(context.writes.size()) {}

  RowId newest(RowId row) {
    for (; next_ < context_.writes.size(); ++next_)
      if (const mvcc::Write& write = context_.writes[next_];
          !write.deletes && write.table == table_.id().value())
        after_[table_.rows.previous(write.row)] = write.row;
    std::uint32_t newest = row.value();
    for (auto at = after_.find(newest); at != after_.end(); at = after_.find(newest))
      newest = at->second;
    return RowId(newest);
  }

 private:
  const engine::TableData& table_;
  const engine::TransactionContext& context_;
  std::size_t next_;  // the first write that is not listed yet
  std::unordered_map<std::uint32_t, std::uint32_t> after_;  // version by the version before it
};

// The columns of the assignments; the values are not set yet.
Result<std::vector<ColumnValue>> columns_of(const engine::TableData& table,
                                            std::span<const Assignment> changes) {
  if (changes.empty())
    return Status(StatusCode::kInvalidArgument, SchemaPart::of(table.name()),
                  "no column to change is given");
  std::vector<ColumnValue> columns;
  for (const Assignment& change : changes) {
    const auto& all = table.schema().columns;
    std::size_t at = 0;
    while (at < all.size() && (all[at].dropped || all[at].name != change.column)) ++at;
    if (at == all.size())
      return Status(StatusCode::kInvalidArgument, SchemaPart::of(table.name()),
                    fmt::format("no column {}, it has {}", change.column, names_of(all)));
    columns.push_back({ColumnId(static_cast<std::uint16_t>(at)), {}});
  }
  return columns;
}

}  // namespace

Result<std::uint64_t> Transaction::remove_where(TableId table, const query::Expr& where,
                                                const CallOptions& options) {
  const engine::Call call(context_);
  const Result<engine::Table*> target = table_to_write(table);
  if (!target.ok()) return target.status();
  const engine::TableData& data = (*target)->data();
  const Query rows = rows_to_write(data, where, {});
  query::RunOptions finding = run_options(options);
  return remove_found(**target, "", options, [&](std::vector<RowId>& found) -> Status {
    const Result<QueryResult> result = rows.run(*this, finding);
    finding.progress = {};
    if (!result.ok()) return why_not_found(result.status(), data, options, *context_);
    for (std::size_t i = 0; i < result->row_count(); ++i) found.push_back(id_in(*result, i));
    return {};
  });
}

Result<std::uint64_t> Transaction::update_where(TableId table, const query::Expr& where,
                                                std::initializer_list<Assignment> changes,
                                                const CallOptions& options) {
  return update_where(table, where, std::span<const Assignment>(changes.begin(), changes.size()),
                      options);
}

// With read committed, a row that was changed since it was found may no longer meet the condition,
// or have other values: all writes of the call are undone, and it begins again.
Result<std::uint64_t> Transaction::update_where(TableId table, const query::Expr& where,
                                                std::span<const Assignment> changes,
                                                const CallOptions& options) {
  const engine::Call call(context_);
  const Result<engine::Table*> target = table_to_write(table);
  if (!target.ok()) return target.status();
  const engine::TableData& data = (*target)->data();
  Result<std::vector<ColumnValue>> columns = columns_of(data, changes);
  if (!columns.ok()) return columns.status();
  const Query rows = rows_to_write(data, where, changes);
  query::RunOptions finding = run_options(options);
  LongCall progress(options, "update_where");
  engine::ManyRows statement(*context_);
  for (;;) {
    const Result<QueryResult> found = rows.run(*this, finding);
    if (!found.ok()) return why_not_found(found.status(), data, options, *context_);
    finding.progress = {};
    Status done;
    VersionsMade made(data, *context_);
    for (std::size_t row = 0; done.ok() && row < found->row_count(); ++row) {
      if (!progress.goes_on_at_row(row, found->row_count())) {
        done = stopped_by_caller("table " + data.name());
        break;
      }
      for (std::size_t i = 0; i < columns->size(); ++i)
        (*columns)[i].value = found->get_unchecked(row, i + 1);
      const RowId id = id_in(*found, row);
      done = engine::RowWriter(**target, *context_).update(id, *columns).status();
      if (done.code() != StatusCode::kNotFound) continue;
      if (const RowId newest = made.newest(id); newest != id)
        done = engine::RowWriter(**target, *context_).update(newest, *columns).status();
    }
    if (done.ok()) {
      progress.tell_end(found->row_count());
      return found->row_count();
    }
    statement.undo();
    database_->explain(done);
    if (done.code() != StatusCode::kNotFound || !context_->reads_anew()) return done;
  }
}

}  // namespace flugs
