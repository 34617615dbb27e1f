#include "bindings/duckdb/names.h"

#include <sys/stat.h>

namespace flugs::duckdb {

namespace {

bool is_folder(const std::string& path) {
  struct stat found{};
  return stat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode);
}

}  // namespace

std::optional<PoolName> read_pool_name(std::string_view name) {
  const std::string in_pool = std::string(kPoolEnding) + "/";
  if (const std::size_t at = name.rfind(in_pool); at != std::string_view::npos) {
    PoolName found{std::string(name.substr(0, at + kPoolEnding.size())),
                   std::string(name.substr(at + in_pool.size()))};
    if (!found.table->empty() && !is_folder(found.path)) return found;
  }
  if (name.size() <= kPoolEnding.size() || !name.ends_with(kPoolEnding)) return std::nullopt;
  return PoolName{std::string(name), std::nullopt};
}

std::string lower_case(std::string_view name) {
  std::string lower(name);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

}  // namespace flugs::duckdb
