// Protocols commit, dictionary, row_chunk, chunk_list, string_heap, create_table and drop_table, in
// several threads at a time.

#include <string>

#include "verify/crash/scripts/scripts.h"
#include "verify/crash/scripts/threads.h"

namespace flugs::crash {

namespace {

constexpr std::string_view kLongNote = "a note that is too long to stand in the row itself";

/// The threads run the protocol's scripts; in further rounds, scripts drawn from the seed.
void run(CrashRig& rig, const std::vector<ThreadScript>& scripts) {
  const std::uint64_t seed = rig.options().turns_seed;
  rig.watch();
  run_threads(rig, seed == 0 ? scripts : draw_scripts(rig, seed, kThreads));
}

void populate_both(CrashRig& rig) {
  rig.create_table(people_schema());
  rig.create_table(orders_schema());
  Writes writes;
  for (std::int32_t id = 1; id <= 4; ++id)
    writes.push_back(
        insert("people", person(id, keep("n" + std::to_string(id)), id % 2 == 0 ? "Kiel" : "Ulm",
                                std::int64_t{10} * id, "short")));
  writes.push_back(insert("orders", order(1, 1, "first")));
  rig.commit(writes);
}

RowWrite amount(std::int32_t id, std::int64_t to) {
  return update("people", id, {set(4, Value::int64(to))});
}

}  // namespace

void script_threads_commit(CrashRig& rig) {
  populate_both(rig);
  run(rig,
      {{commits({amount(1, 100), insert("orders", order(2, 1, "second"))}),
        commits({amount(2, 101), remove("orders", 1)})},
       {commits({amount(1, 200), amount(3, 201)}), aborts({amount(2, 202), remove("people", 4)})},
       {reads(),
        commits({remove("people", 3), insert("people", person(5, "n5", "Ulm", 300, "new"))}),
        commits({amount(1, 301)})}});
}

void script_threads_values(CrashRig& rig) {
  populate_both(rig);
  run(rig, {{commits({insert("people", person(10, "Ada", "Rome", 1, "short")),
                      insert("orders", order(10, 10, kLongNote))}),
             commits({update("people", 1, {set(2, Value::string("Bonn"))})})},
            {commits({insert("orders", order(11, 11, kLongNote)),
                      insert("people", person(11, "Bob", "Rome", 2, kLongNote))}),
             commits({insert("people", person(10, "Ada", "Bonn", 3, "again"))})},
            {aborts({insert("people", person(12, "Cyd", "Rome", 4, kLongNote)),
                     insert("orders", order(12, 12, kLongNote))}),
             commits({update("people", 2, {set(2, Value::string("Rome"))}),
                      insert("orders", order(13, 13, kLongNote))})}});
}

// Values of a transaction that aborted, which one thread makes durable while others use them.
void script_threads_kept(CrashRig& rig) {
  rig.create_table(orders_schema());
  rig.commit({insert("orders", order(1, 1, "first"))});
  run(rig, {{aborts({insert("orders", order(2, 1, "kept"))}), keeps()},
            {reads(), commits({insert("orders", order(3, 1, "kept"))}), keeps()},
            {reads(), commits({update("orders", 1, {set(3, Value::string("kept"))})})}});
}

void script_threads_slots(CrashRig& rig) {
  rig.create_table(wide_schema());
  Writes writes;
  for (std::int32_t id = 1; id <= 6; ++id) writes.push_back(insert("wide", wide_row(id)));
  rig.commit(writes);
  std::vector<ThreadScript> scripts;
  for (std::int32_t thread = 0; thread < static_cast<std::int32_t>(kThreads); ++thread) {
    const std::int32_t mine = 2 * thread + 1;
    const auto text = [&](std::int32_t column, const char* to) {
      return update("wide", mine, {set(static_cast<std::uint16_t>(column), Value::string(to))});
    };
    scripts.push_back({commits({text(1, "a")}), commits({text(2, "b"), remove("wide", mine + 1)}),
                       aborts({text(3, "c"), insert("wide", wide_row(mine + 20))}),
                       commits({insert("wide", wide_row(mine + 1))}), commits({text(4, "d")})});
  }
  run(rig, scripts);
}

// The first row chunk is full and the dictionaries are nearly full: the first thread that comes
// makes space.
void script_threads_growth(CrashRig& rig) {
  rig.create_table(wide_schema());
  rig.create_table(orders_schema());
  Writes values = {insert("orders", order(1, 1, "note 0"))};
  for (std::int32_t i = 1; i < 254; ++i)
    values.push_back(
        update("orders", 1, {set(3, Value::string(keep("note " + std::to_string(i))))}));
  rig.commit(values);
  std::vector<ThreadScript> scripts;
  for (std::int32_t thread = 0; thread < static_cast<std::int32_t>(kThreads); ++thread) {
    const std::int32_t first = 100 * (thread + 1);
    const std::string text(700, static_cast<char>('a' + thread));
    scripts.push_back(
        {commits({insert("orders", order(first, thread, keep("new " + std::to_string(thread)))),
                  insert("wide", wide_row(first))}),
         commits({insert("orders", order(first + 1, thread, keep(text))),
                  insert("orders", order(first + 2, thread, "new 0")),
                  insert("wide", wide_row(first + 1))})});
  }
  run(rig, scripts);
}

void script_threads_tables(CrashRig& rig) {
  rig.create_table(log_schema());
  rig.create_table(log_schema("old"));
  rig.commit({insert("log", log_entry(1, 1)), insert("old", log_entry(1, 1))});
  run(rig, {{commits({update("log", 1, {set(1, Value::int64(7))})}), creates(orders_schema()),
             commits({insert("orders", order(1, 1, "first"))})},
            {commits({insert("log", log_entry(2, 2))}),
             commits({insert("log", log_entry(5, 5)), insert("orders", order(2, 2, "second"))}),
             drops("old"), creates(wide_schema()), commits({insert("wide", wide_row(1))})},
            {commits({insert("old", log_entry(2, 2)), insert("log", log_entry(3, 3))}),
             commits({insert("orders", order(3, 3, "third")), insert("log", log_entry(4, 4))})}});
}

}  // namespace flugs::crash
