// Transactions right after opening, while a thread makes the indexes of dictionaries and keys.
#include <fmt/format.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "test/support/complaint.h"
#include "test/support/random.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

constexpr std::int64_t kWordsAtFirst = 40'000;  // more than opening indexes itself
constexpr int kLateWriters = 2;
constexpr int kLateLives = 4;
constexpr int kLateSteps = 60;

/// `log` has no key, `list` has two; they have most words in common.
struct Library {
  TemporaryDatabase database;
  TableId log;
  TableId list;
  std::int64_t logged = kWordsAtFirst;

  Library() {
    TableSchema log_schema("log");
    log_schema.column("word", Type::kString).column("number", Type::kInt32);
    TableSchema list_schema("list");
    list_schema.column("word", Type::kString).column("number", Type::kInt32);
    list_schema.primary_key({"word"}).key("by_number", {"number"});
    log = must(database->create_table(log_schema));
    list = must(database->create_table(list_schema));
    Transaction t = must(database->begin());
    for (std::int64_t i = 0; i < kWordsAtFirst; ++i) {
      const std::string word = word_of(i);
      const std::vector<Value> row = {Value::string(word),
                                      Value::int32(static_cast<std::int32_t>(i))};
      must(t.insert(log, row));
      must(t.insert(list, row));
    }
    must(t.commit());
  }
  static std::string word_of(std::int64_t i) {
    return fmt::format("{}{}", i % 3 == 0 ? "a word that does not fit a cell " : "w", i);
  }
};

/// Half of the words exist already; other threads write a quarter at the same time.
void write_late(Library& library, std::uint64_t seed, std::int64_t fresh, Complaint& complaint) {
  Random random(seed);
  for (int step = 0; step < kLateSteps; ++step) {
    const std::int64_t id =
        random.chance(50)   ? static_cast<std::int64_t>(random.below(kWordsAtFirst))
        : random.chance(50) ? fresh + step
                            : fresh + kLateSteps * (1 + static_cast<int>(seed % 16)) + step;
    const std::string word = Library::word_of(id);
    const std::vector<Value> row = {Value::string(word),
                                    Value::int32(static_cast<std::int32_t>(id))};
    Result<Transaction> t = library.database->begin();
    Status s = t.ok() ? t->insert(library.log, row).status() : t.status();
    // Late in the life, so that the dictionaries of `log` are used first.
    if (s.ok() && step >= kLateSteps / 2) {
      s = t->insert(library.list, row).status();
      if (s.code() == StatusCode::kAlreadyExists || s.code() == StatusCode::kConflict) s = Status();
    }
    if (s.ok()) s = t->commit();
    if (!complaint.expect(s.ok(), s.to_string())) return;
  }
}

void read_late(Library& library, std::uint64_t seed, const std::atomic<bool>& stops,
               Complaint& complaint) {
  Random random(seed);
  const ColumnId columns[] = {ColumnId(1)};
  while (!stops.load() && !complaint.failed()) {
    const auto id = static_cast<std::int64_t>(random.below(kWordsAtFirst));
    const std::string word = Library::word_of(id);
    Result<Transaction> t = library.database->begin(AccessMode::kReadOnly);
    std::size_t found = 0;
    Status s =
        t.ok() ? t->scan(library.log, columns, Predicate::equal(ColumnId(0), Value::string(word)),
                         [&](const ScanBatch& batch) {
                           for (const std::int64_t number : batch.column_unchecked<std::int64_t>(0))
                             found += number == id ? 1 : 0;
                           return true;
                         })
               : t.status();
    complaint.expect(s.ok() && found != 0, fmt::format("word {} is gone: {}", id, s.to_string()));
    if (!random.chance(25)) continue;
    s = t->get({library.list, 0}, {Value::string(word)}).status();
    complaint.expect(s.ok(), fmt::format("key {} is gone: {}", id, s.to_string()));
  }
}

}  // namespace

TEST_CASE("transactions go on while indexes are made", "[late]") {
  Library library;
  std::int64_t fresh = kWordsAtFirst;
  Complaint complaint;
  for (int life = 0; life < kLateLives && !complaint.failed(); ++life) {
    library.database.reopen();
    std::atomic<bool> stops{false};
    std::vector<std::thread> threads;
    for (int i = 0; i < kLateWriters; ++i)
      threads.emplace_back([&, i] {
        write_late(library, static_cast<std::uint64_t>(life * 8 + i + 1), fresh, complaint);
      });
    std::thread reader(
        [&] { read_late(library, static_cast<std::uint64_t>(life), stops, complaint); });
    // One life ends in the middle.
    const Status finished = life == 2 ? Status() : library.database->finish_opening();
    for (std::thread& thread : threads) thread.join();
    stops.store(true);
    reader.join();
    INFO(complaint.what());
    REQUIRE_FALSE(complaint.failed());
    must(finished);
    if (life != 2) {
      CHECK(library.database->statistics().index_entries_left == 0);
      must(library.database->check());
    }
    fresh += 32 * kLateSteps;
  }
  library.database.reopen();
  must(library.database->check());
  const Statistics statistics = library.database->statistics();
  CHECK(statistics.index_entries_built > kWordsAtFirst);
}

TEST_CASE("a database is closed in the middle of making indexes", "[late]") {
  Library library;
  for (int i = 0; i < 20; ++i) library.database.reopen();
  must(library.database->finish_opening());
  must(library.database->check());
}

}  // namespace flugs::test
