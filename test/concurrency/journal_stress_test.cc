// Threads commit to a pool on a disk while its checkpoints run and a table is merged.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "pmem/journal/journal.h"
#include "pmem/journal/pool_journal.h"
#include "test/support/complaint.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

constexpr int kJournalWriters = 4;

/// Every third commit waits; the others are durable sooner or later.
CommitOptions commit_of(std::int64_t i) {
  if (i % 3 == 0) return {};
  return {.durability = Durability::kSoon, .soon = std::chrono::milliseconds(i % 5)};
}

/// Inserts rows that are its own. `called` counts those whose callback said that they are durable.
std::string write_rows(Database& database, TableId table, int writer, std::int64_t rows,
                       std::atomic<std::int64_t>& called) {
  for (std::int64_t i = 0; i < rows; ++i) {
    Result<Transaction> t = database.begin();
    if (!t.ok()) return t.status().to_string();
    const std::string text = std::to_string(i) + std::string(40, 'w');
    const auto inserted =
        t->insert(table, {Value::int64(i * kJournalWriters + writer), Value::string(text)});
    if (!inserted.ok()) return inserted.status().to_string();
    if (Status s = t->commit(commit_of(i)); !s.ok()) return s.to_string();
    const DurableToken token = database.durable_token();
    database.when_durable(token, [&](const Status& status) { called += status.ok() ? 1 : 0; });
    if (i % 7 != 0) continue;
    if (Status s = database.wait_durable(token); !s.ok()) return s.to_string();
    if (!database.is_durable(token)) return "waited for, and not durable";
  }
  return {};
}

OpenOptions options_on_disk(const std::string& path) {
  OpenOptions options = small_options(path);
  options.segment_bytes = std::uint64_t{1} << 20;
  options.tuning.grow_ahead_bytes = std::uint64_t{1} << 20;
  options.tuning.journal_bytes = 256 << 10;                        // many laps
  options.tuning.restart_budget = std::chrono::microseconds(500);  // many checkpoints
  return options;
}

class OneBufferFile final : public pmem::PageFile {
 public:
  explicit OneBufferFile(std::uint64_t bytes) : bytes_(bytes) {}
  Status write(std::uint64_t offset, std::span<const std::byte> pages) override {
    std::copy(pages.begin(), pages.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(offset));
    return {};
  }
  Status send(std::uint64_t, std::uint64_t) override { return {}; }
  Status sync_data() override { return {}; }
  Status write_through(std::uint64_t offset, std::span<const std::byte> pages) override {
    return write(offset, pages);
  }
  Status show_again(std::uint64_t offset, std::span<std::byte> pages) const override {
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), pages.size(), pages.begin());
    return {};
  }
  std::vector<std::byte>& bytes() { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace

TEST_CASE("threads commit on a disk while checkpoints and merges run", "[concurrency]") {
  const TemporaryPath path("/var/tmp");
  const std::int64_t rows = 150 * static_cast<std::int64_t>(kEffort);
  std::atomic<std::int64_t> called{0};
  {
    Database database = must(Database::open(options_on_disk(path.string())));
    TableSchema schema("rows");
    schema.column("id", Type::kInt64).column("text", Type::kString);
    schema.primary_key({"id"});
    const TableId table = must(database.create_table(schema));
    std::vector<std::string> complaints(kJournalWriters);
    std::atomic<int> writing{kJournalWriters};
    std::vector<std::thread> writers;
    for (int writer = 0; writer < kJournalWriters; ++writer)
      writers.emplace_back([&, writer] {
        complaints[static_cast<std::size_t>(writer)] =
            write_rows(database, table, writer, rows, called);
        writing.fetch_sub(1);
      });
    while (writing.load() != 0) must(database.merge(table).status());
    for (std::thread& writer : writers) writer.join();
    for (const std::string& complaint : complaints) CHECK(complaint.empty());
  }
  CHECK(called == rows * kJournalWriters);
  Database database = must(Database::open(options_on_disk(path.string())));
  must(database.check());
  Transaction t = must(database.begin(AccessMode::kReadOnly));
  const TableId table = must(database.find_table("rows"));
  for (std::int64_t id = 0; id < rows * kJournalWriters; ++id)
    must(t.get({table, 0}, {Value::int64(id)}).status());
}

TEST_CASE("images of shared lines are in the order of their records", "[concurrency]") {
  constexpr std::uint64_t kBytes = 64 << 10;
  constexpr std::uint64_t kShared = 8;
  const TemporaryPath path;
  const PoolBuffer memory(kBytes);
  OneBufferFile file(kBytes);
  const pmem::PoolJournal::Target target{.pool = memory.span(),
                                         .pool_bytes_max = kBytes,
                                         .file = file,
                                         .replay_ns = ~std::uint64_t{0}};
  {
    const auto pool =
        must(pmem::PoolJournal::create(path.string(), 1, 2, pmem::journal_shape(64 << 10), target));
    must(pool->checkpointer().start());
    std::string complaint;
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < kJournalWriters; ++t)
      threads.emplace_back([&, t] {
        for (std::uint64_t i = 1; i <= 1000 * kEffort; ++i) {
          std::byte* const line = memory.span().data() + i * 7 % kShared * pmem::kLineBytes;
          std::atomic_ref(reinterpret_cast<std::uint64_t*>(line)[t])
              .store(i, std::memory_order_relaxed);
          const pmem::LineRun run{line, 1};
          const pmem::JournalPlace place = pool->journal().append({&run, 1});
          if (i % 50 == 0) static_cast<void>(pool->journal().wait_durable(place));
        }
      });
    // Pages that nobody else uses: now through the journal, now past it.
    const std::span<std::byte> own = memory.span().last(2 * pmem::kPageBytes);
    const pmem::LineRun all{own.data(), own.size() / pmem::kLineBytes};
    for (std::uint64_t i = 1; i <= 20 * kEffort; ++i) {
      std::fill(own.begin(), own.end(), static_cast<std::byte>(i));
      const auto place = pool->journal().append({&all, 1});
      if (i % 2 == 0) continue;
      std::fill(own.begin(), own.end(), static_cast<std::byte>(i + 1));
      if (i % 3 == 0) static_cast<void>(pool->journal().wait_durable(place));
      if (!pool->direct_writer().write(own)) complaint = "a direct write failed";
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(complaint.empty());
    pool->checkpointer().stop();
    must(pool->journal().wait_all_durable());
  }
  const std::vector<std::byte> before = file.bytes();
  const auto ignore = [](std::uint64_t, std::uint64_t) {};
  const auto show_again = [&](std::uint64_t offset, std::uint64_t bytes) {
    std::copy_n(before.data() + offset, bytes, file.bytes().data() + offset);
    return Status();
  };
  must(pmem::replay_into_view(path.string(), 1, 2, {file.bytes(), ignore, show_again}));
  CHECK(std::equal(file.bytes().begin(), file.bytes().end(), memory.span().begin()));
}

}  // namespace flugs::test
