#pragma once

#include <string>

#include "flugs/database.h"

namespace flugs::tools {

/// `flugs restart --estimate POOL`: the work that opening the pool would find, and how long it
/// takes. Uses those of `options` that estimate_opening names. Returns the exit status.
int run_restart_estimate(const OpenOptions& options, const std::string& json);

}  // namespace flugs::tools
