#pragma once

#include <chrono>
#include <mutex>
#include <string>

#include "base/mutex.h"
#include "engine/database/catalog.h"
#include "engine/database/transaction_manager.h"
#include "flugs/status.h"

namespace flugs::engine {

/// Completes the message of a call that failed because the pool is full: what a merge would give
/// back, and which transaction keeps dead rows from being given back.
///
/// The estimate looks at some thousand rows, and is used again for a second at least, so that a
/// caller that tries again and again does not wait for it. It is made where the call returns to its
/// user, because there the thread holds no lock; still it waits for no lock that other calls hold
/// for long, and for no transaction.
/// Thread-safety: any thread, which may have an open transaction.
class SpaceAdvice final {
 public:
  SpaceAdvice(Catalog& catalog, TransactionManager& transactions) noexcept
      : catalog_(catalog), transactions_(transactions) {}

  /// `why` as it is, unless it is kOutOfSpace for lack of bytes.
  Status complete(const Status& why);

 private:
  using Clock = std::chrono::steady_clock;
  std::string text();
  std::string make_text();
  std::string transaction_text(std::uint64_t kept_bytes, const std::string& table);

  Catalog& catalog_;
  TransactionManager& transactions_;
  Mutex work_mutex_;             // held by the thread that makes the text; others only try
  Clock::time_point next_work_;  // under work_mutex_
  std::mutex text_mutex_;        // protects text_; a leaf
  std::string text_;
};

}  // namespace flugs::engine
