#pragma once

#include <dirent.h>
#include <sys/stat.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace flugs::test {

/// The files of crash rings that belong to the journal of the pool at `path`.
inline std::vector<std::string> ring_files(const std::string& path) {
  struct stat info{};
  if (::stat((path + ".journal").c_str(), &info) != 0) return {"there is no journal"};
  char end[64];
  std::snprintf(end, sizeof end, "-%llx-%llx.ring", static_cast<unsigned long long>(info.st_dev),
                static_cast<unsigned long long>(info.st_ino));
  std::vector<std::string> names;
  DIR* const folder = ::opendir("/dev/shm");
  if (folder == nullptr) return {"there is no /dev/shm"};
  while (const dirent* entry = ::readdir(folder))
    if (std::string_view(entry->d_name).ends_with(end))
      names.push_back(std::string("/dev/shm/") + entry->d_name);
  ::closedir(folder);
  return names;
}

}  // namespace flugs::test
