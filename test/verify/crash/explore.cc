#include "test/verify/crash/explore.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>

namespace flugs::crash {

void must_hold(Exploration exploration) {
#ifdef __SANITIZE_ADDRESS__
  // The sanitizer looks for errors in the recovering code, not in the difference between two
  // images.
  exploration.images_max = std::min<std::uint64_t>(exploration.images_max, 400);
  exploration.nested_one_in *= 4;
#endif
  const std::uint64_t factor = crash_states_factor();
  exploration.nested_one_in /=
      static_cast<std::uint32_t>(std::min<std::uint64_t>(factor, exploration.nested_one_in));
  exploration.images_max *= factor;
  exploration.combinations_max *= factor;
  exploration.random_images *= static_cast<std::uint32_t>(factor);
  const ExplorationResult result = explore(exploration);
  const ExplorerReport& report = result.report;
  std::printf("%s%s: %llu crash points, %llu states, %llu of them nested, %.1f s%s\n",
              exploration.protocol.c_str(), exploration.tears_words ? ", torn" : "",
              static_cast<unsigned long long>(report.crash_points),
              static_cast<unsigned long long>(report.images_checked),
              static_cast<unsigned long long>(report.nested_images), result.seconds,
              report.used_up ? ", budget used up" : "");
  INFO(result.outcome.to_string());
  if (!result.replay.empty())
    UNSCOPED_INFO("to replay: flugs prove explore --replay '" << result.replay << "'");
  CHECK(result.outcome.ok());
  CHECK(report.images_checked > 50);
}

}  // namespace flugs::crash
