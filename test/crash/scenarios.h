#pragma once

#include <string>
#include <string_view>

#include "test/support/crash_rig.h"

// Scripts for the protocols of the engine, each in the file of its protocol, so that the tests of
// the tests (flush_sites_test.cc) can run them with a flush or a fence taken out.

namespace flugs::test {

// Tables. The first column is always `id`.
/// Primary key and unique key, ordered key; dictionaries of short and long text and of integers;
/// direct integers and direct text.
TableSchema people_schema();
std::vector<Value> person(std::int32_t id, std::string_view name, std::string_view city,
                          std::int64_t amount, std::string_view note);
/// Primary key of two columns.
TableSchema orders_schema();
std::vector<Value> order(std::int32_t id, std::int32_t customer, std::string_view note);
/// No key: opening sweeps the last rows only.
TableSchema log_schema(std::string name = "log");
std::vector<Value> log_entry(std::int32_t id, std::int64_t amount);
/// Makes the table `log` so large that opening does not sweep its first rows, but leaves as many.
void fill_with_dead_rows(CrashRig& rig);
/// Rows of 256 bytes, 16 to a chunk.
TableSchema wide_schema();
std::vector<Value> wide_row(std::int32_t id);

ColumnValue set(std::uint16_t column, Value value);

// Scripts. They run what they need unwatched, then call watch().
void script_inserts(CrashRig& rig);
void script_updates(CrashRig& rig);
void script_large_transactions(CrashRig& rig);
void script_interleaved_intents(CrashRig& rig);
void script_slot_turns(CrashRig& rig);
void script_crashed_slots(CrashRig& rig);
void script_new_values(CrashRig& rig);
void script_shared_values(CrashRig& rig);
void script_dictionary_chunks(CrashRig& rig);
void script_long_texts(CrashRig& rig);
void script_shared_reservation(CrashRig& rig);
void script_row_chunks(CrashRig& rig);
void script_chunks_of_two(CrashRig& rig);
void script_widening(CrashRig& rig);
void script_chunk_pages(CrashRig& rig);
void script_chunk_lines(CrashRig& rig);
void script_creation(CrashRig& rig);
void script_tables(CrashRig& rig);
void script_used_space(CrashRig& rig);
void script_slot_array(CrashRig& rig);
void script_generations(CrashRig& rig);
void script_recycling(CrashRig& rig);
void script_sweeping(CrashRig& rig);

using Script = void (*)(CrashRig&);

struct Exploration {
  std::string name;  ///< of the script, for the line that replays a failure
  Script script;
  std::uint32_t slots = 2;
  bool tears_words = false;
  std::uint32_t nested_depth = 1;
  std::uint32_t nested_one_in = 16;  ///< divided by FLUGS_CRASH_STATES
  std::uint64_t images_max = 2500;   ///< times FLUGS_CRASH_STATES
  std::uint64_t combinations_max = 128;
  std::uint32_t random_images = 16;
};

/// Explores, prints what was checked, and fails the test case with a line that replays when
/// something was found.
void explore(const Exploration& exploration);

/// Whether exploring with the mutation finds something wrong; what was found goes to `found`. In a
/// process of its own, because a database may stop at what only a mutation brings about.
bool is_found(const Exploration& exploration, const Mutation& mutation, std::string& found);

}  // namespace flugs::test
