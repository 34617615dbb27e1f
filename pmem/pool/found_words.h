#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/check.h"
#include "pmem/medium/flush_run.h"
#include "pmem/medium/persist.h"
#include "pmem/pool/pool.h"

namespace flugs::pmem {

/// Guard: while it exists, words of the pool that opening reads and relies on are flushed
/// (Pool::rely_on); at its destruction they become durable. A killed process may have stored words
/// without flushing them. A pointer that is only in the caches would be lost with the power, and
/// with it all that the next process made durable behind it. The thread that made the guard flushes
/// at its destruction what other threads found, since a fence covers only flushes of its own
/// thread. Thread-safety: one thread; Pool::rely_on any thread, and all others must have ended
/// their calls before the destruction.
//
// Protocol rely. Opening, before space is handed out.
//   step  store                         made durable by   power cut just after it: recovery
//   1     none: pointers and limits,    flush, fence      finds them, or what they were before:
//         as they are found                               nothing has relied on them yet
// Must hold:  1 before a transaction begins and before space is allocated, else an acknowledged row
//             could depend on a pointer that is lost, or lie where an older pointer leads.
class FoundWords {
 public:
  explicit FoundWords(Pool& pool) : pool_(pool), persister_(pool.medium()) {
    FLUGS_CHECK(pool.found_words_ == nullptr);
    run_.emplace(persister_, "rely/1");
    pool_.found_words_ = this;
  }
  ~FoundWords() {
    FLUGS_CHECK(pool_.found_words_ == this && std::this_thread::get_id() == maker_);
    pool_.found_words_ = nullptr;
    std::sort(by_others_.begin(), by_others_.end(),
              [](const Found& a, const Found& b) { return std::less<>()(a.address, b.address); });
    for (const Found& found : by_others_) run_->add(found.address, found.bytes);
    run_.reset();
    persister_.fence("rely/1");
  }
  FoundWords(const FoundWords&) = delete;
  FoundWords& operator=(const FoundWords&) = delete;

 private:
  friend class Pool;
  struct Found {
    const void* address;
    std::size_t bytes;
  };

  void add(const void* address, std::size_t bytes) {
    if (std::this_thread::get_id() == maker_) return run_->add(address, bytes);
    const std::lock_guard guard(mutex_);
    by_others_.push_back({address, bytes});
  }

  Pool& pool_;
  const std::thread::id maker_ = std::this_thread::get_id();
  Persister persister_;
  std::optional<FlushRun> run_;
  std::mutex mutex_;  // protects the members below; a leaf
  std::vector<Found> by_others_;
};

}  // namespace flugs::pmem
