#include "verify/isolation/sessions/history_plan.h"

#include <new>

namespace flugs::sessions {

namespace {

// An operation takes at most 3 + writes_per_key words, and a reader's a little more for lists that
// a few transactions have written to beyond that; begin, commit and end together take 8.
constexpr std::uint64_t kWordsPerOperation = 16;
constexpr std::uint64_t kWordsOfLog = 1U << 16;

std::uint64_t words_of_log(const HistoryPlan& plan, std::uint32_t user) noexcept {
  const std::uint64_t elements = plan.writes_per_key + kWordsPerOperation;
  const std::uint64_t operations = plan.operations / plan.users + 1;
  // The reader at the end reads each key once; no more keys than operations were taken.
  const std::uint64_t most = user == plan.users ? plan.operations : operations;
  return kWordsOfLog + most * elements;
}

std::uint64_t whole_lines(std::uint64_t bytes) noexcept { return (bytes + 63) / 64 * 64; }

}  // namespace

std::string_view to_string(HistoryWorkload workload) noexcept {
  switch (workload) {
    case HistoryWorkload::kMixed:
      return "mixed";
    case HistoryWorkload::kListAppend:
      return "list-append";
    case HistoryWorkload::kRegister:
      return "register";
  }
  return "unknown";
}

std::string_view to_string(BrokenRule rule) noexcept {
  switch (rule) {
    case BrokenRule::kNone:
      return "none";
    case BrokenRule::kDirtyRead:
      return "dirty-read";
    case BrokenRule::kMovingSnapshot:
      return "moving-snapshot";
    case BrokenRule::kIgnoredConflict:
      return "ignored-conflict";
    case BrokenRule::kStaleSnapshot:
      return "stale-snapshot";
    case BrokenRule::kForgottenCommit:
      return "forgotten-commit";
    case BrokenRule::kUnaskedReads:
      return "unasked-reads";
  }
  return "unknown";
}

bool needs_rule(isolation::Level level, BrokenRule rule) noexcept {
  switch (rule) {
    case BrokenRule::kNone:
      return false;
    case BrokenRule::kDirtyRead:
    case BrokenRule::kForgottenCommit:
      return true;
    case BrokenRule::kMovingSnapshot:
    case BrokenRule::kIgnoredConflict:
    case BrokenRule::kStaleSnapshot:
      return level != isolation::Level::kReadCommitted;
    case BrokenRule::kUnaskedReads:
      return level == isolation::Level::kSerializable ||
             level == isolation::Level::kStrictSerializable;
  }
  return false;
}

std::uint64_t HistoryMemory::bytes_for(const HistoryPlan& plan) noexcept {
  std::uint64_t words = 0;
  for (std::uint32_t user = 0; user <= plan.users; ++user) words += words_of_log(plan, user);
  return whole_lines(sizeof(Layout)) + words * sizeof(std::uint32_t);
}

HistoryMemory HistoryMemory::create(std::span<std::byte> memory, const HistoryPlan& plan) {
  HistoryMemory made(memory.data());
  auto* layout = new (memory.data()) Layout;
  layout->plan = plan;
  for (std::uint32_t i = 0; i < plan.keys; ++i)
    layout->keys[i].store(std::uint64_t{layout->next_key.fetch_add(1)} << 32);
  return made;
}

std::span<std::uint32_t> HistoryMemory::words(std::uint32_t user) const noexcept {
  auto* words = reinterpret_cast<std::uint32_t*>(memory_ + whole_lines(sizeof(Layout)));
  for (std::uint32_t u = 0; u < user; ++u) words += words_of_log(plan(), u);
  return {words, words_of_log(plan(), user)};
}

std::uint64_t HistoryMemory::operations() const noexcept {
  std::uint64_t sum = 0;
  for (std::uint32_t user = 0; user <= plan().users; ++user)
    sum += layout().logs[user].operations.load(std::memory_order_relaxed);
  return sum;
}

std::uint64_t HistoryMemory::operations_of_user() const noexcept {
  return (plan().operations + plan().users - 1) / plan().users;
}

// Some keys are used more often than others. The user that takes a key for the last time replaces
// it.
std::uint32_t HistoryMemory::take_key(std::uint64_t draw, bool writes) const noexcept {
  const std::uint64_t first = draw % plan().keys;
  const std::uint64_t second = (draw >> 32) % plan().keys;
  std::atomic<std::uint64_t>& place = layout().keys[first < second ? first : second];
  if (!writes) return static_cast<std::uint32_t>(place.load() >> 32);
  std::uint64_t seen = place.load();
  for (;;) {
    const auto key = static_cast<std::uint32_t>(seen >> 32);
    const bool is_last = static_cast<std::uint32_t>(seen) + 1 >= plan().writes_per_key;
    const std::uint64_t next =
        is_last ? std::uint64_t{layout().next_key.fetch_add(1)} << 32 : seen + 1;
    if (place.compare_exchange_strong(seen, next)) return key;
  }
}

Result<isolation::History> HistoryMemory::collect() const {
  isolation::History history;
  for (std::uint32_t user = 0; user <= plan().users; ++user) {
    const isolation::Processes processes = {user * plan().sessions, sessions_of_life()};
    if (Status s = isolation::read_log(written(user), processes, history); !s.ok()) return s;
  }
  return history;
}

}  // namespace flugs::sessions
