#include "columns/cells/string_heap.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "test/support/random.h"
#include "test/support/test_column.h"

namespace flugs::test {
namespace {

ColumnSchema direct_string() { return column_schema(Type::kString, Encoding::kDirect); }

std::string text_of(std::uint64_t number, std::size_t bytes) {
  std::string text = std::to_string(number) + "/";
  while (text.size() < bytes) text += static_cast<char>('a' + text.size() % 26);
  return text;
}

std::string_view at(TestColumn& column, const columns::Cell& cell) {
  REQUIRE(columns::text_cell::tag_of(cell.high) == columns::text_cell::kOutOfLine);
  return {reinterpret_cast<const char*>(column.pool().base() + cell.low),
          columns::text_cell::length_of(cell.high)};
}

}  // namespace

TEST_CASE("long strings come back, and do not overlap after reopening", "[columns]") {
  TestColumn column(direct_string(), std::size_t{32} << 20);
  Random random(11);
  std::vector<std::string> texts;
  std::vector<columns::Cell> cells;
  for (int opened = 0; opened < 5; ++opened) {
    for (int i = 0; i < 300; ++i) {
      const std::size_t bytes = random.chance(2) ? random.below(300000) : random.below(600);
      texts.push_back(text_of(random.next(), 30 + bytes));
      const auto cell = column.encode(Value::string(texts.back()));
      REQUIRE(cell.ok());
      cells.push_back(*cell);
    }
    const std::uint64_t bytes = column->bytes_in_pool();
    REQUIRE(column.reopen().ok());
    CHECK(column->bytes_in_pool() == bytes);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < texts.size(); ++i)
      wrong += at(column, cells[i]) == texts[i] ? 0 : 1;
    CHECK(wrong == 0);
  }
}

TEST_CASE("a crash wastes at most the reservation", "[columns]") {
  TestColumn column(direct_string());
  REQUIRE(column.encode(Value::string(std::string_view(text_of(1, 100)))).ok());
  for (int i = 0; i < 50; ++i) {
    REQUIRE(column.reopen().ok());
    REQUIRE(column.encode(Value::string(std::string_view(text_of(1, 100)))).ok());
  }
  // 4 KB each time, and chunks that double.
  CHECK(column->bytes_in_pool() <= 2 * 51 * (4096 + 100));
}

TEST_CASE("a string larger than any chunk has a chunk of its own", "[columns]") {
  TestColumn column(direct_string(), std::size_t{32} << 20);
  const std::string large = text_of(3, std::size_t{5} << 20);
  const auto cell = column.encode(Value::string(large));
  REQUIRE(cell.ok());
  const auto small = column.encode(Value::string(std::string_view(text_of(4, 20))));
  REQUIRE(small.ok());
  REQUIRE(column.reopen().ok());
  CHECK(at(column, *cell) == large);
  CHECK(at(column, *small) == text_of(4, 20));
}

TEST_CASE("a sweep frees the texts that no row has, and no other", "[columns]") {
  struct Stored {
    columns::Cell cell;
    std::string text;
  };
  TestColumn column(direct_string(), std::size_t{32} << 20);
  Random random(29);
  std::vector<Stored> live;
  std::uint64_t time = 0;
  const auto add = [&] {
    const std::size_t bytes = random.chance(3) ? random.below(40000) : random.below(1500);
    std::string text = text_of(random.next(), 30 + bytes);
    const auto cell = column.encode(Value::string(text));
    REQUIRE(cell.ok());
    live.push_back({*cell, std::move(text)});
  };
  const auto take = [&] {
    std::swap(live[random.below(live.size())], live.back());
    const columns::Cell cell = live.back().cell;
    live.pop_back();
    return cell;
  };
  const auto give_back = [&](const columns::Cell& cell, std::uint64_t since) {
    column->give_back_text(cell.low, columns::text_cell::length_of(cell.high), since);
  };
  std::size_t wrong = 0;
  for (int round = 0; round < 12; ++round) {
    for (int i = 0; i < 400; ++i) add();
    if (round % 3 == 1) REQUIRE(column.reopen().ok());
    std::vector<columns::Cell> waiting;  // dead before the sweep, given back behind it
    for (int i = 0; i < 350; ++i) {
      const columns::Cell dead = take();
      if (random.chance(30)) give_back(dead, ++time);
      if (random.chance(30)) waiting.push_back(dead);
    }
    const std::uint64_t reusable = column->heap().bytes_reusable();
    columns::TextMarks marks = column->heap().begin_sweep();
    for (int i = 0; i < 20; ++i) add();
    for (const Stored& stored : live) {
      const bool is_shared = random.chance(20);
      marks.mark(stored.cell.low, stored.text.size(), is_shared);
    }
    for (int i = 0; i < 20; ++i) add();
    const std::uint64_t since = ++time;
    for (int i = 0; i < 10; ++i) give_back(take(), ++time);
    column->heap().end_sweep(marks, since);
    CHECK(column->heap().bytes_reusable() > reusable);
    for (const columns::Cell& dead : waiting) give_back(dead, since);
    for (int i = 0; i < 100; ++i) add();
    for (const Stored& stored : live) wrong += at(column, stored.cell) == stored.text ? 0 : 1;
  }
  CHECK(wrong == 0);
  // 200 texts more live after each round; without sweeps all 5,000 or so would stay.
  CHECK(column->bytes_in_pool() < 9 * (std::uint64_t{1} << 20) / 2);
}

// The length in such a cell is not trusted, however often the heap is swept.
TEST_CASE("a text from before opening is not given back after two sweeps", "[columns]") {
  TestColumn column(direct_string());
  const std::string text = text_of(1, 100);
  const auto old = column.encode(Value::string(text));
  REQUIRE(old.ok());
  REQUIRE(column.reopen().ok());
  for (std::uint64_t since = 1; since <= 2; ++since) {
    columns::TextMarks marks = column->heap().begin_sweep();
    marks.mark(old->low, text.size(), false);
    column->heap().end_sweep(marks, since);
  }
  const std::uint64_t reusable = column->heap().bytes_reusable();
  column->give_back_text(old->low, 100, 3);
  CHECK(column->heap().bytes_reusable() == reusable);
}

TEST_CASE("a sweep that is given up changes nothing", "[columns]") {
  TestColumn column(direct_string());
  REQUIRE(column.encode(Value::string(std::string_view(text_of(1, 100)))).ok());
  columns::TextMarks marks = column->heap().begin_sweep();
  REQUIRE(column.encode(Value::string(std::string_view(text_of(2, 100)))).ok());
  column->heap().give_up_sweep();
  CHECK(column->heap().bytes_reusable() == 0);
  marks = column->heap().begin_sweep();
  column->heap().end_sweep(marks, 1);
  CHECK(column->heap().bytes_reusable() >= 200);
}

TEST_CASE("a heap without space says so", "[columns]") {
  TestColumn column(direct_string(), std::size_t{128} << 10);
  CHECK(column.encode(Value::string(std::string_view(std::string(std::size_t{1} << 20, 'x'))))
            .code() == StatusCode::kOutOfSpace);
  CHECK(column.encode(Value::string(std::string_view(text_of(4, 20)))).ok());
  std::size_t stored = 0;
  while (column.encode(Value::string(std::string_view(text_of(stored, 1000)))).ok()) ++stored;
  CHECK(stored > 20);
  CHECK(column.reopen().ok());
}

TEST_CASE("a text cell that leads out of the pool, or to its beginning, has no text", "[columns]") {
  const std::vector<std::byte> pool(256, std::byte{'x'});
  const auto text_at = [&](std::uint64_t offset) {
    const columns::Cell cell = columns::text_cell::make_out_of_line(offset, 20);
    std::byte stored[16];
    std::memcpy(stored, &cell.low, 8);
    std::memcpy(stored + 8, &cell.high, 8);
    return columns::text_cell::view(stored, pool.data(), pool.size());
  };
  CHECK(text_at(64) == std::string(20, 'x'));
  CHECK(text_at(236).size() == 20);
  for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{237}, ~std::uint64_t{0}})
    CHECK(text_at(offset).empty());
}

TEST_CASE("a damaged heap is reported", "[columns]") {
  TestColumn column(direct_string());
  REQUIRE(column.encode(Value::string(std::string_view(text_of(1, 100)))).ok());
  columns::StringHeapLayout& heap = column.layout().heap;
  auto* chunk = column.pool().at(
      pmem::OffsetPtr<columns::StringHeapChunkLayout>{heap.chunks.inline_chunks[0]});
  SECTION("the magic of a chunk") { chunk->magic ^= 1; }
  SECTION("the size of a chunk") { chunk->bytes += 64; }
  SECTION("an end before the beginning") { heap.reserved_end = 8; }
  SECTION("an end behind the chunk") { heap.reserved_end = 1 << 30; }
  SECTION("an end in a chunk that is not there") { heap.reserved_end |= std::uint64_t{5} << 40; }
  SECTION("a chunk outside the pool") { heap.chunks.inline_chunks[0] = std::uint64_t{1} << 50; }
  const Status status = column.reopen();
  INFO(status.to_string());
  CHECK(status.code() == StatusCode::kCorrupt);
}

}  // namespace flugs::test
