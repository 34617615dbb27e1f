// Table handles, structs as rows, writes by row and by key, and the numbers that inserts give.
#include <catch2/catch.hpp>
#include <chrono>
#include <optional>
#include <string>

#include "flugs/flugs.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

using Instant = std::chrono::sys_time<std::chrono::microseconds>;

struct Order {
  std::int64_t id = 0;
  std::int64_t customer = 0;
  std::string state = "new";
  Instant at{};
  Decimal total{};
  std::optional<std::string> note{};
};
FLUGS_ROW(Order, id, customer, state, at, total, note)

struct WrongName {
  std::int64_t customers = 0;
};
FLUGS_ROW(WrongName, customers)
struct WrongType {
  std::int32_t customer = 0;
};
FLUGS_ROW(WrongType, customer)
struct NoOptional {
  std::string note;
};
FLUGS_ROW(NoOptional, note)
struct NoKey {
  std::int64_t customer = 0;
};
FLUGS_ROW(NoKey, customer)

struct Part {
  std::int64_t a = 0;
  std::int64_t b = 0;
  std::int64_t c = 0;
  std::int64_t d = 0;
};
FLUGS_ROW(Part, d, c, b, a)
struct LastPart {
  std::int64_t d = 0;
};
FLUGS_ROW(LastPart, d)
struct Named {
  std::string name;
  std::int64_t no = 0;
  std::int32_t v = 0;
};
FLUGS_ROW(Named, name, no, v)

TableSchema orders_schema() {
  TableSchema schema("orders");
  schema.column("id", Type::kInt64).auto_increment();
  schema.column("customer", Type::kInt64).not_null();
  schema.column("state", Type::kString).not_null().with_default("new");
  schema.column("at", Type::kTimestamp).not_null();
  schema.column("total", Type::kDecimal).scale(2).not_null();
  schema.column("note", Type::kString);
  schema.column("region", Type::kInt32).with_default(7);
  schema.primary_key({"id"}).key("by_customer", {"customer"});
  return schema;
}

struct World {
  TemporaryDatabase database;
  TableId id = must(database->create_table(orders_schema()));
  TypedTable<Order> orders = must(database->table<Order>("orders"));
  Transaction begin() { return must(database->begin()); }
};

}  // namespace

TEST_CASE("a table handle finds columns and keys by name", "[api]") {
  World world;
  const Table table = must(world.database->table("orders"));
  CHECK(table.id() == world.id);
  CHECK(must(table.column("state")) == ColumnId(2));
  CHECK(must(table.primary_key()) == KeyId{world.id, 0});
  CHECK(must(table.key("by_customer")) == KeyId{world.id, 1});
  const auto [state, total] = must(table.columns("state", "total"));
  CHECK(state == ColumnId(2));
  CHECK(total == ColumnId(4));
  const Status missing = table.column("stat").status();
  CHECK(missing.code() == StatusCode::kNotFound);
  CHECK(missing.message() ==
        "table orders: no column 'stat', it has id, customer, state, at, "
        "total, note, region");
  CHECK(table.key("x").status().message() ==
        "table orders: no key 'x', it has primary, by_customer");
  CHECK(table.columns("state", "y").code() == StatusCode::kNotFound);
  CHECK(world.database->table("nothing").code() == StatusCode::kNotFound);
  CHECK(Table().column("x").code() == StatusCode::kNotFound);
  CHECK(Table().key("x").code() == StatusCode::kNotFound);
}

TEST_CASE("structs are rows", "[api]") {
  World world;
  Transaction t = world.begin();
  const Instant now{std::chrono::microseconds(1'700'000'000'123'456)};
  const Inserted first =
      must(world.orders.insert(t, {.customer = 7, .at = now, .total = {1250, 2}}));
  const Inserted second = must(world.orders.insert(
      t, {.customer = 8, .state = "paid", .at = now, .total = {5, 0}, .note = "by air"}));
  CHECK(first.number > 0);
  CHECK(second.number > first.number);
  Order order = must(world.orders.get(t, first.number));
  CHECK(order.id == first.number);
  CHECK(order.customer == 7);
  CHECK(order.state == "new");
  CHECK(order.at == now);
  CHECK(order.total == Decimal{1250, 2});
  CHECK(!order.note.has_value());
  CHECK(must(t.get(world.id, first)).get<std::int32_t>("region").value_or(0) == 7);
  order.state = "sent";
  order.note = "left";
  must(world.orders.update(t, order));
  CHECK(must(world.orders.get(t, order.id)).state == "sent");
  CHECK(must(world.orders.get(t, order.id)).note == "left");
  CHECK(must(world.orders.get(t, {world.id, 0}, {second.number})).total == Decimal{500, 2});
  must(world.orders.remove(t, order.id));
  CHECK(world.orders.get(t, order.id).code() == StatusCode::kNotFound);
  CHECK(world.orders.update(t, order).code() == StatusCode::kNotFound);
  CHECK(world.orders.remove(t, order.id).code() == StatusCode::kNotFound);
  CHECK(world.orders.insert(t, {.id = second.number, .at = now}).code() ==
        StatusCode::kAlreadyExists);
  CHECK(must(world.orders.column(&Order::state)) == ColumnId(2));
  CHECK(must(world.orders.column(&Order::customer)) == ColumnId(1));
  must(t.commit());
}

TEST_CASE("a struct that does not fit its table is refused by name", "[api]") {
  World world;
  const auto refusal = [&](const auto& result) {
    CHECK(result.code() == StatusCode::kInvalidArgument);
    return std::string(result.status().message());
  };
  CHECK(refusal(world.database->table<WrongName>("orders"))
            .find("member customers: table orders: no column 'customers'") != std::string::npos);
  CHECK(refusal(world.database->table<WrongType>("orders")) ==
        "table orders, member customer: the column is of type int64, the member int32");
  CHECK(refusal(world.database->table<NoOptional>("orders")).find("std::optional<string>") !=
        std::string::npos);
  CHECK(world.database->table<Order>("nothing").code() == StatusCode::kNotFound);
  Transaction t = world.begin();
  const auto no_key = must(world.database->table<NoKey>("orders"));
  CHECK(no_key.update(t, {.customer = 1}).status().message().find("primary key") !=
        std::string_view::npos);
  CHECK(no_key.insert(t, {.customer = 1}).code() == StatusCode::kConstraintViolated);  // no time
}

TEST_CASE("structs find rows by the primary key, whatever its name and its columns", "[api]") {
  TemporaryDatabase database;
  TableSchema schema("parts");
  schema.column("a", Type::kInt64).column("b", Type::kInt64).column("c", Type::kInt64);
  schema.column("d", Type::kInt64).primary_key({"a", "b", "c", "d"}).unique_key("u", {"d"});
  const TableId parts = must(database->create_table(schema));
  Transaction t = must(database->begin());
  must(t.insert(parts, {1, 2, 3, 4}));
  must(t.commit());
  // The struct lacks leading columns of the key: refused before anything is written.
  const auto last = must(database->table<LastPart>("parts"));
  Transaction writer = must(database->begin());
  CHECK(last.update(writer, {.d = 4}).code() == StatusCode::kInvalidArgument);
  const auto part = must(database->table<Part>("parts"));
  CHECK(must(part.get(writer, 1, 2, 3, 4)).d == 4);
  writer.abort();
  must(database->rename_key({parts, 0}, "pk"));
  must(database->rename_key({parts, 1}, "primary"));
  const auto renamed = must(database->table<Part>("parts"));
  Transaction reader = must(database->begin());
  CHECK(must(renamed.get(reader, 1, 2, 3, 4)).a == 1);
  must(renamed.update(reader, {.a = 1, .b = 2, .c = 3, .d = 4}));
  CHECK(must(must(database->table("parts")).primary_key()) == KeyId{parts, 0});
  must(renamed.remove(reader, 1, 2, 3, 4));
}

TEST_CASE("a struct's table refuses rows of others, and says when it has no primary key", "[api]") {
  World world;
  must(world.database->create_table(
      TableSchema("plain").column("customer", Type::kInt64).not_null()));
  const auto plain = must(world.database->table<NoKey>("plain"));
  Transaction t = world.begin();
  const RowId row = must(plain.insert(t, {.customer = 5}));
  const Row of_plain = must(t.get(plain.table().id(), row));
  CHECK(must(plain.get(of_plain)).customer == 5);
  CHECK(world.orders.get(of_plain).status().message() ==
        "table orders: the row is of another table");
  for (const Status& refused : {plain.get(t, 5).status(), plain.remove(t, 5)})
    CHECK(refused.message() == "table plain: has no primary key; name another key");
  CHECK(plain.update(t, {.customer = 5}).code() == StatusCode::kInvalidArgument);
  CHECK(TypedTable<Order>().update(t, {}).code() == StatusCode::kInvalidArgument);
  CHECK(TypedTable<Order>::bind(Table()).code() == StatusCode::kInvalidArgument);
  const Table none;
  CHECK(none.name().empty());
}

TEST_CASE("an update by struct leaves an auto-increment column outside of the key alone", "[api]") {
  TemporaryDatabase database;
  TableSchema schema("named");
  schema.column("name", Type::kString).column("no", Type::kInt64).auto_increment();
  schema.column("v", Type::kInt32).not_null().primary_key({"name"});
  must(database->create_table(schema));
  const auto named = must(database->table<Named>("named"));
  Transaction t = must(database->begin());
  const std::int64_t number = must(named.insert(t, {.name = "n", .v = 1})).number;
  must(named.update(t, {.name = "n", .v = 2}));
  CHECK(must(named.get(t, "n")).no == number);
  CHECK(must(named.get(t, "n")).v == 2);
}

TEST_CASE("rows are updated and removed by key and by row", "[api]") {
  World world;
  Transaction t = world.begin();
  const KeyId primary{world.id, 0};
  const ColumnId state{2};
  const auto add = [&](std::int64_t id) {
    return must(t.insert(world.id, {id, 1, "new", Instant(), 1, nullptr, nullptr}));
  };
  CHECK(add(1).number == 1);
  add(2);
  add(3);
  must(t.update(primary, {1}, {{state, "a"}}));
  const Row row = must(t.get(primary, {2}));
  must(t.update(row, {{state, "b"}}));
  CHECK(must(must(t.get(primary, {1})).get<std::string>(state)) == "a");
  CHECK(must(must(t.get(primary, {2})).get<std::string>(state)) == "b");
  must(t.remove(must(t.get(primary, {2}))));
  must(t.remove(primary, {3}));
  CHECK(t.get(primary, {2}).code() == StatusCode::kNotFound);
  CHECK(t.get(primary, {3}).code() == StatusCode::kNotFound);
  CHECK(t.remove(primary, {3}).code() == StatusCode::kNotFound);
  CHECK(t.update(primary, {3}, {{state, "c"}}).code() == StatusCode::kNotFound);
  CHECK(t.update({world.id, 1}, {1}, {{state, "c"}}).code() == StatusCode::kInvalidArgument);
  CHECK(t.remove({world.id, 9}, {1}).code() == StatusCode::kInvalidArgument);
  CHECK(t.remove(primary, {"x"}).code() == StatusCode::kInvalidArgument);
  CHECK(t.remove(Row()).code() == StatusCode::kNotFound);
  const Upserted upserted = must(t.upsert(primary, {9, 1, "new", Instant(), 1, nullptr, nullptr}));
  CHECK(upserted.inserted);
  CHECK(upserted.number == 9);
  must(t.commit());
  Transaction reader = must(world.database->begin(AccessMode::kReadOnly));
  CHECK(reader.remove(primary, {1}).code() == StatusCode::kReadOnly);
  CHECK(reader.update(primary, {1}, {{state, "c"}}).code() == StatusCode::kReadOnly);
}

TEST_CASE("a change by key meets a conflict like every change", "[api]") {
  World world;
  const KeyId primary{world.id, 0};
  {
    Transaction t = world.begin();
    must(t.insert(world.id, {1, 1, "new", Instant(), 1, nullptr, nullptr}));
    must(t.commit());
  }
  Transaction first = world.begin();
  Transaction second = world.begin();
  must(first.update(primary, {1}, {{ColumnId(2), "first"}}));
  CHECK(second.update(primary, {1}, {{ColumnId(2), "second"}}).code() == StatusCode::kConflict);
  CHECK(second.remove(primary, {1}).code() == StatusCode::kConflict);
  must(first.commit());
  Transaction later =
      must(world.database->begin(AccessMode::kReadWrite, Isolation::kReadCommitted));
  must(later.update(primary, {1}, {{ColumnId(2), "later"}}));
  must(later.remove(primary, {1}));
  must(later.commit());
}

TEST_CASE("ensure_table creates a table once, and names a difference", "[api]") {
  const TemporaryPath path;
  OpenOptions options;
  options.path = path.string();
  options.max_bytes = std::uint64_t{64} << 20;
  options.segment_bytes = std::uint64_t{1} << 20;
  TableSchema schema = orders_schema();
  schema.check("positive", query::col("total") >= 0);
  for (int start = 0; start < 2; ++start) {
    Database database = must(Database::open(options));
    const Table orders = must(database.ensure_table(schema));
    CHECK(orders.schema().columns.size() == (start == 0 ? 7 : 8));
    CHECK(database.tables().size() == 1);
    TableSchema child("lines");
    child.column("order", Type::kInt64).column("n", Type::kInt32).primary_key({"order", "n"});
    child.foreign_key("of", {"order"}, "orders", ReferenceAction::kCascade);
    must(database.ensure_table(child));
    must(database.drop_table(must(database.ensure_table(child))));
    if (start == 0)
      must(database.add_column(orders, TableSchema("x").column("y", Type::kBool).columns[0]));
    if (start == 0) must(database.drop_column(orders, must(orders.column("region"))));
    if (start == 0) schema.columns.pop_back();  // region is gone, y is one more
  }
  Database database = must(Database::open(options));
  const auto refusal = [&](TableSchema wanted) {
    const Result<Table> refused = database.ensure_table(wanted);
    CHECK(refused.code() == StatusCode::kInvalidArgument);
    return std::string(refused.status().message());
  };
  TableSchema other = schema;
  other.columns[1].type = Type::kInt32;
  CHECK(refusal(other) ==
        "table orders exists, and its column customer differs from the schema: it "
        "is int64 not null, wanted is int32 not null");
  other = schema;
  other.columns[4].scale = 3;
  CHECK(refusal(other).find("decimal of scale 2 not null") != std::string::npos);
  other = schema;
  other.columns[5].nullable = false;
  CHECK(refusal(other).find("it is string, wanted is string not null") != std::string::npos);
  other = schema;
  other.column("more", Type::kBool);
  CHECK(refusal(other).find("column more differs from the schema: it has none") !=
        std::string::npos);
  other = schema;
  other.keys[1].columns = {"customer", "at"};
  CHECK(refusal(other).find("(customer), wanted is ordered key on (customer, at)") !=
        std::string::npos);
  other = schema;
  other.check("more", query::col("total") >= 1);
  CHECK(refusal(other).find("check more") != std::string::npos);
  other = schema;
  other.checks[0].condition = query::col("total") >= 1;
  CHECK(refusal(other).find("check positive differs from the schema: it is ") != std::string::npos);
  other.column("", Type::kBool);
  CHECK(refusal(other).find("differs") == std::string::npos);  // the schema itself is refused
  other = schema;
  other.name.clear();
  CHECK(database.ensure_table(other).code() == StatusCode::kInvalidArgument);
}

TEST_CASE("the version of headers, library and pools", "[api]") {
  CHECK(library_version() == Version{});
  CHECK(FLUGS_PROJECT_VERSION == std::to_string(library_version().major) + "." +
                                     std::to_string(library_version().minor) + "." +
                                     std::to_string(library_version().patch));
  CHECK(pool_format_version() >= 7);
}

}  // namespace flugs::test
