#pragma once

#include "verify/crash/scripts/tables.h"

// One script per protocol, in protocols_*.cc. It prepares what it needs unwatched, then calls
// watch().

namespace flugs::crash {

void script_inserts(CrashRig& rig);
void script_updates(CrashRig& rig);
void script_by_column(CrashRig& rig);
void script_savepoints(CrashRig& rig);
void script_large_transactions(CrashRig& rig);
void script_forgotten_intents(CrashRig& rig);
void script_interleaved_intents(CrashRig& rig);
void script_slot_turns(CrashRig& rig);
void script_crashed_slots(CrashRig& rig);
void script_new_values(CrashRig& rig);
void script_killed(CrashRig& rig);
void script_killed_midway(CrashRig& rig);
void script_killed_commit(CrashRig& rig);
void script_shared_values(CrashRig& rig);
void script_dictionary_chunks(CrashRig& rig);
void script_hint_segments(CrashRig& rig);
void script_hint_chain(CrashRig& rig);
void script_hint_chain_split(CrashRig& rig);
void script_kept_values(CrashRig& rig);
void script_long_texts(CrashRig& rig);
void script_shared_reservation(CrashRig& rig);
void script_row_chunks(CrashRig& rig);
void script_chunks_of_two(CrashRig& rig);
void script_widening(CrashRig& rig);
void script_chunk_pages(CrashRig& rig);
void script_chunk_lines(CrashRig& rig);
void script_in_columns(CrashRig& rig);
void script_in_groups(CrashRig& rig);
void script_large_in_columns(CrashRig& rig);
void script_layouts(CrashRig& rig);
void script_creation(CrashRig& rig);
void script_tables(CrashRig& rig);
void script_table_sets(CrashRig& rig);
void script_alter(CrashRig& rig);
void script_columns(CrashRig& rig);
void script_types(CrashRig& rig);
void script_renewals(CrashRig& rig);
void script_alter_keys(CrashRig& rig);
void script_constraints(CrashRig& rig);
void script_numbers(CrashRig& rig);
void script_used_space(CrashRig& rig);
void script_holes(CrashRig& rig);
void script_slot_array(CrashRig& rig);
void script_generations(CrashRig& rig);
void script_grown_generations(CrashRig& rig);
void script_recycling(CrashRig& rig);
void script_reusing_texts(CrashRig& rig);
void script_sweeping(CrashRig& rig);
void script_sweeping_later(CrashRig& rig);
void script_merge(CrashRig& rig);
void script_merged_deletions(CrashRig& rig);
void script_merge_locked(CrashRig& rig);
void script_merge_beside(CrashRig& rig);
void script_merge_chunks(CrashRig& rig);
void script_merge_again(CrashRig& rig);
void script_index_runs(CrashRig& rig);
/// Threads of each protocol with several threads.
inline constexpr std::uint32_t kThreads = 3;
void script_threads_commit(CrashRig& rig);
void script_threads_values(CrashRig& rig);
void script_threads_kept(CrashRig& rig);
void script_threads_slots(CrashRig& rig);
void script_threads_growth(CrashRig& rig);
void script_threads_tables(CrashRig& rig);

}  // namespace flugs::crash
