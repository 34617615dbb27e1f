#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "bench/support/environment.h"
#include "bench/support/histogram.h"
#include "flugs/recovery_report.h"
#include "flugs/status.h"

namespace flugs::bench {

/// Keys stay in the order in which they were written.
using Json = nlohmann::ordered_json;

/// p50, p90, p99, p999, max and count.
Json to_json(const Histogram& histogram);
/// Without the commit, which is at the top of every result.
Json to_json(const Environment& environment);
Json to_json(const RecoveryReport& report);

/// Writes `json` to the file `path`. Fails with kIoError.
Status write_json(const std::string& path, const Json& json);

}  // namespace flugs::bench
