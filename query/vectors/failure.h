#pragma once

#include <string>
#include <utility>

#include "flugs/status.h"

namespace flugs::query {

/// Thrown inside query/, from any depth and any thread of a query, and caught where the query was
/// started: no exception leaves the folder.
struct Failure {
  Status status;
};

[[noreturn]] inline void fail(StatusCode code, std::string message) {
  throw Failure{Status(code, std::move(message))};
}

}  // namespace flugs::query
