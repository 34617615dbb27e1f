// What scans keep of the rows of a chunk in columns, and what transactions take back.
#include "tables/rows/seen_parts.h"

#include <array>
#include <catch2/catch.hpp>

namespace flugs::test {
namespace {

using engine::SeenParts;
using Mask = std::array<std::uint64_t, SeenParts::kWords>;

constexpr std::uint32_t kPart = 1;

bool finds(const SeenParts& seen, std::uint64_t snapshot, Mask& mask) {
  return seen.find(kPart, snapshot, mask.data());
}

}  // namespace

TEST_CASE("a part has an answer for later snapshots until a tag is noted in it", "[engine]") {
  SeenParts seen(3 * SeenParts::kRows);
  CHECK(seen.parts() == 3);
  Mask given;
  for (std::size_t i = 0; i < given.size(); ++i) given[i] = i * 7 + 1;
  Mask found{};
  CHECK_FALSE(finds(seen, 100, found));
  seen.keep(kPart, seen.ticket(kPart), 50, given.data());
  CHECK(finds(seen, 50, found));
  CHECK(found == given);
  CHECK(finds(seen, 51, found));
  CHECK_FALSE(finds(seen, 49, found));
  CHECK(seen.ticket(kPart) == SeenParts::kNone);  // it has an answer
  CHECK_FALSE(seen.find(kPart + 1, 100, found.data()));
  seen.note_tag((kPart + 1) * SeenParts::kRows);
  CHECK(finds(seen, 50, found));
  seen.note_tag(kPart * SeenParts::kRows + 5);
  CHECK_FALSE(finds(seen, 50, found));
  CHECK_FALSE(finds(seen, 1000, found));
}

TEST_CASE("an answer from before a tag is not kept", "[engine]") {
  SeenParts seen(2 * SeenParts::kRows);
  const Mask given{};
  Mask found;
  const std::uint64_t before = seen.ticket(kPart);
  seen.note_tag(kPart * SeenParts::kRows);
  seen.keep(kPart, before, 10, given.data());
  CHECK_FALSE(finds(seen, 10, found));
  const std::uint64_t behind = seen.ticket(kPart);
  REQUIRE(behind != SeenParts::kNone);
  seen.keep(kPart, behind, 10, given.data());
  CHECK(finds(seen, 10, found));
  // The rows behind the last whole part have no answer.
  SeenParts odd(SeenParts::kRows + 100);
  CHECK(odd.parts() == 1);
  odd.note_tag(SeenParts::kRows + 50);
}

}  // namespace flugs::test
