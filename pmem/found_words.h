#pragma once

#include <optional>

#include "pmem/flush_run.h"
#include "pmem/persist.h"
#include "pmem/pool.h"

namespace flugs::pmem {

/// Guard: while it exists, words of the pool that opening reads and relies on are flushed
/// (Pool::rely_on); at its destruction they become durable. A killed process may have stored words
/// without flushing them. A pointer that is only in the caches would be lost with the power, and
/// with it all that the next process made durable behind it. One thread.
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
    run_.emplace(persister_, "rely/1");
    pool_.found_words_ = this;
  }
  ~FoundWords() {
    pool_.found_words_ = nullptr;
    run_.reset();
    persister_.fence("rely/1");
  }
  FoundWords(const FoundWords&) = delete;
  FoundWords& operator=(const FoundWords&) = delete;

 private:
  friend class Pool;
  Pool& pool_;
  Persister persister_;
  std::optional<FlushRun> run_;
};

}  // namespace flugs::pmem
