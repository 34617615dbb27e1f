// Ordered keys right after opening, while a thread makes them: ranges, and rows that move in them.
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

constexpr std::int32_t kShelves = 600;
constexpr std::int32_t kPlaces = 64;  // per shelf, for as many things; some share a place
constexpr int kMovers = 2;
constexpr int kStockLives = 3;

/// Things move within their shelf, in transactions, so each shelf keeps its number.
struct Stock {
  TemporaryDatabase database;
  TableId table;

  Stock() {
    TableSchema schema("stock");
    schema.column("thing", Type::kInt32).column("place", Type::kInt32);
    schema.primary_key({"thing"}).key("by_place", {"place"});
    table = must(database->create_table(schema));
    Transaction t = must(database->begin());
    for (std::int32_t i = 0; i < kShelves * kPlaces; ++i)
      must(t.insert(table, {Value::int32(i), Value::int32(i)}));
    must(t.commit());
  }
};

std::int32_t place_on_shelf(Random& random, std::int32_t thing) {
  return thing / kPlaces * kPlaces + static_cast<std::int32_t>(random.below(kPlaces));
}

/// Changes a thing's place, or removes and reinserts it.
Status move(Stock& stock, Transaction& t, Random& random, std::int32_t thing) {
  Result<Row> row = t.get({stock.table, 0}, {Value::int32(thing)});
  if (!row.ok()) return row.status();
  const Value place = Value::int32(place_on_shelf(random, thing));
  if (random.chance(50)) return t.update(stock.table, row->id(), {{ColumnId(1), place}}).status();
  if (Status s = t.remove(stock.table, row->id()); !s.ok()) return s;
  return t.insert(stock.table, {Value::int32(thing), place}).status();
}

void move_things(Stock& stock, std::uint64_t seed, const std::atomic<bool>& stops,
                 Complaint& complaint) {
  Random random(seed);
  while (!stops.load() && !complaint.failed()) {
    Result<Transaction> t = stock.database->begin();
    Status s = t.status();
    for (int i = 0; s.ok() && i < 3; ++i)
      s = move(stock, *t, random, static_cast<std::int32_t>(random.below(kShelves * kPlaces)));
    if (s.ok() && random.chance(80)) s = t->commit();
    complaint.expect(s.ok() || s.code() == StatusCode::kConflict, s.to_string());
  }
}

void count_shelves(Stock& stock, std::uint64_t seed, const std::atomic<bool>& stops,
                   Complaint& complaint) {
  Random random(seed);
  while (!stops.load() && !complaint.failed()) {
    Result<Transaction> t = stock.database->begin(AccessMode::kReadOnly);
    if (!complaint.expect(t.ok(), t.status().to_string())) return;
    for (int i = 0; i < 3; ++i) {
      const auto shelf = static_cast<std::int32_t>(random.below(kShelves));
      const std::vector<Value> low = {Value::int32(shelf * kPlaces)};
      const std::vector<Value> high = {Value::int32((shelf + 1) * kPlaces)};
      int found = 0;
      std::int64_t sum = 0;
      std::int64_t last = 0;
      bool is_sorted = true;
      const Status s = t->rows({stock.table, 1}, {low, true}, {high, false}, [&](const Row& row) {
        ++found;
        sum += row.get_unchecked(ColumnId(0)).raw();
        is_sorted = is_sorted && last <= row.get_unchecked(ColumnId(1)).raw();
        last = row.get_unchecked(ColumnId(1)).raw();
        return true;
      });
      const std::int64_t expected =
          std::int64_t{shelf} * kPlaces * kPlaces + kPlaces * (kPlaces - 1) / 2;
      complaint.expect(
          s.ok() && found == kPlaces && sum == expected && is_sorted,
          fmt::format("shelf {}: {} things, their sum {} of {}, {}: {}", shelf, found, sum,
                      expected, is_sorted ? "sorted" : "not sorted", s.to_string()));
    }
  }
}

}  // namespace

TEST_CASE("ranges are whole while their key is made", "[late]") {
  Stock stock;
  Complaint complaint;
  for (int life = 0; life < kStockLives && !complaint.failed(); ++life) {
    stock.database.reopen();
    std::atomic<bool> stops{false};
    std::vector<std::thread> threads;
    const auto seed = static_cast<std::uint64_t>(life) * 8;
    for (std::uint64_t i = 0; i < kMovers; ++i)
      threads.emplace_back([&, i] { move_things(stock, seed + i, stops, complaint); });
    threads.emplace_back([&] { count_shelves(stock, seed + 7, stops, complaint); });
    const Status finished = stock.database->finish_opening();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    stops.store(true);
    for (std::thread& thread : threads) thread.join();
    INFO(complaint.what());
    REQUIRE_FALSE(complaint.failed());
    must(finished);
    must(stock.database->check());
  }
}

}  // namespace flugs::test
