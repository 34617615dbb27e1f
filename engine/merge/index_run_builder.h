#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/crew.h"
#include "columns/index/ordered_index.h"
#include "flugs/function_ref.h"
#include "flugs/status.h"
#include "pmem/pool/pool.h"
#include "tables/data/table_data.h"
#include "tables/keys/index_runs.h"

namespace flugs::engine {

/// Writes index runs of a table's row groups, and combines earlier runs into them. No other thread
/// may merge the table meanwhile.
/// Thread-safety: one thread.
class IndexRunBuilder {
 public:
  struct Counts {
    std::uint64_t rows = 0;
    std::uint64_t bytes = 0;
  };

  /// `stops` is called now and then: true ends the work. At most `threads` of the crew gather and
  /// sort.
  IndexRunBuilder(pmem::Pool& pool, TableData& table, Crew& crew, std::uint32_t threads,
                  FunctionRef<bool()> stops);

  /// Makes runs for all groups that no run covers. Combines earlier runs into them that are not
  /// much larger; with `combines_all`, larger ones, too. Then writes the runs again that have lost
  /// many rows. A group for which there is no space stays without a run: not an error. Fails with
  /// kCorrupt.
  Status index_groups(bool combines_all);
  const Counts& counts() const noexcept { return counts_; }

 private:
  /// The gathered entries of one key, and the number of entries with those of runs.
  struct KeyParts {
    std::vector<std::uint64_t> slots;
    std::vector<columns::OrderedEntry> entries;
    std::uint64_t slots_max = 0;
    std::uint64_t entries_max = 0;
    std::uint64_t slot_count = 0;
  };

  std::vector<std::size_t> next_chunks() const;
  std::size_t first_combined(std::uint64_t rows, bool combines_all) const;
  std::size_t first_sparse() const;
  std::uint64_t rows_of(std::span<const std::size_t> chunks) const noexcept;
  bool has_room(std::span<const std::size_t> chunks) const;
  Status build_and_publish(std::span<const std::size_t> chunks, std::size_t first_combined);
  void gather(std::span<const std::size_t> chunks);
  void gather_chunk(std::size_t chunk, std::vector<KeyParts>& parts) const;
  void sort();
  void plan(std::span<const IndexRuns::Member> sources);
  std::uint64_t plan_slots(std::size_t key, std::span<const IndexRuns::Member> sources) const;
  std::uint64_t bytes_gathered() const noexcept;
  std::uint64_t bytes() const noexcept;
  void write(pmem::Extent extent, std::span<const IndexRuns::Member> sources);
  void write_slots(std::size_t key, std::span<const IndexRuns::Member> sources, std::byte* base,
                   IndexRunKeyLayout& layout) const;
  void write_entries(std::size_t key, std::span<const IndexRuns::Member> sources, std::byte* base,
                     IndexRunKeyLayout& layout) const;

  pmem::Pool& pool_;
  TableData& table_;
  const RowStore& rows_;
  Crew& crew_;
  const std::uint32_t threads_;
  FunctionRef<bool()> stops_;
  pmem::Persister persister_;
  std::vector<KeyParts> parts_;  // by key
  Counts counts_;
};

}  // namespace flugs::engine
