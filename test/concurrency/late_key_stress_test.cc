// Unique keys right after opening, while a thread makes their indexes: found, taken and given up.
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

constexpr std::int32_t kPairs = 50'000;
constexpr int kSwappers = 2;
constexpr int kCloakroomLives = 4;
constexpr std::uint64_t kStepsBefore = 100;  // of all threads, before the index is made

/// Each pair of hooks has one coat. The coat moves between the two, or is taken and hung up again,
/// or is brushed, so exactly one hook of each pair is taken at any time. No thread may hang up a
/// second coat.
struct Cloakroom {
  MemoryDatabase database;
  TableId table;
  std::atomic<std::uint64_t> steps{0};

  Cloakroom() : database(std::size_t{192} << 20, IndexPlace::kDram) {
    TableSchema schema("coats");
    schema.column("hook", Type::kInt32).column("coat", Type::kString);
    schema.column("brushed", Type::kInt32);
    schema.primary_key({"hook"}).unique_key("by_coat", {"coat"});
    table = must(database->create_table(schema));
    Transaction t = must(database->begin(AccessMode::kReadWrite));
    std::string coat;
    for (std::int32_t i = 0; i < kPairs; ++i) must(t.insert(table, row_of(2 * i, coat)));
    must(t.commit());
  }
  /// A thread makes the indexes; or, if held back, none does until the test says so.
  void reopen(bool is_held_back) {
    database.options.tuning.sweeps_in_background = !is_held_back;
    database.reopen();
    if (is_held_back) database->table(table)->index_build().set_builds_later(true);
    steps.store(0);
  }
  static std::vector<Value> row_of(std::int32_t hook, std::string& coat) {
    coat = fmt::format("the coat of pair {}", hook / 2);
    return {Value::int32(hook), Value::string(coat), Value::int32(0)};
  }
};

Result<Row> find_coat(const Cloakroom& room, const Transaction& t, std::int32_t pair) {
  Result<Row> row = t.get({room.table, 0}, {Value::int32(2 * pair)});
  if (row.code() == StatusCode::kNotFound)
    row = t.get({room.table, 0}, {Value::int32(2 * pair + 1)});
  return row;
}

/// Leaves one coat in the pair. Any failure but kConflict is an error.
Status handle_coat(const Cloakroom& room, Transaction& t, Random& random, std::int32_t pair) {
  const Result<Row> row = find_coat(room, t, pair);
  if (!row.ok()) return row.status();
  const auto hook = static_cast<std::int32_t>(row->get_unchecked(ColumnId(0)).raw());
  const std::int32_t other = hook ^ 1;
  std::string coat;
  switch (random.below(5)) {
    case 0:
      return t.update(room.table, row->id(), {{ColumnId(0), Value::int32(other)}}).status();
    case 1:
      if (Status s = t.remove(room.table, row->id()); !s.ok()) return s;
      return t.insert(room.table, Cloakroom::row_of(other, coat)).status();
    case 2: {  // a second coat is refused: by the hook, or because it is the same coat
      const std::int32_t wanted = random.chance(50) ? hook : other;
      const Status s = t.insert(room.table, Cloakroom::row_of(wanted, coat)).status();
      if (s.code() == StatusCode::kAlreadyExists) return {};
      return s.ok() ? Status(StatusCode::kCorrupt, "a second coat was hung up") : s;
    }
    case 3: {
      const Result<Savepoint> before = t.savepoint();
      if (!before.ok()) return before.status();
      if (Status s = t.remove(room.table, row->id()); !s.ok()) return s;
      return t.rollback_to(*before);
    }
    default:
      return t
          .update(room.table, row->id(),
                  {{ColumnId(2), Value::int32(static_cast<std::int32_t>(random.below(9)))}})
          .status();
  }
}

void handle_coats(Cloakroom& room, std::uint64_t seed, const std::atomic<bool>& stops,
                  Complaint& complaint) {
  Random random(seed);
  while (!stops.load() && !complaint.failed()) {
    room.steps.fetch_add(1);
    Result<Transaction> t = room.database->begin(AccessMode::kReadWrite);
    Status s = t.status();
    // Few pairs, so that the threads meet; or any pair.
    const std::int32_t pairs = random.chance(50) ? 64 : kPairs;
    for (int i = 0; s.ok() && i < 3; ++i)
      s = handle_coat(room, *t, random,
                      static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(pairs))));
    if (s.ok() && random.chance(80)) s = t->commit();
    complaint.expect(s.ok() || s.code() == StatusCode::kConflict, s.to_string());
  }
}

void look_for_coats(Cloakroom& room, std::uint64_t seed, const std::atomic<bool>& stops,
                    Complaint& complaint) {
  Random random(seed);
  while (!stops.load() && !complaint.failed()) {
    room.steps.fetch_add(1);
    // Sometimes the snapshot is older than the index.
    Result<Transaction> t = room.database->begin(AccessMode::kReadOnly);
    if (!complaint.expect(t.ok(), t.status().to_string())) return;
    const std::uint64_t looks = random.chance(20) ? 60 : 4;
    for (std::uint64_t i = 0; i < looks; ++i) {
      const auto pair = static_cast<std::int32_t>(random.below(random.chance(50) ? 64 : kPairs));
      int found = 0;
      for (const std::int32_t hook : {2 * pair, 2 * pair + 1})
        found += t->get({room.table, 0}, {Value::int32(hook)}).ok() ? 1 : 0;
      const std::string coat = fmt::format("the coat of pair {}", pair);
      const Result<Row> by_coat = t->get({room.table, 1}, {Value::string(coat)});
      complaint.expect(
          found == 1 && by_coat.ok() && by_coat->get_unchecked(ColumnId(0)).raw() / 2 == pair,
          fmt::format("pair {}: {} coats; by coat: {}", pair, found, by_coat.status().to_string()));
    }
  }
}

}  // namespace

TEST_CASE("unique keys are right while their indexes are made", "[late]") {
  Cloakroom room;
  Complaint complaint;
  for (int life = 0; life < kCloakroomLives && !complaint.failed(); ++life) {
    room.reopen(life % 2 == 0);
    std::atomic<bool> stops{false};
    std::vector<std::thread> threads;
    const auto seed = static_cast<std::uint64_t>(life) * 8;
    for (std::uint64_t i = 0; i < kSwappers; ++i)
      threads.emplace_back([&, i] { handle_coats(room, seed + i, stops, complaint); });
    threads.emplace_back([&] { look_for_coats(room, seed + 7, stops, complaint); });
    while (room.steps.load() < kStepsBefore && !complaint.failed()) std::this_thread::yield();
    const Status finished = room.database->finish_opening();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    stops.store(true);
    for (std::thread& thread : threads) thread.join();
    INFO(complaint.what());
    REQUIRE_FALSE(complaint.failed());
    must(finished);
    must(room.database->verify({}));
  }
}

}  // namespace flugs::test
