// An order service: four threads place orders while another one asks for the revenue. The process
// is killed in the middle, and the next one finds every order that was promised.
//
//   orders [POOL]      without a pool, a fresh one on /dev/shm, removed at the end
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "flugs/flugs.h"

using namespace flugs;
using namespace flugs::query;

namespace {

constexpr int kProducts = 100;
constexpr int kCustomers = 50;
constexpr int kStock = 1'000'000;
constexpr int kThreads = 4;

struct Product {
  std::int64_t id = 0;
  Decimal price{};
  std::int64_t stock = 0;
};
FLUGS_ROW(Product, id, price, stock)

struct Order {
  std::int64_t id = 0;  // given by the table
  std::int64_t customer = 0;
  std::string state = "new";
  Decimal total{};
};
FLUGS_ROW(Order, id, customer, state, total)

struct Line {
  std::int64_t order_id = 0;
  std::int32_t number = 0;
  std::int64_t product = 0;
  std::int64_t quantity = 0;
};
FLUGS_ROW(Line, order_id, number, product, quantity)

struct Shop {
  Database database;
  TypedTable<Product> products;
  TypedTable<Order> orders;
  TypedTable<Line> lines;
};

Status fill_products(Database& database, const TypedTable<Product>& products) {
  return database.run([&](Transaction& t) -> Status {
    if (products.get(t, 1).ok()) return {};
    for (std::int64_t id = 1; id <= kProducts; ++id)
      FLUGS_TRY(products.insert(t, {.id = id, .price = {199 + id, 2}, .stock = kStock}));
    return {};
  });
}

Result<Shop> open(const std::string& path) {
  OpenOptions options;
  options.path = path;
  options.max_bytes = std::uint64_t{1} << 30;
  FLUGS_ASSIGN(Database database, Database::open(options));
  TableSchema products("products");
  products.column("id", Type::kInt64).column("price", Type::kDecimal).scale(2).not_null();
  products.column("stock", Type::kInt64).not_null().primary_key({"id"});
  products.check("in_stock", col("stock") >= 0);
  TableSchema orders("orders");
  orders.column("id", Type::kInt64).auto_increment().column("customer", Type::kInt64).not_null();
  orders.column("state", Type::kString).not_null();
  orders.column("total", Type::kDecimal).scale(2).not_null();
  orders.primary_key({"id"}).key("by_customer", {"customer", "id"});
  TableSchema lines("lines");
  lines.column("order_id", Type::kInt64).column("number", Type::kInt32);
  lines.column("product", Type::kInt64).not_null().column("quantity", Type::kInt64).not_null();
  lines.primary_key({"order_id", "number"});
  lines.foreign_key("of_order", {"order_id"}, "orders", ReferenceAction::kCascade);
  for (const TableSchema& schema : {products, orders, lines})
    FLUGS_TRY(database.ensure_table(schema));
  FLUGS_ASSIGN(TypedTable<Product> product_table, database.table<Product>("products"));
  FLUGS_ASSIGN(TypedTable<Order> order_table, database.table<Order>("orders"));
  FLUGS_ASSIGN(TypedTable<Line> line_table, database.table<Line>("lines"));
  FLUGS_TRY(fill_products(database, product_table));
  return Shop{std::move(database), std::move(product_table), std::move(order_table),
              std::move(line_table)};
}

std::int64_t below(std::mt19937& random, std::int64_t bound) {
  return static_cast<std::int64_t>(random()) % bound;
}

// An order of some lines, tried again when another one has taken from the same stock.
Result<std::int64_t> place(Shop& shop, std::int64_t customer, std::mt19937& random) {
  return shop.database.run([&](Transaction& t) -> Result<std::int64_t> {
    const Result<Inserted> order = shop.orders.insert(t, {.customer = customer});
    FLUGS_TRY(order);
    Order placed{.id = order->number, .customer = customer};
    placed.total.scale = 2;
    FLUGS_ASSIGN(const KeyId by_id, shop.products.table().primary_key());
    FLUGS_ASSIGN(const ColumnId stock, shop.products.column(&Product::stock));
    const auto count = static_cast<std::int32_t>(1 + random() % 4);
    for (std::int32_t number = 1; number <= count; ++number) {
      const Line line{.order_id = placed.id,
                      .number = number,
                      .product = 1 + below(random, kProducts),
                      .quantity = 1 + below(random, 3)};
      FLUGS_ASSIGN(const Product product, shop.products.get(t, line.product));
      FLUGS_TRY(t.add(by_id, {line.product}, stock, -line.quantity));
      FLUGS_TRY(shop.lines.insert(t, line));
      placed.total.units += product.price.units * line.quantity;
    }
    FLUGS_TRY(shop.orders.update(t, placed));
    return placed.id;
  });
}

// Runs until it is killed. Each order that is promised goes to the pipe.
Status serve(const std::string& path, int promises) {
  FLUGS_ASSIGN(Shop shop, open(path));
  std::vector<std::jthread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&] {
      std::mt19937 random(std::random_device{}());
      for (;;) {
        const Result<std::int64_t> order = place(shop, below(random, kCustomers), random);
        if (!order.ok())
          return static_cast<void>(
              std::fprintf(stderr, "%s\n", order.status().to_string().c_str()));
        if (write(promises, &*order, sizeof *order) != sizeof *order) return;
      }
    });
  for (;;) {
    FLUGS_ASSIGN(const Transaction reader, shop.database.begin(AccessMode::kReadOnly));
    FLUGS_TRY(Query::table("orders").group_by({"state"}, {sum("total").as("sum")}).run(reader));
  }
}

// What must hold after the kill: promised orders are there, and stock and totals add up.
Status audit(const std::string& path, const std::vector<std::int64_t>& promised) {
  const auto start = std::chrono::steady_clock::now();
  FLUGS_ASSIGN(Shop shop, open(path));
  FLUGS_ASSIGN(const Transaction t, shop.database.begin(AccessMode::kReadOnly));
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::steady_clock::now() - start);
  for (const std::int64_t id : promised) FLUGS_TRY(shop.orders.get(t, id));
  const Query sold = Query::table("lines").join(Query::table("products"), {{"product", "id"}});
  FLUGS_ASSIGN(
      const QueryResult lines,
      sold.group_by({}, {sum("quantity").as("n"), sum(col("quantity") * col("price")).as("sum")})
          .run(t));
  FLUGS_ASSIGN(
      const QueryResult orders,
      Query::table("orders").group_by({}, {sum("total").as("sum"), count().as("n")}).run(t));
  FLUGS_ASSIGN(const QueryResult stock,
               Query::table("products").group_by({}, {sum("stock").as("n")}).run(t));
  FLUGS_ASSIGN(const std::int64_t taken, lines.get<std::int64_t>(0, "n"));
  FLUGS_ASSIGN(const std::int64_t left, stock.get<std::int64_t>(0, "n"));
  FLUGS_ASSIGN(const Value lines_sum, lines.get(0, "sum"));
  FLUGS_ASSIGN(const Value orders_sum, orders.get(0, "sum"));
  FLUGS_ASSIGN(const std::int64_t count, orders.get<std::int64_t>(0, "n"));
  if (taken + left != std::int64_t{kStock} * kProducts || !(lines_sum == orders_sum))
    return Status(StatusCode::kCorrupt, "stock is missing, or totals differ from lines");
  std::printf("%lld orders of %s, %zu promised, all there; open after %.1f ms\n",
              static_cast<long long>(count), orders_sum.to_string().c_str(), promised.size(),
              static_cast<double>(us.count()) / 1000);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const std::string made = "/dev/shm/flugs-orders-" + std::to_string(getpid());
  const std::string path = argc < 2 ? made : argv[1];
  std::array<int, 2> promises{};
  if (pipe(promises.data()) != 0) return 1;
  const pid_t service = fork();
  if (service == 0) {
    close(promises[0]);
    const Status failed = serve(path, promises[1]);
    std::fprintf(stderr, "orders: %s\n", failed.to_string().c_str());
    _exit(1);
  }
  close(promises[1]);
  std::jthread killer([&] {
    std::this_thread::sleep_for(std::chrono::seconds(1));
    kill(service, SIGKILL);
  });
  std::vector<std::int64_t> promised;
  for (std::int64_t id = 0; read(promises[0], &id, sizeof id) == sizeof id;) promised.push_back(id);
  waitpid(service, nullptr, 0);
  const Status done = promised.empty() ? Status(StatusCode::kIoError, "no order was promised")
                                       : audit(path, promised);
  if (!done.ok()) std::fprintf(stderr, "orders: %s\n", done.to_string().c_str());
  if (argc < 2) unlink(made.c_str());
  return done.ok() ? 0 : 1;
}
