// Protocols add_column, drop_column and change_type: chunks and groups that lack a column, or have
// one that was dropped or has another type; and columns that are rewritten.

#include <string>

#include "verify/crash/scripts/scripts.h"

namespace flugs::crash {

namespace {

TableSchema with(TableSchema schema, std::string name, Type type, bool direct) {
  schema.column(std::move(name), type);
  if (direct) schema.direct();
  return schema;
}

// Changes the column to the type that it may have and does not have; or to direct values.
TableSchema with_other_type(TableSchema schema, std::size_t number) {
  ColumnSchema& column = schema.columns[number];
  if (column.type == Type::kInt32)
    column.type = Type::kInt64;
  else if (column.type == Type::kString || column.type == Type::kBytes)
    column.type = column.type == Type::kString ? Type::kBytes : Type::kString;
  column.encoding = Encoding::kDirect;
  return schema;
}

}  // namespace

void script_types(CrashRig& rig) {
  TableSchema log = log_schema();
  log = with(with(log, "number", Type::kInt32, false), "text", Type::kString, false);
  log.key("by_number", {"number", "text"});
  const auto entry = [](std::int32_t id, Value number, std::size_t length) {
    return insert("log", {Value::int32(id), Value::int64(id), number,
                          Value::string(keep(std::string(length, 'e') + std::to_string(id)))});
  };
  rig.create_table(log);
  rig.commit({entry(1, Value::int32(-5), 60), entry(2, Value::int32(5), 2)});
  rig.watch();
  rig.merge("log");
  rig.commit({entry(3, Value::int32(3), 50), entry(4, Value::null(), 1)});
  log = with_other_type(log, 2);
  rig.alter_table("log", log);
  // Whole rows of former editions are encoded again.
  const std::int64_t far = std::int64_t{1} << 40;
  rig.commit({update("log", 1, {set(1, Value::int64(7))}), entry(5, Value::int64(far), 70),
              update("log", 3, {set(2, Value::int64(-far))})});
  log = with_other_type(log, 3);
  rig.alter_table("log", log);
  rig.crash(1);
  const auto bytes = [](std::string text) { return Value::bytes(keep(std::move(text))); };
  rig.commit({update("log", 2, {set(3, bytes(std::string(80, 'b')))}), remove("log", 4)});
  rig.merge("log");
  rig.reopen();
  log = with(log, "late", Type::kInt32, false).with_default(Value::int32(9));
  rig.alter_table("log", log);
  rig.commit({update("log", 5, {set(1, Value::int64(1))})});
  log = with_other_type(log, 4);
  log.columns[4].default_value = Constant(Value::int64(9));
  rig.alter_table("log", log);
  rig.commit({update("log", 1, {set(4, Value::int64(far))})});
  rig.merge("log");
  rig.reopen();  // gives back what the former editions took
  rig.commit({update("log", 2, {set(2, Value::int64(2))})});
  for (std::uint64_t flush = 0; flush < 4 && !rig.is_done(); ++flush) {
    const TableSchema to = with_other_type(log, 3);
    rig.kill_within(Step{.altered = Alteration{"log", to}}, flush);
    const Type type = rig.core().table(*rig.core().find_table("log"))->schema().columns[3].type;
    if (type == to.columns[3].type) log = to;
    rig.commit({update("log", 1, {set(3, Value::from_bytes(type, keep(std::string(40, 'u'))))})});
  }
}

void script_renewals(CrashRig& rig) {
  TableSchema log = log_schema();
  log = with(with(log, "number", Type::kInt64, false), "word", Type::kString, false);
  log = with(log, "text", Type::kString, true);
  log.key("by_word", {"word"});
  const auto entry = [](std::int32_t id, std::int64_t number, std::size_t length) {
    const std::string_view text = keep(std::string(length, 'r') + std::to_string(number));
    return insert("log", {Value::int32(id), Value::int64(id), Value::int64(number),
                          Value::string(text), Value::string(text)});
  };
  const auto rewrite = [](std::int32_t id, std::int64_t number, std::size_t length) {
    const std::string_view text = keep(std::string(length, 'n') + std::to_string(number));
    return update(
        "log", id,
        {set(2, Value::int64(number)), set(3, Value::string(text)), set(4, Value::string(text))});
  };
  rig.create_table(log);
  rig.commit({entry(1, 10, 60), entry(2, 20, 3), entry(3, 30, 70)});
  rig.commit({rewrite(1, 11, 50), rewrite(3, 31, 40)});
  rig.watch();
  rig.merge("log", true);
  rig.commit({rewrite(1, 12, 45), entry(4, 40, 30)});  // in the space that came back
  rig.crash(1);
  rig.commit({rewrite(2, 21, 90), remove("log", 3)});
  rig.merge("log", true);
  rig.reopen();
  // Two editions between the first and the newest have left the list, and their numbers are free.
  for (std::int64_t round = 0; round < 3 && !rig.is_done(); ++round) {
    rig.commit({rewrite(1, 100 + round, 60), rewrite(4, 200 + round, 20)});
    rig.merge("log", true);
  }
  for (std::uint64_t flush = 0; flush < 8 && !rig.is_done(); ++flush) {
    rig.commit({rewrite(2, 300 + static_cast<std::int64_t>(flush), 55)});
    rig.kill_within(Step{.merged = "log", .renews = true}, 2 * flush);
    rig.commit({rewrite(4, 400 + static_cast<std::int64_t>(flush), 65)});
  }
}

void script_columns(CrashRig& rig) {
  TableSchema log = log_schema();
  rig.create_table(log);
  rig.commit({insert("log", log_entry(1, 1)), insert("log", log_entry(2, 2))});
  rig.watch();
  log = with(log, "number", Type::kInt32, false).with_default(Value::int32(7));
  rig.alter_table("log", log);
  rig.commit({update("log", 1, {set(2, Value::int32(8))}), insert("log", log_entry(3, 3))});
  // The default of the column is out of line, and the row of a transaction is from before the
  // column.
  rig.begin({insert("log", log_entry(4, 4)), update("log", 2, {set(1, Value::int64(20))})});
  log = with(log, "text", Type::kString, true)
            .with_default(Value::string(std::string_view(std::string(80, 'd'))));
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

}  // namespace flugs::crash
