#include "tables/data/table_statistics.h"

#include <algorithm>

#include "tables/data/free_rows.h"
#include "tables/data/merge_record.h"
#include "tables/data/table_data.h"

namespace flugs::engine {

TableStatistics statistics_of(const TableData& data, const FreeRows& free_rows) {
  TableStatistics statistics;
  statistics.name = data.name();
  statistics.rows_reserved = data.rows.rows_end();
  statistics.rows_free = free_rows.count();
  statistics.chunks = data.rows.chunk_count();
  statistics.chunk_bytes = data.rows.chunk_bytes();
  data.rows.for_each_group([&](const RowGroup& group) {
    ++statistics.groups;
    statistics.group_rows += group.stored_rows();
    statistics.group_bytes += group.bytes() + group.version_bytes();
  });
  const columns::RowLayout* layout = data.rows.current_layout();
  statistics.row_bytes = layout != nullptr ? layout->row_bytes() : 0;
  for (KeyIndex* key : data.keys) statistics.key_index_bytes += key->entries().memory_bytes();
  const IndexRuns::Summary runs = data.runs.summary();
  statistics.index_runs = runs.runs;
  statistics.index_run_bytes = runs.bytes;
  for (std::size_t i = 0; i < data.columns.size(); ++i) {
    columns::Column& column = *data.columns[i];
    std::uint64_t bytes = 0;
    column.for_each_used([&](columns::Column& edition) { bytes += edition.bytes_in_pool(); });
    statistics.columns.push_back(
        {column.name(), column.type(), column.is_dictionary(), column.dictionary().count(), bytes,
         layout != nullptr ? layout->bits(i) : 0u, column.heap().bytes_reusable()});
    statistics.dictionary_bytes += bytes;
  }
  statistics.delta_bytes = data.rows.delta_bytes();
  statistics.main_bytes = statistics.group_bytes;
  statistics.hint_index_bytes = hint_bytes_of(data);
  statistics.read_text_bytes = data.columns.read_text_memory().bytes();
  statistics.replaced_bytes = data.rows.replaced_bytes() + data.runs.replaced_bytes();
  return statistics;
}

MergeStatus merge_status_of(const TableData& data, const MergeRecord& record) {
  MergeStatus status = record.status();
  std::uint64_t group_positions = 0;
  data.rows.for_each_group([&](const RowGroup& group) {
    group_positions += group.row_count();
    status.main_rows += group.stored_rows();
    status.main_bytes += group.bytes() + group.version_bytes();
  });
  const std::uint64_t positions = data.rows.rows_end();
  status.delta_rows = positions - std::min(positions, group_positions);
  status.delta_bytes = data.rows.delta_bytes();
  return status;
}

std::size_t index_bytes_of(const TableData& data) noexcept {
  std::size_t bytes = data.rows.dram_bytes();
  for (KeyIndex* key : data.keys) bytes += key->entries().memory_bytes();
  data.columns.for_each_used([&](columns::Column& column) {
    if (column.is_dictionary()) bytes += column.dictionary().index_bytes();
  });
  return bytes;
}

std::uint64_t hint_bytes_of(const TableData& data) noexcept {
  std::uint64_t bytes = 0;
  data.columns.for_each_used(
      [&](columns::Column& column) { bytes += column.dictionary().hint_bytes(); });
  for (KeyIndex* key : data.keys) bytes += key->entries().bytes_in_pool();
  return bytes;
}

}  // namespace flugs::engine
