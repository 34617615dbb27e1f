// A failure names the part of the schema that it is about.
#include <catch2/catch.hpp>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "flugs/column_batch.h"
#include "flugs/database.h"
#include "flugs/expression.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

using query::col;

TableSchema shop() {
  TableSchema schema("shop");
  schema.column("id", Type::kInt64).column("city", Type::kString).not_null();
  return schema.primary_key({"id"});
}

TableSchema sale() {
  TableSchema schema("sale");
  schema.column("id", Type::kInt64).column("shop", Type::kInt64).column("pieces", Type::kInt32);
  schema.column("bill", Type::kString);
  schema.primary_key({"id"}).unique_key("by_bill", {"bill"});
  schema.check("sold", col("pieces") > 0).foreign_key("of_shop", {"shop"}, "shop");
  return schema;
}

struct Shops {
  TemporaryDatabase database;
  TableId shops = must(database->create_table(shop()));
  TableId sales = must(database->create_table(sale()));
  Transaction t = must(database->begin());

  Shops() {
    must(t.insert(shops, {Value::int64(1), Value::string("Bonn")}));
    must(t.insert(sales, row(1, "a")));
  }
  static std::vector<Value> row(std::int64_t id, std::string_view bill, std::int32_t pieces = 1,
                                std::int64_t of = 1) {
    return {Value::int64(id), Value::int64(of), Value::int32(pieces), Value::string(bill)};
  }
  KeyId primary(TableId table) { return must(database->find_key(table, "primary")); }
  ColumnId column(TableId table, const char* name) {
    return must(database->find_column(table, name));
  }
};

void check_about(const Status& status, StatusCode code, const SchemaPart& part) {
  INFO(status.to_string());
  CHECK(status.code() == code);
  REQUIRE(status.part() != nullptr);
  CHECK(*status.part() == part);
  if (part.kind != SchemaPart::Kind::kTable)
    CHECK(status.message().find(to_string(part)) != std::string::npos);
}
template <typename T>
void check_about(const Result<T>& result, StatusCode code, const SchemaPart& part) {
  check_about(result.status(), code, part);
}

constexpr StatusCode kTaken = StatusCode::kAlreadyExists;
constexpr StatusCode kViolated = StatusCode::kConstraintViolated;

}  // namespace

TEST_CASE("a refused row names the key, column, check or foreign key", "[api]") {
  Shops all;
  Transaction& t = all.t;
  check_about(t.insert(all.sales, Shops::row(1, "b")), kTaken, SchemaPart::key("sale", "primary"));
  check_about(t.insert(all.sales, Shops::row(2, "a")), kTaken, SchemaPart::key("sale", "by_bill"));
  check_about(t.insert(all.sales, Shops::row(2, "b", 0)), kViolated,
              SchemaPart::check("sale", "sold"));
  check_about(t.insert(all.sales, Shops::row(2, "b", 1, 9)), kViolated,
              SchemaPart::foreign_key("sale", "of_shop"));
  check_about(t.insert(all.shops, {Value::int64(2), Value::null()}), kViolated,
              SchemaPart::column("shop", "city"));
  check_about(t.insert(all.shops, {Value::int64(2), Value::int64(3)}), kViolated,
              SchemaPart::column("shop", "city"));
  check_about(t.insert(all.shops, {Value::int64(2)}), StatusCode::kInvalidArgument,
              SchemaPart::of("shop"));
}

TEST_CASE("a refused update or deletion names its part of the schema", "[api]") {
  Shops all;
  Transaction& t = all.t;
  const KeyId key = all.primary(all.sales);
  must(t.insert(all.sales, Shops::row(2, "b")));
  const auto changed = [&](const char* column, const Value& value) {
    return t.update(key, {Value::int64(2)}, {{all.column(all.sales, column), value}}).status();
  };
  check_about(changed("bill", Value::string("a")), kTaken, SchemaPart::key("sale", "by_bill"));
  check_about(changed("pieces", Value::int32(-1)), kViolated, SchemaPart::check("sale", "sold"));
  check_about(changed("shop", Value::int64(9)), kViolated,
              SchemaPart::foreign_key("sale", "of_shop"));
  const ColumnId pieces = all.column(all.sales, "pieces");
  check_about(
      t.add(key, {Value::int64(2)}, pieces, Value::int64(std::numeric_limits<std::int32_t>::max())),
      StatusCode::kOverflow, SchemaPart::column("sale", "pieces"));
  check_about(t.remove(all.primary(all.shops), {Value::int64(1)}), kViolated,
              SchemaPart::foreign_key("sale", "of_shop"));
}

TEST_CASE("a refused batch names its part of the schema, besides the row", "[api]") {
  Shops all;
  const std::int64_t ids[] = {7, 8, 7};
  const std::int32_t pieces[] = {1, 0, 1};
  const auto inserted = [&](std::size_t rows, const std::int32_t* counts) {
    const BatchColumn columns[] = {
        {.column = all.column(all.sales, "id"),
         .values = {.form = ArrayForm::kInt64, .size = rows, .values = ids}},
        {.column = all.column(all.sales, "pieces"),
         .values = {.form = ArrayForm::kInt32, .size = rows, .values = counts}}};
    return all.t.insert_columns(all.sales, {.rows = rows, .columns = columns});
  };
  const std::int32_t ones[] = {1, 1, 1};
  check_about(inserted(2, pieces), kViolated, SchemaPart::check("sale", "sold"));
  const Status taken = inserted(3, ones);
  check_about(taken, kTaken, SchemaPart::key("sale", "primary"));
  CHECK(taken.message().starts_with("row 2 of the batch: "));
}

TEST_CASE("a conflict and a change of the schema name their part, too", "[api]") {
  Shops all;
  must(all.t.commit());
  Transaction first = must(all.database->begin());
  Transaction second = must(all.database->begin());
  must(first.insert(all.sales, Shops::row(5, "x")));
  check_about(second.insert(all.sales, Shops::row(5, "y")), StatusCode::kConflict,
              SchemaPart::key("sale", "primary"));
  first.abort();
  second.abort();
  check_about(all.database->create_table(shop()), kTaken, SchemaPart::of("shop"));
  check_about(all.database->find_column(all.shops, "none"), StatusCode::kNotFound,
              SchemaPart::of("shop"));
  check_about(all.database->drop_column(all.sales, all.column(all.sales, "pieces")), kViolated,
              SchemaPart::column("sale", "pieces"));
  check_about(all.database->drop_key(all.primary(all.shops)), kViolated,
              SchemaPart::key("shop", "primary"));
  TableSchema wrong("wrong");
  wrong.column("id", Type::kInt64).primary_key({"it"});
  check_about(all.database->create_table(wrong), StatusCode::kInvalidArgument,
              SchemaPart::key("wrong", "primary"));
  TableSchema unfit("unfit");
  unfit.column("id", Type::kInt64).check("sold", col("pieces") > 0);
  check_about(all.database->create_table(unfit), StatusCode::kInvalidArgument,
              SchemaPart::check("unfit", "sold"));
  TableSchema numbered("numbered");
  numbered.column("id", Type::kString).auto_increment().primary_key({"id"});
  check_about(all.database->create_table(numbered), StatusCode::kInvalidArgument,
              SchemaPart::column("numbered", "id"));
}

TEST_CASE("a status keeps its part when its code or message changes", "[api]") {
  const Status status(kTaken, SchemaPart::key("t", "k"), "there");
  CHECK(status.message() == "table t, key k: there");
  CHECK(Status(kTaken, SchemaPart::of("t")).message() == "table t");
  const Status other = status.with_code(StatusCode::kConflict).with_message("changed");
  CHECK(other.to_string() == "conflict: changed");
  REQUIRE(other.part() != nullptr);
  CHECK(*other.part() == SchemaPart::key("t", "k"));
  const Status copy = other;
  CHECK(*copy.part() == *other.part());
  CHECK(Status(kTaken, "words").part() == nullptr);
  CHECK(Status(kTaken).part() == nullptr);
  const Status named = Status(kTaken, "words").with_part(SchemaPart::check("t", "c"));
  CHECK(named.message() == "words");
  CHECK(to_string(*named.part()) == "table t, check c");
}

}  // namespace flugs::test
