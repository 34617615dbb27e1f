// Protocols add_column and drop_column: chunks and groups that lack a column, or have one that is
// gone.

#include <string>

#include "proof/scripts.h"

namespace flugs::proof {

namespace {

TableSchema with(TableSchema schema, std::string name, Type type, bool direct) {
  schema.column(std::move(name), type);
  if (direct) schema.direct();
  return schema;
}

}  // namespace

void script_columns(CrashRig& rig) {
  TableSchema log = log_schema();
  rig.create_table(log);
  rig.commit({insert("log", log_entry(1, 1)), insert("log", log_entry(2, 2))});
  rig.watch();
  log = with(log, "number", Type::kInt32, false).with_default(Value::int32(7));
  rig.alter_table("log", log);
  rig.commit({update("log", 1, {set(2, Value::int32(8))}), insert("log", log_entry(3, 3))});
  // Its default is out of line, and the row of a transaction is of before it.
  rig.begin({insert("log", log_entry(4, 4)), update("log", 2, {set(1, Value::int64(20))})});
  log = with(log, "text", Type::kString, true).with_default(Value::string(std::string(80, 'd')));
  rig.alter_table("log", log);
  rig.crash(1);
  rig.commit({update("log", 2, {set(3, Value::string("short"))})});
  rig.merge("log");
  log = with(log, "words", Type::kString, false);
  rig.alter_table("log", log);
  rig.commit({update("log", 3, {set(4, Value::string(keep(std::string(50, 'w'))))})});
  rig.reopen();
  drop_column(log, 2);
  rig.alter_table("log", log);
  rig.commit({insert("log", log_entry(5, 5)), remove("log", 1)});
  drop_column(log, 4);
  rig.alter_table("log", log);
  rig.merge("log");
  rig.reopen();  // gives back what they took
  rig.commit({insert("log", log_entry(6, 6))});
  for (std::uint64_t flush = 0; flush < 6 && !rig.is_done(); ++flush) {
    TableSchema to = with(log, "again" + std::to_string(flush), Type::kString, false);
    to.with_default(Value::string("once more"));
    rig.kill_within(Step{.altered = Alteration{"log", to}}, flush);
    if (rig.core().table(*rig.core().find_table("log"))->schema().columns.size() ==
        to.columns.size())
      log = to;
    rig.commit({insert("log", log_entry(10 + static_cast<std::int32_t>(flush), 1))});
  }
}

}  // namespace flugs::proof
