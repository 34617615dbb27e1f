// The users of the kill loop and of the power cuts, without kills: the effects agree with the
// steps.
#include <catch2/catch.hpp>
#include <string>

#include "bench/random/random_user.h"
#include "test/support/temporary_database.h"

namespace flugs::test {

TEST_CASE("a random user's tables hold the results of the steps", "[engine][model]") {
  constexpr std::uint64_t kSteps = 600;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    TemporaryDatabase database;
    must(bench::create_random_tables(*database, seed));
    bench::RandomModel model(seed, 0);
    for (std::uint64_t step = 0; step < kSteps; ++step) {
      INFO("seed " << seed << ", step " << step);
      bench::RandomUser user(*database, seed, 0);
      must(user.execute(step));
      model.apply(step);
      if (step % 50 == 49) must(model.compare(*database));
      if (step % 200 == 199) database.reopen();
    }
    must(model.compare(*database));
    must(database->check());
  }
}

}  // namespace flugs::test
