// Reopening: what it finds, what it reports, and which damage it detects.
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "pmem/space/chunk_list_layout.h"
#include "tables/catalog/catalog_layout.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

struct OrderedShop {
  MemoryDatabase database{std::size_t{32} << 20};
  TableId table;
  std::uint32_t last = 0;

  OrderedShop() {
    TableSchema schema("goods");
    schema.column("id", Type::kInt64).column("name", Type::kString).column("price", Type::kDecimal);
    schema.column("note", Type::kString).direct().primary_key({"id"}).key("by_price", {"price"});
    table = must(database->create_table(schema));
    insert(0, 2000);
  }
  Transaction begin() { return must(database->begin(AccessMode::kReadWrite)); }
  void insert(std::int64_t first, std::int64_t end) {
    Transaction t = begin();
    for (std::int64_t i = first; i < end; ++i)
      must(t.insert(table, {Value::int64(i),
                            Value::string(std::string_view("good number " + std::to_string(i))),
                            Value::decimal_units(i % 50), Value::string("short")}));
    last = must(t.get({table, 0}, {Value::int64(end - 1)})).id().value();
    must(t.commit());
  }
  pmem::Pool& pool() { return database->pool(); }
  engine::TableLayout& layout() {
    auto* root = reinterpret_cast<engine::DatabaseLayout*>(pool().application_root());
    auto* catalog = pool().at(pmem::OffsetPtr<engine::CatalogLayout>{root->catalog});
    return *pool().at(pmem::OffsetPtr<engine::TableLayout>{catalog->tables[0]});
  }
  engine::RowStore& rows() { return database->table(table)->rows(); }
  // The last row: its cells are wide enough for any code.
  std::uint32_t last_row() const { return last; }
  void store(std::size_t column, const columns::Cell& cell) {
    rows().layout(last_row()).store(rows().address(last_row()), column, cell);
  }
};

}  // namespace

TEST_CASE("opening reports its counts", "[engine][recovery]") {
  OrderedShop shop;
  CHECK(shop.database->report().created);
  // No thread makes hints durable meanwhile, and neither does the writer, because they are few:
  // opening examines them.
  shop.database.options.tuning.hint_interval = std::chrono::milliseconds(0);
  shop.database.reopen();
  shop.insert(2000, 2050);
  Transaction t = shop.begin();
  for (std::int64_t i = 0; i < 100; ++i)
    must(t.remove(shop.table, must(t.get({shop.table, 0}, {Value::int64(i)})).id()));
  must(t.commit());
  shop.database.reopen();
  const RecoveryReport& report = shop.database->report();
  CHECK_FALSE(report.created);
  CHECK(report.rows_live == 1950);
  CHECK(report.rows_recycled >= 100);
  const bool is_hinted = test_index_place() == IndexPlace::kPool;
  CHECK(report.dictionary_entries == (is_hinted ? 50 : 2050 + 50));
  CHECK(report.dictionary_entries_dropped == 0);
  CHECK(report.transactions_undone == 0);
  std::vector<std::string> names;
  for (const auto& phase : report.phases) names.push_back(phase.name);
  CHECK(names == std::vector<std::string>{"catalog", "transactions", "dictionary indexes",
                                          "key indexes", "threads"});
  must(shop.database->verify({}));
}

TEST_CASE("after reopening, free rows are used before new ones", "[engine][recovery]") {
  OrderedShop shop;
  Transaction t = shop.begin();
  for (std::int64_t i = 0; i < 1000; ++i)
    must(t.remove(shop.table, must(t.get({shop.table, 0}, {Value::int64(i)})).id()));
  must(t.commit());
  shop.database.reopen();
  const auto before = must(shop.database->statistics(shop.table));
  CHECK(before.rows_free >= 1000);
  shop.insert(5000, 5900);
  const auto after = must(shop.database->statistics(shop.table));
  // All free rows but those of the first chunks, whose cells have become too narrow.
  CHECK(after.rows_reserved < before.rows_reserved + 450);
  must(shop.database->verify({}));
}

TEST_CASE("opening twice changes nothing", "[engine][recovery]") {
  OrderedShop shop;
  {
    Transaction aborted = shop.begin();
    must(aborted.insert(shop.table,
                        {Value::int64(9999), Value::string("x"), Value::null(), Value::null()}));
  }
  std::uint64_t used = shop.pool().allocator().space().used_bytes;
  for (int i = 0; i < 3; ++i) {
    shop.database.reopen();
    CHECK(shop.pool().allocator().space().used_bytes == used);
    CHECK(shop.database->report().rows_live == 2000);
    CHECK(shop.database->report().transactions_completed == 0);
  }
}

TEST_CASE("damage that opening can see is reported with its place", "[engine][recovery]") {
  struct Case {
    const char* what;
    std::function<void(OrderedShop&)> damage;
    const char* message;
  };
  const Case cases[] = {
      {"the root's magic",
       [](OrderedShop& s) { *reinterpret_cast<std::uint64_t*>(s.pool().application_root()) ^= 2; },
       "application root"},
      {"the catalogue's place",
       [](OrderedShop& s) {
         reinterpret_cast<engine::DatabaseLayout*>(s.pool().application_root())->catalog += 8;
       },
       "catalogue"},
      {"a table's magic", [](OrderedShop& s) { s.layout().magic ^= 1; }, "magic"},
      {"a table's id", [](OrderedShop& s) { s.layout().table_id += 1; }, "checksum"},
      {"a table's size", [](OrderedShop& s) { s.layout().bytes = ~std::uint64_t{0}; }, "extent"},
      {"a byte of the schema",
       [](OrderedShop& s) {
         *(reinterpret_cast<char*>(&s.layout()) + s.layout().schema_offset + 3) ^= 1;
       },
       "checksum"},
      {"a column's type",
       [](OrderedShop& s) { reinterpret_cast<columns::ColumnLayout*>(&s.layout() + 1)->type = 1; },
       "column as in the schema"},
      {"a chunk of rows outside",
       [](OrderedShop& s) { s.layout().row_chunks.inline_chunks[0] = std::uint64_t{1} << 45; },
       "rows"},
      {"a chunk of rows that is another",
       [](OrderedShop& s) {
         s.layout().row_chunks.inline_chunks[1] = s.layout().row_chunks.inline_chunks[0];
       },
       "chunk"},
      {"a time-stamp of the future",
       [](OrderedShop& s) { s.rows().version(7).created = std::uint64_t{1} << 50; }, "time-stamp"},
      {"a text outside the pool",
       [](OrderedShop& s) {
         s.store(3, columns::text_cell::make_out_of_line(std::uint64_t{1} << 45, 9));
       },
       "column note"},
      {"a text where the pool begins",
       [](OrderedShop& s) { s.store(3, columns::text_cell::make_out_of_line(0, 9)); },
       "column note"},
      {"a ValueID that there is not", [](OrderedShop& s) { s.store(1, {60000, 0, false}); },
       "column name"},
  };
  for (const Case& c : cases) {
    OrderedShop shop;
    c.damage(shop);
    const Status status = shop.database.try_reopen();
    INFO(c.what << ": " << status.to_string());
    CHECK(status.code() == StatusCode::kCorrupt);
    CHECK(status.message().find(c.message) != std::string::npos);
  }
}

TEST_CASE("a chunk that seems to store nothing is reported", "[engine][recovery]") {
  for (const std::uint64_t tag : {0, 0x1235, 0xffff}) {
    OrderedShop shop;
    shop.layout().row_chunks.inline_chunks[1] =
        pmem::ChunkListLayout::kNoExtent | tag << pmem::ChunkListLayout::kTagShift;
    const Status status = shop.database.try_reopen();
    INFO(status.to_string());
    CHECK(status.code() == StatusCode::kCorrupt);
    CHECK(status.message().find("chunk 1 at offset 281474976710592: tag") != std::string::npos);
  }
}

TEST_CASE("check finds damage that opening does not look for", "[engine][recovery]") {
  OrderedShop shop;
  must(shop.database->verify({}));
  SECTION("a row under another key than the index thinks") { shop.store(0, {5000, 0, false}); }
  SECTION("a ValueID that does not exist") { shop.store(1, {60000, 0, false}); }
  const Status status = shop.database->verify({});
  INFO(status.to_string());
  CHECK(status.code() == StatusCode::kCorrupt);
  CHECK(status.message().find("row " + std::to_string(shop.last_row())) != std::string::npos);
}

}  // namespace flugs::test
