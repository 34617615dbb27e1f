// Schemas that create_table must refuse, and schemas at the limits that it must accept.
#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <vector>

#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

TableSchema good() {
  TableSchema schema("good");
  schema.column("a", Type::kInt64).column("b", Type::kString).primary_key({"a"});
  return schema;
}

TableSchema with_columns(std::size_t count, Type type, bool direct) {
  TableSchema schema("wide");
  for (std::size_t i = 0; i < count; ++i) {
    schema.column("c" + std::to_string(i), type).not_null();
    if (direct) schema.direct();
  }
  return schema;
}

// Checks that the schema is refused for a reason that contains `word`, and nothing is left behind.
void check_refused(const TableSchema& schema, const std::string& word) {
  MemoryDatabase database;
  const Status status = database->create_table(schema).status();
  INFO("expected '" << word << "', found: " << status.to_string());
  CHECK(status.code() == StatusCode::kInvalidArgument);
  CHECK(status.message().find(word) != std::string_view::npos);
  CHECK(database->tables().empty());
  CHECK(database->create_table(good()).ok());
}

struct Wrong {
  std::string word;
  std::function<void(TableSchema&)> change;
};

}  // namespace

TEST_CASE("invalid names are refused", "[api]") {
  const std::string name = GENERATE(std::string(), std::string(64, 'x'), std::string("a\0b", 3));
  const std::string word = name.size() == 3 ? "zero byte" : std::to_string(name.size()) + " bytes";
  TableSchema table = good();
  table.name = name;
  check_refused(table, word);
  TableSchema column = good();
  column.columns[1].name = name;
  check_refused(column, word);
  TableSchema key = good();
  key.keys[0].name = name;
  check_refused(key, word);
}

TEST_CASE("a schema call before the column or key that it needs is refused by name", "[api]") {
  const std::vector<Wrong> all = {
      {"not_null()", [](TableSchema& s) { s.not_null(); }},
      {"direct()", [](TableSchema& s) { s.direct(); }},
      {"dictionary()", [](TableSchema& s) { s.dictionary(); }},
      {"scale()", [](TableSchema& s) { s.scale(2); }},
      {"with_default()", [](TableSchema& s) { s.with_default(Constant(Value::int64(1))); }},
      {"auto_increment()", [](TableSchema& s) { s.auto_increment(); }},
      {"expect_distinct()", [](TableSchema& s) { s.expect_distinct(3); }},
      {"ordered()", [](TableSchema& s) { s.ordered(); }},
      {"hash_prefix()", [](TableSchema& s) { s.hash_prefix(1).not_null(); }},
  };
  for (const Wrong& wrong : all) {
    TableSchema schema("early");
    wrong.change(schema);
    check_refused(schema.column("a", Type::kInt64).primary_key({"a"}), wrong.word);
  }
}

TEST_CASE("wrong columns and keys are refused, and the message says which", "[api]") {
  const std::vector<Wrong> all = {
      {"0 columns",
       [](TableSchema& s) {
         s.columns.clear(), s.keys.clear();
         s.has_primary_key = false;
       }},
      {"'a' occurs twice", [](TableSchema& s) { s.column("a", Type::kBool); }},
      {"unknown type 0", [](TableSchema& s) { s.columns[1].type = Type{0}; }},
      {"unknown type 10", [](TableSchema& s) { s.columns[1].type = Type{10}; }},
      {"unknown encoding 3", [](TableSchema& s) { s.columns[1].encoding = Encoding{3}; }},
      {"scale 2", [](TableSchema& s) { s.scale(2); }},
      {"scale 19", [](TableSchema& s) { s.column("d", Type::kDecimal).scale(19); }},
      {"no column 'x'", [](TableSchema& s) { s.key("k", {"x"}); }},
      {"key k: 0 columns", [](TableSchema& s) { s.key("k", {}); }},
      {"'b' occurs twice", [](TableSchema& s) { s.unique_key("k", {"b", "b"}); }},
      {"'primary' occurs twice", [](TableSchema& s) { s.primary_key({"b"}); }},
      {"'k' occurs twice", [](TableSchema& s) { s.key("k", {"b"}).unique_key("k", {"b"}); }},
      {"2 hashed columns, but the key has 1",
       [](TableSchema& s) { s.unique_key("k", {"b"}).hash_prefix(2); }},
      {"only a unique key", [](TableSchema& s) { s.key("k", {"b"}).hash_prefix(1); }},
      {"unique primary key", [](TableSchema& s) { s.keys[0].unique = false; }},
      {"unique primary key", [](TableSchema& s) { s.keys.clear(); }},
      {"17 keys",
       [](TableSchema& s) {
         for (int i = 0; i < 16; ++i) s.key("k" + std::to_string(i), {"b"});
       }},
  };
  for (const Wrong& wrong : all) {
    TableSchema schema = good();
    wrong.change(schema);
    check_refused(schema, wrong.word);
  }
}

TEST_CASE("too many columns in a key are refused", "[api]") {
  TableSchema schema = with_columns(17, Type::kInt32, false);
  std::vector<std::string> names;
  for (const ColumnSchema& column : schema.columns) names.push_back(column.name);
  check_refused(TableSchema(schema).unique_key("k", names), "17 columns");
  names.pop_back();
  MemoryDatabase database;
  CHECK(database->create_table(schema.unique_key("k", names)).ok());
}

TEST_CASE("a row may be as wide as documented, and no wider", "[api]") {
  check_refused(with_columns(1025, Type::kBool, false), "1025 columns");
  check_refused(with_columns(1021, Type::kInt64, false), "4096 bytes");
  check_refused(with_columns(511, Type::kInt64, true), "4096 bytes");
  check_refused(with_columns(256, Type::kString, true), "4096 bytes");
  // The row must also work at its full width.
  MemoryDatabase database(std::size_t{64} << 20);
  const auto [count, type, direct] = GENERATE(table<std::size_t, Type, bool>(
      {{1020, Type::kInt64, false}, {510, Type::kInt64, true}, {255, Type::kString, true}}));
  const TableId id = must(database->create_table(with_columns(count, type, direct)));
  std::vector<Value> values(
      count, type == Type::kString ? Value::string("fifteen letters") : Value::int64(-1));
  Transaction t = must(database->begin(AccessMode::kReadWrite));
  const RowId row = must(t.insert(id, values));
  std::vector<Value> found(count);
  must(t.get(id, row)).get_all(found);
  CHECK(found == values);
  must(t.commit());
}

TEST_CASE("the longest names and the most keys are accepted and survive", "[api]") {
  TemporaryDatabase database;
  TableSchema schema{std::string(63, 't')};
  schema.column(std::string(63, 'c'), Type::kInt64);
  for (int i = 0; i < 16; ++i) {
    std::string name(63, 'k');
    name[0] = static_cast<char>('a' + i);
    schema.unique_key(name, {std::string(63, 'c')});
  }
  must(database->create_table(schema));
  database.reopen();
  const TableId table = must(database->find_table(std::string(63, 't')));
  CHECK(must(database->find_key(table, "p" + std::string(62, 'k'))).index == 15);
  CHECK(must(database->find_column(table, std::string(63, 'c'))) == ColumnId(0));
}

TEST_CASE("a name can be used once, and again after the table was dropped", "[api]") {
  MemoryDatabase database;
  const TableId first = must(database->create_table(good()));
  CHECK(database->create_table(good()).code() == StatusCode::kAlreadyExists);
  must(database->drop_table(first));
  CHECK(database->drop_table(first).code() == StatusCode::kNotFound);
  const TableId second = must(database->create_table(good()));
  CHECK(second != first);
  CHECK(database->tables() == std::vector<TableId>{second});
}

TEST_CASE("there are 511 tables at most", "[api]") {
  MemoryDatabase database(std::size_t{64} << 20);
  TableSchema schema = good();
  for (int i = 0; i < 511; ++i) {
    schema.name = "t" + std::to_string(i);
    must(database->create_table(schema));
  }
  schema.name = "one too many";
  CHECK(database->create_table(schema).code() == StatusCode::kOutOfSpace);
  must(database->drop_table(must(database->find_table("t7"))));
  CHECK(database->create_table(schema).ok());
  database.reopen();
  CHECK(database->tables().size() == 511);
}

}  // namespace flugs::test
