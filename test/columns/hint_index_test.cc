#include "columns/index/hint_index.h"

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include "base/hash.h"
#include "columns/cells/unflushed.h"
#include "pmem/pool/found_words.h"
#include "pmem/pool/pool.h"
#include "test/support/complaint.h"
#include "test/support/random.h"

namespace flugs::columns {
namespace {

constexpr std::size_t kPoolBytes = std::size_t{64} << 20;

// An index whose layout is the application root of a pool in memory.
struct World {
  explicit World(std::size_t bytes = kPoolBytes) : buffer(bytes / sizeof(Page)) {
    pmem::PoolOptions options;
    options.max_bytes = bytes;
    options.segment_bytes = std::size_t{1} << 20;
    options.grow_ahead_bytes = 0;
    auto made = pmem::Pool::create_in_memory(span(), options);
    REQUIRE(made.ok());
    pool = std::move(*made);
    make_index();
  }
  struct alignas(4096) Page {
    std::byte bytes[4096];
  };
  std::span<std::byte> span() { return std::as_writable_bytes(std::span(buffer)); }
  HintIndexLayout& layout() {
    return *reinterpret_cast<HintIndexLayout*>(pool->application_root());
  }
  void make_index() {
    index = std::make_unique<HintIndex>(*pool, layout(), "test index");
    persister = std::make_unique<pmem::Persister>(pool->medium());
  }
  // Reopens as after a killed process: stores in memory are kept.
  Status reopen() {
    index.reset();
    persister.reset();
    pool.reset();
    pmem::PoolOptions options;
    options.grow_ahead_bytes = 0;
    auto opened = pmem::Pool::open_in_memory(span(), options);
    if (!opened.ok()) return std::move(opened).status();
    pool = std::move(*opened);
    make_index();
    {
      const pmem::FoundWords found(*pool);
      if (Status s = index->load(); !s.ok()) return s;
    }
    pool->allocator().finish_claims();
    index->recover(*persister);
    return {};
  }

  Status insert(std::uint64_t hash, std::uint32_t payload) {
    Unflushed unflushed;
    pmem::Persister own(pool->medium());
    return index->edit(
        hash, own, [&](HintIndex::Editor& editor) { return editor.insert(payload, &unflushed); });
  }
  bool erase(std::uint64_t hash, std::uint32_t payload) { return index->erase(hash, payload); }
  std::multiset<std::uint32_t> found(std::uint64_t hash) const {
    Candidates candidates;
    index->lookup(hash, candidates);
    const auto view = candidates.view();
    return {view.begin(), view.end()};
  }
  std::size_t size() const {
    std::size_t entries = 0;
    index->for_each([&](std::uint32_t, std::uint32_t) { ++entries; });
    return entries;
  }

  std::vector<Page> buffer;
  std::unique_ptr<pmem::Pool> pool;
  std::unique_ptr<pmem::Persister> persister;
  std::unique_ptr<HintIndex> index;
};

// Number of lines that look-ups read in a segment, summed over all homes.
std::uint64_t lines_read_in(const HintSegmentLayout& segment) {
  constexpr auto kLines = HintSegmentLayout::kLines;
  const auto has_unused = [&](std::uint32_t line) {
    return std::ranges::count(segment.slots[line % kLines], 0u) != 0;
  };
  std::uint64_t lines = 0;
  for (std::uint32_t home = 0; home < kLines; ++home) {
    std::uint32_t read = 1;
    while (read < kLines && !has_unused(home + read - 1)) ++read;
    lines += read;
  }
  return lines;
}

// Lines that a look-up of a random hash reads, computed after docs/format.md.
double lines_per_lookup(World& world) {
  const std::uint64_t directory = world.layout().directory;
  const std::byte* base = world.pool->base();
  const auto* words = reinterpret_cast<const std::uint64_t*>(base + (directory & ~63u));
  const std::size_t count = std::size_t{1} << (directory & 63);
  std::uint64_t lines = 0;
  for (std::size_t i = 0; i < count; ++i)
    lines += lines_read_in(
        *reinterpret_cast<const HintSegmentLayout*>(base + (words[i] & ((1ull << 48) - 1))));
  return static_cast<double>(lines) / static_cast<double>(count * HintSegmentLayout::kLines);
}

// Distinct fingerprints, so that the model can ignore candidates that do not fit.
std::uint64_t hash_number(std::uint32_t number) { return std::uint64_t{mix32(number)} << 32; }

}  // namespace

TEST_CASE("an empty hint index finds nothing and takes no space", "[columns]") {
  World world;
  CHECK(world.found(42).empty());
  CHECK(world.index->bytes_in_pool() == 0);
  CHECK(world.size() == 0);
  std::uint64_t* free = nullptr;
  CHECK_FALSE(HintIndex::Editor(*world.index, 42).any([](std::uint32_t) { return true; }, free));
  CHECK(free == nullptr);
  CHECK_FALSE(world.erase(42, 1));
  CHECK(world.reopen().ok());
  CHECK(world.found(42).empty());
}

TEST_CASE("a hint index is a multimap, whatever it grows to and however often it is opened",
          "[columns]") {
  World world;
  std::map<std::uint32_t, std::multiset<std::uint32_t>> model;
  test::Random random(7);
  std::size_t size = 0;
  constexpr std::uint32_t kOperations = test::rounds_of(300'000, 120'000);
  for (std::uint32_t i = 0; i < kOperations; ++i) {
    const auto number = static_cast<std::uint32_t>(random.below(60000));
    auto& payloads = model[number];
    if (!payloads.empty() && random.chance(35)) {
      REQUIRE(world.erase(hash_number(number), *payloads.begin()));
      payloads.erase(payloads.begin());
      --size;
    } else {
      REQUIRE(world.insert(hash_number(number), i).ok());
      payloads.insert(i);
      ++size;
    }
    if (i % (kOperations / 5) == kOperations / 5 - 1) {
      REQUIRE(world.reopen().ok());
      for (const auto& [n, expected] : model) REQUIRE(world.found(hash_number(n)) == expected);
      REQUIRE(world.size() == size);
    }
  }
  // 8 bytes an entry, segments at least half full but for those just split.
  CHECK(world.index->bytes_in_pool() < size * 8 * 5);
}

TEST_CASE("an existing entry is not added again", "[columns]") {
  World world;
  for (int i = 0; i < 3; ++i) CHECK(world.insert(hash_number(5), 77).ok());
  CHECK(world.found(hash_number(5)) == std::multiset<std::uint32_t>{77});
}

TEST_CASE("a successor takes the place of an obsolete entry, beside its predecessor", "[columns]") {
  World world;
  REQUIRE(world.insert(hash_number(5), 77).ok());
  const auto succeed = [&](std::uint32_t payload, std::uint32_t successor, std::uint32_t obsolete) {
    Unflushed unflushed;
    bool found = false;
    const HintIndex::Space room = HintIndex::Editor(*world.index, hash_number(5))
                                      .succeed(
                                          payload, successor,
                                          [&](std::uint32_t other) {
                                            CHECK(other != payload);
                                            return other == obsolete;
                                          },
                                          unflushed, found);
    CHECK(room == HintIndex::Space::kEnough);
    CHECK(unflushed.empty() != found);
    return found;
  };
  CHECK(succeed(77, 78, 1));
  CHECK(world.found(hash_number(5)) == std::multiset<std::uint32_t>{77, 78});
  CHECK(succeed(78, 79, 77));
  CHECK(world.found(hash_number(5)) == std::multiset<std::uint32_t>{78, 79});
  CHECK_FALSE(succeed(77, 80, 78));
  CHECK(world.found(hash_number(5)) == std::multiset<std::uint32_t>{78, 79});
}

TEST_CASE("keep_if removes candidates, however many there were", "[columns]") {
  for (const std::uint32_t count : {3u, 14u, 15u, 40u}) {
    Candidates candidates;
    for (std::uint32_t i = 0; i < count; ++i) candidates.push(i);
    for (const std::uint32_t divisor : {2u, 4u}) {
      candidates.keep_if([&](std::uint32_t payload) { return payload % divisor == 0; });
      CHECK(candidates.view().size() == (count + divisor - 1) / divisor);
      for (const std::uint32_t payload : candidates.view()) CHECK(payload % divisor == 0);
    }
    candidates.push(99);
    CHECK(candidates.view().back() == 99);
  }
}

TEST_CASE("thousands of entries of one hash are found, and others beside them", "[columns]") {
  World world;
  std::multiset<std::uint32_t> expected;
  for (std::uint32_t i = 0; i < 6000; ++i) {
    REQUIRE(world.insert(hash_number(1), i).ok());
    expected.insert(i);
    REQUIRE(world.insert(hash_number(i + 10), i).ok());
  }
  REQUIRE(world.reopen().ok());
  CHECK(world.found(hash_number(1)) == expected);
  for (std::uint32_t i = 0; i < 6000; ++i)
    REQUIRE(world.found(hash_number(i + 10)) == std::multiset<std::uint32_t>{i});
  for (std::uint32_t i = 0; i < 6000; ++i) REQUIRE(world.erase(hash_number(1), i));
  CHECK(world.found(hash_number(1)).empty());
  CHECK(world.index->bytes_in_pool() < std::size_t{1} << 20);
}

TEST_CASE("a hint index does not grow while entries come and go", "[columns]") {
  World world;
  for (std::uint32_t i = 0; i < 5000; ++i) REQUIRE(world.insert(hash_number(i), i).ok());
  const std::uint64_t bytes = world.index->bytes_in_pool();
  for (std::uint32_t i = 0; i < test::rounds_of(400'000, 60'000); ++i) {
    REQUIRE(world.erase(hash_number(i), i));
    REQUIRE(world.insert(hash_number(i + 5000), i + 5000).ok());
  }
  CHECK(world.size() == 5000);
  CHECK(world.index->bytes_in_pool() <= bytes * 3);
}

TEST_CASE("a look-up reads some two lines, however full or old the segments", "[columns]") {
  World world;
  // Segments of 156 to 300 entries.
  const std::uint32_t live = GENERATE(20'000u, 22'000u, 25'000u, 30'000u, 38'000u);
  constexpr std::uint32_t kTurns = test::rounds_of(10, 3);
  for (std::uint32_t i = 0; i < live; ++i) {
    REQUIRE(world.insert(hash_number(i), i).ok());
    if (i % 1000 != 999 || i < 5000) continue;
    INFO(i);
    CHECK(lines_per_lookup(world) < 2.3);
  }
  for (std::uint32_t i = 0; i < live * kTurns; ++i) {
    REQUIRE(world.erase(hash_number(i), i));
    REQUIRE(world.insert(hash_number(i + live), i + live).ok());
    if (i % (live / 10) != 0) continue;
    INFO(live << " entries, turn " << i);
    CHECK(lines_per_lookup(world) < 3);
  }
}

TEST_CASE("many entries of one hash do not keep others from being split for ever", "[columns]") {
  // A key that was taken and given up again and again; its old entries may still be there.
  const bool is_erased_first = GENERATE(true, false);
  const std::uint32_t same = GENERATE(480u, 1200u, 5000u);
  World world;
  std::uint32_t next = 0;
  for (; next < 20; ++next) REQUIRE(world.insert(hash_number(next), next).ok());
  const auto erase_same = [&] {
    for (std::uint32_t i = 0; i < same; ++i) REQUIRE(world.erase(hash_number(0), 1'000'000 + i));
  };
  for (std::uint32_t i = 0; i < same; ++i)
    REQUIRE(world.insert(hash_number(0), 1'000'000 + i).ok());
  if (is_erased_first) erase_same();
  for (; next < 50'000; ++next) REQUIRE(world.insert(hash_number(next), next).ok());
  CHECK(lines_per_lookup(world) < (is_erased_first ? 2.3 : 3.5));
  if (!is_erased_first) erase_same();
  for (; next < 60'000; ++next) REQUIRE(world.insert(hash_number(next), next).ok());
  REQUIRE(world.reopen().ok());
  for (std::uint32_t i = 0; i < next; ++i)
    REQUIRE(world.found(hash_number(i)) == std::multiset<std::uint32_t>{i});
}

TEST_CASE("segments without a name are used again", "[columns]") {
  World world;
  for (std::uint32_t i = 0; i < 20; ++i) REQUIRE(world.insert(hash_number(i), i).ok());
  for (std::uint32_t turn = 0; turn < 100; ++turn) {
    for (std::uint32_t i = 0; i < 1500; ++i)
      REQUIRE(world.insert(hash_number(turn), 1'000'000 + i).ok());
    for (std::uint32_t i = 0; i < 1500; ++i) REQUIRE(world.erase(hash_number(turn), 1'000'000 + i));
  }
  CHECK(world.size() == 20);
  CHECK(world.index->bytes_in_pool() <= std::size_t{128} << 10);
}

TEST_CASE("a pool without space for more hints says so, and loses none", "[columns]") {
  World world(std::size_t{8} << 20);
  std::uint32_t inserted = 1;
  REQUIRE(world.insert(hash_number(0), 0).ok());
  // With many entries of one hash a change needs several segments, and only some are available.
  const std::uint32_t same = GENERATE(0u, 3000u);
  for (std::uint32_t i = 0; i < same; ++i)
    REQUIRE(world.insert(hash_number(0), 1'000'000 + i).ok());
  for (std::uint32_t i = 0; i < same; ++i) REQUIRE(world.erase(hash_number(0), 1'000'000 + i));
  Status status;
  while ((status = world.insert(hash_number(inserted), inserted)).ok()) ++inserted;
  CHECK(status.code() == StatusCode::kOutOfSpace);
  CHECK(inserted > 100000);
  // Further entries go to segments that continue others, as long as there are any.
  for (std::uint32_t i = 0; i < same && world.insert(hash_number(1), 2'000'000 + i).ok(); ++i)
    REQUIRE(world.found(hash_number(1)).size() == i + 2);
  REQUIRE(world.reopen().ok());
  for (std::uint32_t i = 0; i < inserted; ++i) REQUIRE(world.found(hash_number(i)).contains(i));
}

TEST_CASE("entries are found while others are added and segments are split", "[columns]") {
  World world;
  constexpr std::uint32_t kKept = 2000;
  for (std::uint32_t i = 0; i < kKept; ++i) REQUIRE(world.insert(hash_number(i), i).ok());
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> missed{0};
  std::vector<std::thread> readers;
  for (int t = 0; t < 2; ++t)
    readers.emplace_back([&] {
      Candidates candidates;
      while (!stop.load())
        for (std::uint32_t i = 0; i < kKept; ++i) {
          world.index->lookup(hash_number(i), candidates);
          const auto view = candidates.view();
          missed += std::count(view.begin(), view.end(), i) == 1 ? 0 : 1;
        }
    });
  std::vector<std::thread> writers;
  std::atomic<std::uint64_t> failed{0};
  for (std::uint32_t t = 0; t < 2; ++t)
    writers.emplace_back([&, t] {
      for (std::uint32_t i = 0; i < 60000; ++i) {
        const std::uint32_t number = kKept + i * 2 + t;
        failed += world.insert(hash_number(number), number).ok() ? 0 : 1;
        if (i % 3 == 0) failed += world.erase(hash_number(number), number) ? 0 : 1;
      }
    });
  for (std::thread& writer : writers) writer.join();
  stop = true;
  for (std::thread& reader : readers) reader.join();
  CHECK(missed == 0);
  CHECK(failed == 0);
  CHECK(world.size() == kKept + 2 * 40000);
}

TEST_CASE("entries that are erased while their segments change do not come back", "[columns]") {
  constexpr std::uint32_t kErased = 30000;
  for (int round = 0; round < test::rounds_of(8, 2); ++round) {
    World world;
    for (std::uint32_t i = 0; i < kErased; ++i) REQUIRE(world.insert(hash_number(i), i).ok());
    std::atomic<std::uint64_t> failed{0};
    std::vector<std::thread> threads;
    for (std::uint32_t t = 0; t < 2; ++t)
      threads.emplace_back([&, t] {
        for (std::uint32_t i = 0; i < kErased; ++i) {
          const std::uint32_t number = kErased + i * 2 + t;
          failed += world.insert(hash_number(number), number).ok() ? 0 : 1;
        }
      });
    threads.emplace_back([&] {
      for (std::uint32_t i = 0; i < kErased; ++i) failed += world.erase(hash_number(i), i) ? 0 : 1;
    });
    for (std::thread& thread : threads) thread.join();
    CHECK(failed == 0);
    CHECK(world.size() == 2 * kErased);
  }
}

TEST_CASE("reading a line slot by slot and with vectors gives the same", "[columns]") {
  test::Random random(5);
  for (int i = 0; i < 20000; ++i) {
    alignas(64) std::array<std::uint64_t, HintLine::kSlots> slots{};
    const auto fingerprint =
        static_cast<std::uint32_t>(random.below(3) == 0 ? random.below(3) : random.next());
    for (std::uint64_t& slot : slots) {
      const std::uint64_t kind = random.below(5);
      if (kind == 0) slot = 0;
      if (kind == 1) slot = HintSegmentLayout::kEmptied;
      if (kind == 2) slot = (std::uint64_t{fingerprint} << 32) | random.below(3);
      if (kind > 2) slot = random.next();
    }
    const HintLine one = read_hint_slots(slots.data(), fingerprint);
    const HintLine other = read_hint_line(slots.data(), fingerprint);
    REQUIRE(one.values == slots);
    REQUIRE(other.values == slots);
    REQUIRE(one.matching == other.matching);
    REQUIRE(one.free == other.free);
    REQUIRE(one.unused == other.unused);
    for (std::uint32_t k = 0; k < HintLine::kSlots; ++k) {
      const auto payload = static_cast<std::uint32_t>(slots[k]);
      CHECK((one.matching >> k & 1) == (payload != 0 && slots[k] >> 32 == fingerprint ? 1 : 0));
      CHECK((one.free >> k & 1) == (payload == 0 ? 1 : 0));
      CHECK((one.unused >> k & 1) == (slots[k] == 0 ? 1 : 0));
    }
  }
}

TEST_CASE("damage of a hint index is reported with its place", "[columns]") {
  World world;
  for (std::uint32_t i = 0; i < 20000; ++i) REQUIRE(world.insert(hash_number(i), i).ok());
  const HintIndexLayout whole = world.layout();
  const auto refused = [&](auto&& damage) {
    damage(world.layout());
    const Status status = world.reopen();
    world.layout() = whole;
    CHECK(status.code() == StatusCode::kCorrupt);
    CHECK(status.message().find("test index") != std::string::npos);
  };
  refused([](HintIndexLayout& layout) { layout.directory = (layout.directory & ~63u) | 40; });
  refused([](HintIndexLayout& layout) { layout.directory += std::uint64_t{1} << 40; });
  refused([](HintIndexLayout& layout) { layout.directory -= std::uint64_t{64} << 10; });
  refused([](HintIndexLayout& layout) { layout.segments_used = 1 << 20; });
  refused([](HintIndexLayout& layout) { layout.spare = 64; });
  refused([](HintIndexLayout& layout) { layout.slabs.inline_chunks[1] = 1 << 30; });
  CHECK(world.reopen().ok());
  CHECK(world.found(hash_number(19999)).size() == 1);
}

TEST_CASE("a word of the directory that names no segment is reported where it is used",
          "[columns]") {
  World world;
  constexpr std::uint32_t kEntries = 20000;
  for (std::uint32_t i = 0; i < kEntries; ++i) REQUIRE(world.insert(hash_number(i), i).ok());
  const std::uint64_t depth = world.layout().directory & 63;
  REQUIRE(depth > 3);
  auto* words = reinterpret_cast<std::uint64_t*>(world.pool->base() +
                                                 (world.layout().directory & ~std::uint64_t{63}));
  const auto word_of = [&](std::uint32_t i) { return hash_number(i) >> (64 - depth); };
  const std::uint64_t damaged = word_of(0);
  const std::uint64_t whole =
      std::exchange(words[damaged], GENERATE(std::uint64_t{0}, std::uint64_t{1} << 40));
  REQUIRE(world.reopen().ok());
  CHECK(world.index->damage().ok());  // not used yet
  for (std::uint32_t i = kEntries; i-- > 0;)
    CHECK(world.found(hash_number(i)).size() == (word_of(i) == damaged ? 0 : 1));
  world.index->prefetch(hash_number(0));
  CHECK_FALSE(world.erase(hash_number(0), 0));
  const Status status = world.index->damage();
  CHECK(status.code() == StatusCode::kCorrupt);
  CHECK(status.message().find("word " + std::to_string(damaged) + " of the directory") !=
        std::string::npos);
  CHECK(world.insert(hash_number(0), kEntries).code() == StatusCode::kCorrupt);
  // No segment is split, because the damaged word could have led to it.
  std::uint32_t added = 0;
  while (added < kEntries * 4 && world.insert(hash_number(kEntries + added), 0).ok()) ++added;
  CHECK(added < kEntries * 4);
  words[damaged] = whole;
  REQUIRE(world.reopen().ok());
  CHECK(world.index->check_directory().ok());
  CHECK(world.size() == kEntries + added);
}

TEST_CASE("a directory is read while others change and double it", "[columns]") {
  World world;
  constexpr std::uint32_t kEntries = 30000;
  for (std::uint32_t i = 0; i < kEntries; ++i) REQUIRE(world.insert(hash_number(i), i).ok());
  for (std::uint32_t round = 0; round < 4; ++round) {
    REQUIRE(world.reopen().ok());
    const std::uint64_t depth = world.layout().directory & 63;
    const std::uint32_t first = kEntries << round;
    std::atomic<std::size_t> missed = 0;
    std::thread checker([&] { missed += world.index->check_directory().ok() ? 0 : 1; });
    std::thread reader([&] {
      for (std::uint32_t i = 0; i < first; ++i) missed += world.found(hash_number(i)).count(i) ^ 1;
    });
    for (std::uint32_t i = first; i < first * 2; ++i)
      if (!world.insert(hash_number(i), i).ok()) ++missed;
    checker.join();
    reader.join();
    CHECK(missed == 0);
    CHECK(world.index->damage().ok());
    CHECK((world.layout().directory & 63) > depth);
  }
}

TEST_CASE("a directory of which few words were read grows correctly", "[columns]") {
  World world;
  constexpr std::uint32_t kEntries = 20000;
  for (std::uint32_t i = 0; i < kEntries; ++i) REQUIRE(world.insert(hash_number(i), i).ok());
  REQUIRE(world.reopen().ok());
  const std::uint64_t depth = world.layout().directory & 63;
  // Inserts into few segments, until the directory needs another bit.
  const auto is_low = [](std::uint32_t i) { return hash_number(i) >> 58 == 5; };
  std::uint32_t next = kEntries;
  while ((world.layout().directory & 63) == depth) {
    while (!is_low(next)) ++next;
    REQUIRE(world.insert(hash_number(next), next).ok());
    ++next;
  }
  for (std::uint32_t i = 0; i < next; ++i)
    if (i < kEntries || is_low(i)) CHECK(world.found(hash_number(i)).count(i) == 1);
  const std::size_t entries = world.size();
  REQUIRE(world.reopen().ok());
  CHECK(world.size() == entries);
}

}  // namespace flugs::columns
