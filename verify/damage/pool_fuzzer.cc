#include "verify/damage/pool_fuzzer.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <thread>

#include "verify/damage/pool_input.h"

namespace flugs::damage {

namespace {

using Clock = std::chrono::steady_clock;

// Inputs per process: enough to make starting it cheap, and few enough to show soon what an input
// leaves behind in the process.
constexpr std::uint64_t kInputsPerProcess = 2000;
constexpr std::size_t kFailuresKept = 20;
/// Memory that an input may take beyond what the process had: address space, which bounds all else.
constexpr std::uint64_t kAddressSpacePerInput = std::uint64_t{2} << 30;

/// Figures that a child reports to its parent, in shared memory.
struct Shared {
  std::atomic<std::uint64_t> input;  ///< the running one
  std::atomic<std::uint64_t> refused;
  std::atomic<std::uint64_t> answered;
  std::atomic<std::uint64_t> vouched;
  std::atomic<std::uint64_t> in_files;
  std::atomic<std::uint64_t> undetected;
  std::array<std::atomic<std::uint64_t>, kFailuresKept> undetected_inputs;
};

class SharedMemory {
 public:
  SharedMemory() {
    void* const memory =
        ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED) shared_ = new (memory) Shared{};
  }
  ~SharedMemory() {
    if (shared_ != nullptr) ::munmap(shared_, sizeof(Shared));
  }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  Shared* get() const noexcept { return shared_; }

 private:
  Shared* shared_ = nullptr;
};

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kHasAddressSanitizer = true;
#elif defined(__has_feature)
constexpr bool kHasAddressSanitizer = __has_feature(address_sanitizer);
#else
constexpr bool kHasAddressSanitizer = false;
#endif

/// Makes an input that asks for memory without limit die of it, before the machine suffers. The
/// address sanitizer maps all of the address space, so there its own limit counts.
void limit_memory() {
  if (kHasAddressSanitizer) return;
  std::ifstream statm("/proc/self/statm");
  std::uint64_t pages = 0;
  statm >> pages;
  rlimit limit{};
  limit.rlim_cur = limit.rlim_max =
      pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) + kAddressSpacePerInput;
  ::setrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = limit.rlim_max = 0;
  ::setrlimit(RLIMIT_CORE, &limit);
}

void count(const InputResult& result, std::uint64_t input, Shared& shared) {
  (result.outcome == Outcome::kRefused ? shared.refused : shared.answered).fetch_add(1);
  if (result.in_file) shared.in_files.fetch_add(1);
  if (!result.is_vouched) return;
  shared.vouched.fetch_add(1);
  if (result.is_noticed) return;
  const std::uint64_t index = shared.undetected.fetch_add(1);
  if (index < kFailuresKept) shared.undetected_inputs[index].store(input);
}

class Fuzzer {
 public:
  Fuzzer(const PoolFuzzOptions& options, PoolInputs& inputs, Shared& shared)
      : options_(options), inputs_(inputs), shared_(shared) {}

  Result<PoolFuzzFigures> run() {
    const Clock::time_point start = Clock::now();
    const std::uint64_t end = options_.first + options_.inputs;
    std::uint64_t next = options_.first;
    while (next < end) {
      const std::uint64_t batch_end = std::min(next + kInputsPerProcess, end);
      const Result<std::uint64_t> done = run_batch(next, batch_end);
      if (!done.ok()) return done.status();
      next = *done;
    }
    figures_.inputs = options_.inputs;
    figures_.refused = shared_.refused;
    figures_.answered = shared_.answered;
    figures_.vouched = shared_.vouched;
    figures_.in_files = shared_.in_files;
    figures_.undetected_under_checksum = shared_.undetected;
    for (std::size_t i = 0; i < std::min<std::uint64_t>(shared_.undetected, kFailuresKept); ++i)
      figures_.failures.push_back({shared_.undetected_inputs[i], "undetected under a checksum"});
    figures_.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    return std::move(figures_);
  }

 private:
  [[noreturn]] void run_child(std::uint64_t first, std::uint64_t end) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    limit_memory();
    for (std::uint64_t input = first; input < end; ++input) {
      shared_.input.store(input);
      count(inputs_.run(input), input, shared_);
    }
    shared_.input.store(end);
    ::_exit(0);
  }

  /// Runs inputs in a process until they are done or one ends it; returns the number of the next
  /// input.
  Result<std::uint64_t> run_batch(std::uint64_t first, std::uint64_t end) {
    shared_.input.store(first);
    const pid_t child = ::fork();
    if (child < 0)
      return Status(StatusCode::kIoError, fmt::format("fork: {}", std::strerror(errno)));
    if (child == 0) run_child(first, end);
    int status = 0;
    const bool hung = !wait_for(child, status);
    const std::uint64_t input = shared_.input.load();
    if (options_.progress) options_.progress(input - options_.first, options_.inputs);
    if (hung) {
      ++figures_.hung;
      fail(input, fmt::format("hung for {} s", options_.hang_seconds));
      return input + 1;
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return end;
    ++figures_.crashed;
    fail(input, WIFSIGNALED(status)
                    ? fmt::format("ended by signal {} ({})", WTERMSIG(status),
                                  ::strsignal(WTERMSIG(status)))
                    : fmt::format("ended with exit status {}", WEXITSTATUS(status)));
    return input + 1;
  }

  /// False when an input took too long and the process was killed.
  bool wait_for(pid_t child, int& status) {
    std::uint64_t input = shared_.input.load();
    Clock::time_point since = Clock::now();
    for (;;) {
      if (::waitpid(child, &status, WNOHANG) == child) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      if (const std::uint64_t now = shared_.input.load(); now != input) {
        input = now;
        since = Clock::now();
        if (options_.progress) options_.progress(input - options_.first, options_.inputs);
      } else if (Clock::now() - since > std::chrono::seconds(options_.hang_seconds)) {
        ::kill(child, SIGKILL);
        ::waitpid(child, &status, 0);
        return false;
      }
    }
  }

  void fail(std::uint64_t input, std::string what) {
    if (figures_.failures.size() < kFailuresKept)
      figures_.failures.push_back({input, std::move(what)});
  }

  const PoolFuzzOptions& options_;
  PoolInputs& inputs_;
  Shared& shared_;
  PoolFuzzFigures figures_;
};

}  // namespace

Result<PoolFuzzFigures> fuzz_pools(const PoolFuzzOptions& options) {
  Result<PoolInputs> inputs = PoolInputs::make(options.seed, options.file_every, options.file);
  if (!inputs.ok()) return inputs.status();
  const SharedMemory memory;
  if (memory.get() == nullptr)
    return Status(StatusCode::kIoError, fmt::format("mmap: {}", std::strerror(errno)));
  return Fuzzer(options, *inputs, *memory.get()).run();
}

Status replay_pool_input(const PoolFuzzOptions& options, std::uint64_t input,
                         const std::function<void(const std::string&)>& say) {
  Result<PoolInputs> inputs = PoolInputs::make(options.seed, options.file_every, options.file);
  if (!inputs.ok()) return inputs.status();
  inputs->before_use = say;
  const InputResult result = inputs->run(input);
  say(result.words);
  if (result.is_vouched && !result.is_noticed) say("under a checksum, and not noticed");
  return {};
}

}  // namespace flugs::damage
