// Row groups of wide tables: single rows are read from records, scans from columns.
#include <catch2/catch.hpp>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "bench/random/random_steps.h"
#include "flugs/merge.h"
#include "pmem/space/extent_allocator.h"
#include "test/support/random.h"
#include "test/support/taken_space.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

constexpr std::int32_t kRows = 3000;
constexpr std::uint16_t kColumns = 24;

TableSchema wide_schema(bool has_key) {
  static constexpr Type kTypes[] = {Type::kInt32,  Type::kBool, Type::kInt64,     Type::kString,
                                    Type::kDouble, Type::kDate, Type::kTimestamp, Type::kBytes};
  TableSchema schema("wide");
  schema.column("id", Type::kInt32);
  for (std::uint16_t c = 1; c < kColumns; ++c) {
    schema.column("c" + std::to_string(c), kTypes[c % std::size(kTypes)]);
    schema.columns.back().nullable = c % 3 == 0;
    schema.columns.back().encoding = static_cast<Encoding>(c % 3);
  }
  if (has_key) schema.primary_key({"id"});
  return schema;
}

class Wide {
 public:
  explicit Wide(bool has_key = true) : schema_(wide_schema(has_key)) {
    table = must(database->create_table(schema_));
    Transaction t = must(database->begin(AccessMode::kReadWrite));
    for (std::int32_t id = 0; id < kRows; ++id)
      must(t.insert(table, row_of(id, static_cast<std::uint64_t>(id))));
    must(t.commit());
  }

  std::vector<Value> row_of(std::int32_t id, std::uint64_t seed) {
    std::vector<Value> row{Value::int32(id)};
    for (std::uint16_t c = 1; c < kColumns; ++c)
      row.push_back(
          bench::random_value(schema_.columns[c], bench::column_seed(seed % 701, c), texts_));
    seeds_[id] = seed;
    return row;
  }
  MergeReport merge() {
    MergeOptions options;
    options.scope = MergeScope::kEverything;
    options.threads = 2;
    return must(database->merge(table, options));
  }
  void update(std::int32_t id) {
    Transaction t = must(database->begin(AccessMode::kReadWrite));
    const std::vector<Value> row = row_of(id, seeds_[id] + 1);
    std::vector<ColumnValue> changes;
    for (std::uint16_t c = 1; c < kColumns; ++c) changes.push_back({ColumnId(c), row[c]});
    const Row there = must(t.get({table, 0}, {Value::int32(id)}));
    must(t.update(table, there.id(), changes));
    must(t.commit());
  }
  /// Every value of every row, by key.
  void check() {
    CHECK(wrong_values() == 0);
    must(database->verify({}));
  }
  /// The group of the table's last full chunk.
  const engine::RowGroup& group() {
    const engine::RowStore& rows = database->table(table)->rows();
    const engine::RowGroup* last = nullptr;
    rows.for_each_group([&](const engine::RowGroup& one) { last = &one; });
    REQUIRE(last != nullptr);
    return *last;
  }

  MemoryDatabase database{std::size_t{64} << 20};
  TableId table;

 private:
  std::size_t wrong_values() {
    Transaction t = must(database->begin(AccessMode::kReadOnly));
    std::size_t wrong = 0;
    for (std::int32_t id = 0; id < kRows; ++id) {
      const Row row = must(t.get({table, 0}, {Value::int32(id)}));
      const std::vector<Value> expected = row_of(id, seeds_[id]);
      for (std::uint16_t c = 0; c < kColumns; ++c)
        wrong += row.get_unchecked(ColumnId(c)) == expected[c] ? 0 : 1;
    }
    return wrong;
  }

  TableSchema schema_;
  std::map<std::int32_t, std::uint64_t> seeds_;
  std::deque<std::string> texts_;
};

}  // namespace

TEST_CASE("a wide row is read from its record, before and after a restart", "[engine]") {
  Wide wide;
  wide.merge();
  CHECK(wide.group().has_records());
  wide.check();
  wide.database.reopen();
  CHECK(wide.group().has_records());
  wide.check();
}

TEST_CASE("rows of wide groups are changed and merged again", "[engine]") {
  Wide wide;
  wide.merge();
  for (std::int32_t id = 0; id < kRows; id += 2) wide.update(id);
  wide.check();
  wide.database.reopen();  // the old versions leave the indexes
  const MergeReport again = wide.merge();
  CHECK(again.groups_merged + again.chunks_emptied >= 1);
  wide.check();
}

TEST_CASE("only tables with a key have records", "[engine]") {
  Wide wide(false);
  wide.merge();
  CHECK_FALSE(wide.group().has_records());
}

// Rows of random numbers take 128 bytes in a chunk, some 72 in a group, and as much again in its
// records.
TEST_CASE("a group that finds no room with its records is written without them", "[engine]") {
  constexpr std::int64_t kNumbers = 3000;
  MemoryDatabase database{std::size_t{64} << 20};
  TableSchema schema("numbers");
  schema.column("id", Type::kInt64).direct().primary_key({"id"});
  for (int c = 1; c <= 8; ++c) schema.column("c" + std::to_string(c), Type::kInt64).direct();
  const TableId table = must(database->create_table(schema));
  Random random(1);
  Transaction t = must(database->begin(AccessMode::kReadWrite));
  for (std::int64_t id = 0; id < kNumbers; ++id) {
    std::vector<Value> row{Value::int64(id)};
    while (row.size() < 9) row.push_back(Value::int64(static_cast<std::int64_t>(random.next())));
    must(t.insert(table, row));
  }
  must(t.commit());
  MergeOptions everything;
  everything.scope = MergeScope::kEverything;
  const std::vector<pmem::Extent> all = take_all_space(database->pool());
  const MergeReport report = must(database->merge(table, everything));
  CHECK(report.rows == kNumbers);
  CHECK(report.chunks_left == 0);
  std::size_t without = 0;
  database->table(table)->rows().for_each_group(
      [&](const engine::RowGroup& group) { without += group.has_records() ? 0 : 1; });
  CHECK(without > 0);
  for (const pmem::Extent& extent : all) database->pool().allocator().release(extent);
  must(database->verify({}));
  database.reopen();
  must(database->verify({}));
}

TEST_CASE("a damaged record is found", "[engine]") {
  Wide wide;
  wide.merge();
  const engine::RowGroup& group = wide.group();
  for (const std::size_t at : {std::size_t{0}, group.records().size() / 2}) {
    const auto byte = const_cast<std::byte*>(group.records().data()) + at;
    *byte ^= std::byte{0x10};
    CHECK(wide.database->verify({}).code() == StatusCode::kCorrupt);
    *byte ^= std::byte{0x10};
    must(wide.database->verify({}));
  }
}

}  // namespace flugs::test
