#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "flugs/expression.h"
#include "flugs/query_result.h"
#include "flugs/status.h"
#include "flugs/transaction.h"

namespace flugs::query {

struct QueryNode;

struct RunOptions {
  /// Threads that work on the query, the calling one included; 0: one per processor. A thread that
  /// the system refuses is done without.
  std::uint32_t threads = 0;
  /// Bytes that all operators and the result may hold at one time.
  std::uint64_t memory_bytes_max = std::uint64_t{4} << 30;
  /// A query that is asked to stop fails with kCancelled within some thousand rows per thread.
  std::stop_token stop = {};
};

/// Columns or expressions that must be equal: of the left input, of the right one. NULL equals
/// nothing.
struct JoinKey {
  JoinKey(Item of_left, Item of_right) : left(std::move(of_left)), right(std::move(of_right)) {}
  Item left;
  Item right;
};

/// NULL comes first in ascending order, NaN after all numbers; text byte by byte.
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

/// A query: a table, or another query's result, and what is done with its rows, step by step in
/// the order in which it is written. Every function returns a new query; one may be the input of
/// several others, and run any number of times, in any transaction. There is no optimiser that
/// reorders joins: what is written is what runs. The left input of a join streams, the right one is
/// held in memory, so the large one belongs on the left.
///
///     const Query revenue = Query::table("order_line")
///         .where(col("delivered") > date(2024, 1, 1) && col("quantity").between(1, 10))
///         .group_by({"item"}, {sum("amount").as("revenue"), count().as("lines")})
///         .order_by({desc("revenue")})
///         .limit(10);
///     const Result<QueryResult> result = revenue.run(transaction);
///
/// Names are looked up, and types checked, when it runs. A query has 500 steps at most, those of
/// its inputs included: a larger one fails with kInvalidArgument. Rows have no order unless the
/// last step but `limit` is `order_by`.
///
/// Thread-safety: immutable; copies share.
class Query {
 public:
  /// All rows of a table that the transaction sees, with all columns; those that nobody asks for
  /// are not read.
  static Query table(std::string name);
  /// The rows of a result, which is shared: a sub-result that several queries use.
  static Query of(const QueryResult& result);

  /// The rows for which the condition is true. Directly behind a table, the conditions that &&
  /// joins run one by one in the order written, on codes where they can.
  Query where(const Expr& condition) const;
  /// The outputs named, in this order, and nothing else.
  Query select(std::vector<Item> outputs) const;
  /// All columns, their names preceded by `prefix` and a dot: for joining a table with itself.
  Query as(const std::string& prefix) const;

  /// Each row of this with each row of `right` that has equal keys and fulfils `also`, if given.
  /// The columns of both, whose names must differ.
  Query join(const Query& right, std::vector<JoinKey> on, const Expr& also = {}) const;
  /// As join; a row of this without partner comes once, with NULL in the columns of `right`.
  Query left_join(const Query& right, std::vector<JoinKey> on, const Expr& also = {}) const;
  /// The rows of this that have a partner (EXISTS), once, with the columns of this only.
  Query semi_join(const Query& right, std::vector<JoinKey> on, const Expr& also = {}) const;
  /// The rows of this that have none (NOT EXISTS).
  Query anti_join(const Query& right, std::vector<JoinKey> on, const Expr& also = {}) const;

  /// A row for each distinct combination of keys, NULL being a key like any other: the keys, then
  /// the aggregates. Without keys: one row.
  Query group_by(std::vector<Item> keys, std::vector<Aggregate> aggregates) const;
  /// `where`, by its name behind group_by.
  Query having(const Expr& condition) const { return where(condition); }
  /// group_by of all columns.
  Query distinct() const;

  /// Equal rows in no particular order. With `limit` behind it, only as many rows are kept.
  Query order_by(std::vector<SortKey> keys) const;
  /// `rows` rows at most, after leaving out `offset`.
  Query limit(std::uint64_t rows, std::uint64_t offset = 0) const;

  /// Runs it on the transaction's snapshot, its own writes included. The transaction must not be
  /// used meanwhile, nor written to.
  /// Fails with: kNotFound (a table), kInvalidArgument (a column that is not there or there twice,
  /// types that do not fit, the transaction has ended), kOverflow, kOutOfMemory
  /// (memory_bytes_max; the message names the operator), kCancelled.
  Result<QueryResult> run(const Transaction& transaction, const RunOptions& options = {}) const;
  /// The plan, without running it. Fails as `run` does before it starts.
  Result<std::string> explain(const Transaction& transaction, const RunOptions& options = {}) const;

  const std::shared_ptr<const QueryNode>& node() const noexcept { return node_; }

 private:
  explicit Query(std::shared_ptr<const QueryNode> node) noexcept : node_(std::move(node)) {}
  std::shared_ptr<const QueryNode> node_;
};

}  // namespace flugs::query
