// Calls that read and write in one: their effects, their errors, and that they are atomic.
#include <array>
#include <catch2/catch.hpp>
#include <limits>
#include <string>
#include <vector>

#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

constexpr ColumnId kShort{2};
constexpr ColumnId kLong{3};
constexpr ColumnId kMoney{4};
constexpr ColumnId kNote{5};

TableSchema counters_schema() {
  TableSchema schema("counters");
  schema.column("id", Type::kInt64).column("code", Type::kString);
  schema.column("short", Type::kInt32).column("long", Type::kInt64);
  schema.column("money", Type::kDecimal).scale(2).column("note", Type::kString);
  schema.primary_key({"id"});
  schema.unique_key("by_code", {"code"});
  schema.key("by_short", {"short"}).ordered();
  return schema;
}

struct Counters {
  TemporaryDatabase database;
  TableId table = must(database->create_table(counters_schema()));
  KeyId primary{table, 0};
  KeyId by_code{table, 1};
  KeyId by_short{table, 2};

  Counters() {
    Transaction t = begin();
    for (std::int32_t id = 1; id <= 9; ++id) must(t.insert(table, row(id, "c", id, 100, "old")));
    must(t.insert(table, {Value::int64(10), Value::null(), Value::null(), Value::null(),
                          Value::null(), Value::null()}));
    must(t.commit());
  }
  Transaction begin(Isolation isolation = Isolation::kSnapshot) {
    return must(database->begin(AccessMode::kReadWrite, isolation));
  }
  static std::vector<Value> row(std::int64_t id, const char* code, std::int32_t small,
                                std::int64_t large, std::string_view note) {
    static std::array<std::string, 64> codes;
    std::string& text = codes[static_cast<std::size_t>(id % 64)];
    text = code + std::to_string(id);
    return {Value::int64(id),    Value::string(text),       Value::int32(small),
            Value::int64(large), Value::decimal_units(250), Value::string(note)};
  }
  Value held(const Transaction& t, std::int64_t id, ColumnId column) const {
    return must(t.get(primary, {Value::int64(id)})).get_unchecked(column);
  }
  std::size_t rows(const Transaction& t) const {
    std::size_t count = 0;
    must(t.scan(table, {kShort}, [&](const ScanBatch& batch) {
      count += batch.row_count();
      return true;
    }));
    return count;
  }
};

}  // namespace

TEST_CASE("add adds to integers and decimals, and sees its own sums", "[api]") {
  Counters counters;
  Transaction t = counters.begin();
  CHECK(must(t.add(counters.primary, {Value::int64(1)}, kShort, Value::int32(5))) ==
        Value::int32(6));
  CHECK(must(t.add(counters.primary, {Value::int64(1)}, kShort, Value::int32(-7))) ==
        Value::int32(-1));
  CHECK(must(t.add(counters.by_code, {Value::string("c2")}, kLong, Value::int32(1))) ==
        Value::int64(101));
  CHECK(must(t.add(counters.primary, {Value::int64(3)}, kMoney, Value::decimal_units(-251))) ==
        Value::decimal_units(-1));
  must(t.commit());
  t = counters.begin();
  CHECK(counters.held(t, 1, kShort) == Value::int32(-1));
  CHECK(counters.held(t, 2, kLong) == Value::int64(101));
  CHECK(counters.held(t, 3, kMoney) == Value::decimal_units(-1));
}

TEST_CASE("add refuses sums and arguments that do not fit, and names the column", "[api]") {
  Counters counters;
  Transaction t = counters.begin();
  const auto refuses = [&](std::int64_t id, ColumnId column, const Value& amount, StatusCode code,
                           const std::string& words) {
    const Status s = t.add(counters.primary, {Value::int64(id)}, column, amount).status();
    CHECK(s.code() == code);
    CHECK_THAT(std::string(s.message()), Catch::Contains(words));
  };
  constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
  constexpr std::int64_t kMost64 = std::numeric_limits<std::int64_t>::max();
  refuses(1, kShort, Value::int32(kMost), StatusCode::kOverflow,
          "table counters, column short: 1 + 2147483647 does not fit int32");
  refuses(1, kLong, Value::int64(kMost64), StatusCode::kOverflow, "column long");
  refuses(1, kMoney, Value::decimal_units(kMost64), StatusCode::kOverflow, "column money");
  refuses(1, kMoney, Value::decimal("0.001"), StatusCode::kInvalidArgument,
          "expected decimal of scale 2, found decimal 0.001 to add");
  refuses(1, kShort, Value::real(1), StatusCode::kInvalidArgument, "expected int32");
  refuses(1, kShort, Value::null(), StatusCode::kInvalidArgument, "found NULL");
  refuses(1, kNote, Value::string("x"), StatusCode::kInvalidArgument, "found string");
  refuses(1, ColumnId(77), Value::int32(1), StatusCode::kInvalidArgument, "no column 77");
  refuses(10, kShort, Value::int32(1), StatusCode::kConstraintViolated, "is NULL");
  refuses(11, kShort, Value::int32(1), StatusCode::kNotFound, "");
  CHECK(must(t.add(counters.primary, {Value::int64(1)}, kShort, Value::int32(kMost - 1))) ==
        Value::int32(kMost));
  const Transaction reader = must(counters.database->begin(AccessMode::kReadOnly));
  CHECK(const_cast<Transaction&>(reader)
            .add(counters.primary, {Value::int64(1)}, kShort, Value::int32(1))
            .code() == StatusCode::kReadOnly);
}

TEST_CASE("two transactions that add to one row conflict, or both count with read committed",
          "[api]") {
  for (const Isolation isolation :
       {Isolation::kSnapshot, Isolation::kSerializable, Isolation::kReadCommitted}) {
    Counters counters;
    Transaction first = counters.begin(isolation);
    Transaction second = counters.begin(isolation);
    const auto add = [&](Transaction& t) {
      return t.add(counters.primary, {Value::int64(1)}, kLong, Value::int64(1)).code();
    };
    CHECK(add(first) == StatusCode::kOk);
    CHECK(add(second) == StatusCode::kConflict);
    must(first.commit());
    const bool anew = isolation == Isolation::kReadCommitted;
    CHECK(add(second) == (anew ? StatusCode::kOk : StatusCode::kConflict));
    if (anew) must(second.commit());
    CHECK(counters.held(counters.begin(), 1, kLong) == Value::int64(anew ? 102 : 101));
  }
}

TEST_CASE("compare_and_set changes a row that is as expected, and no other", "[api]") {
  Counters counters;
  Transaction t = counters.begin();
  const auto set = [&](std::int64_t id, std::initializer_list<ColumnValue> expected) {
    return t.compare_and_set(counters.primary, {Value::int64(id)}, expected,
                             {{kNote, Value::string("new")}, {kLong, Value::int64(1)}});
  };
  CHECK(must(set(1, {{kShort, Value::int32(1)}, {kNote, Value::string("old")}})));
  CHECK(counters.held(t, 1, kNote) == Value::string("new"));
  CHECK(counters.held(t, 1, kLong) == Value::int64(1));
  CHECK_FALSE(must(set(2, {{kShort, Value::int32(2)}, {kNote, Value::string("other")}})));
  CHECK_FALSE(must(set(2, {{kNote, Value::null()}})));
  CHECK(counters.held(t, 2, kNote) == Value::string("old"));
  CHECK(must(set(2, {{kLong, Value::int32(100)}})));  // is widened
  CHECK(must(set(10, {{kNote, Value::null()}, {kShort, Value::null()}})));
  CHECK(must(set(3, {})));
  CHECK(set(11, {}).code() == StatusCode::kNotFound);
  CHECK(set(4, {{ColumnId(9), Value::null()}}).code() == StatusCode::kInvalidArgument);
  CHECK_THAT(std::string(set(4, {{kShort, Value::string("4")}}).status().message()),
             Catch::Contains(
                 "table counters, column short: expected int32, found string '4' to compare with"));
}

TEST_CASE("calls that may leave values unused refuse wrong ones all the same", "[api]") {
  Counters counters;
  Transaction t = counters.begin();
  const std::vector<ColumnValue> wrong = {{kShort, Value::string("4")}};
  for (const bool is_there : {true, false}) {
    const std::int64_t id = is_there ? 1 : 50;
    const auto bad_row = [&] {
      const std::string code = "c" + std::to_string(id);
      return t.insert_if_absent(counters.primary, {Value::int64(id), std::string_view(code), true,
                                                   Value::null(), Value::null(), Value::null()});
    };
    CHECK(bad_row().code() == StatusCode::kConstraintViolated);
    CHECK(t.upsert(counters.primary, Counters::row(id, "z", 1, 1, "a"), wrong).code() ==
          StatusCode::kConstraintViolated);
  }
  const std::vector<ColumnValue> no_column = {{ColumnId(9), Value::null()}};
  CHECK(t.upsert(counters.primary, Counters::row(51, "z", 1, 1, "a"), no_column).code() ==
        StatusCode::kInvalidArgument);
  for (const std::string_view expected : {"old", "other"})
    CHECK(t.compare_and_set(counters.primary, std::vector<Value>{Value::int64(2)},
                            std::vector<ColumnValue>{{kNote, expected}}, wrong)
              .code() == StatusCode::kConstraintViolated);
  CHECK(t.get(counters.primary, {Value::int64(50)}).code() == StatusCode::kNotFound);
}

TEST_CASE("insert_if_absent and upsert look up one key", "[api]") {
  Counters counters;
  Transaction t = counters.begin();
  const auto fresh = must(t.insert_if_absent(counters.primary, Counters::row(20, "c", 1, 1, "a")));
  CHECK(fresh.inserted);
  const auto again = must(t.insert_if_absent(counters.primary, Counters::row(20, "c", 2, 2, "b")));
  CHECK_FALSE(again.inserted);
  CHECK(again.row == fresh.row);
  CHECK(counters.held(t, 20, kNote) == Value::string("a"));
  // Another key is taken: the call fails.
  const Status taken =
      t.insert_if_absent(counters.primary, {Value::int64(21), Value::string("c20"), Value::null(),
                                            Value::null(), Value::null(), Value::null()})
          .status();
  CHECK(taken.code() == StatusCode::kAlreadyExists);
  CHECK_THAT(std::string(taken.message()), Catch::Contains("table counters, key by_code"));

  CHECK_FALSE(must(t.upsert(counters.primary, Counters::row(20, "d", 3, 3, "c"))).inserted);
  CHECK(counters.held(t, 20, kNote) == Value::string("c"));
  CHECK(t.get(counters.by_code, {Value::string("d20")}).ok());
  CHECK(must(t.upsert(counters.primary, Counters::row(22, "d", 3, 3, "c"))).inserted);
  CHECK_FALSE(must(t.upsert(counters.by_code, Counters::row(22, "d", 7, 7, "no"),
                            std::vector<ColumnValue>{{kLong, Value::int64(8)}}))
                  .inserted);
  CHECK(counters.held(t, 22, kNote) == Value::string("c"));
  CHECK(counters.held(t, 22, kLong) == Value::int64(8));
  // A key with NULL equals no other.
  for (std::int64_t id = 30; id < 32; ++id)
    CHECK(must(t.upsert(counters.by_code, {Value::int64(id), Value::null(), Value::null(),
                                           Value::null(), Value::null(), Value::null()}))
              .inserted);
  CHECK(t.upsert(counters.by_short, Counters::row(1, "c", 1, 1, "")).code() ==
        StatusCode::kInvalidArgument);
  CHECK(t.upsert(KeyId{counters.table, 9}, Counters::row(1, "c", 1, 1, "")).code() ==
        StatusCode::kInvalidArgument);
  CHECK(t.insert_if_absent(counters.primary, {Value::int64(1)}).code() ==
        StatusCode::kInvalidArgument);
  must(t.commit());
  must(counters.database->check());
}

TEST_CASE("upsert of a row newer than the snapshot conflicts, or is repeated", "[api]") {
  for (const Isolation isolation : {Isolation::kSnapshot, Isolation::kReadCommitted}) {
    Counters counters;
    Transaction t = counters.begin(isolation);
    CHECK(counters.rows(t) == 10);
    Transaction other = counters.begin();
    must(other.insert(counters.table, Counters::row(40, "c", 1, 1, "theirs")));
    must(other.commit());
    const Result<Upserted> done = t.upsert(counters.primary, Counters::row(40, "c", 2, 2, "ours"));
    if (isolation == Isolation::kSnapshot) {
      CHECK(done.code() == StatusCode::kConflict);
    } else {
      CHECK_FALSE(must(done).inserted);
      must(t.commit());
      CHECK(counters.held(counters.begin(), 40, kNote) == Value::string("ours"));
    }
  }
}

TEST_CASE("remove_range removes all rows between two bounds, or none", "[api]") {
  Counters counters;
  const std::array<Value, 1> three = {Value::int32(3)};
  const std::array<Value, 1> seven = {Value::int32(7)};
  {
    Transaction other = counters.begin();
    must(other.add(counters.primary, {Value::int64(6)}, kLong, Value::int64(1)));
    Transaction t = counters.begin();
    must(t.add(counters.primary, {Value::int64(3)}, kLong, Value::int64(1)));
    const Status s = t.remove_range(counters.by_short, {three, true}, {seven, false}).status();
    CHECK(s.code() == StatusCode::kConflict);
    CHECK_THAT(std::string(s.message()), Catch::Contains("table counters, key by_short"));
    CHECK(counters.rows(t) == 10);
    CHECK(counters.held(t, 3, kLong) == Value::int64(101));
    // Rows that the failed call had removed are free again.
    must(other.add(counters.primary, {Value::int64(4)}, kLong, Value::int64(1)));
    must(other.commit());
    CHECK(must(t.remove_range(counters.by_short, {seven, true}, {})) == 3);
    must(t.commit());
  }
  Transaction t = counters.begin();
  CHECK(counters.rows(t) == 7);
  CHECK(must(t.remove_range(counters.by_short, {three, true}, {seven, false})) == 4);
  CHECK(must(t.remove_range(counters.by_short, {three, true}, {seven, false})) == 0);
  CHECK(t.remove_range(counters.primary, {}, {}).code() == StatusCode::kInvalidArgument);
  must(t.commit());
  CHECK(counters.rows(counters.begin()) == 3);
  must(counters.database->check());
}

TEST_CASE("commit validates the reads of a serializable read-modify-write call", "[api]") {
  Counters counters;
  Transaction t = counters.begin(Isolation::kSerializable);
  CHECK_FALSE(must(t.compare_and_set(counters.primary, {Value::int64(1)},
                                     {{kNote, Value::string("other")}}, {})));
  must(t.insert(counters.table, Counters::row(50, "c", 1, 1, "as it was not other")));
  Transaction other = counters.begin();
  must(other.update(counters.table, must(other.get(counters.primary, {Value::int64(1)})).id(),
                    {{kNote, Value::string("other")}}));
  must(other.commit());
  CHECK(t.commit().code() == StatusCode::kConflict);
}

}  // namespace flugs::test
