// What the caller of a long call hears.
#include "base/long_call.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <utility>
#include <vector>

namespace flugs::test {

TEST_CASE("neither progress nor its total goes back when work begins again", "[base]") {
  using Told = std::pair<std::uint64_t, std::uint64_t>;
  std::vector<Told> told;
  const CallOptions options{
      .progress = [&](const Progress& p) { told.emplace_back(p.done, p.total); }};
  LongCall call(options, "rows");
  CHECK(call.goes_on(0, 10));
  CHECK(call.goes_on(4, 10));
  CHECK(call.goes_on(1, 6));
  CHECK(call.goes_on(5, 20));
  call.tell_end(7);
  CHECK(told == std::vector<Told>{{0, 10}, {4, 10}, {4, 10}, {5, 20}, {20, 20}});
}

}  // namespace flugs::test
