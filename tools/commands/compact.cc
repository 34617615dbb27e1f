#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <string>

#include "bench/support/environment.h"
#include "flugs/database.h"
#include "flugs/merge.h"
#include "flugs/pool_description.h"
#include "tools/support/command.h"
#include "tools/support/text_table.h"

namespace flugs::tools {

namespace {

struct CompactOptions {
  std::string pool;
  std::string json;
};

/// Merges every table, so that nothing stays of rows and values that are gone. Space that a merge
/// frees goes back to the file system by itself.
Status merge_all(Database& database) {
  if (Status s = database.finish_opening(); !s.ok()) return s;
  MergeOptions everything;
  everything.scope = MergeScope::kEverything;
  everything.dead_percent = 1;
  everything.waste_bytes = 0;
  for (const TableId table : database.tables())
    if (const Result<MergeReport> merged = database.merge(table, everything); !merged.ok())
      return merged.status();
  return {};
}

int run_compact(const CompactOptions& options) {
  const Result<PoolDescription> before = describe_pool(options.pool);
  if (!before.ok()) return could_not_run(before.status());
  OpenOptions open;
  open.path = options.pool;
  open.mode = OpenMode::kOpen;
  open.tuning.grow_ahead_bytes = 0;  // no space is kept ready for writers
  Result<Database> database = Database::open(open);
  if (!database.ok()) return could_not_run(database.status());
  if (const Status s = merge_all(*database); !s.ok()) return could_not_run(s);
  if (const Status s = database->close(); !s.ok()) return could_not_run(s);
  const Result<PoolDescription> after = describe_pool(options.pool);
  if (!after.ok()) return could_not_run(after.status());
  fmt::print("{}: takes {} on the medium ({} bytes), took {} ({} bytes) before\n", options.pool,
             format_bytes(after->medium_bytes), after->medium_bytes,
             format_bytes(before->medium_bytes), before->medium_bytes);
  const bench::Json json = {{"commit", bench::environment().commit},
                            {"pool", options.pool},
                            {"medium_bytes_before", before->medium_bytes},
                            {"medium_bytes", after->medium_bytes}};
  return finish_with_json(options.json, json, kExitOk);
}

}  // namespace

void add_compact(CLI::App& app, Action& action) {
  auto options = std::make_shared<CompactOptions>();
  CLI::App* command = app.add_subcommand(
      "compact", "Merges every table, and gives free space back to the file system");
  add_pool_argument(*command, options->pool);
  add_json_option(*command, options->json);
  command->callback([options, &action] { action = [options] { return run_compact(*options); }; });
}

}  // namespace flugs::tools
