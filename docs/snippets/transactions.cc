// Code of docs/howto/transactions.md.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "shop.h"

using namespace flugs;
using namespace std::chrono_literals;

namespace snippets {

namespace {

struct Ids {
  Table products;
  KeyId by_id{};
  ColumnId stock{};
  Table orders;
  ColumnId customer{}, total{};
};

Result<Ids> ids_of(const Database& database) {
  Ids ids;
  FLUGS_ASSIGN(ids.products, database.table("products"));
  FLUGS_ASSIGN(ids.by_id, ids.products.primary_key());
  FLUGS_ASSIGN(ids.stock, ids.products.column("stock"));
  FLUGS_ASSIGN(ids.orders, database.table("orders"));
  FLUGS_ASSIGN(ids.customer, ids.orders.column("customer"));
  FLUGS_ASSIGN(ids.total, ids.orders.column("total"));
  return ids;
}

Status retry(Database& database, const Ids& ids, std::int64_t product,
             std::int64_t buyer) {
  const auto& [products, by_id, stock, orders, customer, total] = ids;
  // --8<-- [start:retry]
  const auto place_order = [&](Transaction& t) -> Result<std::int64_t> {
    // The table's check refuses this if none is left.
    FLUGS_TRY(t.add(by_id, {product}, stock, -1));
    FLUGS_ASSIGN(
        const Inserted made,
        t.insert(orders, {{customer, buyer}, {total, Value::decimal("3.20")}}));
    return made.number;
  };
  FLUGS_ASSIGN(const std::int64_t order, database.run(place_order));
  // --8<-- [end:retry]
  FLUGS_TRY(expect(order > 0, "an order"));
  // --8<-- [start:retry_options]
  RetryReport report;
  const Status placed = database.run(
      [&](Transaction& t) {
        return t.insert(orders, {{customer, buyer}}).status();
      },
      {.isolation = Isolation::kSerializable,
       .attempts_max = 20,
       .time_limit = 2s},
      &report);
  if (!placed.ok())
    std::printf("given up after %u attempts\n", report.attempts);
  // --8<-- [end:retry_options]
  return placed;
}

Status serializable(Database& database, const Ids& ids) {
  const auto& by_id = ids.by_id;
  const auto& stock = ids.stock;
  // --8<-- [start:serializable]
  // Rule: products 1 and 2 together keep at least one piece in stock.
  const Status done = database.run(
      [&](Transaction& t) -> Status {
        FLUGS_ASSIGN(const Row one, t.get(by_id, {1}));
        FLUGS_ASSIGN(const Row two, t.get(by_id, {2}));
        FLUGS_ASSIGN(const std::int64_t of_one, one.get<std::int64_t>(stock));
        FLUGS_ASSIGN(const std::int64_t of_two, two.get<std::int64_t>(stock));
        if (of_one + of_two < 2)
          return Status(StatusCode::kConstraintViolated, "the last piece");
        return t.update(one, {{stock, of_one - 1}}).status();
      },
      {.isolation = Isolation::kSerializable});
  // --8<-- [end:serializable]
  return done;
}

Status see_conflict(Database& database, const Ids& ids) {
  const auto& by_id = ids.by_id;
  const auto& stock = ids.stock;
  FLUGS_ASSIGN(Transaction first, database.begin());
  FLUGS_TRY(first.add(by_id, {1}, stock, 1));
  // --8<-- [start:conflict]
  FLUGS_ASSIGN(Transaction t, database.begin());
  const Status added = t.add(by_id, {1}, stock, 1).status();
  std::string why;
  if (added.code() == StatusCode::kConflict)
    // A conflict with a foreign key is described by the status itself.
    if (const std::optional<Conflict> met = t.conflict()) why = met->message;
  // table products: transaction 4328, which is still open, has written the row
  // --8<-- [end:conflict]
  return expect(why.find("still open") != std::string::npos, "a conflict");
}

Status lock(Database& database, const Ids& ids) {
  const auto& by_id = ids.by_id;
  const auto& stock = ids.stock;
  // --8<-- [start:lock]
  FLUGS_ASSIGN(Transaction t, database.begin(AccessMode::kReadWrite,
                                             Isolation::kReadCommitted));
  // Waits its turn, for half a second at most.
  FLUGS_ASSIGN(const Row hot, t.lock(by_id, {1}, {.limit = 500ms}));
  FLUGS_ASSIGN(const std::int64_t left, hot.get<std::int64_t>(stock));
  FLUGS_TRY(t.update(hot, {{stock, left + 1}}));
  FLUGS_TRY(t.commit());  // the next transaction gets the lock
  // --8<-- [end:lock]
  return {};
}

Status undo_part(Database& database, const Ids& ids, std::int64_t buyer) {
  const auto& [products, by_id, stock, orders, customer, total] = ids;
  FLUGS_ASSIGN(Transaction t, database.begin());
  // --8<-- [start:savepoint]
  FLUGS_ASSIGN(const Savepoint before, t.savepoint());
  FLUGS_TRY(t.insert(orders, {{customer, buyer}}));
  const Result<Value> left = t.add(by_id, {2}, stock, -1'000'000);
  // The order goes; what the transaction did before stays.
  if (!left.ok()) FLUGS_TRY(t.rollback_to(before));
  // --8<-- [end:savepoint]
  FLUGS_TRY(expect(!left.ok(), "a refusal"));
  return t.commit();
}

Status many_orders(Database& database, const Ids& ids, std::int64_t buyer) {
  // --8<-- [start:soon]
  for (int i = 0; i < 1000; ++i) {
    FLUGS_ASSIGN(Transaction t, database.begin());
    FLUGS_TRY(t.insert(ids.orders, {{ids.customer, buyer}}).status());
    FLUGS_TRY(t.commit({.durability = Durability::kSoon, .soon = 20ms}));
  }
  // Waits for all of them at once.
  FLUGS_TRY(database.wait_durable(database.durable_token()));
  // --8<-- [end:soon]
  // --8<-- [start:durable]
  FLUGS_ASSIGN(const Transaction reader,
               database.begin(AccessMode::kReadOnlyDurable));
  // --8<-- [end:durable]
  FLUGS_TRY(expect(reader.is_open(), "a reader"));
  return {};
}

Status who_is_open(Database& database) {
  FLUGS_ASSIGN(Transaction sleepy, database.begin(AccessMode::kReadOnly));
  // --8<-- [start:limit]
  FLUGS_TRY(sleepy.set_time_limit(30s));  // later calls fail with kCancelled
  // --8<-- [end:limit]
  // --8<-- [start:open]
  for (const TransactionInfo& info : database.transactions())
    if (info.idle >= 60s) FLUGS_TRY(database.cancel(info.id));
  // --8<-- [end:open]
  return sleepy.commit();
}

Status threads(Database& database, const Ids& ids, std::int64_t buyer) {
  const auto& [products, by_id, stock, orders, customer, total] = ids;
  // --8<-- [start:threads]
  std::vector<Status> results(4);
  std::vector<std::thread> workers;
  workers.reserve(results.size());
  for (Status& result : results)
    workers.emplace_back([&] {
      result = database.run([&](Transaction& t) {
        return t.insert(orders, {{customer, buyer}}).status();
      });
    });
  for (std::thread& worker : workers) worker.join();
  // --8<-- [end:threads]
  for (const Status& result : results) FLUGS_TRY(result);
  return {};
}

}  // namespace

Status transactions(Database& database) {
  FLUGS_ASSIGN(const Ids ids, ids_of(database));
  std::int64_t buyer = 0;
  FLUGS_TRY(database.run([&](Transaction& t) -> Status {
    FLUGS_ASSIGN(const Table customers, database.table("customers"));
    FLUGS_ASSIGN(const ColumnId name, customers.column("name"));
    FLUGS_ASSIGN(const ColumnId product, ids.products.column("name"));
    FLUGS_ASSIGN(const ColumnId price, ids.products.column("price"));
    FLUGS_ASSIGN(const Inserted made, t.insert(customers, {{name, "Eve"}}));
    buyer = made.number;
    FLUGS_TRY(t.insert(ids.products,
                       {{product, "milk"}, {price, Value::decimal("1.10")}}));
    FLUGS_TRY(t.update(ids.by_id, {1}, {{ids.stock, 100}}));
    return t.update(ids.by_id, {2}, {{ids.stock, 100}}).status();
  }));
  FLUGS_TRY(retry(database, ids, 1, buyer));
  FLUGS_TRY(serializable(database, ids));
  FLUGS_TRY(see_conflict(database, ids));
  FLUGS_TRY(lock(database, ids));
  FLUGS_TRY(undo_part(database, ids, buyer));
  FLUGS_TRY(many_orders(database, ids, buyer));
  FLUGS_TRY(who_is_open(database));
  return threads(database, ids, buyer);
}

}  // namespace snippets
