#include "base/usable_memory.h"

#include <unistd.h>

#include <catch2/catch.hpp>

namespace flugs {

TEST_CASE("a process may use some of the machine's memory", "[base]") {
  const auto pages = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES));
  const auto page_bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  CHECK(usable_memory_bytes() > 0);
  CHECK(usable_memory_bytes() <= pages * page_bytes);
}

}  // namespace flugs
