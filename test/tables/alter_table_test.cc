// Renamed tables: found by their new names, also in the middle of a transaction, and after
// reopening.
#include <atomic>
#include <catch2/catch.hpp>
#include <string>
#include <thread>
#include <vector>

#include "flugs/pool_check.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

TableSchema customers_schema() {
  TableSchema schema("customers");
  schema.column("id", Type::kInt64).column("name", Type::kString).column("age", Type::kInt32);
  schema.primary_key({"id"}).unique_key("by_name", {"name"}).key("by_age", {"age", "id"});
  schema.check("grown", Condition::compare("age", Condition::Kind::kGreaterEqual,
                                           Constant(Value::int32(18))));
  return schema;
}

TableSchema bills_schema() {
  TableSchema schema("bills");
  schema.column("id", Type::kInt64).column("customer", Type::kInt64).primary_key({"id"});
  schema.foreign_key("of", {"customer"}, "customers");
  schema.column("again", Type::kInt64).foreign_key("follows", {"again"}, "bills");
  return schema;
}

template <typename T>
std::string words_of(const Result<T>& refused) {
  return std::string(refused.status().message());
}
std::string words_of(const Status& refused) { return std::string(refused.message()); }

struct RenamedShop {
  TemporaryDatabase database;
  TableId customers = must(database->create_table(customers_schema()));
  TableId bills = must(database->create_table(bills_schema()));

  RenamedShop() {
    Transaction t = must(database->begin());
    must(t.insert(customers, {Value::int64(1), Value::string("Ann"), Value::int32(30)}));
    must(t.insert(bills, {Value::int64(1), Value::int64(1), Value::null()}));
    must(t.commit());
  }
};

}  // namespace

TEST_CASE("a table, a column and a key that are renamed are found by their new names", "[engine]") {
  RenamedShop shop;
  TemporaryDatabase& database = shop.database;
  Transaction open = must(database->begin());
  must(open.insert(shop.customers, {Value::int64(2), Value::string("Bob"), Value::int32(40)}));
  must(database->rename_table(shop.customers, "clients"));
  must(database->rename_column(shop.customers, ColumnId(2), "years"));
  must(database->rename_key({shop.customers, 2}, "by_years"));
  must(database->rename_table(shop.customers, "clients"));  // it has that name already
  // The transaction goes on, and messages give the new names.
  CHECK(words_of(open.insert(shop.customers, {Value::int64(3), Value::null(), Value::int32(9)})) ==
        "table clients, check grown: years >= 18 does not hold for years = 9");
  CHECK(words_of(open.insert(shop.customers, {Value::int64(2), Value::null(), Value::null()})) ==
        "table clients, key primary: id = 2 exists");
  CHECK(words_of(open.insert(shop.customers, {Value::int64(3), Value::null(), "9"})) ==
        "table clients, column years: expected int32, found string '9'");
  must(open.commit());
  for (int opened = 0; opened < 2; ++opened) {
    CHECK(must(database->find_table("clients")) == shop.customers);
    CHECK(database->find_table("customers").code() == StatusCode::kNotFound);
    CHECK(must(database->find_column(shop.customers, "years")) == ColumnId(2));
    CHECK(database->find_column(shop.customers, "age").code() == StatusCode::kNotFound);
    CHECK(must(database->find_key(shop.customers, "by_years")) == KeyId{shop.customers, 2});
    const TableSchema schema = must(database->schema(shop.customers));
    CHECK(schema.keys[2].columns == std::vector<std::string>{"years", "id"});
    CHECK(schema.checks[0].condition.to_string() == "years >= 18");
    CHECK(must(database->table_statistics(shop.customers)).columns[2].name == "years");
    Transaction t = must(database->begin());
    CHECK(must(t.get({shop.customers, 1}, {Value::string("Bob")})).get_unchecked(ColumnId(2)) ==
          Value::int32(40));
    t.abort();
    must(database->check());
    database.reopen();
  }
  // The former names are free.
  must(database->create_table(customers_schema()));
  must(database->rename_column(shop.customers, ColumnId(0), "age"));
}

TEST_CASE("foreign keys give the current names of what they refer to", "[engine]") {
  RenamedShop shop;
  TemporaryDatabase& database = shop.database;
  must(database->rename_table(shop.customers, "clients"));
  must(database->rename_key({shop.customers, 0}, "number"));
  must(database->rename_table(shop.bills, "invoices"));
  must(database->rename_column(shop.bills, ColumnId(1), "client"));
  must(database->rename_key({shop.bills, 0}, "main"));
  for (int opened = 0; opened < 2; ++opened) {
    const TableSchema schema = must(database->schema(shop.bills));
    CHECK(schema.foreign_keys[0].table == "clients");
    CHECK(schema.foreign_keys[0].key == "number");
    CHECK(schema.foreign_keys[0].columns == std::vector<std::string>{"client"});
    CHECK(schema.foreign_keys[1].table == "invoices");
    CHECK(schema.foreign_keys[1].key == "main");
    Transaction t = must(database->begin());
    CHECK(words_of(t.insert(shop.bills, {Value::int64(9), Value::int64(7), Value::null()})) ==
          "table invoices, foreign key of: client = 7 is not in table clients, key number");
    const RowId ann = must(t.get({shop.customers, 0}, {Value::int64(1)})).id();
    CHECK(
        words_of(t.remove(shop.customers, ann)) ==
        "table invoices, foreign key of: rows with client = 1 refer to table clients, key number");
    t.abort();
    CHECK(words_of(database->drop_table(shop.customers)) ==
          "table clients: foreign key of of table invoices refers to it");
    database.reopen();
  }
}

TEST_CASE("taken and invalid names are refused", "[engine]") {
  RenamedShop shop;
  TemporaryDatabase& database = shop.database;
  const auto fails = [](const Status& status, StatusCode code, const std::string& message) {
    CHECK(status.code() == code);
    CHECK(std::string(status.message()) == message);
  };
  fails(database->rename_table(shop.customers, "bills"), StatusCode::kAlreadyExists,
        "table bills exists");
  fails(database->rename_column(shop.customers, ColumnId(0), "age"), StatusCode::kAlreadyExists,
        "table customers: column 'age' exists");
  fails(database->rename_key({shop.customers, 1}, "by_age"), StatusCode::kAlreadyExists,
        "table customers: key 'by_age' exists");
  fails(database->rename_column(shop.customers, ColumnId(3), "more"), StatusCode::kNotFound,
        "table customers: no column 3");
  fails(database->rename_key({shop.customers, 3}, "more"), StatusCode::kNotFound,
        "table customers: no key 3");
  CHECK(database->rename_table(TableId(77), "more").code() == StatusCode::kNotFound);
  CHECK(database->rename_column(TableId(77), ColumnId(0), "x").code() == StatusCode::kNotFound);
  CHECK(database->rename_table(shop.customers, "").code() == StatusCode::kInvalidArgument);
  CHECK(database->rename_key({shop.bills, 0}, std::string(64, 'x')).code() ==
        StatusCode::kInvalidArgument);
  CHECK(database->rename_column(shop.bills, ColumnId(0), std::string_view("a\0b", 3)).code() ==
        StatusCode::kInvalidArgument);
  CHECK(Database().rename_table(shop.bills, "x").code() == StatusCode::kInvalidArgument);
}

TEST_CASE("a schema that is replaced leaves no space behind, and is audited", "[engine]") {
  RenamedShop shop;
  TemporaryDatabase& database = shop.database;
  must(database->rename_table(shop.bills, "b0"));
  const std::uint64_t used = database->statistics().pool_used_bytes;
  for (int i = 1; i < 50; ++i) must(database->rename_table(shop.bills, "b" + std::to_string(i)));
  CHECK(database->statistics().pool_used_bytes == used);
  const std::string path = database.options.path;
  database.reopen();
  CHECK(database->statistics().pool_used_bytes == used);
  database.close();
  const PoolCheckReport report = must(check_pool({path, {}}));
  CHECK(report.damages == 0);
  bool is_named = false;
  for (const CheckedPart& part : report.parts) is_named |= part.name == "table b49, schema";
  CHECK(is_named);
}

TEST_CASE("a schema block is not trusted", "[engine][recovery]") {
  struct Damage {
    const char* what;
    void (*change)(engine::TableLayout& table, engine::SchemaBlockLayout& block);
    const char* words;
  };
  const Damage damages[] = {
      {"its place", [](auto& table, auto&) { table.schema_block += 8; }, "offset aligned to 64"},
      {"its place, far away", [](auto& table, auto&) { table.schema_block = ~std::uint64_t{63}; },
       "inside the pool"},
      {"another place", [](auto& table, auto&) { table.schema_block += 64; }, "magic"},
      {"magic", [](auto&, auto& block) { block.magic ^= 1; }, "magic"},
      {"bytes", [](auto&, auto& block) { block.bytes = ~std::uint64_t{0}; }, "inside the extent"},
      {"its size", [](auto&, auto& block) { block.schema_bytes = 1u << 30; }, "inside the extent"},
      {"table", [](auto&, auto& block) { block.table_id += 1; }, "checksum"},
      {"keys", [](auto&, auto& block) { block.added_keys ^= 1; }, "checksum"},
      {"a byte", [](auto&, auto& block) { reinterpret_cast<char*>(&block + 1)[3] ^= 1; },
       "checksum"},
  };
  for (const Damage& damage : damages) {
    INFO(damage.what);
    MemoryDatabase database;
    const TableId table = must(database->create_table(customers_schema()));
    must(database->rename_table(table, "clients"));
    pmem::Pool& pool = database->pool();
    const auto& root = *reinterpret_cast<engine::DatabaseLayout*>(pool.application_root());
    const auto* catalog = pool.at(pmem::OffsetPtr<engine::CatalogLayout>{root.catalog});
    auto& layout = *pool.at(pmem::OffsetPtr<engine::TableLayout>{catalog->tables[0]});
    damage.change(layout,
                  *pool.at(pmem::OffsetPtr<engine::SchemaBlockLayout>{layout.schema_block}));
    const Status opened = database.try_reopen();
    INFO(opened.to_string());
    CHECK(opened.code() == StatusCode::kCorrupt);
    CHECK(opened.message().find(damage.words) != std::string_view::npos);
  }
}

TEST_CASE("a reader of names sees the old or the new one while they change", "[engine]") {
  RenamedShop shop;
  TemporaryDatabase& database = shop.database;
  std::atomic<bool> stops{false};
  std::atomic<int> wrong{0};
  std::thread reader([&] {
    while (!stops) {
      Transaction t = *database->begin();
      const Result<RowId> row =
          t.insert(shop.customers, {Value::int64(5), Value::null(), Value::int32(1)});
      const std::string said(row.status().message());
      wrong += said.find("table a,") != 0 && said.find("table customers,") != 0 ? 1 : 0;
      const TableSchema schema = *database->schema(shop.customers);
      const bool is_first = schema.columns[2].name == "age" && schema.keys[2].columns[0] == "age";
      const bool is_second = schema.columns[2].name == "b" && schema.keys[2].columns[0] == "b";
      wrong += is_first || is_second ? 0 : 1;
    }
  });
  for (int i = 0; i < 300; ++i) {
    must(database->rename_table(shop.customers, i % 2 == 0 ? "a" : "customers"));
    must(database->rename_column(shop.customers, ColumnId(2), i % 2 == 0 ? "b" : "age"));
  }
  stops = true;
  reader.join();
  CHECK(wrong == 0);
}

}  // namespace flugs::test
