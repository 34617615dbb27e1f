#include "tables/keys/run_walk.h"

#include <algorithm>

#include "base/check.h"

namespace flugs::engine {

namespace {

// How far a walk looks ahead at most. Looking ahead saves comparing each entry with the upper
// bound.
constexpr std::size_t kLookaheadMax = 64;

}  // namespace

RunWalk::RunWalk(const IndexRuns& runs, std::size_t key,
                 const columns::OrderedIndexCompare& compare, bool descending,
                 std::uint64_t first_prefix, Probe probe)
    : runs_(runs), compare_(compare), descending_(descending), probe_(probe) {
  const IndexRuns::List& list = runs.list();
  cursors_.reserve(list.serving.size());
  for (const IndexRuns::Member* member : list.serving) {
    Cursor cursor{member, member->run->prefixes(key), member->run->ordered_rows(key), descending};
    FLUGS_CHECK(cursor.prefixes.size() == cursor.rows.size());
    cursor.at = first_position(cursor, key, first_prefix);
    cursor.inside_end = cursor.at;
    cursor.end = cursor.rows.size();
    settle(cursor);
    if (!cursor.is_at_end()) cursors_.push_back(cursor);
  }
}

// Ask first whether the run serves the row: otherwise the row may not exist.
bool RunWalk::is_alive(const Cursor& cursor, std::size_t i) const noexcept {
  return runs_.is_served_by(*cursor.member, cursor.row(i)) && runs_.is_created(cursor.row(i));
}

// The first position from which on no living entry is before the bounds. An entry that is gone has
// nothing but its prefix to compare: the nearest living entry before it decides.
std::size_t RunWalk::first_position(const Cursor& cursor, std::size_t key,
                                    std::uint64_t first_prefix) const {
  const std::size_t size = cursor.rows.size();
  const auto not_below = [&](std::uint64_t prefix) {
    return cursor.member->run->first_not_below(key, prefix);
  };
  constexpr std::uint64_t kGreatest = ~std::uint64_t{0};
  std::size_t first = !descending_                ? not_below(first_prefix)
                      : first_prefix == kGreatest ? 0
                                                  : size - not_below(first_prefix + 1);
  std::size_t end = first;
  const auto is_before = [&](std::size_t from, std::size_t i) {
    for (std::size_t k = i + 1; k > from; --k)
      if (is_alive(cursor, k - 1)) return probe_(cursor.entry(k - 1)) < 0;
    return true;
  };
  // Mostly this position is right: try near it before searching the rest.
  for (std::size_t step = 1; end < size && is_before(first, end); step *= 2) {
    first = end + 1;
    end = std::min(size, end + step);
  }
  while (first < end) {
    const std::size_t middle = first + (end - first) / 2;
    if (is_before(first, middle)) {
      first = middle + 1;
    } else {
      end = middle;
    }
  }
  return first;
}

// Moves on to the first living entry, or to the end if that entry is behind the bounds. Each time
// it looks ahead twice as far, up to entries that it knows to be behind.
void RunWalk::settle(Cursor& cursor) const {
  for (;;) {
    while (!cursor.is_at_end() && !is_alive(cursor, cursor.at)) ++cursor.at;
    if (cursor.is_at_end() || cursor.at < cursor.inside_end) return;
    std::size_t ahead = std::min(cursor.at + cursor.lookahead, cursor.end) - 1;
    if (!is_alive(cursor, ahead)) ahead = cursor.at;
    if (probe_(cursor.entry(ahead)) == 0) {
      cursor.inside_end = ahead + 1;
      cursor.lookahead = std::min(2 * cursor.lookahead, kLookaheadMax);
      return;
    }
    cursor.end = ahead;
    cursor.lookahead = std::max<std::size_t>(cursor.lookahead / 4, 1);
  }
}

bool RunWalk::visit_before(const columns::OrderedEntry* limit, Visit visit) {
  for (;;) {
    Cursor* next = nullptr;
    for (Cursor& cursor : cursors_)
      if (!cursor.is_at_end() &&
          (next == nullptr || precedes(cursor.entry(cursor.at), next->entry(next->at))))
        next = &cursor;
    if (next == nullptr) return true;
    const columns::OrderedEntry entry = next->entry(next->at);
    if (limit != nullptr && !precedes(entry, *limit)) return true;
    ++next->at;
    settle(*next);
    if (!visit(entry)) return false;
  }
}

}  // namespace flugs::engine
