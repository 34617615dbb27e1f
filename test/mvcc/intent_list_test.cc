#include "mvcc/intent_list.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <random>
#include <set>
#include <vector>

namespace flugs::mvcc {
namespace {

Write write_of(std::uint32_t row, bool deletes, std::uint32_t table = 1) {
  return {nullptr, table, row, 16, deletes};
}

std::vector<Intent> plain(const std::vector<Write>& writes) {
  std::vector<Intent> all;
  for (const Write& write : writes)
    all.push_back(make_intent(write.deletes, write.table, write.row));
  std::sort(all.begin(), all.end());
  return all;
}

std::vector<Intent> read(const std::vector<Intent>& words) {
  std::vector<Intent> all;
  for_each_intent(words, [&](Intent intent) { all.push_back(intent); });
  std::sort(all.begin(), all.end());
  return all;
}

TEST_CASE("the intents of a small transaction have a word each", "[mvcc]") {
  std::vector<Write> writes;
  for (std::uint32_t row = 64; row > 0; --row) writes.push_back(write_of(row, row % 2 == 0));
  const std::vector<Intent> words = intents_of(writes);
  CHECK(words.size() == writes.size());
  CHECK(words.front() == make_intent(true, 1, 64));  // in the order of the writes
  CHECK(read(words) == plain(writes));
}

TEST_CASE("deleting rows that stand together takes two words for 64 of them", "[mvcc]") {
  std::vector<Write> writes;
  for (std::uint32_t row = 0; row < 64 * 1000; ++row) writes.push_back(write_of(row, true));
  std::shuffle(writes.begin(), writes.end(), std::mt19937(1));
  const std::vector<Intent> words = intents_of(writes);
  CHECK(words.size() == 2000);
  CHECK(read(words) == plain(writes));
}

TEST_CASE("intents name exactly the writes, whatever these are", "[mvcc]") {
  std::mt19937_64 random(7);
  for (int round = 0; round < 300; ++round) {
    std::set<std::uint64_t> seen;
    std::vector<Write> writes;
    const std::uint32_t rows = round % 3 == 0 ? 300 : round % 3 == 1 ? 100'000 : 0xFFFFFFFF;
    const std::size_t count = 1 + random() % 1000;
    while (writes.size() < count && seen.size() < rows) {
      const auto row = static_cast<std::uint32_t>(random() % rows) + (round % 7 == 0 ? 1 : 0);
      const bool deletes = random() % 2 == 0;
      const auto table = static_cast<std::uint32_t>(1 + random() % 2 * 0x1FFFFFFE);
      if (!seen.insert(make_intent(deletes, table, row)).second) continue;
      writes.push_back(write_of(row, deletes, table));
      if (seen.size() >= 600 && rows == 300) break;
    }
    const std::vector<Intent> words = intents_of(writes);
    REQUIRE(words.size() <= writes.size());
    REQUIRE(read(words) == plain(writes));
  }
}

TEST_CASE("words of a damaged pool are read to their end and no further", "[mvcc]") {
  std::mt19937_64 random(3);
  for (int round = 0; round < 1000; ++round) {
    std::vector<Intent> words(random() % 20);
    for (Intent& word : words) word = random();
    std::size_t visited = 0;
    for_each_intent(words, [&](Intent intent) {
      ++visited;
      CHECK(is_intent(intent));
      CHECK_FALSE(has_mask(intent));
    });
    CHECK(visited <= words.size() * 64);
  }
}

}  // namespace
}  // namespace flugs::mvcc
