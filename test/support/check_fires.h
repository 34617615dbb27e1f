#pragma once

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <string>

namespace flugs::test {

/// Whether this build has the checks of FLUGS_DCHECK.
#ifdef NDEBUG
inline constexpr bool kHasDebugChecks = false;
#else
inline constexpr bool kHasDebugChecks = true;
#endif

/// Runs `work` in a child process. Returns what the child wrote to stderr if it ended by SIGABRT;
/// otherwise how it ended. Main thread only.
template <typename Work>
std::string last_words_of(Work&& work) {
  int words[2];
  REQUIRE(::pipe(words) == 0);
  const ::pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL);  // not Catch's handler
    const ::rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    ::dup2(words[1], STDERR_FILENO);
    work();
    ::_exit(0);
  }
  ::close(words[1]);
  std::string text;
  char part[256];
  for (::ssize_t got = 0; (got = ::read(words[0], part, sizeof part)) > 0;)
    text.append(part, static_cast<std::size_t>(got));
  ::close(words[0]);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) return text;
  return WIFSIGNALED(status) ? "ended by signal " + std::to_string(WTERMSIG(status))
                             : "ended with status " + std::to_string(WEXITSTATUS(status));
}

}  // namespace flugs::test

/// Checks that an expression ends the process by the FLUGS_CHECK whose condition contains a text:
///     FLUGS_CHECK_FIRES("worker < locals_.size()", sink.push(batch, 1));
#define FLUGS_CHECK_FIRES(condition, ...)                                    \
  CHECK_THAT(                                                                \
      ::flugs::test::last_words_of([&] { static_cast<void>(__VA_ARGS__); }), \
      Catch::Matchers::Contains("broken invariant: ") && Catch::Matchers::Contains(condition))
