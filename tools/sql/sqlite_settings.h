#pragma once

#include <sqlite3.h>

namespace flugs::tools {

/// Turns off SQLite's count of its memory. The count takes a lock for each allocation. Call this
/// before the first connection of the process: later calls change nothing.
inline void set_up_sqlite() noexcept {
  [[maybe_unused]] static const int done = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

}  // namespace flugs::tools
