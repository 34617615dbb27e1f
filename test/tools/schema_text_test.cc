// Tables as statements that make them again.

#include "tools/report/schema_text.h"

#include <catch2/catch.hpp>
#include <limits>

#include "flugs/expression.h"
#include "test/support/temporary_database.h"

namespace flugs::tools {

namespace {

using query::col;

/// As a pool has the schemas: completed.
std::vector<TableSchema> stored(const std::vector<TableSchema>& schemas) {
  test::TemporaryDatabase database;
  std::vector<TableSchema> found;
  for (const TableSchema& schema : schemas)
    found.push_back(test::must(database->schema(test::must(database->create_table(schema)))));
  return found;
}

TableSchema customers() {
  TableSchema schema("customers");
  schema.column("id", Type::kInt64).auto_increment().column("mail", Type::kString).not_null();
  schema.primary_key({"id"}).ordered().unique_key("mail", {"mail"});
  return schema;
}

}  // namespace

TEST_CASE("every type has its word and its constants", "[tools]") {
  TableSchema schema("all types");
  schema.column("a", Type::kBool).with_default(true);
  schema.column("b", Type::kInt32).with_default(-7).direct();
  schema.column("c", Type::kInt64).expect_distinct(9);
  schema.column("d", Type::kDouble).with_default(0.1).dictionary();
  schema.column("e", Type::kDecimal).scale(2).with_default(Value::decimal("12.5"));
  schema.column("f", Type::kDate).with_default(Value::date(20'000));
  schema.column("g", Type::kTimestamp);
  schema.column("h", Type::kString).with_default("it's");
  schema.column("select", Type::kBytes);
  CHECK(schema_text(stored({schema})) ==
        "CREATE TABLE \"all types\" (\n"
        "  a BOOLEAN DEFAULT TRUE,\n"
        "  b INTEGER DEFAULT -7 ENCODING DIRECT,\n"
        "  c BIGINT EXPECT 9 DISTINCT,\n"
        "  d DOUBLE DEFAULT 0.1 ENCODING DICTIONARY,\n"
        "  e DECIMAL(18, 2) DEFAULT 12.50,\n"
        "  f DATE DEFAULT DATE '2024-10-04',\n"
        "  g TIMESTAMP,\n"
        "  h VARCHAR DEFAULT 'it''s',\n"
        "  \"select\" BLOB\n"
        ");\n");
}

TEST_CASE("keys, checks and foreign keys are parts of the statement", "[tools]") {
  TableSchema orders("orders");
  orders.column("id", Type::kInt64).column("customer", Type::kInt64).not_null();
  orders.column("total", Type::kDecimal).scale(2).column("state", Type::kString);
  orders.primary_key({"id"}).key("by_customer", {"customer", "id"});
  orders.unique_key("once", {"state", "id"}).hash_prefix(1);
  orders.check("paid", col("total") >= Value::decimal("0.50") || col("state") == "free");
  orders.foreign_key("buyer", {"customer"}, "customers", ReferenceAction::kCascade);
  CHECK(schema_text(stored({customers(), orders})) ==
        "CREATE TABLE customers (\n"
        "  id BIGINT NOT NULL AUTO_INCREMENT,\n"
        "  mail VARCHAR NOT NULL,\n"
        "  PRIMARY KEY (id) ORDERED,\n"
        "  CONSTRAINT mail UNIQUE (mail)\n"
        ");\n"
        "\n"
        "CREATE TABLE orders (\n"
        "  id BIGINT NOT NULL,\n"
        "  customer BIGINT NOT NULL,\n"
        "  total DECIMAL(18, 2),\n"
        "  state VARCHAR,\n"
        "  PRIMARY KEY (id),\n"
        "  INDEX by_customer (customer, id),\n"
        "  CONSTRAINT once UNIQUE (state, id) HASHED BY FIRST 1,\n"
        "  CONSTRAINT paid CHECK (total >= 0.50 OR state = 'free'),\n"
        "  CONSTRAINT buyer FOREIGN KEY (customer) REFERENCES customers (id) ON DELETE CASCADE\n"
        ");\n");
}

TEST_CASE("conditions read as SQL", "[tools]") {
  TableSchema schema("t");
  schema.column("a", Type::kInt32).column("b", Type::kInt32).column("s", Type::kString);
  schema.check("c1", Condition::in("a", {1, 2, nullptr}));
  schema.check("c2", Condition::all_of({Condition::is_not_null("b"),
                                        Condition::any_of({Condition::starts_with("s", "x"),
                                                           Condition::is_null("a")})}));
  schema.check(
      "c3", Condition::negated(Condition::compare_columns("a", Condition::Kind::kNotEqual, "b")));
  const std::string text = schema_text({schema});
  CHECK(text.find("CONSTRAINT c1 CHECK (a IN (1, 2, NULL))") != text.npos);
  CHECK(text.find("CONSTRAINT c2 CHECK (b IS NOT NULL AND (starts_with(s, 'x') OR a IS NULL))") !=
        text.npos);
  CHECK(text.find("CONSTRAINT c3 CHECK (NOT (a <> b))") != text.npos);
}

TEST_CASE("a foreign key to a later table follows behind all tables", "[tools]") {
  TableSchema orders("orders");
  orders.column("customer", Type::kInt64).foreign_key("buyer", {"customer"}, "customers");
  const std::string text = schema_text({orders, customers()});
  CHECK(text.find("REFERENCES") > text.find("CREATE TABLE customers"));
  CHECK(
      text.ends_with("\nALTER TABLE orders ADD CONSTRAINT buyer FOREIGN KEY (customer) REFERENCES "
                     "customers (id);\n"));
}

TEST_CASE("dropped columns and keys are left out", "[tools]") {
  test::TemporaryDatabase database;
  TableSchema schema("t");
  schema.column("a", Type::kInt32).column("b", Type::kInt32).key("by_b", {"b"});
  const TableId table = test::must(database->create_table(schema));
  test::must(database->drop_key(test::must(database->find_key(table, "by_b"))));
  test::must(database->drop_column(table, test::must(database->find_column(table, "b"))));
  CHECK(schema_text({test::must(database->schema(table))}) ==
        "CREATE TABLE t (\n  a INTEGER\n);\n");
}

TEST_CASE("no tables are no text", "[tools]") { CHECK(schema_text({}).empty()); }

}  // namespace flugs::tools
