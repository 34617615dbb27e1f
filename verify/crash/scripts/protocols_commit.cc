// Protocols commit and intent_block.

#include "verify/crash/scripts/scripts.h"

namespace flugs::crash {

namespace {

constexpr std::string_view kLong = "a note that is too long to stand in the row itself";

void populate(CrashRig& rig) {
  rig.create_table(people_schema());
  rig.create_table(orders_schema());
  Writes writes;
  for (std::int32_t id = 1; id <= 6; ++id)
    writes.push_back(
        insert("people", person(id, keep("n" + std::to_string(id)), id % 2 == 0 ? "Kiel" : "Ulm",
                                std::int64_t{10} * id, "short")));
  writes.push_back(insert("orders", order(1, 1, "first")));
  writes.push_back(insert("orders", order(2, 1, "second")));
  rig.commit(writes);
  rig.watch();
}

}  // namespace

void script_inserts(CrashRig& rig) {
  populate(rig);
  rig.commit({insert("people", person(10, "Ada", "Kiel", 5, "short"))});
  rig.commit({insert("people", person(11, "Bob", "Rome", 6, kLong)),
              insert("orders", order(10, 11, "third"))});
  rig.abort({insert("people", person(12, "Cyd", "Bonn", 7, "lost")), remove("people", 1)});
  rig.commit({insert("people", person(12, "Cyd", "Bonn", 8, "kept"))});
}

// Rows that are given column by column: new texts, long ones, NULLs, and rows beside those of other
// calls. In the end the first of a chunk that has wider cells.
void script_by_column(CrashRig& rig) {
  populate(rig);
  std::vector<std::vector<Value>> people;
  for (std::int32_t id = 20; id < 32; ++id) {
    people.push_back(person(id, keep("m" + std::to_string(id)), id % 3 == 0 ? "Rome" : "Ulm",
                            std::int64_t{1000} * id, id % 2 == 0 ? kLong : "short"));
    if (id % 5 == 0) people.back()[2] = Value::null();
  }
  rig.commit(insert_columns("people", people));
  Writes writes = insert_columns("orders", {order(20, 20, "third"), order(21, 21, kLong)});
  writes.push_back(update("people", 21, {set(4, Value::int64(7))}));
  rig.commit(writes);
  rig.abort(insert_columns(
      "people", {person(40, "Ada", "Bonn", 5, kLong), person(41, "Bob", "Bonn", 5, "lost")}));
  rig.commit(insert_columns("people", {person(41, "Bob", "Bonn", std::int64_t{1} << 40, kLong),
                                       person(42, "Ada", "Linz", 6, "kept")}));
}

void script_updates(CrashRig& rig) {
  populate(rig);
  rig.commit({update("people", 2, {set(4, Value::int64(77))})});
  rig.commit({update("people", 3, {set(1, Value::string("new name")), set(2, Value::null())}),
              remove("orders", 1)});
  rig.commit({remove("people", 4), insert("people", person(4, "n4", "Kiel", 1, "again"))});
  rig.abort({remove("people", 5), update("people", 6, {set(5, Value::string("no"))})});
  rig.commit({update("people", 6, {set(5, Value::string(kLong))}), remove("people", 5)});
}

// Writes that a transaction has undone are not among its intents. But their tags, index entries and
// values may have reached the medium, and be there when the transaction is committed.
void script_savepoints(CrashRig& rig) {
  populate(rig);
  rig.commit_partly({insert("people", person(10, "Ada", "Kiel", 5, "short"))},
                    {update("people", 10, {set(1, Value::string("Eve"))}), remove("people", 1),
                     insert("people", person(11, "Bob", "Rome", 6, kLong))},
                    {update("people", 2, {set(4, Value::int64(77))})});
  // Undone, and then done again, by the same transaction and by the next.
  rig.commit_partly({}, {remove("people", 3), remove("orders", 1)},
                    {remove("people", 3), insert("people", person(3, "n3", "Bonn", 3, "again"))});
  rig.commit({remove("orders", 1), insert("people", person(11, "Bob", "Rome", 7, kLong))});
  // A key changed and, in what is undone, changed back.
  rig.commit_partly({update("people", 4, {set(1, Value::string("other"))}), remove("people", 5)},
                    {update("people", 4, {set(1, Value::string("n4"))}),
                     insert("people", person(5, "n5", "Ulm", 1, "undone")), remove("people", 6)},
                    {update("people", 4, {set(4, Value::int64(-1))})});
  // More than the slot has room for, then fewer.
  Writes many;
  for (std::int32_t i = 0; i < 70; ++i) many.push_back(insert("orders", order(100 + i, 7, "many")));
  rig.commit_partly({insert("orders", order(3, 3, "before"))}, many,
                    {insert("orders", order(100, 7, "kept"))});
  rig.abort({remove("people", 6)});
  rig.commit({update("people", 6, {set(4, Value::int64(1))}), insert("orders", order(101, 1, ""))});
}

// More writes than the slot has space for; then more than its block has.
void script_large_transactions(CrashRig& rig) {
  populate(rig);
  for (std::int32_t round = 0; round < 4 && !rig.is_done(); ++round) {
    Writes writes;
    for (std::int32_t i = 0; i < (round < 2 ? 6 : 40); ++i)
      writes.push_back(insert("orders", order(100 * (round + 1) + i, 7, "many")));
    rig.commit(writes);
  }
  // More than 64 rows: the transaction flushes them ahead, one of them again, and its stamps
  // itself.
  Writes writes;
  for (std::int32_t i = 0; i < 70; ++i) writes.push_back(insert("orders", order(1000 + i, 8, "x")));
  writes.push_back(update("orders", 1003, {set(3, Value::string("many"))}));
  rig.commit(writes);
  for (std::int32_t i = 0; i < 3; ++i) rig.commit({remove("people", i + 1)});
}

// The intents of a transaction of more than 64 rows are forgotten by the slot's next commit, when
// the database is closed, and by recovery.
void script_forgotten_intents(CrashRig& rig) {
  populate(rig);
  std::int32_t first = 1000;
  const auto commit_large = [&] {
    Writes writes;
    for (std::int32_t i = 0; i < 66; ++i)
      writes.push_back(insert("orders", order(first++, 8, "x")));
    rig.commit(writes);
  };
  commit_large();
  rig.commit({remove("orders", 1000)});
  commit_large();
  rig.reopen();
  commit_large();
  rig.crash(0);
  rig.commit({remove("orders", 1001)});
  commit_large();
  rig.crash(1);
  rig.commit({remove("orders", 1002)});
}

// While one transaction is about to commit with a larger block, another takes the former block and
// commits first.
void script_interleaved_intents(CrashRig& rig) {
  populate(rig);
  const auto many = [](std::int32_t first, std::int32_t count) {
    Writes writes;
    for (std::int32_t i = 0; i < count; ++i)
      writes.push_back(insert("orders", order(first + i, 7, "many")));
    return writes;
  };
  for (std::int32_t round = 0; round < 2; ++round) rig.commit(many(100 * (round + 1), 6));
  std::int32_t first = 1000;
  rig.before_fence = [&](pmem::Label label) {
    if (std::string_view(label) == "commit/1") rig.commit(many(first += 100, 6));
  };
  for (std::int32_t round = 2; round < 4 && !rig.is_done(); ++round)
    rig.commit(many(100 * (round + 1), 60));
  rig.before_fence = nullptr;
}

// Uses the same slot many times: its halves alternate, also across aborts, and when a half is used
// again, only the stamps show the former transaction. Each row has lines of its own.
void script_slot_turns(CrashRig& rig) {
  rig.create_table(wide_schema());
  rig.commit({insert("wide", wide_row(1)), insert("wide", wide_row(2))});
  rig.watch();
  rig.commit({insert("wide", wide_row(3))});
  rig.commit({insert("wide", wide_row(4)), remove("wide", 1)});
  rig.commit({insert("wide", wide_row(5))});
  rig.abort({insert("wide", wide_row(6)), remove("wide", 2)});
  rig.commit({remove("wide", 2)});
  rig.commit({insert("wide", wide_row(7))});
  rig.abort({insert("wide", wide_row(8))});
  rig.abort({insert("wide", wide_row(8))});
  rig.commit({insert("wide", wide_row(8))});
  rig.commit({insert("wide", wide_row(9))});
}

// What a crash leaves in slots and rows, and the next process's transactions over it.
void script_crashed_slots(CrashRig& rig) {
  rig.create_table(wide_schema());
  for (std::int32_t id = 1; id <= 4; ++id) rig.commit({insert("wide", wide_row(id))});
  rig.watch();
  for (std::uint64_t choice = 0; choice < 4 && !rig.is_done(); ++choice) {
    const auto id = static_cast<std::int32_t>(10 * choice + 10);
    rig.commit(
        {insert("wide", wide_row(id)), remove("wide", static_cast<std::int32_t>(choice) + 1)});
    rig.begin({insert("wide", wide_row(id + 1)), remove("wide", id)});
    rig.crash(choice);
    // The former rows' stamps were made by recovery; both halves of the slot are used over them.
    for (std::int32_t i = 1; i <= 3; ++i) rig.commit({insert("wide", wide_row(id + i))});
  }
}

}  // namespace flugs::crash
