// Edge cases of columns that begin anew: groups of NULLs, rows that lack the column, pools without
// room, rows without room, chunks made ahead.
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "engine/database/database_access.h"
#include "flugs/merge.h"
#include "flugs/query.h"
#include "test/support/random.h"
#include "test/support/temporary_database.h"
#include "test/support/whole_pool.h"

namespace flugs::test {
namespace {

MergeOptions everything(std::uint64_t waste_bytes) {
  MergeOptions options;
  options.scope = MergeScope::kEverything;
  options.waste_bytes = waste_bytes;
  options.threads = 1;
  return options;
}
constexpr std::uint64_t kThrifty = 16 << 10;
constexpr std::uint64_t kNever = ~std::uint64_t{0};

}  // namespace

TEST_CASE("an edition stays listed while a group has it, also a group of NULLs", "[engine]") {
  TemporaryDatabase database;
  TableSchema schema("nulls");
  schema.column("id", Type::kInt64).column("n", Type::kInt32);
  schema.columns[1].encoding = Encoding::kDictionary;
  schema.columns[1].nullable = true;
  schema.primary_key({"id"});
  const TableId table = must(database->create_table(schema));
  must(database->change_type(table, ColumnId(1), Type::kInt32));  // another edition: direct
  for (std::int64_t first : {0, 500}) {                           // two groups
    Transaction t = must(database->begin());
    for (std::int64_t id = first; id < first + 500; ++id)
      must(t.insert(table, {Value::int64(id), Value::null()}));
    must(t.commit());
    must(database->merge(table, everything(kNever)));
  }
  must(database->change_type(table, ColumnId(1), Type::kInt64));
  MergeOptions stops = everything(kNever);
  std::stop_source source;
  stops.progress = [&](const Progress&) { source.request_stop(); };
  stops.stop = source.get_token();
  CHECK(database->merge(table, stops).code() == StatusCode::kCancelled);
  CHECK(must(database->merge_status(table)).failures == 0);
  check_pool_is_whole(database);  // kCorrupt: edition of column n, at most: expected 2, found 1
}

TEST_CASE("a column that would make rows too large stays as it is, and the table is merged",
          "[engine]") {
  TemporaryDatabase database;
  TableSchema schema("wide");
  schema.column("id", Type::kInt64);
  for (int i = 0; i < 248; ++i) {
    schema.column("f" + std::to_string(i), Type::kString);
    schema.columns.back().encoding = Encoding::kDirect;
    schema.columns.back().nullable = true;
  }
  for (int i = 0; i < 5; ++i) {
    schema.column("d" + std::to_string(i), Type::kString);
    schema.columns.back().encoding = Encoding::kDictionary;
    schema.columns.back().nullable = true;
  }
  schema.primary_key({"id"});
  const TableId table = must(database->create_table(schema));
  std::vector<Value> row(254, Value::null());
  for (int round = 0; round < 40; ++round) {
    Transaction t = must(database->begin());
    for (std::int64_t n = 0; n < 50; ++n) {
      const std::string text =
          std::string(300, 't') + std::to_string(n) + "." + std::to_string(round);
      row[0] = Value::int64(n);
      for (std::size_t i = 249; i < 254; ++i) row[i] = Value::string(text);
      if (round == 0) {
        must(t.insert(table, row));
      } else {
        const Row there = must(t.get({table, 0}, {Value::int64(n)}));
        std::vector<ColumnValue> changes;
        for (std::uint16_t i = 249; i < 254; ++i) changes.push_back({ColumnId(i), row[i]});
        must(t.update(table, there.id(), changes));
      }
    }
    must(t.commit());
  }
  CHECK(database->merge(table, everything(kThrifty)).status().to_string() == "ok");
}

TEST_CASE("a column does not begin anew without room for its texts twice", "[engine]") {
  TemporaryDatabase database([](OpenOptions& options) { options.max_bytes = 64 << 20; });
  TableSchema schema("texts");
  schema.column("id", Type::kInt64).column("text", Type::kString);
  schema.columns[1].encoding = Encoding::kDirect;
  schema.primary_key({"id"});
  const TableId table = must(database->create_table(schema));
  constexpr std::int64_t kRows = 20000;
  const auto update = [&](Transaction& t, std::int64_t n, int round) {
    const std::string text =
        std::string(1000, 't') + std::to_string(n) + "." + std::to_string(round);
    if (round == 0) return t.insert(table, {Value::int64(n), Value::string(text)}).status();
    const Row row = must(t.get({table, 0}, {Value::int64(n)}));
    return t.update(table, row.id(), {{ColumnId(1), Value::string(text)}}).status();
  };
  for (int round = 0; round < 2; ++round) {
    database.reopen();  // texts from before opening are not used again without a merge
    for (std::int64_t first = 0; first < kRows; first += 1000) {
      Transaction t = must(database->begin());
      for (std::int64_t n = first; n < first + 1000; ++n) must(update(t, n, round));
      must(t.commit());
    }
  }
  MergeOptions defaults;
  defaults.scope = MergeScope::kEverything;
  CHECK(database->merge(table, defaults).status().to_string() == "ok");
  Transaction t = must(database->begin());  // there were 20 MB free before
  for (std::int64_t n = 0; n < 200; ++n) must(update(t, n, 2));
  must(t.commit());
}

TEST_CASE("a column begins anew once its texts have room twice", "[engine]") {
  TemporaryDatabase database([](OpenOptions& options) { options.max_bytes = 64 << 20; });
  TableSchema schema("texts");
  schema.column("id", Type::kInt64).column("text", Type::kString);
  schema.columns[1].encoding = Encoding::kDirect;
  schema.primary_key({"id"});
  const TableId table = must(database->create_table(schema));
  schema.name = "others";
  const TableId others = must(database->create_table(schema));
  constexpr std::int64_t kRows = 8000;
  const std::string text(1000, 't');
  const auto write = [&](TableId to, bool is_new) {
    for (std::int64_t first = 0; first < kRows; first += 1000) {
      Transaction t = must(database->begin());
      for (std::int64_t n = first; n < first + 1000; ++n) {
        if (is_new) {
          must(t.insert(to, {Value::int64(n), Value::string(text)}));
        } else {
          const Row row = must(t.get({to, 0}, {Value::int64(n)}));
          must(t.update(to, row.id(), {{ColumnId(1), Value::string(text)}}));
        }
      }
      must(t.commit());
    }
  };
  for (const TableId to : {table, others}) write(to, true);
  for (int round = 0; round < 3; ++round) {
    database.reopen();  // texts from before opening are not used again without a merge
    write(table, false);
    if (round == 0) write(others, false);
  }
  const bool is_automatic = GENERATE(false, true);
  MergePolicy policy;
  policy.automatic = is_automatic;
  policy.interval = std::chrono::milliseconds(10);
  must(database->set_merge_policy(table, policy));
  const auto used = [&] { return database->statistics().pool_used_bytes; };
  if (is_automatic) {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  } else {
    CHECK(must(database->merge(table, MergeOptions())).columns_rewritten == 0);
  }
  CHECK(used() > std::uint64_t{44} << 20);
  must(database->drop_table(others));
  if (is_automatic) {
    for (int i = 0; i < 1000 && used() > std::uint64_t{16} << 20; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
  } else {
    CHECK(must(database->merge(table, MergeOptions())).columns_rewritten == 1);
  }
  CHECK(used() < std::uint64_t{16} << 20);
}

TEST_CASE("rows that lack a column have its constant, however often it begins anew", "[engine]") {
  TemporaryDatabase database(
      [](OpenOptions& options) { options.max_bytes = std::uint64_t{1} << 30; });
  TableSchema schema("notes");
  schema.column("id", Type::kInt64).primary_key({"id"});
  const TableId table = must(database->create_table(schema));
  {
    Transaction t = must(database->begin());
    for (std::int64_t n = 0; n < 300; ++n) must(t.insert(table, {Value::int64(n)}));
    must(t.commit());
  }
  must(database->merge(table, everything(kNever)));
  const std::string constant = std::string(200, 'c') + "onstant";
  ColumnSchema note;
  note.name = "note";
  note.type = Type::kString;
  note.encoding = Encoding::kDirect;
  note.nullable = false;
  note.default_value = Constant(Value::string(constant));
  must(database->add_column(table, note));
  {
    Transaction t = must(database->begin());
    for (std::int64_t n = 300; n < 400; ++n)
      must(t.insert(table, {Value::int64(n), Value::string(constant)}));
    must(t.commit());
  }
  int round = 0;
  int renewed = 0;
  const auto renew_until = [&](int times) {
    while (renewed < times) {
      for (int i = 0; i < 5; ++i, ++round) {
        Transaction t = must(database->begin());
        for (std::int64_t n = 300; n < 400; ++n) {
          const std::string text =
              std::string(400, 't') + std::to_string(n) + "." + std::to_string(round);
          const Row row = must(t.get({table, 0}, {Value::int64(n)}));
          must(t.update(table, row.id(), {{ColumnId(1), Value::string(text)}}));
        }
        must(t.commit());
      }
      renewed +=
          static_cast<int>(must(database->merge(table, everything(kThrifty))).columns_rewritten);
    }
  };
  const auto check = [&] {
    const Transaction t = must(database->begin(AccessMode::kReadOnly));
    for (std::int64_t n = 0; n < 300; ++n)
      REQUIRE(must(t.get({table, 0}, {n})).get_unchecked<std::string_view>(ColumnId(1)) ==
              constant);
    CHECK(must(query::Query::table("notes")
                   .where(query::col("note") == constant)
                   .select({"id"})
                   .run(t))
              .row_count() == 300);
  };
  renew_until(1);
  check();
  renew_until(255);  // the same number once more
  check();
}

// Groups name the editions of their columns. Those that have texts compressed are not written again
// with the column.
TEST_CASE("a column's DRAM does not grow when it begins anew", "[engine]") {
  const bool is_noise = GENERATE(false, true);
  Random random(1);
  TemporaryDatabase database;
  TableSchema schema("notes");
  schema.column("id", Type::kInt64).column("note", Type::kString);
  schema.columns[1].encoding = Encoding::kDirect;
  schema.primary_key({"id"});
  const TableId table = must(database->create_table(schema));
  const engine::Table& in_dram = *engine::DatabaseAccess::core(*database).table(table);
  const engine::TableDefinition* definition = nullptr;
  int renewed = 0;
  for (int round = 0; round < 30; ++round) {
    for (int i = 0; i < 4; ++i) {
      Transaction t = must(database->begin());
      for (std::int64_t n = 0; n < 100; ++n) {
        const std::string text = (is_noise ? random.noise(400) : std::string(400, 't')) +
                                 std::to_string(n + 100 * (4 * round + i));
        if (round == 0 && i == 0) {
          must(t.insert(table, {Value::int64(n), Value::string(text)}));
        } else {
          const Row row = must(t.get({table, 0}, {Value::int64(n)}));
          must(t.update(table, row.id(), {{ColumnId(1), Value::string(text)}}));
        }
      }
      must(t.commit());
    }
    renewed +=
        static_cast<int>(must(database->merge(table, everything(kThrifty))).columns_rewritten);
    if (definition == nullptr) definition = &in_dram.definition();
    CHECK(&in_dram.definition() == definition);
    int editions = 0;
    for (const columns::Column* column = in_dram.columns()[1]; column != nullptr;
         column = column->former())
      ++editions;
    CHECK(editions <= (is_noise ? 2 : 9));
  }
  CHECK(renewed >= 20);
  must(database->rename_table(table, "renamed"));
  CHECK(in_dram.name() == "renamed");
  check_pool_is_whole(database);
}

TEST_CASE("a chunk made ahead has no cells of a column that begins anew", "[engine]") {
  TemporaryDatabase database;
  TableSchema schema("numbers");
  schema.column("id", Type::kInt64).column("n", Type::kInt64);
  schema.columns[1].encoding = Encoding::kDictionary;
  schema.primary_key({"id"});
  const TableId table = must(database->create_table(schema));
  for (std::int64_t first = 0; first < 52000; first += 1000) {
    Transaction t = must(database->begin());
    for (std::int64_t n = first; n < first + 1000; ++n)
      must(t.insert(table, {Value::int64(n), Value::int64(n * 7)}));
    must(t.commit());
  }
  const MergeReport report = must(database->merge(table, everything(kThrifty)));
  CHECK(report.columns_rewritten == 1);
  CHECK_FALSE(report.releases_later);
  CHECK(report.bytes_given_back > 52000 * 16);
  CHECK(must(database->table_statistics(table)).columns[1].dictionary_bytes == 0);
}

}  // namespace flugs::test
