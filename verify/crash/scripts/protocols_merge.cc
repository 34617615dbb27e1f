// Protocols row_group, chunk_replace, version_block and index_run: chunks of rows that become row
// groups, deletions in them, groups that are merged again, and their key indexes.

#include <fmt/format.h>

#include "verify/crash/scripts/scripts.h"

namespace flugs::crash {

namespace {

constexpr std::uint16_t kAmount = 4;

void insert_people(CrashRig& rig, std::int32_t first, std::int32_t count) {
  Writes writes;
  for (std::int32_t id = first; id < first + count; ++id) {
    const std::string name =
        id % 2 == 0 ? fmt::format("even {}", id) : fmt::format("a name too long for a cell {}", id);
    writes.push_back(
        insert("people", person(id, keep(name), "city", std::int64_t{1000} * id, "note")));
  }
  rig.commit(writes);
}

// Fills a whole chunk, so that the last row of a version block is there, too.
void insert_wide(CrashRig& rig, std::int32_t first) {
  Writes writes;
  for (std::int32_t id = first; id < first + 16; ++id)
    writes.push_back(insert("wide", wide_row(id)));
  rig.commit(writes);
}

}  // namespace

void script_merge(CrashRig& rig) {
  rig.create_table(people_schema());
  rig.create_table(log_schema());
  insert_people(rig, 1, 12);
  rig.commit({insert("log", log_entry(1, 10)), insert("log", log_entry(2, 20))});
  rig.commit({remove("people", 3), remove("log", 2)});
  rig.watch();
  rig.merge("people");
  rig.merge("log");
  insert_people(rig, 21, 4);
  rig.abort({insert("people", person(30, "n", "c", 1, "x"))});
  rig.merge("people");
}

void script_merged_deletions(CrashRig& rig) {
  rig.create_table(people_schema());
  insert_people(rig, 1, 10);
  rig.watch();
  rig.merge("people");
  // The first to lock a row makes the group's MVCC entries; the other one commits before it.
  const std::size_t open = rig.begin({remove("people", 1)});
  rig.commit({remove("people", 2)});
  rig.commit(open);
  rig.commit({update("people", 4, {set(kAmount, Value::int64(-4))}), remove("people", 5)});
  rig.abort({remove("people", 6)});
  rig.commit({insert("people", person(2, "again", "city", 2, "note"))});
  rig.create_table(wide_schema());
  insert_wide(rig, 1);
  rig.merge("wide");
  rig.commit({remove("wide", 1)});
}

void script_merge_locked(CrashRig& rig) {
  rig.create_table(people_schema());
  rig.create_table(log_schema());
  insert_people(rig, 1, 8);
  for (std::int32_t id = 1; id <= 8; ++id) rig.commit({insert("log", log_entry(id, id))});
  rig.watch();
  // Deleted rows that are still in the indexes: their stamps go with them.
  rig.commit({remove("people", 3), remove("log", 3)});
  rig.commit({update("people", 4, {set(kAmount, Value::int64(44))}), remove("log", 4)});
  rig.merge("people");
  rig.merge("log");
  // A row is locked in a group: the merge must wait for another time.
  const std::size_t open = rig.begin({remove("people", 7), remove("log", 7)});
  rig.commit({remove("people", 1), remove("log", 1)});
  rig.merge("people");
  rig.commit(open);
  rig.merge("people");
  rig.merge("log");
  rig.commit({update("people", 4, {set(kAmount, Value::int64(45))}), remove("log", 8)});
  rig.create_table(wide_schema());
  insert_wide(rig, 1);
  rig.commit({remove("wide", 1)});
  rig.merge("wide");
}

// The deleted rows are still in the indexes, so the groups get their stamps.
void script_merge_beside(CrashRig& rig) {
  rig.create_table(wide_schema());
  for (std::int32_t chunk = 0; chunk < 4; ++chunk) insert_wide(rig, 100 * chunk + 100);
  rig.watch();
  rig.merge_beside("wide", {remove("wide", 200), remove("wide", 315), remove("wide", 400)});
  rig.commit({insert("wide", wide_row(200)), remove("wide", 201)});
}

// Each chunk has the layout of the one before it until that is replaced; the pointers of the last
// two are in different lines.
void script_merge_chunks(CrashRig& rig) {
  rig.create_table(wide_schema());
  for (std::int32_t chunk = 0; chunk < 7; ++chunk) insert_wide(rig, 100 * chunk + 100);
  rig.watch();
  rig.merge("wide");
  rig.commit({insert("wide", wide_row(1))});
}

void script_merge_again(CrashRig& rig) {
  rig.create_table(people_schema());
  rig.create_table(log_schema());
  insert_people(rig, 1, 8);
  rig.commit({insert("log", log_entry(1, 10)), insert("log", log_entry(2, 20))});
  rig.merge("people");
  rig.merge("log");
  for (std::int32_t id = 1; id <= 8; ++id) rig.commit({remove("people", id)});
  rig.commit({remove("log", 1), remove("log", 2)});
  rig.reopen();  // the dead leave the indexes
  rig.watch();
  rig.merge("people");
  rig.merge("log");
  insert_people(rig, 11, 8);
  rig.commit({insert("log", log_entry(5, 50))});
  rig.merge("people");
  rig.commit({update("people", 12, {set(kAmount, Value::int64(5))})});
  rig.merge("people");
}

// Each run is combined into the next. The space of earlier runs is used again while the pointer
// that led to them may still be in the caches.
void script_index_runs(CrashRig& rig) {
  rig.create_table(people_schema());
  insert_people(rig, 1, 8);
  rig.merge("people");
  rig.reopen();
  rig.watch();
  rig.commit({update("people", 2, {set(kAmount, Value::int64(22))}), remove("people", 3)});
  rig.abort({update("people", 4, {set(kAmount, Value::int64(44))})});
  insert_people(rig, 11, 4);
  rig.merge("people");
  rig.create_table(log_schema());
  rig.commit({insert("log", log_entry(1, 10))});
  insert_people(rig, 21, 4);
  rig.merge("people");
  for (const std::int32_t id : {1, 2, 4, 5, 6, 7, 8}) rig.commit({remove("people", id)});
  rig.reopen();
  rig.merge("people");  // the first group is emptied: no list has it any more
  insert_people(rig, 31, 6);
  rig.merge("people");
  rig.commit({insert("people", person(3, "again", "city", 3, "note"))});
}

}  // namespace flugs::crash
