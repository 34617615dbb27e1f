#pragma once

#include <string>

#include "flugs/status.h"
#include "history/history.h"

namespace flugs::history {

/// Writes a history as Elle and Jepsen have it, an invocation and a completion for each
/// transaction, in the order of time, as outside checkers read it: EDN when `path` ends in ".edn",
/// else JSON, one operation a line. Lists are a list-append workload, registers an rw-register one.
/// Fails with: kInvalidArgument (lists and registers: checkers take one of them), kIoError.
Status export_history(const History& history, const std::string& path);

}  // namespace flugs::history
