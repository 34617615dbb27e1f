#include "columns/index/hash_index.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include "base/hash.h"
#include "base/zeroed_memory.h"
#include "columns/index/hash_index_builder.h"
#include "test/support/random.h"

namespace flugs::columns {
namespace {

void insert(HashIndex& index, std::uint64_t hash, std::uint32_t payload) {
  index.edit(hash, [&](HashIndex::Editor& editor) {
    editor.insert(payload);
    return true;
  });
}

bool erase(HashIndex& index, std::uint64_t hash, std::uint32_t payload) {
  return index.edit(hash, [&](HashIndex::Editor& editor) { return editor.erase(payload); });
}

std::multiset<std::uint32_t> found(const HashIndex& index, std::uint64_t hash) {
  Candidates candidates;
  index.lookup(hash, candidates);
  const auto view = candidates.view();
  return {view.begin(), view.end()};
}

TEST_CASE("kept memory of a small index comes back empty", "[columns]") {
  keep_zeroed_memory(4);
  const std::vector<std::pair<std::uint64_t, std::uint32_t>> entries = {
      {0, 1}, {0x123456789abcdef0u, 2}, {~std::uint64_t{0}, 3}};
  for (int round = 0; round < 3; ++round) {
    HashIndex index;
    REQUIRE(index.size() == 0);
    for (const auto& [hash, payload] : entries) {
      Candidates found;
      index.lookup(hash, found);
      REQUIRE(found.view().empty());
      insert(index, hash, payload);
    }
    CHECK(index.size() == entries.size());
    std::size_t visited = 0;
    index.for_each([&](std::uint32_t) { ++visited; });
    CHECK(visited == entries.size());
  }
  keep_zeroed_memory(0);
}

}  // namespace

TEST_CASE("an empty hash index finds nothing and is small", "[columns]") {
  const HashIndex index;
  CHECK(found(index, 42).empty());
  CHECK(index.size() == 0);
  CHECK(index.memory_bytes() <= std::size_t{64} << 10);
}

TEST_CASE("a hash index is a multimap, whatever it grows to", "[columns]") {
  HashIndex index;
  std::map<std::uint64_t, std::multiset<std::uint32_t>> model;
  test::Random random(7);
  std::size_t size = 0;
  for (int i = 0; i < 200000; ++i) {
    const std::uint64_t hash = mix64(random.below(60000));
    const auto payload = static_cast<std::uint32_t>(random.below(0xFFFFFFFEu));
    auto& payloads = model[hash];
    if (!payloads.empty() && random.chance(35)) {
      CHECK(erase(index, hash, *payloads.begin()));
      payloads.erase(payloads.begin());
      --size;
    } else {
      insert(index, hash, payload);
      payloads.insert(payload);
      ++size;
    }
  }
  CHECK(index.size() == size);
  std::size_t wrong = 0;
  std::size_t more = 0;  // hashes with the same upper 32 bits
  for (const auto& [hash, payloads] : model) {
    const auto candidates = found(index, hash);
    wrong += std::includes(candidates.begin(), candidates.end(), payloads.begin(), payloads.end())
                 ? 0
                 : 1;
    more += candidates.size() - payloads.size();
  }
  CHECK(more < 100);
  CHECK(wrong == 0);
  std::size_t visited = 0;
  index.for_each([&](std::uint32_t) { ++visited; });
  CHECK(visited == size);
}

TEST_CASE("replacing keeps the number of entries", "[columns]") {
  HashIndex index;
  insert(index, 5, 1);
  insert(index, 5, 2);
  index.edit(5, [&](HashIndex::Editor& editor) {
    CHECK(editor.replace(1, 3));
    CHECK_FALSE(editor.replace(1, 4));
    return true;
  });
  CHECK(found(index, 5) == std::multiset<std::uint32_t>{2, 3});
  CHECK_FALSE(erase(index, 5, 1));
  CHECK(index.size() == 2);
}

TEST_CASE("the largest payload is kept", "[columns]") {
  HashIndex index;
  insert(index, 1, 0);
  insert(index, 1, 0xFFFFFFFEu);
  CHECK(found(index, 1) == std::multiset<std::uint32_t>{0, 0xFFFFFFFEu});
}

TEST_CASE("many entries of one hash do not make the index split for ever", "[columns]") {
  HashIndex index;
  for (std::uint32_t i = 0; i < 20000; ++i) insert(index, 77, i);
  CHECK(found(index, 77).size() == 20000);
  CHECK(index.memory_bytes() < std::size_t{4} << 20);
  for (std::uint32_t i = 0; i < 20000; ++i) CHECK(erase(index, 77, i));
  CHECK(index.size() == 0);
}

TEST_CASE("the editor sees what it has inserted and can stop early", "[columns]") {
  HashIndex index;
  index.edit(9, [&](HashIndex::Editor& editor) {
    CHECK_FALSE(editor.any([](std::uint32_t) { return true; }));
    for (std::uint32_t i = 0; i < 20; ++i) editor.insert(i);
    std::size_t seen = 0;
    CHECK(editor.any([&](std::uint32_t) { return ++seen == 3; }));
    CHECK(seen == 3);
    return true;
  });
}

TEST_CASE("candidates beyond two buckets spill", "[columns]") {
  Candidates candidates;
  for (std::uint32_t i = 0; i < 100; ++i) {
    candidates.push(i);
    CHECK(candidates.view().size() == i + 1);
  }
  std::vector<std::uint32_t> all(candidates.view().begin(), candidates.view().end());
  CHECK(std::is_sorted(all.begin(), all.end()));
  candidates.clear();
  CHECK(candidates.view().empty());
  candidates.push(7);
  CHECK(candidates.view().front() == 7);
}

TEST_CASE("an index built by several sources holds every entry once", "[columns]") {
  constexpr std::uint32_t kSources = 3;
  for (const std::uint32_t entries : {0u, 10u, 50000u, 400000u}) {
    HashIndex index;
    HashIndexBuilder builder(index, entries, kSources);
    for (std::uint32_t i = 0; i < entries; ++i)
      builder.source(i % kSources).add(hash_integer(i), i);
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t)
      threads.emplace_back([&, t] {
        for (std::size_t g = static_cast<std::size_t>(t); g < builder.groups(); g += 2)
          builder.insert_group(g);
      });
    for (std::thread& thread : threads) thread.join();
    CHECK(index.size() == entries);
    std::size_t wrong = 0;
    for (std::uint32_t i = 0; i < entries; ++i)
      wrong += found(index, hash_integer(i)).count(i) == 1 ? 0 : 1;
    CHECK(wrong == 0);
    insert(index, 1, 1);  // and goes on as usual
    CHECK(found(index, 1).count(1) == 1);
  }
}

TEST_CASE("a hash index grows and gets many entries while other threads use it", "[columns]") {
  constexpr std::uint32_t kThere = 5000;
  constexpr std::uint32_t kEach = 20'000;
  constexpr std::uint32_t kWriters = 2;
  HashIndex index;
  for (std::uint32_t i = 0; i < kThere; ++i) insert(index, hash_integer(i), i);
  std::vector<std::thread> threads;
  std::vector<std::size_t> lost(kWriters + 1);
  const auto is_there = [&](std::uint32_t i) {
    Candidates candidates;
    index.lookup(hash_integer(i), candidates);
    const auto view = candidates.view();
    return std::find(view.begin(), view.end(), i) != view.end();
  };
  for (std::uint32_t t = 0; t < kWriters; ++t)
    threads.emplace_back([&, t] {
      const std::uint32_t first = kThere + t * kEach;
      for (std::uint32_t i = first; i < first + kEach; ++i) {
        insert(index, hash_integer(i), i);
        lost[t] += is_there(i) && is_there(i % kThere) ? 0 : 1;
      }
    });
  threads.emplace_back([&] {
    const std::uint32_t first = kThere + kWriters * kEach;
    index.make_room(500'000);
    HashIndexBuilder builder(HashIndexBuilder::InUse(), index, kEach, 2);
    for (std::uint32_t i = first; i < first + kEach; ++i)
      builder.source(i % 2).add(hash_integer(i), i);
    for (std::size_t group = 0; group < builder.groups(); ++group)
      builder.for_each_in_group(
          group, [&](std::uint64_t hash, std::uint32_t payload) { insert(index, hash, payload); });
    for (std::uint32_t i = first; i < first + kEach; ++i) lost[kWriters] += is_there(i) ? 0 : 1;
  });
  for (std::thread& thread : threads) thread.join();
  CHECK(lost == std::vector<std::size_t>(kWriters + 1));
  CHECK(index.size() == kThere + (kWriters + 1) * kEach);
  CHECK(index.segment_count() >= 256);
  const std::size_t bytes = index.memory_bytes();
  index.make_room(500'000);
  CHECK(index.memory_bytes() == bytes);
}

}  // namespace flugs::columns
