#pragma once

#include <CLI/CLI.hpp>

#include "bench/support/table_layout.h"

namespace flugs::tools {

using bench::TableLayout;

/// --layout: of the tables that a benchmark makes.
void add_layout_option(CLI::App& command, TableLayout& layout);

}  // namespace flugs::tools
