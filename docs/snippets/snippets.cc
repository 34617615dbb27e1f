// Runs the code that the documentation's pages show: test `docs/snippets`.
#include <unistd.h>

#include <cstdio>
#include <string>

#include "shop.h"

using namespace flugs;

namespace {

Status run(const std::string& path) {
  OpenOptions options;
  options.path = path;
  options.max_bytes = std::uint64_t{256} << 20;
  options.segment_bytes = std::uint64_t{8} << 20;
  FLUGS_ASSIGN(Database database, Database::open(options));
  FLUGS_TRY(snippets::tables(database));
  FLUGS_TRY(snippets::rows(database));
  FLUGS_TRY(snippets::transactions(database));
  FLUGS_TRY(snippets::queries(database));
  FLUGS_TRY(snippets::operating(database));
  FLUGS_TRY(database.close());
  return snippets::opening(path.c_str());
}

}  // namespace

int main() {
  const std::string path =
      "/dev/shm/flugs-snippets-" + std::to_string(getpid());
  Status done = run(path);
  const std::string first = path + "-first";
  if (done.ok()) done = snippets::front(first.c_str());
  unlink(path.c_str());
  unlink(first.c_str());
  if (!done.ok()) std::fprintf(stderr, "%s\n", done.to_string().c_str());
  return done.ok() ? 0 : 1;
}
