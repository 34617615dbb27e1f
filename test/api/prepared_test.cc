// Look-ups and writes that are prepared once.
#include <array>
#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <vector>

#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

TableSchema ledger_schema() {
  TableSchema schema("ledger");
  schema.column("bank", Type::kInt32).column("no", Type::kInt64).column("owner", Type::kString);
  schema.column("sum", Type::kInt64).column("open", Type::kBool);
  return schema.primary_key({"bank", "no"})
      .unique_key("by_owner", {"owner"})
      .key("by_sum", {"sum"});
}

struct Ledger {
  TemporaryDatabase database;
  TableId table = must(database->create_table(ledger_schema()));
  KeyId primary{table, 0};
  KeyId by_owner{table, 1};
  KeyId by_sum{table, 2};

  Ledger() {
    Transaction t = must(database->begin());
    for (std::int64_t no = 0; no < 10; ++no) {
      const std::string owner = "owner " + std::to_string(no);
      must(t.insert(table, {1, no, owner, 100 * no, true}));
    }
    must(t.commit());
  }
};

void refused(const Status& status, StatusCode code, std::string_view message) {
  INFO(status.to_string());
  CHECK(status.code() == code);
  CHECK(status.message().find(message) != std::string_view::npos);
}

}  // namespace

TEST_CASE("a prepared key reads, updates and removes rows", "[api]") {
  Ledger ledger;
  const Prepared sum = must(ledger.database->prepare(ledger.primary, {ColumnId(3), ColumnId(2)}));
  CHECK(sum.key() == ledger.primary);
  REQUIRE(sum.columns().size() == 2);
  const Prepared whole = must(ledger.database->prepare(ledger.by_owner));
  for (const Isolation isolation :
       {Isolation::kSnapshot, Isolation::kSerializable, Isolation::kReadCommitted}) {
    Transaction t = must(ledger.database->begin(AccessMode::kReadWrite, isolation));
    std::array<Value, 2> out;
    must(sum.read(t, {1, 3}, out));
    CHECK(out[0] == Value(std::int64_t{300}));
    CHECK(out[1].as_string() == "owner 3");
    CHECK(must(whole.get(t, {"owner 4"})).get_unchecked<std::int64_t>(ColumnId(1)) == 4);
    must(sum.update(t, {1, 3}, {7, "new"}));
    must(sum.read(t, {1, 3}, out));
    CHECK(out[0] == Value(std::int64_t{7}));
    CHECK(must(whole.get(t, {"new"})).get_unchecked<std::int64_t>(ColumnId(3)) == 7);
    must(whole.remove(t, {"owner 5"}));
    CHECK(sum.get(t, {1, 5}).code() == StatusCode::kNotFound);
    t.abort();
    CHECK(sum.get(t, {1, 4}).code() == StatusCode::kInvalidArgument);
  }
}

TEST_CASE("prepared calls take part in what a serializable transaction has read", "[api]") {
  Ledger ledger;
  const Prepared sum = must(ledger.database->prepare(ledger.primary, {ColumnId(3)}));
  for (const std::int64_t no : {2, 77}) {  // there, and not there
    Transaction reader = must(ledger.database->begin(AccessMode::kReadWrite,  //
                                                     Isolation::kSerializable));
    CHECK(sum.get(reader, {1, no}).ok() == (no == 2));
    must(sum.update(reader, {1, 6}, {no}));
    Transaction writer = must(ledger.database->begin());
    if (no == 2)
      must(sum.update(writer, {1, 2}, {5}));
    else
      must(writer.insert(ledger.table, {1, no, "late", 1, true}));
    must(writer.commit());
    CHECK(reader.commit().code() == StatusCode::kConflict);
  }
}

TEST_CASE("prepare and prepared calls refuse what cannot be", "[api]") {
  Ledger ledger;
  refused(ledger.database->prepare(ledger.by_sum).status(), StatusCode::kInvalidArgument,
          "table ledger, key by_sum: not unique, use rows");
  refused(ledger.database->prepare(KeyId{ledger.table, 9}).status(), StatusCode::kInvalidArgument,
          "no key 9");
  refused(ledger.database->prepare(KeyId{TableId(99), 0}).status(), StatusCode::kNotFound,
          "no such table");
  refused(ledger.database->prepare(ledger.primary, {ColumnId(8)}).status(),
          StatusCode::kInvalidArgument, "8");
  refused(Database().prepare(ledger.primary).status(), StatusCode::kInvalidArgument, "not open");

  const Prepared sum = must(ledger.database->prepare(ledger.primary, {ColumnId(3)}));
  Transaction t = must(ledger.database->begin());
  refused(sum.get(t, {1}).status(), StatusCode::kInvalidArgument, "get needs 2 values, found 1");
  refused(sum.get(t, {1, "x"}).status(), StatusCode::kInvalidArgument, "key primary");
  std::array<Value, 3> three;
  refused(sum.read(t, {1, 1}, three), StatusCode::kInvalidArgument,
          "room for 3 values, 1 columns are prepared");
  refused(sum.update(t, {1, 1}, {1, 2}).status(), StatusCode::kInvalidArgument,
          "update got 2 values, 1 columns are prepared");
  refused(Prepared().get(t, {1, 1}).status(), StatusCode::kInvalidArgument, "Prepared is empty");
  refused(Prepared().remove(t, {1, 1}), StatusCode::kInvalidArgument, "Prepared is empty");
  Ledger other;
  Transaction of_other = must(other.database->begin());
  refused(sum.get(of_other, {1, 1}).status(), StatusCode::kInvalidArgument, "another database");
  refused(sum.update(of_other, {1, 1}, {1}).status(), StatusCode::kInvalidArgument,
          "another database");
}

TEST_CASE("a Prepared outlives renames and notices drops", "[api]") {
  Ledger ledger;
  const Prepared sum = must(ledger.database->prepare(ledger.primary, {ColumnId(3), ColumnId(4)}));
  const Prepared owner = must(ledger.database->prepare(ledger.by_owner));
  must(ledger.database->rename_table(ledger.table, "book"));
  must(ledger.database->rename_column(ledger.table, ColumnId(3), "total"));
  must(ledger.database->drop_column(ledger.table, ColumnId(4)));
  must(ledger.database->drop_key(ledger.by_owner));
  {
    Transaction t = must(ledger.database->begin());
    std::array<Value, 2> out;
    must(sum.read(t, {1, 3}, out));
    CHECK(out[0] == Value(std::int64_t{300}));
    CHECK(out[1].is_null());
    refused(sum.update(t, {1, 3}, {1, false}).status(), StatusCode::kInvalidArgument, "column");
    refused(owner.get(t, {"owner 1"}).status(), StatusCode::kInvalidArgument, "no key 1");
  }
  must(ledger.database->drop_table(ledger.table));
  Transaction t = must(ledger.database->begin());
  refused(sum.get(t, {1, 3}).status(), StatusCode::kNotFound, "no such table");
  t.abort();
  // The next opening, perhaps at the same address, is another database.
  ledger.database.reopen();
  Transaction later = must(ledger.database->begin());
  refused(sum.get(later, {1, 3}).status(), StatusCode::kInvalidArgument, "another database");
}

}  // namespace flugs::test
