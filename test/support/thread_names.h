#pragma once

#include <filesystem>
#include <fstream>
#include <string>

namespace flugs::test {

/// Whether this process has a thread of that name now.
inline bool has_thread(const std::string& name) {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string found;
    std::getline(std::ifstream(task.path() / "comm"), found);
    if (found == name) return true;
  }
  return false;
}

}  // namespace flugs::test
