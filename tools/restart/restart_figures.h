#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/restart/restart_control.h"

namespace flugs::tools {

/// Options of `flugs bench restart --figures`.
struct RestartFiguresOptions {
  std::string directory;  ///< empty: no figures are asked for
  std::vector<std::string> only;
  std::vector<std::string> peers = {"lmdb", "rocksdb", "wiredtiger", "sqlite", "duckdb"};
  std::uint32_t subscribers = 200'000;
  std::uint32_t users = 4;
  double seconds = 15;
  std::string file_directory;
  std::uint64_t memory_mb = 0;  ///< of each process of figure memory; 0: a quarter of its database
  std::string plot = "tools/plot_restart.py";
};

void add_figures_options(CLI::App& command, RestartFiguresOptions& options);

/// Figures 7a and 7b and Table 1 of the SOFORT paper, restart times of flugs beside those of other
/// engines, Figures 8a and 8b, TATP through a crash, and if `only` names it, `memory`, TATP's reads
/// in a database that is larger than memory: measures, writes a JSON file for each, and has them
/// drawn. `plan` has the size of the largest table, and everything that no engine decides.
/// Gives the exit status.
int run_restart_figures(const RestartFiguresOptions& options, const bench::RestartPlan& plan,
                        std::uint32_t runs);

}  // namespace flugs::tools
