// The journal of a pool on a disk, without a pool: lines with version numbers, power cuts at random
// moments, and what replay makes of them.
#include "pmem/journal/journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <optional>
#include <thread>

#include "test/pmem/line_pool.h"

namespace flugs::pmem {
namespace {

std::string ring_of(const std::string& journal) {
  struct stat info{};
  REQUIRE(::stat(journal.c_str(), &info) == 0);
  return fmt::format("/dev/shm/flugs-{:016x}-{:x}-{:x}.ring", kId, info.st_dev, info.st_ino);
}

/// The crash ring has its head only.
void forget_ring_records(const std::string& journal) {
  const std::string path = ring_of(journal);
  Bytes bytes = read_file(path);
  REQUIRE(bytes.size() > kPageBytes);
  std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(kPageBytes), bytes.end(), std::byte{0});
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

std::uint64_t rounds(std::uint64_t usual) {
  const char* factor = std::getenv("FLUGS_CRASH_STATES");
  return usual * (factor == nullptr ? 1 : std::strtoull(factor, nullptr, 10));
}

/// LineSteps, waits and checkpoints; a checkpoint may lack power from some call on.
void work(LinePool& pool, LineSteps& steps, bench::Random& random) {
  for (std::uint32_t i = random.below(120); i != 0; --i) {
    const std::uint32_t choice = random.below(30);
    if (choice == 0) {
      REQUIRE(pool.checkpointer().run().ok());
    } else if (choice < 4) {
      REQUIRE(pool.journal().wait_all_durable().ok());
      steps.all_durable();
    } else {
      // The only thread must not have to wait for a checkpoint.
      if (pool.journal().used_bytes() > std::uint64_t{44} << 10)
        REQUIRE(pool.checkpointer().run().ok());
      steps.store_some(random);
    }
  }
}

}  // namespace

TEST_CASE("after any power cut the pool is as after some step behind the last durable one",
          "[pmem][journal]") {
  bench::Random random(7);
  for (std::uint64_t life = rounds(20); life != 0; --life) {
    LinePool pool(64 << 10);
    LineSteps steps(pool);
    for (int restart = 0; restart < 20; ++restart) {
      work(pool, steps, random);
      const Bytes journal = pool.journal_bytes();
      const Bytes file = torn(pool.file().durable, pool.file().cached, random);
      if (random.below(2) == 0) {
        // In a write of the journal.
        static_cast<void>(pool.journal().wait_all_durable());
        pool.restart(file, torn(journal, pool.journal_bytes(), random));
      } else {
        // In a checkpoint, of which the journal has the head or not, while others go on.
        pool.file().calls_left = random.below(12);
        pool.file().meanwhile = [&] {
          for (std::uint32_t i = random.below(8);
               i != 0 && pool.journal().used_bytes() < std::uint64_t{48} << 10; --i)
            steps.store_some(random);
          if (random.below(2) == 0 && pool.journal().wait_all_durable().ok()) steps.all_durable();
        };
        static_cast<void>(pool.checkpointer().run());
        pool.file().meanwhile = nullptr;
        const Bytes left = torn(pool.file().durable, pool.file().cached, random);
        pool.restart(left, pool.journal_bytes());
      }
      steps.judge();
    }
  }
}

TEST_CASE("with a crash ring a killed process loses nothing that was appended", "[pmem][journal]") {
  bench::Random random(17);
  for (std::uint64_t life = rounds(20); life != 0; --life) {
    LinePool pool(64 << 10, true);
    LineSteps steps(pool);
    for (int restart = 0; restart < 20; ++restart) {
      work(pool, steps, random);
      // Perhaps in a checkpoint.
      if (random.below(3) == 0) {
        pool.file().calls_left = random.below(12);
        static_cast<void>(pool.checkpointer().run());
      }
      steps.all_durable();
      const Bytes file = pool.file().cached;
      if (random.below(3) == 0) {
        Bytes view = file;
        REQUIRE(replay_into(view, pool).ok());
        REQUIRE(std::memcmp(view.data(), pool.memory().data(), view.size()) == 0);
      }
      pool.restart(file);
      steps.judge();
    }
    pool.remove_ring();
  }
}

TEST_CASE("a process killed before the first record of its crash ring leaves nothing in it",
          "[pmem][journal]") {
  LinePool pool(64 << 10, true);
  LineSteps steps(pool);
  bench::Random random(19);
  steps.store_some(random);
  steps.all_durable();
  pool.restart(pool.file().cached);  // the records that are found end within a page
  steps.judge();
  forget_ring_records(pool.path().journal());
  pool.restart(pool.file().cached);
  steps.judge();
  steps.store_some(random);
  REQUIRE(pool.journal().wait_all_durable().ok());
  steps.all_durable();
  pool.remove_ring();
  pool.restart(pool.file().cached);
  steps.judge();
  pool.remove_ring();
}

TEST_CASE("the crash ring of another process is mapped to be read only", "[pmem][journal]") {
  LinePool pool(64 << 10, true);
  pool.store(1, 2, 1);
  const Result<JournalFile> journal =
      JournalFile::open(pool.path().journal(), kUuid, kId, JournalFile::Use::kRead);
  REQUIRE(journal.ok());
  const Result<std::optional<RecordRing>> ring = RecordRing::left(*journal);
  REQUIRE((ring.ok() && ring->has_value()));
  std::ifstream maps("/proc/self/maps");
  std::vector<std::string> protections;
  for (std::string line; std::getline(maps, line);)
    if (line.find(ring_of(pool.path().journal())) != std::string::npos)
      protections.push_back(line.substr(line.find(' ') + 1, 4));
  std::sort(protections.begin(), protections.end());
  // The other process' own mapping, and the reader's.
  CHECK(protections == std::vector<std::string>{"r--s", "rw-s"});
  pool.remove_ring();
}

TEST_CASE("an opening makes durable what it finds in the pool's file", "[pmem][journal]") {
  const test::TemporaryPath path;
  test::PoolBuffer memory(kPoolBytes);
  FileWithPower file;
  const PoolJournal::Target target{.pool = memory.span(),
                                   .pool_bytes_max = kPoolBytes,
                                   .file = file,
                                   .replay_ns = ~std::uint64_t{0}};
  const auto create = [&] {
    return PoolJournal::create(path.string(), kUuid, kId, journal_shape(64 << 10), target).status();
  };
  const auto recover = [&] {
    return PoolJournal::recover(path.string(), kUuid, kId, target).status();
  };
  // As a killed process leaves it, whose pages have not reached the device.
  file.cached[100] = std::byte{1};
  file.calls_left = 0;
  CHECK(create().code() == StatusCode::kIoError);
  CHECK(::access(path.journal().c_str(), F_OK) != 0);
  file.calls_left = ~std::uint64_t{0};
  CHECK(create().ok());
  CHECK(file.durable == file.cached);
  file.cached[100] = std::byte{2};
  file.calls_left = 0;
  const Bytes journal = read_file(path.journal());
  CHECK(recover().code() == StatusCode::kIoError);
  CHECK(read_file(path.journal()) == journal);
  file.calls_left = ~std::uint64_t{0};
  CHECK(recover().ok());
  CHECK(file.durable == file.cached);
}

TEST_CASE("openings that are cut short again and again do not fill the journal",
          "[pmem][journal]") {
  LinePool pool(64 << 10);
  LineSteps steps(pool);
  bench::Random random(13);
  while (pool.journal().used_bytes() < std::uint64_t{44} << 10) steps.store_some(random);
  REQUIRE(pool.journal().wait_all_durable().ok());
  steps.all_durable();
  for (int opening = 0; opening < 40; ++opening) {
    const Bytes file = torn(pool.file().durable, pool.file().cached, random);
    const Bytes journal = pool.journal_bytes();
    REQUIRE(pool.journal().wait_all_durable().ok());
    pool.restart(file, torn(journal, pool.journal_bytes(), random));
    steps.judge();
  }
}

TEST_CASE("a hole is punched neither into a batch of pages, nor before its record is durable",
          "[pmem][journal]") {
  LinePool pool(64 << 10);
  const std::uint64_t page_lines = kPageBytes / kLineBytes;
  pool.store(page_lines, page_lines, 1);
  const JournalPlace frees = pool.journal().end();
  std::atomic<int> punched{0};
  std::thread puncher;
  int punched_in_batch = -1;
  pool.file().meanwhile = [&] {
    if (puncher.joinable()) return;
    puncher = std::thread([&] {
      static_cast<void>(pool.checkpointer().without_pages(kPageBytes, kPageBytes, [&] {
        punched = pool.journal().is_durable(frees) ? 1 : 2;
        return Status();
      }));
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    punched_in_batch = punched;
  };
  CHECK(pool.checkpointer().run().ok());
  puncher.join();
  pool.file().meanwhile = nullptr;
  CHECK(punched_in_batch == 0);
  CHECK(punched == 1);
}

TEST_CASE("a journal whose first head is torn begins anew, and no other damaged one does",
          "[pmem][journal]") {
  const test::TemporaryPath path;
  test::PoolBuffer memory(kPoolBytes);
  FileWithPower file;
  const PoolJournal::Target target{.pool = memory.span(),
                                   .pool_bytes_max = kPoolBytes,
                                   .file = file,
                                   .replay_ns = ~std::uint64_t{0}};
  const auto create = [&] {
    return PoolJournal::create(path.string(), kUuid, kId, journal_shape(64 << 10), target).status();
  };
  REQUIRE(create().ok());
  const Bytes made = read_file(path.journal());
  const auto with_head = [&](std::uint64_t at, std::size_t bytes) {
    Bytes image(made.size());
    std::copy_n(made.begin() + kPageBytes, bytes, image.begin() + static_cast<std::ptrdiff_t>(at));
    return image;
  };
  for (const std::uint64_t at : {std::uint64_t{0}, kPageBytes})
    for (std::size_t bytes = 0; bytes < sizeof(JournalHead); bytes += 8) {
      write_file(path.journal(), with_head(at, bytes));
      CHECK(create().ok());
    }
  Bytes two_heads = with_head(0, 64);
  std::copy_n(two_heads.begin(), 64, two_heads.begin() + kPageBytes);
  Bytes with_record = with_head(0, 64);
  with_record.back() = std::byte{1};
  Bytes foreign = with_head(0, 64);
  foreign[0] = std::byte{'F'};
  for (const Bytes& image : {two_heads, with_record, foreign}) {
    write_file(path.journal(), image);
    CHECK(create().code() == StatusCode::kInvalidArgument);
    CHECK(read_file(path.journal()) == image);
  }
}

TEST_CASE("a journal that is cut anywhere is replayed up to the cut", "[pmem][journal]") {
  LinePool pool(64 << 10);
  LineSteps steps(pool);
  bench::Random random(3);
  for (int i = 0; i < 60; ++i) {
    steps.store_some(random);
    if (i % 7 == 0) REQUIRE(pool.journal().wait_all_durable().ok());
  }
  REQUIRE(pool.journal().wait_all_durable().ok());
  const Bytes whole = pool.journal_bytes();
  const std::uint64_t end = kJournalDataOffset + pool.journal().durable();
  for (std::uint64_t cut = kJournalDataOffset; cut <= end; cut += kSector) {
    Bytes image = whole;
    const auto filler = static_cast<std::byte>(cut / kSector % 2 == 0 ? 0 : 0xA5);
    std::fill(image.begin() + static_cast<std::ptrdiff_t>(cut), image.end(), filler);
    LinePool left(64 << 10);
    left.restart(Bytes(kPoolBytes), image);
    LineSteps judged = steps.of(left);
    judged.judge();
  }
}

TEST_CASE("writers wait for checkpoints when the journal is full", "[pmem][journal]") {
  LinePool pool(64 << 10);
  REQUIRE(pool.checkpointer().start().ok());
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 16; ++t)
    threads.emplace_back([&pool, t] {
      for (std::uint64_t i = 1; i <= 300; ++i) {
        const std::uint64_t line = t * 256 + i % 200;
        for (std::uint64_t word = 0; word < 400; ++word) pool.words(line)[word] = i;
        const LineRun run{reinterpret_cast<std::byte*>(pool.words(line)), 50};
        static_cast<void>(pool.journal().wait_durable(pool.journal().append({&run, 1})));
      }
    });
  for (std::thread& thread : threads) thread.join();
  pool.checkpointer().stop();
  const JournalCounters counters = pool.journal().counters();
  CHECK(counters.records == 16 * 300);
  CHECK(counters.written_bytes > 100 * (64 << 10));  // many laps
  const Bytes memory(pool.memory().begin(), pool.memory().end());
  pool.restart(pool.file().durable, pool.journal_bytes());
  CHECK(std::memcmp(pool.memory().data(), memory.data(), kPoolBytes) == 0);
}

TEST_CASE("a journal that is missing, foreign or damaged is refused", "[pmem][journal]") {
  LinePool pool(64 << 10);
  LineSteps steps(pool);
  bench::Random random(5);
  for (int i = 0; i < 5; ++i) steps.store_some(random);
  REQUIRE(pool.checkpointer().run().ok());
  steps.store_some(random);
  REQUIRE(pool.journal().wait_all_durable().ok());
  const std::string path = pool.path().journal();
  const auto opened = [&](std::uint64_t uuid, std::uint64_t id) {
    return JournalFile::open(path, uuid, id, JournalFile::Use::kRead).status();
  };
  CHECK(opened(kUuid, kId).ok());
  CHECK(opened(kUuid + 1, kId).code() == StatusCode::kCorrupt);
  CHECK(opened(kUuid, kId + 1).code() == StatusCode::kCorrupt);
  Bytes bytes = pool.journal_bytes();
  for (const std::uint64_t at : {std::uint64_t{20}, kPageBytes + 20}) bytes[at] ^= std::byte{1};
  write_file(path, bytes);
  CHECK(opened(kUuid, kId).code() == StatusCode::kCorrupt);
  bytes.resize(100);
  write_file(path, bytes);
  CHECK(opened(kUuid, kId).code() == StatusCode::kCorrupt);
  ::unlink(path.c_str());
  const Status missing = opened(kUuid, kId);
  CHECK(missing.code() == StatusCode::kNotFound);
  CHECK(missing.message().find("put the journal back") != std::string_view::npos);
}

TEST_CASE("a closed journal of another version begins anew, and one that is needed does not",
          "[pmem][journal]") {
  const bool is_closed = GENERATE(false, true);
  const test::TemporaryPath path;
  test::PoolBuffer memory(kPoolBytes);
  FileWithPower file;
  const PoolJournal::Target target{.pool = memory.span(),
                                   .pool_bytes_max = kPoolBytes,
                                   .file = file,
                                   .replay_ns = ~std::uint64_t{0}};
  const JournalShape shape = journal_shape(64 << 10);
  {
    const auto made = PoolJournal::create(path.string(), kUuid, kId, shape, target);
    REQUIRE(made.ok());
    REQUIRE((*made)->set_closed(is_closed).ok());
  }
  Bytes bytes = read_file(path.journal());
  for (std::uint64_t at = 0; at < kJournalDataOffset; at += kPageBytes) {
    JournalHead head;
    std::memcpy(&head, bytes.data() + at, sizeof head);
    if (head.magic != kJournalMagic) continue;
    head.version = 1;
    head.checksum = checksum_of(head);
    std::memcpy(bytes.data() + at, &head, sizeof head);
  }
  write_file(path.journal(), bytes);
  const auto made = PoolJournal::create(path.string(), kUuid, kId + 1, shape, target);
  CHECK(made.ok() == is_closed);
  if (!made.ok()) CHECK(made.status().code() == StatusCode::kInvalidArgument);
}

namespace {

/// What a replay says of the pool's journal after `change` of the head that counts.
template <typename Change>
Status replay_with_head(LinePool& pool, Change&& change) {
  Bytes bytes = pool.journal_bytes();
  JournalHead head;
  std::memcpy(&head, bytes.data(), sizeof head);
  JournalHead other;
  std::memcpy(&other, bytes.data() + kPageBytes, sizeof other);
  if (other.sequence > head.sequence) head = other;
  head.sequence += 1;
  change(head);
  head.checksum = checksum_of(head);
  std::memcpy(bytes.data() + head.sequence % 2 * kPageBytes, &head, sizeof head);
  write_file(pool.path().journal(), bytes);
  Bytes memory(kPoolBytes);
  return replay_into(memory, pool);
}

}  // namespace

TEST_CASE("damage where the pool's file needs the journal is refused", "[pmem][journal]") {
  LinePool pool(64 << 10);
  LineSteps steps(pool);
  bench::Random random(9);
  for (int i = 0; i < 5; ++i) steps.store_some(random);
  REQUIRE(pool.checkpointer().run().ok());
  // As if records behind the tail had been in a page that the checkpoint wrote.
  const Status status =
      replay_with_head(pool, [](JournalHead& head) { head.needed = head.tail + 2 * kPageBytes; });
  CHECK(status.code() == StatusCode::kCorrupt);
  CHECK(status.message().find("damaged") != std::string_view::npos);
}

TEST_CASE("a head with a place, an epoch or a sequence that none reaches is refused",
          "[pmem][journal]") {
  LinePool pool(64 << 10);
  REQUIRE(pool.checkpointer().run().ok());
  const auto changed = [&](std::uint64_t JournalHead::* field, std::uint64_t least) {
    return replay_with_head(pool, [&](JournalHead& head) {
      if (field == &JournalHead::tail) head.needed = least;
      head.*field = least;
    });
  };
  for (const auto field : {&JournalHead::tail, &JournalHead::epoch, &JournalHead::sequence})
    for (const std::uint64_t count : {kJournalCountMax, ~std::uint64_t{0} - kRecordStep + 1}) {
      const Status status = changed(field, count);
      CHECK(status.code() == StatusCode::kCorrupt);
      CHECK(status.message().find("all are below") != std::string_view::npos);
    }
}

}  // namespace flugs::pmem
