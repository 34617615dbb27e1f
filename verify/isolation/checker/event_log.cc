#include "verify/isolation/checker/event_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace flugs::isolation {

namespace {

enum class EventKind : std::uint8_t {
  kBegin = 1,
  kAppend,
  kWrite,
  kReadList,
  kReadRegister,
  kCommit,
  kEnd,
  kKilled,
};

// The first word of an event: kind, whether it read by a condition, session, number of words that
// follow.
constexpr std::uint32_t kPredicateBit = 1U << 27;

constexpr std::uint32_t head_of(EventKind kind, std::uint32_t session,
                                bool is_predicate = false) noexcept {
  return static_cast<std::uint32_t>(kind) << 28 | (is_predicate ? kPredicateBit : 0) |
         session << 17;
}
constexpr EventKind kind_in(std::uint32_t head) noexcept {
  return static_cast<EventKind>(head >> 28);
}
constexpr std::uint32_t session_in(std::uint32_t head) noexcept {
  return (head >> 17) & (EventLog::kSessionsMax - 1);
}
constexpr std::uint32_t kCountMask = (1U << 17) - 1;

constexpr std::array<std::uint32_t, 2> words_of(std::uint64_t time_ns) noexcept {
  return {static_cast<std::uint32_t>(time_ns), static_cast<std::uint32_t>(time_ns >> 32)};
}
constexpr std::uint64_t time_in(std::span<const std::uint32_t> words) noexcept {
  return std::uint64_t{words[1]} << 32 | words[0];
}

/// Keeps the compiler from moving stores across this point.
void keep_store_order() noexcept { std::atomic_signal_fence(std::memory_order_seq_cst); }

}  // namespace

bool EventLog::add(std::uint32_t head, std::span<const std::uint32_t> first,
                   std::span<const std::uint32_t> second) noexcept {
  const std::uint64_t used = layout_.words.load(std::memory_order_relaxed);
  const std::size_t count = first.size() + second.size();
  if (used + 1 + count > words_.size() || count > kCountMask) {
    is_full_ = true;
    return false;
  }
  std::uint32_t* out = words_.data() + used;
  *out = head | static_cast<std::uint32_t>(count);
  std::copy(second.begin(), second.end(), std::copy(first.begin(), first.end(), out + 1));
  keep_store_order();
  layout_.words.store(used + 1 + count, std::memory_order_release);
  keep_store_order();
  return true;
}

void EventLog::count_operation() noexcept {
  layout_.operations.store(layout_.operations.load(std::memory_order_relaxed) + 1,
                           std::memory_order_relaxed);
}

void EventLog::begin(std::uint32_t session, std::uint64_t time_ns) noexcept {
  add(head_of(EventKind::kBegin, session), words_of(time_ns));
}

void EventLog::append(std::uint32_t session, std::uint32_t key, std::uint32_t value) noexcept {
  const std::array<std::uint32_t, 2> words = {key, value};
  if (add(head_of(EventKind::kAppend, session), words)) count_operation();
}

void EventLog::write(std::uint32_t session, std::uint32_t key, std::uint32_t value) noexcept {
  const std::array<std::uint32_t, 2> words = {key, value};
  if (add(head_of(EventKind::kWrite, session), words)) count_operation();
}

void EventLog::read_list(std::uint32_t session, std::uint32_t key,
                         std::span<const std::uint32_t> elements, bool is_predicate) noexcept {
  const std::array<std::uint32_t, 1> words = {key};
  if (add(head_of(EventKind::kReadList, session, is_predicate), words, elements)) count_operation();
}

void EventLog::read_register(std::uint32_t session, std::uint32_t key, std::uint32_t value,
                             bool is_predicate) noexcept {
  const std::array<std::uint32_t, 2> words = {key, value};
  if (add(head_of(EventKind::kReadRegister, session, is_predicate), words)) count_operation();
}

void EventLog::commit(std::uint32_t session) noexcept {
  add(head_of(EventKind::kCommit, session), {});
}

void EventLog::end(std::uint32_t session, bool is_committed, std::uint64_t time_ns) noexcept {
  const std::array<std::uint32_t, 1> outcome = {is_committed ? 1U : 0U};
  add(head_of(EventKind::kEnd, session), words_of(time_ns), outcome);
}

void EventLog::killed(std::uint64_t time_ns) noexcept {
  add(head_of(EventKind::kKilled, 0), words_of(time_ns));
}

namespace {

class LogReader {
 public:
  LogReader(Processes processes, History& history) : processes_(processes), history_(history) {}

  Status read(std::span<const std::uint32_t> words) {
    while (!words.empty()) {
      const std::uint32_t head = words.front();
      const std::size_t count = head & kCountMask;
      if (count >= words.size()) return damaged("an event is cut off");
      if (Status s = take(head, words.subspan(1, count)); !s.ok()) return s;
      words = words.subspan(1 + count);
    }
    for (const Session& session : sessions_)
      if (session.is_open) return damaged("a transaction has no end");
    return {};
  }

 private:
  struct Event {
    std::uint32_t head;
    std::span<const std::uint32_t> words;
  };
  struct Session {
    bool is_open = false;
    bool is_committing = false;
    std::uint64_t begin_ns = 0;
    std::vector<Event> operations;
  };

  static Status damaged(const char* what) {
    return Status(StatusCode::kCorrupt, fmt::format("the log of a user is damaged: {}", what));
  }

  static std::size_t words_min(EventKind kind) noexcept {
    switch (kind) {
      case EventKind::kCommit:
        return 0;
      case EventKind::kReadList:
        return 1;
      case EventKind::kEnd:
        return 3;
      default:
        return 2;
    }
  }

  Status take(std::uint32_t head, std::span<const std::uint32_t> words) {
    const EventKind kind = kind_in(head);
    if (kind < EventKind::kBegin || kind > EventKind::kKilled || words.size() < words_min(kind))
      return damaged("no such event");
    const std::uint32_t number = session_in(head);
    if (number >= sessions_.size()) sessions_.resize(number + 1);
    if (kind == EventKind::kKilled) {
      kill(time_in(words));
      return {};
    }
    Session& session = sessions_[number];
    if (session.is_open == (kind == EventKind::kBegin))
      return damaged("a session has several transactions at a time");
    if (kind == EventKind::kBegin) {
      session = {true, false, time_in(words), {}};
    } else if (kind == EventKind::kCommit) {
      session.is_committing = true;
    } else if (kind == EventKind::kEnd) {
      finish(number, words[2] != 0 ? Outcome::kCommitted : Outcome::kAborted, time_in(words));
    } else {
      session.operations.push_back({head, words});
    }
    return {};
  }

  void kill(std::uint64_t time_ns) {
    for (std::uint32_t i = 0; i < sessions_.size(); ++i)
      if (sessions_[i].is_open)
        finish(i, sessions_[i].is_committing ? Outcome::kUnknown : Outcome::kAborted, time_ns);
    processes_.first_process += processes_.processes_per_life;
  }

  void finish(std::uint32_t number, Outcome outcome, std::uint64_t time_ns) {
    Session& session = sessions_[number];
    session.is_open = false;
    history_.begin(processes_.first_process + number, session.begin_ns);
    for (const Event& event : session.operations) {
      const bool is_predicate = (event.head & kPredicateBit) != 0;
      const std::uint32_t key = event.words[0];
      switch (kind_in(event.head)) {
        case EventKind::kAppend:
          history_.append(key, event.words[1]);
          break;
        case EventKind::kWrite:
          history_.write(key, event.words[1]);
          break;
        case EventKind::kReadList:
          history_.read_list(key, event.words.subspan(1), is_predicate);
          break;
        default:
          history_.read_register(key, event.words[1], is_predicate);
          break;
      }
    }
    history_.end(outcome, time_ns);
  }

  Processes processes_;
  History& history_;
  std::vector<Session> sessions_;
};

}  // namespace

Status read_log(std::span<const std::uint32_t> words, Processes processes, History& history) {
  return LogReader(processes, history).read(words);
}

}  // namespace flugs::isolation
