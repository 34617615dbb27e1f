// Damaged pools are opened, checked, read and written under the address sanitizer, which also sees
// reads past an end inside a pool's own memory.
#include <catch2/catch.hpp>

#include "test/support/temporary_pool.h"
#include "verify/damage/pool_fuzzer.h"

namespace flugs::test {

TEST_CASE("no damaged pool ends or stops the process", "[fuzz]") {
  const TemporaryPath path;
  damage::PoolFuzzOptions options;
  options.inputs = 2000;
  options.seed = 12;
  options.file_every = 400;
  options.hang_seconds = 60;
  options.file = path.string();
  const Result<damage::PoolFuzzFigures> figures = damage::fuzz_pools(options);
  REQUIRE(figures.ok());
  for (const damage::PoolFuzzFailure& failure : figures->failures)
    WARN("seed 12, input " << failure.input << ": " << failure.what);
  CHECK(figures->inputs == options.inputs);
  CHECK(figures->crashed == 0);
  CHECK(figures->hung == 0);
  CHECK(figures->undetected_under_checksum == 0);
  CHECK((figures->refused != 0 && figures->answered != 0));
}

}  // namespace flugs::test
