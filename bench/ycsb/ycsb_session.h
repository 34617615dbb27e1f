#pragma once

#include <cstdint>
#include <string_view>

#include "bench/ycsb/ycsb_request.h"
#include "flugs/status.h"

namespace flugs::bench {

/// What an operation told its user.
struct YcsbReceipt {
  std::uint32_t rows = 0;      ///< read
  std::uint64_t checksum = 0;  ///< of all that was read, so that reading cannot be left out

  void consume(std::string_view text) noexcept {
    if (!text.empty()) checksum += text.size() + static_cast<unsigned char>(text.back());
  }
};

/// One user's operations in a database, flugs or another one.
class YcsbSession {
 public:
  virtual ~YcsbSession() = default;
  /// One attempt, from begin to commit: each operation is a transaction, a read-modify-write, too.
  /// A read gives all fields, an update writes one, a scan gives whole rows in key order. Durable
  /// when: it returns ok, as far as the database guarantees. Fails with kConflict: another
  /// transaction was there first, nothing was changed; with anything else: that must not happen.
  virtual Status run(const YcsbRequest& request, YcsbReceipt& receipt) = 0;
};

}  // namespace flugs::bench
