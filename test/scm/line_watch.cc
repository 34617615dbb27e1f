#include "test/scm/line_watch.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "base/check.h"
#include "pmem/medium/medium.h"

extern "C" {
// NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp): the linker's names
void* __real_mmap(void* address, std::size_t bytes, int protection, int flags, int file,
                  std::int64_t offset);
void* __wrap_mmap(void* address, std::size_t bytes, int protection, int flags, int file,
                  std::int64_t offset);
// NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp)
}

namespace flugs::test {

namespace {

constexpr std::size_t kPoolBytesMin = std::size_t{12} << 20;  // a shared mapping of this size is a
                                                              // pool
constexpr std::size_t kNotedMax = std::size_t{1} << 24;
constexpr greg_t kSingleStep = 0x100;  // the processor's trap flag

std::span<std::byte> mapped;
std::atomic<bool> is_on = false;
bool starts_at_mapping = false;
pthread_t owner;
struct Access {
  std::uintptr_t address;
  std::uintptr_t instruction;
};
std::vector<Access> noted;  // has all its room before a watch begins
std::size_t noted_count = 0;
// Pages that the current instruction may access; some instructions access several.
thread_local std::array<std::byte*, 64> allowed;
thread_local std::size_t allowed_count = 0;
struct sigaction segv_before;
struct sigaction trap_before;

void protect(std::byte* begin, std::size_t bytes, int protection) {
  if (::mprotect(begin, bytes, protection) != 0) ::abort();
}

mcontext_t& context_of(void* context) { return static_cast<ucontext_t*>(context)->uc_mcontext; }

std::size_t line_of(const Access& access) {
  return (access.address - reinterpret_cast<std::uintptr_t>(mapped.data())) / pmem::kLineBytes;
}

/// CLFLUSH, CLFLUSHOPT or CLWB: the fence charges their costs.
bool is_flush(const std::uint8_t* instruction) {
  if (*instruction == 0x66) ++instruction;           // makes CLFLUSH CLFLUSHOPT, and 6 CLWB
  if ((*instruction & 0xf0) == 0x40) ++instruction;  // REX: the registers from r8 on
  const unsigned operation = instruction[2] >> 3 & 7;
  return instruction[0] == 0x0f && instruction[1] == 0xae && operation >= 6;
}

void on_access(int /*signal*/, siginfo_t* info, void* context) {
  auto* const address = static_cast<std::byte*>(info->si_addr);
  if (address < mapped.data() || address >= mapped.data() + mapped.size()) {
    ::sigaction(SIGSEGV, &segv_before, nullptr);  // not ours: happens again, to the former handler
    return;
  }
  auto* const page = address - reinterpret_cast<std::uintptr_t>(address) % pmem::kPageBytes;
  if (allowed_count == allowed.size()) ::abort();
  allowed[allowed_count++] = page;
  protect(page, pmem::kPageBytes, PROT_READ | PROT_WRITE);
  const auto instruction = static_cast<std::uintptr_t>(context_of(context).gregs[REG_RIP]);
  if (::pthread_equal(::pthread_self(), owner) != 0 && noted_count < kNotedMax &&
      !is_flush(reinterpret_cast<const std::uint8_t*>(instruction)))
    noted[noted_count++] = {reinterpret_cast<std::uintptr_t>(address), instruction};
  context_of(context).gregs[REG_EFL] |= kSingleStep;
}

void after_access(int /*signal*/, siginfo_t* /*info*/, void* context) {
  while (allowed_count != 0) {
    std::byte* const page = allowed[--allowed_count];
    if (is_on.load()) protect(page, pmem::kPageBytes, PROT_NONE);
  }
  context_of(context).gregs[REG_EFL] &= ~kSingleStep;
}

void begin() {
  noted_count = 0;
  is_on.store(true);
  protect(mapped.data(), mapped.size(), PROT_NONE);
}

}  // namespace

std::span<std::byte> LineWatch::pool() { return mapped; }

LineWatch::LineWatch(bool opens) {
  FLUGS_CHECK(!is_on.load());
  noted.resize(kNotedMax);
  owner = ::pthread_self();
  struct sigaction action{};
  action.sa_flags = SA_SIGINFO;
  action.sa_sigaction = on_access;
  ::sigaction(SIGSEGV, &action, &segv_before);
  action.sa_sigaction = after_access;
  ::sigaction(SIGTRAP, &action, &trap_before);
  if (opens) {
    starts_at_mapping = true;
  } else {
    begin();
  }
}

void LineWatch::stop() {
  if (!is_on.exchange(false)) return;
  protect(mapped.data(), mapped.size(), PROT_READ | PROT_WRITE);
  ::sigaction(SIGSEGV, &segv_before, nullptr);
  ::sigaction(SIGTRAP, &trap_before, nullptr);
}

std::vector<std::size_t> LineWatch::lines() const {
  FLUGS_CHECK(!is_on.load() && noted_count < kNotedMax);
  std::vector<std::size_t> lines;
  for (std::size_t i = 0; i < noted_count; ++i) lines.push_back(line_of(noted[i]));
  std::sort(lines.begin(), lines.end());
  lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
  return lines;
}

std::string LineWatch::place_of(std::size_t line) const {
  for (std::size_t i = 0; i < noted_count; ++i) {
    if (line_of(noted[i]) != line) continue;
    Dl_info info{};
    if (::dladdr(reinterpret_cast<void*>(noted[i].instruction), &info) == 0) return "?";
    return fmt::format("{}+{:#x}", info.dli_fname,
                       noted[i].instruction - reinterpret_cast<std::uintptr_t>(info.dli_fbase));
  }
  return "nowhere";
}

}  // namespace flugs::test

void* __wrap_mmap(void* address, std::size_t bytes, int protection, int flags, int file,
                  std::int64_t offset) {
  namespace test = flugs::test;
  void* const result = __real_mmap(address, bytes, protection, flags, file, offset);
  const bool is_pool = result != MAP_FAILED && file >= 0 && bytes >= test::kPoolBytesMin &&
                       (flags & MAP_TYPE) != MAP_PRIVATE && offset == 0;
  if (!is_pool || test::is_on.load()) return result;
  test::mapped = {static_cast<std::byte*>(result), bytes};
  if (test::starts_at_mapping) {
    test::starts_at_mapping = false;
    test::begin();
  }
  return result;
}
