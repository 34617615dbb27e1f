#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "flugs/database.h"
#include "verify/isolation/checker/anomaly.h"
#include "verify/isolation/checker/event_log.h"

namespace flugs::sessions {

enum class HistoryWorkload : std::uint8_t {
  kMixed,       ///< lists and registers in the same transactions
  kListAppend,  ///< half of the lists a row per element, half all elements in one value
  kRegister,
};
std::string_view to_string(HistoryWorkload workload) noexcept;

/// A visibility rule that is broken on purpose: the checker must notice.
enum class BrokenRule : std::uint8_t {
  kNone,
  kDirtyRead,        ///< now and then a read sees what another transaction has not committed yet
  kMovingSnapshot,   ///< each statement has the snapshot of its moment
  kIgnoredConflict,  ///< a write goes on top of the newest version, whatever the writer had read
  kStaleSnapshot,    ///< the snapshot is older than the beginning of the transaction
  kForgottenCommit,  ///< now and then a commit is acknowledged and undone
  kUnaskedReads,     ///< serializable transactions commit whatever has become of what they read
};
inline constexpr BrokenRule kBrokenRules[] = {
    BrokenRule::kDirtyRead,     BrokenRule::kMovingSnapshot,  BrokenRule::kIgnoredConflict,
    BrokenRule::kStaleSnapshot, BrokenRule::kForgottenCommit, BrokenRule::kUnaskedReads};
std::string_view to_string(BrokenRule rule) noexcept;
/// Whether the level promises what the rule protects.
bool needs_rule(isolation::Level level, BrokenRule rule) noexcept;

inline constexpr std::uint32_t kHistoryUsersMax = 64;
inline constexpr std::uint32_t kHistoryTablesMax = 8;
inline constexpr std::uint32_t kHistoryKeysMax = 256;

/// What users do to a database. Plain bytes: processes share it.
struct HistoryPlan {
  char pool_path[1024] = {};
  std::uint64_t seed = 1;
  std::uint64_t operations = 100'000;  ///< of all users together
  std::uint32_t users = 4;             ///< a thread each
  std::uint32_t sessions = 3;          ///< of a user: transactions that it interleaves
  std::uint32_t tables = 2;            ///< of each kind
  std::uint32_t keys = 16;             ///< in use at a time
  std::uint32_t writes_per_key = 24;   ///< tried; then the key is left and another one begun
  HistoryWorkload workload = HistoryWorkload::kMixed;
  isolation::Level level = isolation::Level::kStrongSnapshot;
  BrokenRule broken = BrokenRule::kNone;
  IndexPlace index_place = kDefaultIndexPlace;
  CommitClock clock = CommitClock::kAutomatic;
  bool merges = true;
};

/// Memory outside the pool that the processes of a run share: one process may be killed at any
/// moment, and the next one continues. It begins with the logs of users, and one of the reader at
/// the end.
class HistoryMemory {
 public:
  /// Bytes that a plan needs; zeros at first.
  static std::uint64_t bytes_for(const HistoryPlan& plan) noexcept;
  /// Begins a run in zeroed memory, or in that of a run that is over.
  static HistoryMemory create(std::span<std::byte> memory, const HistoryPlan& plan);
  /// Joins the run of another process.
  static HistoryMemory attach(std::byte* memory) noexcept { return HistoryMemory(memory); }

  struct Layout {
    HistoryPlan plan;
    std::atomic<std::uint32_t> is_running{0};  ///< the database is open, users are at work
    std::atomic<std::uint32_t> life{0};        ///< processes that were killed
    std::atomic<std::uint32_t> next_value{1};
    std::atomic<std::uint32_t> next_key{0};
    std::atomic<std::uint64_t> merges{0};
    std::atomic<std::uint64_t> keys[kHistoryKeysMax] = {};  ///< key, and number of writes in the
                                                            ///< lower half
    isolation::EventLogLayout logs[kHistoryUsersMax + 1];
  };
  Layout& layout() const noexcept { return *reinterpret_cast<Layout*>(memory_); }
  const HistoryPlan& plan() const noexcept { return layout().plan; }
  /// `user` may be plan().users: the reader at the end.
  isolation::EventLog log(std::uint32_t user) const noexcept {
    return {layout().logs[user], words(user)};
  }
  std::span<const std::uint32_t> written(std::uint32_t user) const noexcept {
    return words(user).first(layout().logs[user].words.load());
  }
  std::uint64_t operations() const noexcept;
  std::uint64_t operations_of_user() const noexcept;  ///< how many each user does
  std::uint32_t sessions_of_life() const noexcept { return plan().users * plan().sessions + 1; }

  /// Takes a key in use, chosen by `draw`; `writes`: the key will be written.
  std::uint32_t take_key(std::uint64_t draw, bool writes) const noexcept;
  std::uint32_t take_value() const noexcept { return layout().next_value.fetch_add(1); }

  /// The transactions of a run that is over. Fails with kCorrupt, kOutOfSpace (a log was full).
  Result<isolation::History> collect() const;

 private:
  explicit HistoryMemory(std::byte* memory) noexcept : memory_(memory) {}
  std::span<std::uint32_t> words(std::uint32_t user) const noexcept;

  std::byte* memory_;
};

}  // namespace flugs::sessions
