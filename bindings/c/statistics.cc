#include "bindings/c/statistics.h"

#include <utility>

#include "bindings/c/json.h"

// Every field has the name that it has in C++: a test compares them.

namespace flugs::c {

namespace {

void add_sizes(Json& json, const Statistics& s) {
  json.field("medium", s.medium);
  json.field("flush", s.flush);
  json.field("guarantee", s.guarantee);
  json.field("guarantee_soon", s.guarantee_soon);
  json.field("pool_reserved_bytes", s.pool_reserved_bytes);
  json.field("pool_allocated_bytes", s.pool_allocated_bytes);
  json.field("pool_used_bytes", s.pool_used_bytes);
  json.field("pool_free_bytes", s.pool_free_bytes);
  json.field("pool_overhead_bytes", s.pool_overhead_bytes);
  json.field("pool_hole_bytes", s.pool_hole_bytes);
  json.field("pool_reserve_bytes", s.pool_reserve_bytes);
  json.field("pool_left_bytes", s.pool_left_bytes);
  json.field("index_place", s.index_place == IndexPlace::kPool ? "pool" : "dram");
  json.field("clock", s.clock == CommitClock::kCounter ? "counter" : "processors");
  json.field("dram_index_bytes", s.dram_index_bytes);
  json.field("hint_index_bytes", s.hint_index_bytes);
  json.field("lines_flushed", s.lines_flushed);
  json.field("fences", s.fences);
  json.field("bytes_written", s.bytes_written);
  json.field("journal_record_bytes", s.journal_record_bytes);
  json.field("journal_written_bytes", s.journal_written_bytes);
  json.field("journal_writes", s.journal_writes);
  json.field("direct_writes", s.direct_writes);
  json.field("direct_written_bytes", s.direct_written_bytes);
}

void add_counters(Json& json, const Statistics& s) {
  json.field("commits_soon", s.commits_soon);
  json.field("commits_soon_late", s.commits_soon_late);
  json.field("scm_lines_read", s.scm_lines_read);
  json.field("scm_lines_read_in_sequence", s.scm_lines_read_in_sequence);
  json.field("transactions_committed", s.transactions_committed);
  json.field("transactions_aborted", s.transactions_aborted);
  json.field("conflicts", s.conflicts);
  json.field("transactions_open", s.transactions_open);
  json.field("transactions_ended", s.transactions_ended);
  json.field("open_ms_max", s.open_ms_max);
  json.field("idle_ms_max", s.idle_ms_max);
  json.field("rows_locked", s.rows_locked);
  json.field("merges", s.merges);
  json.field("merge_failures", s.merge_failures);
  json.field("merge_seconds", s.merge_seconds);
  json.field("writes_refused", s.writes_refused);
  json.field("rows_unswept", s.rows_unswept);
  json.field("index_entries_left", s.index_entries_left);
  json.field("index_entries_built", s.index_entries_built);
  json.field("index_build_ms", s.index_build_ms);
  json.field("warmed_bytes", s.warmed_bytes);
  json.field("warm_bytes_left", s.warm_bytes_left);
  json.field("warm_ms", s.warm_ms);
}

void add_column(Json& json, const ColumnStatistics& s) {
  json.begin_object();
  json.field("name", s.name);
  json.field("type", to_string(s.type));
  json.field("dictionary_encoded", s.dictionary_encoded);
  json.field("dictionary_entries", s.dictionary_entries);
  json.field("dictionary_bytes", s.dictionary_bytes);
  json.field("cell_bits", s.cell_bits);
  json.field("text_bytes_reusable", s.text_bytes_reusable);
  json.end_object();
}

void add_table(Json& json, const TableStatistics& s) {
  json.begin_object();
  json.field("name", s.name);
  json.field("rows_reserved", s.rows_reserved);
  json.field("rows_free", s.rows_free);
  json.field("chunks", s.chunks);
  json.field("chunk_bytes", s.chunk_bytes);
  json.field("groups", s.groups);
  json.field("group_rows", s.group_rows);
  json.field("group_bytes", s.group_bytes);
  json.field("row_bytes", s.row_bytes);
  json.field("key_index_bytes", s.key_index_bytes);
  json.field("index_runs", s.index_runs);
  json.field("index_run_bytes", s.index_run_bytes);
  json.field("pool_bytes", s.pool_bytes);
  json.field("delta_bytes", s.delta_bytes);
  json.field("main_bytes", s.main_bytes);
  json.field("dictionary_bytes", s.dictionary_bytes);
  json.field("hint_index_bytes", s.hint_index_bytes);
  json.field("catalog_bytes", s.catalog_bytes);
  json.field("replaced_bytes", s.replaced_bytes);
  json.key("columns").begin_list();
  for (const ColumnStatistics& column : s.columns) add_column(json, column);
  json.end_list();
  json.end_object();
}

}  // namespace

std::string json_of(const MergeReport& report) {
  Json json;
  json.begin_object();
  json.field("chunks_merged", report.chunks_merged);
  json.field("groups_merged", report.groups_merged);
  json.field("chunks_emptied", report.chunks_emptied);
  json.field("chunks_busy", report.chunks_busy);
  json.field("chunks_left", report.chunks_left);
  json.field("groups_moved", report.groups_moved);
  json.field("rows", report.rows);
  json.field("codes", report.codes);
  json.field("rows_dropped", report.rows_dropped);
  json.field("bytes_before", report.bytes_before);
  json.field("bytes_after", report.bytes_after);
  json.field("columns_renewed", report.columns_renewed);
  json.field("bytes_given_back", report.bytes_given_back);
  json.field("index_rows", report.index_rows);
  json.field("index_bytes", report.index_bytes);
  json.field("transactions_asked_to_end", report.transactions_asked_to_end);
  json.field("wait_us", report.wait_us);
  json.field("merge_us", report.merge_us);
  json.field("index_us", report.index_us);
  json.field("build_cpu_us", report.build_cpu_us);
  json.field("longest_move_us", report.longest_move_us);
  json.field("releases_later", report.releases_later);
  json.end_object();
  return json.take();
}

std::string json_of_statistics(const Database& database) {
  Json json;
  const Statistics statistics = database.statistics();
  json.begin_object();
  add_sizes(json, statistics);
  add_counters(json, statistics);
  json.key("tables").begin_list();
  for (const TableId table : database.tables()) {
    const Result<TableStatistics> of_table = database.table_statistics(table);
    if (of_table.ok()) add_table(json, *of_table);  // else dropped meanwhile
  }
  json.end_list();
  json.end_object();
  return json.take();
}

}  // namespace flugs::c
