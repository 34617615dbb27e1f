#include "verify/crash/scripts/tables.h"

#include <fmt/format.h>

#include "tables/data/table_data.h"

namespace flugs::crash {

TableSchema people_schema() {
  TableSchema schema("people");
  schema.column("id", Type::kInt32)
      .column("name", Type::kString)
      .column("city", Type::kString)
      .column("age", Type::kInt32)
      .column("amount", Type::kInt64)
      .direct()
      .column("note", Type::kString)
      .direct()
      .primary_key({"id"})
      .unique_key("by_name", {"name"})
      .key("by_city", {"city"});
  return schema;
}

std::vector<Value> person(std::int32_t id, std::string_view name, std::string_view city,
                          std::int64_t amount, std::string_view note) {
  const Value age = id % 4 == 3 ? Value::null() : Value::int32(20 + id % 7);
  return {Value::int32(id),     Value::string(name), Value::string(city), age,
          Value::int64(amount), Value::string(note)};
}

TableSchema with_key(TableSchema schema, std::string name, std::vector<std::string> columns,
                     bool is_unique) {
  KeySchema key;
  key.name = std::move(name);
  key.columns = std::move(columns);
  key.unique = is_unique;
  key.ordered = !is_unique;
  for (KeySchema& place : schema.keys)
    if (place.dropped) {
      place = std::move(key);
      return schema;
    }
  schema.keys.push_back(std::move(key));
  return schema;
}

TableSchema without_key(TableSchema schema, std::size_t place) {
  schema.keys[place] = {};
  schema.keys[place].dropped = true;
  return schema;
}

TableSchema orders_schema() {
  TableSchema schema("orders");
  schema.column("id", Type::kInt32)
      .column("customer", Type::kInt32)
      .column("number", Type::kInt32)
      .column("note", Type::kString)
      .primary_key({"customer", "number"});
  return schema;
}

std::vector<Value> order(std::int32_t id, std::int32_t customer, std::string_view note) {
  return {Value::int32(id), Value::int32(customer), Value::int32(id), Value::string(note)};
}

TableSchema log_schema(std::string name) {
  TableSchema schema(std::move(name));
  schema.column("id", Type::kInt32)
      .direct()
      .not_null()
      .column("amount", Type::kInt64)
      .direct()
      .not_null();
  return schema;
}

std::vector<Value> log_entry(std::int32_t id, std::int64_t amount) {
  return {Value::int32(id), Value::int64(amount)};
}

void fill_with_dead_rows(CrashRig& rig) {
  constexpr std::uint32_t kRowsSwept = 1U << 13;  // as in tables/opening/row_sweep.cc
  constexpr std::uint32_t kRowsLeft = 2 * engine::UnsweptRows::kBlockRows;
  const engine::TableData& table = *rig.core().table_data(*rig.core().find_table("log"));
  while (table.rows.rows_end() < kRowsSwept + kRowsLeft) {
    Writes inserts;
    Writes removes;
    for (std::int32_t id = 10000; id < 10064; ++id) {
      inserts.push_back(insert("log", log_entry(id, id)));
      removes.push_back(remove("log", id));
    }
    rig.commit(inserts);
    rig.commit(removes);
  }
}

void drop_column(TableSchema& schema, std::size_t column) {
  ColumnSchema& dropped = schema.columns[column];
  dropped.name.clear();
  dropped.default_value.reset();
  dropped.auto_increment = false;
  dropped.dropped = true;
}

TableSchema tickets_schema() {
  TableSchema schema("tickets");
  schema.column("id", Type::kInt32)
      .column("number", Type::kInt64)
      .auto_increment()
      .primary_key({"id"})
      .unique_key("by_number", {"number"});
  return schema;
}

std::vector<Value> ticket(std::int32_t id) { return {Value::int32(id), Value::null()}; }

TableSchema wide_schema() {
  TableSchema schema("wide");
  schema.column("id", Type::kInt32).primary_key({"id"});
  for (int i = 0; i < 14; ++i)
    schema.column(fmt::format("t{}", i), Type::kString).direct().not_null();
  return schema;
}

std::vector<Value> wide_row(std::int32_t id) {
  std::vector<Value> row = {Value::int32(id)};
  for (int i = 0; i < 14; ++i)
    row.push_back(Value::string(std::string_view(keep(fmt::format("w{}", id * 20 + i)))));
  return row;
}

ColumnValue set(std::uint16_t column, Value value) { return {ColumnId(column), value}; }

}  // namespace flugs::crash
