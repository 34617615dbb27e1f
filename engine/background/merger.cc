#include "engine/background/merger.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/thread.h"
#include "mvcc/visibility.h"

namespace flugs::engine {

namespace {

// Looks at one row in this many of a chunk: in 64 K wide rows a 64th of the lines would be enough
// to tell one percent from none. Small chunks are read completely.
constexpr std::uint32_t kRowsPerSample = 16;
constexpr std::uint32_t kSampledRowsMin = 4096;
// How soon a writer that has reached the bound gets help, whatever the interval.
constexpr std::chrono::milliseconds kHelpPause{20};
constexpr std::chrono::milliseconds kHelpAgainPause{500};
constexpr std::chrono::milliseconds kNothingToWatchPause = std::chrono::hours(1);
constexpr std::chrono::milliseconds kFailurePauseMax = std::chrono::minutes(1);
constexpr std::chrono::milliseconds kStartPauseMin{1000};
// Bytes of quiet chunks that are merged because queries read the delta often. A smaller delta
// hardly slows queries.
constexpr std::uint64_t kOftenReadBytes = std::uint64_t{8} << 20;

/// A pause that doubles after each failure.
std::chrono::milliseconds pause_after(std::uint32_t failures, std::chrono::milliseconds interval) {
  constexpr std::uint32_t kDoublingsMax = 12;
  static_assert(kDoublingsMax < 63);  // bits of the factor
  const auto longer = interval * (std::int64_t{1} << std::min(failures, kDoublingsMax));
  return std::max(interval, std::min<std::chrono::milliseconds>(longer, kFailurePauseMax));
}

// When a write was refused, a merge that gives back little is worth it as well.
MergeOptions options_of(const MergePolicy& policy, bool is_refused) {
  constexpr std::uint32_t kDeadPercentWhenRefused = 5;
  MergeOptions options;
  options.scope = is_refused ? MergeScope::kEverything : MergeScope::kFullChunks;
  options.dead_percent =
      is_refused ? std::min(policy.dead_percent, kDeadPercentWhenRefused) : policy.dead_percent;
  options.waste_bytes = is_refused ? 0 : policy.waste_bytes;
  options.waste_percent = policy.waste_percent;
  options.threads = policy.threads;
  options.patience = policy.patience;
  options.ends_old_transactions = policy.ends_old_transactions;
  return options;
}

// States that a table is not merged for its size, nor for the space that it would give back.
void set_small(MergeRecord& record, const MergePolicy& policy, const std::string& what) {
  if (policy.delta_bytes == MergePolicy().delta_bytes)
    return record.set_state(MergeState::kNothingToMerge,
                            what + ", and a merge would give little space back");
  record.set_state(MergeState::kDeltaSmall,
                   fmt::format("{}, a merge needs {} bytes", what, policy.delta_bytes));
}

}  // namespace

Merger::Merger(pmem::Pool& pool, mvcc::TransactionSlots& slots, Mutex& ddl_mutex,
               EventQueue& events, std::function<void()> reclaim_dead_rows, std::uint32_t niceness)
    : pool_(pool),
      slots_(slots),
      ddl_mutex_(ddl_mutex),
      events_(events),
      reclaim_dead_rows_(std::move(reclaim_dead_rows)),
      niceness_(niceness) {}

Merger::~Merger() { stops_.store(true, std::memory_order_relaxed); }

void Merger::watch(Table& table, const MergePolicy& policy) {
  FLUGS_CHECK(MergeRecord::check(policy).ok());
  table.set_merge_policy(policy);
  {
    const std::lock_guard guard(mutex_);
    FLUGS_DCHECK(std::ranges::find(watched_, &table, [](const auto& watched) {
                   return watched->table;
                 }) == watched_.end());
    watched_.push_back(std::make_unique<Watched>(Watched{&table}));
    is_changed_ = true;
  }
  if (policy.automatic) start();
}

Status Merger::set_policy(Table& table, const MergePolicy& policy) {
  if (Status s = MergeRecord::check(policy); !s.ok()) return s;
  table.set_merge_policy(policy);
  {
    const std::lock_guard guard(mutex_);
    for (const auto& watched : watched_)
      if (watched->table == &table) watched->is_new = true;
    is_changed_ = true;
  }
  changed_.notify_one();
  if (policy.automatic) start();
  return {};
}

// If the thread cannot start, report it in merge_status and retry; do not fail the caller.
void Merger::start() noexcept {
  const std::lock_guard guard(mutex_);
  if (thread_.joinable()) return changed_.notify_one();
  if (Clock::now() < next_start_) return;
  Result<std::jthread> started =
      start_thread("flugs-merge", [this](const std::stop_token& stop) { run(stop); });
  wants_thread_.store(!started.ok(), std::memory_order_relaxed);
  if (started.ok()) {
    thread_ = *std::move(started);
    return;
  }
  start_pause_ =
      std::clamp<std::chrono::milliseconds>(2 * start_pause_, kStartPauseMin, kFailurePauseMax);
  next_start_ = Clock::now() + start_pause_;
  for (const auto& watched : watched_) {
    MergeRecord& record = watched->table->merge_record();
    if (!record.policy().automatic) continue;
    record.note_failure(started.status());
    record.set_state(MergeState::kFailed, started.status().to_string());
  }
  events_.post({.kind = EventKind::kBackgroundFailed,
                .text = "the thread that merges by policy could not be started",
                .status = started.status()});
}

void Merger::run(const std::stop_token& stop) noexcept {
  // On Linux this is for the thread alone, and limited to the lowest priority.
  const int niceness = ::getpriority(PRIO_PROCESS, 0) + static_cast<int>(niceness_);
  if (niceness_ != 0) ::setpriority(PRIO_PROCESS, 0, niceness);
  while (!stop.stop_requested()) {
    const Clock::time_point next = visit_all();
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, stop, next, [this] { return is_changed_; });
    is_changed_ = false;
  }
}

// Visits the tables one after the other. Returns when the first of them must be visited again.
Merger::Clock::time_point Merger::visit_all() {
  Clock::time_point next = Clock::now() + kNothingToWatchPause;
  std::unique_lock lock(mutex_);
  std::erase_if(watched_, [](const auto& watched) { return watched->table->is_gone(); });
  for (std::size_t i = 0; i < watched_.size(); ++i) {
    Watched& watched = *watched_[i];  // only this thread takes one away
    const MergePolicy policy = watched.table->merge_record().policy();
    if (std::exchange(watched.is_new, false)) {
      watched = Watched{watched.table};
      watched.is_new = false;
    }
    if (!policy.automatic) continue;
    lock.unlock();
    if (!stops_.load(std::memory_order_relaxed) && Clock::now() >= watched.next_look)
      visit(watched, policy);
    lock.lock();
    next = std::min(next, watched.next_look);
  }
  return next;
}

Merger::Pressure Merger::pressure_on(const Watched& watched, const MergePolicy& policy) const {
  if (Clock::now() < watched.next_pressure) return Pressure::kNone;
  const pmem::SpaceReport space = pool_.allocator().space();
  if (space.refusals != watched.refusals) return Pressure::kRefused;
  const bool is_short = space.left_bytes() < space.reserved_bytes / 100 * policy.short_percent;
  return is_short ? Pressure::kShort : Pressure::kNone;
}

// Between two looks it checks only whether the delta is full, or space is short.
void Merger::visit(Watched& watched, const MergePolicy& policy) {
  Table& table = *watched.table;
  Pressure pressure = pressure_on(watched, policy);
  const auto needs_help = [&] {
    return table.rows().is_delta_full() || pressure == Pressure::kRefused;
  };
  const auto now = Clock::now();
  if (now >= watched.next_merge || (now >= watched.next_help && needs_help())) {
    const bool is_first = watched.looked_at == 0;
    // Held by a merge that the user called, or by a drop: try again later.
    const MergeRecord::ByPolicy by_policy(table.merge_record());
    const std::unique_lock only(table.merge_mutex(), std::try_to_lock);
    if (only.owns_lock() && !table.is_dropped()) look(watched, policy, pressure);
    pressure = pressure_on(watched, policy);
    const bool was_in_vain = !is_first && needs_help();
    watched.next_merge = Clock::now() + pause_after(watched.failures, policy.interval);
    watched.next_help = Clock::now() + (was_in_vain ? kHelpAgainPause : kHelpPause);
  }
  const bool may_need_help = policy.delta_bytes_max != 0 || pressure != Pressure::kNone;
  watched.next_look =
      may_need_help ? std::min(watched.next_merge, Clock::now() + kHelpPause) : watched.next_merge;
}

void Merger::look(Watched& watched, const MergePolicy& policy, Pressure pressure) {
  Table& table = *watched.table;
  const MergeOptions options = options_of(policy, pressure == Pressure::kRefused);
  TableMerge merge(pool_, slots_, table, ddl_mutex_, options, &stops_);
  merge.release_if_unread();
  // Not before those that were replaced earlier are free, or the wait for their readers would begin
  // anew each time.
  if (table.read_text_bytes() > policy.read_text_bytes_max && !table.has_replaced())
    merge.replace_read_texts();
  const std::uint64_t looked_at = std::exchange(watched.looked_at, slots_.advance());
  const std::optional<ProcessorTimes> times = std::exchange(watched.times, processor_times());
  const bool is_urgent = table.rows().is_delta_full() || pressure == Pressure::kRefused;
  if (looked_at == 0 && !is_urgent) return;  // nothing to compare with
  // A system that does not report its load counts as idle.
  std::uint32_t idle = 100;
  if (times && watched.times) idle = idle_percent(*times, *watched.times).value_or(0);
  if (!may_merge(watched, policy, looked_at, idle, is_urgent)) return;
  const std::uint64_t used_before = pool_.allocator().space().used_bytes;
  reclaim_dead_rows_();
  // Reads of a delta this small are no reason to merge, also not later.
  if (table.rows().delta_bytes() < kOftenReadBytes) merge.forget_reads();
  if (pressure == Pressure::kNone && !has_reason(watched, policy, merge)) return;
  const bool has_merged = choose_and_merge(watched, policy, merge, looked_at, pressure);
  if (pressure != Pressure::kNone) return note_help(watched, used_before);
  watched.searched_in_vain = has_merged ? 0 : watched.searched_in_vain + 1;
  watched.next_search = Clock::now() + pause_after(watched.searched_in_vain, policy.interval);
}

// After help that wins little the next one waits for longer: else a pool that is full of rows that
// are needed would be merged without end.
void Merger::note_help(Watched& watched, std::uint64_t used_before) const {
  constexpr std::uint64_t kLittle = 64;  // a part of this many of the pool
  constexpr std::uint32_t kDoublingsMax = 5;
  const pmem::SpaceReport space = pool_.allocator().space();
  const std::uint64_t won = used_before - std::min(used_before, space.used_bytes);
  watched.helped_in_vain = won >= space.reserved_bytes / kLittle ? 0 : watched.helped_in_vain + 1;
  watched.refusals = space.refusals;
  watched.next_pressure =
      Clock::now() + pause_after(std::min(watched.helped_in_vain, kDoublingsMax), kHelpAgainPause);
}

// Checked before chunks are frozen, because a merge that then waits in vain leaves them frozen.
bool Merger::may_merge(const Watched& watched, const MergePolicy& policy, std::uint64_t looked_at,
                       std::uint32_t idle_percent, bool is_urgent) const {
  Table& table = *watched.table;
  const auto has_old = [&] {
    return !policy.ends_old_transactions && slots_.oldest_snapshot() < looked_at;
  };
  if (has_old()) slots_.catch_up(looked_at);
  if (has_old()) {
    const mvcc::TransactionSlots::Oldest oldest = slots_.oldest_transaction();
    std::string why = fmt::format(
        "the transaction in slot {} began at snapshot {}, {} time-stamps ago, and is "
        "still open; merging would wait for it",
        oldest.slot, oldest.snapshot, slots_.now() - oldest.snapshot);
    if (table.merge_record().status().state != MergeState::kOldTransaction)
      events_.post({.kind = EventKind::kMergeWaits, .table = table.name(), .text = why});
    table.merge_record().set_state(MergeState::kOldTransaction, std::move(why));
    return false;
  }
  if (idle_percent >= policy.idle_percent || is_urgent) return true;
  table.merge_record().set_state(
      MergeState::kProcessorsBusy,
      fmt::format("{} % of the processors' time was idle, merging needs {} %", idle_percent,
                  policy.idle_percent));
  return false;
}

// Looks at nothing that grows with the rows.
bool Merger::has_reason(const Watched& watched, const MergePolicy& policy,
                        const TableMerge& merge) const {
  Table& table = *watched.table;
  if (table.rows().is_delta_full() || table.rows().delta_bytes() >= policy.delta_bytes) return true;
  if (Clock::now() >= watched.next_search &&
      (merge.may_give_back() || is_read_often(table, policy, merge)))
    return true;
  set_small(table.merge_record(), policy,
            fmt::format("the delta has {} bytes", table.rows().delta_bytes()));
  return false;
}

bool Merger::is_read_often(const Table& table, const MergePolicy& policy, const TableMerge& merge) {
  return table.rows().delta_bytes() >= kOftenReadBytes && merge.is_read_often(policy.delta_scans);
}

// Returns whether it has merged. Chunks may stay for lack of room: to look at them costs time.
bool Merger::choose_and_merge(Watched& watched, const MergePolicy& policy, TableMerge& merge,
                              std::uint64_t looked_at, Pressure pressure) {
  Table& table = *watched.table;
  const bool is_full = table.rows().is_delta_full();
  const bool is_any_quiet = is_full || pressure == Pressure::kRefused;
  static_cast<void>(merge.sweep());  // run() reports errors
  const TableMerge::Plan plan = merge.choose([&](std::size_t chunk) {
    return is_any_quiet || is_quiet(table.rows(), chunk, looked_at, policy.written_percent);
  });
  const bool is_often = is_read_often(table, policy, merge);
  const bool is_any_enough =
      is_full || pressure != Pressure::kNone || (plan.bytes >= kOftenReadBytes && is_often);
  if (!is_wanted(table, policy, plan, is_any_enough) && !merge.has_wasteful_columns()) {
    // Too few of the chunks that queries read are quiet. The search took time that grows with the
    // delta, so the next one for this reason waits for as many reads again.
    if (is_often) merge.forget_reads();
    return false;
  }
  this->merge(watched, policy, merge);
  return merge.report().chunks_left == 0 || merge.report().chunks_merged != 0;
}

bool Merger::is_wanted(Table& table, const MergePolicy& policy, const TableMerge::Plan& plan,
                       bool is_any_enough) const {
  const bool is_enough = plan.bytes >= policy.delta_bytes || is_any_enough;
  if (plan.groups != 0 || plan.frozen != 0 || plan.sparse != 0 || (plan.chunks != 0 && is_enough))
    return true;
  if (plan.chunks != 0) {
    set_small(table.merge_record(), policy,
              fmt::format("{} full chunks of {} bytes could be merged", plan.chunks, plan.bytes));
  } else if (plan.left_out != 0) {
    table.merge_record().set_state(
        MergeState::kWritten,
        fmt::format("in each of {} full chunks more than {} % of the rows were written recently",
                    plan.left_out, policy.written_percent));
  } else {
    table.merge_record().set_state(MergeState::kNothingToMerge,
                                   "no full chunk, and no row group with enough dead rows");
  }
  return false;
}

void Merger::merge(Watched& watched, const MergePolicy& policy, TableMerge& merge) {
  MergeRecord& record = watched.table->merge_record();
  record.set_state(MergeState::kMerging, "a merge is running");
  const Status status = merge.run();
  if (status.code() == StatusCode::kCancelled) return record.note_merge(merge.report(), {});
  record.note_merge(merge.report(), status);
  if (status.ok()) {
    watched.failures = 0;
    record.set_state(MergeState::kNothingToMerge, "a merge has just ended");
    events_.post({.kind = EventKind::kMerged,
                  .table = watched.table->name(),
                  .text = fmt::format("{} rows moved to main", merge.report().rows),
                  .bytes = merge.report().bytes_after});
    return;
  }
  ++watched.failures;
  std::string what = fmt::format("{}; the next attempt is in {} ms", status.to_string(),
                                 pause_after(watched.failures, policy.interval).count());
  events_.post({.kind = EventKind::kMergeFailed,
                .table = watched.table->name(),
                .text = what,
                .status = status});
  record.set_state(MergeState::kFailed, std::move(what));
}

// Free rows of a full chunk are used again, and rows in it die: either is a write.
bool Merger::is_quiet(const RowStore& rows, std::size_t chunk, std::uint64_t since,
                      std::uint32_t written_percent) const {
  FLUGS_CHECK(chunk < rows.chunk_count());
  if (written_percent >= 100) return true;
  const mvcc::Visibility now(slots_.mirrors(), slots_.now(), mvcc::kNoStamp);
  const auto is_recent = [&](const mvcc::Stamp& stamp) {
    const mvcc::Visibility::Resolved resolved = now.resolve(stamp);
    return resolved.fate == mvcc::Visibility::Fate::kInFlight ||
           (resolved.fate == mvcc::Visibility::Fate::kCommitted && resolved.timestamp > since);
  };
  const std::uint32_t first = rows.first_row_of(chunk);
  const std::uint32_t count = rows.rows_of(chunk);
  const std::uint32_t step = count < kRowsPerSample * kSampledRowsMin ? 1 : kRowsPerSample;
  const std::uint64_t written_max = std::uint64_t{count} / step * written_percent / 100;
  std::uint64_t written = 0;
  for (std::uint32_t i = 0; i < count; i += step) {
    const mvcc::VersionLayout& version = rows.version(first + i);
    written += is_recent(version.created) || is_recent(version.deleted) ? 1 : 0;
    if (written > written_max) return false;
  }
  return true;
}

}  // namespace flugs::engine
