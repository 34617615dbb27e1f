#include "bench/support/json.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>

namespace flugs::bench {

Json to_json(const Histogram& histogram) {
  return {{"p50", histogram.percentile(0.5)},
          {"p90", histogram.percentile(0.9)},
          {"p99", histogram.percentile(0.99)},
          {"p999", histogram.percentile(0.999)},
          {"max", histogram.max()},
          {"count", histogram.count()}};
}

Json to_json(const Environment& environment) {
  return {{"cpu", environment.cpu},
          {"cores", environment.cores},
          {"memory_bytes", environment.memory_bytes},
          {"kernel", environment.kernel},
          {"huge_pages", environment.huge_pages},
          {"compiler", environment.compiler},
          {"build", environment.build}};
}

Json to_json(const RecoveryReport& report) {
  Json phases = Json::array();
  for (const RecoveryReport::Phase& phase : report.phases)
    phases.push_back(
        {{"name", phase.name}, {"duration_us", phase.duration_us}, {"items", phase.items}});
  return {{"phases", phases},
          {"total_us", report.total_us},
          {"created", report.created},
          {"transactions_completed", report.transactions_completed},
          {"transactions_undone", report.transactions_undone},
          {"dictionary_entries", report.dictionary_entries},
          {"dictionary_entries_dropped", report.dictionary_entries_dropped},
          {"rows_live", report.rows_live},
          {"rows_recycled", report.rows_recycled},
          {"threads", report.threads}};
}

Status write_json(const std::string& path, const Json& json) {
  const std::string text = json.dump(2) + "\n";
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file)
    return Status(StatusCode::kIoError, "cannot write " + path + ": " + std::strerror(errno));
  return {};
}

}  // namespace flugs::bench
