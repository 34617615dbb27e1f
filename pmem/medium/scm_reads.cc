// The functions that loads and stores to a pool call, in a build with FLUGS_SCM.
//
// The compiler's check (-fsanitize=kernel-address, inline) reads a shadow byte for each 8 bytes of
// memory, at address / 8 + FLUGS_SCM_SHADOW, and calls one of the functions at the end of this file
// if it is not 0. The address sanitizer's own library is not linked. Shadow bytes of a pool are
// 0xff while it is mapped, all others 0, so that memory outside of pools costs the check alone.
//
// This file is compiled without such checks. It uses no inline function from headers that other
// files use, because the linker could take this copy of the function, without checks, for theirs.
#include "pmem/medium/scm_reads.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>
#include <x86intrin.h>

#include <cstdio>
#include <cstdlib>

#include "pmem/medium/latency.h"
#include "pmem/medium/medium.h"

namespace flugs::pmem {

namespace {

constexpr std::uintptr_t kShadowBegin = FLUGS_SCM_SHADOW;
constexpr unsigned kShadowShift = 3;
constexpr std::uintptr_t kUserBytes = std::uintptr_t{1} << 47;
constexpr std::size_t kShadowBytes = kUserBytes >> kShadowShift;
constexpr std::size_t kFilledBytes = std::size_t{8} << 20;  // filled with 0xff, mapped as often as
                                                            // needed

constexpr unsigned kLineShift = 6;
constexpr unsigned kLineBits = 47 - kLineShift;
constexpr std::uint64_t kGenerations = std::uint64_t{1} << (64 - kLineBits);
constexpr std::size_t kSetCount = std::size_t{1} << 18;  // of 64 bytes each: 16 MB
constexpr std::size_t kLinesPerPage = 64;
constexpr std::size_t kRangesMax = 32;
constexpr std::int64_t kCreditTicksMax = 200;  // reading the counter once may take this long
constexpr std::uint32_t kDramReadNs = 90;      // included in SOFORT's latencies; section 5.1

static_assert(std::size_t{1} << kLineShift == kLineBytes);
static_assert(kLinesPerPage * kLineBytes == kPageBytes);
static_assert((kUserBytes - 1) >> kLineShift >> kLineBits == 0);  // below the generation
static_assert(kShadowBegin % kPageBytes == 0 && kFilledBytes % kPageBytes == 0);  // are mapped

struct Range {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;  // 0: not in use
  std::int64_t line_ticks = 0;
  std::int64_t sequential_ticks = 0;
  ScmReads gone;               // of threads that have ended
  bool forgets_lines = false;  // when a task begins
};

/// State of one thread, in memory of its own. Its set of touched lines is direct-mapped: a word has
/// the generation of the task above the number of the line.
struct Touches {
  std::uint64_t generation;
  std::int64_t debt_ticks;  // charged but not waited for yet; below 0 after waiting too long
  ScmReads reads[kRangesMax];
  Touches* next;
  std::uint64_t sets[kSetCount];
};

// The mutex protects the entries of `ranges`, and `threads`. A thread looks a range up without the
// mutex, because no thread touches a pool that is being mapped or unmapped, and a range that grows
// only gets another end.
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
Range ranges[kRangesMax];
Touches* threads = nullptr;
int forgetting_ranges = 0;
int filled_file = -1;
pthread_key_t end_of_thread;

__thread Touches* mine __attribute__((tls_model("initial-exec"))) = nullptr;

[[noreturn]] void give_up(const char* what) noexcept {
  std::perror(what);
  std::abort();
}

std::uint8_t* shadow_of(std::uintptr_t address) noexcept {
  return reinterpret_cast<std::uint8_t*>((address >> kShadowShift) + kShadowBegin);
}

void* map_shadow(std::uintptr_t begin, std::size_t bytes, int flags, int file) noexcept {
  return ::mmap(reinterpret_cast<void*>(begin), bytes, PROT_READ | PROT_WRITE,
                flags | MAP_NORESERVE, file, 0);
}

// Other threads read the counters; relaxed, because only the owner writes them.
void count(std::uint64_t& counter) noexcept {
  __atomic_store_n(&counter, counter + 1, __ATOMIC_RELAXED);
}

void add_reads(ScmReads& sum, const ScmReads& more) noexcept {
  sum.lines += __atomic_load_n(&more.lines, __ATOMIC_RELAXED);
  sum.sequential_lines += __atomic_load_n(&more.sequential_lines, __ATOMIC_RELAXED);
}

void forget_thread(void* ended) noexcept {
  auto* const touches = static_cast<Touches*>(ended);
  mine = nullptr;
  ::pthread_mutex_lock(&mutex);
  Touches** link = &threads;
  while (*link != touches) link = &(*link)->next;
  *link = touches->next;
  for (std::size_t i = 0; i < kRangesMax; ++i) add_reads(ranges[i].gone, touches->reads[i]);
  ::pthread_mutex_unlock(&mutex);
  ::munmap(ended, sizeof(Touches));
}

Touches& touches_of_thread() noexcept {
  if (mine != nullptr) return *mine;
  void* const room =
      ::mmap(nullptr, sizeof(Touches), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) give_up("flugs: memory for the lines of SCM that a thread touched");
  mine = static_cast<Touches*>(room);
  mine->generation = 1;
  ::pthread_mutex_lock(&mutex);
  mine->next = threads;
  threads = mine;
  ::pthread_mutex_unlock(&mutex);
  ::pthread_setspecific(end_of_thread, mine);
  return *mine;
}

bool has(const Touches& touches, std::uintptr_t line) noexcept {
  return touches.sets[line % kSetCount] == (touches.generation << kLineBits | line);
}

// Two lines before it, in the same page, are touched: then a processor's prefetcher sees a stream.
bool is_sequential(const Touches& touches, std::uintptr_t line) noexcept {
  return line % kLinesPerPage >= 2 && has(touches, line - 1) && has(touches, line - 2);
}

void wait(Touches& touches, std::int64_t ticks) noexcept {
  touches.debt_ticks += ticks;
  if (touches.debt_ticks <= 0) return;
  const auto begin = static_cast<std::int64_t>(__rdtsc());
  std::int64_t passed = 0;
  while (passed < touches.debt_ticks) passed = static_cast<std::int64_t>(__rdtsc()) - begin;
  touches.debt_ticks -= passed;
  // A thread that lost its processor meanwhile gets no credit for later lines.
  if (touches.debt_ticks < -kCreditTicksMax) touches.debt_ticks = 0;
}

void charge(Touches& touches, std::uintptr_t line) noexcept {
  const std::uintptr_t address = line << kLineShift;
  for (std::size_t i = 0; i < kRangesMax; ++i) {
    const Range& range = ranges[i];
    const std::uintptr_t end = __atomic_load_n(&range.end, __ATOMIC_RELAXED);  // may grow
    if (address < (range.begin & -std::uintptr_t{kLineBytes}) || address >= end) continue;
    const bool sequential = is_sequential(touches, line);
    count(sequential ? touches.reads[i].sequential_lines : touches.reads[i].lines);
    const std::int64_t ticks = sequential ? range.sequential_ticks : range.line_ticks;
    if (ticks != 0) wait(touches, ticks);
    return;
  }
}

void touch(std::uintptr_t address, std::size_t bytes) noexcept {
  Touches& touches = touches_of_thread();
  const std::uintptr_t last = (address + bytes - 1) >> kLineShift;
  for (std::uintptr_t line = address >> kLineShift; line <= last; ++line) {
    if (has(touches, line)) continue;
    charge(touches, line);
    touches.sets[line % kSetCount] = touches.generation << kLineBits | line;
  }
}

// Must run before any checked code.
void prepare() noexcept {
  const void* const wanted = reinterpret_cast<void*>(kShadowBegin);
  if (map_shadow(kShadowBegin, kShadowBytes, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
                 -1) != wanted)
    give_up("flugs: a build with FLUGS_SCM needs 16 TB of address space at FLUGS_SCM_SHADOW");
  ::madvise(reinterpret_cast<void*>(kShadowBegin), kShadowBytes, MADV_DONTDUMP);
  if (::pthread_key_create(&end_of_thread, forget_thread) != 0) give_up("flugs: a thread's key");
}
__attribute__((section(".preinit_array"), used)) void (*const at_start)() noexcept = prepare;

int file_of_ones() noexcept {
  if (filled_file >= 0) return filled_file;
  const int file = ::memfd_create("flugs-scm", MFD_CLOEXEC);
  if (file < 0 || ::ftruncate(file, kFilledBytes) != 0) give_up("flugs: shadow of a pool");
  void* const bytes = ::mmap(nullptr, kFilledBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (bytes == MAP_FAILED) give_up("flugs: shadow of a pool");
  __builtin_memset(bytes, 0xff, kFilledBytes);
  ::munmap(bytes, kFilledBytes);
  return filled_file = file;
}

// Whole pages of the shadow are mapped, because the shadow of a 64 GB pool has 8 GB; the ends are
// stored.
void set_shadow(std::uintptr_t begin, std::uintptr_t end, bool is_scm) noexcept {
  auto at = reinterpret_cast<std::uintptr_t>(shadow_of(begin));
  const auto last = reinterpret_cast<std::uintptr_t>(shadow_of(end + 7));
  const std::uintptr_t pages = (at + kPageBytes - 1) & -std::uintptr_t{kPageBytes};
  const std::uintptr_t pages_end = last & -std::uintptr_t{kPageBytes};
  const int value = is_scm ? 0xff : 0;
  if (pages >= pages_end) {
    __builtin_memset(reinterpret_cast<void*>(at), value, last - at);
    return;
  }
  __builtin_memset(reinterpret_cast<void*>(at), value, pages - at);
  __builtin_memset(reinterpret_cast<void*>(pages_end), value, last - pages_end);
  for (at = pages; at < pages_end; at += kFilledBytes) {
    const std::size_t bytes = pages_end - at < kFilledBytes ? pages_end - at : kFilledBytes;
    const void* const mapped =
        is_scm ? map_shadow(at, bytes, MAP_SHARED | MAP_FIXED, file_of_ones())
               : map_shadow(at, bytes, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1);
    if (mapped == MAP_FAILED) give_up("flugs: shadow of a pool");
  }
}

Range* range_at(std::uintptr_t base) noexcept {
  for (Range& range : ranges)
    if (range.end != 0 && range.begin == base) return &range;
  return nullptr;
}

}  // namespace

void begin_scm_task() noexcept {
  if (__atomic_load_n(&forgetting_ranges, __ATOMIC_RELAXED) == 0) return;
  Touches& touches = touches_of_thread();
  if (++touches.generation < kGenerations) return;
  touches.generation = 1;
  __builtin_memset(touches.sets, 0, sizeof touches.sets);
}

void touch_scm(const void* address, std::size_t bytes) noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  if (bytes == 0 || begin >= kUserBytes) return;
  if ((*shadow_of(begin) | *shadow_of(begin + bytes - 1)) != 0) touch(begin, bytes);
}

void enter_scm_range(const std::byte* base, std::size_t bytes, const Latency& latency) noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(base);
  const std::int64_t ns =
      latency.read_ns > kDramReadNs ? std::int64_t{latency.read_ns} - kDramReadNs : 0;
  const std::int64_t ticks = ns == 0 ? 0 : ticks_of_ns(ns);
  ::pthread_mutex_lock(&mutex);
  Range* free = ranges;
  while (free < ranges + kRangesMax && free->end != 0) ++free;
  if (free == ranges + kRangesMax) give_up("flugs: too many pools are open for FLUGS_SCM");
  const auto slot = static_cast<std::size_t>(free - ranges);
  // Counts of a former range in this slot are subtracted in scm_reads_of: modulo 2^64.
  ScmReads before;
  for (Touches* thread = threads; thread != nullptr; thread = thread->next)
    add_reads(before, thread->reads[slot]);
  free->gone = {-before.lines, -before.sequential_lines};
  free->begin = begin;
  free->end = begin + bytes;
  free->line_ticks = ticks;
  free->sequential_ticks = ticks / latency.lines_in_flight;
  free->forgets_lines = !latency.keeps_lines;
  if (free->forgets_lines) __atomic_fetch_add(&forgetting_ranges, 1, __ATOMIC_RELAXED);
  set_shadow(begin, begin + bytes, true);
  ::pthread_mutex_unlock(&mutex);
}

void leave_scm_range(const std::byte* base, std::size_t bytes) noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(base);
  ::pthread_mutex_lock(&mutex);
  if (Range* const range = range_at(begin); range != nullptr) {
    set_shadow(begin, begin + bytes, false);
    if (range->forgets_lines) __atomic_fetch_sub(&forgetting_ranges, 1, __ATOMIC_RELAXED);
    *range = Range{};
  }
  ::pthread_mutex_unlock(&mutex);
}

void grow_scm_range(const std::byte* base, std::size_t before, std::size_t bytes) noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(base);
  ::pthread_mutex_lock(&mutex);
  if (Range* const range = range_at(begin); range != nullptr) {
    set_shadow(begin + before, begin + bytes, true);
    __atomic_store_n(&range->end, begin + bytes, __ATOMIC_RELAXED);
  }
  ::pthread_mutex_unlock(&mutex);
}

ScmReads scm_reads_of(const std::byte* base) noexcept {
  ScmReads sum;
  ::pthread_mutex_lock(&mutex);
  if (const Range* const range = range_at(reinterpret_cast<std::uintptr_t>(base))) {
    sum = range->gone;
    for (Touches* thread = threads; thread != nullptr; thread = thread->next)
      add_reads(sum, thread->reads[range - ranges]);
  }
  ::pthread_mutex_unlock(&mutex);
  return sum;
}

bool is_touched_scm(const void* address) noexcept {
  return has(touches_of_thread(), reinterpret_cast<std::uintptr_t>(address) >> kLineShift);
}

}  // namespace flugs::pmem

// ------------------------------------------------------------- what the compiler and linker call

using flugs::pmem::kLineBytes;

extern "C" {

// NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp): the compiler's names
#define FLUGS_SCM_ACCESS(size)                                       \
  void __asan_report_load##size##_noabort(std::uintptr_t address) {  \
    flugs::pmem::touch(address, size);                               \
  }                                                                  \
  void __asan_report_store##size##_noabort(std::uintptr_t address) { \
    flugs::pmem::touch(address, size);                               \
  }
FLUGS_SCM_ACCESS(1)
FLUGS_SCM_ACCESS(2)
FLUGS_SCM_ACCESS(4)
FLUGS_SCM_ACCESS(8)
FLUGS_SCM_ACCESS(16)
void __asan_report_load_n_noabort(std::uintptr_t address, std::size_t bytes) {
  flugs::pmem::touch(address, bytes);
}
void __asan_report_store_n_noabort(std::uintptr_t address, std::size_t bytes) {
  flugs::pmem::touch(address, bytes);
}
// Not needed here.
void __asan_handle_no_return() {}
void __asan_before_dynamic_init(const char* /*module*/) {}
void __asan_after_dynamic_init() {}

// Functions of C's and xxHash's libraries, which are compiled without checks: the linker redirects
// our calls to these (cmake/scm.cmake).
void* __real_memcpy(void* to, const void* from, std::size_t bytes);
void* __real_memmove(void* to, const void* from, std::size_t bytes);
void* __real_memset(void* to, int value, std::size_t bytes);
int __real_memcmp(const void* a, const void* b, std::size_t bytes);
void* __real_memchr(const void* in, int value, std::size_t bytes);
std::size_t __real_strlen(const char* text);
std::uint64_t __real_XXH3_64bits(const void* input, std::size_t bytes);
std::uint64_t __real_XXH3_64bits_withSeed(const void* input, std::size_t bytes, std::uint64_t seed);

void* __wrap_memcpy(void* to, const void* from, std::size_t bytes) {
  flugs::pmem::touch_scm(from, bytes);
  flugs::pmem::touch_scm(to, bytes);
  return __real_memcpy(to, from, bytes);
}
void* __wrap_memmove(void* to, const void* from, std::size_t bytes) {
  flugs::pmem::touch_scm(from, bytes);
  flugs::pmem::touch_scm(to, bytes);
  return __real_memmove(to, from, bytes);
}
void* __wrap_memset(void* to, int value, std::size_t bytes) {
  flugs::pmem::touch_scm(to, bytes);
  return __real_memset(to, value, bytes);
}
int __wrap_memcmp(const void* a, const void* b, std::size_t bytes) {
  const int order = __real_memcmp(a, b, bytes);
  std::size_t read = 0;  // up to the first line that differs
  while (read < bytes) {
    const std::size_t step = bytes - read < kLineBytes ? bytes - read : kLineBytes;
    const auto* const x = static_cast<const char*>(a) + read;
    const auto* const y = static_cast<const char*>(b) + read;
    flugs::pmem::touch_scm(x, step);
    flugs::pmem::touch_scm(y, step);
    if (order != 0 && __real_memcmp(x, y, step) != 0) break;
    read += step;
  }
  return order;
}
void* __wrap_memchr(const void* in, int value, std::size_t bytes) {
  void* const found = __real_memchr(in, value, bytes);
  const char* const begin = static_cast<const char*>(in);
  flugs::pmem::touch_scm(in, found == nullptr
                                 ? bytes
                                 : static_cast<std::size_t>(static_cast<char*>(found) - begin) + 1);
  return found;
}
std::size_t __wrap_strlen(const char* text) {
  const std::size_t bytes = __real_strlen(text);
  flugs::pmem::touch_scm(text, bytes + 1);
  return bytes;
}
std::uint64_t __wrap_XXH3_64bits(const void* input, std::size_t bytes) {
  flugs::pmem::touch_scm(input, bytes);
  return __real_XXH3_64bits(input, bytes);
}
std::uint64_t __wrap_XXH3_64bits_withSeed(const void* input, std::size_t bytes,
                                          std::uint64_t seed) {
  flugs::pmem::touch_scm(input, bytes);
  return __real_XXH3_64bits_withSeed(input, bytes, seed);
}
// NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp)
}  // extern "C"
