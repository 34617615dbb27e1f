// The checks of base/ fire.

#include <array>
#include <memory>
#include <vector>

#include "base/check.h"
#include "base/crew.h"
#include "base/fork.h"
#include "base/parallel_sort.h"
#include "base/published.h"
#include "base/shared_words.h"
#include "base/spin_lock.h"
#include "base/thread.h"
#include "base/zeroed_memory.h"
#include "test/support/check_fires.h"

namespace flugs::test {

TEST_CASE("a broken invariant ends the process and is named on stderr", "[base]") {
  const int two = 2;
  FLUGS_CHECK_FIRES("two == 3", FLUGS_CHECK(two == 3));
  CHECK_THAT(last_words_of([&] { FLUGS_CHECK(two == 3); }),
             Catch::Matchers::Contains("test/base/invariants_test.cc:"));
  if (kHasDebugChecks)
    FLUGS_CHECK_FIRES("two == 3", FLUGS_DCHECK(two == 3));
  else
    CHECK(last_words_of([&] { FLUGS_DCHECK(two == 3); }) == "ended with status 0");
}

TEST_CASE("work that breaks no invariant counts as no check that fired", "[base]") {
  CHECK(last_words_of([] { FLUGS_CHECK(true); }) == "ended with status 0");
  CHECK(last_words_of([] { ::_exit(3); }) == "ended with status 3");
  CHECK(last_words_of([] { ::raise(SIGKILL); }) == "ended by signal 9");
}

TEST_CASE("the checks of base/ fire", "[base]") {
  Published<int> published(1);
  FLUGS_CHECK_FIRES("next != nullptr", published.put(std::unique_ptr<const int>()));
  FLUGS_CHECK_FIRES("thread >= 1", LineWatch::Reader(0));
  FLUGS_CHECK_FIRES("thread <= kThreadsMax", LineWatch::Reader(LineWatch::kThreadsMax + 1));
  FLUGS_CHECK_FIRES("size() <= 15", start_thread("sixteen-letters-", [](const auto&) {}));
  Crew crew;
  std::vector<int> numbers = {2, 1};
  FLUGS_CHECK_FIRES("threads != 0", parallel_sort(crew, 0, numbers, std::less<>()));
  AtFork at_fork;
  REQUIRE(at_fork.enter([](void*) noexcept {}, nullptr).ok());
  FLUGS_CHECK_FIRES("in_child_ == nullptr", AtFork().enter(nullptr, nullptr));
  std::array<std::byte, 64> memory{};
  FLUGS_CHECK_FIRES("touched_bytes <= bytes", give_back_zeroed(memory.data(), 64, 65));
  SpinLock lock;
  if (kHasDebugChecks) FLUGS_CHECK_FIRES("held_", lock.unlock());
}

}  // namespace flugs::test
