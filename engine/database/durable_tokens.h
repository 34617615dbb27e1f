#pragma once

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>

#include "base/check.h"
#include "flugs/durability.h"
#include "flugs/status.h"
#include "pmem/pool/pool.h"

namespace flugs::engine {

/// Gives out and redeems the tokens of one opening of a database. On media without a journal every
/// commit that has returned is durable. Thread-safety: any thread.
class DurableTokens {
 public:
  /// `pool` must outlive the object; `opening` is unlike that of any other opening by this process.
  DurableTokens(pmem::Pool& pool, std::uint64_t opening) noexcept
      : journal_(pool.medium().journal()), opening_(opening) {
    FLUGS_DCHECK(opening != 0);  // an empty token has 0
  }

  /// The token that names all that is committed now.
  DurableToken now() const noexcept {
    return {opening_, journal_ == nullptr ? 0 : journal_->end()};
  }
  /// Whether `options` need no `check`. Asked by each commit.
  static constexpr bool is_usual(const CommitOptions& options) noexcept {
    return options.durability == Durability::kOnReturn && options.soon.count() >= 0 &&
           options.soon <= kSoonMax;
  }
  /// Whether commits can be as `options` say. Fails with kInvalidArgument.
  [[gnu::noinline]] Status check(const CommitOptions& options) const {
    if (options.soon.count() < 0 || options.soon > kSoonMax)
      return Status(StatusCode::kInvalidArgument,
                    fmt::format("CommitOptions::soon is {} ms, must be from 0 to {}",
                                options.soon.count(), kSoonMax.count()));
    if (options.durability <= Durability::kSoon) return {};
    static_assert(static_cast<unsigned>(Durability::kProcessCrash) == 2);  // named below
    if (options.durability > Durability::kProcessCrash)
      return Status(StatusCode::kInvalidArgument,
                    fmt::format("CommitOptions::durability is {}, allowed are 0 to 2",
                                static_cast<unsigned>(options.durability)));
    if (journal_ == nullptr || journal_->outlives_process()) return {};
    return Status(StatusCode::kInvalidArgument,
                  "CommitOptions::durability is kProcessCrash: on a disk the database must have "
                  "been opened with OpenOptions::crash_ring");
  }
  bool is_durable(const DurableToken& token) const noexcept {
    return is_ours(token) && (journal_ == nullptr || journal_->is_durable(token.place_));
  }
  /// Fails with kInvalidArgument, and as LineJournal::wait_durable.
  Status wait(const DurableToken& token) const {
    if (!is_ours(token)) return foreign();
    return journal_ == nullptr ? Status() : journal_->wait_durable(token.place_);
  }
  /// Calls `callback` with the result of `wait`.
  void when_durable(const DurableToken& token, std::function<void(const Status&)> callback) const {
    if (!is_ours(token)) return callback(foreign());
    if (journal_ == nullptr) return callback({});
    journal_->when_durable(token.place_, std::move(callback));
  }

 private:
  bool is_ours(const DurableToken& token) const noexcept {
    return token.opening_ == opening_ || token.opening_ == 0;
  }
  static Status foreign() {
    return Status(StatusCode::kInvalidArgument,
                  "the token is of another database, or of another opening of this one");
  }

  static constexpr std::chrono::milliseconds kSoonMax = std::chrono::minutes(1);

  pmem::LineJournal* const journal_;
  const std::uint64_t opening_;
};

}  // namespace flugs::engine
