// Protocol add_constraint: checks, NOT NULL and foreign keys that are added to tables with rows,
// and dropped. Each crash state has the schema from before a call or the one from after it. All
// rows, also those of probes, fulfil the constraints.

#include <string>

#include "verify/crash/scripts/scripts.h"

namespace flugs::crash {

namespace {

constexpr std::uint16_t kAgeColumn = 3;
constexpr std::uint16_t kAmountColumn = 4;

/// A person whose age, which will refer to another person, is unknown.
std::vector<Value> ageless(std::int32_t id) {
  std::vector<Value> row =
      person(id, keep("n" + std::to_string(id)), "Kiel", id, keep(std::string(50, 'x')));
  row[kAgeColumn] = Value::null();
  return row;
}

TableSchema with_check(TableSchema schema, std::string name, const std::string& column) {
  constexpr std::int64_t kLeast = -(std::int64_t{1} << 40);
  schema.check(std::move(name), Condition::compare(column, Condition::Kind::kGreaterEqual,
                                                   Constant(Value::int64(kLeast))));
  return schema;
}

TableSchema with_reference(TableSchema schema, std::string name, const std::string& column) {
  schema.foreign_key(std::move(name), {column}, schema.name, ReferenceAction::kRestrict,
                     ReferenceAction::kCascade);
  return schema;
}

TableSchema with_nullable(TableSchema schema, std::size_t column, bool nullable) {
  schema.columns[column].nullable = nullable;
  return schema;
}

const TableSchema& schema_now(CrashRig& rig, const std::string& name) {
  return rig.core().table(*rig.core().find_table(name))->schema();
}

}  // namespace

void script_constraints(CrashRig& rig) {
  TableSchema people = people_schema();
  TableSchema log = log_schema();
  rig.create_table(people);
  rig.create_table(log);
  rig.commit({insert("people", ageless(1)), insert("people", ageless(2)),
              insert("log", log_entry(1, 1)), insert("log", log_entry(2, 2))});
  rig.watch();
  const auto alter = [&](TableSchema to) { rig.alter_table("people", people = std::move(to)); };
  alter(with_check(people, "sane", "amount"));
  rig.commit({insert("people", ageless(3))});
  alter(with_nullable(people, kAmountColumn, false));
  rig.commit({update("people", 1, {set(kAmountColumn, Value::int64(7))})});
  rig.merge("people");
  // The table has no key for it, and gets one.
  alter(with_reference(with_key(people, "boss", {"age"}, false), "boss", "age"));
  rig.commit({insert("people", ageless(4)), remove("people", 2)});
  rig.crash(1);
  alter(with_reference(people, "itself", "id"));
  alter(with_nullable(people, kAmountColumn, true));  // as its cells may be
  rig.commit({update("people", 3, {set(kAmountColumn, Value::null())})});
  rig.reopen();
  // The cells of the other table's column cannot be NULL: those of its next edition can.
  log = with_nullable(log, 1, true);
  rig.alter_table("log", log);
  rig.commit({update("log", 1, {set(1, Value::null())}), insert("log", log_entry(3, 3))});
  rig.merge("log");
  rig.reopen();
  TableSchema left = people;
  left.foreign_keys.erase(left.foreign_keys.begin());  // its key stays
  left.columns[kAmountColumn].default_value = Constant(Value::int64(5));
  people.foreign_keys = left.foreign_keys;
  rig.alter_table("people", people);
  alter(left);
  for (std::uint64_t flush = 0; flush < 3 && !rig.is_done(); ++flush) {
    const std::string name = "killed" + std::to_string(flush);
    people = schema_now(rig, "people");
    rig.kill_within(Step{.altered = Alteration{"people", with_check(people, name, "amount")}},
                    flush);
    rig.commit({insert("people", ageless(10 + static_cast<std::int32_t>(flush)))});
    people = schema_now(rig, "people");
    rig.kill_within(Step{.altered = Alteration{"people", with_reference(people, name, "id")}},
                    flush);
    rig.commit({update("log", 2, {set(1, Value::int64(9))})});
  }
}

}  // namespace flugs::crash
