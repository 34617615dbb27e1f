// A dictionary works correctly before its index in DRAM is rebuilt.
#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "base/types.h"
#include "columns/cells/unflushed.h"
#include "columns/dictionary/dictionary.h"
#include "test/support/model_value.h"
#include "test/support/test_column.h"

namespace flugs::test {
namespace {

std::uint32_t searched_code_of(TestColumn& column, const Value& value) {
  const auto cell = column.encode(value);
  REQUIRE(cell.ok());
  return static_cast<std::uint32_t>(cell->low);
}

}  // namespace

TEST_CASE("values are found, and added once, before there is an index", "[columns]") {
  for (const Type type : kAllTypes) {
    INFO(to_string(type));
    TestColumn column(column_schema(type));
    Random random(static_cast<std::uint64_t>(type) + 17);
    std::vector<ModelValue> values;
    std::vector<std::uint32_t> codes;
    const auto add = [&](int count) {
      for (int i = 0; i < count; ++i) {
        values.push_back(random_value(column_schema(type), 800, random));
        codes.push_back(searched_code_of(column, values.back().view()));
      }
    };
    const auto count_wrong = [&] {
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < values.size(); ++i) {
        wrong += column->dictionary().find(values[i].view()) == codes[i] ? 0 : 1;
        wrong += column->dictionary().value(codes[i]) == values[i].view() ? 0 : 1;
        for (std::size_t k = 0; k < i; k += 31)
          wrong += (codes[k] == codes[i]) == (values[k] == values[i]) ? 0 : 1;
      }
      return wrong;
    };
    add(500);
    const std::uint32_t count = column->dictionary().count();
    REQUIRE(column.reopen_unindexed().ok());
    CHECK_FALSE(column->dictionary().is_indexed());
    CHECK(column->dictionary().rebuild_end() == count);
    CHECK(count_wrong() == 0);
    add(300);  // some of them new
    CHECK(count_wrong() == 0);
    CHECK_FALSE(column->dictionary().is_indexed());
    REQUIRE(column.index(2).ok());
    CHECK(column->dictionary().is_indexed());
    CHECK(count_wrong() == 0);
    CHECK(column->dictionary().verify().ok());
    add(300);
    CHECK(count_wrong() == 0);
    REQUIRE(column.reopen().ok());
    CHECK(count_wrong() == 0);
    CHECK(column->dictionary().verify().ok());
  }
}

TEST_CASE("NULL's ValueID is known before any entry was examined", "[columns]") {
  for (const Type type : kAllTypes) {
    INFO(to_string(type));
    TestColumn column(column_schema(type));
    const bool is_text = type == Type::kString || type == Type::kBytes;
    const Value zero = is_text ? Value::from_bytes(type, "") : Value::from_raw(type, 0);
    const std::uint32_t zero_code = searched_code_of(column, zero);
    const std::uint32_t null = searched_code_of(column, Value::null());
    REQUIRE(column.reopen_unindexed().ok());
    CHECK(column->dictionary().null_code() == null);
    CHECK(column->dictionary().value(null).is_null());
    CHECK(column->dictionary().find(zero) == zero_code);
    CHECK(searched_code_of(column, Value::null()) == null);
    REQUIRE(column.index().ok());
    CHECK(column->dictionary().null_code() == null);
  }
}

TEST_CASE("an entry of NULL that null_code does not name is damage", "[columns]") {
  TestColumn column(column_schema(Type::kInt64));
  searched_code_of(column, Value::int64(7));
  const std::uint32_t null = searched_code_of(column, Value::null());
  SECTION("null_code names no entry") { column.layout().dictionary.null_code = 0; }
  SECTION("null_code names another entry") { column.layout().dictionary.null_code = null; }
  REQUIRE(column.reopen_unindexed().ok());
  const Status status = column.index();
  CHECK(status.code() == StatusCode::kCorrupt);
  CHECK(status.message().find("NULL") != std::string_view::npos);
  CHECK_FALSE(column->dictionary().is_indexed());
}

TEST_CASE("an impossible null_code is refused", "[columns]") {
  TestColumn column(column_schema(Type::kInt64));
  searched_code_of(column, Value::null());
  column.layout().dictionary.null_code = std::uint64_t{1} << 40;
  CHECK(column.reopen_unindexed().code() == StatusCode::kCorrupt);
}

TEST_CASE("torn entries are not found by a search", "[columns]") {
  TestColumn column(column_schema(Type::kInt64));
  for (int i = 0; i < 10; ++i) searched_code_of(column, Value::int64(1000 + i));
  std::byte* entries = column.pool().base() + column.layout().dictionary.chunks.inline_chunks[0];
  std::memset(entries + 4 * 16 + 8, 0, 8);  // the fifth one's proof
  REQUIRE(column.reopen_unindexed().ok());
  CHECK(column->dictionary().find(Value::int64(1004)) == columns::Dictionary::kNone);
  CHECK(column->dictionary().find(Value::int64(1005)) == 5);
  CHECK(searched_code_of(column, Value::int64(1004)) == 10);
  REQUIRE(column.index().ok());
  CHECK(column.report().dictionary_entries_dropped == 1);
  CHECK(column->dictionary().find(Value::int64(1004)) == 10);
  CHECK(column->dictionary().verify().ok());
}

TEST_CASE("values are added once while the index is made", "[columns]") {
  constexpr std::int64_t kBefore = 60'000;
  constexpr std::int64_t kAfter = 400;
  TestColumn column(column_schema(Type::kInt64));
  for (std::int64_t i = 0; i < kBefore; ++i) searched_code_of(column, Value::int64(i));
  REQUIRE(column.reopen_unindexed().ok());
  columns::Dictionary& dictionary = column->dictionary();
  constexpr int kThreads = 3;
  std::vector<std::vector<std::uint32_t>> codes(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      pmem::Persister persister(column.pool().medium());
      for (std::int64_t i = 0; i < kAfter; ++i) {
        columns::Unflushed unflushed;
        // Old and new ones in turn, each by all threads.
        const std::int64_t value = i % 2 == 0 ? kBefore + i : kBefore - 1 - i;
        const auto id = dictionary.encode(Value::int64(value), unflushed, persister);
        codes[t].push_back(id.ok() ? *id : columns::Dictionary::kNone);
        unflushed.flush(persister, "commit/1");
        persister.fence("commit/1");
        unflushed.mark_durable();
      }
    });
  const Status indexed = column.index(2);
  for (std::thread& thread : threads) thread.join();
  REQUIRE(indexed.ok());
  CHECK(codes[0] == codes[1]);
  CHECK(codes[0] == codes[2]);
  CHECK(dictionary.count() == kBefore + kAfter / 2);
  CHECK(dictionary.verify().ok());
}

}  // namespace flugs::test
