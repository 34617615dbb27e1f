#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "flugs/status.h"
#include "pmem/pool/pool.h"
#include "pmem/space/warm_list.h"
#include "tables/catalog/catalog_layout.h"
#include "tables/keys/index_run.h"
#include "tables/rows/chunk_set.h"
#include "tables/rows/row_store.h"

namespace flugs::engine {

/// The index runs of a table: which runs are in use, and which rows are found through them.
///
/// A run *covers* chunks, all of them row groups: each created row there has its entries in the
/// run. A run *serves* those chunks that it covered when the database was opened: their rows have
/// no entries in the DRAM indexes. A run that the merge makes later serves nothing before the next
/// opening; until then the DRAM indexes have the rows it covers. So each row is always in one of
/// the two.
///
/// A run may name rows that are gone: dropped from their group, or dead. Their `created` is 0.
/// Before the row ids of an emptied chunk are used again, the list that covers it is replaced, and
/// all transactions that may have read that list have ended. So an id from a served chunk keeps its
/// key for as long as a transaction that got the id lasts.
///
/// Thread-safety: any thread, inside a transaction (prefetch: outside, too), except loading and
/// releasing. Only the thread that merges the table changes the list.
class IndexRuns {
 public:
  struct Member {
    std::shared_ptr<const IndexRun> run;
    ChunkSet covered;
    ChunkSet served;
  };
  struct List {
    pmem::Extent extent{};  // 0 bytes: no list, and no members
    std::vector<Member> members;
    ChunkSet covered;
    ChunkSet served;
    std::vector<const Member*> serving;
  };

  IndexRuns(pmem::Pool& pool, TableLayout& layout, const RowStore& rows,
            std::vector<KeyShape> shapes, std::uint32_t key_additions, std::string owner);
  ~IndexRuns();
  IndexRuns(const IndexRuns&) = delete;
  IndexRuns& operator=(const IndexRuns&) = delete;

  /// Opening, after the rows: claims and checks the runs. Fails with kCorrupt.
  Status load();

  const List& list() const noexcept { return *list_.load(std::memory_order_acquire); }
  /// Whether the row is found through a run, and not through the DRAM indexes.
  bool serves(std::uint32_t row) const noexcept {
    const List& now = list();
    return !now.serving.empty() && now.served.has(rows_.chunk_of(row));
  }
  bool serves_any() const noexcept { return !list().serving.empty(); }
  /// At opening: whether all existing runs have the key. If not, the key uses no run.
  bool serve_key(std::size_t place) const noexcept;
  /// Calls visit(row) for each served row that may have the hash, dead rows included, until it
  /// returns true; true if one did. Visits no row twice.
  template <typename F>
  bool any(std::size_t key, std::uint64_t hash, F&& visit) const {
    for (const Member* member : list().serving)
      if (member->run->any(key, hash, [&](std::uint32_t row) {
            return is_served_by(*member, row) && is_created(row) && visit(row);
          }))
        return true;
    return false;
  }
  /// Starts loading what `any` reads first. Outside a transaction the list may go away, so the two
  /// words that prefetch needs are stored apart; if they do not match each other, the wrong line is
  /// loaded.
  void prefetch(std::size_t key, std::uint64_t hash) const noexcept {
    for (const Target& target : targets_[key].runs)
      if (const std::uint64_t* slots = target.slots.load(std::memory_order_relaxed);
          slots != nullptr)
        __builtin_prefetch(slots + IndexRun::home_of(hash >> 32, target.home_lines.load(
                                                                     std::memory_order_relaxed)));
  }
  /// Needed because a run may name rows of chunks that it does not serve, and, if damaged, rows
  /// that do not exist.
  bool is_served_by(const Member& member, std::uint32_t row) const noexcept {
    return member.served.has(rows_.chunk_of(row));
  }
  /// Whether a transaction may see the entry's row, and may compare it.
  bool is_created(std::uint32_t row) const noexcept {
    return mvcc::load_stamp(rows_.version(row).created) != mvcc::kNoStamp;
  }

  // ---------------------------------------------------------------------------------- the merge

  /// Puts `run`, which has been written and flushed through `persister`, in the place of the list's
  /// members from `first_replaced` on; it covers their chunks and `chunks`. Durable on return.
  /// Fails with kOutOfSpace, kCorrupt; then nothing has changed.
  Status publish(pmem::Extent run, std::span<const std::size_t> chunks, std::size_t first_replaced,
                 pmem::Persister& persister);
  /// Takes the chunk out of all runs, before it is emptied. Durable on return. Fails with
  /// kOutOfSpace.
  Status uncover(std::size_t chunk, pmem::Persister& persister);
  /// Takes runs out of the list that cover no row any more. Durable on return. Fails with
  /// kOutOfSpace.
  Status drop_without_rows(pmem::Persister& persister);
  /// Takes all runs that serve nothing out of the list. Durable on return. Fails with kOutOfSpace.
  Status drop_unserving(pmem::Persister& persister);
  /// Adds a key to later runs; the existing runs lack it. Call it while no merge runs.
  void add_key(std::size_t place, KeyShape shape, std::uint32_t key_additions);
  /// Leaves a key out of later runs. Call it while no merge runs.
  void drop_key(std::size_t place);
  /// Whether the run has all present keys: it was made after the last one was added.
  bool has_all_keys(const Member& member) const noexcept {
    return member.run->key_additions() == key_additions_;
  }
  bool has_key(const Member& member, std::size_t place) const noexcept {
    return !shapes_[place].is_added || has_all_keys(member);
  }
  /// Frees what `publish` and `uncover` have replaced. Call it when no transaction is left that
  /// began before.
  void release_replaced();
  bool has_replaced() const;
  /// Bytes in the pool of what release_replaced would free.
  std::uint64_t replaced_bytes() const;
  /// Notes a chunk whose row ids may be given out when no transaction is left that began before.
  void keep_emptied(std::size_t chunk);
  std::vector<std::size_t> take_emptied();

  struct Summary {
    std::uint64_t runs = 0;
    std::uint64_t bytes = 0;
  };
  /// May also be called outside a transaction.
  Summary summary() const;
  /// Called when the table is dropped: frees everything.
  void release_all();
  /// Opening: adds the pages of all runs.
  void add_pages(pmem::WarmList& pages) const {
    for (const Member& member : list().members)
      pages.add(pmem::Heat::kIndexes, member.run->extent());
  }

 private:
  struct Target {
    std::atomic<const std::uint64_t*> slots{nullptr};
    std::atomic<std::uint64_t> home_lines{0};
  };
  struct KeyTargets {
    std::array<Target, 2> runs;
  };
  struct Replaced {
    std::unique_ptr<const List> list;
    std::vector<std::shared_ptr<const IndexRun>> runs;  // runs that are in no list any more
  };

  Result<std::uint64_t> check_list(std::uint64_t offset) const;
  Status load_members(const std::uint64_t* words, List& list);
  Status check_covered(const ChunkSet& covered, const List& list) const;
  bool covers_rows(const Member& member) const noexcept;
  template <typename IsDropped>
  Status drop_if(IsDropped&& is_dropped, pmem::Persister& persister);
  Status replace_list(std::vector<Member> members, pmem::Persister& persister);
  void write_list(pmem::Extent extent, std::span<const Member> members,
                  std::size_t words_per_set) const;
  static void complete(List& list);
  std::unique_ptr<const List> put_list(std::unique_ptr<const List> list);
  Status corrupt(const std::string& what, std::uint64_t expected, std::uint64_t found) const;

  pmem::Pool& pool_;
  TableLayout& layout_;
  const RowStore& rows_;
  std::vector<KeyShape> shapes_;  // this and the next change only while no merge runs
  std::uint32_t key_additions_;
  std::string owner_;
  std::atomic<const List*> list_;
  std::array<KeyTargets, kKeysMax> targets_;  // by key
  mutable Mutex mutex_;  // protects the members below and the list; rank: before the allocator
  std::vector<Replaced> replaced_;
  std::vector<std::size_t> emptied_;
};

}  // namespace flugs::engine
