#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "flugs/query.h"

namespace flugs::bench {

/// The dates that bound CH-benCHmark's queries, microseconds since 1970. The benchmark's own dates,
/// 2007 to 2012 or 2020, select nothing of a database that is loaded today.
struct ChPeriod {
  std::int64_t since_us = 0;
  std::int64_t until_us = 0;
};

// CH-benCHmark (Cole et al., DBTest 2011): eleven of its 22 queries, those that read TPC-C's tables
// only (bench/tpcc/tpcc_schema.h).

query::Query ch_q1(const ChPeriod& period);
query::Query ch_q3(const ChPeriod& period);
query::Query ch_q4(const ChPeriod& period);
query::Query ch_q6(const ChPeriod& period);
query::Query ch_q12(const ChPeriod& period);
query::Query ch_q13(const ChPeriod& period);
query::Query ch_q14(const ChPeriod& period);
query::Query ch_q17(const ChPeriod& period);
query::Query ch_q18(const ChPeriod& period);
query::Query ch_q19(const ChPeriod& period);
query::Query ch_q22(const ChPeriod& period);

/// One of them, and the same for a database that speaks SQL.
struct ChQuery {
  std::string_view name;      ///< "Q1"
  std::string_view question;  ///< in words
  query::Query (*make)(const ChPeriod& period);
  /// $since and $until are ChPeriod's. Dates are microseconds since 1970, money is cents, both
  /// integers; what this gives as money is cents too, an average or a quotient excepted.
  std::string_view sql;
};

/// In the order of their numbers.
std::span<const ChQuery> ch_queries();

}  // namespace flugs::bench
