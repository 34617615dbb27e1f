#pragma once

#include <cstdint>
#include <functional>

#include "bench/support/histogram.h"
#include "flugs/database.h"

namespace flugs::bench {

/// A table of an id and a text, whose texts are replaced by others of the same length.
struct TextUpdates {
  std::uint64_t rows = 100'000;
  std::uint32_t text_bytes = 100;
  Encoding encoding = Encoding::kAuto;
  std::uint32_t users = 2;  ///< threads; each updates the text of a row in a transaction
  double seconds = 10;
  std::uint64_t seed = 1;
  /// Called about ten times a second with the seconds gone.
  std::function<void(double)> progress;
};

struct TextUpdatesResult {
  Status failure;               ///< of the first user that stopped
  std::uint64_t updates = 0;    ///< committed
  std::uint64_t conflicts = 0;  ///< done again
  double seconds = 0;
  Histogram latency;  ///< of an update, conflicts included
};

Result<TableId> load_texts(Database& database, const TextUpdates& plan);
TextUpdatesResult update_texts(Database& database, TableId table, const TextUpdates& plan);

}  // namespace flugs::bench
