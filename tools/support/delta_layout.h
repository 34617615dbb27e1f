#pragma once

#include <CLI/CLI.hpp>

#include "flugs/database.h"

namespace flugs::tools {

/// --layout: of the tables that a benchmark makes.
void add_layout_option(CLI::App& command, DeltaLayout& layout);

/// Gives all tables of the database the layout. Fails as Database::set_delta_layout.
Status lay_out_tables(Database& database, DeltaLayout layout);

}  // namespace flugs::tools
