#pragma once

#include <cstddef>
#include <cstdint>

#include "flugs/database.h"
#include "flugs/merge.h"

namespace flugs::engine {

class FreeRows;
class MergeRecord;
struct TableData;

// What users are told of one table. Each figure is counted when it is asked for. While others
// write, figures that belong together may be of different moments.

/// Under the database's ddl_mutex_: editions of columns do not go meanwhile.
TableStatistics statistics_of(const TableData& data, const FreeRows& free_rows);
/// The record's status, with how many rows lie in the delta and in main.
MergeStatus merge_status_of(const TableData& data, const MergeRecord& record);
/// Bytes of indexes in DRAM.
std::size_t index_bytes_of(const TableData& data) noexcept;
/// Bytes of hint indexes in the pool.
std::uint64_t hint_bytes_of(const TableData& data) noexcept;

}  // namespace flugs::engine
