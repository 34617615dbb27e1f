#include "bench/support/environment.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#include <cstdlib>
#include <fstream>
#include <string_view>

#ifndef FLUGS_GIT_COMMIT
#define FLUGS_GIT_COMMIT "unknown"
#endif

namespace flugs::bench {

namespace {

/// The text behind the colon of the first line that begins with `name`, without blanks.
std::string proc_field(const char* path, std::string_view name) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (!std::string_view(line).starts_with(name)) continue;
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? std::string() : line.substr(begin);
  }
  return {};
}

std::uint64_t proc_kilobytes(const char* path, std::string_view name) {
  return std::strtoull(proc_field(path, name).c_str(), nullptr, 10) * 1024;
}

/// The choice in brackets of a line such as "always [madvise] never".
std::string chosen(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  const std::size_t begin = line.find('[');
  const std::size_t end = line.find(']');
  if (begin == std::string::npos || end == std::string::npos) return "unknown";
  return line.substr(begin + 1, end - begin - 1);
}

}  // namespace

unsigned usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return static_cast<unsigned>(CPU_COUNT(&set));
}

Environment environment() {
  Environment e;
  e.commit = FLUGS_GIT_COMMIT;
  e.cpu = proc_field("/proc/cpuinfo", "model name");
  if (e.cpu.empty()) e.cpu = "unknown";
  e.cores = usable_cores();
  e.memory_bytes = proc_kilobytes("/proc/meminfo", "MemTotal");
  utsname names{};
  if (uname(&names) == 0) e.kernel = std::string(names.sysname) + " " + names.release;
  e.huge_pages = "shared memory: " + chosen("/sys/kernel/mm/transparent_hugepage/shmem_enabled") +
                 ", anonymous: " + chosen("/sys/kernel/mm/transparent_hugepage/enabled");
#if defined(__clang__)
  e.compiler = "clang " __clang_version__;
#else
  e.compiler = "gcc " __VERSION__;
#endif
#if defined(__OPTIMIZE__)
  e.build = "release";
#else
  e.build = "debug";
#endif
  return e;
}

std::uint64_t dram_bytes() { return proc_kilobytes("/proc/self/status", "RssAnon"); }

std::uint64_t begin_resident_peak() {
  std::ofstream("/proc/self/clear_refs") << "5";
  return proc_kilobytes("/proc/self/status", "VmRSS");
}

std::uint64_t resident_peak_bytes() { return proc_kilobytes("/proc/self/status", "VmHWM"); }

std::uint64_t available_memory_bytes() { return proc_kilobytes("/proc/meminfo", "MemAvailable"); }

PageFaults page_faults() {
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) != 0) return {};
  return {static_cast<std::uint64_t>(usage.ru_minflt), static_cast<std::uint64_t>(usage.ru_majflt)};
}

}  // namespace flugs::bench
