// The isolation levels: what each admits and refuses, transaction by transaction in one thread.
#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <vector>

#include "flugs/query.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

constexpr ColumnId kAccount{0};
constexpr ColumnId kBranch{1};
constexpr ColumnId kSavings{2};

TableSchema savings_schema() {
  TableSchema schema("accounts");
  schema.column("id", Type::kInt64).column("group", Type::kInt64).column("amount", Type::kInt64);
  schema.column("name", Type::kString);
  schema.primary_key({"id"});
  schema.key("by_group", {"group"}).ordered();
  schema.unique_key("by_name", {"name"});
  return schema;
}

struct Savings {
  MemoryDatabase database;
  TableId table = must(database->create_table(savings_schema()));
  KeyId primary{table, 0};
  KeyId by_group{table, 1};
  KeyId by_name{table, 2};

  Savings() {
    for (std::int64_t id = 1; id <= 20; ++id) add(id, id / 5, 100);
  }
  Transaction begin(Isolation isolation = Isolation::kSerializable,
                    AccessMode mode = AccessMode::kReadWrite) {
    return must(database->begin(mode, isolation));
  }
  static std::string name_of(std::int64_t id) {
    return "the name of account " + std::to_string(id);  // too long to lie in the row
  }
  void insert(Transaction& t, std::int64_t id, std::int64_t group, std::int64_t amount) const {
    must(t.insert(table, {Value::int64(id), Value::int64(group), Value::int64(amount),
                          Value::string(std::string_view(name_of(id)))}));
  }
  void add(std::int64_t id, std::int64_t group, std::int64_t amount) {
    Transaction t = begin(Isolation::kSnapshot);
    insert(t, id, group, amount);
    must(t.commit());
  }
  void set(Transaction& t, std::int64_t id, ColumnId column, std::int64_t value) const {
    must(t.update(table, must(t.get(primary, {Value::int64(id)})).id(),
                  {{column, Value::int64(value)}}));
  }
  void remove(Transaction& t, std::int64_t id) const {
    must(t.remove(table, must(t.get(primary, {Value::int64(id)})).id()));
  }
  std::int64_t amount(const Transaction& t, std::int64_t id) const {
    return must(t.get(primary, {Value::int64(id)})).get_unchecked<std::int64_t>(kSavings);
  }
  /// Whether a transaction may commit that calls `read` and then writes rows that no other one
  /// touches, when another transaction commits `change` in between.
  StatusCode read_then(const std::function<void(Transaction&)>& read,
                       const std::function<void(Transaction&)>& change,
                       Isolation isolation = Isolation::kSerializable) {
    Transaction t = begin(isolation);
    read(t);
    Transaction other = begin(Isolation::kSnapshot);
    change(other);
    must(other.commit());
    insert(t, 1000, 1000, 0);
    return t.commit().code();
  }
};

TEST_CASE("snapshot isolation admits write skew, serializable does not", "[engine]") {
  for (const Isolation isolation : {Isolation::kSnapshot, Isolation::kSerializable}) {
    Savings accounts;
    Transaction a = accounts.begin(isolation);
    Transaction b = accounts.begin(isolation);
    const std::int64_t sum_a = accounts.amount(a, 1) + accounts.amount(a, 2);
    const std::int64_t sum_b = accounts.amount(b, 1) + accounts.amount(b, 2);
    accounts.set(a, 1, kSavings, 100 - sum_a);
    accounts.set(b, 2, kSavings, 100 - sum_b);
    CHECK(a.commit().code() == StatusCode::kOk);
    const bool is_snapshot = isolation == Isolation::kSnapshot;
    CHECK(b.commit().code() == (is_snapshot ? StatusCode::kOk : StatusCode::kConflict));
    CHECK_FALSE(b.is_open());
    const Transaction after = accounts.begin();
    CHECK(accounts.amount(after, 1) + accounts.amount(after, 2) == (is_snapshot ? -200 : 0));
  }
}

TEST_CASE("a serializable transaction commits if its reads are unchanged", "[engine]") {
  Savings accounts;
  const auto read_all_ways = [&](Transaction& t) {
    accounts.amount(t, 1);
    CHECK(t.get(accounts.primary, {Value::int64(500)}).code() == StatusCode::kNotFound);
    CHECK(t.get(accounts.by_name, {Value::null()}).code() == StatusCode::kNotFound);
    must(t.rows(accounts.by_group, {Value::int64(1)}, [](const Row&) { return true; }));
    must(t.scan(accounts.table, std::vector{kAccount}, Predicate::equal(kBranch, Value::int64(1)),
                [](const ScanBatch&) { return true; }));
  };
  CHECK(accounts.read_then(read_all_ways, [&](Transaction& t) {
    accounts.set(t, 15, kSavings, 1);
    accounts.insert(t, 600, 3, 1);
    accounts.remove(t, 16);
  }) == StatusCode::kOk);
}

TEST_CASE("serializable: read rows must not have changed", "[engine]") {
  Savings accounts;
  const auto find = [&](std::int64_t id) {
    return [&accounts, id](Transaction& t) { accounts.amount(t, id); };
  };
  const auto read = [&](Transaction& t) {
    const Transaction scout = accounts.begin();
    must(t.get(accounts.table, must(scout.get(accounts.primary, {Value::int64(3)})).id()));
  };
  const auto change = [&](std::int64_t id) {
    return [&accounts, id](Transaction& t) { accounts.set(t, id, kSavings, 1); };
  };
  CHECK(accounts.read_then(find(1), change(1)) == StatusCode::kConflict);
  CHECK(accounts.read_then(find(2), [&](Transaction& t) { accounts.remove(t, 2); }) ==
        StatusCode::kConflict);
  CHECK(accounts.read_then(read, change(3)) == StatusCode::kConflict);
  CHECK(accounts.read_then(find(1), change(1), Isolation::kSnapshot) == StatusCode::kOk);
}

TEST_CASE("serializable: an absent key must still be absent at commit", "[engine]") {
  Savings accounts;
  const auto miss = [&](Transaction& t) {
    CHECK(t.get(accounts.primary, {Value::int64(500)}).code() == StatusCode::kNotFound);
  };
  CHECK(accounts.read_then(miss, [&](Transaction& t) { accounts.insert(t, 500, 9, 1); }) ==
        StatusCode::kConflict);
  // Inserted and removed: no transaction sees it at the commit time-stamp, or at the snapshot.
  const auto come_and_go = [&](Transaction& t) {
    accounts.insert(t, 501, 9, 1);
    must(t.commit());
    t = accounts.begin();
    accounts.remove(t, 501);
  };
  CHECK(accounts.read_then(
            [&](Transaction& t) {
              CHECK(t.get(accounts.primary, {Value::int64(501)}).code() == StatusCode::kNotFound);
            },
            come_and_go) == StatusCode::kOk);
}

TEST_CASE("serializable: no row may have entered or left a range", "[engine]") {
  const auto read_group = [](Savings& accounts, Transaction& t, std::size_t rows_max) {
    std::size_t rows = 0;
    const std::vector<Value> group = {Value::int64(2)};
    must(t.rows(accounts.by_group, {group, true}, {group, true},
                [&](const Row&) { return ++rows != rows_max; }));
    return rows;
  };
  struct Case {
    std::size_t rows_max;
    std::function<void(Savings&, Transaction&)> change;
    StatusCode expected;
  };
  const auto set = [](std::int64_t id, ColumnId column, std::int64_t value) {
    return [=](Savings& accounts, Transaction& t) { accounts.set(t, id, column, value); };
  };
  const std::vector<Case> cases = {
      {0, [](Savings& a, Transaction& t) { a.insert(t, 700, 2, 0); }, StatusCode::kConflict},
      {0, [](Savings& a, Transaction& t) { a.insert(t, 700, 3, 0); }, StatusCode::kOk},
      {0, [](Savings& a, Transaction& t) { a.remove(t, 10); }, StatusCode::kConflict},
      {0, set(10, kBranch, 7), StatusCode::kConflict},
      {0, set(1, kBranch, 2), StatusCode::kConflict},
      {0, set(1, kBranch, 1), StatusCode::kOk},
      {0, set(12, kSavings, 7), StatusCode::kConflict},
      // The read stopped at the first row: later rows were not read.
      {1, set(12, kSavings, 7), StatusCode::kOk},
      {1, set(10, kSavings, 7), StatusCode::kConflict},
  };
  for (const Case& c : cases) {
    CAPTURE(&c - cases.data());
    Savings accounts;
    CHECK(accounts.read_then(
              [&](Transaction& t) {
                CHECK(read_group(accounts, t, c.rows_max) == (c.rows_max == 0 ? 5 : c.rows_max));
              },
              [&](Transaction& t) { c.change(accounts, t); }) == c.expected);
  }
}

TEST_CASE("serializable: no row may have entered or left a scan", "[engine]") {
  const auto scan = [](const Savings& accounts, Transaction& t) {
    must(t.scan(accounts.table, std::vector{kAccount},
                Predicate::equal(kSavings, Value::int64(100)),
                [](const ScanBatch&) { return true; }));
  };
  struct Case {
    std::function<void(Savings&, Transaction&)> change;
    StatusCode expected;
  };
  const std::vector<Case> cases = {
      {[](Savings& a, Transaction& t) { a.insert(t, 800, 9, 100); }, StatusCode::kConflict},
      {[](Savings& a, Transaction& t) { a.insert(t, 800, 9, 99); }, StatusCode::kOk},
      {[](Savings& a, Transaction& t) { a.set(t, 4, kSavings, 99); }, StatusCode::kConflict},
      {[](Savings& a, Transaction& t) { a.remove(t, 4); }, StatusCode::kConflict},
  };
  for (const Case& c : cases) {
    CAPTURE(&c - cases.data());
    Savings accounts;
    CHECK(accounts.read_then([&](Transaction& t) { scan(accounts, t); },
                             [&](Transaction& t) { c.change(accounts, t); }) == c.expected);
  }
}

TEST_CASE("serializable: rows read by a query must not have changed", "[engine]") {
  using namespace flugs::query;
  Savings accounts;
  const Query query = Query::table("accounts").group_by({}, {count()});
  const auto run = [&](Transaction& t) { must(query.run(t)); };
  const auto explain = [&](Transaction& t) { must(query.explain(t)); };
  const auto change = [&](Transaction& t) { accounts.set(t, 7, kSavings, 1); };
  CHECK(accounts.read_then(explain, change) == StatusCode::kOk);
  Savings second;
  CHECK(second.read_then(run, [&](Transaction& t) { second.set(t, 7, kSavings, 1); }) ==
        StatusCode::kConflict);
}

TEST_CASE("serializable: a refusal because of a taken key counts as a read", "[engine]") {
  Savings accounts;
  const auto refused = [&](Transaction& t) {
    CHECK(t.insert(accounts.table, {Value::int64(900), Value::int64(0), Value::int64(0),
                                    std::string_view(Savings::name_of(5))})
              .code() == StatusCode::kAlreadyExists);
  };
  CHECK(accounts.read_then(refused, [&](Transaction& t) { accounts.remove(t, 5); }) ==
        StatusCode::kConflict);
}

TEST_CASE("a serializable transaction does not conflict with its own writes", "[engine]") {
  Savings accounts;
  Transaction t = accounts.begin();
  must(t.scan(accounts.table, {kAccount}, [](const ScanBatch&) { return true; }));
  for (int i = 0; i < 3; ++i) accounts.set(t, 1, kSavings, accounts.amount(t, 1) + 1);
  accounts.remove(t, 2);
  CHECK(t.get(accounts.primary, {Value::int64(2)}).code() == StatusCode::kNotFound);
  accounts.insert(t, 2, 8, 1);
  accounts.insert(t, 300, 1, 1);
  accounts.remove(t, 300);
  must(t.rows(accounts.by_group, {Value::int64(8)}, [](const Row&) { return true; }));
  must(t.scan(accounts.table, {kAccount}, [](const ScanBatch&) { return true; }));
  must(t.commit());
  CHECK(accounts.amount(accounts.begin(), 1) == 103);
}

TEST_CASE("a transaction without a time-stamp comes later and causes no conflict", "[engine]") {
  Savings accounts;
  Transaction reader = accounts.begin();
  accounts.amount(reader, 1);
  Transaction writer = accounts.begin();
  accounts.set(writer, 1, kSavings, 1);
  accounts.set(reader, 2, kSavings, 1);
  must(reader.commit());
  must(writer.commit());
  CHECK(accounts.amount(accounts.begin(), 1) == 1);
}

TEST_CASE("a serializable transaction that wrote nothing never fails", "[engine]") {
  for (const AccessMode mode : {AccessMode::kReadOnly, AccessMode::kReadWrite}) {
    Savings accounts;
    Transaction t = accounts.begin(Isolation::kSerializable, mode);
    accounts.amount(t, 1);
    Transaction other = accounts.begin();
    accounts.set(other, 1, kSavings, 1);
    must(other.commit());
    CHECK(accounts.amount(t, 1) == 100);
    must(t.commit());
  }
}

TEST_CASE("the context of a serializable transaction is clean for the next one", "[engine]") {
  Savings accounts;
  {
    Transaction t = accounts.begin();
    accounts.amount(t, 1);
  }
  Transaction t = accounts.begin();
  Transaction other = accounts.begin();
  accounts.set(other, 1, kSavings, 1);
  must(other.commit());
  accounts.insert(t, 1000, 0, 0);
  must(t.commit());
}

TEST_CASE("read committed: each call reads what was committed when it began", "[engine]") {
  Savings accounts;
  Transaction t = accounts.begin(Isolation::kReadCommitted);
  const Row before = must(t.get(accounts.primary, {Value::int64(1)}));
  CHECK(before.get_unchecked<std::int64_t>(kSavings) == 100);
  Transaction other = accounts.begin(Isolation::kSnapshot);
  accounts.set(other, 1, kSavings, 7);
  CHECK(accounts.amount(t, 1) == 100);  // not committed
  CHECK(t.update(accounts.table, before.id(), {{kSavings, Value::int64(8)}}).code() ==
        StatusCode::kConflict);
  must(other.commit());
  CHECK(accounts.amount(t, 1) == 7);
  // The version that was found no longer exists.
  CHECK(t.update(accounts.table, before.id(), {{kSavings, Value::int64(8)}}).code() ==
        StatusCode::kNotFound);
  accounts.set(t, 1, kSavings, 9);
  CHECK(accounts.amount(t, 1) == 9);
  accounts.add(77, 0, 5);
  CHECK(accounts.amount(t, 77) == 5);
  must(t.commit());
  CHECK(accounts.amount(accounts.begin(), 1) == 9);
}

TEST_CASE("read committed: ids of found rows are not reused for other rows", "[engine]") {
  Savings accounts;
  Transaction t = accounts.begin(Isolation::kReadCommitted);
  const RowId row = must(t.get(accounts.primary, {Value::int64(3)})).id();
  for (std::int64_t i = 0; i < 2000; ++i) {
    Transaction other = accounts.begin(Isolation::kSnapshot);
    accounts.set(other, 3 + i % 4, kSavings, i);
    must(other.commit());
    REQUIRE(t.get(accounts.table, row).code() == StatusCode::kNotFound);
  }
}

TEST_CASE("an unknown isolation level is refused", "[engine]") {
  Savings accounts;
  CHECK(accounts.database->begin(AccessMode::kReadWrite, static_cast<Isolation>(9)).code() ==
        StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace flugs::test
