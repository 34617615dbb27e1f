#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "base/crew.h"
#include "base/mutex.h"
#include "engine/merge/chunk_merge.h"
#include "flugs/function_ref.h"
#include "flugs/merge.h"
#include "mvcc/transaction_slots.h"
#include "pmem/pool/pool.h"
#include "tables/table/table.h"

namespace flugs::engine {

/// One merge of one table (decision 0012). Chunks of rows become row groups, and groups in which
/// many rows have died are written again. Chunks without a living row become groups without rows,
/// and the next merge turns these into empty chunks. Then the key indexes of the groups are
/// written, for the next opening (decision 0014).
/// Thread-safety: one merge of a table at a time (Table::merge_mutex); transactions go on.
/// Source: SOFORT (DaMoN 2014), section 2 (main; the merge was left undone there); the carrying
/// over of deletions after SAP HANA and Hyrise.
class TableMerge {
 public:
  /// `options` must outlive the object; `ddl_mutex` is the database's. When `stops` becomes true, a
  /// merge by policy ends soon, as it does when the table is dropped; null: the program has asked
  /// for the merge.
  TableMerge(pmem::Pool& pool, mvcc::TransactionSlots& slots, Table& table, Mutex& ddl_mutex,
             const MergeOptions& options, const std::atomic<bool>* stops = nullptr);

  /// What a merge would work on.
  struct Plan {
    std::uint64_t chunks = 0;  ///< of rows
    std::uint64_t bytes = 0;   ///< of these
    std::uint64_t frozen = 0;  ///< of these, left over by a merge that was not finished
    std::uint64_t groups = 0;
    std::uint64_t sparse = 0;    ///< of `chunks`: most rows are free, and that is worth a merge
    std::uint64_t left_out = 0;  ///< full chunks of rows that `takes` did not take
  };
  /// Chooses what `run` will merge: of the full chunks of rows those that `takes` accepts, and
  /// those in which most rows are free, if that is worth a merge.
  Plan choose(FunctionRef<bool(std::size_t chunk)> takes) noexcept;
  /// Whether a merge may give space back: whether `choose` may find rows to leave out, or
  /// has_wasteful_columns a column. Looks at counts in DRAM only.
  bool may_give_back() const { return may_leave_out() || may_have_wasteful_columns(); }
  /// Whether queries have read the full chunks of rows, `scans` times all, since the last merge or
  /// forget_reads; 0: never.
  bool is_read_often(std::uint32_t scans) const noexcept {
    const std::uint64_t rows = full_chunks_of_rows().rows;
    return scans != 0 && rows != 0 &&
           table_.data().delta_rows_read.load(std::memory_order_relaxed) / scans >= rows;
  }
  /// Begins to count anew how often queries read.
  void forget_reads() const noexcept {
    table_.data().delta_rows_read.store(0, std::memory_order_relaxed);
  }
  /// Sweeps what opening has left of the table: finds dead rows, and checks that all rows are
  /// undamaged. run() does so as well; a caller of `choose` must call it first. Fails with
  /// kCorrupt, kCancelled.
  Status sweep();
  /// Merges what was chosen; everything if nothing was. Fails with kBusy (transactions that began
  /// earlier are still open), kOutOfSpace; what was merged until then stays merged. Running out of
  /// memory ends the process.
  Status run() noexcept;
  /// After `choose`: whether run() would rewrite a column, of those that have grown since the last
  /// check.
  bool has_wasteful_columns() const { return !wasteful_columns(false).empty(); }
  /// Frees what earlier merges kept for readers, if these have ended.
  void release_if_unread();
  /// Lets go of the texts that readers have made of compressed ones. release_if_unread frees them.
  void replace_read_texts();
  const MergeReport& report() const noexcept { return report_; }

 private:
  enum class Origin : std::uint8_t { kRows, kGroup };
  /// Whether other chunks are merged before what a chunk has freed is given back.
  enum class Beside : std::uint8_t { kNothing, kOthers };
  struct Candidate {
    std::size_t chunk;
    Origin origin;
    bool wants_row_ids = false;  ///< of a group, if all its rows are dead
    ChunkMerge::UnusedRows unused = {};
  };
  std::uint64_t dead_rows(const RowGroup& group) const;
  bool is_worth_it(const RowGroup& group, std::uint64_t dead) const;
  std::uint64_t free_rows_wanted(std::uint64_t rows) const noexcept;
  bool wants_row_ids(const RowGroup& emptied);
  void choose_group(std::size_t chunk, const RowGroup& group, Plan& plan);
  std::uint64_t used_rows(std::size_t chunk) const;
  bool is_sparse(std::size_t chunk, std::uint64_t used) const noexcept;
  /// The full chunks of rows.
  struct FullChunks {
    std::uint64_t rows = 0;
    std::uint64_t bytes = 0;
  };
  FullChunks full_chunks_of_rows() const noexcept;
  std::uint64_t bytes_of_free_rows() const noexcept;
  bool is_much_free(std::uint64_t free_rows, const FullChunks& full) const noexcept;
  void choose_chunk(std::size_t chunk, Plan& plan, std::vector<std::size_t>& sparse);
  bool may_leave_out() const;
  bool may_have_wasteful_columns() const;
  void add_sparse(const std::vector<std::size_t>& sparse, Plan& plan);
  std::uint64_t former_bytes() const noexcept;
  bool a_chunk_may_stay() const;
  std::uint64_t waste_bytes() const noexcept;
  std::vector<std::size_t> wasteful_columns(bool all) const;
  Status rewrite_columns();
  Status rewrite_the_rest();
  void release();
  void release_now_or_later();
  void freeze_candidates();
  Status merge_all();
  Status index_groups();
  std::uint32_t threads() const noexcept;
  Status merge_one(const Candidate& candidate, Beside beside);
  void note_chunk(const Status& merged, Status& first_failure);
  /// Gives back what was replaced. False: a transaction that may read it stays open.
  bool release_when_unread();
  Status merge_in_little_room(std::vector<const Candidate*> left);
  Status thaw(std::span<const Candidate* const> left);
  Status empty_when_there_is_room();
  Status make_room();
  Status find_room(bool is_refused);
  Status sweep_texts();
  bool is_room_wanted(bool is_refused) const;
  Status give_up_index_runs();
  Status give_up_records(bool is_refused);
  /// What became of one group, and of the work.
  enum class Again : std::uint8_t { kWritten, kStays, kEnds };
  Status write_again(std::size_t chunk, FunctionRef<void(ChunkMerge&)> prepare, Again& outcome);
  bool is_fragmented(bool is_refused) const;
  Status gather_free_space(bool is_refused);
  bool is_stopped() const noexcept;
  bool wait_for_transactions(std::uint64_t since);
  bool wait_patiently(std::uint64_t since) const;
  Status too_old() const;

  pmem::Pool& pool_;
  mvcc::TransactionSlots& slots_;
  Table& table_;
  RowStore& rows_;
  Mutex& ddl_mutex_;
  const MergeOptions& options_;
  const std::atomic<bool>* stop_requested_;
  const std::chrono::milliseconds patience_;
  bool has_chosen_ = false;
  std::uint64_t free_rows_left_ = 0;         // of the table, once what is chosen so far is merged
  mutable bool columns_lack_room_ = false;   // some wait, or found no room
  std::atomic<bool> has_left_texts_{false};  // in the heaps of columns, where no row has them now
  std::vector<Candidate> candidates_;
  std::vector<const Candidate*> emptied_later_;  // there was no room for a chunk of rows
  std::mutex report_mutex_;                      // protects report_, done_ and emptied_later_
  MergeReport report_;
  std::uint32_t done_ = 0;
  std::atomic<bool> stops_{false};
  Crew crew_;  // its threads have the niceness of the thread that merges
};

}  // namespace flugs::engine
