#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "test/query/naive.h"
#include "test/support/random.h"
#include "test/support/temporary_database.h"

namespace flugs::test {

/// Two tables of every type and encoding, with NULLs, as one transaction sees them. Others have
/// inserted, updated and deleted before it, concurrently without ending, and after it. Also has the
/// rows that the transaction must see. Main thread only.
class QueryWorld {
 public:
  /// With an odd seed most of the rows are in main; with every second pair of seeds table t gets
  /// most of its columns when it has rows. `finite`: no NaN.
  QueryWorld(std::uint64_t seed, std::size_t rows, bool finite = false);

  const Transaction& reader() const noexcept { return *reader_; }
  const Relation& table(const std::string& name) const { return tables_.at(name); }
  /// One of the columns' texts.
  const std::string& some_text() { return texts_[random_.below(texts_.size())]; }
  Random& random() noexcept { return random_; }
  TemporaryDatabase& database() noexcept { return database_; }

  /// Runs the query with one and with two threads and naively: all must give the same rows or
  /// kOverflow. Returns the number of rows.
  std::size_t check(const query::Query& query, bool ordered = false);

  // Random expressions over the columns of table t, some of which may overflow.
  query::Expr number(unsigned depth);
  query::Expr condition(unsigned depth);
  query::Expr text(unsigned depth);
  query::Expr time(unsigned depth);

 private:
  struct Known {
    RowId id;
    std::vector<Value> values;  // texts view texts_
  };
  using Rows = std::map<std::int64_t, Known>;  // by the primary key

  std::vector<Value> random_row(const TableSchema& schema, std::int64_t id);
  Value random_value(const ColumnSchema& column);
  void change(Transaction& transaction, TableId table, const TableSchema& schema, Rows& rows,
              std::int64_t first_key, std::int64_t stride, std::size_t changes);
  void add_columns(TableId table, const TableSchema& all, TableSchema& now, Rows& rows,
                   std::size_t count);
  void note(const TableSchema& schema, const Rows& rows);

  TemporaryDatabase database_;
  Random random_;
  bool finite_;
  std::vector<std::string> texts_;
  std::optional<Transaction> reader_;
  std::optional<Transaction> beside_;
  std::map<std::string, Relation> tables_;
};

}  // namespace flugs::test
