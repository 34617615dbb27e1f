// Protocols dictionary, string_heap and rebuild_dictionary.

#include <string>

#include "verify/crash/scripts/scripts.h"

namespace flugs::crash {

namespace {

/// Dictionaries with entries of 8, 16 and 32 bytes, and text in the rows.
TableSchema words_schema() {
  TableSchema schema("words");
  schema.column("id", Type::kInt32)
      .column("word", Type::kString)
      .column("small", Type::kInt32)
      .column("large", Type::kInt64)
      .column("body", Type::kString)
      .direct()
      .primary_key({"id"});
  return schema;
}

std::string_view word(std::int32_t number, std::size_t bytes = 0) {
  std::string text = "word " + std::to_string(number);
  if (bytes > text.size()) text.append(bytes - text.size(), '.');
  return keep(std::move(text));
}

std::vector<Value> words_row(std::int32_t id, std::int32_t number, std::size_t bytes = 0) {
  return {Value::int32(id), Value::string(std::string_view(word(number, bytes))),
          Value::int32(number), Value::int64(number),
          Value::string(std::string_view(word(number + 1, bytes)))};
}

/// A row, and changes of it that add values without new versions of the row.
Writes row_with_values(std::int32_t id, std::int32_t first, std::int32_t count) {
  Writes writes = {insert("words", words_row(id, first))};
  for (std::int32_t i = 1; i < count; ++i)
    writes.push_back(update("words", id,
                            {set(1, Value::string(std::string_view(word(first + i)))),
                             set(2, Value::int32(first + i)), set(3, Value::int64(first + i))}));
  return writes;
}

}  // namespace

void script_new_values(CrashRig& rig) {
  rig.create_table(words_schema());
  rig.commit({insert("words", words_row(1, 1))});
  rig.watch();
  rig.commit({insert("words", words_row(2, 2)), insert("words", words_row(3, 3, 40))});
  rig.commit({insert(
      "words", {Value::int32(4), Value::null(), Value::null(), Value::null(), Value::null()})});
  rig.abort({insert("words", words_row(5, 5, 40))});
  // Values that an aborted transaction entered and that were not flushed.
  rig.commit({insert("words", words_row(6, 5, 40))});
  rig.commit({update("words", 1,
                     {set(1, Value::string(std::string_view(word(3, 40)))), set(2, Value::int32(9)),
                      set(3, Value::int64(-9))})});
}

// What a killed process left in the caches counts as soon as another process relies on it.
void script_killed(CrashRig& rig) {
  rig.create_table(words_schema());
  for (std::int32_t id = 1; id <= 6; ++id) rig.commit({insert("words", words_row(id, id))});
  rig.watch();
  for (std::int32_t round = 1; round <= 4 && !rig.is_done(); ++round) {
    const std::int32_t id = 100 * round;
    rig.commit({insert("words", words_row(id, id)), remove("words", round)});
    rig.abort({insert("words", words_row(id + 1, id + 1, 40))});
    rig.begin({insert("words", words_row(id + 2, id + 2, 40)), remove("words", id)});
    if (round != 2) {
      rig.kill();
    } else {
      rig.abort_all();
      rig.reopen();
    }
    // Values of the aborted and of the killed transaction; rows that died; slots of committed rows.
    rig.commit({insert("words", words_row(id + 3, id + 1, 40))});
    for (std::int32_t i = 4; i <= 6; ++i)
      rig.commit({insert("words", words_row(id + i, id + 2, 40))});
  }
}

// Values that one transaction enters and another commits first.
void script_shared_values(CrashRig& rig) {
  rig.create_table(words_schema());
  rig.commit({insert("words", words_row(1, 1))});
  rig.watch();
  const std::size_t first =
      rig.begin({insert("words", words_row(2, 2, 40)), insert("words", words_row(3, 3)),
                 insert("words", {Value::int32(4), Value::null(), Value::null(), Value::null(),
                                  Value::null()})});
  rig.commit(
      {insert("words", words_row(5, 3)),
       update("words", 1,
              {set(1, Value::string(std::string_view(word(2, 40)))), set(2, Value::null())})});
  rig.commit(first);
  const std::size_t second = rig.begin({insert("words", words_row(6, 6, 40))});
  const Writes shared = {insert("words", words_row(7, 6, 40)), insert("words", words_row(8, 8))};
  rig.commit(shared);
  rig.abort(second);
  rig.commit({insert("words", words_row(9, 8))});
}

void script_dictionary_chunks(CrashRig& rig) {
  rig.create_table(words_schema());
  rig.commit(row_with_values(1, 1, 254));
  rig.watch();
  // One transaction makes the second chunk, another the third and commits first.
  const std::size_t first = rig.begin(row_with_values(2, 1000, 5));
  rig.commit(row_with_values(3, 2000, 254));
  rig.commit(first);
  rig.commit(row_with_values(4, 1002, 5));
}

// With hints: small commits add the values that split a segment, and the directory with it.
void script_hint_segments(CrashRig& rig) {
  rig.create_table(words_schema());
  rig.commit(row_with_values(1, 1, 250));
  rig.commit(row_with_values(2, 1000, 120));
  rig.watch();
  for (std::int32_t round = 0; round < 14 && !rig.is_done(); ++round) {
    const std::int32_t id = 10 + 2 * round;
    const std::size_t open = rig.begin(row_with_values(id, 2000 + 100 * round, 4));
    rig.commit(row_with_values(id + 1, 5000 + 100 * round, 28));
    if (round % 4 == 3) {
      rig.kill();
    } else {
      rig.commit(open);
    }
  }
}

namespace {

void take_and_give_up(CrashRig& rig) {
  rig.commit({remove("words", 1), insert("words", words_row(1, 1))});
}

// Rows with other keys.
Writes words_rows(std::int32_t first, std::int32_t count) {
  Writes writes;
  for (std::int32_t i = 0; i < count; ++i)
    writes.push_back(insert("words", words_row(first + i, 1)));
  return writes;
}

// One segment, almost full of the entries of one key; not split, as nearly all would go to one
// side.
void make_full_segment(CrashRig& rig) {
  rig.create_table(words_schema());
  rig.commit(words_rows(1, 30));
  for (int i = 0; i < 350; ++i) take_and_give_up(rig);
  rig.commit(words_rows(31, 20));
  for (int i = 0; i < 103; ++i) take_and_give_up(rig);
}

}  // namespace

// A key that was taken and given up so often that its index continues in another segment.
void script_hint_chain(CrashRig& rig) {
  make_full_segment(rig);
  rig.watch();
  for (std::int32_t round = 0; round < 12 && !rig.is_done(); ++round) {
    take_and_give_up(rig);
    rig.commit(words_rows(100 + round, 1));
    if (round % 4 == 3) rig.kill();
  }
}

// Other keys are added and split from it, and the space that was left is used again.
void script_hint_chain_split(CrashRig& rig) {
  make_full_segment(rig);
  rig.commit(words_rows(100, 36));
  for (int i = 0; i < 5; ++i) take_and_give_up(rig);
  rig.watch();
  for (std::int32_t round = 0; round < 12 && !rig.is_done(); ++round) {
    take_and_give_up(rig);
    rig.commit(words_rows(200 + round, 1));
    if (round % 4 == 3) rig.kill();
  }
}

// A transaction that uses such a value relies on its being durable.
void script_kept_values(CrashRig& rig) {
  rig.create_table(words_schema());
  rig.commit({insert("words", words_row(1, 1))});
  rig.watch();
  for (std::int32_t round = 1; round <= 5 && !rig.is_done(); ++round) {
    const std::int32_t first = 100 * round;
    rig.abort(row_with_values(first, first, 3));
    const std::size_t open = rig.begin({insert("words", words_row(first + 1, first + 40, 30))});
    rig.keep_hints();
    rig.commit({insert("words", words_row(first + 2, first + 2))});
    rig.commit({insert("words", words_row(first + 3, first + 40, 30))});
    rig.commit(open);
    if (round == 3) rig.kill();
    if (round == 4) rig.crash(2);
  }
}

void script_long_texts(CrashRig& rig) {
  rig.create_table(words_schema());
  rig.watch();
  for (std::int32_t id = 1; id <= 6; ++id)
    rig.commit({insert("words", words_row(id, id * 10, 1500))});
  rig.commit({update("words", 1, {set(4, Value::string(std::string_view(word(100, 9000))))})});
  rig.commit({remove("words", 2), insert("words", words_row(2, 200, 700))});
}

// One transaction reserves space for texts; another's text gets into it and is committed first.
void script_shared_reservation(CrashRig& rig) {
  rig.create_table(words_schema());
  rig.commit({insert("words", words_row(1, 1))});
  rig.watch();
  const std::size_t first = rig.begin({insert("words", words_row(2, 2, 100))});
  rig.commit({insert("words", words_row(3, 30, 100))});
  rig.commit({insert("words", words_row(4, 40, 100))});
  rig.commit(first);
  rig.crash(0);
  rig.commit({insert("words", words_row(5, 50, 100))});
}

}  // namespace flugs::crash
