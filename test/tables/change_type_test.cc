// Changes of a column's type: keys, numbers, defaults and constants stay; rows read as values of
// the new type; merges write them as such.
#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>
#include <string>
#include <vector>

#include "flugs/merge.h"
#include "flugs/query.h"
#include "test/support/temporary_database.h"
#include "test/support/whole_pool.h"

namespace flugs::test {
namespace {

constexpr std::int64_t kBeyond = std::int64_t{1} << 40;
constexpr ColumnId kOrderNumber{0};
constexpr ColumnId kOrderText{1};

std::string reason(const Status& refused) { return std::string(refused.message()); }

std::string text_of(std::int64_t n) {
  return (n % 3 == 0 ? std::string(120, 't') : std::string("t")) + std::to_string(n);
}

/// Orders by an int32 that becomes too small, with an ordered primary key.
struct Orders {
  explicit Orders(Encoding encoding) {
    TableSchema schema("orders");
    schema.column("number", Type::kInt32).column("text", Type::kString);
    schema.column("part", Type::kInt32);
    schema.columns[0].encoding = encoding;
    schema.columns[2].encoding = encoding;
    schema.primary_key({"number"});
    schema.keys[0].ordered = true;
    schema.key("by_part", {"part", "text"});
    table = must(database->create_table(schema));
  }

  Value number(std::int64_t n) const {
    return is_changed ? Value::int64(n) : Value::int32(static_cast<std::int32_t>(n));
  }
  void insert(std::int64_t first, std::int64_t end) {
    Transaction t = must(database->begin());
    for (std::int64_t n = first; n < end; ++n) {
      const std::string text = text_of(n);
      must(t.insert(table, {number(n), Value::string(text), number(-n)}));
      numbers.push_back(n);
    }
    must(t.commit());
  }
  void change() {
    must(database->change_type(table, kOrderNumber, Type::kInt64));
    must(database->change_type(table, ColumnId(2), Type::kInt64));
    is_changed = true;
  }
  /// Checks by key, in the order of both keys, by scan and query.
  void check() {
    const Transaction t = must(database->begin(AccessMode::kReadOnly));
    std::sort(numbers.begin(), numbers.end());
    const Type type = is_changed ? Type::kInt64 : Type::kInt32;
    for (const std::int64_t n : numbers) {
      const Row row = must(t.get({table, 0}, {number(n)}));
      CHECK(row.get_unchecked(kOrderNumber) == Value::from_raw(type, n));
      CHECK(row.get_unchecked<std::int64_t>(kOrderNumber) == n);
      CHECK(row.get_unchecked<std::string_view>(kOrderText) == text_of(n));
    }
    std::vector<std::int64_t> seen;
    must(t.rows({table, 0}, {}, {}, [&](const Row& row) {
      seen.push_back(row.get_unchecked<std::int64_t>(kOrderNumber));
      return true;
    }));
    CHECK(seen == numbers);
    seen.clear();
    must(t.rows({table, 1}, {}, {}, [&](const Row& row) {
      seen.push_back(-row.get_unchecked<std::int64_t>(ColumnId(2)));
      return true;
    }));
    std::reverse(seen.begin(), seen.end());
    CHECK(seen == numbers);
    std::int64_t expected = 0;
    for (const std::int64_t n : numbers) expected += n;
    std::int64_t scanned = 0;
    must(t.scan(table, {kOrderNumber}, [&](const ScanBatch& batch) {
      CHECK(batch.get_unchecked(0, 0).type() == type);
      for (std::size_t r = 0; r < batch.row_count(); ++r)
        scanned += batch.get_unchecked(0, r).raw();
      return true;
    }));
    CHECK(scanned == expected);
    const auto sums = must(query::Query::table("orders")
                               .group_by({}, {query::sum(query::col("number")).as("s"),
                                              query::max(query::col("number")).as("m")})
                               .run(t));
    CHECK(sums.get_unchecked(0, 0).raw() == expected);
    CHECK(sums.get_unchecked(0, 1).raw() == numbers.back());
    const auto some = must(query::Query::table("orders")
                               .where(query::col("number") >= numbers[numbers.size() / 2])
                               .select({"number"})
                               .run(t));
    CHECK(some.row_count() == numbers.size() - numbers.size() / 2);
  }

  TemporaryDatabase database;
  TableId table;
  bool is_changed = false;
  std::vector<std::int64_t> numbers;
};

}  // namespace

TEST_CASE("an int32 becomes an int64 with its keys, in groups and chunks, before and after merges",
          "[engine]") {
  for (const Encoding encoding : {Encoding::kDirect, Encoding::kDictionary}) {
    Orders orders(encoding);
    orders.insert(-40, 40);
    merge_everything(orders.database, orders.table);
    orders.insert(40, 80);
    orders.insert(std::numeric_limits<std::int32_t>::max() - 5,
                  std::numeric_limits<std::int32_t>::max() + std::int64_t{1});
    orders.change();
    orders.check();
    orders.insert(std::numeric_limits<std::int32_t>::max() + std::int64_t{1},
                  std::numeric_limits<std::int32_t>::max() + std::int64_t{20});
    orders.insert(kBeyond, kBeyond + 20);
    orders.insert(-kBeyond, -kBeyond + 20);
    orders.check();
    check_pool_is_whole(orders.database);
    orders.check();
    static_cast<void>(must(orders.database->merge(orders.table)));
    orders.check();
    orders.insert(2 * kBeyond, 2 * kBeyond + 10);
    merge_everything(orders.database, orders.table);
    orders.check();
    check_pool_is_whole(orders.database);
    orders.check();
  }
}

TEST_CASE("an open transaction goes on when a column's type changes", "[engine]") {
  Orders orders(Encoding::kDirect);
  orders.insert(0, 50);
  Transaction open = must(orders.database->begin());
  const Row before = must(open.get({orders.table, 0}, {Value::int32(7)}));
  must(open.insert(orders.table, {Value::int32(100), Value::string("own"), Value::int32(-100)}));
  std::int64_t batches = 0;
  must(open.scan(orders.table, {kOrderNumber, kOrderText}, [&](const ScanBatch& batch) {
    if (++batches == 1) orders.change();
    for (std::size_t r = 0; r < batch.row_count(); ++r)
      CHECK(batch.get_unchecked(0, r).raw() <= 100);
    return true;
  }));
  CHECK(before.get_unchecked(kOrderNumber) == Value::int64(7));
  // Its own row, another's, and one beyond int32.
  const Row own = must(open.get({orders.table, 0}, {Value::int32(100)}));
  must(open.update(orders.table, own.id(), {{kOrderText, Value::string("changed")}}));
  must(open.update(orders.table, before.id(), {{ColumnId(2), Value::int64(-kBeyond)}}));
  must(open.insert(orders.table, {Value::int64(kBeyond), Value::string("far"), Value::null()}));
  must(open.commit());
  const Transaction t = must(orders.database->begin(AccessMode::kReadOnly));
  CHECK(must(t.get({orders.table, 0}, {Value::int64(100)}))
            .get_unchecked<std::string_view>(kOrderText) == "changed");
  CHECK(
      must(t.get({orders.table, 0}, {Value::int64(7)})).get_unchecked<std::int64_t>(ColumnId(2)) ==
      -kBeyond);
  CHECK(must(t.get({orders.table, 0}, {Value::int64(kBeyond)})).is_null_unchecked(ColumnId(2)));
}

TEST_CASE("a transaction that read by a key has no conflict with a change of type", "[engine]") {
  const std::vector<Value> low{Value::string("a")};
  const std::vector<Value> high{Value::string("k")};
  for (const bool is_range : {false, true}) {
    TemporaryDatabase database;
    TableSchema schema("t");
    schema.column("id", Type::kInt32).column("x", Type::kString).with_default(Constant());
    schema.primary_key({"id"}).unique_key("u", {"x"}).ordered();
    const TableId table = must(database->create_table(schema));
    Transaction reader = must(database->begin(AccessMode::kReadWrite, Isolation::kSerializable));
    if (is_range)
      must(reader.rows({table, 1}, {low, true}, {high, true}, [](const Row&) { return true; }));
    else
      CHECK(!reader.get({table, 1}, {Value::string("k")}).ok());
    must(reader.insert(table, {Value::int32(1), Value::null()}));
    must(database->change_type(table, kOrderText, Type::kBytes));
    must(reader.commit());
    // The default stays NULL, and earlier reads are validated as before.
    Transaction first = must(database->begin(AccessMode::kReadWrite, Isolation::kSerializable));
    CHECK(!first.get({table, 1}, {Value::bytes("k")}).ok());
    must(first.insert(table, {{ColumnId(0), Value::int32(2)}}));
    must(database->change_type(table, kOrderText, Type::kString));
    Transaction second = must(database->begin());
    must(second.insert(table, {Value::int32(3), Value::string("k")}));
    must(second.commit());
    CHECK(first.commit().code() == StatusCode::kConflict);
    Transaction last = must(database->begin());
    must(last.insert(table, {{ColumnId(0), Value::int32(4)}}));
    CHECK(must(last.get({table, 0}, {Value::int32(4)})).is_null_unchecked(kOrderText));
  }
}

TEST_CASE("auto-increment continues when its int32 becomes an int64", "[engine]") {
  TemporaryDatabase database;
  TableSchema schema("numbered");
  schema.column("id", Type::kInt32).auto_increment().column("n", Type::kInt32);
  schema.primary_key({"id"});
  const TableId table = must(database->create_table(schema));
  constexpr std::int64_t kLast = std::numeric_limits<std::int32_t>::max();
  must(database->skip_numbers(table, kLast));
  const auto insert = [&]() -> Status {
    Transaction t = must(database->begin());
    if (auto row = t.insert(table, {Value::null(), Value::int32(1)}); !row.ok())
      return row.status();
    return t.commit();
  };
  CHECK(insert().code() == StatusCode::kOutOfSpace);
  must(database->change_type(table, ColumnId(0), Type::kInt64));
  must(insert());
  database.reopen();
  must(insert());
  const Transaction t = must(database->begin(AccessMode::kReadOnly));
  CHECK(t.get({table, 0}, {Value::int64(kLast + 1)}).ok());
}

TEST_CASE("the constants of a check get the type of their column", "[engine]") {
  TemporaryDatabase database;
  TableSchema schema("t");
  schema.column("b", Type::kBytes).column("n", Type::kInt32);
  schema.check(
      "not x",
      Condition::all_of(
          {Condition::compare("b", Condition::Kind::kNotEqual, Constant(Value::bytes("x"))),
           Condition::negated(Condition::starts_with("b", "y")),
           Condition::in("n", {Constant(Value::int32(1)), Constant(Value::int32(2))})}));
  const TableId table = must(database->create_table(schema));
  const auto check = [&](Type text) {
    Transaction t = must(database->begin());
    const auto insert = [&](std::string_view b, std::int32_t n) {
      return t.insert(table, {Value::from_bytes(text, b), Value::int32(n)}).code();
    };
    CHECK(insert("a", 1) == StatusCode::kOk);
    CHECK(insert("x", 1) == StatusCode::kConstraintViolated);
    CHECK(insert("yes", 1) == StatusCode::kConstraintViolated);
    CHECK(insert("a", 3) == StatusCode::kConstraintViolated);
    must(t.commit());
  };
  check(Type::kBytes);
  must(database->change_type(table, ColumnId(0), Type::kString));
  must(database->change_type(table, ColumnId(1), Type::kInt64));
  check(Type::kString);
  database.reopen();
  check(Type::kString);
  must(database->change_type(table, ColumnId(0), Type::kBytes));
  check(Type::kBytes);
}

TEST_CASE("an impossible change of type is refused, with table and column", "[engine]") {
  TemporaryDatabase database;
  TableSchema parent("parent");
  parent.column("id", Type::kInt32).column("d", Type::kDouble).column("s", Type::kString);
  parent.column("t", Type::kString).primary_key({"id"});
  parent.check("named", Condition::compare_columns("s", Condition::Kind::kGreater, "t"));
  parent.check("some",
               Condition::compare("t", Condition::Kind::kGreater, Constant(Value::string("a"))));
  const TableId table = must(database->create_table(parent));
  TableSchema child("child");
  child.column("id", Type::kInt64).column("of", Type::kInt32).primary_key({"id"});
  child.foreign_key("of_parent", {"of"}, "parent");
  const TableId other = must(database->create_table(child));
  const auto change = [&](TableId of, std::uint16_t column, Type type) {
    return database->change_type(of, ColumnId(column), type);
  };
  CHECK(reason(change(table, 1, Type::kInt64)) ==
        "table parent, column d: double cannot become int64: only int32 can become int64, "
        "string bytes, and bytes string; instead add a column, fill it and drop this one");
  CHECK(change(other, 0, Type::kInt32).code() == StatusCode::kInvalidArgument);
  CHECK(change(other, 0, static_cast<Type>(77)).code() == StatusCode::kInvalidArgument);
  CHECK(reason(change(table, 0, Type::kInt64)) ==
        "table parent, column id: foreign key of_parent of table child refers to it");
  CHECK(reason(change(other, 1, Type::kInt64)) ==
        "table child, column of: foreign key of_parent uses it");
  CHECK(change(other, 1, Type::kInt64).code() == StatusCode::kConstraintViolated);
  CHECK(change(table, 2, Type::kBytes).code() == StatusCode::kInvalidArgument);  // the check
  CHECK(change(table, 9, Type::kInt64).code() == StatusCode::kNotFound);
  CHECK(change(TableId(99), 0, Type::kInt64).code() == StatusCode::kNotFound);
  must(change(other, 0, Type::kInt64));  // it has that type already
  CHECK(must(database->schema(table)).columns[2].type == Type::kString);
}

namespace {

/// Rows from before two columns were added, in a group and in chunks, and later rows.
struct Lacking {
  Lacking() {
    insert(0, 300);
    static_cast<void>(must(database->merge(table)));
    insert(300, 400);
    ColumnSchema text;
    text.name = "text";
    text.type = Type::kString;
    text.default_value = Constant(Value::string(constant));
    must(database->add_column(table, text));
    ColumnSchema number;
    number.name = "number";
    number.type = Type::kInt32;
    number.default_value = Constant(Value::int32(-9));
    must(database->add_column(table, number));
    has_all = true;
    insert(400, 3000);
  }
  static TableSchema schema() {
    TableSchema schema("t");
    return schema.column("id", Type::kInt64).primary_key({"id"});
  }
  void insert(std::int64_t first, std::int64_t end) {
    Transaction t = must(database->begin());
    for (std::int64_t id = first; id < end; ++id) {
      const std::string text = text_of(id);
      std::vector<Value> row{Value::int64(id)};
      if (has_all) row.insert(row.end(), {Value::string(text), Value::int32(3)});
      must(t.insert(table, row));
    }
    must(t.commit());
  }
  void check() {
    const Transaction t = must(database->begin(AccessMode::kReadOnly));
    for (const std::int64_t id : {0, 299, 300, 399, 400, 2999}) {
      const Row row = must(t.get({table, 0}, {Value::int64(id)}));
      CHECK(row.get_unchecked(ColumnId(1)) == Value::string(id < 400 ? constant : text_of(id)));
      CHECK(row.get_unchecked(ColumnId(2)) == Value::int64(id < 400 ? -9 : 3));
    }
    const auto groups = must(query::Query::table("t")
                                 .group_by({"number"}, {query::count().as("n")})
                                 .order_by({query::asc("n")})
                                 .run(t));
    CHECK(groups.row_count() == 2);
    CHECK(groups.get_unchecked(0, 1).as_int64() == 400);
  }

  const std::string constant = std::string(100, 'c');
  bool has_all = false;
  TemporaryDatabase database;
  TableId table = must(database->create_table(schema()));
};

}  // namespace

TEST_CASE("rows that lack a column have its constant under the new type, and texts their own place",
          "[engine]") {
  Lacking t;
  const std::uint64_t before = t.database->statistics().pool_used_bytes;
  must(t.database->change_type(t.table, ColumnId(1), Type::kBytes));
  must(t.database->change_type(t.table, ColumnId(1), Type::kString));
  must(t.database->change_type(t.table, ColumnId(2), Type::kInt64));
  t.check();
  t.database.reopen();
  t.check();
  merge_everything(t.database, t.table);
  t.check();
  t.database.reopen();  // the dictionary, and the first texts, are free
  t.check();
  CHECK(t.database->statistics().pool_used_bytes < before);
  check_pool_is_whole(t.database);
  t.check();
}

TEST_CASE("a column whose type changed leaves nothing but its place when it is dropped",
          "[engine]") {
  Lacking t;
  const std::uint64_t before = t.database->statistics().pool_used_bytes;
  must(t.database->change_type(t.table, ColumnId(1), Type::kBytes));
  must(t.database->drop_column(t.table, ColumnId(1)));
  check_pool_is_whole(t.database);
  merge_everything(t.database, t.table);
  t.database.reopen();
  Transaction one = must(t.database->begin());
  must(one.insert(t.table, {Value::int64(5000), Value::null(), Value::int32(1)}));
  must(one.commit());
  check_pool_is_whole(t.database);
  must(t.database->drop_table(t.table));
  const std::uint64_t left = t.database->statistics().pool_used_bytes;
  CHECK(left < before / 2);
  t.database.reopen();
  CHECK(t.database->statistics().pool_used_bytes == left);  // no garbage is left
  must(t.database->check());
}

}  // namespace flugs::test
