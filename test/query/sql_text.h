#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "query/operators/query_node.h"
#include "query/vectors/data_type.h"

namespace flugs::test {

/// A query in SQL, with the columns of its result. Decimals are units, dates and timestamps their
/// counts, bytes are text: only SQLite's integers, reals and texts.
struct SqlQuery {
  struct Column {
    std::string name;
    query::DataType type;
  };
  std::string sql;
  std::vector<Column> columns;

  const Column& column(const std::string& name) const;
};

/// For results that are inputs: the query that gave each.
using SqlResults = std::map<const query::ResultData*, SqlQuery>;
using SqlTables = std::map<std::string, std::vector<SqlQuery::Column>>;

/// Written from the definitions in flugs/expression.h and flugs/query.h, with types of its own: it
/// shares nothing with the Binder. Variances and NaN are missing.
SqlQuery to_sql(const query::QueryNode& node, const SqlTables& tables, const SqlResults& results);
/// A value as SQL writes it.
std::string sql_literal(query::DataType type, const Value& value);

}  // namespace flugs::test
