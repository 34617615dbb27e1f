// Scans of columns in the delta beside transactions that take back what scans have kept.
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>
#include <vector>

#include "flugs/query.h"
#include "tables/rows/seen_parts.h"
#include "test/support/complaint.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

using engine::SeenParts;
using Mask = std::array<std::uint64_t, SeenParts::kWords>;

constexpr std::uint32_t kPart = 1;

}  // namespace

TEST_CASE("a scan finds no mixture of two answers", "[concurrency]") {
  SeenParts seen(2 * SeenParts::kRows);
  std::atomic<bool> ends{false};
  Complaint complaint;
  int found_some = 0;
  const auto keeps = [&](std::uint64_t first) {
    for (std::uint64_t round = 0; !ends; ++round) {
      const std::uint64_t ticket = seen.ticket(kPart);
      Mask mask;
      mask.fill(first + round);
      if (ticket != SeenParts::kNone) seen.keep(kPart, ticket, 1, mask.data());
      if (round % 3 == 0) seen.note_tag(kPart * SeenParts::kRows);
    }
  };
  std::thread one(keeps, 0);
  std::thread other(keeps, std::uint64_t{1} << 40);
  // The threads may begin late: an answer must have been found, but nobody waits for ever.
  const auto latest = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  for (int i = 0; i < rounds_of(200'000, 20'000) || found_some == 0; ++i) {
    if (std::chrono::steady_clock::now() > latest) break;
    Mask mask;
    if (!seen.find(kPart, 1, mask.data())) continue;
    ++found_some;
    for (const std::uint64_t word : mask) complaint.expect(word == mask[0], "a mixture");
  }
  ends = true;
  one.join();
  other.join();
  CHECK(complaint.what() == "");
  CHECK(found_some > 0);
}

namespace {

/// Accounts in columns. Each transaction moves money between two of them, or puts a new account in
/// the place of an old one: the sum that a snapshot sees is always the same.
class Accounts {
 public:
  static constexpr std::int64_t kAccounts = 5000;
  static constexpr std::int64_t kEach = 100;

  Accounts() {
    TableSchema schema("accounts");
    schema.column("id", Type::kInt64).column("money", Type::kInt64).direct().primary_key({"id"});
    table_ = must(database_->create_table(schema.in_columns()));
    Transaction t = must(database_->begin());
    for (std::int64_t id = 0; id < kAccounts; ++id)
      must(t.insert(table_, {Value::int64(id), Value::int64(kEach)}));
    must(t.commit());
  }

  void move(std::uint64_t draw, Complaint& complaint) {
    auto t = database_->begin();
    if (!complaint.expect(t.ok(), "begin")) return;
    const auto from = static_cast<std::int64_t>(draw % kAccounts);
    const auto to = static_cast<std::int64_t>(draw / kAccounts % kAccounts);
    if (from == to) return;
    if (add(*t, from, -1) && add(*t, to, 1) && draw % 8 != 0) {
      const Status committed = t->commit();
      complaint.expect(committed.ok() || committed.code() == StatusCode::kConflict, "commit");
    }  // else undone
  }
  std::int64_t sum(Complaint& complaint) {
    auto t = database_->begin(AccessMode::kReadOnly);
    if (!complaint.expect(t.ok(), "begin")) return 0;
    auto result =
        query::Query::table("accounts").group_by({}, {query::sum(query::col("money"))}).run(*t);
    if (!complaint.expect(result.ok(), "query")) return 0;
    const auto found = result->get<std::int64_t>(0, 0);
    return found.ok() ? *found : 0;
  }

 private:
  bool add(Transaction& t, std::int64_t id, std::int64_t money) {
    const auto row = t.get({table_, 0}, {Value::int64(id)});
    if (!row.ok()) return false;
    const std::int64_t now = row->get_unchecked<std::int64_t>(ColumnId(1));
    return t.update(table_, row->id(), {{ColumnId(1), Value::int64(now + money)}}).ok();
  }

  TemporaryDatabase database_;
  TableId table_;
};

}  // namespace

TEST_CASE("writers of adjacent rows in columns keep each other's cells", "[concurrency]") {
  // Cells of one byte, and a byte of NULL bits, or a record of one word for two of them. Updates
  // take places that other threads' rows left.
  const std::vector<std::vector<std::string>> groups =
      GENERATE(std::vector<std::vector<std::string>>{},
               std::vector<std::vector<std::string>>{{"few", "bit"}});
  TemporaryDatabase database;
  TableSchema schema("narrow");
  schema.column("id", Type::kInt32).column("flag", Type::kBool);
  schema.column("few", Type::kInt32).column("bit", Type::kBool).direct().primary_key({"id"});
  const TableId table = must(database->create_table(schema.in_column_groups(groups)));
  constexpr int kThreads = 3;
  constexpr int kIds = 40;  // of each thread
  Complaint complaint;
  const auto row_of = [](int id, int round) {
    return std::vector<Value>{Value::int32(id), Value::boolean((id + round) % 2 == 0),
                              Value::int32((id + round) % 5),
                              round % 3 == 0 ? Value::null() : Value::boolean(round % 2 == 0)};
  };
  const int rounds = rounds_of(3000, 300);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([&, thread] {
      for (int round = 0; round < rounds; ++round) {
        auto t = database->begin();
        if (!complaint.expect(t.ok(), "begin")) return;
        const int id = thread * kIds + round % kIds;
        const std::vector<Value> row = row_of(id, round);
        if (const auto old = t->get({table, 0}, {row[0]}); old.ok())
          complaint.expect(
              t->update(table, old->id(),
                        {{ColumnId(1), row[1]}, {ColumnId(2), row[2]}, {ColumnId(3), row[3]}})
                  .ok(),
              "update");
        else
          complaint.expect(t->insert(table, row).ok(), "insert");
        complaint.expect(t->commit().ok(), "commit");
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(complaint.what() == "");
  Transaction t = must(database->begin(AccessMode::kReadOnly));
  for (int thread = 0; thread < kThreads; ++thread)
    for (int id = 0; id < kIds; ++id) {
      const int last = (rounds - 1 - id) / kIds * kIds + id;
      const std::vector<Value> expected = row_of(thread * kIds + id, last);
      const Row row = must(t.get({table, 0}, {expected[0]}));
      for (std::uint16_t i = 0; i < expected.size(); ++i)
        CHECK(row.get_unchecked(ColumnId(i)) == expected[i]);
    }
}

TEST_CASE("queries beside writers see one moment of a table in columns", "[concurrency]") {
  Accounts accounts;
  Complaint complaint;
  std::atomic<bool> ends{false};
  std::atomic<int> sums{0};
  std::thread reader([&] {
    while (!ends) {
      const std::int64_t sum = accounts.sum(complaint);
      complaint.expect(sum == Accounts::kAccounts * Accounts::kEach, "the sum changed");
      ++sums;
    }
  });
  std::thread writer([&] {
    std::uint64_t draw = 88172645463325252U;
    for (int i = 0; i < rounds_of(30'000, 3'000) || sums < 3; ++i) {
      draw ^= draw << 13;
      draw ^= draw >> 7;
      draw ^= draw << 17;
      accounts.move(draw, complaint);
    }
    ends = true;
  });
  writer.join();
  reader.join();
  CHECK(complaint.what() == "");
  for (int i = 0; i < 3; ++i)  // answers that are kept now
    CHECK(accounts.sum(complaint) == Accounts::kAccounts * Accounts::kEach);
}

}  // namespace flugs::test
