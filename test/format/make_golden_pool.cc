// golden_pool PATH: makes a new pool of the kind that test/format/pools keeps, see
// tools/golden-pool.

#include <cstdio>

#include "test/format/golden_pool.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: golden_pool PATH\n", stderr);
    return 2;
  }
  const flugs::Status made = flugs::test::make_golden_pool(argv[1]);
  if (!made.ok()) std::fprintf(stderr, "%s\n", made.to_string().c_str());
  return made.ok() ? 0 : 1;
}
