#pragma once

#include <wiredtiger.h>

#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "flugs/status.h"

namespace flugs::tools {

/// A log that is synced by each commit. Checkpoints keep it short. The cache has room for all.
inline constexpr const char* kWiredTigerConfig =
    "create,cache_size=2GB,log=(enabled=true),transaction_sync=(enabled=true,method=fsync),"
    "checkpoint=(wait=10,log_size=64MB),session_max=200";
inline constexpr const char* kWiredTigerSetup =
    "log synced by each commit (transaction_sync, fsync), a checkpoint each 10 s or 64 MB of log, "
    "cache of 2 GB, no compression; bulk load by bulk cursors";
inline constexpr const char* kWiredTigerGuarantee = "commit: writes in the log, which is synced";

inline Status wiredtiger_status(int error) {
  if (error == 0) return {};
  if (error == WT_NOTFOUND) return Status(StatusCode::kNotFound);
  if (error == WT_ROLLBACK) return Status(StatusCode::kConflict);
  return Status(StatusCode::kIoError, std::string("WiredTiger: ") + wiredtiger_strerror(error));
}

inline WT_ITEM item_of(std::string_view bytes) {
  WT_ITEM item{};
  item.data = bytes.data();
  item.size = bytes.size();
  return item;
}
inline std::string_view text_of(const WT_ITEM& item) {
  return {static_cast<const char*>(item.data), item.size};
}

/// A connection and, with it, its sessions and cursors.
class WiredTiger {
 public:
  WiredTiger() = default;
  WiredTiger(const WiredTiger&) = delete;
  WiredTiger& operator=(const WiredTiger&) = delete;
  ~WiredTiger() {
    if (connection_ != nullptr) connection_->close(connection_, nullptr);
  }

  Status open(const std::string& directory) {
    return wiredtiger_status(
        wiredtiger_open(directory.c_str(), nullptr, kWiredTigerConfig, &connection_));
  }
  Result<WT_SESSION*> session() const {
    WT_SESSION* session = nullptr;
    const int error =
        connection_->open_session(connection_, nullptr, "isolation=snapshot", &session);
    if (error != 0) return wiredtiger_status(error);
    return session;
  }

 private:
  WT_CONNECTION* connection_ = nullptr;
};

}  // namespace flugs::tools
