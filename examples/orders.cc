// An order service: four threads place and cancel orders while another one asks for the revenue.
// The process is killed in the middle, and the next one finds every order that was promised.
// `orders [POOL]`: without a pool, it makes one on /dev/shm and removes it at the end.
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
constexpr int kProducts = 100, kCustomers = 50, kStock = 1'000'000, kThreads = 4;

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
  KeyId by_customer = {};
};

Result<Shop> open(const std::string& path) {
  FLUGS_ASSIGN(Database database, Database::open({.path = path, .max_bytes = 1ULL << 30}));
  TableSchema products("products");
  products.column("id", Type::kInt64).column("stock", Type::kInt64, {.not_null = true});
  products.column("price", Type::kDecimal, {.not_null = true, .scale = 2});
  products.primary_key({"id"}).check("in_stock", col("stock") >= 0);
  TableSchema orders("orders");
  orders.column("id", Type::kInt64, {.auto_increment = true});
  orders.column("customer", Type::kInt64, {.not_null = true});
  orders.column("state", Type::kString, {.not_null = true});
  orders.column("total", Type::kDecimal, {.not_null = true, .scale = 2});
  orders.primary_key({"id"}).key("by_customer", {"customer", "id"});
  TableSchema lines("lines");
  lines.column("order_id", Type::kInt64).column("number", Type::kInt32);
  lines.column("product", Type::kInt64, {.not_null = true});
  lines.column("quantity", Type::kInt64, {.not_null = true});
  lines.primary_key({"order_id", "number"}, {.ordered = true});
  lines.foreign_key("of_order", {"order_id"}, "orders", ReferenceAction::kCascade);
  FLUGS_TRY(database.ensure_tables({products, orders, lines}));  // all of them, or none
  FLUGS_ASSIGN(TypedTable<Product> product_table, database.table<Product>("products"));
  FLUGS_ASSIGN(TypedTable<Order> order_table, database.table<Order>("orders"));
  FLUGS_ASSIGN(TypedTable<Line> line_table, database.table<Line>("lines"));
  Shop shop{std::move(database), product_table, order_table, line_table};
  FLUGS_ASSIGN(shop.by_customer, order_table.table().key("by_customer"));
  FLUGS_TRY(shop.database.run([&](Transaction& t) -> Status {
    if (shop.products.get(t, 1).ok()) return {};  // filled by an earlier process
    for (std::int64_t id = 1; id <= kProducts; ++id)
      FLUGS_TRY(shop.products.insert(t, {.id = id, .price = {199 + id, 2}, .stock = kStock}));
    return {};
  }));
  return shop;
}

std::int64_t below(std::mt19937& random, std::int64_t bound) {
  return static_cast<std::int64_t>(random()) % bound;
}

// An order of some lines, tried again when another one has taken from the same stock.
Result<std::int64_t> place(Shop& shop, std::int64_t customer, std::mt19937& random) {
  return shop.database.run([&](Transaction& t) -> Result<std::int64_t> {
    FLUGS_ASSIGN(const Inserted order, shop.orders.insert(t, {.customer = customer}));
    Order placed{.id = order.number, .customer = customer, .total = {0, 2}};
    const auto count = static_cast<std::int32_t>(1 + random() % 4);
    for (std::int32_t number = 1; number <= count; ++number) {
      const Line line{order.number, number, 1 + below(random, kProducts), 1 + below(random, 3)};
      FLUGS_ASSIGN(const Product product, shop.products.get(t, line.product));
      FLUGS_TRY(shop.products.add(t, &Product::stock, -line.quantity, line.product));
      FLUGS_TRY(shop.lines.insert(t, line));
      placed.total.units += product.price.units * line.quantity;
    }
    FLUGS_TRY(shop.orders.update(t, placed));
    return placed.id;
  });
}

// The customer's newest order, if it is still new: its products go back, its lines go.
Result<bool> cancel_last(Shop& shop, std::int64_t customer) {
  return shop.database.run([&](Transaction& t) -> Result<bool> {
    Rows last = t.rows(shop.by_customer, {customer}).reverse().limit(1);
    const Row* row = last.next();
    if (row == nullptr) return last.status().ok() ? Result<bool>(false) : last.status();
    FLUGS_ASSIGN(Order order, shop.orders.get(*row));
    if (order.state != "new") return false;
    order.state = "cancelled";
    FLUGS_TRY(shop.orders.update(t, order));
    Rows lines = shop.lines.rows(t, order.id);
    for (const Row& of_order : lines) {
      FLUGS_ASSIGN(const Line line, shop.lines.get(of_order));
      FLUGS_TRY(shop.products.add(t, &Product::stock, line.quantity, line.product));
      FLUGS_TRY(t.remove(of_order));
    }
    FLUGS_TRY(lines.status());
    return true;
  });
}

// Runs until it is killed. Each order that is promised goes to the pipe.
Status serve(const std::string& path, int promises) {
  FLUGS_ASSIGN(Shop shop, open(path));
  std::vector<std::jthread> threads(kThreads);
  for (std::jthread& thread : threads)
    thread = std::jthread([&] {
      std::mt19937 random(std::random_device{}());
      for (;;) {
        const Result<std::int64_t> order = place(shop, below(random, kCustomers), random);
        if (!order.ok() || write(promises, &*order, sizeof *order) != sizeof *order) return;
        if (below(random, 10) == 0 && !cancel_last(shop, below(random, kCustomers)).ok()) return;
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
  const std::chrono::duration<double, std::milli> ms = std::chrono::steady_clock::now() - start;
  for (const std::int64_t id : promised) FLUGS_TRY(shop.orders.get(t, id));
  const auto sum_of = [&](const Query& rows, const Expr& of) -> Result<Value> {
    FLUGS_ASSIGN(const QueryResult result, rows.group_by({}, {sum(of).as("sum")}).run(t));
    return result.get(0, "sum");
  };
  const Query sold = Query::table("lines").join(Query::table("products"), {{"product", "id"}});
  const Query open_orders = Query::table("orders").where(col("state") == "new");
  FLUGS_ASSIGN(const Value taken, sum_of(sold, col("quantity")));
  FLUGS_ASSIGN(const Value left, sum_of(Query::table("products"), col("stock")));
  FLUGS_ASSIGN(const Value lines_sum, sum_of(sold, col("quantity") * col("price")));
  FLUGS_ASSIGN(const Value orders_sum, sum_of(open_orders, col("total")));
  if (taken.as_int64() + left.as_int64() != 1LL * kStock * kProducts || lines_sum != orders_sum)
    return Status(StatusCode::kCorrupt, "stock is missing, or totals differ from lines");
  std::printf("%zu promised orders are there, %s in all; open after %.1f ms\n", promised.size(),
              orders_sum.to_string().c_str(), ms.count());
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
  const Status done = promised.empty() ? Status(StatusCode::kIoError) : audit(path, promised);
  if (!done.ok()) std::fprintf(stderr, "orders: %s\n", done.to_string().c_str());
  if (argc < 2) unlink(made.c_str());
  return done.ok() ? 0 : 1;
}
