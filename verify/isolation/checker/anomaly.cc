#include "verify/isolation/checker/anomaly.h"

namespace flugs::isolation {

std::string_view to_string(Anomaly anomaly) noexcept {
  switch (anomaly) {
    case Anomaly::kGarbage:
      return "garbage read";
    case Anomaly::kDuplicate:
      return "duplicate element";
    case Anomaly::kIncompatibleOrder:
      return "incompatible order";
    case Anomaly::kLost:
      return "lost write";
    case Anomaly::kInternal:
      return "own write not seen";
    case Anomaly::kG1a:
      return "G1a";
    case Anomaly::kG1b:
      return "G1b";
    case Anomaly::kG0:
      return "G0";
    case Anomaly::kG1c:
      return "G1c";
    case Anomaly::kLostUpdate:
      return "P4";
    case Anomaly::kOtv:
      return "OTV";
    case Anomaly::kPmp:
      return "PMP";
    case Anomaly::kGSingle:
      return "G-single";
    case Anomaly::kGNonadjacent:
      return "G-nonadjacent";
    case Anomaly::kG2Item:
      return "G2-item";
    case Anomaly::kG2:
      return "G2";
  }
  return "unknown";
}

std::string_view to_string(Level level) noexcept {
  switch (level) {
    case Level::kReadCommitted:
      return "read committed";
    case Level::kSnapshot:
      return "snapshot isolation";
    case Level::kStrongSnapshot:
      return "strong snapshot isolation";
    case Level::kSerializable:
      return "serializability";
    case Level::kStrictSerializable:
      return "strict serializability";
  }
  return "unknown";
}

Result<Level> level_named(std::string_view name) {
  if (name == "read-committed") return Level::kReadCommitted;
  if (name == "snapshot") return Level::kStrongSnapshot;
  if (name == "serializable") return Level::kStrictSerializable;
  return Status(StatusCode::kInvalidArgument,
                "no isolation level '" + std::string(name) +
                    "': expected read-committed, snapshot or serializable");
}

bool forbids(Level level, Anomaly anomaly, bool in_real_time) noexcept {
  const bool is_strong = level == Level::kStrongSnapshot || level == Level::kStrictSerializable;
  if (in_real_time && !is_strong) return false;
  switch (anomaly) {
    case Anomaly::kGarbage:
    case Anomaly::kDuplicate:
    case Anomaly::kIncompatibleOrder:
    case Anomaly::kLost:
    case Anomaly::kInternal:
    case Anomaly::kG1a:
    case Anomaly::kG1b:
    case Anomaly::kG0:
    case Anomaly::kG1c:
      return true;
    case Anomaly::kLostUpdate:
    case Anomaly::kOtv:
    case Anomaly::kPmp:
    case Anomaly::kGSingle:
    case Anomaly::kGNonadjacent:
      return level != Level::kReadCommitted;
    case Anomaly::kG2Item:
    case Anomaly::kG2:
      return level == Level::kSerializable || level == Level::kStrictSerializable;
  }
  return true;
}

}  // namespace flugs::isolation
