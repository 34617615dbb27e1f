#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "flugs/expression.h"
#include "flugs/progress.h"
#include "flugs/query_result.h"
#include "flugs/status.h"
#include "flugs/stream.h"
#include "flugs/transaction.h"

namespace flugs::query {

struct QueryNode;

struct RunOptions {
  /// Threads that work on the query, including the calling one, at most 1024; 0: one per processor.
  /// If the system refuses a thread, the query runs without it.
  std::uint32_t threads = 0;
  /// Bytes that all operators and the result may hold at one time.
  std::uint64_t memory_bytes_max = std::uint64_t{4} << 30;
  /// The folder for what a group by or an order by cannot keep within `memory_bytes_max`; empty:
  /// the system's folder for temporary files (TMPDIR). The files have no names, and are gone with
  /// the query. Texts that functions compute stay in memory if they are grouped, sorted or joined,
  /// and so does what quantile(), median() and approx_count_distinct() keep of a group.
  std::string temporary_folder = {};
  /// Keeps the order of joins and the places of conditions as written, and computes each part of
  /// the query as often as it is read.
  bool runs_as_written = false;
  /// As in CallOptions. `total` grows when the query begins to read another input. A query that is
  /// asked to stop fails with kCancelled within some thousand rows per thread.
  std::function<void(const Progress&)> progress = {};
  std::stop_token stop = {};
};

/// Two items that must be equal: a column or expression of the left input and one of the right.
/// NULL equals nothing.
struct JoinKey {
  JoinKey(Item of_left, Item of_right) : left(std::move(of_left)), right(std::move(of_right)) {}
  Item left;
  Item right;
};

/// A key to sort by. NULL comes first in ascending order, NaN after all numbers; text compares byte
/// by byte.
struct SortKey {
  SortKey(Item by) : item(std::move(by)) {}      // NOLINT(google-explicit-constructor)
  SortKey(Expr by) : item(std::move(by)) {}      // NOLINT(google-explicit-constructor)
  SortKey(const char* column) : item(column) {}  // NOLINT(google-explicit-constructor)
  SortKey(Item by, bool down) : item(std::move(by)), descending(down) {}
  Item item;
  bool descending = false;
};
inline SortKey asc(Item by) { return SortKey(std::move(by), false); }
inline SortKey desc(Item by) { return SortKey(std::move(by), true); }

/// A query: a table or another query's result, and the steps applied to its rows. Every function
/// returns a new query. A query may be the input of several others, and may run any number of
/// times, in any transaction.
///
/// The rows are those of the steps in the order written. Unless RunOptions::runs_as_written is set,
/// a query of at most 128 steps may run in another order: conditions that cannot fail go down to
/// the tables; inner joins that follow each other, with columns as keys, run in the order that the
/// planner expects to be the cheapest; semi and anti joins that drop many rows go down. Any other
/// join holds its right input in memory and streams the left one, so put the large input on the
/// left. If the planner expects the left input to be much smaller, the join holds both.
/// A group by or distinct that several steps read runs once, and so does a join with few rows.
///
///     const Query revenue = Query::table("order_line")
///         .where(col("delivered") > date(2024, 1, 1) && col("quantity").between(1, 10))
///         .group_by({"item"}, {sum("amount").as("revenue"), count().as("lines")})
///         .order_by({desc("revenue")})
///         .limit(10);
///     const Result<QueryResult> result = revenue.run(transaction);
///
/// Names are looked up and types checked when the query runs. A query has at most 500 steps,
/// including those of its inputs: a larger one fails with kInvalidArgument. Rows have no order
/// unless `order_by` is the last step, or the last but `limit`.
///
/// Thread-safety: immutable; copies share.
class Query {
 public:
  /// All rows of a table that the transaction sees, with all columns; columns that no step uses are
  /// not read.
  static Query table(std::string name);
  /// The rows of a result, which is shared: for a sub-result that several queries use. A run of the
  /// query fails with kInvalidArgument if the result was moved from.
  static Query of(const QueryResult& result);

  /// The rows for which the condition is true. Directly behind a table, the parts of the condition
  /// that && joins run one by one in the order written, on codes where possible.
  Query where(const Expr& condition) const;
  /// The given outputs, in this order, and no others.
  Query select(std::vector<Item> outputs) const;
  /// All columns, their names preceded by `prefix` and a dot: for joining a table with itself.
  Query as(const std::string& prefix) const;

  /// Each row of this query with each row of `right` that has equal keys and meets `also`, if
  /// given. The result has the columns of both, whose names must differ.
  Query join(const Query& right, std::vector<JoinKey> on, const Expr& also = {}) const;
  /// As join; a row of this query without a partner comes once, with NULL in the columns of
  /// `right`.
  Query left_join(const Query& right, std::vector<JoinKey> on, const Expr& also = {}) const;
  /// The rows of this query that have a partner (EXISTS), once each, with the columns of this query
  /// only.
  Query semi_join(const Query& right, std::vector<JoinKey> on, const Expr& also = {}) const;
  /// The rows of this query without a partner (NOT EXISTS).
  Query anti_join(const Query& right, std::vector<JoinKey> on, const Expr& also = {}) const;

  /// A row for each distinct combination of keys, with NULL as a key like any other: first the
  /// keys, then the aggregates. Without keys: one row.
  Query group_by(std::vector<Item> keys, std::vector<Aggregate> aggregates) const;
  /// The same as `where`, under the name that it has after group_by.
  Query having(const Expr& condition) const { return where(condition); }
  /// group_by of all columns.
  Query distinct() const;

  /// Sorts the rows. Rows with equal keys have no particular order. With `limit` behind it, only
  /// that many rows are kept in memory.
  Query order_by(std::vector<SortKey> keys) const;
  /// At most `rows` rows, after the first `offset` rows, which are left out.
  Query limit(std::uint64_t rows, std::uint64_t offset = 0) const;

  /// Runs the query on the transaction's snapshot, including its own writes. The transaction must
  /// not be used or written to meanwhile.
  /// Fails with: kNotFound (a table), kInvalidArgument (a column that does not exist or exists
  /// twice, types that do not fit, an option, an ended transaction), kOverflow, kOutOfMemory
  /// (memory_bytes_max; the message names the operator), kIoError (temporary_folder), kCancelled.
  Result<QueryResult> run(const Transaction& transaction, const RunOptions& options = {}) const;
  /// Begins to run the query as `run` does, for a caller that pulls its rows in batches. Groups,
  /// sorted rows and the held sides of joins are made before it returns. Fails with: as
  /// `run`.
  Result<ResultStream> stream(const Transaction& transaction, const RunOptions& options = {}) const;
  /// Begins to run the query as `stream` does, for several threads that pull its rows at the same
  /// time: RunOptions::threads of them. Fails with: as `stream`; kInvalidArgument (the transaction
  /// has written, or tried to).
  Result<SharedStream> share(const Transaction& transaction, const RunOptions& options = {}) const;
  /// The plan, without running it. Fails as `run` does before it starts.
  Result<std::string> explain(const Transaction& transaction, const RunOptions& options = {}) const;

  const std::shared_ptr<const QueryNode>& node() const noexcept { return node_; }

 private:
  explicit Query(std::shared_ptr<const QueryNode> node) noexcept : node_(std::move(node)) {}
  std::shared_ptr<const QueryNode> node_;
};
static_assert(std::is_nothrow_move_constructible_v<Query>);

}  // namespace flugs::query
