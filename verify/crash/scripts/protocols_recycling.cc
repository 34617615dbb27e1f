// Protocols recycle, reuse_text, sweep, resolve and generation: what transactions leave behind, and
// its reuse.

#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "verify/crash/scripts/scripts.h"

namespace flugs::crash {

namespace {

TableSchema counters_schema() {
  TableSchema schema("counters");
  schema.column("id", Type::kInt32)
      .column("count", Type::kInt64)
      .direct()
      .not_null()
      .primary_key({"id"});
  return schema;
}

std::vector<Value> counter(std::int32_t id, std::int64_t count) {
  return {Value::int32(id), Value::int64(count)};
}

TableSchema notes_schema() {
  TableSchema schema("notes");
  schema.column("id", Type::kInt32).column("text", Type::kString).direct().primary_key({"id"});
  return schema;
}

/// Long enough for the heap; each number's text differs from the first byte on.
std::string_view note(std::int64_t number) {
  std::string text = std::to_string(number) + "/";
  while (text.size() < 120) text += static_cast<char>('a' + (text.size() + text[0]) % 26);
  return keep(std::move(text));
}

Writes write_note(std::int32_t id, std::string_view text) {
  return {update("notes", id, {set(1, Value::string(text))})};
}

Writes count(std::int32_t id, std::int64_t to) {
  return {update("counters", id, {set(1, Value::int64(to))})};
}

}  // namespace

// Updates until the rows of dead versions are reused, however long the engine takes for it.
void script_recycling(CrashRig& rig) {
  rig.create_table(counters_schema());
  rig.commit({insert("counters", counter(1, 0)), insert("counters", counter(2, 0))});
  const engine::Table& table = *rig.core().table(*rig.core().find_table("counters"));
  constexpr std::int64_t kUpdatesMax = 20000;
  std::uint32_t end = 0;
  std::int64_t since = 0;
  std::int64_t i = 0;
  for (; i < kUpdatesMax && since < 200; ++i) {
    rig.commit(count(static_cast<std::int32_t>(i % 2) + 1, i));
    since = table.rows().rows_end() == end ? since + 1 : 0;
    end = table.rows().rows_end();
  }
  FLUGS_CHECK(i < kUpdatesMax);
  rig.watch();
  for (std::int64_t step = 0; step < 8 && !rig.is_done(); ++step) {
    rig.commit(count(1, i + step));
    rig.commit({remove("counters", 2), insert("counters", counter(2, i + step)),
                insert("counters", counter(static_cast<std::int32_t>(10 + step), 1))});
  }
}

// Updates until texts use the places of earlier ones, however long the engine takes for it.
void script_reusing_texts(CrashRig& rig) {
  rig.create_table(notes_schema());
  for (std::int32_t id = 1; id <= 4; ++id) {
    rig.commit({insert("notes", {Value::int32(id), Value::string(note(id))})});
  }
  columns::Column& texts = *rig.core().table(*rig.core().find_table("notes"))->columns()[1];
  constexpr std::int64_t kUpdatesMax = 20000;
  std::int64_t i = 10;
  for (; i < kUpdatesMax && texts.heap().bytes_reusable() == 0; ++i)
    rig.commit(write_note(static_cast<std::int32_t>(i % 4) + 1, note(i)));
  FLUGS_CHECK(i < kUpdatesMax);
  rig.watch();
  for (std::int32_t step = 0; step < 6 && !rig.is_done(); ++step) {
    rig.commit(write_note(1, note(i++)));
    const std::size_t open = rig.begin(write_note(2, note(i++)));
    rig.commit({remove("notes", 3), insert("notes", {Value::int32(3), Value::string(note(i++))})});
    if (step % 2 == 0) {
      rig.abort(open);
    } else {
      rig.commit(open);
    }
    rig.commit(write_note(4, note(i++)));
  }
}

// Rows that recovery found dead or never committed get new contents.
void script_sweeping(CrashRig& rig) {
  rig.create_table(counters_schema());
  rig.create_table(wide_schema());
  for (std::int32_t id = 1; id <= 4; ++id)
    rig.commit({insert("counters", counter(id, id)), insert("wide", wide_row(id))});
  rig.watch();
  for (std::uint64_t choice = 1; choice < 4 && !rig.is_done(); ++choice) {
    const auto id = static_cast<std::int32_t>(choice);
    rig.commit({remove("counters", id), remove("wide", id)});
    rig.commit(count(4, std::int64_t{100} * id));
    rig.begin({insert("counters", counter(50, 1)), remove("wide", 4)});
    rig.crash(choice);
    rig.commit({insert("counters", counter(10 + id, 7)), insert("wide", wide_row(10 + id))});
    rig.commit({insert("counters", counter(20 + id, 8)), insert("wide", wide_row(20 + id))});
  }
}

// Rows that opening left unswept get new contents once they have been swept.
void script_sweeping_later(CrashRig& rig) {
  rig.create_table(log_schema());
  for (std::int32_t id = 1; id <= 3; ++id) rig.commit({insert("log", log_entry(id, id))});
  fill_with_dead_rows(rig);
  rig.reopen();
  FLUGS_CHECK(rig.is_done() || rig.core().statistics().rows_unswept != 0);
  rig.watch();
  for (std::uint64_t choice = 0; choice < 3 && !rig.is_done(); ++choice) {
    const auto id = static_cast<std::int32_t>(choice);
    // Before rows that opening itself freed are taken.
    if (Status s = rig.core().finish_opening(); !s.ok()) rig.fail(std::move(s));
    rig.commit({insert("log", log_entry(10 + id, 7)), remove("log", 3)});
    rig.begin({insert("log", log_entry(50, 1)), remove("log", 1)});
    rig.commit({insert("log", log_entry(20 + id, 8)), insert("log", log_entry(3, 3))});
    rig.crash(choice);
  }
}

// Tags of a transaction that a crash ended stay in rows that are not swept: the earlier rows of a
// large table without keys. The next process's transactions must not take them for their own.
void script_generations(CrashRig& rig) {
  rig.create_table(log_schema());
  rig.commit({insert("log", log_entry(1, 1)), insert("log", log_entry(2, 2)),
              insert("log", log_entry(3, 3))});
  fill_with_dead_rows(rig);
  rig.reopen();  // the sweep of these is not tested here
  FLUGS_CHECK(rig.is_done() || rig.core().statistics().rows_unswept != 0);
  rig.watch();
  for (std::uint64_t choice = 0; choice < 3 && !rig.is_done(); ++choice) {
    rig.begin({remove("log", 1), update("log", 2, {set(1, Value::int64(7))})});
    rig.commit({update("log", 3, {set(1, Value::int64(static_cast<std::int64_t>(choice) + 9))})});
    rig.crash(choice);
  }
}

// The same, with tags of a slot's first generations, and a larger slot array for the next process,
// which must continue where the former one was.
void script_grown_generations(CrashRig& rig) {
  rig.create_table(log_schema());
  rig.commit({insert("log", log_entry(1, 1)), insert("log", log_entry(2, 2)),
              insert("log", log_entry(3, 3))});
  rig.begin({remove("log", 1), update("log", 2, {set(1, Value::int64(7))})});
  fill_with_dead_rows(rig);  // through another slot
  rig.watch();
  for (std::uint32_t slots = 3; slots < 6 && !rig.is_done(); ++slots) {
    rig.commit({update("log", 3, {set(1, Value::int64(slots))})});
    rig.crash(1, slots);
    rig.begin({remove("log", 1)});
  }
}

}  // namespace flugs::crash
