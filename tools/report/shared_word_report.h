#pragma once

#include "bench/support/json.h"
#include "bench/tatp/tatp_driver.h"

namespace flugs::tools {

// For a build that counts accesses to shared words (FLUGS_COUNT_ATOMICS, docs/scaling.md).

/// By type of transaction, and of all, then by word: accesses per transaction, and how many of them
/// got the line from another thread. Words that were not used are left out.
bench::Json shared_words_json(const bench::TatpRunResult& run);
void print_shared_words(const bench::TatpRunResult& run);

}  // namespace flugs::tools
