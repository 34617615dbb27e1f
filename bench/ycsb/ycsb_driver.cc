#include "bench/ycsb/ycsb_driver.h"

#include <sched.h>

#include <utility>

#include "flugs/try.h"

namespace flugs::bench {

namespace {

/// Attempts that spin before the thread yields to the transaction that was first.
constexpr std::uint64_t kYcsbAttemptsInHaste = 4;

/// One user, with everything that its thread writes: on cache lines of its own.
class alignas(64) YcsbUser final : public ClosedLoopUser {
 public:
  YcsbUser(const MakeYcsbSession& make, const YcsbRunOptions& options, YcsbInserts& inserts,
           std::uint32_t index)
      : make_(make),
        clock_(Ticks::instance()),
        inserts_(inserts),
        index_(index),
        generator_(options.rows, options.mix, inserts, options.seed, index) {}

  Status prepare() override {
    FLUGS_ASSIGN(session_, make_(index_));
    return {};
  }

  Status step(bool is_sampled) override {
    generator_.next(request_);
    std::uint64_t retries = 0;
    const std::uint64_t begin = clock_.now();
    FLUGS_TRY(attempt(retries));
    const std::uint64_t end = clock_.now();
    checksum_ += receipt_.checksum;
    if (request_.type == YcsbType::kInsert) {
      inserts_.acknowledge(request_.number);
      ++inserted_;
    }
    if (!is_sampled) return {};
    YcsbTypeResult& type = types_[index_of(request_.type)];
    ++type.executed;
    type.retries += retries;
    type.rows += receipt_.rows;
    type.latency.add(clock_.to_ns(end - begin));
    return {};
  }

  /// After the thread has ended.
  void add_to(YcsbRunResult& result) const {
    for (std::size_t i = 0; i < kYcsbTypes; ++i) {
      result.types[i].executed += types_[i].executed;
      result.types[i].retries += types_[i].retries;
      result.types[i].rows += types_[i].rows;
      result.types[i].latency.merge(types_[i].latency);
      result.latency.merge(types_[i].latency);
    }
    result.inserted += inserted_;
    result.checksum += checksum_;
  }

 private:
  /// Until there is no conflict.
  Status attempt(std::uint64_t& retries) {
    for (;;) {
      receipt_ = YcsbReceipt();
      Status status = session_->run(request_, receipt_);
      if (status.code() != StatusCode::kConflict) return status;
      if (++retries > kYcsbAttemptsInHaste) sched_yield();
    }
  }

  const MakeYcsbSession& make_;
  const Ticks& clock_;
  YcsbInserts& inserts_;
  std::uint32_t index_;
  YcsbGenerator generator_;
  std::unique_ptr<YcsbSession> session_;
  YcsbRequest request_;
  YcsbReceipt receipt_;
  std::uint64_t inserted_ = 0;
  std::uint64_t checksum_ = 0;
  std::array<YcsbTypeResult, kYcsbTypes> types_;
};

}  // namespace

Result<YcsbRunResult> run_ycsb(const MakeYcsbSession& make, const YcsbRunOptions& options) {
  YcsbInserts inserts(options.rows.records);
  std::vector<std::unique_ptr<ClosedLoopUser>> users;
  users.reserve(options.users);
  for (std::uint32_t i = 0; i < options.users; ++i)
    users.push_back(std::make_unique<YcsbUser>(make, options, inserts, i));
  YcsbRunResult result;
  FLUGS_ASSIGN(result.loop, run_closed_loop(users, options.loop));
  for (const auto& user : users) static_cast<const YcsbUser&>(*user).add_to(result);
  return result;
}

std::uint64_t YcsbRunResult::executed() const noexcept {
  std::uint64_t sum = 0;
  for (const YcsbTypeResult& type : types) sum += type.executed;
  return sum;
}

std::uint64_t YcsbRunResult::retries() const noexcept {
  std::uint64_t sum = 0;
  for (const YcsbTypeResult& type : types) sum += type.retries;
  return sum;
}

std::uint64_t YcsbRunResult::rows_read() const noexcept {
  std::uint64_t sum = 0;
  for (const YcsbTypeResult& type : types) sum += type.rows;
  return sum;
}

double YcsbRunResult::per_second(std::uint64_t count) const noexcept {
  return loop.seconds > 0 ? static_cast<double>(count) / loop.seconds : 0;
}

}  // namespace flugs::bench
