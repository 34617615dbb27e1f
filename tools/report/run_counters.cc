#include "tools/report/run_counters.h"

#include <fmt/format.h>

#include <algorithm>

namespace flugs::tools {

bench::Json RunCounters::json(std::uint64_t executed) const {
  bench::Json json;
  json["per_write_txn"] = {{"fences", per_write(&Statistics::fences)},
                           {"lines_flushed", per_write(&Statistics::lines_flushed)},
                           {"bytes_written", per_write(&Statistics::bytes_written)}};
  json["journal_per_write_txn"] = {
      {"writes", per_write(&Statistics::journal_writes)},
      {"record_bytes", per_write(&Statistics::journal_record_bytes)},
      {"written_bytes", per_write(&Statistics::journal_written_bytes)},
      {"direct_writes", per_write(&Statistics::direct_writes)},
      {"direct_written_bytes", per_write(&Statistics::direct_written_bytes)}};
  json["pool_bytes_per_txn"] =
      (static_cast<double>(after.pool_used_bytes) - static_cast<double>(before.pool_used_bytes)) /
      static_cast<double>(std::max<std::uint64_t>(executed, 1));
  json["merges"] = after.merges - before.merges;
  json["merge_failures"] = after.merge_failures - before.merge_failures;
  json["merge_seconds"] = after.merge_seconds - before.merge_seconds;
  return json;
}

void RunCounters::print(std::uint64_t executed) const {
  fmt::print("per write transaction     fences {:.2f}   lines flushed {:.2f}   bytes {:.0f}\n",
             per_write(&Statistics::fences), per_write(&Statistics::lines_flushed),
             per_write(&Statistics::bytes_written));
  if (after.journal_writes != 0)
    fmt::print("journal, likewise         writes {:.2f}   bytes {:.0f}, with padding {:.0f}\n",
               per_write(&Statistics::journal_writes), per_write(&Statistics::journal_record_bytes),
               per_write(&Statistics::journal_written_bytes));
  const double grown =
      static_cast<double>(after.pool_used_bytes) - static_cast<double>(before.pool_used_bytes);
  fmt::print("the pool grows by         {:.0f} bytes a transaction; {} merges meanwhile\n",
             grown / static_cast<double>(std::max<std::uint64_t>(executed, 1)),
             after.merges - before.merges);
}

}  // namespace flugs::tools
