#include <fmt/format.h>

#include <memory>
#include <string>

#include "bench/support/environment.h"
#include "flugs/pool_description.h"
#include "tools/report/pool_report.h"
#include "tools/report/schema_text.h"
#include "tools/support/command.h"

namespace flugs::tools {

namespace {

struct SchemaOptions {
  std::string pool;
  std::string json;
};

int run_schema(const SchemaOptions& options) {
  const Result<PoolDescription> pool = describe_pool(options.pool);
  if (!pool.ok()) return could_not_run(pool.status());
  if (pool->is_open_for_writing)
    return could_not_run(Status(
        StatusCode::kBusy, options.pool + ": another process has the pool open, and may change "
                                          "tables meanwhile: try again when it is closed"));
  const std::vector<TableSchema> tables = pool->tables.value_or(std::vector<TableSchema>());
  fmt::print("{}", schema_text(tables));
  bench::Json json = {{"commit", bench::environment().commit},
                      {"pool", options.pool},
                      {"text", schema_text(tables)},
                      {"tables", bench::Json::array()}};
  for (const TableSchema& table : tables) json["tables"].push_back(schema_json(table));
  return finish_with_json(options.json, json, kExitOk);
}

}  // namespace

void add_schema(CLI::App& app, Action& action) {
  auto options = std::make_shared<SchemaOptions>();
  CLI::App* command =
      app.add_subcommand("schema", "Prints the tables as text that makes them again");
  add_pool_argument(*command, options->pool);
  add_json_option(*command, options->json);
  command->callback([options, &action] { action = [options] { return run_schema(*options); }; });
}

}  // namespace flugs::tools
