#include "bench/tpcc/tpcc_driver.h"

#include <vector>

#include "bench/tpcc/tpcc_user.h"
#include "flugs/try.h"

namespace flugs::bench {

Result<TpccRunResult> run_tpcc(const MakeTpccSession& make, const TpccRunOptions& options) {
  std::vector<std::unique_ptr<ClosedLoopUser>> users;
  users.reserve(options.users);
  for (std::uint32_t i = 0; i < options.users; ++i)
    users.push_back(std::make_unique<TpccUser>(make, options, i));
  TpccRunResult result;
  FLUGS_ASSIGN(result.loop, run_closed_loop(users, options.loop));
  for (const auto& user : users) static_cast<const TpccUser&>(*user).add_to(result);
  return result;
}

std::uint64_t TpccRunResult::executed() const noexcept {
  std::uint64_t sum = 0;
  for (const TpccTypeResult& type : types) sum += type.executed;
  return sum;
}

std::uint64_t TpccRunResult::retries() const noexcept {
  std::uint64_t sum = 0;
  for (const TpccTypeResult& type : types) sum += type.retries;
  return sum;
}

std::uint64_t TpccRunResult::writes_committed() const noexcept {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kTpccTypes; ++i)
    if (writes(static_cast<TpccType>(i))) sum += types[i].executed - types[i].rolled_back;
  return sum;
}

double TpccRunResult::per_second(std::uint64_t count) const noexcept {
  return loop.seconds > 0 ? static_cast<double>(count) / loop.seconds : 0;
}

}  // namespace flugs::bench
