#pragma once

#include <functional>
#include <stop_token>
#include <thread>

#include "flugs/status.h"

namespace flugs {

/// Starts a thread. No other function of the library does (tools/tidy.py), as each caller has to
/// say what happens when there is none. `name` has at most 15 bytes. `run` must not throw.
/// Fails with kIoError, which carries the system's words.
Result<std::jthread> start_thread(const char* name,
                                  std::function<void(const std::stop_token&)> run);

}  // namespace flugs
