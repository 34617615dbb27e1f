#include "base/usable_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace flugs {

namespace {

/// The limit in a file of a group; `most`: there is no such file, or no limit in it.
std::uint64_t limit_in(const std::string& path, std::uint64_t most) {
  std::ifstream file(path);
  std::uint64_t bytes = 0;
  return file >> bytes ? std::min(bytes, most) : most;  // without a limit version 2 says "max"
}

/// The least limit of the group at `path` below `root`, and of those that it is in.
std::uint64_t limit_of_group(const std::string& root, std::string path, const char* file,
                             std::uint64_t most) {
  while (!path.empty()) {
    most = limit_in(root + path + "/" + file, most);
    const std::size_t slash = path.find_last_of('/');
    path.resize(slash == std::string::npos ? 0 : slash);
  }
  return limit_in(root + "/" + file, most);
}

}  // namespace

// A line of /proc/self/cgroup is NUMBER:CONTROLLERS:PATH; in version 2 there are no controllers.
std::uint64_t usable_memory_bytes(const std::string& groups_of_process, const std::string& groups) {
  const auto pages = static_cast<std::uint64_t>(std::max(::sysconf(_SC_PHYS_PAGES), 0L));
  std::uint64_t bytes = pages * static_cast<std::uint64_t>(std::max(::sysconf(_SC_PAGESIZE), 0L));
  std::ifstream lines(groups_of_process);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty())
      bytes = limit_of_group(groups, path, "memory.max", bytes);
    else if (controllers == "memory")
      bytes = limit_of_group(groups + "/memory", path, "memory.limit_in_bytes", bytes);
  }
  return bytes;
}

std::uint64_t usable_memory_bytes() {
  return usable_memory_bytes("/proc/self/cgroup", "/sys/fs/cgroup");
}

}  // namespace flugs
