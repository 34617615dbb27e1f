#include "tables/transactions/write_list.h"

#include <span>

#include "base/check.h"

namespace flugs::engine {

namespace {

// How many of the latest writes are searched for a row that is written again.
constexpr std::size_t kWritesLookedThrough = 64;

}  // namespace

// Nothing waits for these flushes, so most are done when the commit comes. Any line may reach the
// medium at any time, so these flushes promise nothing. A line that changes until the commit is
// flushed again (RowWriter::update_in_place).
void WriteList::flush_ahead(mvcc::Slot& slot) noexcept {
  FLUGS_DCHECK(flushed_ahead_ <= writes_.size());
  mvcc::Commit::flush_ahead(slot, std::span(writes_).subspan(flushed_ahead_));
  flushed_ahead_ = writes_.size();
}

bool WriteList::has_inserted_since(std::size_t first, std::uint32_t table,
                                   std::uint32_t row) const noexcept {
  const std::size_t looked_from =
      std::max(first, writes_.size() - std::min(writes_.size(), kWritesLookedThrough));
  return std::any_of(
      writes_.begin() + static_cast<std::ptrdiff_t>(std::min(looked_from, writes_.size())),
      writes_.end(),
      [&](const mvcc::Write& w) { return !w.deletes && w.table == table && w.row == row; });
}

}  // namespace flugs::engine
