#include "bindings/c/statistics.h"

#include "bindings/c/json.h"
#include "bindings/fields/statistics_fields.h"

namespace flugs::c {

namespace {

template <typename Struct>
void add_fields(Json& json, const Struct& figures) {
  fields::each_field(figures, [&](const char* name, auto value) { json.field(name, value); });
}

void add_table(Json& json, const TableStatistics& table) {
  json.begin_object();
  add_fields(json, table);
  json.key("columns").begin_list();
  for (const ColumnStatistics& column : table.columns) {
    json.begin_object();
    add_fields(json, column);
    json.end_object();
  }
  json.end_list();
  json.end_object();
}

}  // namespace

std::string json_of(const MergeReport& report) {
  Json json;
  json.begin_object();
  add_fields(json, report);
  json.end_object();
  return json.take();
}

std::string json_of_statistics(const Database& database) {
  Json json;
  json.begin_object();
  add_fields(json, database.statistics());
  json.key("tables").begin_list();
  for (const TableId table : database.tables()) {
    const Result<TableStatistics> of_table = database.table_statistics(table);
    if (of_table.ok()) add_table(json, *of_table);  // else dropped meanwhile
  }
  json.end_list();
  json.end_object();
  return json.take();
}

}  // namespace flugs::c
