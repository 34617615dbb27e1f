#pragma once

#include <string_view>

#include "flugs/database.h"
#include "flugs/merge.h"

namespace flugs::fields {

// The fields of the structs in which the library gives its figures: one list for all bindings and
// tools that hand them on. Each is given to `see` with the name that it has in C++ (a test compares
// them), as a text, a number or a bool. Parts that are lists are left to the caller.

template <typename See>
void each_size(const Statistics& s, See&& see) {
  see("medium", std::string_view(s.medium));
  see("flush", std::string_view(s.flush));
  see("dirty_shutdowns", std::string_view(s.dirty_shutdowns));
  see("guarantee", std::string_view(s.guarantee));
  see("guarantee_soon", std::string_view(s.guarantee_soon));
  see("pool_reserved_bytes", s.pool_reserved_bytes);
  see("pool_allocated_bytes", s.pool_allocated_bytes);
  see("pool_used_bytes", s.pool_used_bytes);
  see("pool_free_bytes", s.pool_free_bytes);
  see("pool_overhead_bytes", s.pool_overhead_bytes);
  see("pool_hole_bytes", s.pool_hole_bytes);
  see("pool_reserve_bytes", s.pool_reserve_bytes);
  see("pool_left_bytes", s.pool_left_bytes);
  see("index_place", std::string_view(s.index_place == IndexPlace::kPool ? "pool" : "dram"));
  see("clock", std::string_view(s.clock == CommitClock::kCounter ? "counter" : "processors"));
  see("dram_index_bytes", s.dram_index_bytes);
  see("hint_index_bytes", s.hint_index_bytes);
  see("lines_flushed", s.lines_flushed);
  see("fences", s.fences);
  see("bytes_written", s.bytes_written);
  see("journal_record_bytes", s.journal_record_bytes);
  see("journal_written_bytes", s.journal_written_bytes);
  see("journal_writes", s.journal_writes);
  see("direct_writes", s.direct_writes);
  see("direct_written_bytes", s.direct_written_bytes);
}

template <typename See>
void each_counter(const Statistics& s, See&& see) {
  see("commits_soon", s.commits_soon);
  see("commits_soon_late", s.commits_soon_late);
  see("scm_lines_read", s.scm_lines_read);
  see("scm_lines_read_in_sequence", s.scm_lines_read_in_sequence);
  see("transactions_committed", s.transactions_committed);
  see("transactions_aborted", s.transactions_aborted);
  see("conflicts", s.conflicts);
  see("transactions_open", s.transactions_open);
  see("transactions_ended", s.transactions_ended);
  see("open_ms_max", s.open_ms_max);
  see("idle_ms_max", s.idle_ms_max);
  see("rows_locked", s.rows_locked);
  see("merges", s.merges);
  see("merge_failures", s.merge_failures);
  see("merge_seconds", s.merge_seconds);
  see("writes_refused", s.writes_refused);
  see("rows_unswept", s.rows_unswept);
  see("index_entries_left", s.index_entries_left);
  see("index_entries_built", s.index_entries_built);
  see("index_build_ms", s.index_build_ms);
  see("warmed_bytes", s.warmed_bytes);
  see("warm_bytes_left", s.warm_bytes_left);
  see("warm_ms", s.warm_ms);
}

template <typename See>
void each_field(const Statistics& s, See&& see) {
  each_size(s, see);
  each_counter(s, see);
}

template <typename See>
void each_field(const ColumnStatistics& s, See&& see) {
  see("name", std::string_view(s.name));
  see("type", to_string(s.type));
  see("dictionary_encoded", s.dictionary_encoded);
  see("dictionary_entries", s.dictionary_entries);
  see("dictionary_bytes", s.dictionary_bytes);
  see("cell_bits", s.cell_bits);
  see("text_bytes_reusable", s.text_bytes_reusable);
}

template <typename See>
void each_field(const TableStatistics& s, See&& see) {
  see("name", std::string_view(s.name));
  see("rows_reserved", s.rows_reserved);
  see("rows_free", s.rows_free);
  see("chunks", s.chunks);
  see("chunk_bytes", s.chunk_bytes);
  see("groups", s.groups);
  see("group_rows", s.group_rows);
  see("group_bytes", s.group_bytes);
  see("row_bytes", s.row_bytes);
  see("key_index_bytes", s.key_index_bytes);
  see("index_runs", s.index_runs);
  see("index_run_bytes", s.index_run_bytes);
  see("pool_bytes", s.pool_bytes);
  see("delta_bytes", s.delta_bytes);
  see("main_bytes", s.main_bytes);
  see("dictionary_bytes", s.dictionary_bytes);
  see("hint_index_bytes", s.hint_index_bytes);
  see("catalog_bytes", s.catalog_bytes);
  see("replaced_bytes", s.replaced_bytes);
  see("read_text_bytes", s.read_text_bytes);
}

template <typename See>
void each_field(const MergeReport& report, See&& see) {
  see("chunks_merged", report.chunks_merged);
  see("groups_merged", report.groups_merged);
  see("chunks_emptied", report.chunks_emptied);
  see("chunks_busy", report.chunks_busy);
  see("chunks_left", report.chunks_left);
  see("groups_moved", report.groups_moved);
  see("rows", report.rows);
  see("codes", report.codes);
  see("rows_dropped", report.rows_dropped);
  see("bytes_before", report.bytes_before);
  see("bytes_after", report.bytes_after);
  see("columns_rewritten", report.columns_rewritten);
  see("bytes_given_back", report.bytes_given_back);
  see("index_rows", report.index_rows);
  see("index_bytes", report.index_bytes);
  see("transactions_asked_to_end", report.transactions_asked_to_end);
  see("wait_us", report.wait_us);
  see("merge_us", report.merge_us);
  see("index_us", report.index_us);
  see("build_cpu_us", report.build_cpu_us);
  see("longest_move_us", report.longest_move_us);
  see("releases_later", report.releases_later);
}

}  // namespace flugs::fields
