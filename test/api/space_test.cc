// Figures of the space that tables take, what a merge would give back of it, and how a full pool
// says so.
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <limits>
#include <string>
#include <string_view>
#include <thread>

#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

constexpr std::uint64_t kSpaceMB = std::uint64_t{1} << 20;
constexpr ColumnId kNoteText{1};

class Notes {
 public:
  explicit Notes(std::uint64_t max_bytes = 64 * kSpaceMB)
      : database([&](OpenOptions& options) {
          options.max_bytes = max_bytes;
          options.segment_bytes = kSpaceMB;
        }) {
    TableSchema schema("notes");
    schema.column("id", Type::kInt64).direct().column("text", Type::kString).direct();
    schema.primary_key({"id"});
    table = must(database->create_table(schema));
  }

  void insert(std::int64_t first, std::int64_t end, std::size_t text_bytes) {
    for (std::int64_t id = first; id < end;) {
      Transaction t = must(database->begin());
      for (int i = 0; i < 100 && id < end; ++i, ++id) must(try_insert(t, id, text_bytes));
      must(t.commit());
    }
  }
  Status try_insert(Transaction& t, std::int64_t id, std::size_t text_bytes) {
    const std::string text = std::to_string(id) + std::string(text_bytes, 't');
    return t.insert(table, {Value::int64(id), Value::string(text)}).status();
  }
  /// Inserts rows until the pool is full. Returns the answer then.
  Status fill(std::size_t text_bytes) {
    for (std::int64_t id = rows;; ++id) {
      Transaction t = must(database->begin());
      Status done = try_insert(t, id, text_bytes);
      if (done.ok()) done = t.commit();
      if (!done.ok()) return done;
      rows = id + 1;
    }
  }
  void remove(std::int64_t first, std::int64_t end) {
    for (std::int64_t id = first; id < end; ++id) {
      Transaction t = must(database->begin());
      must(t.remove(KeyId{table, 0}, {Value::int64(id)}));
      must(t.commit());
    }
  }
  MergeReport merge() {
    MergeOptions options;
    options.scope = MergeScope::kEverything;
    options.dead_percent = 1;
    return must(database->merge(table, options));
  }
  MergeEstimate estimate() { return must(database->estimate_merge(table)); }
  TableStatistics space() { return must(database->table_statistics(table)); }
  std::uint64_t used() { return database->statistics().pool_used_bytes; }

  TemporaryDatabase database;
  TableId table;
  std::int64_t rows = 0;
};

bool says(const Status& status, std::string_view words) {
  return status.message().find(words) != std::string_view::npos;
}

void check_adds_up(Notes& notes) {
  const TableStatistics space = notes.space();
  CHECK(space.pool_bytes == space.delta_bytes + space.main_bytes + space.dictionary_bytes +
                                space.hint_index_bytes + space.index_run_bytes +
                                space.catalog_bytes + space.replaced_bytes);
  const Statistics pool = notes.database->statistics();
  CHECK(pool.pool_used_bytes + pool.pool_free_bytes + pool.pool_overhead_bytes ==
        pool.pool_allocated_bytes);
  // The rest: transaction slots, the catalogue, and lists of chunks.
  REQUIRE(pool.pool_used_bytes > space.pool_bytes);
  CHECK(pool.pool_used_bytes - space.pool_bytes < 64 * 1024);
  CHECK(pool.pool_left_bytes + pool.pool_reserve_bytes + pool.pool_used_bytes +
            pool.pool_overhead_bytes ==
        pool.pool_reserved_bytes);
}

bool is_near(std::uint64_t found, std::uint64_t expected, std::uint64_t percent) {
  const std::uint64_t apart = found > expected ? found - expected : expected - found;
  return apart * 100 <= expected * percent;
}

TEST_CASE("what tables take adds up to what the pool has in use", "[api]") {
  Notes notes;
  check_adds_up(notes);
  notes.insert(0, 3000, 100);
  check_adds_up(notes);
  CHECK(notes.space().delta_bytes > 3000 * std::uint64_t{notes.space().row_bytes});
  CHECK(notes.space().dictionary_bytes > 3000 * 100);
  CHECK(notes.space().main_bytes == 0);
  static_cast<void>(notes.merge());
  check_adds_up(notes);
  CHECK(notes.space().main_bytes > 0);
  CHECK(notes.space().index_run_bytes > 0);
  must(notes.database->add_column(notes.table, ColumnSchema("more", Type::kInt64)).status());
  check_adds_up(notes);
  notes.database.reopen();
  check_adds_up(notes);
  const std::uint64_t bytes = notes.space().pool_bytes;
  const std::uint64_t before = notes.used();
  must(notes.database->drop_table(notes.table));
  CHECK(before - notes.used() >= bytes);
  CHECK(before - notes.used() < bytes + 16 * 1024);
}

TEST_CASE("rows that an old transaction sees are held, and dead after its end", "[api]") {
  Notes notes;
  notes.insert(0, 1000, 1);
  const std::uint64_t row_bytes = notes.space().row_bytes;
  const MergeEstimate whole = notes.estimate();
  CHECK(whole.rows_dead == 0);
  CHECK(whole.rows_held == 0);
  CHECK(whole.bytes_kept() == 0);
  CHECK(whole.bytes() == whole.unused_bytes);
  Transaction old = must(notes.database->begin(AccessMode::kReadOnly));
  notes.remove(100, 400);
  for (std::int64_t id = 500; id < 600; ++id)
    must(notes.database->run([&](Transaction& t) {
      return t.update(KeyId{notes.table, 0}, {Value::int64(id)}, {{kNoteText, "new"}}).status();
    }));
  const MergeEstimate held = notes.estimate();
  CHECK(held.rows_dead == 0);
  CHECK(held.rows_held == 400);
  CHECK(held.held_bytes == 400 * row_bytes);
  CHECK(held.bytes_kept() == held.held_bytes);
  old.abort();
  const MergeEstimate dead = notes.estimate();
  CHECK(dead.rows_held == 0);
  CHECK(dead.rows_dead == 400);
  CHECK(dead.dead_bytes == 400 * row_bytes);
  // Transactions make places for new rows of them.
  notes.remove(0, 100);
  const MergeEstimate later = notes.estimate();
  CHECK(later.bytes() == dead.bytes() + 100 * row_bytes);
  CHECK(later.bytes() == later.dead_bytes + later.unused_bytes);
  static_cast<void>(notes.merge());
  CHECK(notes.estimate().rows_dead == 0);
  CHECK(notes.estimate().dead_bytes == 0);
}

TEST_CASE("what a merge has replaced is counted until its readers have ended", "[api]") {
  Notes notes;
  notes.insert(0, 3000, 100);
  CHECK(notes.space().replaced_bytes == 0);
  const std::uint64_t delta = notes.space().delta_bytes;
  Result<Transaction> reader = notes.database->begin(AccessMode::kReadOnly);
  reader->abort();
  MergeOptions options;
  options.scope = MergeScope::kEverything;
  options.threads = 1;
  options.patience = std::chrono::milliseconds(10);
  options.progress = [&](const Progress&) {  // a chunk has been replaced
    if (!reader->is_open()) reader = notes.database->begin(AccessMode::kReadOnly);
  };
  CHECK(must(notes.database->merge(notes.table, options)).releases_later);
  REQUIRE(reader.ok());
  CHECK(notes.space().replaced_bytes >= delta / 2);
  CHECK(notes.estimate().replaced_bytes == notes.space().replaced_bytes);
  CHECK(notes.estimate().bytes_kept() == notes.space().replaced_bytes);
  check_adds_up(notes);
  reader->abort();
  static_cast<void>(notes.merge());
  CHECK(notes.space().replaced_bytes == 0);
}

TEST_CASE("a merge gives back of main about what was estimated", "[api]") {
  Notes notes;
  notes.insert(0, 20'000, 5);
  static_cast<void>(notes.merge());
  const std::uint64_t main = notes.space().main_bytes;
  CHECK(notes.estimate().dead_bytes == 0);
  notes.remove(0, 10'000);
  const MergeEstimate estimate = notes.estimate();
  CHECK(estimate.rows_dead == 10'000);
  CHECK(estimate.dead_bytes >= main / 2);
  const std::uint64_t before = notes.space().main_bytes;
  static_cast<void>(notes.merge());
  CHECK(is_near(before - notes.space().main_bytes, estimate.dead_bytes, 15));
}

TEST_CASE("a merge gives back of texts about what was estimated", "[api]") {
  Notes notes;
  notes.insert(0, 4000, 1000);
  CHECK(notes.estimate().unneeded_bytes == 0);
  notes.remove(0, 3000);
  const MergeEstimate estimate = notes.estimate();
  CHECK(is_near(estimate.unneeded_bytes, 3000 * 1000, 10));
  const std::uint64_t before = notes.space().dictionary_bytes;
  CHECK(notes.merge().columns_rewritten == 1);
  CHECK(is_near(before - notes.space().dictionary_bytes, estimate.unneeded_bytes, 25));
  CHECK(notes.estimate().bytes() < 64 * 1024);
}

TEST_CASE("a full pool says what a merge would give back", "[api]") {
  Notes notes(16 * kSpaceMB);
  REQUIRE(notes.fill(1000).code() == StatusCode::kOutOfSpace);
  const Status full = notes.fill(1000);
  INFO(full.to_string());
  CHECK(says(full, "Database::grow or 'flugs pool grow'"));
  CHECK(says(full, "a merge would pack "));
  CHECK_FALSE(says(full, "the transaction in slot"));
  // A caller that tries again gets the same estimate for a second.
  const std::string_view advice = full.message().substr(full.message().find("would give back"));
  notes.remove(0, 10);
  Transaction t = must(notes.database->begin());
  CHECK(says(notes.try_insert(t, -1, 100'000), advice));
}

TEST_CASE("a full pool names the old transaction that holds dead rows", "[api]") {
  Notes notes(16 * kSpaceMB);
  notes.insert(0, 10'000, 1);
  notes.rows = 10'000;
  const Transaction old = must(notes.database->begin(AccessMode::kReadOnly));
  const std::uint32_t slot = notes.database->transactions().front().slot;
  notes.remove(0, 5000);
  const Status full = notes.fill(1000);
  REQUIRE(full.code() == StatusCode::kOutOfSpace);
  INFO(full.to_string());
  CHECK(says(full, "the transaction in slot " + std::to_string(slot) + " (" +
                       std::to_string(old.id().value()) + ") began at snapshot "));
  CHECK(says(full, "bytes of deleted or replaced rows, most of them of table notes"));
  const std::uint64_t held = 5000 * std::uint64_t{notes.space().row_bytes};
  CHECK(says(full, "keeps about " + std::to_string(held) + " bytes"));
  CHECK(notes.estimate().held_bytes == held);
}

TEST_CASE("a message about another limit than bytes has no advice", "[api]") {
  Notes notes;
  TableSchema schema("numbers");
  schema.column("id", Type::kInt64).auto_increment().primary_key({"id"});
  const TableId numbers = must(notes.database->create_table(schema));
  must(notes.database->skip_numbers(numbers, std::numeric_limits<std::int64_t>::max()));
  Transaction t = must(notes.database->begin());
  const Status none = t.insert(numbers, {Value::null()}).status();
  INFO(none.to_string());
  CHECK(none.code() == StatusCode::kOutOfSpace);
  CHECK_FALSE(says(none, "merge"));
}

TEST_CASE("estimates go on while the table is written, merged and dropped", "[api]") {
  Notes notes;
  notes.insert(0, 3000, 100);
  std::atomic<bool> stops{false};
  std::atomic<std::uint64_t> estimates{0};
  {
    const std::jthread looking([&] {
      while (!stops.load() && notes.database->estimate_merge(notes.table).ok()) ++estimates;
    });
    for (int round = 0; round < 20; ++round) {
      notes.remove(round * 100, round * 100 + 100);
      static_cast<void>(notes.merge());
      notes.insert(3000 + round * 100, 3100 + round * 100, 100);
    }
    must(notes.database->drop_table(notes.table));
    while (estimates.load() == 0) std::this_thread::yield();
    stops.store(true);
  }
  CHECK(notes.database->estimate_merge(notes.table).code() == StatusCode::kNotFound);
}

}  // namespace
}  // namespace flugs::test
