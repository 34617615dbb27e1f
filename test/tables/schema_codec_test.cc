#include "tables/catalog/schema_codec.h"

#include <catch2/catch.hpp>
#include <functional>
#include <string>

#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

TableSchema good() {
  TableSchema schema("t");
  schema.column("a", Type::kInt64).column("b", Type::kString).column("c", Type::kDecimal).scale(2);
  schema.primary_key({"a"}).unique_key("u", {"b", "c"}).key("k", {"c"});
  return schema;
}

TableSchema many_columns() {
  TableSchema schema("wide");
  for (int type = 1; type <= 9; ++type)
    schema.column("c" + std::to_string(type), static_cast<Type>(type)).expect_distinct(1u << type);
  schema.columns[3].encoding = Encoding::kDirect;
  return schema;
}

}  // namespace

TEST_CASE("a schema survives encoding", "[engine]") {
  for (const TableSchema& schema : {good(), many_columns()}) {
    const TableSchema complete = must(engine::complete_schema(schema));
    const std::string bytes = engine::encode_schema(complete);
    const TableSchema back = must(engine::decode_schema(bytes));
    CHECK(engine::encode_schema(back) == bytes);
    CHECK(back.columns.size() == schema.columns.size());
    CHECK(back.has_primary_key == schema.has_primary_key);
  }
}

TEST_CASE("a schema is completed", "[engine]") {
  const TableSchema schema = must(engine::complete_schema(good()));
  CHECK(schema.columns[0].encoding == Encoding::kDirect);  // a unique key by itself
  CHECK_FALSE(schema.columns[0].nullable);
  CHECK(schema.columns[1].encoding == Encoding::kDictionary);
  CHECK(schema.keys[0].hashed_columns == 1);
  CHECK(schema.keys[1].hashed_columns == 2);
  CHECK(schema.keys[2].ordered);
}

TEST_CASE("every rule of a schema is enforced, and says which table, column or key", "[engine]") {
  struct Case {
    const char* what;
    std::function<void(TableSchema&)> damage;
    const char* message;
  };
  const Case cases[] = {
      {"no name", [](auto& s) { s.name.clear(); }, "table name"},
      {"a long name", [](auto& s) { s.name = std::string(64, 'n'); }, "64 bytes"},
      {"a zero byte", [](auto& s) { s.name = std::string("a\0b", 3); }, "zero byte"},
      {"no columns", [](auto& s) { s.columns.clear(), s.keys.clear(); }, "0 columns"},
      {"too many columns", [](auto& s) { s.columns.resize(1025); }, "1025 columns"},
      {"a column without a name", [](auto& s) { s.columns[1].name.clear(); }, "column name"},
      {"a column twice", [](auto& s) { s.columns[1].name = "a"; }, "'a' occurs twice"},
      {"no such type", [](auto& s) { s.columns[1].type = static_cast<Type>(10); }, "type 10"},
      {"type 0", [](auto& s) { s.columns[1].type = static_cast<Type>(0); }, "type 0"},
      {"no such encoding", [](auto& s) { s.columns[1].encoding = static_cast<Encoding>(3); },
       "encoding 3"},
      {"a scale of 19", [](auto& s) { s.columns[2].scale = 19; }, "scale 19"},
      {"a scale of a string", [](auto& s) { s.columns[1].scale = 1; }, "scale 1"},
      {"too many keys", [](auto& s) { s.keys.resize(17, s.keys[2]); }, "17 keys"},
      {"a key without columns", [](auto& s) { s.keys[2].columns.clear(); }, "0 columns"},
      {"a key of too many columns", [](auto& s) { s.keys[2].columns.resize(17, "a"); },
       "17 columns"},
      {"a key on nothing", [](auto& s) { s.keys[2].columns = {"x"}; }, "no column 'x'"},
      {"a key with a column twice", [](auto& s) { s.keys[2].columns = {"c", "c"}; },
       "'c' occurs twice"},
      {"a key without a name", [](auto& s) { s.keys[2].name.clear(); }, "key name"},
      {"a key twice", [](auto& s) { s.keys[2].name = "u"; }, "'u' occurs twice"},
      {"too many hashed columns", [](auto& s) { s.keys[1].hashed_columns = 3; }, "3 hashed"},
      {"a hashed key that is not unique", [](auto& s) { s.keys[2].hashed_columns = 1; },
       "only a unique key"},
      {"a primary key that is not unique", [](auto& s) { s.keys[0].unique = false; },
       "primary key"},
      {"a primary key that is not there", [](auto& s) { s.keys.clear(); }, "primary key"},
  };
  for (const Case& c : cases) {
    TableSchema schema = good();
    c.damage(schema);
    const auto result = engine::complete_schema(schema);
    INFO(c.what << ": " << result.status().to_string());
    CHECK(result.code() == StatusCode::kInvalidArgument);
    CHECK(std::string(result.status().message()).find(c.message) != std::string::npos);
  }
}

TEST_CASE("damaged bytes of a schema are reported", "[engine]") {
  const std::string bytes = engine::encode_schema(must(engine::complete_schema(good())));
  for (std::size_t size = 0; size < bytes.size(); ++size)
    CHECK(engine::decode_schema(bytes.substr(0, size)).code() == StatusCode::kCorrupt);
  CHECK(engine::decode_schema(bytes + "x").code() == StatusCode::kCorrupt);
  // Any changed byte gives another schema or kCorrupt, and nothing else.
  std::size_t corrupt = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    for (const int bit : {0, 3, 7}) {
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      const auto result = engine::decode_schema(damaged);
      if (!result.ok()) CHECK(result.code() == StatusCode::kCorrupt);
      corrupt += result.ok() ? 0 : 1;
    }
  CHECK(corrupt > bytes.size());
}

}  // namespace flugs::test
