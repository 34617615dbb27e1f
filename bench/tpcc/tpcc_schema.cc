#include "bench/tpcc/tpcc_schema.h"

#include <string>
#include <utility>

namespace flugs::bench {

namespace {

// Ids of warehouses and districts, numbers of lines and the like have few values: codes of a few
// bits. Ids that come with nearly every row, money that changes with every transaction, and texts
// of random letters are stored directly. Money has two decimal digits, a rate four.

TableSchema& few(TableSchema& schema, const char* name, std::uint32_t values) {
  return schema.column(name, Type::kInt32).not_null().expect_distinct(values);
}
TableSchema& many(TableSchema& schema, const char* name) {
  return schema.column(name, Type::kInt32).not_null().direct();
}
TableSchema& money(TableSchema& schema, const char* name) {
  return schema.column(name, Type::kDecimal).not_null().scale(2).direct();
}
TableSchema& rate(TableSchema& schema, const char* name) {
  return schema.column(name, Type::kDecimal).not_null().scale(4);
}
TableSchema& text(TableSchema& schema, const std::string& name) {
  return schema.column(name, Type::kString).not_null().direct();
}
TableSchema& few_texts(TableSchema& schema, const char* name, std::uint32_t values) {
  return schema.column(name, Type::kString).not_null().expect_distinct(values);
}

/// Street, city, state and zip code, as three of the tables have them.
void address(TableSchema& schema, const std::string& prefix) {
  for (const char* part : {"street_1", "street_2", "city"}) text(schema, prefix + part);
  few_texts(schema, (prefix + "state").c_str(), 62 * 62);
  text(schema, prefix + "zip");
}

TableSchema warehouse_schema(std::uint32_t) {
  TableSchema schema("warehouse");
  many(schema, "w_id");
  text(schema, "w_name");
  address(schema, "w_");
  rate(schema, "w_tax");
  money(schema, "w_ytd");
  return schema.primary_key({"w_id"});
}

TableSchema district_schema(std::uint32_t warehouses) {
  TableSchema schema("district");
  few(schema, "d_w_id", warehouses);
  few(schema, "d_id", kDistrictsPerWarehouse);
  text(schema, "d_name");
  address(schema, "d_");
  rate(schema, "d_tax");
  money(schema, "d_ytd");
  many(schema, "d_next_o_id");
  return schema.primary_key({"d_w_id", "d_id"});
}

TableSchema customer_schema(std::uint32_t warehouses) {
  TableSchema schema("customer");
  few(schema, "c_w_id", warehouses);
  few(schema, "c_d_id", kDistrictsPerWarehouse);
  many(schema, "c_id");
  text(schema, "c_first");
  few_texts(schema, "c_middle", 1);
  few_texts(schema, "c_last", 1000);
  address(schema, "c_");
  text(schema, "c_phone");
  schema.column("c_since", Type::kTimestamp).not_null();
  few_texts(schema, "c_credit", 2);
  schema.column("c_credit_lim", Type::kDecimal).not_null().scale(2);
  rate(schema, "c_discount");
  money(schema, "c_balance");
  money(schema, "c_ytd_payment");
  many(schema, "c_payment_cnt");
  many(schema, "c_delivery_cnt");
  text(schema, "c_data");
  schema.primary_key({"c_w_id", "c_d_id", "c_id"});
  return schema.key("by_name", {"c_w_id", "c_d_id", "c_last", "c_first"});
}

TableSchema history_schema(std::uint32_t warehouses) {
  TableSchema schema("history");
  many(schema, "h_c_id");
  few(schema, "h_c_d_id", kDistrictsPerWarehouse);
  few(schema, "h_c_w_id", warehouses);
  few(schema, "h_d_id", kDistrictsPerWarehouse);
  few(schema, "h_w_id", warehouses);
  schema.column("h_date", Type::kTimestamp).not_null().direct();
  money(schema, "h_amount");
  text(schema, "h_data");
  return schema;
}

TableSchema new_order_schema(std::uint32_t warehouses) {
  TableSchema schema("new_order");
  few(schema, "no_w_id", warehouses);
  few(schema, "no_d_id", kDistrictsPerWarehouse);
  many(schema, "no_o_id");
  return schema.primary_key({"no_w_id", "no_d_id", "no_o_id"}).ordered();
}

TableSchema orders_schema(std::uint32_t warehouses) {
  TableSchema schema("orders");
  few(schema, "o_w_id", warehouses);
  few(schema, "o_d_id", kDistrictsPerWarehouse);
  many(schema, "o_id");
  many(schema, "o_c_id");
  schema.column("o_entry_d", Type::kTimestamp).not_null().direct();
  schema.column("o_carrier_id", Type::kInt32).expect_distinct(10);
  few(schema, "o_ol_cnt", kOrderLinesMax);
  few(schema, "o_all_local", 2);
  schema.primary_key({"o_w_id", "o_d_id", "o_id"});
  return schema.key("by_customer", {"o_w_id", "o_d_id", "o_c_id", "o_id"});
}

TableSchema order_line_schema(std::uint32_t warehouses) {
  TableSchema schema("order_line");
  few(schema, "ol_w_id", warehouses);
  few(schema, "ol_d_id", kDistrictsPerWarehouse);
  many(schema, "ol_o_id");
  few(schema, "ol_number", kOrderLinesMax);
  many(schema, "ol_i_id");
  few(schema, "ol_supply_w_id", warehouses);
  // One value for all lines of an order, or of ten orders: a dictionary although it is a time.
  schema.column("ol_delivery_d", Type::kTimestamp);
  few(schema, "ol_quantity", 10);
  money(schema, "ol_amount");
  text(schema, "ol_dist_info");
  return schema.primary_key({"ol_w_id", "ol_d_id", "ol_o_id", "ol_number"}).hash_prefix(3);
}

TableSchema stock_schema(std::uint32_t warehouses) {
  TableSchema schema("stock");
  few(schema, "s_w_id", warehouses);
  many(schema, "s_i_id");
  few(schema, "s_quantity", 91);
  for (std::uint32_t i = 1; i <= kDistrictsPerWarehouse; ++i)
    text(schema, (i < 10 ? "s_dist_0" : "s_dist_") + std::to_string(i));
  schema.column("s_ytd", Type::kInt64).not_null().direct();
  many(schema, "s_order_cnt");
  many(schema, "s_remote_cnt");
  text(schema, "s_data");
  return schema.primary_key({"s_w_id", "s_i_id"});
}

TableSchema item_schema(std::uint32_t) {
  TableSchema schema("item");
  many(schema, "i_id");
  many(schema, "i_im_id");
  text(schema, "i_name");
  money(schema, "i_price");
  text(schema, "i_data");
  return schema.primary_key({"i_id"});
}

constexpr TableSchema (*kSchemas[])(std::uint32_t) = {
    warehouse_schema, district_schema,   customer_schema, history_schema, new_order_schema,
    orders_schema,    order_line_schema, stock_schema,    item_schema};

Status find_keys(const Database& database, TpccTables& tables) {
  struct Wanted {
    TableId table;
    const char* name;
    KeyId* key;
  };
  for (const Wanted& wanted : {Wanted{tables.warehouse, "primary", &tables.warehouse_key},
                               Wanted{tables.district, "primary", &tables.district_key},
                               Wanted{tables.customer, "primary", &tables.customer_key},
                               Wanted{tables.customer, "by_name", &tables.customer_by_name},
                               Wanted{tables.new_order, "primary", &tables.new_order_key},
                               Wanted{tables.orders, "primary", &tables.orders_key},
                               Wanted{tables.orders, "by_customer", &tables.orders_by_customer},
                               Wanted{tables.order_line, "primary", &tables.order_line_key},
                               Wanted{tables.stock, "primary", &tables.stock_key},
                               Wanted{tables.item, "primary", &tables.item_key}}) {
    const Result<KeyId> found = database.find_key(wanted.table, wanted.name);
    if (!found.ok()) return found.status();
    *wanted.key = *found;
  }
  return {};
}

}  // namespace

Result<TpccTables> create_tpcc_tables(Database& database, std::uint32_t warehouses) {
  for (const auto make : kSchemas) {
    const Result<TableId> table = database.create_table(make(warehouses));
    if (!table.ok()) return table.status();
  }
  return find_tpcc_tables(database);
}

Result<TpccTables> find_tpcc_tables(const Database& database) {
  TpccTables tables;
  for (const auto& [name, table] :
       {std::pair{"warehouse", &tables.warehouse}, std::pair{"district", &tables.district},
        std::pair{"customer", &tables.customer}, std::pair{"history", &tables.history},
        std::pair{"new_order", &tables.new_order}, std::pair{"orders", &tables.orders},
        std::pair{"order_line", &tables.order_line}, std::pair{"stock", &tables.stock},
        std::pair{"item", &tables.item}}) {
    const Result<TableId> found = database.find_table(name);
    if (!found.ok()) return found.status();
    *table = *found;
  }
  Status status = find_keys(database, tables);
  if (!status.ok()) return status;
  return tables;
}

}  // namespace flugs::bench
