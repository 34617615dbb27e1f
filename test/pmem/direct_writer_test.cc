#include "pmem/journal/direct_writer.h"

#include <chrono>
#include <thread>

#include "test/pmem/line_pool.h"

namespace flugs::pmem {

TEST_CASE("pages that were written directly keep their content behind older images",
          "[pmem][journal]") {
  LinePool pool(64 << 10);
  constexpr std::uint64_t kPage = 3;
  constexpr std::uint64_t kLine = kPage * kPageBytes / kLineBytes;
  pool.store(kLine, 2, 1);
  REQUIRE(pool.journal().wait_all_durable().ok());
  const std::span<std::byte> content = pool.memory().subspan(kPage * kPageBytes, 2 * kPageBytes);
  std::fill(content.begin(), content.end(), std::byte{7});
  const std::uint64_t seven = *pool.words(kLine);

  SECTION("after a power cut") {
    REQUIRE(pool.direct_writer().write(content));
    const JournalCounters counters = pool.journal().counters();
    CHECK(counters.record_bytes < kPageBytes);  // the content is not in the journal
    pool.restart(pool.file().durable, pool.journal_bytes());
    CHECK(std::all_of(content.begin(), content.end(), [](auto b) { return b == std::byte{7}; }));
    SECTION("and another one, behind a checkpoint") {
      REQUIRE(pool.checkpointer().run().ok());
      pool.restart(pool.file().durable, pool.journal_bytes());
      CHECK(*pool.words(kLine) == seven);
    }
  }
  SECTION("and images that come later are stored over it") {
    REQUIRE(pool.direct_writer().write(content));
    pool.store(kLine + 1, 1, 2);
    REQUIRE(pool.journal().wait_all_durable().ok());
    pool.restart(pool.file().durable, pool.journal_bytes());
    CHECK(*pool.words(kLine) == seven);
    CHECK(*pool.words(kLine + 1) == 2);
  }
  SECTION("in a view of somebody who only reads") {
    REQUIRE(pool.direct_writer().write(content));
    Bytes view = pool.file().durable;
    REQUIRE(replay_into(view, pool).ok());
    CHECK(std::memcmp(view.data() + kPage * kPageBytes, content.data(), content.size()) == 0);
  }
  SECTION("and after a write that failed they are flushed") {
    pool.file().calls_left = 1;  // the write, but not its sync
    REQUIRE_FALSE(pool.direct_writer().write(content));
    pool.file().calls_left = ~std::uint64_t{0};
    const LineRun run{content.data(), content.size() / kLineBytes};
    REQUIRE(pool.journal().wait_durable(pool.journal().append({&run, 1})).ok());
    pool.restart(pool.file().durable, pool.journal_bytes());
    CHECK(*pool.words(kLine) == seven);
  }
}

TEST_CASE("pages are not written directly while a batch has copies of them", "[pmem][journal]") {
  LinePool pool(64 << 10);
  const std::uint64_t page_lines = kPageBytes / kLineBytes;
  pool.store(page_lines, page_lines, 1);
  const std::span<std::byte> content = pool.memory().subspan(kPageBytes, kPageBytes);
  std::thread writer;
  bool is_written = false;
  int written_in_batch = -1;
  pool.file().meanwhile = [&] {
    if (written_in_batch != -1) return;  // the direct write itself
    written_in_batch = 0;
    writer = std::thread([&] { is_written = pool.direct_writer().write(content); });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    written_in_batch = pool.file().writes_through;
  };
  CHECK(pool.checkpointer().run().ok());
  writer.join();
  pool.file().meanwhile = nullptr;
  CHECK(written_in_batch == 0);
  CHECK(is_written);
  CHECK(pool.file().writes_through == 1);
}

TEST_CASE("pages outside of the pool are not revoked", "[pmem][journal]") {
  LinePool pool(64 << 10);
  const JournalPlace place = pool.journal().revoke(kPoolBytes, kPageBytes);
  REQUIRE(pool.journal().wait_durable(place).ok());
  Bytes memory(kPoolBytes);
  const Status status = replay_into(memory, pool);
  CHECK(status.code() == StatusCode::kCorrupt);
  CHECK(status.message().find("kind 4") != std::string_view::npos);
}

}  // namespace flugs::pmem
