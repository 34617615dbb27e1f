// The merge: rows move into row groups, keep their ids and their history, and survive a restart.
#include "flugs/merge.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "flugs/expression.h"
#include "test/support/complaint.h"
#include "test/support/random.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

constexpr ColumnId kItem{0};
constexpr ColumnId kShopCode{1};
constexpr ColumnId kLabel{2};
constexpr ColumnId kAmount{3};
constexpr ColumnId kNote{4};

MergeOptions everything() {
  MergeOptions options;
  options.scope = MergeScope::kEverything;
  options.patience = std::chrono::milliseconds(20);
  options.threads = 2;
  return options;
}

struct Expected {
  std::int64_t code;
  std::string text;
  std::int64_t amount;
};

/// A table with all kinds of columns, and its expected content.
class Shop {
 public:
  Shop() {
    TableSchema schema("shop");
    schema.column("id", Type::kInt32).column("code", Type::kInt64).column("text", Type::kString);
    schema.column("amount", Type::kDecimal).direct().column("note", Type::kBytes).direct();
    schema.primary_key({"id"}).key("code", {"code", "id"}).ordered();
    table = must(database->create_table(schema));
  }

  static Expected expected_of(std::int64_t id) {
    return {id % 7, "text " + std::to_string(id % 11), id * 100 - 50};
  }
  static std::string note_of(std::int64_t id) {
    return id % 3 == 0 ? std::string() : std::string(static_cast<std::size_t>(id % 40), 'n');
  }

  void insert(std::int64_t first, std::int64_t end) {
    Transaction t = must(database->begin(AccessMode::kReadWrite));
    for (std::int64_t id = first; id < end; ++id) {
      const Expected e = expected_of(id);
      const std::string note = note_of(id);
      must(t.insert(table, {Value::int32(static_cast<std::int32_t>(id)), Value::int64(e.code),
                            Value::string(e.text), Value::decimal_units(e.amount),
                            note.empty() ? Value::null() : Value::bytes(note)}));
      rows[id] = e;
    }
    must(t.commit());
  }
  RowId row_of(Transaction& t, std::int64_t id) {
    return must(t.get({table, 0}, {Value::int32(static_cast<std::int32_t>(id))})).id();
  }
  void update(std::int64_t id, std::int64_t code, std::int64_t amount) {
    Transaction t = must(database->begin(AccessMode::kReadWrite));
    must(t.update(table, row_of(t, id),
                  {{kShopCode, Value::int64(code)}, {kAmount, Value::decimal_units(amount)}}));
    must(t.commit());
    rows[id].code = code;
    rows[id].amount = amount;
  }
  void remove(std::int64_t id) {
    Transaction t = must(database->begin(AccessMode::kReadWrite));
    must(t.remove(table, row_of(t, id)));
    must(t.commit());
    rows.erase(id);
  }
  MergeReport merge() { return must(database->merge(table, everything())); }

  /// Compares by the key, the ordered key and a scan.
  void check(const std::map<std::int64_t, Expected>& wanted, Transaction& t) {
    std::size_t wrong = 0;
    for (const auto& [id, e] : wanted) {
      const auto row = t.get({table, 0}, {Value::int32(static_cast<std::int32_t>(id))});
      const bool right = row.ok() && row->get_unchecked<std::int64_t>(kShopCode) == e.code &&
                         row->get_unchecked<std::string_view>(kLabel) == e.text &&
                         row->get_unchecked<std::int64_t>(kAmount) == e.amount &&
                         row->get_unchecked<std::string_view>(kNote) == note_of(id) &&
                         row->is_null_unchecked(kNote) == note_of(id).empty();
      wrong += right ? 0 : 1;
    }
    CHECK(wrong == 0);
    std::size_t scanned = 0;
    std::int64_t sum = 0;
    std::int64_t expected_sum = 0;
    const std::vector<ColumnId> columns{kItem, kAmount};
    must(t.scan(table, columns, Predicate::all(), [&](const ScanBatch& batch) {
      scanned += batch.row_count();
      for (const std::int64_t amount : batch.column_unchecked<std::int64_t>(1)) sum += amount;
      return true;
    }));
    for (const auto& [id, e] : wanted) expected_sum += e.amount;
    CHECK(scanned == wanted.size());
    CHECK(sum == expected_sum);
    std::size_t ranged = 0;
    must(t.rows({table, 1}, {}, {}, [&](const Row&) {
      ++ranged;
      return true;
    }));
    CHECK(ranged == wanted.size());
  }
  void check() {
    Transaction t = must(database->begin(AccessMode::kReadOnly));
    check(rows, t);
  }

  MemoryDatabase database{std::size_t{64} << 20};
  TableId table;
  std::map<std::int64_t, Expected> rows;
};

TEST_CASE("merged rows read as before, also after a restart", "[engine]") {
  Shop shop;
  shop.insert(0, 5000);
  const MergeReport report = shop.merge();
  CHECK(report.chunks_merged >= 1);
  CHECK(report.rows == 5000);
  CHECK(report.codes == 5000 * 5);
  CHECK(report.bytes_after < report.bytes_before);
  shop.check();
  must(shop.database->verify({}));
  shop.insert(5000, 6000);
  shop.check();
  for (int opened = 0; opened < 2; ++opened) {
    shop.database.reopen();
    shop.check();
    must(shop.database->verify({}));
  }
  CHECK(shop.merge().rows == 1000);
  shop.check();
}

TEST_CASE("merged rows are updated and deleted, and snapshots keep their view", "[engine]") {
  Shop shop;
  shop.insert(0, 3000);
  shop.merge();
  const std::map<std::int64_t, Expected> before = shop.rows;
  Transaction old = must(shop.database->begin(AccessMode::kReadOnly));
  for (std::int64_t id = 0; id < 3000; id += 7) shop.update(id, id + 1000, id);
  for (std::int64_t id = 1; id < 3000; id += 11) shop.remove(id);
  shop.insert(9000, 9100);
  shop.check();
  shop.check(before, old);
  old.abort();
  must(shop.database->verify({}));
  shop.database.reopen();
  shop.check();
  must(shop.database->verify({}));
  // The second merge leaves dead rows out; the third has nothing to do.
  MergeOptions options = everything();
  options.dead_percent = 1;
  const MergeReport report = must(shop.database->merge(shop.table, options));
  CHECK(report.groups_merged >= 1);
  CHECK(report.rows_dropped > 500);
  shop.check();
  must(shop.database->verify({}));
  shop.database.reopen();
  shop.check();
}

TEST_CASE("a key of a merged row is taken, and free when the row is deleted", "[engine]") {
  Shop shop;
  shop.insert(0, 100);
  shop.merge();
  Transaction t = must(shop.database->begin(AccessMode::kReadWrite));
  const std::vector<Value> row{Value::int32(5), Value::int64(0), Value::string(""),
                               Value::decimal_units(0), Value::null()};
  CHECK(t.insert(shop.table, row).code() == StatusCode::kAlreadyExists);
  must(t.remove(shop.table, shop.row_of(t, 5)));
  Transaction other = must(shop.database->begin(AccessMode::kReadWrite));
  CHECK(other.remove(shop.table, shop.row_of(other, 5)).code() == StatusCode::kConflict);
  CHECK(other.insert(shop.table, row).code() == StatusCode::kConflict);
  other.abort();
  must(t.insert(shop.table, row));
  must(t.commit());
  must(shop.database->verify({}));
}

TEST_CASE("a transaction that aborts leaves merged rows as they were", "[engine]") {
  Shop shop;
  shop.insert(0, 500);
  shop.merge();
  Transaction t = must(shop.database->begin(AccessMode::kReadWrite));
  for (std::int64_t id = 0; id < 500; id += 2)
    must(t.update(shop.table, shop.row_of(t, id), {{kShopCode, Value::int64(77)}}));
  for (std::int64_t id = 1; id < 500; id += 2) must(t.remove(shop.table, shop.row_of(t, id)));
  t.abort();
  shop.check();
  must(shop.database->verify({}));
  CHECK(shop.merge().groups_merged == 0);  // no row died
}

TEST_CASE("a merge waits for transactions that began earlier, and says so", "[engine]") {
  Shop shop;
  shop.insert(0, 200);
  Transaction open = must(shop.database->begin(AccessMode::kReadWrite));
  must(open.update(shop.table, shop.row_of(open, 3), {{kShopCode, Value::int64(50)}}));
  const auto busy = shop.database->merge(shop.table, everything());
  CHECK(busy.code() == StatusCode::kBusy);
  CHECK_THAT(std::string(busy.status().message()), Catch::Contains("before the merge"));
  shop.check();
  shop.insert(200, 400);  // rows of the frozen chunk are not taken
  must(open.commit());
  shop.rows[3].code = 50;
  CHECK(shop.merge().rows > 200);
  shop.check();
  must(shop.database->verify({}));
}

TEST_CASE("a group is not merged again for rows that must stay", "[engine]") {
  Shop shop;
  shop.insert(0, 500);
  shop.merge();
  Transaction reader = must(shop.database->begin(AccessMode::kReadOnly));
  Transaction t = must(shop.database->begin(AccessMode::kReadWrite));
  for (std::int64_t id = 0; id < 400; ++id) must(t.remove(shop.table, shop.row_of(t, id)));
  must(t.commit());
  for (std::int64_t id = 0; id < 400; ++id) shop.rows.erase(id);
  CHECK(shop.merge().groups_merged == 0);  // the indexes still name them
  reader.abort();
  const MergeReport report = shop.merge();
  CHECK(report.groups_merged >= 1);
  CHECK(report.rows == shop.rows.size());
  shop.check();
}

TEST_CASE("a merge that leaves rows out gives their texts back at once", "[engine]") {
  constexpr std::int64_t kRows = 4000;
  constexpr std::size_t kTextBytes = 700;
  Random random(1);
  TemporaryDatabase database;
  TableSchema schema("texts");
  schema.column("id", Type::kInt64).column("text", Type::kString).direct().primary_key({"id"});
  const TableId table = must(database->create_table(schema));
  std::vector<std::string> texts;
  Transaction t = must(database->begin());
  for (std::int64_t id = 0; id < kRows; ++id) {
    const std::string& own = texts.emplace_back(random.noise(kTextBytes));
    must(t.insert(table, {Value::int64(id), Value::string(own)}));
  }
  must(t.commit());
  MergeOptions options = everything();
  options.waste_bytes = 0;
  CHECK(must(database->merge(table, options)).columns_rewritten == 0);
  t = must(database->begin());
  for (std::int64_t id = 0; id < kRows; ++id)
    if (id % 10 != 0) must(t.remove({table, 0}, {Value::int64(id)}));
  must(t.commit());
  const MergeReport report = must(database->merge(table, options));
  CHECK(report.columns_rewritten == 1);
  CHECK(report.bytes_given_back >= kRows * kTextBytes);
  t = must(database->begin());
  for (std::int64_t id = 0; id < kRows; id += 10) {
    const Row row = must(t.get({table, 0}, {Value::int64(id)}));
    CHECK(row.get_unchecked<std::string_view>(ColumnId(1)) == texts[static_cast<std::size_t>(id)]);
  }
  t.abort();
  must(database->check());
}

TEST_CASE("the next merge handles chunks that a merge froze and did not reach", "[engine]") {
  Shop shop;
  shop.insert(0, 6000);
  Transaction open = must(shop.database->begin(AccessMode::kReadOnly));
  MergeOptions options;
  options.patience = {};
  CHECK(shop.database->merge(shop.table, options).code() == StatusCode::kBusy);
  open.abort();
  for (std::int64_t id = 0; id < 5900; ++id) shop.remove(id);
  for (int i = 0; i < 5000; ++i) {  // until the dead have left the indexes
    shop.insert(100000, 100001);
    shop.remove(100000);
  }
  options.patience = std::chrono::milliseconds::max();
  const MergeReport report = must(shop.database->merge(shop.table, options));
  CHECK(report.chunks_merged + report.chunks_emptied >= 1);
  CHECK_FALSE(report.releases_later);
  shop.check();
  must(shop.database->verify({}));
}

TEST_CASE("row ids of an emptied chunk are used again", "[engine]") {
  Shop shop;
  std::uint64_t reserved = 0;
  std::uint64_t emptied = 0;
  const int rounds = rounds_of(24, 6);
  for (int round = 0; round < rounds; ++round) {
    shop.insert(0, 2000);
    emptied += shop.merge().chunks_emptied;
    Transaction t = must(shop.database->begin(AccessMode::kReadWrite));
    for (std::int64_t id = 0; id < 2000; ++id) must(t.remove(shop.table, shop.row_of(t, id)));
    must(t.commit());
    shop.rows.clear();
    // Dead rows leave the indexes with later transactions, or with a restart.
    if (round % 2 == 1) {
      shop.database.reopen();
    } else {
      for (int i = 0; i < 5000; ++i) {
        shop.insert(100000, 100001);
        shop.remove(100000);
      }
    }
    emptied += shop.merge().chunks_emptied;
    shop.check();
    must(shop.database->verify({}));
    const TableStatistics statistics = must(shop.database->statistics(shop.table));
    if (round < 3) reserved = statistics.rows_reserved;
    CHECK(statistics.rows_reserved <= 3 * reserved);
  }
  CHECK(emptied >= static_cast<std::uint64_t>(rounds));
}

TEST_CASE("groups without rows take no space, also after a restart", "[engine]") {
  Shop shop;
  shop.insert(0, 20000);
  shop.merge();
  for (std::int64_t id = 0; id < 20000; ++id) shop.remove(id);
  shop.database.reopen();  // the dead leave the indexes
  shop.merge();
  const auto check_space = [&] {
    const TableStatistics table = must(shop.database->statistics(shop.table));
    CHECK(table.groups >= 3);
    CHECK(table.group_rows == 0);
    CHECK(table.main_bytes == 0);
  };
  check_space();
  shop.database.reopen();
  check_space();
  must(shop.database->verify({}));
  shop.insert(20000, 60000);
  shop.merge();
  shop.check();
  shop.database.reopen();
  shop.check();
  must(shop.database->verify({}));
}

TEST_CASE("a group without rows stays while the chunks have room for coming rows", "[engine]") {
  Shop shop;
  shop.insert(0, 6000);
  const MergeOptions full_chunks;
  CHECK(must(shop.database->merge(shop.table, full_chunks)).chunks_merged >= 1);
  for (std::int64_t id = 0; id < 4000; ++id) shop.remove(id);
  shop.database.reopen();  // the dead leave the indexes
  const std::uint64_t delta = must(shop.database->statistics(shop.table)).delta_bytes;
  const MergeReport report = must(shop.database->merge(shop.table, full_chunks));
  CHECK(report.groups_merged >= 1);
  CHECK(report.chunks_emptied == 0);
  CHECK(must(shop.database->merge(shop.table, full_chunks)).chunks_emptied == 0);
  CHECK(must(shop.database->statistics(shop.table)).delta_bytes <= delta);
  shop.insert(6000, 6000 + 3 * 2048);  // more than there is room for in a chunk
  shop.check();
  must(shop.database->verify({}));
}

// A slot has free rows of a chunk and an open transaction while two merges empty the chunk. The
// third merge gives what the slot has to all.
TEST_CASE("rows that a slot kept are forgotten when their chunk is emptied", "[engine]") {
  Shop shop;
  const TableId other = must(shop.database->create_table(
      TableSchema("other").column("id", Type::kInt64).primary_key({"id"})));
  // The slot looks for the oldest snapshot after some 2000 transactions. After several looks its
  // dead rows have left the indexes, and are free.
  const auto commit_often = [&] {
    for (std::int64_t i = 0; i < 20000; ++i) {
      Transaction t = must(shop.database->begin(AccessMode::kReadWrite));
      must(t.insert(other, {Value::int64(i)}));
      must(t.commit());
    }
    Transaction t = must(shop.database->begin(AccessMode::kReadWrite));
    must(t.remove_where(other, query::col("id") >= std::int64_t{0}).status());
    must(t.commit());
  };
  const auto merge_beside = [&] {
    Transaction t = must(shop.database->begin(AccessMode::kReadWrite));
    MergeOptions patient = everything();
    patient.patience = std::chrono::seconds(20);
    Result<MergeReport> report = MergeReport();
    std::thread merging([&] { report = shop.database->merge(shop.table, patient); });
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    t.abort();
    merging.join();
    return must(std::move(report));
  };
  shop.insert(0, 1000);
  for (std::int64_t id = 0; id < 990; ++id) shop.remove(id);
  commit_often();
  CHECK(merge_beside().chunks_merged >= 1);
  for (std::int64_t id = 990; id < 1000; ++id) shop.remove(id);
  commit_often();
  CHECK(merge_beside().chunks_emptied >= 1);
  shop.merge();
  for (std::int64_t id = 0; id < 6000; id += 500) shop.insert(id, id + 500);
  shop.check();
  must(shop.database->verify({}));
}

TEST_CASE("a merge refuses invalid options", "[engine]") {
  Shop shop;
  MergeOptions options;
  options.dead_percent = 0;
  CHECK(shop.database->merge(shop.table, options).code() == StatusCode::kInvalidArgument);
  options = {};
  options.threads = 100000;
  CHECK(shop.database->merge(shop.table, options).code() == StatusCode::kInvalidArgument);
  CHECK(shop.database->merge(TableId{999}, {}).code() == StatusCode::kNotFound);
  CHECK(must(shop.database->merge(shop.table, {})).rows == 0);  // nothing is full yet
}

}  // namespace
}  // namespace flugs::test
