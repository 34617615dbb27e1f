// Several tables that are created by one call: all of them, or none.
#include <catch2/catch.hpp>
#include <string>
#include <thread>
#include <vector>

#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

TableSchema customers_of_shop(std::string name = "customers") {
  TableSchema schema(std::move(name));
  schema.column("id", Type::kInt64).column("name", Type::kString).primary_key({"id"});
  return schema;
}

TableSchema orders_of_shop(const std::string& parent = "customers") {
  TableSchema schema("orders");
  schema.column("id", Type::kInt64)
      .column("customer", Type::kInt64)
      .primary_key({"id"})
      .foreign_key("placed by", {"customer"}, parent);
  return schema;
}

}  // namespace

TEST_CASE("create_tables makes tables that refer to each other", "[api]") {
  TemporaryDatabase world;
  const auto ids = must(world->create_tables({customers_of_shop(), orders_of_shop()}));
  REQUIRE(ids.size() == 2);
  CHECK(world->tables() == ids);
  CHECK(must(world->find_table("orders")) == ids[1]);
  for (int start = 0; start < 2; ++start) {
    Transaction t = must(world->begin());
    must(t.insert(ids[0], {start, "Ann"}));
    must(t.insert(ids[1], {start, start}));
    CHECK(t.insert(ids[1], {start + 10, 99}).code() == StatusCode::kConstraintViolated);
    must(t.commit());
    CHECK(world->drop_table(ids[0]).code() == StatusCode::kConstraintViolated);
    must(world->check());
    world.reopen();
  }
  // Into the catalogue that has replaced the first one.
  must(world->create_table(customers_of_shop("more")));
  must(world->create_tables({customers_of_shop("and"), customers_of_shop("others")}));
  world.reopen();
  CHECK(world->tables().size() == 5);
  must(world->drop_table(must(world->find_table("and"))));
  must(world->check());
  CHECK(must(world->create_tables({})).empty());
}

TEST_CASE("create_tables makes no table when one of them is refused", "[api]") {
  TemporaryDatabase world;
  const std::uint64_t used = world->statistics().pool_used_bytes;
  const auto refused = [&](std::initializer_list<TableSchema> schemas, StatusCode code,
                           std::string_view message) {
    const Status status = world->create_tables(schemas).status();
    INFO(status.to_string());
    CHECK(status.code() == code);
    CHECK(status.message().find(message) != std::string_view::npos);
    CHECK(world->tables().empty());
    CHECK(world->statistics().pool_used_bytes == used);
  };
  refused({orders_of_shop(), customers_of_shop()}, StatusCode::kInvalidArgument,
          "table orders, foreign key placed by: no table 'customers'");
  refused({customers_of_shop(), orders_of_shop("nobody")}, StatusCode::kInvalidArgument,
          "no table 'nobody'");
  refused({customers_of_shop(), customers_of_shop()}, StatusCode::kInvalidArgument,
          "table customers: two schemas have this name");
  refused({customers_of_shop(), TableSchema("empty")}, StatusCode::kInvalidArgument, "empty");
  const TableId other = must(world->create_table(customers_of_shop("others")));
  CHECK(world->create_tables({customers_of_shop(), customers_of_shop("others")}).code() ==
        StatusCode::kAlreadyExists);
  CHECK(world->tables() == std::vector<TableId>{other});
  // A transaction that began before is still open, and one of the tables refers to another one.
  {
    const Transaction t = must(world->begin());
    CHECK(world->create_tables({customers_of_shop(), orders_of_shop("others")}).code() ==
          StatusCode::kBusy);
  }
  CHECK(world->tables() == std::vector<TableId>{other});
  must(world->create_tables({customers_of_shop(), orders_of_shop("others")}));
  must(world->check());
}

TEST_CASE("create_tables fills the catalogue, and no more", "[api]") {
  TemporaryDatabase world;
  std::vector<TableSchema> schemas;
  for (int i = 0; i < 510; ++i) schemas.push_back(customers_of_shop("t" + std::to_string(i)));
  must(world->create_tables(schemas));
  CHECK(world->create_tables({customers_of_shop("a"), customers_of_shop("b")}).code() ==
        StatusCode::kOutOfSpace);
  CHECK(world->tables().size() == 510);
  must(world->create_table(customers_of_shop("a")));
  CHECK(world->create_table(customers_of_shop("b")).code() == StatusCode::kOutOfSpace);
  must(world->drop_table(must(world->find_table("t7"))));
  must(world->drop_table(must(world->find_table("t400"))));
  must(world->create_tables({customers_of_shop("b"), customers_of_shop("c")}));
  world.reopen();
  CHECK(world->tables().size() == 511);
  must(world->check());
}

TEST_CASE("ensure_tables completes a schema, by any number of threads", "[api]") {
  TemporaryDatabase world;
  must(world->create_table(customers_of_shop()));
  std::vector<Status> results(4);
  std::vector<std::thread> threads;
  for (Status& result : results)
    threads.emplace_back([&] {
      const auto tables =
          world->ensure_tables({customers_of_shop(), orders_of_shop(), customers_of_shop("a")});
      result = tables.status();
      if (!tables.ok()) return;
      const bool in_order = tables->size() == 3 && (*tables)[0].name() == "customers" &&
                            (*tables)[1].name() == "orders" && (*tables)[2].name() == "a";
      if (!in_order) result = Status(StatusCode::kCorrupt, "another order");
    });
  for (std::thread& thread : threads) thread.join();
  for (const Status& result : results) must(result);
  CHECK(world->tables().size() == 3);
  TableSchema other = customers_of_shop();
  other.columns[1].type = Type::kBytes;
  CHECK(world->ensure_tables({customers_of_shop("new"), other}).code() ==
        StatusCode::kInvalidArgument);
  CHECK(world->find_table("new").code() == StatusCode::kNotFound);
}

}  // namespace flugs::test
