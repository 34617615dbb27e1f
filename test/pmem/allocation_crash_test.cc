// Crash states of everything that pmem/ itself makes durable: creating a pool, growing, handing out
// extents, repairing a header. Fault model: verify/crash/rig/explorer.h. The last test kills a
// process instead, which keeps the page cache and so proves less.

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <random>
#include <vector>

#include "pmem/pool/pool.h"
#include "pmem/pool/pool_format.h"
#include "pmem/space/extent_allocator.h"
#include "test/support/complaint.h"
#include "test/support/temporary_pool.h"
#include "verify/crash/rig/explorer.h"

namespace flugs::pmem {
namespace {

using crash::CrashExplorer;
using crash::ExplorerContext;
using crash::ExplorerOptions;
using crash::ExplorerReport;
using crash::PoolBuffer;
using test::TemporaryPath;

constexpr std::size_t kSlots = 16;
constexpr std::size_t kWordsMax = 128;
constexpr std::uint64_t kFirstPoolBytes = 16384;
constexpr int kStepsToGrowth = 20;

/// An owner of extents: a slot in the application root names one. The first `stored` words of an
/// extent hold `value`; the rest is as the allocator gave it and must stay zero.
struct Slot {
  std::uint64_t offset;
  std::uint64_t bytes;
  std::uint64_t value;
  std::uint64_t stored;
  std::uint64_t unused[3];
  std::uint64_t is_set;  // stored last, a fence after the rest
};
static_assert(sizeof(Slot) * kSlots <= kApplicationRootBytes && sizeof(Slot) == kLineBytes);

Slot* slots_of(Pool& pool) { return reinterpret_cast<Slot*>(pool.application_root()); }

class Owner {
 public:
  explicit Owner(Pool& pool) : pool_(pool), persister_(pool.medium()) {}
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;

  /// As far to the front as there is space.
  void put_in_front(std::size_t index, std::uint64_t bytes, std::uint64_t value,
                    std::uint64_t stored) {
    Result<Extent> extent =
        pool_.allocator().allocate_below(bytes, pool_.medium().bytes(), persister_);
    if (extent.ok()) publish(index, *extent, value, stored);
    persister_.fence("owner/0");
  }
  Status put(std::size_t index, std::uint64_t bytes, std::uint64_t value, std::uint64_t stored) {
    Result<Extent> extent = pool_.allocator().allocate(bytes, persister_);
    if (!extent.ok()) {
      persister_.fence("owner/0");
      return extent.status();
    }
    publish(index, *extent, value, stored);
    return {};
  }
  void publish(std::size_t index, Extent extent, std::uint64_t value, std::uint64_t stored) {
    auto* words = reinterpret_cast<std::uint64_t*>(pool_.base() + extent.offset);
    for (std::uint64_t i = 0; i < stored; ++i) words[i] = value;
    persister_.flush(words, stored * 8, "owner/1");
    Slot& slot = slots_of(pool_)[index];
    slot = {.offset = extent.offset,
            .bytes = extent.bytes,
            .value = value,
            .stored = stored,
            .unused = {},
            .is_set = 0};
    persister_.persist(&slot, sizeof slot, "owner/2");
    slot.is_set = 1;
    persister_.persist(&slot.is_set, 8, "owner/3");
  }

  void remove(std::size_t index) {
    Slot& slot = slots_of(pool_)[index];
    slot.is_set = 0;
    persister_.persist(&slot.is_set, 8, "owner/4");
    pool_.allocator().release({slot.offset, slot.bytes});
  }
  /// A mistake: the space goes back to the file system while the pointer to it is still there.
  void remove_too_early(std::size_t index) {
    Slot& slot = slots_of(pool_)[index];
    pool_.allocator().release({slot.offset, slot.bytes});
    pool_.allocator().give_back(Slack::kNone);
    slot.is_set = 0;
    persister_.persist(&slot.is_set, 8, "owner/4");
  }

 private:
  Pool& pool_;
  Persister persister_;
};

Status wrong(const std::string& what) { return Status(StatusCode::kCorrupt, what); }

Status check_slot(Pool& pool, std::size_t index) {
  const Slot& slot = slots_of(pool)[index];
  if (slot.is_set == 0) return {};
  Status status = pool.allocator().claim({slot.offset, slot.bytes}, fmt::format("slot {}", index));
  if (!status.ok()) return status;
  const auto* words = reinterpret_cast<const std::uint64_t*>(pool.base() + slot.offset);
  for (std::uint64_t i = 0; i < slot.bytes / 8; ++i) {
    const std::uint64_t expected = i < slot.stored ? slot.value : 0;
    if (words[i] != expected) {
      return wrong(
          fmt::format("slot {} word {}: expected {}, found {}", index, i, expected, words[i]));
    }
  }
  return {};
}

/// Takes all free space: each piece must be zero, and used and free space must add up.
Status check_free_space(Pool& pool) {
  Persister persister(pool.medium());
  ExtentAllocator& allocator = pool.allocator();
  for (;;) {
    const Result<Extent> extent = allocator.allocate(allocator.unit_bytes(), persister);
    persister.fence("check/1");
    if (!extent.ok()) break;
    auto* words = reinterpret_cast<std::uint64_t*>(pool.base() + extent->offset);
    for (std::uint64_t i = 0; i < extent->bytes / 8; ++i) {
      if (words[i] != 0) {
        return wrong(fmt::format("offset {}: handed out as zero, found {}", extent->offset + 8 * i,
                                 words[i]));
      }
      words[i] = ~std::uint64_t{0};
    }
  }
  const SpaceReport space = allocator.space();
  if (space.used_bytes + space.overhead_bytes != space.allocated_bytes) {
    return wrong(fmt::format("leaked: {} used, {} overhead, {} allocated", space.used_bytes,
                             space.overhead_bytes, space.allocated_bytes));
  }
  return {};
}

Status check_image(std::span<std::byte> image, ExplorerContext& context) {
  {
    PoolOptions options;
    options.observer = context.observer();
    Result<std::unique_ptr<Pool>> pool = Pool::open_in_memory(image, options);
    if (!pool.ok()) return pool.status();
    for (std::size_t i = 0; i < kSlots; ++i) {
      Status status = check_slot(**pool, i);
      if (!status.ok()) return status;
    }
    (*pool)->allocator().finish_claims();
    if (Status status = (*pool)->grow(image.size()); !status.ok()) return status;
    // New work, some of which is kept, then another restart.
    Owner owner(**pool);
    for (std::size_t i = 0; i < kSlots; i += 5) {
      if (slots_of(**pool)[i].is_set != 0) continue;
      const Status status = owner.put(i, 700, 99, 10);
      if (!status.ok() && status.code() != StatusCode::kOutOfSpace) return status;
    }
  }
  Result<std::unique_ptr<Pool>> pool = Pool::open_in_memory(image, {});
  if (!pool.ok()) return pool.status();
  for (std::size_t i = 0; i < kSlots; ++i) {
    Status status = check_slot(**pool, i);
    if (!status.ok()) return status;
  }
  (*pool)->allocator().finish_claims();
  return check_free_space(**pool);
}

/// The pool in the image has the size that was promised, or the one that it is getting.
Status check_size(std::span<std::byte> image, std::uint64_t promised, std::uint64_t in_flight) {
  const auto& root = *reinterpret_cast<const PoolRoot*>(image.data());
  const Result<PoolHeader> header = choose_header(root.headers, image.size(), "image");
  if (!header.ok()) return header.status();
  if (header->max_bytes == promised || header->max_bytes == in_flight) return {};
  return wrong(fmt::format("{} bytes promised, found {}", promised, header->max_bytes));
}

ExplorerReport explore_allocations(ExplorerOptions options, int steps) {
  const PoolBuffer buffer(32768);
  PoolOptions pool_options;
  pool_options.max_bytes = kFirstPoolBytes;
  pool_options.extent_unit_bytes = 256;
  pool_options.segment_bytes = 4096;
  auto pool = Pool::create_in_memory(buffer.span(), pool_options);
  std::uint64_t promised_bytes = kFirstPoolBytes;
  std::uint64_t bytes_in_flight = kFirstPoolBytes;
  std::mt19937_64 random(options.seed);
  // The promised content of each slot, 0 for none; and the content that it may have before that.
  std::array<std::uint64_t, kSlots> promised{};
  std::array<std::uint64_t, kSlots> in_flight{};
  CrashExplorer explorer(
      buffer.span(),
      [&](std::span<std::byte> image, ExplorerContext& context) {
        const auto& root = *reinterpret_cast<const PoolRoot*>(image.data());
        const auto* slots = reinterpret_cast<const Slot*>(root.application_root.data());
        for (std::size_t i = 0; i < kSlots && context.depth() == 0; ++i) {
          const std::uint64_t found = slots[i].is_set != 0 ? slots[i].value : 0;
          if (found != promised[i] && found != in_flight[i]) {
            return wrong(fmt::format("slot {}: promised {}, found {}", i, promised[i], found));
          }
        }
        if (context.depth() == 0)
          if (Status s = check_size(image, promised_bytes, bytes_in_flight); !s.ok()) return s;
        return check_image(image, context);
      },
      std::move(options));
  (*pool)->medium().set_observer(&explorer);
  {
    Owner owner(**pool);
    for (int step = 0; step < steps && !explorer.is_done(); ++step) {
      if (step % kStepsToGrowth == kStepsToGrowth - 1 && promised_bytes < buffer.span().size()) {
        bytes_in_flight = promised_bytes + kPageBytes;
        CHECK((*pool)->grow(bytes_in_flight).ok());
        promised_bytes = bytes_in_flight;
        explorer.crash_now("grown");
      }
      const std::size_t index = random() % kSlots;
      if (slots_of(**pool)[index].is_set != 0) {
        in_flight[index] = 0;
        owner.remove(index);
      } else {
        const std::uint64_t words = 1 + random() % kWordsMax;
        const std::uint64_t stored = random() % 2 == 0 ? words : random() % words;
        in_flight[index] = 1 + random() % 1000000;
        const Status status = owner.put(index, words * 8, in_flight[index], stored);
        CHECK((status.ok() || status.code() == StatusCode::kOutOfSpace));
        if (!status.ok()) in_flight[index] = 0;
      }
      promised[index] = in_flight[index];
      explorer.crash_now("acknowledged");
    }
  }
  (*pool)->medium().set_observer(nullptr);
  return explorer.report();
}

TEST_CASE("no crash state of allocating and growing leaks, overlaps or hands out old bytes",
          "[pmem][crash]") {
  ExplorerOptions options;
  options.seed = GENERATE(1U, 2U);
  options.tears_words = options.seed == 2;
  options.combinations_max = 64;
  options.random_images = 16;
  options.nested_depth = 1;
  options.images_max = test::rounds_of(30000, 6000);
  const ExplorerReport report = explore_allocations(options, 120);
  INFO(report.to_string());
  CHECK(report.ok());
  CHECK(report.images_checked > 3000);
}

// What follows looks for wrong states, not for errors in memory: a sanitizer tries one of each.
TEST_CASE("every flush of allocating and growing is needed", "[pmem][crash]") {
  ExplorerOptions options;
  options.combinations_max = 64;
  options.tears_words = true;  // the two limits of an arena share a line
  options.ignored_flush = GENERATE("extent-touch/1", "extent-zero/1", "segment-grow/2",
                                   "pool-grow/2", "pool-grow/3", "owner/1", "owner/3", "owner/4");
  if (test::kEffort == 1 && options.ignored_flush != "owner/1") return;
  const ExplorerReport report = explore_allocations(options, 400);
  INFO(options.ignored_flush);
  CHECK_FALSE(report.ok());
}

TEST_CASE("every fence of allocating and growing is needed", "[pmem][crash]") {
  ExplorerOptions options;
  options.combinations_max = 64;
  options.tears_words = true;
  options.ignored_fence = GENERATE("extent-touch/1", "segment-grow/2", "pool-grow/2", "pool-grow/3",
                                   "owner/2", "owner/3", "owner/4");
  if (test::kEffort == 1 && options.ignored_fence != "owner/2") return;
  const ExplorerReport report = explore_allocations(options, 400);
  INFO(options.ignored_fence);
  CHECK_FALSE(report.ok());
}

/// The same with extents of whole pages, whose space goes back to the file system when they are
/// released: MemoryPool::punch stores zeros, as a file system makes a hole.
ExplorerReport explore_holes(ExplorerOptions options, bool punches_too_early = false) {
  const PoolBuffer buffer(131072);
  PoolOptions pool_options;
  pool_options.extent_unit_bytes = 256;
  pool_options.segment_bytes = 16384;
  auto pool = Pool::create_in_memory(buffer.span(), pool_options);
  std::mt19937_64 random(options.seed);
  std::uint64_t promised_holes = 0;
  CrashExplorer explorer(
      buffer.span(),
      [&](std::span<std::byte> image, ExplorerContext& context) {
        const auto& root = *reinterpret_cast<const PoolRoot*>(image.data());
        const Result<PoolHeader> header = choose_header(root.headers, image.size(), "image");
        if (!header.ok()) return header.status();
        if (context.depth() == 0 && header->hole_bytes < promised_holes)
          return wrong(fmt::format("{} bytes are holes, the header says {}", promised_holes,
                                   header->hole_bytes));
        return check_image(image, context);
      },
      std::move(options));
  (*pool)->medium().set_observer(&explorer);
  Owner owner(**pool);
  for (int step = 0; step < 40 && !explorer.is_done(); ++step) {
    const std::size_t index = random() % 8;
    promised_holes = 0;  // some may be filled
    if (slots_of(**pool)[index].is_set == 0) {
      const std::uint64_t words = 512 + random() % 512;
      const std::uint64_t value = 1 + random() % 1000000;
      if (step % 2 == 0)
        CHECK(owner.put(index, words * 8, value, random() % words).ok());
      else
        owner.put_in_front(index, words * 8, value, random() % words);
    } else if (punches_too_early) {
      owner.remove_too_early(index);
    } else {
      owner.remove(index);
      (*pool)->allocator().give_back(step % 3 == 0 ? Slack::kSome : Slack::kNone);
    }
    promised_holes = (*pool)->allocator().space().hole_bytes;
    explorer.crash_now("given back");
  }
  (*pool)->medium().set_observer(nullptr);
  CHECK((explorer.is_done() || promised_holes != 0));
  return explorer.report();
}

ExplorerOptions options_for_holes() {
  ExplorerOptions options;
  options.combinations_max = 64;
  options.random_images = 16;
  options.images_max = 100000;
  return options;
}

TEST_CASE("no crash state of giving space back loses data or the count of holes",
          "[pmem][crash][holes]") {
  ExplorerOptions options = options_for_holes();
  options.seed = GENERATE(1U, 2U);
  options.nested_depth = options.seed == 1 ? 1 : 0;
  options.nested_one_in = 20;
  options.images_max = test::rounds_of(15000, 4000);
  const ExplorerReport report = explore_holes(options);
  INFO(report.to_string());
  CHECK(report.ok());
  CHECK(report.images_checked > 1000);
}

TEST_CASE("space that goes back before the pointer to it is durably gone is found",
          "[pmem][crash][holes]") {
  CHECK_FALSE(explore_holes(options_for_holes(), true).ok());
}

TEST_CASE("every flush and fence of giving space back is needed", "[pmem][crash][holes]") {
  ExplorerOptions options = options_for_holes();
  SECTION("flushes") {
    options.ignored_flush = GENERATE("hole-count/1", "hole-count/2", "owner/4");
  }
  SECTION("fences") { options.ignored_fence = GENERATE("hole-count/1", "hole-count/2", "owner/4"); }
  CHECK_FALSE(explore_holes(options).ok());
}

TEST_CASE("a crash while a pool is created leaves a pool or none", "[pmem][crash]") {
  const PoolBuffer buffer(16384);
  std::uint64_t pools = 0;
  ExplorerOptions options;
  options.tears_words = true;
  options.random_images = 2000;
  CrashExplorer explorer(
      buffer.span(),
      [&](std::span<std::byte> image, ExplorerContext& context) {
        const auto pool = Pool::open_in_memory(image, {});
        if (pool.code() == StatusCode::kCorrupt) return Status();
        ++pools;
        return check_image(image, context);
      },
      options);
  PoolOptions pool_options;
  pool_options.extent_unit_bytes = 256;
  pool_options.segment_bytes = 4096;
  pool_options.observer = &explorer;
  auto pool = Pool::create_in_memory(buffer.span(), pool_options);
  REQUIRE(pool.ok());
  explorer.crash_now("created");
  INFO(explorer.report().to_string());
  CHECK(explorer.report().ok());
  CHECK(pools > 0);
  CHECK(explorer.report().images_checked > 1000);
}

TEST_CASE("a crash while a header is repaired leaves the other whole", "[pmem][crash]") {
  const PoolBuffer buffer(16384);
  PoolOptions pool_options;
  pool_options.extent_unit_bytes = 256;
  {
    REQUIRE(Pool::create_in_memory(buffer.span(), pool_options).ok());
  }
  auto& root = *reinterpret_cast<PoolRoot*>(buffer.span().data());
  std::memset(&root.headers[GENERATE(0U, 1U)], 0x33, sizeof(PoolHeader));
  ExplorerOptions options;
  options.tears_words = true;
  options.random_images = 1000;
  CrashExplorer explorer(buffer.span(), check_image, options);
  pool_options.observer = &explorer;
  REQUIRE(Pool::open_in_memory(buffer.span(), pool_options).ok());
  INFO(explorer.report().to_string());
  CHECK(explorer.report().ok());
  CHECK(explorer.report().images_checked > 500);
}

/// Allocates, fills and publishes until it is killed.
[[noreturn]] void work_until_killed(const PoolOptions& options, unsigned seed) {
  auto pool = Pool::open(options);
  if (!pool.ok()) _exit(1);
  for (std::size_t i = 0; i < kSlots; ++i) {
    if (!check_slot(**pool, i).ok()) _exit(2);
  }
  (*pool)->allocator().finish_claims();
  Owner owner(**pool);
  std::mt19937_64 random(seed);
  for (;;) {
    const std::size_t index = random() % kSlots;
    if (slots_of(**pool)[index].is_set != 0) {
      owner.remove(index);
      continue;
    }
    const std::uint64_t words = 1 + random() % 200000;
    const Status status = owner.put(index, words * 8, 1 + random(), random() % words);
    if (!status.ok()) _exit(3);
  }
}

TEST_CASE("a killed process leaks nothing and loses nothing", "[pmem][crash]") {
  const TemporaryPath path;
  PoolOptions options;
  options.path = path.string();
  options.max_bytes = std::uint64_t{1} << 30;
  options.segment_bytes = std::uint64_t{1} << 20;
  options.grow_ahead_bytes = GENERATE(std::uint64_t{0}, std::uint64_t{4} << 20);
  {
    REQUIRE(Pool::create(options).ok());
  }
  for (unsigned round = 0; round < 15; ++round) {
    const pid_t child = fork();
    if (child == 0) work_until_killed(options, round);
    usleep(20000 + round * 1000);
    kill(child, SIGKILL);
    int exit_status = 0;
    REQUIRE(waitpid(child, &exit_status, 0) == child);
    REQUIRE(WIFSIGNALED(exit_status));
    auto pool = Pool::open(options);
    REQUIRE(pool.ok());
    for (std::size_t i = 0; i < kSlots; ++i) {
      REQUIRE(check_slot(**pool, i).to_string() == "ok");
    }
    const SpaceReport space = (*pool)->allocator().space();
    REQUIRE(space.used_bytes + (*pool)->allocator().free_bytes() + space.overhead_bytes ==
            space.allocated_bytes);
    // 16 extents of at most 1.6 MB: unused space was found again, not taken anew.
    REQUIRE(space.allocated_bytes < (64U << 20));
  }
}

}  // namespace
}  // namespace flugs::pmem
