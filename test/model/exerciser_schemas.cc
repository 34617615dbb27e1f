#include "test/model/exerciser.h"

namespace flugs::test {

TableSchema wide_schema(const std::string& name) {
  TableSchema schema(name);
  schema.column("id", Type::kInt64).column("a_bool", Type::kBool).column("a_int32", Type::kInt32);
  schema.column("a_int64", Type::kInt64).column("a_double", Type::kDouble);
  schema.column("a_decimal", Type::kDecimal).scale(2).column("a_date", Type::kDate);
  schema.column("a_timestamp", Type::kTimestamp).column("a_string", Type::kString);
  schema.column("a_bytes", Type::kBytes);
  schema.column("d_bool", Type::kBool).direct().column("d_int32", Type::kInt32).direct();
  schema.column("d_int64", Type::kInt64).direct().column("d_double", Type::kDouble).direct();
  schema.column("d_decimal", Type::kDecimal).scale(18).direct();
  schema.column("d_date", Type::kDate).direct().not_null();
  schema.column("d_timestamp", Type::kTimestamp).direct();
  schema.column("d_string", Type::kString).direct().column("d_bytes", Type::kBytes).direct();
  schema.primary_key({"id"});
  schema.unique_key("by_number_and_text", {"a_int32", "a_string"});
  schema.key("by_date", {"a_date"});
  schema.key("by_three", {"a_double", "a_bool", "d_string"});
  schema.unique_key("by_direct", {"d_int64"}).ordered();
  return schema;
}

TableSchema pair_schema(const std::string& name) {
  TableSchema schema(name);
  schema.column("a", Type::kInt32).column("b", Type::kString).column("c", Type::kInt64);
  schema.column("d", Type::kBytes).direct().column("e", Type::kTimestamp).expect_distinct(100);
  schema.primary_key({"a", "b"}).ordered().hash_prefix(1);
  schema.key("by_c", {"c"});
  schema.unique_key("by_d", {"d"});
  // True of all that is written: the model knows no checks, but the way is another one.
  schema.check("every", Condition::any_of({Condition::is_null("c"),
                                           Condition::compare("c", Condition::Kind::kGreaterEqual,
                                                              Value::int64(INT64_MIN)),
                                           Condition::is_null("a")}));
  return schema;
}

TableSchema triple_schema(const std::string& name) {
  TableSchema schema(name);
  schema.column("x", Type::kDate).column("y", Type::kDecimal).scale(4).column("z", Type::kBytes);
  schema.column("v", Type::kDouble).column("w", Type::kTimestamp).column("t", Type::kString);
  schema.primary_key({"x", "y", "z"}).hash_prefix(2);
  schema.unique_key("by_v_and_w", {"v", "w"}).ordered();
  return schema;
}

TableSchema keyless_schema(const std::string& name) {
  TableSchema schema(name);
  schema.column("number", Type::kInt32).column("text", Type::kString).column("flag", Type::kBool);
  return schema;
}

}  // namespace flugs::test
