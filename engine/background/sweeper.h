#pragma once

#include <memory>
#include <stop_token>
#include <thread>
#include <vector>

#include "engine/background/event_queue.h"
#include "engine/background/thread_sleep.h"
#include "tables/keys/deferred_indexes.h"

namespace flugs::engine {

class Table;

/// Makes the indexes that opening left (IndexBuild) in a thread of its own, in the order in which
/// they are wanted. Then, with the lowest priority, it sweeps the rows that opening left unswept
/// (RowSweep::sweep_more), and checks the indexes in the pool and the dictionary entries that
/// opening did not read. Then the thread ends. Thread-safety: creating and destroying only.
class Sweeper {
 public:
  /// The tables must outlive the object. If the thread does not start, nothing is lost: rows are
  /// swept when they are needed.
  Sweeper(std::vector<Table*> tables, EventQueue& events);
  bool is_running() const noexcept { return thread_.joinable(); }

 private:
  Table* next_to_build(DeferredIndexes::Kind kind, bool is_wanted) const noexcept;
  bool build_next() noexcept;
  void tell_failure(const Table& table, const char* what, const Status& status) noexcept;
  void build(const std::stop_token& stop) noexcept;
  void wait_for_drops(const std::stop_token& stop) noexcept;
  void run(const std::stop_token& stop) noexcept;

  EventQueue& events_;
  std::vector<Table*> tables_;
  ThreadSleep sleep_;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace flugs::engine
