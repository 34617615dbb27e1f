// Rows that are found by a guess: a whole number as the key, and rows in the order of their keys.

#include "tables/keys/row_guess.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <vector>

#include "flugs/merge.h"
#include "tables/data/table_data.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

using engine::kNoRow;
using engine::RowGuess;

/// The first rows that are learnt from.
std::vector<std::uint32_t> learnt_rows(std::size_t count) {
  std::vector<std::uint32_t> rows;
  for (std::uint32_t row = 0; rows.size() < count; ++row)
    if (RowGuess::is_learnt(row)) rows.push_back(row);
  return rows;
}

TEST_CASE("a row guess is made after several rows at one distance", "[tables]") {
  const RowGuess guess;
  const std::vector<std::uint32_t> rows = learnt_rows(120);
  const auto learn = [&](std::uint32_t row, std::uint32_t distance) {
    guess.learn(Value::int64(std::int64_t{row} - distance), row);
  };
  const auto guessed = [&](std::int64_t key) { return guess.row_of(Value::int64(key)); };
  learn(rows[0], 10);
  learn(rows[1], 10);
  CHECK(guessed(5) == kNoRow);
  learn(rows[1], 10);  // the same row again proves nothing
  CHECK(guessed(5) == kNoRow);
  for (std::uint32_t row = rows[1] + 1; row < rows[2]; ++row) learn(row, 10);
  CHECK(guessed(5) == kNoRow);
  learn(rows[2], 10);
  CHECK(guessed(5) == 15);
  CHECK(guessed(-3) == 7);
  CHECK(guess.row_of(Value::int32(5)) == 15);
  CHECK(guess.row_of(Value::real(5)) == kNoRow);
  CHECK(guess.row_of(Value::string("5")) == kNoRow);

  SECTION("rows at other distances end it") {
    learn(rows[3], 11);
    CHECK(guessed(5) == kNoRow);
    learn(rows[4], 12);
    learn(rows[5], 13);
    for (const std::size_t i : {6u, 7u, 8u}) learn(rows[i], 20);
    CHECK(guessed(5) == 25);
  }
  SECTION("a distance that was right often outlives some other rows") {
    for (std::size_t i = 3; i < 100; ++i) learn(rows[i], 10);
    for (std::size_t i = 100; i < 104; ++i) learn(rows[i], std::uint32_t(i));
    CHECK(guessed(5) == 15);
    learn(rows[110], 1);
    CHECK(guessed(5) == kNoRow);
  }
}

TEST_CASE("one row in a thousand teaches a row guess, in any part of a page", "[tables]") {
  constexpr std::uint32_t kRows = 1u << 22;
  std::size_t count = 0;
  std::array<std::size_t, 64> in_page{};
  for (std::uint32_t row = 0; row < kRows; ++row)
    if (RowGuess::is_learnt(row)) {
      ++count;
      ++in_page[row % 64];
    }
  CHECK(count > kRows / RowGuess::kLearnt * 9 / 10);
  CHECK(count < kRows / RowGuess::kLearnt * 11 / 10);
  CHECK(*std::max_element(in_page.begin(), in_page.end()) < count / 32);
}

TEST_CASE("a row guess knows rows before their keys", "[tables]") {
  const RowGuess guess;
  for (const std::uint32_t row : learnt_rows(4))
    guess.learn(Value::int64(INT64_C(1'000'000'000'000) + row), row);
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

// In each page the greatest key comes first: one row in 64 is at the same distance.
TEST_CASE("no row is guessed where only one in many is in the order of the key", "[tables]") {
  constexpr std::int64_t kPages = 2'000;
  MemoryDatabase database(std::size_t{64} << 20, IndexPlace::kPool);
  TableSchema schema("pages");
  schema.column("id", Type::kInt64).primary_key({"id"});
  const TableId table = must(database->create_table(schema));
  Transaction t = must(database->begin(AccessMode::kReadWrite));
  for (std::int64_t page = 0; page < kPages; ++page)
    for (std::int64_t i = 63; i >= 0; --i) must(t.insert(table, {Value::int64(page * 64 + i)}));
  must(t.commit());
  t = must(database->begin(AccessMode::kReadOnly));
  const engine::TableData* const core = database->table_data(table);
  std::int64_t guessed = 0;
  std::int64_t right = 0;
  for (std::int64_t i = 0; i < 64 * kPages; ++i) {
    const std::int64_t id = i * 7'919 % (64 * kPages);
    const std::uint32_t guess = core->keys[0]->guess().row_of(Value::int64(id));
    const Result<Row> row = t.get({table, 0}, {Value::int64(id)});
    REQUIRE(row.ok());
    guessed += guess != kNoRow ? 1 : 0;
    right += guess == row->id().value() ? 1 : 0;
  }
  INFO("right " << right);
  CHECK(guessed < 64 * kPages / 10);
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
