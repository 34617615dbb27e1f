// Rows that are found by a guess: a whole number as the key, and rows in the order of their keys.

#include "tables/keys/row_guess.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <random>

#include "flugs/merge.h"
#include "tables/table/table.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

using engine::kNoRow;
using engine::RowGuess;

constexpr std::uint32_t kEach = RowGuess::kLearnt;

TEST_CASE("a row guess is made after several rows at one distance", "[tables]") {
  const RowGuess guess;
  const auto learn = [&](std::uint32_t row, std::uint32_t distance) {
    guess.learn(Value::int64(std::int64_t{row} - distance), row);
  };
  const auto guessed = [&](std::int64_t key) { return guess.row_of(Value::int64(key)); };
  learn(0, 10);
  learn(kEach, 10);
  CHECK(guessed(5) == kNoRow);
  learn(kEach, 10);  // the same row again proves nothing
  CHECK(guessed(5) == kNoRow);
  for (std::uint32_t row = kEach + 1; row < 2 * kEach; ++row) learn(row, 10);
  CHECK(guessed(5) == kNoRow);
  learn(2 * kEach, 10);
  CHECK(guessed(5) == 15);
  CHECK(guessed(-3) == 7);
  CHECK(guess.row_of(Value::int32(5)) == 15);
  CHECK(guess.row_of(Value::real(5)) == kNoRow);
  CHECK(guess.row_of(Value::string("5")) == kNoRow);

  SECTION("rows at other distances end it") {
    learn(3 * kEach, 11);
    CHECK(guessed(5) == kNoRow);
    learn(4 * kEach, 12);
    learn(5 * kEach, 13);
    for (const std::uint32_t row : {6u, 7u, 8u}) learn(row * kEach, 20);
    CHECK(guessed(5) == 25);
  }
  SECTION("a distance that was right often outlives some other rows") {
    for (std::uint32_t row = 3; row < 100; ++row) learn(row * kEach, 10);
    for (std::uint32_t row = 100; row < 104; ++row) learn(row * kEach, row);
    CHECK(guessed(5) == 15);
    learn(200 * kEach, 1);
    CHECK(guessed(5) == kNoRow);
  }
}

TEST_CASE("a row guess knows rows before their keys", "[tables]") {
  const RowGuess guess;
  for (std::uint32_t i = 0; i < 4; ++i)
    guess.learn(Value::int64(INT64_C(1'000'000'000'000) + i * kEach), i * kEach);
  CHECK(guess.row_of(Value::int64(INT64_C(1'000'000'000'000) + 77)) == 77);
}

/// A table whose rows, but for those written since, are in the order of the key.
struct Ordered {
  static constexpr std::int64_t kRows = 20'000;
  static constexpr std::int64_t kFirst = 1'000'000;

  explicit Ordered(IndexPlace place) : database(std::size_t{64} << 20, place) {
    TableSchema schema("ordered");
    schema.column("id", Type::kInt64).column("value", Type::kInt64).primary_key({"id"});
    table = must(database->create_table(schema));
    key = {table, 0};
    Transaction t = must(database->begin(AccessMode::kReadWrite));
    for (std::int64_t i = kFirst; i < kFirst + kRows; ++i) insert(t, i, i);
    must(t.commit());
  }
  void insert(Transaction& t, std::int64_t id, std::int64_t value) {
    must(t.insert(table, {Value::int64(id), Value::int64(value)}));
    expected[id] = value;
  }
  std::optional<std::int64_t> found(const Transaction& t, std::int64_t id) const {
    const Result<Row> row = t.get(key, {Value::int64(id)});
    if (row.code() == StatusCode::kNotFound) return std::nullopt;
    REQUIRE(row.ok());
    REQUIRE(row->get_unchecked<std::int64_t>(ColumnId(0)) == id);
    return row->get_unchecked<std::int64_t>(ColumnId(1));
  }
  using Rows = std::map<std::int64_t, std::int64_t>;
  void check(const Transaction& t, const Rows& rows) const {
    std::size_t wrong = 0;
    for (std::int64_t id = kFirst - 100; id < kFirst + kRows + 100; ++id) {
      const auto at = rows.find(id);
      const auto wanted = at == rows.end() ? std::nullopt : std::optional(at->second);
      if (found(t, id) != wanted) ++wrong;
    }
    CHECK(wrong == 0);
  }
  void check() const { check(must(database->begin(AccessMode::kReadOnly)), expected); }
  bool is_guessing() const {
    return database->table(table)->keys()[key.index]->guess().row_of(Value::int64(kFirst)) !=
           kNoRow;
  }

  mutable MemoryDatabase database;
  TableId table;
  KeyId key;
  Rows expected;
};

void change_some(Ordered& rows, std::mt19937& random, int count) {
  Transaction t = must(rows.database->begin(AccessMode::kReadWrite));
  for (int i = 0; i < count; ++i) {
    const std::int64_t id = Ordered::kFirst + static_cast<std::int64_t>(random() % Ordered::kRows);
    const bool exists = rows.expected.count(id) != 0;
    const std::int64_t value = static_cast<std::int64_t>(random() % 1000);
    if (!exists) {
      rows.insert(t, id, value);
    } else if (random() % 2 == 0) {
      must(t.remove(rows.key, {Value::int64(id)}));
      rows.expected.erase(id);
    } else {
      must(t.update(rows.key, {Value::int64(id)}, {{ColumnId(1), Value::int64(value)}}).status());
      rows.expected[id] = value;
    }
  }
  must(t.commit());
}

TEST_CASE("look-ups by a guess give what the index gives", "[tables]") {
  Ordered rows(GENERATE(IndexPlace::kPool, IndexPlace::kDram));
  std::mt19937 random(7);
  rows.check();
  CHECK(rows.is_guessing());
  {
    const Transaction old = must(rows.database->begin(AccessMode::kReadOnly));
    const Ordered::Rows before = rows.expected;
    change_some(rows, random, 2'000);
    rows.check();
    rows.check(old, before);
    CHECK(rows.is_guessing());
  }
  for (int round = 0; round < 3; ++round) {
    MergeOptions options;
    options.scope = MergeScope::kEverything;
    must(rows.database->merge(rows.table, options).status());
    rows.check();
    change_some(rows, random, 2'000);
    rows.check();
  }
  rows.database.reopen();
  CHECK_FALSE(rows.is_guessing());
  rows.check();
}

TEST_CASE("rows that took the ids of others are not found by a guess", "[tables]") {
  Ordered rows(IndexPlace::kPool);
  rows.check();
  REQUIRE(rows.is_guessing());
  const auto replace_all = [&](std::int64_t step) {
    Transaction t = must(rows.database->begin(AccessMode::kReadWrite));
    for (const auto& [id, value] : rows.expected) must(t.remove(rows.key, {Value::int64(id)}));
    rows.expected.clear();
    must(t.commit());
    must(rows.database->merge(rows.table, {}).status());
    rows.check();
    t = must(rows.database->begin(AccessMode::kReadWrite));
    for (std::int64_t i = 0; i < Ordered::kRows; ++i)
      rows.insert(t, Ordered::kFirst + i * step % Ordered::kRows, i);
    must(t.commit());
    rows.check();
  };
  replace_all(7'919);
  replace_all(1);
  must(rows.database->verify({}));
}

TEST_CASE("a transaction finds its own rows by a guess, and not after its rollback", "[tables]") {
  Ordered rows(IndexPlace::kPool);
  rows.check();
  REQUIRE(rows.is_guessing());
  const std::int64_t next = Ordered::kFirst + Ordered::kRows;
  const Ordered::Rows before = rows.expected;
  Transaction t = must(rows.database->begin(AccessMode::kReadWrite));
  for (std::int64_t i = 0; i < 50; ++i) rows.insert(t, next + i, i);
  rows.check(t, rows.expected);
  rows.check(must(rows.database->begin(AccessMode::kReadOnly)), before);
  t.abort();
  rows.expected = before;
  rows.check();
}

}  // namespace
}  // namespace flugs::test
