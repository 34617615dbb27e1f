#include "pmem/medium/persist.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "pmem/medium/medium.h"
#include "test/support/temporary_pool.h"

namespace flugs::pmem {
namespace {

constexpr std::size_t kPageBytes = 4096;

sigjmp_buf g_after_fault;

/// Whether `action` touches missing memory. A flush of a line faults like a load.
template <typename Action>
bool faults(const Action& action) {
  struct sigaction jump{};
  struct sigaction before{};
  jump.sa_handler = [](int) { siglongjmp(g_after_fault, 1); };
  sigaction(SIGSEGV, &jump, &before);
  volatile bool has_faulted = true;
  if (sigsetjmp(g_after_fault, 1) == 0) {
    action();
    has_faulted = false;
  }
  sigaction(SIGSEGV, &before, nullptr);
  return has_faulted;
}

/// Two accessible pages between two inaccessible ones.
class GuardedPages {
 public:
  GuardedPages()
      : all_(static_cast<std::byte*>(
            mmap(nullptr, 4 * kPageBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    mprotect(begin(), 2 * kPageBytes, PROT_READ | PROT_WRITE);
  }
  GuardedPages(const GuardedPages&) = delete;
  GuardedPages& operator=(const GuardedPages&) = delete;
  ~GuardedPages() { munmap(all_, 4 * kPageBytes); }
  std::byte* begin() const { return all_ + kPageBytes; }
  std::byte* end() const { return all_ + 3 * kPageBytes; }

 private:
  std::byte* all_;
};

struct Recorder : PersistObserver {
  std::vector<std::string> events;
  void on_flush(const void* /*address*/, std::size_t bytes, Label label) override {
    events.push_back("flush " + std::to_string(bytes) + " " + label);
  }
  void on_fence(Label label) override { events.push_back(std::string("fence ") + label); }
};

TEST_CASE("a flush reaches every line of an unaligned range and no other", "[pmem][persist]") {
  const GuardedPages pages;
  Medium medium(MediumKind::kEmulated, pages.begin(), 2 * kPageBytes, {});
  int wrong = 0;
  for (std::size_t offset = 0; offset < kLineBytes; ++offset) {
    for (std::size_t bytes = 1; bytes <= 200; ++bytes) {
      const std::size_t lines = (offset + bytes + kLineBytes - 1) / kLineBytes;
      Persister persister(medium);
      const auto flush = [&](std::byte* first_line) {
        return faults([&] { persister.flush(first_line + offset, bytes, "test/1"); });
      };
      // First the last line is the last accessible one, then the first inaccessible one.
      wrong += flush(pages.end() - lines * kLineBytes) ? 1 : 0;
      wrong += flush(pages.end() - (lines - 1) * kLineBytes) ? 0 : 1;
      // First the first line is the first accessible one, then the one before.
      wrong += flush(pages.begin()) ? 1 : 0;
      wrong += flush(pages.begin() - kLineBytes) ? 0 : 1;
      wrong += persister.counters().lines_flushed == 4 * lines ? 0 : 1;
      wrong += persister.counters().bytes_written == 4 * bytes ? 0 : 1;
      persister.fence("test/1");
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("with durable caches a flush touches no line, and a fence is there", "[pmem][persist]") {
  if (std::getenv("FLUGS_FLUSH") != nullptr) return;  // it overrides what the devices say
  const GuardedPages pages;
  Medium medium(MediumKind::kEmulated, pages.begin(), 2 * kPageBytes, {});
  const auto faults_at_end = [&](Persister& persister) {
    return faults([&] { persister.flush(pages.end(), 1, "test/1"); });
  };
  {
    Persister persister(medium);
    CHECK(faults_at_end(persister));
    persister.fence("test/1");
  }
  Nvdimms nvdimms;
  nvdimms.has_durable_caches = true;
  medium.set_nvdimms(nvdimms);
  CHECK(medium.flush_name() == "eadr");
  Persister persister(medium);
  CHECK_FALSE(faults_at_end(persister));
  persister.fence("test/1");
  CHECK(persister.counters().fences == 1);
  CHECK(persister.counters().lines_flushed == 1);
  nvdimms.has_durable_caches = false;
  medium.set_nvdimms(nvdimms);
  CHECK(faults_at_end(persister));
  persister.fence("test/1");
}

TEST_CASE("a flush of nothing and a fence after nothing cost nothing", "[pmem][persist]") {
  const test::PoolBuffer buffer(kPageBytes);
  Medium medium(MediumKind::kMemory, buffer.span().data(), kPageBytes, {});
  Recorder recorder;
  medium.set_observer(&recorder);
  Persister persister(medium);
  persister.flush(medium.base(), 0, "test/1");
  CHECK_FALSE(persister.has_unfenced_flushes());
  persister.fence("test/1");
  CHECK(persister.counters().fences == 0);
  CHECK(recorder.events.empty());
}

TEST_CASE("an observer sees flushes and fences in order on every medium", "[pmem][persist]") {
  const test::PoolBuffer buffer(2 * kPageBytes);
  const MediumKind kind = GENERATE(MediumKind::kDax, MediumKind::kEmulated, MediumKind::kFile,
                                   MediumKind::kMemory, MediumKind::kPrivate);
  Medium medium(kind, buffer.span().data(), buffer.span().size(), {});
  Recorder recorder;
  medium.set_observer(&recorder);
  {
    Persister persister(medium);
    persister.flush(medium.base() + 10, 100, "a/1");
    CHECK(persister.has_unfenced_flushes());
    persister.zero(medium.base() + 300, 20, "a/2");
    persister.fence("a/3");
    CHECK_FALSE(persister.has_unfenced_flushes());
    persister.persist(medium.base(), 8, "b/1");
  }
  const std::vector<std::string> expected = {"flush 100 a/1", "flush 20 a/2", "fence a/3",
                                             "flush 8 b/1", "fence b/1"};
  CHECK(recorder.events == expected);
}

TEST_CASE("zero stores zeros and nothing beyond", "[pmem][persist]") {
  const test::PoolBuffer buffer(kPageBytes);
  Medium medium(MediumKind::kMemory, buffer.span().data(), kPageBytes, {});
  std::memset(medium.base(), 0x5a, kPageBytes);
  Persister persister(medium);
  persister.zero(medium.base() + 100, 200, "test/1");
  persister.fence("test/1");
  for (std::size_t i = 90; i < 310; ++i) {
    const bool is_zero = medium.base()[i] == std::byte{0};
    REQUIRE(is_zero == (i >= 100 && i < 300));
  }
}

TEST_CASE("a medium sums the counters of living and dead persisters", "[pmem][persist]") {
  const test::PoolBuffer buffer(kPageBytes);
  Medium medium(MediumKind::kMemory, buffer.span().data(), kPageBytes, {});
  Persister first(medium);
  first.persist(medium.base() + 60, 8, "test/1");
  {
    Persister second(medium);
    second.persist(medium.base(), 64, "test/1");
    const PersistCounters both = medium.counters();
    CHECK(both.lines_flushed == 3);
    CHECK(both.fences == 2);
    CHECK(both.bytes_written == 72);
  }
  CHECK(medium.counters().lines_flushed == 3);
  std::thread([&] {
    Persister third(medium);
    third.persist(medium.base(), 1, "test/1");
  }).join();
  CHECK(medium.counters().fences == 3);
}

TEST_CASE("counters can be read while others flush", "[pmem][persist][concurrency]") {
  const test::PoolBuffer buffer(kPageBytes);
  Medium medium(MediumKind::kEmulated, buffer.span().data(), kPageBytes, {});
  std::thread writer([&] {
    Persister persister(medium);
    for (int i = 0; i < 20000; ++i) persister.persist(medium.base(), 8, "test/1");
  });
  std::uint64_t last = 0;
  bool only_grows = true;
  while (last < 20000) {
    const std::uint64_t now = medium.counters().fences;
    only_grows = only_grows && now >= last;
    last = now;
  }
  writer.join();
  CHECK(only_grows);
}

template <typename Action>
double ns_per_call(int calls, const Action& action) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) action(i);
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
  return took.count() / calls;
}

TEST_CASE("injected latency is waited for", "[pmem][persist]") {
  const test::PoolBuffer buffer(64 * kPageBytes);
  const Latency latency{.write_ns = 3000};
  Medium medium(MediumKind::kEmulated, buffer.span().data(), buffer.span().size(), latency);
  Persister persister(medium);
  const auto line = [&](int i) { return medium.base() + static_cast<std::size_t>(i) * 64; };
  // By a fence: once for the first line, and an eighth for each further one.
  CHECK(ns_per_call(200, [&](int i) { persister.persist(line(i), 1, "test/1"); }) >= 3000);
  CHECK(ns_per_call(200, [&](int) { persister.persist(line(0), 9 * 64, "test/1"); }) >= 6000);
}

TEST_CASE("the injected latency of lines in sequence is shared by those in flight",
          "[pmem][persist]") {
  const test::PoolBuffer buffer(64 * kPageBytes);
  const Latency latency{.write_ns = 3000, .lines_in_flight = 1};
  Medium medium(MediumKind::kEmulated, buffer.span().data(), buffer.span().size(), latency);
  Persister persister(medium);
  CHECK(ns_per_call(100, [&](int) { persister.persist(medium.base(), 3 * 64, "test/1"); }) >= 9000);
}

}  // namespace
}  // namespace flugs::pmem
