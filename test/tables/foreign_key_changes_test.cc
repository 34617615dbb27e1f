// Foreign keys of tables that have rows: added, with a key or without, refused, dropped; tables
// that refer to each other; transactions that go on meanwhile.
#include <catch2/catch.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "flugs/pool_check.h"
#include "test/support/held_up.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

constexpr ColumnId kSaleShop(1);

std::string sale_words(const Status& status) { return std::string(status.message()); }

ForeignKeySchema of_shop(ReferenceAction on_delete = ReferenceAction::kRestrict,
                         ReferenceAction on_update = ReferenceAction::kRestrict) {
  ForeignKeySchema foreign;
  foreign.name = "of_shop";
  foreign.columns = {"shop"};
  foreign.table = "shops";
  foreign.on_delete = on_delete;
  foreign.on_update = on_update;
  return foreign;
}

/// Three shops with a best sale, and six sales of shops 1 to 3, one of no shop. No foreign keys.
struct Sales {
  TemporaryDatabase database;
  TableId shops;
  TableId sales;

  explicit Sales(bool has_key = false) {
    TableSchema parents("shops");
    parents.column("id", Type::kInt64).column("best", Type::kInt64).primary_key({"id"});
    shops = must(database->create_table(parents));
    TableSchema children("sales");
    children.column("id", Type::kInt64).column("shop", Type::kInt64).primary_key({"id"});
    if (has_key) children.key("by_shop", {"shop", "id"});
    sales = must(database->create_table(children));
    Transaction t = begin();
    for (std::int64_t id = 1; id <= 3; ++id) must(t.insert(shops, {Value::int64(id), id * 10}));
    for (std::int64_t id = 0; id < 6; ++id) must(t.insert(sales, {Value::int64(id), id % 3 + 1}));
    must(t.insert(sales, {Value::int64(6), Value::null()}));
    must(t.commit());
  }
  Transaction begin() { return must(database->begin()); }
  Status sell(std::int64_t id, std::int64_t shop) {
    Transaction t = begin();
    if (Status s = t.insert(sales, {Value::int64(id), shop}).status(); !s.ok()) return s;
    return t.commit();
  }
  Status close_shop(std::int64_t id) {
    Transaction t = begin();
    if (Status s = t.remove(shops, must(t.get({shops, 0}, {id})).id()); !s.ok()) return s;
    return t.commit();
  }
  Status move_shop(std::int64_t id, std::int64_t to) {
    Transaction t = begin();
    const Result<RowId> moved =
        t.update(shops, must(t.get({shops, 0}, {id})).id(), {{ColumnId(0), Value::int64(to)}});
    return moved.ok() ? t.commit() : moved.status();
  }
  /// "1 2 3 1 2 3 -": the shop of each sale.
  std::string found() {
    Transaction t = begin();
    std::string all;
    for (std::int64_t id = 0; id < 12; ++id) {
      const Result<Row> row = t.get({sales, 0}, {id});
      if (!row.ok()) continue;
      const Value shop = row->get_unchecked(kSaleShop);
      all += (all.empty() ? "" : " ") + (shop.is_null() ? std::string("-") : shop.to_string());
    }
    return all;
  }
  void merge(TableId table) {
    MergeOptions everything;
    everything.scope = MergeScope::kEverything;
    must(database->merge(table, everything));
  }
  void reopen() {
    must(database->check());
    const std::string path = database->path();
    database.close();
    CHECK(must(check_pool({path, {}})).is_clean());
    database.reopen();
  }
};

}  // namespace

TEST_CASE("a foreign key that all rows fulfil holds from then on", "[engine]") {
  const bool has_key = GENERATE(false, true);
  Sales sales(has_key);
  if (has_key) sales.merge(sales.sales);
  must(sales.database->add_foreign_key(sales.sales, of_shop()));
  for (int opened = 0; opened < 3; ++opened) {
    const TableSchema schema = must(sales.database->schema(sales.sales));
    CHECK(schema.keys.size() == 2);
    CHECK(schema.keys[1].name == (has_key ? "by_shop" : "of_shop"));
    REQUIRE(schema.foreign_keys.size() == 1);
    CHECK(schema.foreign_keys[0].table == "shops");
    CHECK(schema.foreign_keys[0].key == "primary");
    CHECK(schema.foreign_keys[0].referenced == KeyId{sales.shops, 0});
    CHECK(sale_words(sales.sell(7, 9)) ==
          "table sales, foreign key of_shop: shop = 9 is not in table shops, key primary");
    CHECK(sale_words(sales.close_shop(1)) ==
          "table sales, foreign key of_shop: rows with shop = 1 refer to table shops, key primary");
    CHECK(sales.move_shop(1, 8).code() == StatusCode::kConstraintViolated);
    CHECK(sales.database->drop_table(sales.shops).code() == StatusCode::kConstraintViolated);
    CHECK(sales.database->drop_key({sales.sales, 1}).code() == StatusCode::kConstraintViolated);
    CHECK(sales.database->drop_key({sales.shops, 0}).code() == StatusCode::kConstraintViolated);
    CHECK(sales.found() == "1 2 3 1 2 3 -");
    if (opened == 1) sales.merge(sales.sales);
    sales.reopen();
  }
  must(sales.database->drop_foreign_key(sales.sales, "of_shop"));
  CHECK(must(sales.database->schema(sales.sales)).foreign_keys.empty());
  must(sales.sell(7, 9));
  must(sales.close_shop(1));
  CHECK(sales.found() == "1 2 3 1 2 3 - 9");
  sales.reopen();
  must(sales.database->drop_key({sales.sales, 1}));
  must(sales.database->drop_table(sales.shops));
  sales.reopen();
}

TEST_CASE("a foreign key that is added acts on rows from before", "[engine]") {
  Sales sales;
  must(sales.database->add_foreign_key(
      sales.sales, of_shop(ReferenceAction::kSetNull, ReferenceAction::kCascade)));
  must(sales.close_shop(1));
  must(sales.move_shop(2, 22));
  CHECK(sales.found() == "- 22 3 - 22 3 -");
  sales.reopen();
  must(sales.database->drop_foreign_key(sales.sales, "of_shop"));
  must(sales.database->add_foreign_key(sales.sales, of_shop(ReferenceAction::kCascade)));
  CHECK(must(sales.database->schema(sales.sales)).keys.size() == 2);  // the key was still there
  must(sales.close_shop(22));
  CHECK(sales.found() == "- 3 - 3 -");
  sales.reopen();
}

TEST_CASE("a row that refers to none prevents a foreign key, and its key", "[engine]") {
  const bool has_key = GENERATE(false, true);
  Sales sales(has_key);
  must(sales.sell(7, 9));
  for (int round = 0; round < 20; ++round) {  // more often than a table has places for keys
    const Status refused = sales.database->add_foreign_key(sales.sales, of_shop());
    CHECK(refused.code() == StatusCode::kConstraintViolated);
    CHECK(sale_words(refused) ==
          "table sales, foreign key of_shop: shop = 9 is not in table shops, key primary");
  }
  const TableSchema schema = must(sales.database->schema(sales.sales));
  CHECK(schema.foreign_keys.empty());
  CHECK(schema.keys.size() == (has_key ? 2 : 1));
  must(sales.sell(8, 10));
  must(sales.close_shop(1));
  sales.reopen();
}

TEST_CASE("foreign keys with mistakes in them are refused", "[engine]") {
  Sales sales;
  Database& database = *sales.database;
  const auto fails = [&](ForeignKeySchema foreign, StatusCode code, const std::string& message) {
    const Status refused = database.add_foreign_key(sales.sales, foreign);
    CHECK(refused.code() == code);
    CHECK(sale_words(refused) == message);
  };
  const std::string where = "table sales, foreign key of_shop: ";
  ForeignKeySchema wrong = of_shop();
  wrong.table = "none";
  fails(wrong, StatusCode::kInvalidArgument, where + "no table 'none'");
  wrong = of_shop();
  wrong.key = "none";
  fails(wrong, StatusCode::kInvalidArgument, where + "table shops has no key 'none'");
  wrong = of_shop();
  wrong.columns = {"shop", "id"};
  fails(wrong, StatusCode::kInvalidArgument,
        where + "2 columns, expected the 1 of key primary of table shops");
  wrong.columns = {"shoe"};
  fails(wrong, StatusCode::kInvalidArgument, where + "no column 'shoe'");
  wrong = of_shop();
  wrong.name = "";
  fails(wrong, StatusCode::kInvalidArgument,
        "foreign key name '' has 0 bytes, allowed are 1 to 63");
  wrong = of_shop(ReferenceAction::kSetNull);
  wrong.columns = {"id"};
  fails(wrong, StatusCode::kInvalidArgument,
        where + "sets column id to NULL, but the column is NOT NULL");
  wrong = of_shop();
  wrong.name = "primary";
  fails(wrong, StatusCode::kInvalidArgument,
        "table sales, foreign key primary: a key of the same name does not begin with the foreign "
        "key's columns");
  CHECK(database.add_foreign_key(TableId(99), of_shop()).code() == StatusCode::kNotFound);
  must(database.add_foreign_key(sales.sales, of_shop()));
  fails(of_shop(), StatusCode::kAlreadyExists, "table sales: foreign key 'of_shop' exists");
  const Status gone = database.drop_foreign_key(sales.sales, "none");
  CHECK(gone.code() == StatusCode::kNotFound);
  CHECK(sale_words(gone) == "table sales: no foreign key 'none'");
  CHECK(database.drop_foreign_key(TableId(99), "of_shop").code() == StatusCode::kNotFound);
  // A column that a foreign key sets to NULL stays so.
  must(database.drop_foreign_key(sales.sales, "of_shop"));
  must(database.add_foreign_key(sales.sales, of_shop(ReferenceAction::kSetNull)));
  CHECK(database.set_not_null(sales.sales, kSaleShop).code() == StatusCode::kInvalidArgument);
  sales.reopen();
}

TEST_CASE("a table has place for a foreign key's key where one was dropped", "[engine]") {
  Sales sales;
  KeySchema key;
  key.columns = {"shop"};
  key.ordered = true;
  for (int i = 1; i < 16; ++i) {
    key.name = "k" + std::to_string(i);
    key.columns = {"id", "shop"};
    must(sales.database->add_key(sales.sales, key));
  }
  const Status refused = sales.database->add_foreign_key(sales.sales, of_shop());
  CHECK(refused.code() == StatusCode::kInvalidArgument);
  CHECK(sale_words(refused) == "table sales, key of_shop: 16 keys, at most 16");
  must(sales.database->drop_key({sales.sales, 7}));
  must(sales.database->add_foreign_key(sales.sales, of_shop()));
  CHECK(must(sales.database->schema(sales.sales)).keys[7].name == "of_shop");
  CHECK(sales.close_shop(2).code() == StatusCode::kConstraintViolated);
  sales.reopen();
  CHECK(sales.close_shop(2).code() == StatusCode::kConstraintViolated);
}

// ----------------------------------------------------------------------------------------- circles

TEST_CASE("two tables that refer to each other", "[engine]") {
  Sales sales;
  {
    Transaction t = sales.begin();
    for (std::int64_t id = 1; id <= 3; ++id)
      must(t.update(sales.shops, must(t.get({sales.shops, 0}, {id})).id(),
                    {{ColumnId(1), Value::int64(id - 1)}}));
    must(t.commit());
  }
  must(sales.database->add_foreign_key(sales.sales, of_shop(ReferenceAction::kCascade)));
  ForeignKeySchema best;
  best.name = "of_best";
  best.columns = {"best"};
  best.table = "sales";
  best.on_delete = ReferenceAction::kCascade;
  best.on_update = ReferenceAction::kCascade;
  must(sales.database->add_foreign_key(sales.shops, best));
  for (int opened = 0; opened < 2; ++opened) {
    CHECK(sales.database->drop_table(sales.shops).code() == StatusCode::kConstraintViolated);
    CHECK(sales.database->drop_table(sales.sales).code() == StatusCode::kConstraintViolated);
    must(sales.database->rename_table(sales.shops, opened == 0 ? "stores" : "shops"));
    sales.reopen();
  }
  CHECK(must(sales.database->schema(sales.sales)).foreign_keys[0].table == "shops");
  // Shop 1 takes sales 0 and 3 with it; no other shop has these as its best.
  must(sales.close_shop(1));
  CHECK(sales.found() == "2 3 2 3 -");
  // The best sale of shop 2 takes the shop with it, which takes its other sales.
  Transaction t = sales.begin();
  must(t.remove(sales.sales, must(t.get({sales.sales, 0}, {Value::int64(1)})).id()));
  must(t.commit());
  CHECK(sales.found() == "3 3 -");
  // A sale with another number, and the shop with it.
  Transaction u = sales.begin();
  must(u.update(sales.sales, must(u.get({sales.sales, 0}, {Value::int64(2)})).id(),
                {{ColumnId(0), Value::int64(11)}}));
  CHECK(must(u.get({sales.shops, 0}, {Value::int64(3)})).get_unchecked(ColumnId(1)) ==
        Value::int64(11));
  // Rows that refer to each other come one after the other, and the last update closes the circle.
  must(u.insert(sales.shops, {Value::int64(4), Value::null()}));
  must(u.insert(sales.sales, {Value::int64(8), Value::int64(4)}));
  must(u.update(sales.shops, must(u.get({sales.shops, 0}, {Value::int64(4)})).id(),
                {{ColumnId(1), Value::int64(8)}}));
  must(u.commit());
  sales.reopen();
  must(sales.database->drop_foreign_key(sales.shops, "of_best"));
  must(sales.database->drop_table(sales.sales));
  must(sales.database->drop_table(sales.shops));
  sales.reopen();
}

TEST_CASE("a table that comes to refer to itself", "[engine]") {
  Sales sales;
  ForeignKeySchema follows;
  follows.name = "follows";
  follows.columns = {"shop"};
  follows.table = "sales";
  follows.on_delete = ReferenceAction::kCascade;
  must(sales.database->add_foreign_key(sales.sales, follows));  // sales 1 to 3 are there
  Transaction t = sales.begin();
  must(t.remove(sales.sales, must(t.get({sales.sales, 0}, {Value::int64(3)})).id()));
  must(t.commit());
  CHECK(sales.found() == "-");  // 2 and 5 referred to 3, 1 and 4 to 2, and 0 to 1
  sales.reopen();
  must(sales.database->drop_table(sales.sales));
}

// ------------------------------------------------------------------------- beside transactions

TEST_CASE("an open transaction keeps a foreign key from being added", "[engine]") {
  const bool has_key = GENERATE(false, true);
  Sales sales(has_key);
  Transaction open = sales.begin();
  const Status refused = sales.database->add_foreign_key(sales.sales, of_shop());
  CHECK(refused.code() == StatusCode::kBusy);
  CHECK_THAT(sale_words(refused),
             Catch::Matchers::StartsWith(
                 "table sales, " + std::string(has_key ? "foreign key" : "key") +
                 " of_shop: transaction " + std::to_string(open.id().value()) + " began before"));
  must(open.insert(sales.sales, {Value::int64(7), Value::int64(9)}));
  must(open.remove(sales.shops, must(open.get({sales.shops, 0}, {Value::int64(1)})).id()));
  must(open.commit());
  must(sales.sell(8, 9));
  CHECK(must(sales.database->schema(sales.sales)).foreign_keys.empty());
  sales.reopen();
  // A transaction that is open does not keep one from being dropped.
  must(sales.database->add_foreign_key(sales.sales, [] {
    ForeignKeySchema itself;
    itself.name = "itself";
    itself.columns = {"id"};
    itself.table = "sales";
    return itself;
  }()));
  Transaction other = sales.begin();
  must(other.insert(sales.sales, {Value::int64(9), Value::int64(9)}));
  must(sales.database->drop_foreign_key(sales.sales, "itself"));
  must(other.insert(sales.sales, {Value::int64(10), Value::int64(9)}));
  must(other.commit());
  sales.reopen();
}

TEST_CASE("writers of both tables obey a foreign key while it is added", "[engine]") {
  const bool has_key = GENERATE(false, true);
  Sales sales(has_key);
  const auto adds = [&] { return sales.database->add_foreign_key(sales.sales, of_shop()); };
  must(held_up(*sales.database, adds, [&] {
    CHECK(must(sales.database->schema(sales.sales)).foreign_keys.empty());
    CHECK(sales.sell(7, 9).code() == StatusCode::kConstraintViolated);
    if (has_key) CHECK(sales.close_shop(1).code() == StatusCode::kConstraintViolated);
    must(sales.sell(8, 2));
    // What the foreign key needs stays, and may be renamed.
    CHECK(sales.database->drop_table(sales.shops).code() == StatusCode::kConstraintViolated);
    CHECK(sales.database->drop_column(sales.sales, kSaleShop).code() ==
          StatusCode::kConstraintViolated);
    CHECK(sales.database->change_type(sales.shops, ColumnId(0), Type::kInt64).ok());
    CHECK(sales.database->drop_foreign_key(sales.sales, "of_shop").code() == StatusCode::kNotFound);
    must(sales.database->rename_column(sales.sales, kSaleShop, "store"));
    must(sales.database->rename_table(sales.shops, "stores"));
    must(sales.database->rename_key({sales.shops, 0}, "main"));
    CHECK(sale_words(sales.sell(7, 9)) ==
          "table sales, foreign key of_shop: store = 9 is not in table stores, key main");
  }));
  const auto added = [&] { return must(sales.database->schema(sales.sales)).foreign_keys; };
  for (int opened = 0; opened < 2; ++opened) {
    REQUIRE(added().size() == 1);
    CHECK(added()[0].columns == std::vector<std::string>{"store"});
    CHECK(added()[0].table == "stores");
    CHECK(added()[0].key == "main");
    CHECK(sales.close_shop(1).code() == StatusCode::kConstraintViolated);
    sales.reopen();
  }
}

TEST_CASE("a foreign key that is being added deletes and changes nothing", "[engine]") {
  Sales sales(true);
  must(sales.sell(7, 9));
  const auto adds = [&] {
    return sales.database->add_foreign_key(
        sales.sales, of_shop(ReferenceAction::kCascade, ReferenceAction::kSetNull));
  };
  const Status refused = held_up(*sales.database, adds, [&] {
    const Status closed = sales.close_shop(1);
    CHECK(closed.code() == StatusCode::kConflict);
    CHECK(sale_words(closed) ==
          "table sales, foreign key of_shop: the foreign key is being created or dropped");
    CHECK(sales.move_shop(2, 5).code() == StatusCode::kConflict);
  });
  CHECK(refused.code() == StatusCode::kConstraintViolated);
  CHECK(sales.found() == "1 2 3 1 2 3 - 9");
  must(sales.close_shop(1));
  CHECK(sales.found() == "1 2 3 1 2 3 - 9");
}

}  // namespace flugs::test
