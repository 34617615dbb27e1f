#pragma once

#include <string>

#include "flugs/status.h"
#include "verify/isolation/checker/history.h"

namespace flugs::isolation {

/// Writes a history in the format of Elle and Jepsen for other checkers: an invocation and a
/// completion per transaction, in the order of time. EDN when `path` ends in ".edn", else JSON, one
/// operation per line. Lists make a list-append workload, registers an rw-register one.
/// Fails with: kInvalidArgument (lists and registers: checkers take one of them), kIoError.
Status export_history(const History& history, const std::string& path);

}  // namespace flugs::isolation
