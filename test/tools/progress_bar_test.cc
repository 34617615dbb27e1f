// Rate and time left of a progress bar.

#include "tools/support/progress_bar.h"

#include <catch2/catch.hpp>
#include <cstdint>

namespace flugs::tools {

TEST_CASE("a bar tells rate and time left", "[tools]") {
  CHECK(describe_pace(8'200'000, 57'400'000, 2, "rows") == "4.10 M rows/s, 12 s left");
  CHECK(describe_pace(1000, 1500, 1, "") == "1 s left");
  CHECK(describe_pace(1, 3, 4, "kills") == "0.2 kills/s, 8 s left");
  CHECK(describe_pace(10, 130, 10, "chunks") == "1.0 chunks/s, 2 min 0 s left");
  CHECK(describe_pace(10, 7510, 10, "chunks") == "1.0 chunks/s, 2 h 5 min left");
}

TEST_CASE("a bar tells no more than is known", "[tools]") {
  CHECK(describe_pace(0, 100, 2, "rows").empty());        // nothing is done yet
  CHECK(describe_pace(5, 100, 0.1, "rows").empty());      // too early
  CHECK(describe_pace(50, 0, 2, "rows") == "25 rows/s");  // the total is not known
  CHECK(describe_pace(100, 100, 2, "rows") == "50 rows/s");
  CHECK(describe_pace(100, 100, 2, "").empty());
}

}  // namespace flugs::tools
