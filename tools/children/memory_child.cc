#include "tools/children/memory_child.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "tools/support/child_process.h"

namespace flugs::tools {

void add_memory_child(CLI::App& app, Action& action, const std::string& name,
                      const std::string& description, std::function<int(const std::string&)> run) {
  struct Options {
    std::string memory;
    std::uint64_t spawned_at_ns = 0;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(name, description);
  command->group("");
  command->add_option("MEMORY", options->memory)->required();
  command->add_option("--spawned-at", options->spawned_at_ns);
  command->callback([options, &action, run = std::move(run)] {
    action = [options, run] {
      die_with_parent();
      return run(options->memory);
    };
  });
}

}  // namespace flugs::tools
