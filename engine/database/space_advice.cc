#include "engine/database/space_advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "pmem/space/extent_allocator.h"
#include "tables/table/space_estimate.h"

namespace flugs::engine {

namespace {

// The rows of all tables together. With a cache miss for each row, the look takes some
// milliseconds.
constexpr std::uint64_t kRowsLookedAt = 1u << 16;
constexpr std::chrono::milliseconds kPauseMin{1000};
constexpr int kPausePerWork = 20;
static_assert(100 / kPausePerWork <= 5);  // percent of a thread's time

struct TableSpace {
  const Table* table;
  SpaceEstimate estimate;
};

/// The tables that exist, each with an estimate that has not been made yet. Empty while another
/// thread changes the catalogue.
std::vector<TableSpace> spaces_of(Catalog& catalog, mvcc::TransactionSlots& slots) {
  const std::unique_lock guard(catalog.ddl_mutex(), std::try_to_lock);
  if (!guard.owns_lock()) return {};
  std::uint64_t rows = 0;
  for (const auto& table : catalog.all()) rows += table->rows().rows_end();
  const auto step = static_cast<std::uint32_t>(rows / kRowsLookedAt + 1);
  std::vector<TableSpace> spaces;
  for (const auto& table : catalog.all())
    if (!table->is_dropped())
      spaces.push_back({table.get(), SpaceEstimate(table->data(), slots, step)});
  return spaces;
}

/// The table for which `bytes` gives most, and the sum of all.
template <typename Bytes>
std::pair<const Table*, std::uint64_t> most_of(const std::vector<TableSpace>& spaces,
                                               Bytes&& bytes) {
  const Table* most = nullptr;
  std::uint64_t largest = 0;
  std::uint64_t sum = 0;
  for (const TableSpace& space : spaces) {
    const std::uint64_t of_table = bytes(space);
    sum += of_table;
    if (of_table <= largest) continue;
    largest = of_table;
    most = space.table;
  }
  return {most, sum};
}

}  // namespace

Status SpaceAdvice::complete(const Status& why) {
  if (!pmem::is_lack_of_bytes(why)) return why;
  return why.with_message(std::string(why.message()) + text());
}

// A thread that comes while another one makes the text gets the text before.
std::string SpaceAdvice::text() {
  const std::unique_lock working(work_mutex_, std::try_to_lock);
  if (working.owns_lock() && Clock::now() >= next_work_) {
    const Clock::time_point begun = Clock::now();
    std::string made = make_text();
    const Clock::time_point ended = Clock::now();
    next_work_ = ended + std::max<Clock::duration>(kPauseMin, kPausePerWork * (ended - begun));
    const std::lock_guard guard(text_mutex_);
    text_ = std::move(made);
  }
  const std::lock_guard guard(text_mutex_);
  return text_;
}

std::string SpaceAdvice::make_text() {
  std::vector<TableSpace> spaces = spaces_of(catalog_, transactions_.slots());
  for (TableSpace& space : spaces) space.estimate.count_rows();
  {
    const std::unique_lock guard(catalog_.ddl_mutex(), std::try_to_lock);
    if (!guard.owns_lock()) return {};
    for (TableSpace& space : spaces) space.estimate.count_columns();
  }
  std::string text;
  const auto [given, given_bytes] =
      most_of(spaces, [](const TableSpace& s) { return s.estimate.result().bytes(); });
  if (given != nullptr)
    text += fmt::format(
        "; by estimate a merge of all tables (MergeScope::kEverything) would give "
        "back {} bytes, most of them of table {}",
        given_bytes, given->name());
  const auto [unmerged, unmerged_bytes] =
      most_of(spaces, [](const TableSpace& s) { return s.table->rows().delta_bytes(); });
  if (unmerged != nullptr)
    text += fmt::format("; a merge would pack {} bytes of rows, most of them of table {}",
                        unmerged_bytes, unmerged->name());
  const auto [kept, kept_bytes] =
      most_of(spaces, [](const TableSpace& s) { return s.estimate.result().bytes_kept(); });
  if (kept != nullptr) text += transaction_text(kept_bytes, kept->name());
  return text;
}

// Names the oldest transaction in the words of Merger::may_merge.
std::string SpaceAdvice::transaction_text(std::uint64_t kept_bytes, const std::string& table) {
  const mvcc::TransactionSlots::Oldest oldest = transactions_.slots().oldest_transaction();
  const std::uint64_t now = transactions_.slots().now();
  const std::vector<TransactionInfo> open = transactions_.open();
  const auto found = std::find_if(open.begin(), open.end(), [&](const TransactionInfo& info) {
    return info.slot == oldest.slot;
  });
  if (found == open.end() || oldest.snapshot >= now) return {};  // it has ended meanwhile
  std::string age;
  if (found->open.count() != 0)
    age = fmt::format(", at least {:.1f} s", static_cast<double>(found->open.count()) * 1e-3);
  return fmt::format(
      "; the transaction in slot {} ({}) began at snapshot {}, {} time-stamps{} ago, and keeps "
      "about {} bytes of deleted or replaced rows, most of them of table {}: end it, then merge",
      oldest.slot, found->id.value(), oldest.snapshot, now - oldest.snapshot, age, kept_bytes,
      table);
}

}  // namespace flugs::engine
