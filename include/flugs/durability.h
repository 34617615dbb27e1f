#pragma once

#include <chrono>
#include <cstdint>
#include <type_traits>

namespace flugs {

namespace engine {
class DurableTokens;
}  // namespace engine

/// When a commit returns (docs/decisions/0044).
enum class Durability : std::uint8_t {
  /// When the commit is durable: Statistics::guarantee says what it survives then.
  kOnReturn,
  /// At once (unless the journal is full), and others see the commit. A DurableToken says when it
  /// is durable. A crash before takes the newest commits back, each as a whole, and with each all
  /// that came after it: what is left has no gap. On media without a journal as kOnReturn.
  kSoon,
  /// At once, as with kSoon. Survives the death of the process. Becomes durable, as a token says,
  /// when the journal needs the memory, or a thread waits for the disk: at no certain time. Medium
  /// `file` needs OpenOptions::crash_ring for it. On media without a journal as kOnReturn.
  kProcessCrash,
};

/// How a transaction commits.
struct CommitOptions {
  Durability durability = Durability::kOnReturn;
  /// kSoon: the commit should be durable after this time, 0 to a minute. The longer, the fewer
  /// writes of the device. Statistics::commits_soon_late counts those that took longer.
  std::chrono::milliseconds soon{10};
};
static_assert(CommitOptions().durability == Durability::kOnReturn);

/// Names all that was committed in a database up to a moment (Database::durable_token). It is valid
/// while that Database is open. A default token names nothing, which is durable.
class DurableToken {
 public:
  DurableToken() noexcept = default;

 private:
  friend class engine::DurableTokens;
  DurableToken(std::uint64_t opening, std::uint64_t place) noexcept
      : opening_(opening), place_(place) {}

  std::uint64_t opening_ = 0;  // of the database, by this process
  std::uint64_t place_ = 0;    // in its journal
};
static_assert(std::is_trivially_copyable_v<DurableToken> && sizeof(DurableToken) == 16);

}  // namespace flugs
