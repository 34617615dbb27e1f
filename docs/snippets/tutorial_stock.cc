// stock: a shop with products, orders, a rule, a report and a merge.
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <string>

#include "flugs/flugs.h"

using namespace flugs;
using namespace flugs::query;

namespace {

// --8<-- [start:tables]
Status make_tables(Database& database) {
  TableSchema products("products");
  products.column("id", Type::kInt64).auto_increment().primary_key({"id"});
  products.column("name", Type::kString)
      .not_null()
      .unique_key("by_name", {"name"});
  products.column("stock", Type::kInt64).not_null();
  products.check("in_stock", col("stock") >= 0);
  FLUGS_TRY(database.ensure_table(products));

  TableSchema orders("orders");
  orders.column("id", Type::kInt64).auto_increment().primary_key({"id"});
  orders.column("product", Type::kInt64).not_null();
  orders.column("pieces", Type::kInt32).not_null();
  orders.foreign_key("of_product", {"product"}, "products");
  return database.ensure_table(orders).status();
}
// --8<-- [end:tables]

// --8<-- [start:order]
// Gives the number of the order. Changes nothing if there are too few pieces.
Result<std::int64_t> order(Database& database, const char* name,
                           std::int32_t pieces) {
  FLUGS_ASSIGN(const Table products, database.table("products"));
  FLUGS_ASSIGN(const KeyId by_name, products.key("by_name"));
  FLUGS_ASSIGN(const ColumnId stock, products.column("stock"));
  FLUGS_ASSIGN(const Table orders, database.table("orders"));
  FLUGS_ASSIGN(const auto columns, orders.columns("product", "pieces"));
  return database.run([&](Transaction& t) -> Result<std::int64_t> {
    FLUGS_ASSIGN(const Row product, t.get(by_name, {name}));
    FLUGS_ASSIGN(const std::int64_t id, product.get<std::int64_t>("id"));
    FLUGS_ASSIGN(const Inserted made,
                 t.insert(orders, {{columns[0], id}, {columns[1], pieces}}));
    FLUGS_TRY(t.add(by_name, {name}, stock, -pieces));
    return made.number;
  });
}
// --8<-- [end:order]

// --8<-- [start:report]
Status report(Database& database) {
  FLUGS_ASSIGN(const Transaction reader, database.begin(AccessMode::kReadOnly));
  const Query sold =
      Query::table("orders")
          .join(Query::table("products")
                    .select({col("id").as("product_id"), "name", "stock"}),
                {{"product", "product_id"}})
          .group_by({"name", "stock"},
                    {count().as("orders"), sum("pieces").as("pieces")})
          .order_by({desc("pieces")});
  FLUGS_ASSIGN(const QueryResult result, sold.run(reader));
  for (std::size_t row = 0; row < result.row_count(); ++row) {
    FLUGS_ASSIGN(const std::string name, result.get<std::string>(row, "name"));
    FLUGS_ASSIGN(const std::int64_t orders,
                 result.get<std::int64_t>(row, "orders"));
    FLUGS_ASSIGN(const std::int64_t pieces,
                 result.get<std::int64_t>(row, "pieces"));
    FLUGS_ASSIGN(const std::int64_t stock,
                 result.get<std::int64_t>(row, "stock"));
    std::cout << name << ": " << orders << " orders, " << pieces << " pieces, "
              << stock << " left\n";
  }
  std::cout << "in " << result.statistics().seconds * 1000 << " ms\n";
  return {};
}
// --8<-- [end:report]

// --8<-- [start:merge]
Status merge(Database& database) {
  FLUGS_ASSIGN(const Table orders, database.table("orders"));
  FLUGS_ASSIGN(const MergeReport merged,
               database.merge(orders, {.scope = MergeScope::kEverything}));
  std::cout << "merged " << merged.rows << " rows: " << merged.bytes_before
            << " bytes before, " << merged.bytes_after << " after\n";
  return {};
}
// --8<-- [end:merge]

// --8<-- [start:run]
Status fill(Database& database) {
  FLUGS_ASSIGN(const Table products, database.table("products"));
  FLUGS_ASSIGN(const KeyId by_name, products.key("by_name"));
  return database.run([&](Transaction& t) -> Status {  // id, name, stock
    FLUGS_TRY(t.insert_if_absent(by_name, {nullptr, "coffee", 1'000'000}));
    return t.insert_if_absent(by_name, {nullptr, "tea", 5}).status();
  });
}

Status run(const char* path) {
  OpenOptions options;
  options.path = path;
  options.max_bytes = std::uint64_t{1} << 30;
  FLUGS_ASSIGN(Database database, Database::open(options));
  FLUGS_TRY(make_tables(database));
  FLUGS_TRY(fill(database));
  for (int i = 0; i < 200'000; ++i) FLUGS_TRY(order(database, "coffee", 1));
  for (int i = 0; i < 2; ++i) {
    const Result<std::int64_t> tea = order(database, "tea", 3);  // of five
    std::cout << "three pieces of tea: " << tea.status().to_string() << '\n';
  }
  FLUGS_TRY(report(database));
  FLUGS_TRY(merge(database));
  FLUGS_TRY(report(database));
  return database.close();
}
// --8<-- [end:run]

}  // namespace

int main(int argc, char** argv) {
  const Status status = run(argc > 1 ? argv[1] : "/dev/shm/stock.pool");
  if (!status.ok()) std::cerr << "stock: " << status.to_string() << '\n';
  return status.ok() ? 0 : 1;
}
