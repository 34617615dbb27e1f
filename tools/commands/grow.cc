#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <string>

#include "bench/support/environment.h"
#include "flugs/database.h"
#include "flugs/pool_description.h"
#include "tools/support/command.h"
#include "tools/support/text_table.h"

namespace flugs::tools {

namespace {

struct GrowOptions {
  std::string pool;
  std::uint64_t bytes = 0;
  std::string json;
};

int run_grow(const GrowOptions& options) {
  const Result<PoolDescription> before = describe_pool(options.pool);
  if (!before.ok()) return could_not_run(before.status());
  if (before->is_open_for_writing)
    return could_not_run(Status(
        StatusCode::kBusy, options.pool + ": a process has the pool open; a program makes its own "
                                          "pool larger with Database::grow"));
  OpenOptions open;
  open.path = options.pool;
  open.mode = OpenMode::kOpen;
  open.max_bytes = options.bytes;
  open.tuning.grow_ahead_bytes = 0;
  const Result<Database> database = Database::open(open);
  if (!database.ok()) return could_not_run(database.status());
  const std::uint64_t now = database->statistics().pool_reserved_bytes;
  fmt::print("{}: can grow to {} ({} bytes), could grow to {} ({} bytes) before\n", options.pool,
             format_bytes(now), now, format_bytes(before->max_bytes), before->max_bytes);
  const bench::Json json = {{"commit", bench::environment().commit},
                            {"pool", options.pool},
                            {"pool_reserved_bytes_before", before->max_bytes},
                            {"pool_reserved_bytes", now}};
  return finish_with_json(options.json, json, kExitOk);
}

}  // namespace

void add_grow(CLI::App& app, Action& action) {
  auto options = std::make_shared<GrowOptions>();
  CLI::App* command = app.add_subcommand("grow", "Lets a pool grow to a larger size than so far");
  add_pool_argument(*command, options->pool);
  command
      ->add_option("BYTES", options->bytes,
                   "The largest size from now on, also with a unit, such as 128GiB")
      ->transform(CLI::AsSizeValue(true))
      ->check(CLI::PositiveNumber)
      ->required();
  add_json_option(*command, options->json);
  command->callback([options, &action] { action = [options] { return run_grow(*options); }; });
}

}  // namespace flugs::tools
