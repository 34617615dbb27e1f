// A dictionary whose hints opening left: they are made while other threads look up and add values.
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "bench/support/random.h"
#include "columns/cells/unflushed.h"
#include "test/support/complaint.h"
#include "test/support/test_column.h"

namespace flugs::test {
namespace {

constexpr std::int64_t kKept = 500;
constexpr std::int64_t kLeft = 6'000;
constexpr std::int64_t kNew = 3'000;
constexpr std::int64_t kAll = kKept + kLeft + kNew;

/// The i-th of many values; `text` holds it.
Value value_of(Type type, std::int64_t i, std::string& text) {
  if (type != Type::kString) return Value::from_raw(type, i);
  text = i % 2 == 0 ? std::to_string(i) : "of more than fifteen bytes " + std::to_string(i);
  return Value::string(text);
}

/// ValueIDs 0 to kKept + kLeft - 1 belong to the values of these numbers; the threads add the
/// others.
void encode_some(TestColumn& column, std::vector<std::atomic<std::uint32_t>>& ids,
                 std::uint64_t seed, Complaint& complaint) {
  bench::Random random(seed);
  pmem::Persister persister(column.pool().medium());
  columns::Dictionary& dictionary = column->dictionary();
  for (int round = 0; round < rounds_of(20'000, 6'000) && !complaint.failed(); ++round) {
    std::string text;
    const auto i = static_cast<std::int64_t>(random.between(0, kAll - 1));
    const Value value = value_of(column->type(), i, text);
    columns::Unflushed unflushed;
    const auto id = dictionary.encode(value, unflushed, persister);
    if (!complaint.expect(id.ok(), "encode: " + id.status().to_string())) return;
    unflushed.flush(persister, "commit/1");
    persister.fence("commit/1");
    unflushed.mark_durable();
    std::uint32_t known = columns::Dictionary::kNone;
    ids[static_cast<std::size_t>(i)].compare_exchange_strong(known, *id);
    complaint.expect(known == columns::Dictionary::kNone || known == *id,
                     "a value has two ValueIDs");
    complaint.expect(dictionary.find(value) == *id, "a value is not found");
  }
}

}  // namespace

TEST_CASE("hints that opening left are made while values are added", "[concurrency]") {
  for (const Type type : {Type::kInt32, Type::kInt64, Type::kString}) {
    INFO(to_string(type));
    TestColumn column(column_schema(type), std::size_t{16} << 20, true);
    std::string text;
    std::vector<std::atomic<std::uint32_t>> ids(kAll);
    for (std::int64_t i = 0; i < kAll; ++i)
      ids[static_cast<std::size_t>(i)] =
          i < kKept + kLeft ? static_cast<std::uint32_t>(i) : columns::Dictionary::kNone;
    for (std::int64_t i = 0; i < kKept + kLeft; ++i) {
      REQUIRE(column.encode(value_of(type, i, text)).ok());
      if (i != kKept - 1) continue;
      while (column->dictionary().hints()->keep(column.persister())) {
      }
    }
    column.lose_hints(kKept);
    REQUIRE(column.reopen_unindexed().ok());
    REQUIRE(column.index().ok());
    REQUIRE(column->dictionary().hints()->has_left());
    Complaint complaint;
    std::vector<std::thread> threads;
    for (std::uint64_t thread = 0; thread < 3; ++thread)
      threads.emplace_back([&, thread] { encode_some(column, ids, thread + 1, complaint); });
    threads.emplace_back([&] {
      pmem::Persister persister(column.pool().medium());
      while (column->dictionary().hints()->has_left()) {
        column->dictionary().hints()->keep(persister, columns::DictionaryHints::kKeptMax,
                                           columns::DictionaryHints::kEnteredMax);
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      }
    });
    for (std::thread& thread : threads) thread.join();
    INFO(complaint.what());
    CHECK_FALSE(complaint.failed());
    CHECK(column->dictionary().verify().ok());
  }
}

}  // namespace flugs::test
