#pragma once

#include <functional>

namespace flugs::proof {

/// Runs `work` on a thread of its own, always the same one, and waits for it; at once when called
/// from there.
void run_on_worker(const std::function<void()>& work);

}  // namespace flugs::proof
