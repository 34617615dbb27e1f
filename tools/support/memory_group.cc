#include "tools/support/memory_group.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <thread>

namespace flugs::tools {

namespace {

constexpr auto kRetryPause = std::chrono::milliseconds(50);
constexpr int kRetries = 40;  // a killed process leaves its group a little later
constexpr const char* kFolders[] = {"/sys/fs/cgroup/memory", "/sys/fs/cgroup"};
constexpr const char* kLimits[] = {"memory.limit_in_bytes", "memory.max"};

Status write_word(const std::string& path, const std::string& word) {
  std::ofstream file(path);
  errno = 0;
  if (file << word << std::flush) return {};
  return Status(StatusCode::kIoError,
                fmt::format("{}: cannot write {}: {}", path, word, std::strerror(errno)));
}

bool is_there(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

}  // namespace

Result<MemoryGroup> MemoryGroup::make() {
  std::string why;
  for (const char* const folder : kFolders) {
    const std::string path = fmt::format("{}/flugs-{}", folder, ::getpid());
    if (::mkdir(path.c_str(), 0755) != 0) {
      why += fmt::format("; {}: {}", path, std::strerror(errno));
      continue;
    }
    MemoryGroup group(path);
    for (const char* const limit : kLimits)
      if (is_there(path + "/" + limit)) return group;
    why += fmt::format("; {}: has no control of memory", path);
  }
  return Status(StatusCode::kIoError, "no control group can be made, be root" + why);
}

MemoryGroup::~MemoryGroup() {
  if (path_.empty()) return;
  for (int i = 0; i < kRetries && ::rmdir(path_.c_str()) != 0 && errno == EBUSY; ++i)
    std::this_thread::sleep_for(kRetryPause);
}

// In the version 1, page cache that is being written back cannot be taken at once.
Status MemoryGroup::limit(std::uint64_t bytes) const {
  const bool is_first = is_there(path_ + "/" + kLimits[0]);
  const std::string file = path_ + "/" + kLimits[is_first ? 0 : 1];
  if (!is_first)  // without swap there is no such file
    static_cast<void>(write_word(path_ + "/memory.swap.max", "0"));
  Status status = write_word(file, std::to_string(bytes));
  for (int i = 0; i < kRetries && !status.ok(); ++i) {
    std::this_thread::sleep_for(kRetryPause);
    status = write_word(file, std::to_string(bytes));
  }
  return status;
}

std::uint64_t MemoryGroup::major_faults() const {
  std::ifstream file(path_ + "/memory.stat");
  std::string word;
  std::uint64_t number = 0;
  while (file >> word >> number)
    if (word == "pgmajfault") return number;
  return 0;
}

Status MemoryGroup::join(const std::string& path) {
  return write_word(path + "/cgroup.procs", std::to_string(::getpid()));
}

}  // namespace flugs::tools
