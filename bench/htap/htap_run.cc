#include "bench/htap/htap_run.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <utility>

#include "bench/support/clock.h"
#include "bench/tpcc/tpcc_client.h"
#include "bench/tpcc/tpcc_user.h"
#include "flugs/query.h"
#include "flugs/try.h"

namespace flugs::bench {

namespace {

using Users = std::vector<std::unique_ptr<ClosedLoopUser>>;

// More than one thread does in a second, and 64 MB of commits at most: a log that is full grows.
constexpr double kCommitsPerSecond = 100'000;
constexpr double kCommitsLogged = 4e6;
constexpr double kSightsPerSecond = 10'000;
constexpr double kSightsLogged = 1e5;

Result<double> order_lines(Database& database) {
  FLUGS_ASSIGN(const Transaction snapshot, database.begin(AccessMode::kReadOnly));
  query::RunOptions run;
  run.threads = 1;
  FLUGS_ASSIGN(const query::QueryResult result, query::Query::table("order_line")
                                                    .group_by({}, {query::count().as("rows")})
                                                    .run(snapshot, run));
  return static_cast<double>(result.get_unchecked(0, 0).raw());
}

/// Steps of some users in each second of the sampling period.
class SecondSeries {
 public:
  explicit SecondSeries(std::span<const std::unique_ptr<ClosedLoopUser>> users) : users_(users) {}

  void begin() {
    begin_ns_ = mark_ns_ = monotonic_ns();
    mark_ = executed();
  }
  /// Often enough: a point for each whole second since begin().
  void look() {
    if (users_.empty() || begin_ns_ == 0 ||
        seconds_since(begin_ns_) < static_cast<double>(points_.size() + 1))
      return;
    const std::uint64_t done = executed();
    points_.push_back(static_cast<double>(done - mark_) / seconds_since(mark_ns_));
    mark_ = done;
    mark_ns_ = monotonic_ns();
  }
  std::vector<double> points() && { return std::move(points_); }

 private:
  std::uint64_t executed() const noexcept {
    std::uint64_t sum = 0;
    for (const auto& user : users_) sum += user->executed();
    return sum;
  }

  std::span<const std::unique_ptr<ClosedLoopUser>> users_;
  std::uint64_t begin_ns_ = 0;
  std::uint64_t mark_ns_ = 0;
  std::uint64_t mark_ = 0;
  std::vector<double> points_;
};

/// One run: users first, then streams.
class HtapRun {
 public:
  HtapRun(Database& database, const TpccTables& tables, KeyId freshness,
          const HtapRunOptions& options)
      : database_(database), tables_(tables), freshness_(freshness), options_(options) {}

  Result<HtapRunResult> run() {
    FLUGS_TRY(make_users());
    const std::span all(users_);
    transactions_ = std::make_unique<SecondSeries>(all.first(options_.transactions.users));
    queries_ = std::make_unique<SecondSeries>(all.subspan(options_.transactions.users));
    FLUGS_ASSIGN(rows_loaded_, order_lines(database_));
    HtapRunResult result;
    FLUGS_ASSIGN(result.transactions.loop, run_closed_loop(users_, loop()));
    FLUGS_TRY(counted_);
    result.growth = rows_loaded_ > 0 ? (rows_before_ + rows_after_) / 2 / rows_loaded_ : 1;
    result.transactions.loop.steps_by_second = std::move(*transactions_).points();
    result.queries_by_second = std::move(*queries_).points();
    collect(result);
    return result;
  }

 private:
  std::size_t room(double per_second, double limit) const {
    const ClosedLoopOptions& loop = options_.transactions.loop;
    return static_cast<std::size_t>(
        std::min(std::ceil(per_second * (loop.seconds + loop.ramp_up_seconds)), limit));
  }

  Status make_users() {
    const std::uint32_t users = options_.transactions.users;
    marks_.reserve(users);
    for (std::uint32_t i = 0; i < users; ++i) {
      FLUGS_ASSIGN(
          FreshnessMark mark,
          FreshnessMark::make(database_, freshness_, i, room(kCommitsPerSecond, kCommitsLogged)));
      marks_.push_back(std::move(mark));
      users_.push_back(std::make_unique<TpccUser>(make_session_, options_.transactions, i));
    }
    HtapStreamOptions stream;
    stream.period = options_.period;
    stream.threads = options_.query_threads;
    stream.seed = options_.transactions.seed;
    stream.users = users;
    stream.freshness = freshness_;
    stream.sights = room(kSightsPerSecond, kSightsLogged);
    for (std::uint32_t i = 0; i < options_.streams; ++i)
      users_.push_back(std::make_unique<HtapStream>(database_, stream, i));
    return {};
  }

  Result<std::unique_ptr<TpccSession>> make_session(std::uint32_t user) {
    FLUGS_ASSIGN(std::unique_ptr<TpccClient> client,
                 TpccClient::make(database_, tables_, options_.isolation));
    client->set_mark(&marks_[user]);
    return std::unique_ptr<TpccSession>(std::move(client));
  }

  /// The caller's options, and what this run looks at itself.
  ClosedLoopOptions loop() {
    const ClosedLoopOptions& given = options_.transactions.loop;
    ClosedLoopOptions loop = given;
    loop.sampling_begins = [this, &given] {
      count_rows(rows_before_);
      if (given.sampling_begins) given.sampling_begins();
      transactions_->begin();
      queries_->begin();
    };
    loop.sampling_ends = [this, &given] {
      transactions_->look();
      queries_->look();
      if (given.sampling_ends) given.sampling_ends();
      count_rows(rows_after_);
    };
    loop.progress = [this, &given](double gone, double all) {
      transactions_->look();
      queries_->look();
      return !given.progress || given.progress(gone, all);
    };
    return loop;
  }

  void count_rows(double& rows) {
    Result<double> counted = order_lines(database_);
    if (counted.ok())
      rows = *counted;
    else
      counted_ = std::move(counted).status();
  }

  void collect(HtapRunResult& result) const {
    std::vector<CommitLog> commits;
    commits.reserve(marks_.size());
    for (const FreshnessMark& mark : marks_) commits.push_back(mark.log());
    for (std::size_t i = 0; i < users_.size(); ++i) {
      if (i < marks_.size()) {
        static_cast<const TpccUser&>(*users_[i]).add_to(result.transactions);
        continue;
      }
      const auto& stream = static_cast<const HtapStream&>(*users_[i]);
      stream.add_to(result.queries);
      judge_sights(stream.sights(), commits, static_cast<std::uint32_t>(i - marks_.size()),
                   result.freshness);
    }
  }

  Database& database_;
  const TpccTables& tables_;
  KeyId freshness_;
  const HtapRunOptions& options_;
  const MakeTpccSession make_session_ = [this](std::uint32_t user) { return make_session(user); };
  std::vector<FreshnessMark> marks_;  ///< before the users, which have pointers to them
  Users users_;
  std::unique_ptr<SecondSeries> transactions_;
  std::unique_ptr<SecondSeries> queries_;
  double rows_loaded_ = 0;
  double rows_before_ = 0;
  double rows_after_ = 0;
  Status counted_;
};

}  // namespace

double HtapRunResult::queries_per_second() const noexcept {
  return transactions.per_second(queries.executed());
}

std::vector<std::string> HtapRunResult::problems() const {
  std::vector<std::string> all = queries.problems;
  all.insert(all.end(), freshness.problems.begin(), freshness.problems.end());
  return all;
}

Result<HtapRunResult> run_htap(Database& database, const TpccTables& tables, KeyId freshness,
                               const HtapRunOptions& options) {
  return HtapRun(database, tables, freshness, options).run();
}

}  // namespace flugs::bench
