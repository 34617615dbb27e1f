#pragma once

#include <chrono>

#include "flugs/merge.h"

namespace flugs::test {

/// A policy that merges every full chunk at once.
inline MergePolicy eager() {
  MergePolicy policy;
  policy.automatic = true;
  policy.delta_bytes = 1;
  policy.written_percent = 100;
  policy.interval = std::chrono::milliseconds(10);
  return policy;
}

}  // namespace flugs::test
