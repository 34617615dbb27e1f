// Protocols create_database, create_table, alter_table, drop_table, slot_array and auto_increment,
// and the reuse of space that had an owner before.

#include "verify/crash/scripts/scripts.h"

namespace flugs::crash {

void script_creation(CrashRig& rig) {
  rig.create_table(log_schema());
  rig.commit({insert("log", log_entry(1, 1))});
}

void script_tables(CrashRig& rig) {
  rig.create_table(log_schema());
  rig.commit({insert("log", log_entry(1, 1))});
  rig.watch();
  rig.create_table(orders_schema());
  rig.commit({insert("orders", order(1, 1, "first")), remove("log", 1)});
  rig.drop_table("log");
  rig.create_table(log_schema());
  rig.commit({insert("log", log_entry(2, 2))});
  rig.drop_table("orders");
  rig.create_table(wide_schema());
  rig.commit({insert("wide", wide_row(1)), update("log", 2, {set(1, Value::int64(5))})});
  rig.reopen();
  rig.drop_table("wide");
  rig.drop_table("log");
}

// Several tables by one call, into a catalogue with and without others. The space of the former
// catalogue is used again.
void script_table_sets(CrashRig& rig) {
  rig.watch();
  rig.create_tables({log_schema(), orders_schema()});
  rig.commit({insert("log", log_entry(1, 1)), insert("orders", order(1, 1, "first"))});
  rig.create_tables({wide_schema(), log_schema("second"), log_schema("third")});
  rig.commit({insert("wide", wide_row(1)), insert("third", log_entry(1, 1))});
  rig.drop_table("second");
  rig.create_table(log_schema("fourth"));
  rig.reopen();
  rig.create_tables({log_schema("second"), log_schema("fifth")});
  rig.crash(1);
  for (std::uint64_t flush = 0; flush < 8 && !rig.is_done(); ++flush) {
    rig.kill_within(Step{.created = {log_schema("killed"), log_schema("with it")}}, flush);
    rig.commit({insert("log", log_entry(10 + static_cast<std::int32_t>(flush), 1))});
    if (!rig.state().contains("killed")) continue;
    rig.drop_table("killed");
    rig.drop_table("with it");
  }
}

// A process dies within a step, before one of its flushes after the other; the next processes build
// on what it left in the caches.
void script_killed_midway(CrashRig& rig) {
  rig.create_table(people_schema());
  rig.create_table(wide_schema());
  rig.commit({insert("people", person(1, "Ann", "Kiel", 1, "first")), insert("wide", wide_row(1))});
  rig.watch();
  const std::string long_text(150, 'x');
  for (std::int32_t flush = 0; flush < 12 && !rig.is_done(); ++flush) {
    const std::int32_t id = 100 + 20 * flush;
    const auto before = static_cast<std::uint64_t>(flush);
    rig.kill_within(Step{.created = {log_schema()}}, before);
    if (rig.state().contains("log")) {
      rig.commit({insert("log", log_entry(id, id))});
      rig.kill_within(Step{.dropped = "log"}, before % 3);
    }
    // The table's former space may be a chunk now.
    Writes writes;
    for (std::int32_t i = 0; i < 16; ++i) writes.push_back(insert("wide", wide_row(id + i)));
    rig.kill_within(Step{.writes = writes}, before * 3);
    const std::string name = "name " + std::to_string(flush);
    rig.kill_within(
        Step{.writes = {insert("people", person(id, keep(name), keep(name), 1, keep(long_text)))}},
        before);
    rig.commit({insert("people",
                       person(id + 1, keep(name + " again"), "Rome", 2, keep(long_text + name)))});
    if (rig.state().contains("log")) rig.drop_table("log");
  }
}

// A process dies within a small commit: the next one finds a commit record that was not flushed.
void script_killed_commit(CrashRig& rig) {
  rig.create_table(log_schema());
  rig.commit({insert("log", log_entry(1, 1))});
  rig.watch();
  for (std::int32_t flush = 1; flush < 8 && !rig.is_done(); ++flush) {
    rig.kill_within(Step{.writes = {insert("log", log_entry(10 + flush, flush))}},
                    static_cast<std::uint64_t>(flush));
    rig.commit({update("log", 1, {set(1, Value::int64(flush))})});
  }
}

// Schemas that replace each other: the new names are found, and the space of the old schema is
// free.
void script_alter(CrashRig& rig) {
  TableSchema people = people_schema();
  rig.create_table(people);
  rig.create_table(log_schema());
  rig.commit(
      {insert("people", person(1, "Ann", "Kiel", 1, "first")), insert("log", log_entry(1, 1))});
  rig.watch();
  people.keys[2].name = "by_town";
  rig.alter_table("people", people);
  rig.commit({insert("people", person(2, "Bob", "Rome", 2, "second"))});
  people.columns[2].name = people.keys[2].columns[0] = "town";
  rig.alter_table("people", people);
  people.name = "persons";
  rig.alter_table("people", people);
  rig.commit({update("persons", 1, {set(2, Value::string("Bonn"))}), remove("log", 1)});
  rig.create_table(people_schema());  // the name is free
  rig.reopen();
  rig.drop_table("people");
  TableSchema log = log_schema("people");
  rig.alter_table("log", log);
  rig.begin({insert("persons", person(3, "Cleo", "Oslo", 3, "lost"))});
  people.keys[1].name = "by_full_name";
  rig.alter_table("persons", people);  // while a transaction is open
  rig.crash(1);
  rig.commit({insert("persons", person(4, "Dora", "Lyon", 4, "fourth"))});
  for (std::uint64_t flush = 0; flush < 4 && !rig.is_done(); ++flush) {
    log.columns[1].name = "amount" + std::to_string(flush);
    rig.kill_within(Step{.altered = Alteration{"people", log}}, flush);
    rig.commit({insert("people", log_entry(10 + static_cast<std::int32_t>(flush), 1))});
  }
  rig.drop_table("persons");
}

// Keys added and dropped: an existing key has every row, and a dropped one leaves nothing behind.
void script_alter_keys(CrashRig& rig) {
  TableSchema people = people_schema();
  rig.create_table(people);
  const auto alter = [&](const TableSchema& to) { rig.alter_table("people", people = to); };
  for (std::int32_t id = 1; id < 20; ++id)
    rig.commit({insert("people", person(id, keep("n" + std::to_string(id)), "Kiel", id, "x"))});
  rig.watch();
  alter(with_key(people, "by_amount", {"amount"}, true));
  rig.commit({update("people", 1, {set(4, Value::int64(100))}), remove("people", 2)});
  alter(without_key(people, 2));
  rig.commit({insert("people", person(20, "n2", "Rome", 2, "again"))});
  rig.merge("people");
  rig.reopen();
  alter(with_key(people, "by_age", {"age", "id"}, false));  // beside a run that has it not
  rig.commit({update("people", 3, {set(3, Value::int32(90))})});
  rig.merge("people");  // a run with the key, which no opening has loaded yet
  rig.crash(1);
  rig.commit({remove("people", 4)});
  rig.merge("people");
  rig.reopen();
  alter(without_key(people, 3));
  rig.abort({update("people", 5, {set(4, Value::int64(7))})});
  rig.commit({update("people", 5, {set(4, Value::int64(6))})});  // as row 6 has it
  rig.kill();
  for (std::uint64_t flush = 0; flush < 4 && !rig.is_done(); ++flush) {
    const std::string name = "killed" + std::to_string(flush);
    people = rig.core().table(*rig.core().find_table("people"))->schema();
    rig.kill_within(Step{.altered = Alteration{"people", with_key(people, name, {"city"}, false)}},
                    flush);
    rig.commit({update("people", 7, {set(2, Value::string(keep(name)))})});
    people = rig.core().table(*rig.core().find_table("people"))->schema();
    if (!people.keys[1].dropped)
      rig.kill_within(Step{.altered = Alteration{"people", without_key(people, 1)}}, flush);
  }
}

// Blocks of numbers: slots take them in turn, for transactions that commit, abort, or are cut
// short.
void script_numbers(CrashRig& rig) {
  rig.create_table(tickets_schema());
  rig.watch();
  std::int32_t id = 0;
  const auto tickets = [&](int count) {
    Writes writes;
    for (int i = 0; i < count; ++i) writes.push_back(insert("tickets", ticket(++id)));
    return writes;
  };
  rig.commit(tickets(1));
  rig.abort(tickets(20));  // takes the second block with it
  rig.commit(tickets(1));
  const std::size_t open = rig.begin(tickets(2));
  rig.commit(tickets(3));
  rig.commit(open);
  rig.crash(1, 2);
  rig.commit(tickets(1));
  rig.kill();
  rig.commit(tickets(18));
  rig.begin(tickets(1));
  rig.crash(2, 2);
  rig.commit(tickets(1));
  rig.reopen();
  rig.commit(tickets(1));
}

// Dropping a table makes its space holes; other tables fill some of them, before and after opening.
void script_holes(CrashRig& rig) {
  const auto fill_wide = [&rig](std::int32_t chunks) {
    rig.create_table(wide_schema());
    for (std::int32_t i = 0; i < chunks; ++i) {
      Writes writes;
      for (std::int32_t id = 0; id < 16; ++id)
        writes.push_back(insert("wide", wide_row(100 * i + id)));
      rig.commit(writes);
    }
  };
  fill_wide(7);
  rig.watch();
  rig.drop_table("wide");
  rig.create_table(people_schema());
  rig.commit({insert("people", person(1, "Ann", "Kiel", 1, "note"))});
  fill_wide(3);
  rig.reopen();
  rig.drop_table("wide");
  rig.crash(1);
  fill_wide(2);
}

// All allocations go where a dropped table was, which is full of its bytes.
void script_used_space(CrashRig& rig) {
  for (int round = 0; round < 2; ++round) {
    rig.create_table(people_schema());
    rig.create_table(wide_schema());
    for (std::int32_t i = 0; i < 7; ++i) {
      Writes writes;
      for (std::int32_t id = 0; id < 16; ++id)
        writes.push_back(insert("wide", wide_row(100 * i + id)));
      rig.commit(writes);
      const std::string name(30 + static_cast<std::size_t>(i) * 100, static_cast<char>('a' + i));
      rig.commit({insert("people", person(i, keep(name), keep(name), i, keep(name)))});
    }
    rig.drop_table("wide");
    rig.drop_table("people");
  }
  rig.watch();
  rig.create_table(people_schema());
  const std::string_view text = "a text that is too long to stand in the row itself";
  rig.commit({insert("people", person(1, text, "Kiel", 1, text))});
  rig.commit({insert("people", person(2, "Bob", "Rome", 2, text))});
  rig.create_table(wide_schema());
  for (std::int32_t chunk = 0; chunk < 7 && !rig.is_done(); ++chunk) {
    Writes inserts;
    Writes removes;
    for (std::int32_t i = 0; i < 16; ++i) {
      inserts.push_back(insert("wide", wide_row(100 * chunk + i)));
      removes.push_back(remove("wide", 100 * chunk + i));
    }
    rig.commit(inserts);
    rig.commit(removes);
  }
}

void script_slot_array(CrashRig& rig) {
  rig.create_table(orders_schema());
  rig.commit({insert("orders", order(1, 1, "first"))});
  Writes many;
  for (std::int32_t id = 10; id < 20; ++id) many.push_back(insert("orders", order(id, 1, "many")));
  rig.commit(many);
  rig.watch();
  rig.commit({insert("orders", order(2, 1, "second")), remove("orders", 10)});
  rig.begin({remove("orders", 1), insert("orders", order(3, 1, "lost"))});
  rig.crash(1, 3);
  rig.commit({insert("orders", order(4, 1, "fourth")), remove("orders", 11)});
  rig.commit({remove("orders", 1)});
  rig.create_table(log_schema());  // in the space of the former array
  rig.commit({insert("log", log_entry(1, 1))});
  rig.reopen(4);
  rig.commit({insert("orders", order(5, 1, "fifth"))});
  rig.reopen(2);
  rig.commit({insert("orders", order(6, 1, "sixth"))});
}

}  // namespace flugs::crash
