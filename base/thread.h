#pragma once

#include <functional>
#include <stop_token>
#include <thread>

#include "flugs/status.h"

namespace flugs {

/// Starts a thread. No other function of the library may (tools/tidy.py checks), because each
/// caller must say what happens without the thread. `name` has at most 15 bytes. `run` must not
/// throw. Fails with kIoError, with the system's message.
Result<std::jthread> start_thread(const char* name,
                                  std::function<void(const std::stop_token&)> run);

}  // namespace flugs
