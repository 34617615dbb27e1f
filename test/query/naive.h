#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "flugs/database.h"
#include "flugs/query.h"
#include "query/operators/query_node.h"
#include "query/vectors/data_type.h"

namespace flugs::test {

/// A value of the naive evaluator, which owns its bytes.
struct Cell {
  query::DataType type;
  bool null = true;
  std::int64_t i = 0;
  double r = 0;
  std::string s;

  static Cell of(query::DataType type, const Value& value);
  /// Equal texts mean equal values, at any scale. Doubles to nine digits.
  std::string to_text() const;
};
/// NULL first, NaN last, numbers of different scales by size.
int compare(const Cell& a, const Cell& b);

/// Rows with named columns: the input and output of every step of a query, evaluated row by row
/// after its definition, without regard to speed.
struct Relation {
  std::vector<std::string> names;
  std::vector<std::vector<Cell>> rows;
  std::vector<query::DataType> types;  ///< of the columns, also where all are NULL

  std::size_t find(const std::string& name) const;
};

/// A computation overflowed: the query must fail with kOverflow.
struct NaiveOverflow {};

/// The type of an expression, independent of its values.
query::DataType type_of(const query::Expr& expr, const Relation& relation);
/// The value of an expression for one row. Throws NaiveOverflow.
Cell evaluate(const query::Expr& expr, const Relation& relation, const std::vector<Cell>& row);

/// The relation that a query gives; `table` provides the tables, which stay. Throws NaiveOverflow.
Relation run_naively(const query::QueryNode& node,
                     const std::function<const Relation&(const std::string&)>& table);

/// A query's result as a relation.
Relation relation_of(const query::QueryResult& result);
/// The same for what a stream has left.
Relation relation_of(query::ResultStream& stream);
/// One line per row, sorted unless the order matters: equal for equal results.
std::string text_of(const Relation& relation, bool ordered);

}  // namespace flugs::test
