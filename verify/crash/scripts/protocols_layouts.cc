// Rows whose columns are apart (decision 0065), and tables whose layout in the delta changes.

#include "verify/crash/scripts/scripts.h"

namespace flugs::crash {

namespace {

constexpr std::string_view kOutside = "a note that is too long to stand in the row itself";

TableSchema apart(TableSchema schema, bool is_in_columns = true) {
  schema.delta_layout = is_in_columns ? DeltaLayout::kColumns : DeltaLayout::kRows;
  return schema;
}

// The note and the numbers that change lie side by side, and so do the others.
TableSchema grouped(TableSchema schema) {
  std::vector<std::vector<std::string>> groups(2);
  for (std::size_t i = 0; i < schema.columns.size(); ++i)
    if (i != 0) groups[i >= 3 ? 0 : 1].push_back(schema.columns[i].name);
  return schema.in_column_groups(std::move(groups));
}

std::vector<Value> somebody(std::int32_t id, std::string_view note) {
  return person(id, keep("n" + std::to_string(id)), id % 2 == 0 ? "Kiel" : "Ulm",
                std::int64_t{10} * id, note);
}

void populate_people(CrashRig& rig, std::int32_t people) {
  Writes writes;
  for (std::int32_t id = 1; id <= people; ++id)
    writes.push_back(insert("people", somebody(id, "short")));
  writes.push_back(insert("orders", order(1, 1, "first")));
  rig.commit(writes);
}

// Cells of several rows are in each line: rows of one transaction, and of others beside them. In
// the end wider cells, which need another chunk.
void run_in_columns(CrashRig& rig, const TableSchema& people, const TableSchema& orders) {
  rig.create_table(people);
  rig.create_table(orders);
  populate_people(rig, 6);
  rig.watch();
  rig.commit({insert("people", somebody(10, kOutside)), insert("orders", order(10, 11, "third"))});
  rig.commit({update("people", 2, {set(4, Value::int64(77))}),
              update("people", 3, {set(2, Value::null())})});
  const std::size_t first = rig.begin({insert("people", somebody(12, "first"))});
  rig.commit({insert("people", somebody(13, kOutside)), remove("people", 4)});
  rig.commit(first);
  rig.abort({insert("people", somebody(14, "lost")), remove("people", 1)});
  rig.commit(insert_columns("people", {somebody(15, "by column"), somebody(16, kOutside)}));
  rig.commit({insert("people", somebody(14, "again"))});
  rig.commit({update("people", 6, {set(4, Value::int64(std::int64_t{1} << 40))})});
}

}  // namespace

void script_in_columns(CrashRig& rig) {
  run_in_columns(rig, apart(people_schema()), apart(orders_schema()));
}
void script_in_groups(CrashRig& rig) {
  run_in_columns(rig, grouped(people_schema()), grouped(orders_schema()));
}

// Rows of more than one block. They are flushed ahead, one of them again after a change in place.
void script_large_in_columns(CrashRig& rig) {
  rig.create_table(apart(orders_schema()));
  rig.commit({insert("orders", order(1, 1, "first"))});
  rig.watch();
  Writes writes;
  for (std::int32_t i = 0; i < 70; ++i) writes.push_back(insert("orders", order(1000 + i, 8, "x")));
  writes.push_back(update("orders", 1003, {set(3, Value::string("many"))}));
  rig.commit(writes);
  rig.commit({remove("orders", 1000), insert("orders", order(2, 2, "second"))});
  rig.commit({update("orders", 1069, {set(3, Value::string("last"))})});
}

// Chunks of both layouts in one table, changed while transactions are open, across restarts and
// merges.
void script_layouts(CrashRig& rig) {
  rig.create_table(people_schema());
  rig.create_table(orders_schema());
  populate_people(rig, 6);
  rig.watch();
  const std::size_t open = rig.begin({insert("people", somebody(9, "between"))});
  rig.alter_table("people", apart(people_schema()));
  rig.commit(
      {insert("people", somebody(10, "apart")), update("people", 1, {set(2, Value::null())})});
  rig.commit(open);
  rig.crash(0);
  rig.commit({insert("people", somebody(11, kOutside)), remove("people", 2)});
  rig.merge("people");
  rig.commit(
      {update("people", 10, {set(4, Value::int64(5))}), insert("people", somebody(12, "x"))});
  rig.alter_table("people", grouped(people_schema()));
  rig.commit({insert("people", somebody(14, kOutside)), remove("people", 3)});
  rig.alter_table("people", apart(people_schema(), false));
  rig.commit({insert("people", somebody(13, "together"))});
  rig.reopen();
  rig.commit({update("people", 13, {set(4, Value::int64(1))})});
}

}  // namespace flugs::crash
