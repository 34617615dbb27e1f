#include "bindings/pools/open_files.h"

#include <sys/stat.h>

#include <filesystem>
#include <system_error>

namespace flugs {

std::optional<PoolFile> file_at(const std::string& path) {
  struct stat found{};
  if (stat(path.c_str(), &found) != 0) return std::nullopt;
  return PoolFile(found.st_dev, found.st_ino);
}

std::string real_path(const std::string& path) {
  std::error_code none;
  const std::filesystem::path found = std::filesystem::weakly_canonical(path, none);
  return none ? path : found.string();
}

}  // namespace flugs
