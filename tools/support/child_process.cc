#include "tools/support/child_process.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "bench/support/clock.h"
#include "tools/support/cleanup.h"

namespace flugs::tools {

Result<ChildProcess> ChildProcess::start(std::vector<std::string> arguments,
                                         const std::string& program) {
  arguments.insert(arguments.begin(), program);
  arguments.push_back("--spawned-at");
  arguments.push_back(std::to_string(bench::monotonic_ns()));
  return start_program(program, std::move(arguments));
}

Result<ChildProcess> ChildProcess::start_program(const std::string& path,
                                                 std::vector<std::string> arguments, int input) {
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);

  // We wait for some signals in a thread; the child shall be ended by them.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  if (input >= 0) posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
  ChildProcess child;
  const int error =
      posix_spawn(&child.pid_, path.c_str(), &files, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (error != 0)
    return Status(StatusCode::kIoError, "cannot start " + path + ": " + std::strerror(error));
  Cleanup::add_child(child.pid_);
  return child;
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)), exit_status_(other.exit_status_) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(exit_status_, other.exit_status_);
  return *this;
}

ChildProcess::~ChildProcess() { kill(); }

bool ChildProcess::reap(int options) {
  if (pid_ == 0) return true;
  int status = 0;
  pid_t reaped = 0;
  do reaped = waitpid(pid_, &status, options);
  while (reaped < 0 && errno == EINTR);
  if (reaped == 0) return false;
  Cleanup::forget_child(pid_);
  pid_ = 0;
  exit_status_ = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  return true;
}

bool ChildProcess::has_ended() { return reap(WNOHANG); }

void ChildProcess::kill() {
  if (pid_ == 0) return;
  ::kill(pid_, SIGKILL);
  reap(0);
}

void ChildProcess::wait() { reap(0); }

std::string ChildProcess::describe_end() const {
  if (exit_status_ >= 0) return fmt::format("ended with status {}", exit_status_);
  return fmt::format("was ended by signal {} ({})", -exit_status_, strsignal(-exit_status_));
}

void die_with_parent() { prctl(PR_SET_PDEATHSIG, SIGKILL); }

}  // namespace flugs::tools
