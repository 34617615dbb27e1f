#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bench/scan/scan_data.h"
#include "bench/support/json.h"
#include "flugs/query.h"

namespace flugs::bench {

/// A query of the scan benchmark, and the same for a database that speaks SQL.
struct ScanQuery {
  std::string_view name;
  std::string_view question;  ///< in words
  query::Query query;
  std::string_view sql;  ///< $name is a member of scan_parameters
};

/// All fifteen. Results of several rows are in an order that leaves no choice.
std::vector<ScanQuery> scan_queries(const ScanData& data);
/// The parameters that the SQL names: integers, and one text.
Json scan_parameters(const ScanData& data);

}  // namespace flugs::bench
