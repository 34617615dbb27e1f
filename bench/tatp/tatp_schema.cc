#include "bench/tatp/tatp_schema.h"

#include <string>
#include <utility>

namespace flugs::bench {

namespace {

constexpr const char* kSubscriber = "subscriber";
constexpr const char* kAccessInfo = "access_info";
constexpr const char* kSpecialFacility = "special_facility";
constexpr const char* kCallForwarding = "call_forwarding";

// Keys, locations and numberx are nearly or entirely unique, so they are stored directly; flugs has
// no 8- and 16-bit integers, the dictionary codes of those columns are a byte wide all the same.
TableSchema subscriber_schema() {
  TableSchema schema(kSubscriber);
  schema.column("s_id", Type::kInt32).not_null().direct();
  schema.column("sub_nbr", Type::kString).not_null().direct();
  for (int i = 1; i <= 10; ++i)
    schema.column("bit_" + std::to_string(i), Type::kInt32).expect_distinct(2);
  for (int i = 1; i <= 10; ++i)
    schema.column("hex_" + std::to_string(i), Type::kInt32).expect_distinct(16);
  for (int i = 1; i <= 10; ++i)
    schema.column("byte2_" + std::to_string(i), Type::kInt32).expect_distinct(256);
  // Up to 2^32 - 1, which an int32 does not hold.
  schema.column("msc_location", Type::kInt64).not_null().direct();
  schema.column("vlr_location", Type::kInt64).not_null().direct();
  schema.primary_key({"s_id"});
  schema.unique_key("sub_nbr", {"sub_nbr"});
  return schema;
}

TableSchema access_info_schema() {
  TableSchema schema(kAccessInfo);
  schema.column("s_id", Type::kInt32).direct();
  schema.column("ai_type", Type::kInt32).expect_distinct(kTypesMax);
  schema.column("data1", Type::kInt32).expect_distinct(256);
  schema.column("data2", Type::kInt32).expect_distinct(256);
  // Direct: GET_ACCESS_DATA reads them, and a dictionary entry would be a cache miss each.
  schema.column("data3", Type::kString).direct();
  schema.column("data4", Type::kString).direct();
  schema.primary_key({"s_id", "ai_type"});
  return schema;
}

// INSERT_CALL_FORWARDING reads all types of a subscriber, four at most.
TableSchema special_facility_schema() {
  TableSchema schema(kSpecialFacility);
  schema.column("s_id", Type::kInt32).direct();
  schema.column("sf_type", Type::kInt32).expect_distinct(kTypesMax);
  schema.column("is_active", Type::kInt32).not_null().expect_distinct(2);
  schema.column("error_cntrl", Type::kInt32).expect_distinct(256);
  schema.column("data_a", Type::kInt32).expect_distinct(256);
  schema.column("data_b", Type::kString);
  schema.primary_key({"s_id", "sf_type"}).hash_prefix(1);
  return schema;
}

// GET_NEW_DESTINATION reads all start times of a facility, three at most.
TableSchema call_forwarding_schema() {
  TableSchema schema(kCallForwarding);
  schema.column("s_id", Type::kInt32).direct();
  schema.column("sf_type", Type::kInt32).expect_distinct(kTypesMax);
  schema.column("start_time", Type::kInt32).expect_distinct(3);
  schema.column("end_time", Type::kInt32).expect_distinct(24);
  schema.column("numberx", Type::kString).direct();
  schema.primary_key({"s_id", "sf_type", "start_time"}).hash_prefix(2);
  return schema;
}

}  // namespace

Result<TatpTables> create_tatp_tables(Database& database) {
  for (const TableSchema& schema : {subscriber_schema(), access_info_schema(),
                                    special_facility_schema(), call_forwarding_schema()}) {
    const Result<TableId> table = database.create_table(schema);
    if (!table.ok()) return table.status();
  }
  return find_tatp_tables(database);
}

Result<TatpTables> find_tatp_tables(const Database& database) {
  TatpTables tables;
  for (const auto& [name, table] :
       {std::pair{kSubscriber, &tables.subscriber}, std::pair{kAccessInfo, &tables.access_info},
        std::pair{kSpecialFacility, &tables.special_facility},
        std::pair{kCallForwarding, &tables.call_forwarding}}) {
    Result<TableId> found = database.find_table(name);
    if (!found.ok()) return found.status();
    *table = *found;
  }
  struct Wanted {
    TableId table;
    const char* name;
    KeyId* key;
  };
  for (const Wanted& wanted :
       {Wanted{tables.subscriber, "primary", &tables.subscriber_by_id},
        Wanted{tables.subscriber, "sub_nbr", &tables.subscriber_by_number},
        Wanted{tables.access_info, "primary", &tables.access_info_key},
        Wanted{tables.special_facility, "primary", &tables.special_facility_key},
        Wanted{tables.call_forwarding, "primary", &tables.call_forwarding_key}}) {
    Result<KeyId> found = database.find_key(wanted.table, wanted.name);
    if (!found.ok()) return found.status();
    *wanted.key = *found;
  }
  return tables;
}

}  // namespace flugs::bench
