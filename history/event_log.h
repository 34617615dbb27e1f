#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "flugs/status.h"
#include "history/history.h"

namespace flugs::history {

/// Where a user writes down what it is about to do and what came back, in memory that outlives the
/// process: a killed process leaves exactly the stores that it had executed, in program order, so
/// ordering them against the compiler is all it takes. An event counts once `words` covers it.
struct alignas(64) EventLogLayout {
  std::atomic<std::uint64_t> words{0};       ///< of 4 bytes, written so far
  std::atomic<std::uint64_t> operations{0};  ///< begun so far
};

/// The log of a user, who may have several sessions, each with one transaction at a time. Events
/// that do not fit are not written, and `is_full` says so: then the log is no history any more.
/// Thread-safety: one thread.
class EventLog {
 public:
  EventLog(EventLogLayout& layout, std::span<std::uint32_t> words) noexcept
      : layout_(layout), words_(words) {}

  static constexpr std::uint32_t kSessionsMax = 256;
  static constexpr std::size_t kElementsMax = 0xFFFF;

  void begin(std::uint32_t session, std::uint64_t time_ns) noexcept;
  /// Before it is done: an append or a write that fails is one of a transaction that aborts.
  void append(std::uint32_t session, std::uint32_t key, std::uint32_t value) noexcept;
  void write(std::uint32_t session, std::uint32_t key, std::uint32_t value) noexcept;
  /// When the answer is there.
  void read_list(std::uint32_t session, std::uint32_t key, std::span<const std::uint32_t> elements,
                 bool is_predicate) noexcept;
  void read_register(std::uint32_t session, std::uint32_t key, std::uint32_t value,
                     bool is_predicate) noexcept;
  /// Before commit is called: from here on the outcome of one that is killed is unknown.
  void commit(std::uint32_t session) noexcept;
  void end(std::uint32_t session, bool is_committed, std::uint64_t time_ns) noexcept;
  /// The process was killed, by the clock of who killed it; the next sessions are other processes.
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

/// Where in the numbering of processes a log's sessions are: those of its first life have the
/// numbers from `first_process` on, each life later `processes_per_life` more.
struct Processes {
  std::uint32_t first_process = 0;
  std::uint32_t processes_per_life = 1;
};

/// Adds the transactions of a log to a history. Transactions without an end are those of a process
/// that was killed: `killed` must have said so behind them. Fails with: kCorrupt.
Status read_log(std::span<const std::uint32_t> words, Processes processes, History& history);

}  // namespace flugs::history
