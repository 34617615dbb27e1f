#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "tools/support/command.h"

namespace flugs::tools {

/// Adds a command, not in --help, for a process that its parent starts and kills, and that ends
/// with it. Its argument is the file that both share; `run` gets its path.
void add_memory_child(CLI::App& app, Action& action, const std::string& name,
                      const std::string& description, std::function<int(const std::string&)> run);

}  // namespace flugs::tools
