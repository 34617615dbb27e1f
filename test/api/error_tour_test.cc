// A tour of mistakes: what a program can do wrong, and what it is told. Each message must name the
// thing that is wrong and say what to do or what is allowed. Public headers only, except for
// helpers of the tests.
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <concepts>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "flugs/flugs.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

using namespace std::chrono_literals;
using query::col;
using query::constant;
using query::Query;

constexpr auto kInvalid = StatusCode::kInvalidArgument;
constexpr auto kNone = StatusCode::kNotFound;
constexpr auto kBroken = StatusCode::kConstraintViolated;

/// The status has the code, and its message has each of the words.
void tells(const Status& status, StatusCode code, std::initializer_list<std::string> words) {
  INFO(status.to_string());
  CHECK(status.code() == code);
  for (const std::string& word : words) {
    INFO("the message lacks: " << word);
    CHECK(status.message().find(word) != std::string::npos);
  }
}
template <typename T>
void tells(const Result<T>& result, StatusCode code, std::initializer_list<std::string> words) {
  tells(result.status(), code, words);
}

TableSchema goods_schema() {
  TableSchema schema("goods");
  schema.column("id", Type::kInt64, {.auto_increment = true}).primary_key({"id"});
  schema.column("name", Type::kString).not_null();
  schema.column("price", Type::kDecimal).scale(2);
  schema.column("rate", Type::kDouble);
  schema.column("small", Type::kInt32);
  schema.unique_key("by_name", {"name"}).key("by_price", {"price", "id"});
  schema.check("cheap", col("price") < constant(Value::decimal("1000.00")));
  return schema;
}

TableSchema sales_schema() {
  TableSchema schema("sales");
  schema.column("id", Type::kInt64).column("good", Type::kInt64).primary_key({"id"});
  schema.foreign_key("of_good", {"good"}, "goods");
  return schema;
}

/// A shop with one good, "pen", and one sale of it.
struct Tour {
  static constexpr ColumnId kId{0}, kName{1}, kPrice{2}, kRate{3}, kSmall{4};

  TemporaryDatabase database;
  Table goods = must(database->ensure_table(goods_schema()));
  Table sales = must(database->ensure_table(sales_schema()));
  KeyId primary = must(goods.primary_key());
  KeyId by_name = must(goods.key("by_name"));
  KeyId by_price = must(goods.key("by_price"));

  Tour() {
    Transaction t = begin();
    must(t.insert(goods, {{kName, "pen"}, {kPrice, Value::decimal("1.50")}, {kSmall, 1}}));
    must(t.insert(sales, {1, 1}));
    must(t.commit());
  }
  Transaction begin() { return must(database->begin()); }
};

OpenOptions tour_options(const TemporaryPath& path) { return small_options(path.string()); }

// A view of a text that is about to be destroyed does not compile.
template <typename Text>
concept BecomesValue = requires(Text text) { Value::string(std::forward<Text>(text)); };
static_assert(BecomesValue<std::string_view> && !BecomesValue<std::string>);
static_assert(!std::constructible_from<Value, std::string>);

}  // namespace

TEST_CASE("error tour: options of an opening", "[api]") {
  const TemporaryPath path;
  const auto open = [&](const std::function<void(OpenOptions&)>& change) {
    OpenOptions options = tour_options(path);
    change(options);
    return Database::open(options).status();
  };
  tells(open([](auto& o) { o.path = ""; }), kInvalid, {"OpenOptions::path is empty", "in_memory"});
  tells(open([](auto& o) { o.in_memory = true; }), kInvalid, {"in_memory", path.string()});
  tells(open([](auto& o) { o.path = std::string("/dev/shm/a\0b", 12); }), kInvalid, {"zero byte"});
  tells(open([](auto& o) { o.path = "/dev/shm/no/such/folder/p"; }), kNone,
        {"/dev/shm/no/such/folder/p", "No such file or directory"});
  tells(open([](auto& o) { o.path = "/dev/shm"; }), kInvalid, {"/dev/shm", "Is a directory"});
  tells(open([](auto& o) { o.mode = OpenMode::kOpen; }), kNone,
        {path.string(), "OpenMode::kOpenOrCreate"});
  tells(open([](auto& o) { o.mode = OpenMode::kReadOnly; }), kNone, {path.string()});
  tells(open([](auto& o) { o.segment_bytes = 1000; }), kInvalid,
        {"segment_bytes is 1000", "multiple of 4096"});
  tells(open([](auto& o) { o.max_bytes = 1000; }), kInvalid, {"max_bytes", "1000", "8388608"});
  tells(open([](auto& o) { o.max_bytes = std::uint64_t{1} << 60; }), kInvalid, {"max_bytes"});
  tells(open([](auto& o) { o.slots_max = 0; }), kInvalid, {"slots_max is 0", "1 to 4000"});
  tells(open([](auto& o) { o.tuning.merge_niceness = 20; }), kInvalid,
        {"merge_niceness is 20", "0 to 19"});
  tells(open([](auto& o) { o.tuning.recovery_threads = 5000; }), kInvalid,
        {"recovery_threads is 5000", "0 to 1024"});
  tells(open([](auto& o) { o.tuning.scm_lines_in_flight = 0; }), kInvalid,
        {"scm_lines_in_flight is 0", "1 or more"});
  tells(open([](auto& o) { o.merge_policy.threads = 2000; }), kInvalid,
        {"threads is 2000", "0 to 1024"});
  tells(open([](auto& o) { o.merge_policy.interval = 1ms; }), kInvalid,
        {"interval is 1 ms", "10 to"});
  CHECK(::access(path.string().c_str(), F_OK) != 0);  // no refused opening has made a file
}

TEST_CASE("error tour: files that are no pools, and pools in use", "[api]") {
  const TemporaryPath path;
  OpenOptions options = tour_options(path);
  std::ofstream(options.path) << "hello, I am a text and no pool at all";
  tells(Database::open(options), StatusCode::kIncompatible, {options.path, "not a flugs pool"});
  std::ofstream(options.path, std::ios::trunc);
  tells(Database::open(options), StatusCode::kCorrupt, {options.path, "is empty"});
  ::unlink(options.path.c_str());
  Database database = must(Database::open(options));
  tells(Database::open(options), StatusCode::kBusy, {options.path, "open"});
  options.mode = OpenMode::kReadOnly;
  tells(Database::open(options), StatusCode::kBusy, {options.path, "already open"});
  options.mode = OpenMode::kCreate;
  tells(Database::open(options), StatusCode::kAlreadyExists,
        {options.path, "OpenMode::kOpenOrCreate"});
  must(database.close());
  REQUIRE(::truncate(options.path.c_str(), 4096 * 100) == 0);
  options.mode = OpenMode::kOpen;
  tells(Database::open(options), StatusCode::kCorrupt, {"409600 bytes", "truncated"});
}

TEST_CASE("error tour: a database that is closed, read-only or of a parent process", "[api]") {
  Tour tour;
  {
    Transaction open = tour.begin();
    tells(tour.database->close(), StatusCode::kBusy,
          {"1 is open", std::to_string(open.id().value()), "commit, abort or destroy it"});
    tells(tour.database->check(), StatusCode::kBusy, {"check needs that no transaction is open"});
    Transaction second = tour.begin();
    tells(tour.database->close(), StatusCode::kBusy, {"2 are open"});
  }
  const ::pid_t child = ::fork();
  if (child == 0) {
    const Status status = tour.database->begin().status();
    ::_exit(status.code() == kInvalid && status.message().find("fork") != std::string::npos ? 0
                                                                                            : 1);
  }
  int ended = 0;
  REQUIRE(::waitpid(child, &ended, 0) == child);
  CHECK((WIFEXITED(ended) && WEXITSTATUS(ended) == 0));
  must(tour.database->close());
  tells(tour.database->begin(), kInvalid, {"the database is not open"});
  OpenOptions options = tour.database.options;
  options.mode = OpenMode::kReadOnly;
  Database reader = must(Database::open(options));
  tells(reader.begin(), StatusCode::kReadOnly, {options.path, "OpenMode::kReadOnly"});
  tells(reader.create_table(goods_schema()), StatusCode::kReadOnly, {"OpenMode::kReadOnly"});
  Transaction t = must(reader.begin(AccessMode::kReadOnly));
  tells(t.insert(tour.goods, {1}), StatusCode::kReadOnly, {"read-only"});
}

TEST_CASE("error tour: schemas", "[api]") {
  Tour tour;
  const auto create = [&](const std::function<void(TableSchema&)>& make) {
    TableSchema schema("t");
    make(schema);
    return tour.database->create_table(schema).status();
  };
  tells(create([](auto& s) { s.name = "goods", s.column("a", Type::kInt64); }),
        StatusCode::kAlreadyExists, {"goods"});
  tells(create([](auto&) {}), kInvalid, {"table t", "column"});
  tells(create([](auto& s) { s.not_null().column("a", Type::kInt64); }), kInvalid,
        {"not_null", "before"});
  tells(create([](auto& s) { s.column("a", Type::kInt64).column("a", Type::kInt32); }), kInvalid,
        {"'a'", "t"});
  tells(create([](auto& s) { s.column("d", Type::kDecimal).scale(19); }), kInvalid,
        {"d", "scale 19", "18"});
  tells(create([](auto& s) { s.column("a", Type::kInt64).primary_key({"b"}); }), kInvalid,
        {"primary", "no column 'b'"});
  tells(
      create([](auto& s) { s.column("d", Type::kDecimal).scale(2).check("half", col("d") > 0.5); }),
      kInvalid, {"half", "column d of type decimal", "0.5", "Value::decimal"});
  tells(create([](auto& s) {
          s.column("d", Type::kDecimal).scale(2).check("twice", col("d") * 2 > 0);
        }),
        kInvalid, {"twice", "(d * 2) > 0"});
  tells(create([](auto& s) { s.column("a", Type::kInt64).check("c", col("b") > 1); }), kInvalid,
        {"c", "no column 'b'"});
  tells(create([](auto& s) { s.column("a", Type::kInt64).foreign_key("f", {"a"}, "nowhere"); }),
        kInvalid, {"f", "no table 'nowhere'"});
  tells(create([](auto& s) { s.column("a", Type::kInt32).with_default("x"); }), kInvalid,
        {"column a of type int32", "'x'"});
  TableSchema other = goods_schema();
  other.columns[2].scale = 3;
  tells(tour.database->ensure_table(other), kInvalid, {"goods", "price", "differs"});
  tells(tour.database->table("gods"), kNone, {"no table 'gods'", "goods", "sales"});
  tells(tour.goods.column("nam"), kNone, {"table goods", "'nam'", "id, name, price"});
  tells(tour.goods.key("names"), kNone, {"'names'", "primary, by_name, by_price"});
  tells(tour.database->find_column(tour.goods, "nam"), kNone, {"'nam'", "id, name, price"});
  tells(tour.database->find_key(tour.goods, "names"), kNone, {"'names'", "primary, by_name"});
}

TEST_CASE("error tour: schema changes", "[api]") {
  Tour tour;
  Database& database = *tour.database;
  tells(database.drop_table(tour.goods), kBroken, {"of_good", "sales"});
  tells(database.drop_table(TableId(99)), kNone, {"no such table"});
  tells(database.drop_column(tour.goods, Tour::kName), kBroken, {"name", "by_name"});
  tells(database.drop_column(tour.goods, Tour::kPrice), kBroken, {"price", "by_price"});
  tells(database.drop_key(tour.primary), kBroken, {"primary key"});
  tells(database.rename_column(tour.goods, Tour::kName, "price"), StatusCode::kAlreadyExists,
        {"price"});
  tells(database.rename_table(tour.goods, ""), kInvalid, {"has 0 bytes", "1 to 63"});
  tells(database.add_column(tour.goods, {.name = "must", .nullable = false}), kBroken,
        {"must", "NOT NULL", "default"});
  tells(database.change_type(tour.goods, Tour::kName, Type::kInt64), kInvalid,
        {"name", "string", "int64"});
  tells(database.add_key(tour.goods, {.name = "by_x", .columns = {"x"}}), kInvalid,
        {"by_x", "no column 'x'"});
  {
    Transaction t = tour.begin();
    must(t.insert(tour.goods, {{Tour::kName, "ink"}, {Tour::kSmall, 1}}));
    must(t.commit());
  }
  tells(database.add_key(tour.goods, {.name = "by_small", .columns = {"small"}, .unique = true}),
        kBroken, {"goods", "by_small", "more than one row has small = 1"});
  Transaction open = tour.begin();
  must(open.insert(tour.goods, {{Tour::kName, "gum"}}));
  tells(database.add_key(tour.goods, {.name = "by_rate", .columns = {"rate"}}), StatusCode::kBusy,
        {"goods", "by_rate", "still open"});
  tells(database.drop_table(tour.sales), StatusCode::kBusy, {"sales", "open"});
}

TEST_CASE("error tour: values", "[api]") {
  Tour tour;
  Transaction t = tour.begin();
  const auto insert = [&](std::initializer_list<ColumnValue> values) {
    return t.insert(tour.goods, values).status();
  };
  tells(insert({{Tour::kPrice, Value::decimal("1.00")}}), kBroken,
        {"goods", "name", "no value is given", "default"});
  tells(insert({{Tour::kName, nullptr}}), kBroken, {"name", "NULL is not allowed"});
  tells(insert({{Tour::kName, 7}}), kBroken, {"name", "expected string", "int32 7"});
  tells(insert({{Tour::kName, "a"}, {Tour::kSmall, std::int64_t{1} << 40}}), kBroken,
        {"small", "expected int32", "1099511627776"});
  tells(insert({{Tour::kName, "a"}, {Tour::kPrice, 1.5}}), kBroken,
        {"price", "decimal of scale 2", "double 1.5", "Value::decimal"});
  tells(insert({{Tour::kName, "a"}, {Tour::kPrice, Value::decimal("1.505")}}), kBroken,
        {"price", "decimal of scale 2", "1.505"});
  tells(insert({{Tour::kName, "a"}, {Tour::kPrice, Value::decimal(1, 19)}}), kBroken,
        {"price", "1e-19", "a scale of at most 18"});
  tells(insert({{Tour::kName, "a"}, {Tour::kPrice, Value::decimal(0, 19)}}), kBroken, {"0e-19"});
  tells(insert({{Tour::kName, "a"}, {Tour::kPrice, 2000}}), kBroken,
        {"check cheap", "price", "2000.00"});
  tells(insert({{ColumnId(99), 1}}), kInvalid, {"goods", "no column 99", "it has 5"});
  tells(insert({{Tour::kName, "pen"}}), StatusCode::kAlreadyExists,
        {"goods", "by_name", "name = 'pen' exists"});
  tells(t.insert(tour.sales, {2, 77}), kBroken, {"of_good", "77", "goods"});
  tells(t.insert(tour.sales, {2}), kInvalid, {"sales", "1 value for 2 columns"});
  tells(t.insert(TableId(99), {2}), kNone, {"no such table"});
  const std::vector<Value> three = {5, 1, 6};
  tells(t.insert_rows(tour.sales, three), kInvalid, {"sales", "3 values", "2 columns"});
  std::vector<RowId> room(3);
  const std::vector<Value> four = {5, 1, 6, 1};
  tells(t.insert_rows(tour.sales, four, room), kInvalid, {"sales", "3 row ids", "2 rows"});
  tells(t.update(tour.primary, {1}, {{Tour::kPrice, Value::decimal("2000")}}), kBroken, {"cheap"});
  tells(t.update(tour.primary, {1}, {{ColumnId(7), 1}}), kInvalid, {"no column 7"});
  tells(t.add(tour.primary, {1}, Tour::kName, 1), kInvalid, {"name", "integer or a decimal"});
  tells(t.add(tour.primary, {1}, Tour::kSmall, 2147483647), StatusCode::kOverflow,
        {"small", "1 + 2147483647", "int32"});
  tells(t.remove(tour.primary, {1}), kBroken, {"of_good", "sales"});
  must(t.commit());
}

TEST_CASE("error tour: keys and rows", "[api]") {
  Tour tour;
  Transaction t = tour.begin();
  tells(t.get(tour.primary, {}), kInvalid, {"primary", "get needs 1 value, found 0"});
  tells(t.get(tour.primary, {1, 2}), kInvalid, {"primary", "get needs 1 value, found 2"});
  tells(t.get(tour.primary, {"one"}), kInvalid,
        {"id", "expected int64", "string 'one'", "key primary"});
  tells(t.get(tour.by_price, {1, 1}), kInvalid, {"by_price", "not unique", "rows"});
  tells(t.get(KeyId{tour.goods, 9}, {1}), kInvalid, {"goods", "no key 9"});
  CHECK(t.get(tour.primary, {77}).code() == kNone);  // an ordinary answer without a message
  Rows too_long = t.rows(tour.by_price, {1, 1, 1});
  for (const Row& row : too_long) static_cast<void>(row);
  tells(too_long.status(), kInvalid, {"by_price", "3 values", "2"});
  Rows unordered = t.rows(tour.by_name, KeyBound(), KeyBound());
  for (const Row& row : unordered) static_cast<void>(row);
  tells(unordered.status(), kInvalid, {"by_name", "not ordered"});
  const auto write_within = [&](const Row& row) {
    must(t.update(row, {{Tour::kSmall, 5}}));
    return true;
  };
  tells(t.rows(tour.by_price, {}, write_within), kInvalid,
        {"goods", "visitor", "pull the rows", "after the call"});
  const Row pen = must(t.get(tour.by_name, {"pen"}));
  tells(pen.get<std::int64_t>("nam"), kNone, {"goods", "'nam'", "id, name, price"});
  tells(pen.get<std::int64_t>(ColumnId(99)), kInvalid, {"goods", "no column 99", "it has 5"});
  tells(pen.get<std::int64_t>(Tour::kName), kInvalid,
        {"column 1 (name)", "of type string", "read as int64"});
  tells(pen.get<double>(Tour::kPrice), kInvalid, {"(price)", "decimal", "read as double"});
  tells(pen.get<std::string_view>(Tour::kId), kInvalid, {"(id)", "int64", "string_view"});
  tells(pen.get<double>(Tour::kRate), kInvalid, {"(rate)", "holds NULL", "std::optional"});
  tells(Row().get(Tour::kId), kInvalid, {"no call has returned"});
  tells(Row().get("id"), kInvalid, {"no call has returned"});
  tells(t.update(tour.goods, RowId(1 << 30), {{Tour::kSmall, 1}}), kNone, {});
  must(t.commit());
  tells(t.get(tour.primary, {1}), kInvalid, {"the transaction has ended"});
  tells(t.commit(), kInvalid, {"the transaction has ended"});
}

TEST_CASE("error tour: transactions and locks", "[api]") {
  Tour tour;
  Database& database = *tour.database;
  std::vector<Transaction> all;
  for (int i = 0; i < 16; ++i) all.push_back(tour.begin());
  tells(database.begin(), StatusCode::kTooManyTransactions,
        {"16 transactions are open", "OpenOptions::slots_max"});
  all.clear();
  tells(database.cancel(TransactionId(12345)), kNone, {"transaction"});
  Transaction holder = tour.begin();
  must(holder.lock(tour.primary, {1}));
  Transaction t = tour.begin();
  const std::string id = std::to_string(holder.id().value());
  tells(
      t.lock(tour.primary, {1}, {.limit = 20ms}), StatusCode::kBusy,
      {"goods", "primary", "transaction " + id + " has locked the row", "20 ms (LockWait::limit)"});
  tells(t.lock(tour.primary, {1}, {.limit = 0ms}), StatusCode::kBusy,
        {"transaction " + id, "0 ms (LockWait::limit)"});
  tells(t.lock(tour.primary, {1}, {.limit = -1ms}), kInvalid, {"-1 ms", "0 ms and more"});
  holder.abort();
  holder = tour.begin();
  must(holder.update(tour.primary, {1}, {{Tour::kSmall, 3}}));
  tells(t.lock(tour.primary, {1}, {.limit = 20ms}), StatusCode::kBusy,
        {"transaction " + std::to_string(holder.id().value()) + " has written the row"});
  tells(t.set_time_limit(-1ms), kInvalid, {"-1 ms", "allowed"});
  const Savepoint mine = must(t.savepoint());
  tells(holder.rollback_to(mine), kInvalid, {"savepoint", "another transaction"});
  tells(t.rollback_to(Savepoint()), kInvalid, {"savepoint"});
  must(database.cancel(t.id()));
  tells(t.get(tour.primary, {1}), StatusCode::kCancelled, {"was ended", "cancelled"});
  Transaction reader = must(database.begin(AccessMode::kReadOnly));
  tells(reader.insert(tour.sales, {9, 1}), StatusCode::kReadOnly, {"begun read-only"});
  tells(database.begin(AccessMode::kReadWrite, static_cast<Isolation>(9)), kInvalid,
        {"isolation is 9", "0 to 2"});
  tells(database.begin(static_cast<AccessMode>(9)), kInvalid, {"mode is 9", "0 to 2"});
  tells(
      database.run([](Transaction&) { return Status(StatusCode::kConflict); }, {.attempts_max = 2}),
      StatusCode::kConflict, {"2 attempts"});
  tells(database.run([](Transaction&) { return Status(); }, {.pause_max = 0us}), kInvalid,
        {"pause_max"});
}

TEST_CASE("error tour: merges", "[api]") {
  Tour tour;
  Database& database = *tour.database;
  tells(database.merge(TableId(99)), kNone, {"no such table"});
  tells(database.merge(tour.goods, {.threads = 1025}), kInvalid, {"threads is 1025", "0 to 1024"});
  tells(database.merge(tour.goods, {.dead_percent = 0}), kInvalid,
        {"dead_percent is 0", "1 to 100"});
  MergePolicy policy;
  policy.idle_percent = 101;
  tells(database.set_merge_policy(tour.goods, policy), kInvalid,
        {"idle_percent is 101", "0 to 100"});
  const Transaction open = must(database.begin(AccessMode::kReadOnly));
  tells(database.merge(tour.goods, {.scope = MergeScope::kEverything, .patience = 0ms}),
        StatusCode::kBusy, {"goods", "is still open", "ends_old_transactions"});
}

TEST_CASE("error tour: queries", "[api]") {
  Tour tour;
  const Transaction t = tour.begin();
  const Query goods = Query::table("goods");
  const auto run = [&](const Query& query) { return query.run(t).status(); };
  tells(run(Query::table("gods")), kNone, {"no table 'gods'", "goods, sales"});
  tells(run(goods.where(col("nam") == "x")), kInvalid, {"no column nam", "id, name"});
  tells(run(goods.where(col("name") == 5)), kInvalid, {"name", "string", "int64"});
  tells(run(goods.where(col("name"))), kInvalid, {"name", "expected a condition", "string"});
  tells(run(goods.where(col("price") == constant(Value::decimal_units(50)))), kInvalid,
        {"50 units", "Value::decimal(units, scale)"});
  tells(run(goods.where(col("price") == constant(Value::decimal(1, 19)))), kInvalid,
        {"scale 19", "at most 18"});
  tells(run(goods.select({"id", "id"})), kInvalid, {"two columns named id", "as()"});
  tells(run(goods.join(Query::table("sales"), {{"id", "good"}})), kInvalid,
        {"two columns named id", "as()"});
  tells(run(goods.join(Query::table("sales").as("s"), {{"name", "s.good"}})), kInvalid,
        {"name", "string", "int64"});
  tells(run(goods.group_by({"small"}, {query::sum("name")})), kInvalid,
        {"sum(name)", "number", "string"});
  tells(run(goods.select({(col("small") * 9'000'000'000'000'000'000 * 9).as("x")})),
        StatusCode::kOverflow, {"*"});
  tells(goods.run(t, {.threads = 1025}), kInvalid, {"RunOptions::threads is 1025", "0 to 1024"});
  tells(goods.explain(t, {.threads = 1025}), kInvalid, {"RunOptions::threads"});
  tells(goods.order_by({"id"}).run(t, {.memory_bytes_max = 1}), StatusCode::kOutOfMemory,
        {"RunOptions::memory_bytes_max"});
  std::stop_source source;
  source.request_stop();
  tells(goods.run(t, {.stop = source.get_token()}), StatusCode::kCancelled,
        {"the caller asked the query to stop", "RunOptions::stop"});
  tells(run(goods.select({(col("price") > 1).as("a"), col("price") > 1})), StatusCode::kOk, {});
  CHECK((col("a") > 1).to_string() == "a > 1");
  CHECK((col("a") >= 1).to_string() == "a >= 1");
  CHECK((1 < col("a") * 2).to_string() == "(a * 2) > 1");
  const query::QueryResult result = must(goods.select({"id", "price"}).run(t));
  tells(result.get<std::int64_t>(0, "nam"), kNone, {"'nam'", "id, price"});
  tells(result.get<std::int64_t>(0, 9), kInvalid, {"no column 9", "id, price"});
  tells(result.get<std::int64_t>(9, 0), kInvalid, {"row 9", "1 row"});
  tells(result.get<std::string>(0, 1), kInvalid, {"(price)", "decimal", "read as string"});
  tells(result.batch(0).column<double>(0), kInvalid, {"(id)", "int64", "double"});
  CHECK(must(result.get(0, 1)).to_string() == "1.50");
}

TEST_CASE("error tour: a full pool", "[api]") {
  const TemporaryPath path;
  OpenOptions options = tour_options(path);
  options.max_bytes = std::uint64_t{16} << 20;
  options.segment_bytes = std::uint64_t{1} << 20;
  Database database = must(Database::open(options));
  TableSchema schema("logs");
  schema.column("id", Type::kInt64).column("text", Type::kString).primary_key({"id"});
  const TableId logs = must(database.create_table(schema));
  Status refused;
  for (int i = 0; refused.ok() && i < 100'000; ++i)
    refused = database.run([&](Transaction& t) {
      const std::string text = std::to_string(i) + std::string(3000, 'x');
      return t.insert(logs, {i, text}).status();
    });
  tells(
      refused, StatusCode::kOutOfSpace,
      {"bytes wanted", "of at most 16", "its largest size, 16777216 bytes (OpenOptions::max_bytes)",
       "Database::grow", "flugs pool grow", "drop a table"});
  tells(database.grow(std::uint64_t{8} << 20), kInvalid, {"8388608", "16777216"});
  tells(database.grow(std::uint64_t{1} << 60), kInvalid, {"17592186044416", "16777216"});
  must(database.close());
  options.max_bytes = std::uint64_t{8} << 20;
  tells(Database::open(options).status(), kInvalid, {"8388608", "16777216"});
  options.mode = OpenMode::kReadOnly;
  options.max_bytes = std::uint64_t{1} << 30;
  tells(Database::open(options).status(), StatusCode::kReadOnly, {"1073741824", "16777216"});
  options.mode = OpenMode::kOpen;
  const Database again = must(Database::open(options));
  CHECK(again.statistics().pool_reserved_bytes == std::uint64_t{1} << 30);
}

}  // namespace flugs::test
