#pragma once

#include <string>

#include "verify/isolation/checker/cycles.h"

namespace flugs::isolation {

/// Says what happened, transaction by transaction, with keys and values.
std::string in_words(const History& history, const Finding& finding);
std::string in_words(const History& history, const Dependencies& dependencies, const Cycle& cycle);

}  // namespace flugs::isolation
