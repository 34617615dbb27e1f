#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "engine/chunk_merge.h"
#include "engine/table.h"
#include "flugs/merge.h"
#include "mvcc/transaction_slots.h"
#include "pmem/pool.h"

namespace flugs::engine {

/// One merge of one table: chunks of rows become row groups, groups in which many rows have died
/// are made again, chunks without a living row are emptied (decision 0012).
/// Thread-safety: one merge of a table at a time (Table::merge_mutex); transactions go on.
/// Source: SOFORT (DaMoN 2014), section 2 (main; the merge was left undone there); the carrying
/// over of deletions after SAP HANA and Hyrise.
class TableMerge {
 public:
  TableMerge(pmem::Pool& pool, mvcc::TransactionSlots& slots, Table& table,
             const MergeOptions& options);

  /// Fails with kBusy (transactions that began earlier are still open), kOutOfSpace. What had been
  /// merged by then stays so.
  /// Memory that cannot be had ends the process.
  Status run() noexcept;
  const MergeReport& report() const noexcept { return report_; }

 private:
  enum class Origin : std::uint8_t { kRows, kGroup };
  struct Candidate {
    std::size_t chunk;
    Origin origin;
    ChunkMerge::UnusedRows unused = {};
  };
  std::vector<Candidate> choose();
  bool is_worth_it(const RowGroup& group) const;
  bool is_worth_it(std::size_t chunk) const;
  Status merge_all(const std::vector<Candidate>& candidates);
  Status merge_one(const Candidate& candidate);
  bool wait_for_transactions(std::uint64_t since);

  pmem::Pool& pool_;
  mvcc::TransactionSlots& slots_;
  Table& table_;
  RowStore& rows_;
  const MergeOptions& options_;
  const std::chrono::milliseconds patience_;
  std::mutex report_mutex_;  // protects report_ and done_
  MergeReport report_;
  std::uint32_t done_ = 0;
  std::atomic<bool> stops_{false};
};

}  // namespace flugs::engine
