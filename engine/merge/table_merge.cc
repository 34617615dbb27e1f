#include "engine/merge/table_merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "base/check.h"
#include "base/elapsed.h"
#include "base/long_call.h"
#include "base/processors.h"
#include "engine/merge/index_run_builder.h"
#include "pmem/medium/scm_reads.h"
#include "tables/data/table_hints.h"
#include "tables/rows/space_reserve.h"

namespace flugs::engine {

namespace {

constexpr std::chrono::microseconds kLookPauseMin{100};
constexpr std::chrono::microseconds kLookPauseMax{2000};
constexpr std::chrono::milliseconds kPatienceMax = std::chrono::hours(24 * 365);

// Adds space for the unfilled ends of chunks in a column's new heap, and for texts written
// meanwhile.
std::uint64_t with_reserve(std::uint64_t bytes) noexcept { return bytes + bytes / 4; }

}  // namespace

TableMerge::TableMerge(pmem::Pool& pool, mvcc::TransactionSlots& slots, Table& table,
                       Mutex& ddl_mutex, const MergeOptions& options,
                       const std::atomic<bool>* stops)
    : pool_(pool),
      slots_(slots),
      table_(table),
      rows_(table.rows()),
      ddl_mutex_(ddl_mutex),
      options_(options),
      stop_requested_(stops),
      patience_(std::clamp<std::chrono::milliseconds>(options.patience, {}, kPatienceMax)) {
  FLUGS_CHECK(options.dead_percent >= 1 && options.dead_percent <= 100);
  FLUGS_CHECK(options.waste_percent >= 1 && options.waste_percent <= 100);
}

std::uint64_t TableMerge::waste_bytes() const noexcept {
  return ColumnReclaim::waste_bytes(options_, pool_.medium().bytes());
}

// A chunk without rows is merged for the cells of a former edition that owns at least this many
// bytes; in a merge of everything, however few.
std::uint64_t TableMerge::former_bytes() const noexcept {
  return options_.scope == MergeScope::kEverything ? 0 : waste_bytes();
}

// Columns that own much that no row needs, if there is space for a second copy of their texts:
// otherwise the merge would end half-way and leave the pool full. What the merge writes for a chunk
// finds its place when the chunk before has been given back (merge_in_little_room). Without `all`,
// only columns that have grown since the last check, or have the space now.
std::vector<std::size_t> TableMerge::wasteful_columns(bool all) const {
  FLUGS_DCHECK(std::ranges::is_sorted(candidates_, {}, &Candidate::chunk));
  const auto is_merged = [&](std::size_t chunk) {
    return std::ranges::binary_search(candidates_, chunk, {}, &Candidate::chunk);
  };
  const pmem::SpaceReport space = pool_.allocator().space();
  const std::uint64_t free = space.left_bytes();
  std::uint64_t copied = 0;
  std::uint64_t gained = 0;
  std::vector<std::size_t> wasteful;
  for (std::size_t i = 0; i < table_.columns().size(); ++i) {
    if (table_.columns()[i]->is_dropped()) continue;
    const std::uint64_t bytes = table_.column_reclaim().bytes_of_column(i);
    if (bytes == 0 || bytes < waste_bytes()) continue;
    if (!table_.reclaim_checks().take(i, bytes, free) && !all) continue;
    const std::uint64_t needed = table_.column_reclaim().bytes_needed(i, slots_, is_merged);
    if (needed > bytes || (bytes - needed) * 100 < bytes * options_.waste_percent) continue;
    const std::uint64_t copies = table_.column_reclaim().bytes_copied(i, slots_);
    const std::uint64_t wanted = with_reserve(copied + copies);
    if (wanted > free) {
      table_.reclaim_checks().note_no_room(i, wanted);
      columns_lack_room_ = true;
      continue;
    }
    copied += copies;
    gained += bytes - needed;
    wasteful.push_back(i);
  }
  if (!table_.data().has_texts() || !is_room_short(space)) {
    table_.reclaim_checks().end_put_off();
    return wasteful;
  }
  // If columns begin anew, all chunks become groups: their free rows are gone, and new rows are
  // wider.
  if (gained < 2 * bytes_of_free_rows()) return {};
  // A chunk that stays would keep the present data beside the new.
  const bool may_wait = !wasteful.empty() && a_chunk_may_stay();
  if (may_wait && table_.reclaim_checks().put_off(space.refusals)) {
    columns_lack_room_ = true;
    return {};
  }
  return wasteful;
}

// Whether the group of a chunk of rows could be larger than the chunk, which may then stay as it
// is. A row is counted with its largest cells.
bool TableMerge::a_chunk_may_stay() const {
  constexpr std::uint64_t kTextCellBytes = 16;
  std::uint64_t row_bytes = 0;
  for (const columns::Column* column : table_.columns())
    if (!column->is_dropped())
      row_bytes += column->is_text() ? kTextCellBytes : facts_of(column->type()).payload_bits / 8;
  for (std::size_t chunk = 0; chunk < rows_.full_chunks(); ++chunk)
    if (rows_.group(chunk) == nullptr && used_rows(chunk) * row_bytes > rows_.bytes_of_chunk(chunk))
      return true;
  return false;
}

bool TableMerge::may_have_wasteful_columns() const {
  const std::uint64_t free = pool_.allocator().space().left_bytes();
  for (std::size_t i = 0; i < table_.columns().size(); ++i) {
    if (table_.columns()[i]->is_dropped()) continue;
    const std::uint64_t bytes = table_.column_reclaim().bytes_of_column(i);
    if (bytes != 0 && bytes >= waste_bytes() && table_.reclaim_checks().is_due(i, bytes, free))
      return true;
  }
  return false;
}

// The present data of these columns becomes that of a former edition, which goes when no row needs
// it any more. So the merge takes all chunks with cells of it, and groups with its texts.
Status TableMerge::rewrite_columns() {
  const std::vector<std::size_t> wasteful = wasteful_columns(true);
  if (wasteful.empty()) return {};
  {
    const std::lock_guard guard(ddl_mutex_);
    if (is_stopped()) return too_old();
    for (const std::size_t i : wasteful) {
      if (table_.columns()[i]->is_dropped()) continue;
      // A failure leaves the column as it is: there may be space for the merge alone; rows may get
      // too large for the column's values; or the column may have used up its editions.
      const Status rewritten = table_.column_reclaim().rewrite_column(i);
      if (rewritten.ok()) ++report_.columns_rewritten;
      columns_lack_room_ |= rewritten.code() == StatusCode::kOutOfSpace;
    }
    table_.note_readers_of_replaced(slots_.advance());
  }
  if (report_.columns_rewritten == 0) return {};
  table_.reclaim_checks().end_put_off();
  rows_.close_former_tail();
  std::vector<Candidate> chosen = std::exchange(candidates_, {});
  auto next = chosen.begin();
  for (std::size_t chunk = 0; chunk < rows_.full_chunks(); ++chunk) {
    if (next != chosen.end() && next->chunk == chunk) {
      candidates_.push_back(std::move(*next++));
    } else if (table_.column_reclaim().keeps_former(chunk, former_bytes())) {
      const bool is_group = rows_.group(chunk) != nullptr;
      candidates_.push_back({chunk, is_group ? Origin::kGroup : Origin::kRows});
    }
  }
  return {};
}

// A merge of everything begins columns anew that found no room for that before its chunks were
// merged, or whose texts are compressed in groups now, and takes the chunks that need the columns'
// former data once more. A transaction that stays open for too long ends this step early, without
// an error.
Status TableMerge::rewrite_the_rest() {
  const bool lacked_room = std::exchange(columns_lack_room_, false);
  if (has_left_texts_.exchange(false, std::memory_order_relaxed)) {
    table_.reclaim_checks().forget();
  } else if (!lacked_room) {
    return {};
  }
  if (options_.scope != MergeScope::kEverything || !table_.has_replaced()) return {};
  if (!release_when_unread()) return is_stopped() ? too_old() : Status();
  candidates_.clear();
  const std::uint32_t before = report_.columns_rewritten;
  if (Status renewed = rewrite_columns(); !renewed.ok()) return renewed;
  if (report_.columns_rewritten == before || candidates_.empty()) return {};
  done_ = 0;
  freeze_candidates();
  if (!wait_for_transactions(slots_.advance()) || !wait_for_transactions(slots_.advance()))
    return is_stopped() ? too_old() : Status();
  return merge_all();
}

void TableMerge::release() {
  table_.release_replaced();
  if (table_.column_reclaim().has_left_over()) {
    // Else nothing would be given back while a thread makes indexes that opening has left.
    if (options_.scope == MergeScope::kEverything) table_.index_build().wait();
    const std::lock_guard guard(ddl_mutex_);
    if (!is_stopped())
      report_.bytes_given_back += table_.column_reclaim().release_former_editions();
  }
  pool_.allocator().give_back(pmem::Slack::kSome);
}

// Gives back what was replaced, if the transactions that may read it end in time.
void TableMerge::release_now_or_later() {
  const std::uint64_t ended = slots_.advance();
  table_.note_readers_of_replaced(ended);
  report_.releases_later = !wait_for_transactions(ended);
  if (!report_.releases_later) release();
}

void TableMerge::replace_read_texts() {
  if (table_.replace_read_texts()) table_.note_readers_of_replaced(slots_.advance());
}

void TableMerge::release_if_unread() {
  const bool has_any = table_.has_replaced() || table_.column_reclaim().has_left_over();
  if (has_any && slots_.oldest_snapshot() >= table_.replaced_readers_before()) release();
}

bool TableMerge::is_stopped() const noexcept {
  return table_.is_dropped() || options_.stop.stop_requested() ||
         (stop_requested_ != nullptr && stop_requested_->load(std::memory_order_relaxed));
}

// Waits until no transaction that began before `since` is left.
bool TableMerge::wait_for_transactions(std::uint64_t since) {
  if (wait_patiently(since)) return true;
  if (!options_.ends_old_transactions || is_stopped()) return false;
  report_.transactions_asked_to_end += slots_.open_before(since);
  slots_.ask_to_end(since);
  return wait_patiently(since);
}

// Pauses between looks, as each look interrupts the other processors.
bool TableMerge::wait_patiently(std::uint64_t since) const {
  const auto deadline = std::chrono::steady_clock::now() + patience_;
  auto pause = kLookPauseMin;
  while (slots_.oldest_snapshot() < since) {
    slots_.catch_up(since);
    if (std::chrono::steady_clock::now() >= deadline || is_stopped()) return false;
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLookPauseMax);
  }
  return true;
}

Status TableMerge::too_old() const {
  if (options_.stop.stop_requested()) return stopped_by_caller("table " + table_.name());
  if (is_stopped())
    return Status(StatusCode::kCancelled, SchemaPart::of(table_.name()),
                  "the table was dropped, or the database is being closed");
  const mvcc::TransactionSlots::Oldest oldest = slots_.oldest_transaction();
  const char* const asked =
      options_.ends_old_transactions
          ? "; it was asked to end, but has made no call since"
          : "; end it, wait for longer (patience), or set ends_old_transactions";
  return Status(StatusCode::kBusy, SchemaPart::of(table_.name()),
                fmt::format("a transaction that began at snapshot {}, before the merge, is still "
                            "open: slot {}, {} time-stamps behind{}",
                            oldest.snapshot, oldest.slot, slots_.now() - oldest.snapshot, asked));
}

void TableMerge::freeze_candidates() {
  const MergeRecord::Work work(table_.merge_record());
  for (Candidate& candidate : candidates_) {
    rows_.freeze(candidate.chunk);
    candidate.unused = ChunkMerge::find_unused(slots_, rows_, candidate.chunk);
  }
  table_.free_rows().forget(
      [&](std::uint32_t row) { return rows_.layout_to_write(row) == nullptr; });
}

Status TableMerge::sweep() {
  if (Status built = table_.index_build().build(DeferredIndexes::kKeyIndexes); !built.ok())
    return built;
  while (table_.row_sweep().sweep_more())
    if (is_stopped()) return too_old();
  if (Status swept = table_.row_sweep().sweep_all(); !swept.ok()) return swept;
  // A group has a checksum of its own: damaged data must not get a valid one.
  while (check_more_entries(table_.data(), table_.index_build().mutex()))
    if (is_stopped()) return too_old();
  return check_hints(table_.data(), table_.index_build().mutex());
}

Status TableMerge::run() noexcept {
  const auto start = std::chrono::steady_clock::now();
  if (Status swept = sweep(); !swept.ok()) return swept;
  if ((table_.has_replaced() || table_.column_reclaim().has_left_over()) &&
      wait_for_transactions(slots_.advance()))
    release();
  {
    const MergeRecord::Work work(table_.merge_record());
    if (!has_chosen_) choose([](std::size_t) { return true; });
    if (Status renewed = rewrite_columns(); !renewed.ok()) return renewed;
  }
  Status merged;
  if (!candidates_.empty()) {
    freeze_candidates();
    const auto frozen = std::chrono::steady_clock::now();
    // First wait for transactions that may still begin a row in a frozen chunk. Their last commits
    // are above the snapshots of some transactions that are open. So wait for those, too: then
    // every snapshot has these commits.
    if (!wait_for_transactions(slots_.advance()) || !wait_for_transactions(slots_.advance()))
      return too_old();
    report_.wait_us = microseconds_since(frozen);
    merged = merge_all();
  }
  if (merged.ok()) merged = rewrite_the_rest();
  if (merged.ok()) merged = index_groups();
  if (!candidates_.empty() || report_.index_rows != 0 || report_.columns_rewritten != 0 ||
      table_.runs().has_replaced()) {
    const auto released = std::chrono::steady_clock::now();
    release_now_or_later();
    report_.wait_us += microseconds_since(released);
  }
  if (options_.scope == MergeScope::kEverything) {
    if (merged.ok() && !report_.releases_later) merged = make_room();
  }
  if (merged.ok()) forget_reads();
  report_.merge_us = microseconds_since(start);
  return merged;
}

std::uint32_t TableMerge::threads() const noexcept {
  return options_.threads != 0 ? options_.threads : processors();
}

Status TableMerge::index_groups() {
  const MergeRecord::Work work(table_.merge_record());
  const auto start = std::chrono::steady_clock::now();
  const auto stops = [this] { return is_stopped() || stops_.load(std::memory_order_relaxed); };
  pmem::Persister persister(pool_.medium());
  if (Status s = table_.runs().drop_without_rows(persister);
      !s.ok() && s.code() != StatusCode::kOutOfSpace)
    return s;
  IndexRunBuilder builder(pool_, table_.data(), crew_, threads(), stops);
  Status indexed = builder.index_groups(options_.scope == MergeScope::kEverything);
  report_.index_rows = builder.counts().rows;
  report_.index_bytes = builder.counts().bytes;
  report_.index_us = microseconds_since(start);
  return indexed;
}

// Counts a chunk that was merged, or could not be. Under report_mutex_.
void TableMerge::note_chunk(const Status& merged, Status& first_failure) {
  if (merged.code() == StatusCode::kBusy) {
    ++report_.chunks_busy;
  } else if (!merged.ok()) {
    if (first_failure.ok()) first_failure = merged;
    stops_.store(true, std::memory_order_relaxed);
  }
  ++done_;
  FLUGS_DCHECK(done_ <= candidates_.size());
  if (options_.progress) options_.progress({"merge", done_, candidates_.size()});
}

Status TableMerge::merge_all() {
  const MergeRecord::Work work(table_.merge_record());
  Status first_failure;
  std::vector<const Candidate*> left;  // for lack of room; under report_mutex_
  const auto merge = [&](const Candidate& candidate) {
    if (stops_.load(std::memory_order_relaxed) || is_stopped()) return;
    {
      const std::lock_guard guard(report_mutex_);
      if (!left.empty()) return left.push_back(&candidate);
    }
    const Status s = merge_one(candidate, Beside::kOthers);
    const std::lock_guard guard(report_mutex_);
    if (s.code() == StatusCode::kOutOfSpace) return left.push_back(&candidate);
    note_chunk(s, first_failure);
  };
  table_.merge_record().set_moving(true);
  crew_.for_each(threads(), candidates_.size(), [&](std::size_t i) { merge(candidates_[i]); });
  if (first_failure.ok()) first_failure = merge_in_little_room(std::move(left));
  if (first_failure.ok()) first_failure = empty_when_there_is_room();
  table_.merge_record().set_moving(false);
  if (first_failure.ok() && done_ < candidates_.size() && options_.stop.stop_requested())
    return too_old();
  return first_failure;
}

bool TableMerge::release_when_unread() {
  if (is_stopped() || !wait_for_transactions(slots_.advance())) return false;
  release();
  return true;
}

Status TableMerge::merge_one(const Candidate& candidate, Beside beside) {
  pmem::begin_scm_task();
  ChunkMerge merge(pool_, slots_, table_.data(), candidate.chunk, candidate.unused);
  if (candidate.wants_row_ids) merge.want_row_ids();
  if (table_.column_reclaim().keeps_former(candidate.chunk, 1)) merge.gives_former_back();
  if (beside == Beside::kOthers) {
    merge.spare_deletions();
  } else {
    merge.may_omit_records();
  }
  if (Status s = merge.run(patience_); !s.ok()) {
    // The group stays: it takes no space, and a chunk of free rows would need some.
    if (!merge.is_empty() || s.code() != StatusCode::kOutOfSpace) return s;
    const std::lock_guard guard(report_mutex_);
    emptied_later_.push_back(&candidate);
    return {};
  }
  if (merge.is_empty()) table_.runs().keep_emptied(candidate.chunk);
  if (merge.leaves_texts()) has_left_texts_.store(true, std::memory_order_relaxed);
  const ChunkMerge::Counts& counts = merge.counts();
  const std::lock_guard guard(report_mutex_);
  if (merge.is_empty()) {
    ++report_.chunks_emptied;
  } else if (candidate.origin == Origin::kGroup) {
    ++report_.groups_merged;
  } else {
    ++report_.chunks_merged;
  }
  report_.rows += counts.rows;
  report_.codes += std::uint64_t{counts.rows} * table_.columns().size();
  report_.rows_dropped += counts.dropped;
  report_.bytes_before += counts.bytes_before;
  report_.bytes_after += counts.bytes_after;
  report_.build_cpu_us += counts.build_us;
  report_.longest_move_us = std::max(report_.longest_move_us, counts.move_us);
  return {};
}

}  // namespace flugs::engine
