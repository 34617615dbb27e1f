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

  /// `probe` is that of OrderedIndex::scan, and must outlive the object.
  RunWalk(const IndexRuns& runs, std::size_t key, const columns::OrderedIndexCompare& compare,
          std::uint64_t lower_prefix, Probe probe);

  /// Visits and removes the entries before `limit`; all that are left if it is null. False when
  /// `visit` returned false.
  bool visit_before(const columns::OrderedEntry* limit, Visit visit);

 private:
  /// A position in a run.
  struct Cursor {
    const IndexRuns::Member* member;
    std::span<const std::uint64_t> prefixes;
    std::span<const std::uint32_t> rows;
    std::size_t at = 0;
    std::size_t inside_end = 0;  // entries before it are inside of the bounds
    std::size_t end = 0;         // entries from here on are behind the bounds
    std::size_t lookahead = 1;

    columns::OrderedEntry entry(std::size_t i) const noexcept { return {prefixes[i], rows[i]}; }
    bool is_at_end() const noexcept { return at >= end; }
  };

  bool is_alive(const Cursor& cursor, std::size_t i) const noexcept;
  std::size_t lower_bound(const Cursor& cursor, std::size_t key, std::uint64_t lower_prefix) const;
  void settle(Cursor& cursor) const;

  const IndexRuns& runs_;
  const columns::OrderedIndexCompare& compare_;
  Probe probe_;
  std::vector<Cursor> cursors_;
};

}  // namespace flugs::engine
