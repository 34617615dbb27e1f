#include "verify/crash/scripts/protocols.h"

#include <algorithm>
#include <array>

#include "verify/crash/scripts/scripts.h"

namespace flugs::crash {

namespace {

constexpr TurnMix kWrites{
    .insert = 4, .update = 4, .remove = 2, .multi = 2, .abort = 1, .columns = 2};
constexpr TurnMix kColumns{.insert = 1,
                           .update = 2,
                           .remove = 2,
                           .multi = 2,
                           .abort = 2,
                           .interleave = 1,
                           .columns = 8,
                           .crash = 1};
constexpr TurnMix kParts{.insert = 2,
                         .update = 2,
                         .remove = 1,
                         .abort = 1,
                         .partly = 6,
                         .interleave = 2,
                         .columns = 1,
                         .merge = 1,
                         .reopen = 1,
                         .crash = 1};
constexpr TurnMix kInterleaved{
    .insert = 2, .update = 3, .remove = 2, .multi = 3, .abort = 2, .interleave = 6, .columns = 1};
constexpr TurnMix kRestarts{.insert = 3,
                            .update = 3,
                            .remove = 2,
                            .multi = 2,
                            .abort = 1,
                            .columns = 1,
                            .reopen = 2,
                            .crash = 3};
constexpr TurnMix kKills{.insert = 3,
                         .update = 3,
                         .remove = 3,
                         .multi = 2,
                         .abort = 2,
                         .columns = 2,
                         .text = 1,
                         .reopen = 1,
                         .kill = 3};
constexpr TurnMix kDeaths{.insert = 3,
                          .update = 2,
                          .remove = 2,
                          .multi = 2,
                          .columns = 1,
                          .large = 1,
                          .text = 1,
                          .tables = 1,
                          .merge = 1,
                          .kill_midway = 4};
constexpr TurnMix kText{
    .insert = 3, .update = 3, .remove = 1, .interleave = 2, .columns = 1, .text = 6};
constexpr TurnMix kBulk{
    .insert = 1, .update = 2, .remove = 2, .multi = 2, .columns = 2, .large = 3};
constexpr TurnMix kDdl{.insert = 3, .update = 1, .remove = 1, .tables = 6, .reopen = 1};

constexpr TurnMix kAlterations{.insert = 3,
                               .update = 2,
                               .remove = 1,
                               .abort = 1,
                               .columns = 2,
                               .tables = 1,
                               .alter = 6,
                               .merge = 1,
                               .reopen = 1,
                               .crash = 1,
                               .kill = 1};

// Renamed columns have other names in checks and foreign keys, which turns do not know.
constexpr TurnMix kConstrained{.insert = 3,
                               .update = 3,
                               .remove = 2,
                               .multi = 1,
                               .abort = 1,
                               .columns = 2,
                               .merge = 1,
                               .reopen = 1,
                               .crash = 1,
                               .kill = 1};

constexpr TurnMix kMerges{.insert = 3,
                          .update = 3,
                          .remove = 3,
                          .multi = 2,
                          .abort = 1,
                          .interleave = 2,
                          .columns = 2,
                          .text = 1,
                          .merge = 3,
                          .reopen = 1,
                          .crash = 1};

constexpr std::array kProtocols{
    Protocol{"insert", "rows inserted, one aborted", script_inserts, kWrites},
    Protocol{"by_column", "rows inserted that are given column by column, some aborted",
             script_by_column, kColumns, 256},
    Protocol{"update", "rows updated, deleted and inserted again", script_updates, kWrites},
    Protocol{"savepoints", "transactions that take a part of their writes back", script_savepoints,
             kParts, 256},
    Protocol{"large_commit", "more intents than a slot, then than its block, holds",
             script_large_transactions, kBulk},
    Protocol{"forgotten_intents", "large transactions before commits, closings and power cuts",
             script_forgotten_intents, kBulk, 512},
    Protocol{"interleaved_intents", "two transactions take over each other's intent blocks",
             script_interleaved_intents, kInterleaved},
    Protocol{"slot_turns", "a slot used again and again, across aborts", script_slot_turns,
             kInterleaved, 256},
    Protocol{"crashed_slots", "new transactions over the remains of a crash in slots and rows",
             script_crashed_slots, kRestarts, 256},
    Protocol{"killed", "stores that processes had not flushed when they were killed or gave up",
             script_killed, kKills, 256},
    Protocol{"killed_midway", "pointers and limits that a killed process stored and did not flush",
             script_killed_midway, kDeaths, 640},
    Protocol{"killed_commit", "commit records that a killed process stored and did not flush",
             script_killed_commit, kDeaths, 256},
    Protocol{"new_values", "dictionary entries of all widths, and of aborted transactions",
             script_new_values, kText},
    Protocol{"shared_values", "an entry that one transaction makes and another commits first",
             script_shared_values, kInterleaved},
    Protocol{"dictionary_chunks", "a dictionary that grows, by two transactions at a time",
             script_dictionary_chunks, kText, 160},
    Protocol{"hint_segments", "hint indexes that split their segments, across killed processes",
             script_hint_segments, kText, 448},
    Protocol{"hint_chain", "a segment of a hint index that goes on in another one",
             script_hint_chain, kText, 640},
    Protocol{"hint_chain_split", "the same, split from others and made good",
             script_hint_chain_split, kText, 640},
    Protocol{"kept_values", "values of aborted transactions that no other transaction made durable",
             script_kept_values, kText},
    Protocol{"long_texts", "strings up to 9,000 bytes, and their chunks", script_long_texts, kText,
             160},
    Protocol{"shared_reservation", "one transaction reserves room for texts that another fills",
             script_shared_reservation, kText},
    Protocol{"row_chunks", "row chunks, and the segments of the pool behind them",
             script_row_chunks, kBulk},
    Protocol{"chunks_of_two", "two transactions add a chunk each", script_chunks_of_two,
             kInterleaved, 256},
    Protocol{"widening", "cells that get wider, through chunks a crash left unused",
             script_widening, kRestarts},
    Protocol{"chunk_pages", "a chunk list that gets its pages", script_chunk_pages, kBulk, 448},
    Protocol{"chunk_lines", "two appends to different lines of a chunk list", script_chunk_lines,
             kInterleaved, 448},
    Protocol{"create_database", "pool and database made from nothing", script_creation, kDdl, 64,
             true},
    Protocol{"create_drop_table", "tables created and dropped", script_tables, kDdl, 256},
    Protocol{"create_tables", "several tables created by one call, across killed processes",
             script_table_sets, kDdl, 384},
    Protocol{"alter_table", "tables given other schemas, across killed processes", script_alter,
             kAlterations, 384},
    Protocol{"add_drop_column", "columns added and dropped around rows, chunks and groups",
             script_columns, kAlterations, 384},
    Protocol{"change_type", "columns given other types around rows, chunks, groups and keys",
             script_types, kAlterations, 384},
    Protocol{"renew", "columns that are rewritten, and the remains of their former editions",
             script_renewals, kMerges, 512},
    Protocol{"alter_keys", "keys added to tables with rows, and dropped", script_alter_keys,
             kAlterations, 512},
    Protocol{"constraints", "checks, NOT NULL and foreign keys of tables with rows, and dropped",
             script_constraints, kConstrained, 512},
    Protocol{"auto_increment", "blocks of numbers, used up, aborted and left behind",
             script_numbers, kKills},
    Protocol{"used_space", "space used again, full of its former owner's bytes", script_used_space,
             kDdl, 448},
    Protocol{.name = "holes",
             .what = "space given back and taken again, also behind a crash",
             .script = script_holes,
             .turns = kDdl,
             .pool_kilobytes = 448,
             .gives_back = true},
    Protocol{"slot_array", "more slots, with transactions cut short by crashes", script_slot_array,
             kRestarts},
    Protocol{"generations", "tags that a crash left behind in rows that no sweep reaches",
             script_generations, kRestarts, 512},
    Protocol{"grown_generations", "the same, with a larger slot array for each process",
             script_grown_generations, kRestarts, 512},
    Protocol{"recycle", "rows of dead versions written again", script_recycling, kWrites, 512},
    Protocol{"reuse_text", "texts in the places of those that rows have left", script_reusing_texts,
             kText, 512},
    Protocol{"sweep", "rows that recovery gave free written again", script_sweeping, kRestarts,
             256},
    Protocol{"sweep_later", "rows that opening left unswept, given free and written again",
             script_sweeping_later, kRestarts, 512},
    Protocol{"merge", "chunks of rows that become row groups", script_merge, kMerges, 512},
    Protocol{"merged_deletions", "rows of groups deleted and updated, by two transactions",
             script_merged_deletions, kMerges, 512},
    Protocol{"merge_locked", "rows deleted and locked in a chunk that a merge wants",
             script_merge_locked, kMerges, 512},
    Protocol{"merge_beside", "rows deleted in a chunk while the one before it is merged",
             script_merge_beside, kMerges, 512},
    Protocol{"merge_chunks", "chunks replaced that another chunk names as its model",
             script_merge_chunks, kMerges, 640},
    Protocol{"merge_again", "groups merged again, emptied, their row ids used again",
             script_merge_again, kMerges, 512},
    Protocol{"index_runs", "key indexes of row groups, combined and made to leave groups out",
             script_index_runs, kMerges, 512},
    Protocol{"threads_commit", "threads that write the same rows, in several tables at a time",
             script_threads_commit, kWrites, 160, false, kThreads},
    Protocol{"threads_values", "threads that bring the same new values and the same new keys",
             script_threads_values, kWrites, 160, false, kThreads},
    Protocol{"threads_kept", "a thread that makes values durable while others use them",
             script_threads_kept, kWrites, 160, false, kThreads},
    Protocol{"threads_slots", "threads that use their slots again and again, across aborts",
             script_threads_slots, kWrites, 256, false, kThreads},
    Protocol{"threads_growth", "threads that need new chunks of rows, values and texts at a time",
             script_threads_growth, kWrites, 256, false, kThreads},
    Protocol{"threads_tables", "tables created and dropped while other threads commit",
             script_threads_tables, kWrites, 256, false, kThreads},
};

}  // namespace

std::span<const Protocol> protocols() { return kProtocols; }

const Protocol* find_protocol(std::string_view name) {
  const auto found = std::find_if(kProtocols.begin(), kProtocols.end(),
                                  [&](const Protocol& protocol) { return protocol.name == name; });
  return found == kProtocols.end() ? nullptr : &*found;
}

}  // namespace flugs::crash
