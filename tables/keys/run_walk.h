#pragma once

#include <cstdint>
#include <vector>

#include "columns/index/ordered_index.h"
#include "flugs/function_ref.h"
#include "tables/keys/index_runs.h"

namespace flugs::engine {

/// The entries of an ordered key in the runs that serve rows, between two bounds, in the order of
/// OrderedIndex: the part of a walk that the DRAM index does not have. It leaves out rows that are
/// gone, because these must not be compared.
/// Thread-safety: one thread, inside a transaction.
class RunWalk {
 public:
  using Probe = columns::OrderedIndex::Probe;
  using Visit = columns::OrderedIndex::Visit;

  /// The walk goes up or down, and begins at `first_prefix`: no entry whose prefix comes earlier on
  /// the way is inside of the bounds. `probe` places entries on the way (<0: before the bounds, 0:
  /// inside, >0: behind), and must outlive the object.
  RunWalk(const IndexRuns& runs, std::size_t key, const columns::OrderedIndexCompare& compare,
          bool descending, std::uint64_t first_prefix, Probe probe);

  /// Visits and removes the entries before `limit`; all that are left if it is null. False when
  /// `visit` returned false.
  bool visit_before(const columns::OrderedEntry* limit, Visit visit);

 private:
  /// A position in a run. Positions count along the way: downwards, 0 is the last entry.
  struct Cursor {
    const IndexRuns::Member* member;
    std::span<const std::uint64_t> prefixes;
    std::span<const std::uint32_t> rows;
    bool descending = false;
    std::size_t at = 0;
    std::size_t inside_end = 0;  // entries before it are inside of the bounds
    std::size_t end = 0;         // entries from here on are behind the bounds
    std::size_t lookahead = 1;

    std::size_t place(std::size_t i) const noexcept { return descending ? rows.size() - 1 - i : i; }
    std::uint32_t row(std::size_t i) const noexcept { return rows[place(i)]; }
    columns::OrderedEntry entry(std::size_t i) const noexcept {
      return {prefixes[place(i)], row(i)};
    }
    bool is_at_end() const noexcept { return at >= end; }
  };

  bool is_alive(const Cursor& cursor, std::size_t i) const noexcept;
  bool precedes(const columns::OrderedEntry& a, const columns::OrderedEntry& b) const {
    return descending_ ? columns::precedes(&compare_, b, a) : columns::precedes(&compare_, a, b);
  }
  std::size_t first_position(const Cursor& cursor, std::size_t key,
                             std::uint64_t first_prefix) const;
  void settle(Cursor& cursor) const;

  const IndexRuns& runs_;
  const columns::OrderedIndexCompare& compare_;
  const bool descending_;
  Probe probe_;
  std::vector<Cursor> cursors_;
};

}  // namespace flugs::engine
