#include "tools/support/cleanup.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace flugs::tools {

namespace {

struct Registry {
  std::mutex mutex;  // protects the two below
  std::vector<std::string> files;
  std::vector<pid_t> children;
};

/// Never destroyed: the signal thread may need it until the process has ended.
Registry& registry() {
  static Registry* const instance = new Registry;
  return *instance;
}

sigset_t ending_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
  return set;
}

void remove_all(const std::string& path) {
  std::error_code error;  // what is gone already is as good
  std::filesystem::remove_all(path, error);
  std::filesystem::remove(path + ".journal", error);  // of a pool on a disk
}

[[noreturn]] void end_by(int signal) {
  // Held until the end, so that nothing is registered any more.
  registry().mutex.lock();
  for (const pid_t child : registry().children) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  for (const std::string& file : registry().files) remove_all(file);
  std::signal(signal, SIG_DFL);
  const sigset_t set = ending_signals();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  raise(signal);
  _exit(128 + signal);
}

}  // namespace

void Cleanup::install() {
  static std::once_flag once;
  std::call_once(once, [] {
    registry();
    const sigset_t set = ending_signals();
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    std::thread([set] {
      int signal = 0;
      while (sigwait(&set, &signal) != 0) {
      }
      end_by(signal);
    }).detach();
  });
}

void Cleanup::add_file(const std::string& path) {
  const std::lock_guard lock(registry().mutex);
  registry().files.push_back(path);
}

void Cleanup::keep_file(const std::string& path) {
  const std::lock_guard lock(registry().mutex);
  std::erase(registry().files, path);
}

void Cleanup::add_child(pid_t child) {
  const std::lock_guard lock(registry().mutex);
  registry().children.push_back(child);
}

void Cleanup::forget_child(pid_t child) {
  const std::lock_guard lock(registry().mutex);
  std::erase(registry().children, child);
}

TemporaryFile::~TemporaryFile() {
  if (path_.empty()) return;
  remove_all(path_);
  Cleanup::keep_file(path_);
}

}  // namespace flugs::tools
