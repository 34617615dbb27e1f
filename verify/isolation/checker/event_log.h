#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "flugs/status.h"
#include "verify/isolation/checker/history.h"

namespace flugs::isolation {

/// A user's log of operations and answers, in memory that outlives the process. A killed process
/// leaves exactly the stores that it had executed, in program order, so only the compiler must be
/// kept from reordering them. An event counts once `words` covers it.
struct alignas(64) EventLogLayout {
  std::atomic<std::uint64_t> words{0};       ///< of 4 bytes, written so far
  std::atomic<std::uint64_t> operations{0};  ///< begun so far
};

/// The log of a user, which may have several sessions, each with one transaction at a time. Events
/// that do not fit are not written, and `is_full` says so: then the log is no longer a history.
/// Thread-safety: one thread.
class EventLog {
 public:
  EventLog(EventLogLayout& layout, std::span<std::uint32_t> words) noexcept
      : layout_(layout), words_(words) {}

  static constexpr std::uint32_t kSessionsMax = 256;
  static constexpr std::size_t kElementsMax = 0xFFFF;

  void begin(std::uint32_t session, std::uint64_t time_ns) noexcept;
  /// Called before the operation: an append or a write that fails belongs to a transaction that
  /// aborts.
  void append(std::uint32_t session, std::uint32_t key, std::uint32_t value) noexcept;
  void write(std::uint32_t session, std::uint32_t key, std::uint32_t value) noexcept;
  /// Called when the answer is there.
  void read_list(std::uint32_t session, std::uint32_t key, std::span<const std::uint32_t> elements,
                 bool is_predicate) noexcept;
  void read_register(std::uint32_t session, std::uint32_t key, std::uint32_t value,
                     bool is_predicate) noexcept;
  /// Called before the commit: from here on the outcome of a killed transaction is unknown.
  void commit(std::uint32_t session) noexcept;
  void end(std::uint32_t session, bool is_committed, std::uint64_t time_ns) noexcept;
  /// The process was killed; the time is by the killer's clock. The next sessions are other
  /// processes.
  void killed(std::uint64_t time_ns) noexcept;

  bool is_full() const noexcept { return is_full_; }
  std::uint64_t operations() const noexcept { return layout_.operations.load(); }

 private:
  bool add(std::uint32_t head, std::span<const std::uint32_t> first,
           std::span<const std::uint32_t> second = {}) noexcept;
  void count_operation() noexcept;

  EventLogLayout& layout_;
  std::span<std::uint32_t> words_;
  bool is_full_ = false;
};

/// The process numbers of a log's sessions: the sessions of its first life have the numbers from
/// `first_process` on, and each later life `processes_per_life` more.
struct Processes {
  std::uint32_t first_process = 0;
  std::uint32_t processes_per_life = 1;
};

/// Adds the transactions of a log to a history. A transaction without an end is of a killed
/// process: a call of `killed` must have followed it. Fails with: kCorrupt.
Status read_log(std::span<const std::uint32_t> words, Processes processes, History& history);

}  // namespace flugs::isolation
