// Columns are added and dropped, and the layout of the delta changes, while other threads write,
// read, query and merge.
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "bench/support/random.h"
#include "flugs/merge.h"
#include "flugs/query.h"
#include "test/support/complaint.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

constexpr std::int64_t kItems = 600;
constexpr ColumnId kTwice{1};

/// Rows with a number and its double. Each added column has its own number as default (below zero,
/// so that it needs wider cells than written values). Threads write 1000 more than the number. Each
/// column is dropped later.
class ChangingTable {
 public:
  ChangingTable() {
    TableSchema schema("changing");
    schema.column("n", Type::kInt64).column("twice", Type::kInt32).primary_key({"n"});
    schema.key("by_twice", {"twice"});
    table = must(database->create_table(schema));
    Transaction t = must(database->begin());
    for (std::int64_t n = 0; n < kItems; ++n) must(t.insert(table, {row_of(n)[0], row_of(n)[1]}));
    must(t.commit());
  }

  static std::vector<Value> row_of(std::int64_t n) {
    return {Value::int64(n), Value::int32(static_cast<std::int32_t>(2 * n))};
  }

  bool is_right(const Value& value, std::size_t column) const {
    if (value.is_null()) return true;  // dropped meanwhile
    const auto number = static_cast<std::int64_t>(column);
    if (value.type() != Type::kString)
      return value.raw() == -number || value.raw() == number + 1000;
    const std::string text = text_of(number);
    return value.as_string() == text || value.as_string() == text + "1000";
  }
  static std::string text_of(std::int64_t number) {
    return (number % 4 == 1 ? std::string(40, 't') : "t") + std::to_string(number);
  }

  void add_and_drop(bench::Random& random, Complaint& complaint) {
    const std::size_t count = column_count.load(std::memory_order_acquire);
    const auto number = static_cast<std::int64_t>(count);
    ColumnSchema column;
    column.name = "c" + std::to_string(count);
    column.type = number % 2 == 0 ? Type::kInt64 : Type::kString;
    column.encoding = random.between(0, 1) == 0 ? Encoding::kDirect : Encoding::kDictionary;
    column.nullable = random.between(0, 1) == 0;
    const std::string text = text_of(number);
    column.default_value = Constant(number % 2 == 0 ? Value::int64(-number) : Value::string(text));
    const auto added = database->add_column(table, column);
    complaint.expect(added.ok() && added->value() == count, "add_column");
    column_count.store(count + 1, std::memory_order_release);
    change_types(count, complaint);
    const DeltaLayout layout = count % 4 < 2 ? DeltaLayout::kColumns : DeltaLayout::kRows;
    std::vector<std::vector<std::string>> groups;
    if (count % 4 == 1) groups = {{column.name, "c" + std::to_string(count - 1)}};
    complaint.expect(database->set_delta_layout(table, layout, groups).ok(), "set_delta_layout");
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    if (count > 4)
      complaint.expect(
          database->drop_column(table, ColumnId(static_cast<std::uint16_t>(count - 3))).ok(),
          "drop_column");
  }

  // Rows keep their values: held directly from then on, or as an int64, for which an int32 may
  // stand.
  void change_types(std::size_t count, Complaint& complaint) {
    if (count == 5)
      complaint.expect(database->change_type(table, kTwice, Type::kInt64).ok(), "int32 to int64");
    if (count % 3 != 0) return;
    const ColumnId changed(static_cast<std::uint16_t>(count - 1));
    const Type type = changed.value() % 2 == 0 ? Type::kInt64 : Type::kString;
    complaint.expect(database->change_type(table, changed, type).ok(), "change_type");
  }

  void write(bench::Random& random, Complaint& complaint) {
    auto t = database->begin();
    if (!t.ok()) return;
    const auto n = static_cast<std::int64_t>(random.between(0, kItems - 1));
    const auto row = t->get({table, 0}, {Value::int64(n)});
    if (!complaint.expect(row.ok(), "a row is not there")) return;
    check_row(*row, complaint);
    const std::size_t column = column_count.load(std::memory_order_acquire) - 1;
    Status done;
    if (random.between(0, 3) == 0) {
      done = t->remove(table, row->id());
      // As if only the first columns existed.
      if (done.ok()) done = t->insert(table, row_of(n)).status();
    } else if (column > 1) {
      const auto number = static_cast<std::int64_t>(column);
      const std::string text = text_of(number) + "1000";
      const Value value = number % 2 == 0 ? Value::int64(number + 1000) : Value::string(text);
      done = t->update(table, row->id(), {{ColumnId(static_cast<std::uint16_t>(column)), value}})
                 .status();
    }
    const bool may_fail =
        done.code() == StatusCode::kConflict ||
        (done.code() == StatusCode::kInvalidArgument && done.message().ends_with("dropped"));
    complaint.expect(done.ok() || may_fail, "write: " + done.to_string());
    if (done.ok() && random.between(0, 9) != 0)
      complaint.expect(t->commit().ok(), "commit");
    else
      t->abort();
  }

  void check_row(const Row& row, Complaint& complaint) const {
    const std::size_t count = column_count.load(std::memory_order_acquire);
    std::vector<Value> values(count);
    row.get_all(values);
    complaint.expect(values[1].raw() == 2 * values[0].raw(), "another row's column");
    for (std::size_t i = 2; i < count; ++i)
      complaint.expect(is_right(values[i], i),
                       "row: column " + std::to_string(i) + " is " + values[i].to_string());
  }

  void read(Complaint& complaint) {
    const auto t = database->begin(AccessMode::kReadOnly);
    if (!t.ok()) return;
    const std::size_t count = column_count.load(std::memory_order_acquire);
    const ColumnId last(static_cast<std::uint16_t>(count - 1));
    std::int64_t sum = 0;
    const Status scanned = t->scan(table, {kTwice, last}, [&](const ScanBatch& batch) {
      for (std::size_t r = 0; r < batch.row_count(); ++r) {
        sum += batch.get_unchecked(0, r).raw();
        complaint.expect(count < 3 || is_right(batch.get_unchecked(1, r), count - 1),
                         "scan: " + batch.get_unchecked(1, r).to_string());
      }
      return true;
    });
    const bool was_dropped = scanned.message().ends_with("dropped");
    complaint.expect(was_dropped || (scanned.ok() && sum == kItems * (kItems - 1)), "scan");
    if (count < 3) return;
    const std::string name = "c" + std::to_string(count - 1);
    const auto groups =
        query::Query::table("changing").group_by({name.c_str()}, {query::count().as("n")}).run(*t);
    if (!groups.ok()) {
      complaint.expect(groups.status().message().find("no column") != std::string_view::npos,
                       "query: " + groups.status().to_string());
      return;
    }
    std::int64_t rows = 0;
    for (std::size_t r = 0; r < groups->row_count(); ++r) {
      rows += groups->get_unchecked(r, 1).as_int64();
      complaint.expect(is_right(groups->get_unchecked(r, 0), count - 1),
                       "query: " + groups->get_unchecked(r, 0).to_string());
    }
    complaint.expect(rows == kItems, "query: rows");
  }

  TemporaryDatabase database;
  TableId table;
  std::atomic<std::size_t> column_count{2};
};

}  // namespace

TEST_CASE("columns come and go while others write, read and merge", "[concurrency]") {
  ChangingTable world;
  Complaint complaint;
  std::atomic<bool> stops{false};
  std::vector<std::thread> threads;
  for (std::uint64_t seed = 1; seed <= 2; ++seed)
    threads.emplace_back([&, seed] {
      bench::Random random(seed);
      while (!stops && !complaint.failed()) world.write(random, complaint);
    });
  threads.emplace_back([&] {
    while (!stops && !complaint.failed()) world.read(complaint);
  });
  threads.emplace_back([&] {
    MergeOptions everything;
    everything.scope = MergeScope::kEverything;
    while (!stops && !complaint.failed()) {
      const auto merged = world.database->merge(world.table, everything);
      complaint.expect(merged.ok() || merged.code() == StatusCode::kBusy,
                       "merge: " + merged.status().to_string());
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
    }
  });
  bench::Random random(9);
  for (int i = 0; i < 12 * kEffort && !complaint.failed(); ++i)
    world.add_and_drop(random, complaint);
  stops = true;
  for (std::thread& thread : threads) thread.join();
  INFO(complaint.what());
  CHECK_FALSE(complaint.failed());
  must(world.database->check());
  world.database.reopen();
  must(world.database->check());
  world.read(complaint);
  CHECK_FALSE(complaint.failed());
}

}  // namespace flugs::test
