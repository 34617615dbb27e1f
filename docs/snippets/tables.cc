// Code of docs/howto/tables.md.
#include <chrono>
#include <iostream>
#include <string_view>
#include <vector>

#include "shop.h"

using namespace flugs;
using query::col;

namespace snippets {

namespace {

// --8<-- [start:customers]
Result<Table> ensure_customers(Database& database) {
  TableSchema schema("customers");
  schema.column("id", Type::kInt64).auto_increment();
  schema.column("name", Type::kString).not_null();
  schema.column("city", Type::kString);  // may be NULL
  schema.column("points", Type::kInt32).not_null().with_default(0);
  schema.primary_key({"id"});
  // No two customers of one name; and they can be read in order of names.
  schema.unique_key("by_name", {"name"}).ordered();
  return database.ensure_table(schema);  // creates it unless it is there
}
// --8<-- [end:customers]

Result<Table> ensure_products(Database& database) {
  // --8<-- [start:money]
  TableSchema schema("products");
  schema.column("id", Type::kInt64).auto_increment().primary_key({"id"});
  schema.column("name", Type::kString).not_null();
  schema.column("price", Type::kDecimal).scale(2).not_null();  // cents
  schema.column("since", Type::kDate);                         // a day
  schema.column("changed", Type::kTimestamp);  // microseconds, UTC
  // --8<-- [end:money]
  // --8<-- [start:check]
  schema.column("stock", Type::kInt64).not_null().with_default(0);
  schema.check("in_stock", col("stock") >= 0);
  schema.check("named", col("name") != "" && !col("name").starts_with(" "));
  // --8<-- [end:check]
  return database.ensure_table(schema);
}

Result<Table> ensure_orders(Database& database) {
  // --8<-- [start:foreign]
  TableSchema schema("orders");
  schema.column("id", Type::kInt64).auto_increment().primary_key({"id"});
  schema.column("customer", Type::kInt64).not_null();
  schema.column("state", Type::kString).not_null().with_default("new");
  schema.column("at", Type::kTimestamp);
  schema.column("total", Type::kDecimal)
      .scale(2)
      .not_null()
      .with_default(Value::decimal("0.00"));
  schema.key("by_customer", {"customer", "id"});  // not unique, so ordered
  schema.foreign_key("of_customer", {"customer"}, "customers",
                     ReferenceAction::kCascade);
  // --8<-- [end:foreign]
  return database.ensure_table(schema);
}

Status put_money(Database& database, const Table& products) {
  // --8<-- [start:put_money]
  FLUGS_ASSIGN(const auto ids,
               products.columns("name", "price", "since", "changed"));
  const auto [name, price, since, changed] = ids;
  FLUGS_TRY(database.run([&](Transaction& t) -> Status {
    using namespace std::chrono;
    return t
        .insert(products, {{name, "tea"},
                           {price, Value::decimal("3.20")},
                           {since, 2026y / November / 25},
                           {changed, system_clock::now()}})
        .status();
  }));
  // --8<-- [end:put_money]
  return {};
}

Status parse_money(std::string_view text) {
  // --8<-- [start:parse_money]
  Value price;
  if (!Value::parse_decimal(text, price))
    return Status(StatusCode::kInvalidArgument,
                  "the price is no decimal number");
  // --8<-- [end:parse_money]
  return expect(price == Value::decimal("3.2"), "a price");
}

Status see_check(Database& database, const Table& products) {
  FLUGS_ASSIGN(const ColumnId stock, products.column("stock"));
  FLUGS_ASSIGN(const KeyId by_id, products.primary_key());
  // --8<-- [start:see_check]
  const Status refused = database.run([&](Transaction& t) -> Status {
    return t.update(by_id, {1}, {{stock, -1}}).status();
  });
  // refused.code() is StatusCode::kConstraintViolated, and the message has
  // table, check and values
  // --8<-- [end:see_check]
  return expect(refused.code() == StatusCode::kConstraintViolated, "a check");
}

Status whole_schema(Database& database) {
  // --8<-- [start:schema]
  TableSchema authors("authors");
  authors.column("id", Type::kInt64).primary_key({"id"});
  TableSchema books("books");
  books.column("id", Type::kInt64).primary_key({"id"});
  books.column("author", Type::kInt64);
  books.foreign_key("written_by", {"author"}, "authors");
  FLUGS_ASSIGN(const std::vector<Table> tables,
               database.ensure_tables({authors, books}));
  // --8<-- [end:schema]
  FLUGS_TRY(database.drop_table(tables[1]));
  return database.drop_table(tables[0]);
}

Status add_column(Database& database, const Table& products) {
  // --8<-- [start:add_column]
  ColumnSchema weight;
  weight.name = "grams";
  weight.type = Type::kInt32;
  weight.nullable = false;
  weight.default_value = 100;  // existing rows have it from now on
  FLUGS_ASSIGN(const ColumnId grams, database.add_column(products, weight));
  // --8<-- [end:add_column]
  FLUGS_TRY(database.rename_column(products, grams, "gram"));
  FLUGS_TRY(database.drop_column(products, grams));
  return {};
}

Status add_key(Database& database, const Table& orders) {
  // --8<-- [start:add_key]
  KeySchema by_state;
  by_state.name = "by_state";
  by_state.columns = {"state", "id"};
  by_state.ordered = true;
  // Writers go on meanwhile.
  FLUGS_ASSIGN(const KeyId key, database.add_key(orders, by_state));
  // --8<-- [end:add_key]
  return database.drop_key(key);
}

Status add_constraints(Database& database, const Table& customers,
                       const Table& orders) {
  // --8<-- [start:add_constraints]
  FLUGS_TRY(database.add_check(customers, {"sane", col("points") >= 0}));
  FLUGS_ASSIGN(const ColumnId at, orders.column("at"));
  // Fails with kConstraintViolated, and names a row, if one has NULL.
  const Status no_nulls = database.set_not_null(orders, at);
  FLUGS_ASSIGN(const ColumnId state, orders.column("state"));
  FLUGS_TRY(database.set_default(orders, state, "open"));
  FLUGS_TRY(database.drop_foreign_key(orders, "of_customer"));
  ForeignKeySchema of_customer;
  of_customer.name = "of_customer";
  of_customer.columns = {"customer"};
  of_customer.table = "customers";
  of_customer.on_delete = ReferenceAction::kRestrict;
  FLUGS_TRY(database.add_foreign_key(orders, of_customer));
  // --8<-- [end:add_constraints]
  FLUGS_TRY(expect(no_nulls.ok(), "no NULL in a table without rows"));
  FLUGS_TRY(database.drop_foreign_key(orders, "of_customer"));
  of_customer.on_delete = ReferenceAction::kCascade;
  FLUGS_TRY(database.add_foreign_key(orders, of_customer));
  FLUGS_TRY(database.set_default(orders, state, "new"));
  FLUGS_TRY(database.set_not_null(orders, at, false));
  return database.drop_check(customers, "sane");
}

Status change(Database& database, const Table& customers) {
  // --8<-- [start:change]
  FLUGS_ASSIGN(const ColumnId points, customers.column("points"));
  FLUGS_TRY(database.change_type(customers, points, Type::kInt64));
  FLUGS_TRY(database.rename_column(customers, points, "bonus"));
  // --8<-- [end:change]
  return database.rename_column(customers, points, "points");
}

Status look(const Database& database) {
  // --8<-- [start:look]
  for (const TableId id : database.tables()) {
    FLUGS_ASSIGN(const TableSchema schema, database.schema(id));
    for (const ColumnSchema& column : schema.columns)
      if (!column.dropped)
        std::cout << schema.name << '.' << column.name << ": "
                  << to_string(column.type) << '\n';
  }
  // --8<-- [end:look]
  return {};
}

}  // namespace

Status tables(Database& database) {
  FLUGS_ASSIGN(const Table customers, ensure_customers(database));
  FLUGS_ASSIGN(const Table products, ensure_products(database));
  FLUGS_ASSIGN(const Table orders, ensure_orders(database));
  FLUGS_TRY(put_money(database, products));
  FLUGS_TRY(parse_money("3.20"));
  FLUGS_TRY(see_check(database, products));
  FLUGS_TRY(whole_schema(database));
  FLUGS_TRY(add_column(database, products));
  FLUGS_TRY(add_key(database, orders));
  FLUGS_TRY(add_constraints(database, customers, orders));
  FLUGS_TRY(change(database, customers));
  return look(database);
}

}  // namespace snippets
