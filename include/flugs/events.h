#pragma once

#include <cstdint>
#include <string>

#include "flugs/status.h"

namespace flugs {

enum class EventKind : std::uint8_t {
  kMerged,            ///< a merge by policy has ended; `bytes`: of main that it wrote
  kMergeFailed,       ///< a merge by policy has failed, and will be tried again
  kMergeWaits,        ///< a merge by policy would wait for a transaction that has long been open
  kPoolGrown,         ///< the pool has taken space from the medium; `bytes`: all that it has now
  kBackgroundFailed,  ///< a thread could not be started, or found damage
};

/// Something that happened in the background (OpenOptions::on_event).
struct Event {
  EventKind kind = EventKind::kMerged;
  std::string table = {};  ///< its name; empty: the event concerns the whole pool
  std::string text = {};   ///< for people, one line
  Status status = {};      ///< of a failure
  std::uint64_t bytes = 0;
};

}  // namespace flugs
