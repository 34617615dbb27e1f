#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bench/support/histogram.h"
#include "bench/tpcc/tpcc_mark.h"
#include "flugs/database.h"
#include "flugs/prepared.h"

namespace flugs::bench {

// Freshness as HATtrick has it (Milkai et al., SIGMOD 2022). Each user has a row with the number of
// its latest transaction that wrote, and a query reads these rows in its snapshot.

/// One commit of a user, monotonic_ns.
struct CommitTimes {
  std::uint64_t begun_ns = 0;     ///< before the call
  std::uint64_t returned_ns = 0;  ///< after it: from then on every new snapshot must have it
};
/// The commits of one user; number n is element n - 1.
using CommitLog = std::vector<CommitTimes>;

/// Makes the table `freshness`, user and number, with a row of number 0 for each user. Gives its
/// key. Fails as Database::create_table and Transaction::insert.
Result<KeyId> create_freshness_table(Database& database, std::uint32_t users);

/// Numbers the transactions of one user, and logs when they committed.
class alignas(64) FreshnessMark final : public TpccMark {
 public:
  /// Has room for `commits`; logging further ones allocates. Fails as Database::prepare.
  static Result<FreshnessMark> make(Database& database, KeyId key, std::uint32_t user,
                                    std::size_t commits);

  Status before_commit(Transaction& transaction) override;
  void after_commit() noexcept override;

  /// After the thread has ended.
  const CommitLog& log() const noexcept { return log_; }

 private:
  FreshnessMark(Prepared number, std::uint32_t user) : number_(std::move(number)), user_(user) {}

  Prepared number_;
  std::uint32_t user_;
  std::uint64_t begun_ns_ = 0;
  CommitLog log_;
};

/// What the queries of one stream saw, in their order.
class SightLog {
 public:
  explicit SightLog(std::size_t users = 0) : users_(users) {}

  void reserve(std::size_t sights) {
    sights_.reserve(sights);
    numbers_.reserve(sights * users_);
  }
  /// `start_ns` is from before the snapshot was taken; `numbers` has one for each user.
  void add(std::uint64_t start_ns, bool is_sampled, std::span<const std::uint64_t> numbers) {
    sights_.push_back({start_ns, is_sampled});
    numbers_.insert(numbers_.end(), numbers.begin(), numbers.end());
  }

  std::size_t size() const noexcept { return sights_.size(); }
  std::size_t users() const noexcept { return users_; }
  std::uint64_t start_ns(std::size_t sight) const noexcept { return sights_[sight].start_ns; }
  bool is_sampled(std::size_t sight) const noexcept { return sights_[sight].is_sampled; }
  std::span<const std::uint64_t> numbers(std::size_t sight) const noexcept {
    return std::span(numbers_).subspan(sight * users_, users_);
  }

 private:
  struct Sight {
    std::uint64_t start_ns = 0;
    bool is_sampled = false;
  };
  std::size_t users_;
  std::vector<Sight> sights_;
  std::vector<std::uint64_t> numbers_;
};

/// Reads the numbers of all users.
class FreshnessReader {
 public:
  FreshnessReader() = default;
  /// Fails as Database::prepare.
  static Result<FreshnessReader> make(Database& database, KeyId key);
  /// `numbers` gets one for each user. Fails as Prepared::read.
  Status read(const Transaction& snapshot, std::span<std::uint64_t> numbers) const;

 private:
  Prepared number_;
};

/// Ages of the queries that were sampled. The age of a query is the time for which the oldest
/// commit that it does not see had been acknowledged when the query started; 0 if it sees all.
struct Freshness {
  Histogram age;
  std::uint64_t not_fresh = 0;  ///< queries with an age above 0
  std::vector<std::string> problems;

  double not_fresh_share() const noexcept {
    return age.count() == 0 ? 0 : static_cast<double>(not_fresh) / static_cast<double>(age.count());
  }
};

/// Age of one query.
std::uint64_t age_ns(std::span<const CommitLog> commits, std::uint64_t start_ns,
                     std::span<const std::uint64_t> numbers) noexcept;

/// Adds the queries of one stream. A problem is a number that decreases from one query to the next,
/// a number that never committed, or a missing commit that had returned before a visible commit
/// began. Each kind is reported once for each stream, with its count. `stream` is the number that
/// the report names.
void judge_sights(const SightLog& sights, std::span<const CommitLog> commits, std::uint32_t stream,
                  Freshness& freshness);

}  // namespace flugs::bench
