// Code of docs/howto/rows.md.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shop.h"

using namespace flugs;

namespace {

// --8<-- [start:struct]
struct Customer {
  std::int64_t id = 0;  // 0: the table gives a number
  std::string name;
  std::optional<std::string> city{};  // may be NULL
};
FLUGS_ROW(Customer, id, name, city)
// --8<-- [end:struct]

}  // namespace

namespace snippets {

namespace {

Status read_and_change(Database& database, const Table& customers,
                       std::int64_t bob) {
  FLUGS_ASSIGN(const KeyId by_id, customers.primary_key());
  FLUGS_ASSIGN(const KeyId by_name, customers.key("by_name"));
  FLUGS_ASSIGN(const ColumnId city, customers.column("city"));
  FLUGS_ASSIGN(const ColumnId points, customers.column("points"));
  FLUGS_ASSIGN(Transaction t, database.begin());
  // --8<-- [start:get]
  FLUGS_ASSIGN(const Row row, t.get(by_name, {"Ada"}));
  FLUGS_ASSIGN(const std::string_view where, row.get<std::string_view>(city));
  // A column may be named by its text, too; that costs some ten nanoseconds.
  FLUGS_ASSIGN(const std::int64_t has, row.get<std::int64_t>("points"));
  // --8<-- [end:get]
  FLUGS_TRY(expect(where == "London" && has == 0, "Ada"));
  // --8<-- [start:absent]
  const Result<Row> found = t.get(by_name, {"Nobody"});
  if (found.code() == StatusCode::kNotFound) {
    // no such customer; any other failure is an error
  }
  // --8<-- [end:absent]
  FLUGS_TRY(expect(found.code() == StatusCode::kNotFound, "nobody"));
  // --8<-- [start:null]
  FLUGS_ASSIGN(const Row him, t.get(by_name, {"Bob"}));
  // An optional is empty if the column holds NULL; nullptr stores NULL.
  FLUGS_ASSIGN(const auto home, him.get<std::optional<std::string>>(city));
  FLUGS_TRY(t.update(by_name, {"Bob"}, {{city, nullptr}}));
  // --8<-- [end:null]
  FLUGS_TRY(expect(!home.has_value(), "no city"));
  // --8<-- [start:prepare]
  FLUGS_ASSIGN(const Prepared points_of,
               database.prepare(by_name, {points}));  // keep it
  std::array<Value, 1> had;
  FLUGS_TRY(points_of.read(t, {"Bob"}, had));
  FLUGS_TRY(points_of.update(t, {"Bob"}, {had[0].as_int64() + 5}));
  // --8<-- [end:prepare]
  // --8<-- [start:update]
  FLUGS_TRY(t.update(by_id, {bob}, {{city, "Berlin"}, {points, 10}}));
  FLUGS_TRY(t.remove(by_name, {"Ada"}));
  // --8<-- [end:update]
  return t.commit();
}

Status insert(Database& database) {
  // --8<-- [start:handles]
  FLUGS_ASSIGN(const Table customers, database.table("customers"));
  FLUGS_ASSIGN(const KeyId by_id, customers.primary_key());
  FLUGS_ASSIGN(const KeyId by_name, customers.key("by_name"));
  FLUGS_ASSIGN(const auto ids, customers.columns("name", "city", "points"));
  const auto [name, city, points] = ids;
  // --8<-- [end:handles]
  FLUGS_TRY(expect(by_id.table == by_name.table && points > city, "ids"));
  // --8<-- [start:insert]
  FLUGS_ASSIGN(Transaction t, database.begin());
  FLUGS_ASSIGN(const Inserted ada,
               t.insert(customers, {{name, "Ada"}, {city, "London"}}));
  FLUGS_ASSIGN(const Inserted bob,
               t.insert(customers, {{name, "Bob"}}));  // city is NULL
  FLUGS_TRY(t.commit());  // ada.number and bob.number are their ids
  // --8<-- [end:insert]
  FLUGS_TRY(expect(ada.number + 1 == bob.number, "consecutive numbers"));
  return read_and_change(database, customers, bob.number);
}

Status read_and_write(Database& database) {
  FLUGS_ASSIGN(const Table customers, database.table("customers"));
  FLUGS_ASSIGN(const KeyId by_name, customers.key("by_name"));
  FLUGS_ASSIGN(const auto ids, customers.columns("name", "city", "points"));
  const auto [name, city, points] = ids;
  FLUGS_ASSIGN(Transaction t, database.begin());
  // --8<-- [start:upsert]
  // One value per column: id (NULL: the table gives it), name, city, points.
  FLUGS_ASSIGN(const Upserted cyd,
               t.upsert(by_name, {nullptr, "Cyd", "Oslo", 1}));
  FLUGS_ASSIGN(const Upserted again,
               t.insert_if_absent(by_name, {nullptr, "Cyd", "Rome", 2}));
  // cyd.inserted is true, again.inserted is false, and Cyd still lives in Oslo
  // --8<-- [end:upsert]
  FLUGS_TRY(expect(cyd.inserted && !again.inserted, "one Cyd"));
  // --8<-- [start:add]
  FLUGS_ASSIGN(const Value sum, t.add(by_name, {"Cyd"}, points, 5));
  // --8<-- [end:add]
  FLUGS_TRY(expect(sum.as_int64() == 6, "points"));
  // --8<-- [start:compare]
  // If Cyd lives in Oslo, she moves to Paris.
  FLUGS_ASSIGN(
      const bool moved,
      t.compare_and_set(by_name, {"Cyd"}, {{city, "Oslo"}}, {{city, "Paris"}}));
  // --8<-- [end:compare]
  FLUGS_TRY(expect(moved, "Cyd has moved"));
  return t.commit();
}

Status load(Database& database) {
  FLUGS_ASSIGN(const Table customers, database.table("customers"));
  // --8<-- [start:load]
  constexpr std::int64_t kRows = 10'000;
  constexpr std::int64_t kAtOnce = 1'000;
  std::vector<std::string> names;
  std::vector<Value> values;  // views of the names, row by row
  for (std::int64_t from = 0; from < kRows; from += kAtOnce) {
    names.clear();
    values.clear();
    names.reserve(kAtOnce);
    for (std::int64_t i = from; i < from + kAtOnce; ++i) {
      names.push_back("customer " + std::to_string(i));
      for (const Value& value :
           {Value(), Value(names.back()), Value("Bremen"), Value(0)})
        values.push_back(value);
    }
    FLUGS_TRY(database.run(
        [&](Transaction& t) { return t.insert_rows(customers, values); }));
  }
  // --8<-- [end:load]
  return {};
}

Status ranges(Database& database) {
  FLUGS_ASSIGN(const Table customers, database.table("customers"));
  FLUGS_ASSIGN(const ColumnId name, customers.column("name"));
  FLUGS_ASSIGN(const KeyId by_name, customers.key("by_name"));
  FLUGS_ASSIGN(Transaction t, database.begin());
  // --8<-- [start:range]
  // The names from "customer 2" on, and before "customer 4".
  const std::array<Value, 1> from = {"customer 2"}, to = {"customer 4"};
  const KeyBound lower = {from, true}, upper = {to, false};
  std::size_t letters = 0;
  Rows some = t.rows(by_name, lower, upper);
  for (const Row& row : some)
    letters += row.get_unchecked<std::string_view>(name).size();
  FLUGS_TRY(some.status());
  FLUGS_ASSIGN(const std::uint64_t gone, t.remove_range(by_name, lower, upper));
  // --8<-- [end:range]
  FLUGS_TRY(expect(gone == 2222 && letters > gone, "a fifth of the customers"));
  return t.commit();
}

Status conditions(Database& database) {
  using query::col;
  FLUGS_ASSIGN(const Table customers, database.table("customers"));
  FLUGS_ASSIGN(Transaction t, database.begin());
  // --8<-- [start:where]
  FLUGS_ASSIGN(const std::uint64_t changed,
               t.update_where(customers, col("city") == "Bremen",
                              {{"points", col("points") + 10}}));
  FLUGS_ASSIGN(const std::uint64_t gone,
               t.remove_where(customers, col("name").ends_with("99")));
  // --8<-- [end:where]
  FLUGS_TRY(expect(changed == 7778 && gone > 50, "the customers of Bremen"));
  return t.commit();
}

Status structs(Database& database) {
  // --8<-- [start:typed]
  FLUGS_ASSIGN(const auto customers, database.table<Customer>("customers"));
  FLUGS_ASSIGN(Transaction t, database.begin());
  FLUGS_ASSIGN(const Inserted made,
               customers.insert(t, {.id = 0, .name = "Dora"}));
  FLUGS_ASSIGN(Customer dora, customers.get(t, made.number));
  dora.city = "Kiel";
  FLUGS_TRY(customers.update(t, dora));
  FLUGS_TRY(t.commit());
  // --8<-- [end:typed]
  return {};
}

Status orders_of(Database& database) {
  FLUGS_ASSIGN(const Table customers, database.table("customers"));
  FLUGS_ASSIGN(const KeyId by_name, customers.key("by_name"));
  FLUGS_ASSIGN(const Table orders, database.table("orders"));
  FLUGS_ASSIGN(const ColumnId id, orders.column("id"));
  FLUGS_ASSIGN(const ColumnId state, orders.column("state"));
  FLUGS_ASSIGN(const ColumnId customer, orders.column("customer"));
  FLUGS_ASSIGN(const KeyId by_customer, orders.key("by_customer"));
  FLUGS_ASSIGN(Transaction t, database.begin());
  FLUGS_ASSIGN(const Row dora, t.get(by_name, {"Dora"}));
  FLUGS_ASSIGN(const std::int64_t her, dora.get<std::int64_t>("id"));
  for (int i = 0; i < 20; ++i) FLUGS_TRY(t.insert(orders, {{customer, her}}));
  std::int64_t newest = 0;
  // --8<-- [start:last]
  Rows last = t.rows(by_customer, {her}).reverse().limit(10);
  for (const Row& order : last) {
    FLUGS_ASSIGN(const std::int64_t number, order.get<std::int64_t>(id));
    newest = std::max(newest, number);
  }
  FLUGS_TRY(last.status());  // why the walk has ended: ok, or a failure
  // --8<-- [end:last]
  FLUGS_TRY(expect(newest > 0, "her orders"));
  // --8<-- [start:write]
  Rows open = t.rows(by_customer, {her});
  for (const Row& order : open) {
    FLUGS_ASSIGN(const auto has_state, order.get<std::string_view>(state));
    if (has_state == "new") FLUGS_TRY(t.update(order, {{state, "sent"}}));
  }
  FLUGS_TRY(open.status());
  // --8<-- [end:write]
  return t.commit();
}

}  // namespace

Status rows(Database& database) {
  FLUGS_TRY(insert(database));
  FLUGS_TRY(read_and_write(database));
  FLUGS_TRY(load(database));
  FLUGS_TRY(ranges(database));
  FLUGS_TRY(conditions(database));
  FLUGS_TRY(structs(database));
  return orders_of(database);
}

}  // namespace snippets
