#pragma once

#include <cstdint>
#include <string>

namespace flugs::tools {

/// `flugs restart --estimate POOL`: what opening the pool would find to do, and how long that
/// takes. Gives the exit status.
int run_restart_estimate(const std::string& pool, std::uint32_t threads, const std::string& json);

}  // namespace flugs::tools
