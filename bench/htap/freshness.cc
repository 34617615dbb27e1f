#include "bench/htap/freshness.h"

#include <algorithm>
#include <array>
#include <utility>

#include "bench/support/clock.h"
#include "flugs/try.h"

namespace flugs::bench {

namespace {

constexpr ColumnId kNumber{1};

Value key_of_user(std::size_t user) noexcept {
  return Value::int64(static_cast<std::int64_t>(user));
}

/// A kind of problem of one stream: the first case, and how many there are.
struct Problem {
  const char* words;
  std::uint64_t count = 0;
  std::string first = {};

  void add(std::size_t sight, std::size_t user, std::uint64_t number) {
    if (++count > 1) return;
    first = "query " + std::to_string(sight) + ", number " + std::to_string(number) + " of user " +
            std::to_string(user);
  }
  void tell(std::uint32_t stream, std::vector<std::string>& problems) const {
    if (count == 0) return;
    problems.push_back("freshness: stream " + std::to_string(stream) + " " + words + ", " +
                       std::to_string(count) + " times; first " + first);
  }
};

/// When the newest commit began that a snapshot has, as far as its numbers tell.
std::uint64_t newest_begun_ns(std::span<const CommitLog> commits,
                              std::span<const std::uint64_t> numbers) noexcept {
  std::uint64_t newest = 0;
  for (std::size_t user = 0; user < commits.size(); ++user) {
    const std::uint64_t seen = std::min<std::uint64_t>(numbers[user], commits[user].size());
    if (seen > 0) newest = std::max(newest, commits[user][seen - 1].begun_ns);
  }
  return newest;
}

}  // namespace

Result<KeyId> create_freshness_table(Database& database, std::uint32_t users) {
  TableSchema schema("freshness");
  schema.column("user", Type::kInt64).not_null().direct();
  schema.column("number", Type::kInt64).not_null().direct();
  schema.primary_key({"user"});
  FLUGS_ASSIGN(const TableId table, database.create_table(schema));
  FLUGS_ASSIGN(Transaction transaction, database.begin());
  for (std::uint32_t user = 0; user < users; ++user)
    FLUGS_TRY(transaction.insert(table, {key_of_user(user), Value::int64(0)}));
  FLUGS_TRY(transaction.commit());
  return database.find_key(table, "primary");
}

Result<FreshnessMark> FreshnessMark::make(Database& database, KeyId key, std::uint32_t user,
                                          std::size_t commits) {
  FLUGS_ASSIGN(Prepared number, database.prepare(key, {kNumber}));
  FreshnessMark mark(std::move(number), user);
  mark.log_.reserve(commits);
  return mark;
}

Status FreshnessMark::before_commit(Transaction& transaction) {
  begun_ns_ = monotonic_ns();
  const auto number = static_cast<std::int64_t>(log_.size() + 1);
  return number_.update(transaction, {key_of_user(user_)}, {Value::int64(number)}).status();
}

void FreshnessMark::after_commit() noexcept { log_.push_back({begun_ns_, monotonic_ns()}); }

Result<FreshnessReader> FreshnessReader::make(Database& database, KeyId key) {
  FreshnessReader reader;
  FLUGS_ASSIGN(reader.number_, database.prepare(key, {kNumber}));
  return reader;
}

Status FreshnessReader::read(const Transaction& snapshot, std::span<std::uint64_t> numbers) const {
  for (std::size_t user = 0; user < numbers.size(); ++user) {
    Value number;
    FLUGS_TRY(number_.read(snapshot, {key_of_user(user)}, std::span(&number, 1)));
    numbers[user] = static_cast<std::uint64_t>(number.as_int64());
  }
  return {};
}

std::uint64_t age_ns(std::span<const CommitLog> commits, std::uint64_t start_ns,
                     std::span<const std::uint64_t> numbers) noexcept {
  std::uint64_t age = 0;
  for (std::size_t user = 0; user < commits.size(); ++user) {
    if (numbers[user] >= commits[user].size()) continue;
    const std::uint64_t missed_ns = commits[user][numbers[user]].returned_ns;
    if (missed_ns < start_ns) age = std::max(age, start_ns - missed_ns);
  }
  return age;
}

void judge_sights(const SightLog& sights, std::span<const CommitLog> commits, std::uint32_t stream,
                  Freshness& freshness) {
  Problem decreases{"saw a number decrease"};
  Problem is_unknown{"saw a number that never committed"};
  Problem has_gap{"lacked a commit that had returned before one began that it saw"};
  for (std::size_t i = 0; i < sights.size(); ++i) {
    const std::span<const std::uint64_t> numbers = sights.numbers(i);
    const std::uint64_t newest_ns = newest_begun_ns(commits, numbers);
    for (std::size_t user = 0; user < commits.size(); ++user) {
      const std::uint64_t seen = numbers[user];
      if (i > 0 && seen < sights.numbers(i - 1)[user]) decreases.add(i, user, seen);
      if (seen > commits[user].size()) is_unknown.add(i, user, seen);
      if (seen < commits[user].size() && commits[user][seen].returned_ns < newest_ns)
        has_gap.add(i, user, seen + 1);
    }
    if (!sights.is_sampled(i)) continue;
    const std::uint64_t age = age_ns(commits, sights.start_ns(i), numbers);
    freshness.age.add(age);
    freshness.not_fresh += age > 0 ? 1 : 0;
  }
  for (const Problem& problem : {decreases, is_unknown, has_gap})
    problem.tell(stream, freshness.problems);
}

}  // namespace flugs::bench
