#pragma once

#include <string>

#include "flugs/database.h"

namespace flugs::tools {

/// `flugs restart --estimate POOL`: what opening the pool would find to do, and how long that
/// takes. Of `options` counts what estimate_opening names. Gives the exit status.
int run_restart_estimate(const OpenOptions& options, const std::string& json);

}  // namespace flugs::tools
