// Five operations of a shop: open it, place an order, ship it, list the last ten, and add up the
// revenue of each region. Between the markers stands all code that a user writes for them.
#include <unistd.h>

#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "flugs/flugs.h"

using namespace flugs;
using namespace flugs::query;
using enum flugs::Type;

namespace {

// [begin]
struct Shop {
  Database database;
  Table items, orders, lines;
};

Result<Shop> open(const std::string& path) {
  FLUGS_ASSIGN(Database database, Database::open({.path = path}));
  TableSchema customers("customers"), items("items"), orders("orders"), lines("lines");
  customers.column("id", kInt64).column("region", kString).primary_key({"id"});
  items.column("id", kInt64).column("stock", kInt64).column("price", kDecimal, {.scale = 2});
  items.primary_key({"id"}).check("left", col("stock") >= 0);
  orders.column("id", kInt64, {.auto_increment = true}).column("customer", kInt64);
  orders.column("state", kString).column("total", kDecimal, {.scale = 2});
  orders.primary_key({"id"}).key("by_customer", {"customer", "id"});
  lines.column("order_id", kInt64).column("item", kInt64).column("pieces", kInt64);
  lines.primary_key({"order_id", "item"}).foreign_key("of", {"order_id"}, "orders");
  FLUGS_ASSIGN(const auto made, database.ensure_tables({customers, items, orders, lines}));
  return Shop{std::move(database), made[1], made[2], made[3]};
}

using Pieces = std::map<std::int64_t, std::int64_t>;  // by item
Result<std::int64_t> place(Shop& shop, std::int64_t customer, const Pieces& wanted) {
  FLUGS_ASSIGN(const KeyId by_id, shop.items.primary_key());
  FLUGS_ASSIGN(const ColumnId stock, shop.items.column("stock"));
  return shop.database.run([&](Transaction& t) -> Result<std::int64_t> {
    Decimal total{0, 2};
    for (const auto& [item, pieces] : wanted) {
      FLUGS_TRY(t.add(by_id, {item}, stock, -pieces));
      FLUGS_ASSIGN(const Row row, t.get(by_id, {item}));
      FLUGS_ASSIGN(const Decimal price, row.get<Decimal>("price"));
      total.units += price.units * pieces;
    }
    FLUGS_ASSIGN(const Inserted order, t.insert(shop.orders, {nullptr, customer, "new", total}));
    for (const auto& [item, pieces] : wanted)
      FLUGS_TRY(t.insert(shop.lines, {order.number, item, pieces}));
    return order.number;
  });
}

Result<bool> ship(Shop& shop, std::int64_t order) {
  FLUGS_ASSIGN(const KeyId by_id, shop.orders.primary_key());
  FLUGS_ASSIGN(const ColumnId state, shop.orders.column("state"));
  return shop.database.run([&](Transaction& t) {
    return t.compare_and_set(by_id, {order}, {{state, "new"}}, {{state, "sent"}});
  });
}

Result<std::vector<std::int64_t>> last_ten(Shop& shop, std::int64_t customer) {
  FLUGS_ASSIGN(const Transaction t, shop.database.begin(AccessMode::kReadOnly));
  FLUGS_ASSIGN(const KeyId by_customer, shop.orders.key("by_customer"));
  std::vector<std::int64_t> ids;
  Rows rows = t.rows(by_customer, {customer}).reverse().limit(10);
  for (const Row& row : rows) ids.push_back(*row.get<std::int64_t>("id"));
  FLUGS_TRY(rows.status());
  return ids;
}

Result<QueryResult> revenue_by_region(Shop& shop) {
  FLUGS_ASSIGN(const Transaction t, shop.database.begin(AccessMode::kReadOnly));
  const Query orders = Query::table("orders").select({"customer", "total"});
  return orders.join(Query::table("customers"), {{"customer", "id"}})
      .group_by({"region"}, {sum("total").as("revenue")})
      .run(t);
}
// [end]

Status check(bool holds, const char* what) {
  return holds ? Status() : Status(StatusCode::kCorrupt, std::string("not as expected: ") + what);
}

Status fill(Shop& shop) {
  return shop.database.run([&](Transaction& t) -> Status {
    FLUGS_ASSIGN(const TableId customers, shop.database.find_table("customers"));
    FLUGS_TRY(t.insert(customers, {1, "north"}));
    FLUGS_TRY(t.insert(customers, {2, "south"}));
    for (std::int64_t item = 1; item <= 3; ++item)
      FLUGS_TRY(t.insert(shop.items, {item, 10, Value::decimal("1.25")}));
    return {};
  });
}

Status run(const std::string& path) {
  FLUGS_ASSIGN(Shop shop, open(path));
  FLUGS_TRY(fill(shop));
  const Pieces two = {{1, 2}, {3, 1}}, too_many = {{2, 1}, {3, 100}};
  for (int i = 0; i < 5; ++i) FLUGS_TRY(place(shop, i % 2 + 1, two));
  FLUGS_TRY(check(place(shop, 1, too_many).code() == StatusCode::kConstraintViolated, "stock"));
  FLUGS_ASSIGN(const std::vector<std::int64_t> ids, last_ten(shop, 1));
  FLUGS_TRY(check(ids.size() == 3 && ids.front() > ids.back(), "the last orders"));
  FLUGS_ASSIGN(const bool shipped, ship(shop, ids.front()));
  FLUGS_ASSIGN(const bool again, ship(shop, ids.front()));
  FLUGS_TRY(check(shipped && !again, "shipping once"));
  FLUGS_ASSIGN(const QueryResult revenue, revenue_by_region(shop));
  FLUGS_TRY(check(revenue.row_count() == 2, "two regions"));
  for (std::size_t row = 0; row < revenue.row_count(); ++row) {
    FLUGS_ASSIGN(const auto region, revenue.get<std::string>(row, "region"));
    FLUGS_ASSIGN(const Value sum, revenue.get(row, "revenue"));
    const std::string expected = region == "north" ? "11.25" : "7.50";
    FLUGS_TRY(check(sum.to_string() == expected, "revenue"));
    std::printf("%s: %s\n", region.c_str(), sum.to_string().c_str());
  }
  return shop.database.close();
}

}  // namespace

int main() {
  const std::string path = "/dev/shm/flugs-five-operations-" + std::to_string(getpid());
  const Status done = run(path);
  if (!done.ok()) std::fprintf(stderr, "five_operations: %s\n", done.to_string().c_str());
  unlink(path.c_str());
  return done.ok() ? 0 : 1;
}
