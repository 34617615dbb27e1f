#include "columns/dictionary/dictionary.h"
#include "base/types.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "columns/cells/unflushed.h"
#include "test/support/model_value.h"
#include "test/support/test_column.h"

namespace flugs::test {
namespace {

std::uint32_t code_of(TestColumn& column, const Value& value) {
  const auto cell = column.encode(value);
  REQUIRE(cell.ok());
  return static_cast<std::uint32_t>(cell->low);
}

std::byte* entry(TestColumn& column, std::uint32_t id, std::size_t entry_bytes) {
  REQUIRE(id < 256);  // the first chunk
  const std::uint64_t chunk = column.layout().dictionary.chunks.inline_chunks[0];
  return column.pool().base() + chunk + id * entry_bytes;
}

constexpr std::size_t kColumnBytes = std::size_t{8} << 20;

}  // namespace

TEST_CASE("a value has one ValueID, before and after reopening", "[columns]") {
  const bool has_hints = GENERATE(false, true);
  for (const Type type : kAllTypes) {
    INFO(to_string(type));
    TestColumn column(column_schema(type), kColumnBytes, has_hints);
    Random random(static_cast<std::uint64_t>(type));
    std::vector<ModelValue> values;
    std::vector<std::uint32_t> codes;
    for (int i = 0; i < 3000; ++i) {
      values.push_back(random_value(column_schema(type), 2000, random));
      codes.push_back(code_of(column, values.back().view()));
    }
    const std::uint32_t count = column->dictionary().count();
    for (int opened = 0; opened < 2; ++opened) {
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const Value value = values[i].view();
        wrong += column->dictionary().find(value) == codes[i] ? 0 : 1;
        wrong += column->dictionary().value(codes[i]) == value ? 0 : 1;
        for (std::size_t k = 0; k < i; k += 97)
          wrong += (codes[k] == codes[i]) == (values[k] == values[i]) ? 0 : 1;
      }
      CHECK(wrong == 0);
      CHECK(column->dictionary().count() == count);
      CHECK(column->dictionary().verify().ok());
      REQUIRE(column.reopen(2).ok());
      // Hints are added once.
      CHECK(column.report().dictionary_entries == (has_hints && opened != 0 ? 0 : count));
      CHECK(column.report().dictionary_entries_dropped == 0);
    }
  }
}

TEST_CASE("NULL is an entry of its own", "[columns]") {
  const bool has_hints = GENERATE(false, true);
  for (const Type type : kAllTypes) {
    TestColumn column(column_schema(type), kColumnBytes, has_hints);
    CHECK(column->dictionary().find(Value::null()) == columns::Dictionary::kNone);
    const std::uint32_t null = code_of(column, Value::null());
    const bool text = type == Type::kString || type == Type::kBytes;
    const std::uint32_t zero =
        code_of(column, text ? Value::from_bytes(type, "") : Value::from_raw(type, 0));
    CHECK(null != zero);
    CHECK(column->dictionary().null_code() == null);
    REQUIRE(column.reopen().ok());
    CHECK(column->dictionary().null_code() == null);
    CHECK(column->dictionary().value(null).is_null());
    CHECK_FALSE(column->dictionary().value(zero).is_null());
    CHECK(code_of(column, Value::null()) == null);
  }
}

TEST_CASE("torn entries are dropped and their values get new ValueIDs", "[columns]") {
  const bool has_hints = GENERATE(false, true);
  struct Case {
    Type type;
    std::size_t entry_bytes;
  };
  for (const Case c : {Case{Type::kInt32, 8}, Case{Type::kInt64, 16}, Case{Type::kString, 32}}) {
    INFO(to_string(c.type));
    TestColumn column(column_schema(c.type), kColumnBytes, has_hints);
    const auto value = [&](std::int64_t i, std::string& text) {
      text = "a text of more than fifteen bytes " + std::to_string(i);
      return c.type == Type::kString ? Value::string(text) : Value::from_raw(c.type, i);
    };
    std::string text;
    for (std::int64_t i = 0; i < 10; ++i) CHECK(code_of(column, value(i, text)) == i);
    // Damages half of an entry in the middle, and one bit of the last one.
    std::memset(entry(column, 4, c.entry_bytes) + c.entry_bytes / 2, 0, c.entry_bytes / 4);
    *entry(column, 9, c.entry_bytes) ^= std::byte{1};
    REQUIRE(column.reopen().ok());
    CHECK(column.report().dictionary_entries == 8);
    CHECK(column.report().dictionary_entries_dropped == 2);
    CHECK(column->dictionary().find(value(4, text)) == columns::Dictionary::kNone);
    CHECK(column->dictionary().find(value(5, text)) == 5);
    CHECK(column->dictionary().verify().ok());
    const std::uint32_t again = code_of(column, value(4, text));
    CHECK(again >= 9);  // the last one that was torn, or behind it
    REQUIRE(column.reopen().ok());
    CHECK(column->dictionary().find(value(4, text)) == again);
    CHECK(column->dictionary().verify().ok());
  }
}

// Hints that keep_hints has not reached, each of which a power cut may lose.
TEST_CASE("look-ups search entries whose hints opening left", "[columns]") {
  constexpr std::int64_t kKept = 100;
  constexpr std::int64_t kAll = 500;
  for (const Type type : {Type::kInt32, Type::kInt64, Type::kString}) {
    INFO(to_string(type));
    TestColumn column(column_schema(type), kColumnBytes, true);
    const auto value = [&](std::int64_t i, std::string& text) {
      text = i % 2 == 0 ? std::to_string(i) : "of more than fifteen bytes " + std::to_string(i);
      return type == Type::kString ? Value::string(text) : Value::from_raw(type, i);
    };
    std::string text;
    for (std::int64_t i = 0; i < kKept; ++i) code_of(column, value(i, text));
    while (column->dictionary().hints()->keep(column.persister())) {
    }
    for (std::int64_t i = kKept; i < kAll; ++i) code_of(column, value(i, text));
    const std::uint32_t null = code_of(column, Value::null());
    column.lose_hints(kKept);
    REQUIRE(column.reopen_unindexed().ok());
    REQUIRE(column.index().ok());
    CHECK(column.report().dictionary_entries == kAll - kKept + 1);
    REQUIRE(column->dictionary().hints()->has_left());
    CHECK(column->dictionary().null_code() == null);
    CHECK(column->dictionary().find(value(kAll, text)) == columns::Dictionary::kNone);
    const std::uint32_t added = code_of(column, value(kAll, text));
    CHECK(added == null + 1);
    int calls = 0;
    for (bool are_left = true; are_left; ++calls) {
      are_left = column->dictionary().hints()->has_left();
      std::size_t wrong = 0;
      for (std::int64_t i = 0; i < kAll; ++i)
        wrong +=
            column->dictionary().find(value(i, text)) == i && code_of(column, value(i, text)) == i
                ? 0
                : 1;
      CHECK(wrong == 0);
      CHECK(code_of(column, value(kAll, text)) == added);
      CHECK(code_of(column, Value::null()) == null);
      CHECK(column->dictionary().verify().ok());
      column->dictionary().hints()->keep(column.persister(), columns::DictionaryHints::kKeptMax,
                                         columns::DictionaryHints::kEnteredMax);
    }
    CHECK(calls >= (kAll - kKept) / columns::DictionaryHints::kEnteredMax);
    // Now by their hints, which are durable.
    REQUIRE(column.reopen_unindexed().ok());
    REQUIRE(column.index().ok());
    CHECK_FALSE(column->dictionary().hints()->has_left());
    CHECK(column->dictionary().find(value(kAll - 1, text)) == kAll - 1);
    CHECK(column->dictionary().find(value(kAll, text)) == added);
  }
}

TEST_CASE("many values at once, some with hints that opening left", "[columns]") {
  constexpr std::int64_t kLeft = 300;
  TestColumn column(column_schema(Type::kInt64), kColumnBytes, true);
  for (std::int64_t i = 0; i < kLeft; ++i) code_of(column, Value::int64(i));
  column.lose_hints(0);
  REQUIRE(column.reopen_unindexed().ok());
  REQUIRE(column.index().ok());
  std::vector<Value> values;
  for (std::int64_t i = 0; i < 60; ++i)  // old and new ones by turns
    values.push_back(Value::int64(i % 2 == 0 ? i * 5 : kLeft + i));
  std::vector<columns::Cell> cells(values.size());
  columns::Unflushed unflushed;
  REQUIRE(
      column->dictionary().encode_many(values, 0, 1, cells, unflushed, column.persister()).ok());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto id = static_cast<std::uint32_t>(cells[i].low);
    CHECK(column->dictionary().value(id) == values[i]);
    CHECK((i % 2 == 0 ? id == i * 5 : id == kLeft + i / 2));
  }
  unflushed.flush(column.persister(), "commit/1");
  column.persister().fence("commit/1");
  unflushed.mark_durable();
  column.enter_hints();
  CHECK(column->dictionary().verify().ok());
}

// There may be many, and a commit must be short; commits help only with newer entries.
TEST_CASE("commits do not enter hints that opening left", "[columns]") {
  constexpr std::int64_t kLeft = 3 * columns::DictionaryHints::kTailMax;
  TestColumn column(column_schema(Type::kInt64), kColumnBytes, true);
  for (std::int64_t i = 0; i < kLeft; ++i) code_of(column, Value::int64(i));
  column.lose_hints(0);
  REQUIRE(column.reopen_unindexed().ok());
  REQUIRE(column.index().ok());
  std::int64_t next = kLeft;
  for (; next < kLeft + columns::DictionaryHints::kTailMax; ++next) {
    CHECK_FALSE(column->dictionary().hints()->wants_keeping());
    code_of(column, Value::int64(next));
  }
  CHECK(column->dictionary().hints()->wants_keeping());
  CHECK(column->dictionary().hints()->enter_left(column.persister(), kLeft - 1));
  CHECK_FALSE(column->dictionary().hints()->enter_left(column.persister(), 1));
  CHECK_FALSE(column->dictionary().hints()->has_left());
  CHECK(column.hints()->durable_end == kLeft);
}

// The damaged word finds nothing, with hints or without; the rest goes on.
TEST_CASE("hints that opening left pass over a damaged directory", "[columns]") {
  constexpr std::int64_t kKept = 5000;
  constexpr std::int64_t kAll = 9000;
  TestColumn column(column_schema(Type::kInt64), kColumnBytes, true);
  for (std::int64_t i = 0; i < kKept; ++i) code_of(column, Value::int64(i));
  while (column->dictionary().hints()->keep(column.persister())) {
  }
  for (std::int64_t i = kKept; i < kAll; ++i) code_of(column, Value::int64(i));
  column.lose_hints(kKept);
  constexpr std::uint64_t kDepthMask = 63;
  std::byte* directory = column.pool().base() + (column.hints()->directory & ~kDepthMask);
  std::memset(directory, 0x12, sizeof(std::uint64_t));
  REQUIRE(column.reopen_unindexed().ok());
  REQUIRE(column.index().ok());
  const auto count_wrong = [&] {
    std::size_t wrong = 0;
    for (std::int64_t i = 0; i < kAll; i += 7)
      wrong += column->dictionary().find(Value::int64(i)) == i ? 0 : 1;
    return wrong;
  };
  CHECK(count_wrong() == 0);
  column.enter_hints();
  CHECK_FALSE(column->dictionary().hints()->has_left());
  CHECK(column.hints()->durable_end == kAll);
  CHECK(count_wrong() == 0);
  CHECK(column->dictionary().hints()->check_index().code() == StatusCode::kCorrupt);
}

// A damaged index gets no more room: where its words are whole, a missing hint would go unnoticed.
TEST_CASE("hints stay left if a damaged index has no room for them", "[columns]") {
  constexpr std::int64_t kKept = 5000;
  constexpr std::int64_t kAll = 9000;
  TestColumn column(column_schema(Type::kInt64), 2 * kColumnBytes, true);
  for (std::int64_t i = 0; i < kKept; ++i) code_of(column, Value::int64(i));
  while (column->dictionary().hints()->keep(column.persister())) {
  }
  for (std::int64_t i = kKept; i < kAll; ++i) code_of(column, Value::int64(i));
  column.lose_hints(kKept);
  constexpr std::uint64_t kDepthMask = 63;
  std::byte* directory = column.pool().base() + (column.hints()->directory & ~kDepthMask);
  std::memset(directory, 0x12, sizeof(std::uint64_t));
  REQUIRE(column.reopen_unindexed().ok());
  REQUIRE(column.index().ok());
  std::size_t refused = 0;
  for (std::int64_t i = kAll; i < 10 * kAll; ++i) {  // takes what room there is
    const auto cell = column.encode(Value::int64(i));
    refused += cell.code() == StatusCode::kCorrupt ? 1 : 0;
  }
  CHECK(refused > 0);
  column.enter_hints();
  CHECK(column->dictionary().hints()->has_left());
  std::size_t wrong = 0;
  for (std::int64_t i = 0; i < kAll; ++i)
    wrong += column->dictionary().find(Value::int64(i)) == i ? 0 : 1;
  CHECK(wrong == 0);
}

TEST_CASE("garbage behind the last entry is not taken for values", "[columns]") {
  const bool has_hints = GENERATE(false, true);
  TestColumn column(column_schema(Type::kInt64), kColumnBytes, has_hints);
  code_of(column, Value::int64(1));
  std::memset(entry(column, 3, 16), 0xA5, 64);
  REQUIRE(column.reopen().ok());
  CHECK(column.report().dictionary_entries == 1);
  CHECK(column.report().dictionary_entries_dropped == 4);
  CHECK(code_of(column, Value::int64(2)) == (has_hints ? 1 : 7));
  CHECK(code_of(column, Value::int64(1)) == 0);
}

TEST_CASE("a transaction flushes the entries that it uses, whoever wrote them", "[columns]") {
  const bool has_hints = GENERATE(false, true);
  TestColumn column(column_schema(Type::kInt64), kColumnBytes, has_hints);
  struct Flushed final : pmem::PersistObserver {
    std::vector<std::pair<const std::byte*, std::size_t>> ranges;
    void on_flush(const void* address, std::size_t bytes, pmem::Label) override {
      ranges.emplace_back(static_cast<const std::byte*>(address), bytes);
    }
    void on_fence(pmem::Label) override {}
    bool covers(const std::byte* address) const {
      for (const auto& [first, bytes] : ranges)
        if (first <= address && address < first + bytes) return true;
      return false;
    }
  } watch;
  columns::Unflushed writer;
  columns::Unflushed user;
  const Value value = Value::int64(77);
  REQUIRE(column->encode(value, writer, column.persister()).ok());
  // The writer has flushed nothing yet, or aborts: the user must not rely on it.
  REQUIRE(column->encode(value, user, column.persister()).ok());
  column.pool().medium().set_observer(&watch);
  user.flush(column.persister(), "commit/1");
  column.persister().fence("commit/1");
  column.pool().medium().set_observer(nullptr);
  CHECK(watch.covers(entry(column, 0, 16)));
  user.mark_durable();
  columns::Unflushed later;
  REQUIRE(column->encode(value, later, column.persister()).ok());
  CHECK(later.empty());
}

TEST_CASE("a dictionary grows through all its chunks", "[columns]") {
  const bool has_hints = GENERATE(false, true);
  TestColumn column(column_schema(Type::kInt64), std::size_t{64} << 20, has_hints);
  constexpr std::int64_t kValues = 600000;  // beyond two chunks of the largest size
  columns::Unflushed unflushed;
  for (std::int64_t i = 0; i < kValues; ++i) {
    const auto cell = column->encode(Value::int64(i * 3), unflushed, column.persister());
    if (!cell.ok() || cell->low != static_cast<std::uint64_t>(i)) FAIL("value " << i);
  }
  unflushed.flush(column.persister(), "commit/1");
  column.persister().fence("commit/1");
  unflushed.mark_durable();
  REQUIRE(column.reopen(2).ok());
  CHECK(column.report().dictionary_entries == kValues);
  std::size_t wrong = 0;
  for (std::int64_t i = 0; i < kValues; i += 7)
    wrong += column->dictionary().integer(static_cast<std::uint32_t>(i)) == i * 3 &&
                     column->dictionary().find(Value::int64(i * 3)) == static_cast<std::uint32_t>(i)
                 ? 0
                 : 1;
  CHECK(wrong == 0);
  CHECK(column->dictionary().verify().ok());
}

TEST_CASE("a ValueID that was never given out reads as nothing", "[columns]") {
  const bool has_hints = GENERATE(false, true);
  TestColumn column(column_schema(Type::kString), kColumnBytes, has_hints);
  code_of(column, Value::string("x"));
  for (const std::uint32_t code : {1u, 255u, 256u, 1u << 20, 0xF0000000u, 0xFFFFFFFFu})
    CHECK(column->dictionary().text(code).empty());
}

TEST_CASE("a dictionary without space says so and keeps what it has", "[columns]") {
  const bool has_hints = GENERATE(false, true);
  TestColumn column(column_schema(Type::kInt64), std::size_t{256} << 10, has_hints);
  std::int64_t next = 0;
  StatusCode code = StatusCode::kOk;
  while (code == StatusCode::kOk && next < 100000)
    code = column.encode(Value::int64(next++)).code();
  CHECK(code == StatusCode::kOutOfSpace);
  REQUIRE(next > 256);
  CHECK(column->dictionary().find(Value::int64(next - 1)) == columns::Dictionary::kNone);
  CHECK(column.encode(Value::int64(0)).ok());
  REQUIRE(column.reopen().ok());
  CHECK(column->dictionary().find(Value::int64(next - 2)) == static_cast<std::uint32_t>(next - 2));
  CHECK(column->dictionary().verify().ok());
}

}  // namespace flugs::test
