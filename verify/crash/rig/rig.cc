#include "verify/crash/rig/rig.h"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <set>

#include "base/check.h"
#include "base/zeroed_memory.h"
#include "tables/data/table_hints.h"
#include "verify/crash/rig/probe.h"
#include "verify/crash/rig/rig_filter.h"

namespace flugs::crash {

namespace {

// Steps of the live database before it makes late indexes; the number changes with each opening.
constexpr std::uint32_t kStepsBeforeIndexesMax = 3;

OpenOptions open_options(std::uint32_t slots) {
  OpenOptions options;
  options.tuning.clock = CommitClock::kCounter;  // the same on every machine
  options.segment_bytes = std::uint64_t{16} << 10;
  options.tuning.grow_ahead_bytes = 0;
  options.slots_max = slots;
  options.tuning.recovery_threads = 1;
  options.tuning.hint_interval = std::chrono::milliseconds(0);
  options.tuning.sweeps_in_background = false;
  options.merge_policy.automatic = false;  // no thread that the rig does not know
  return options;
}

}  // namespace

Result<std::unique_ptr<engine::DatabaseCore>> open_image(std::span<std::byte> memory,
                                                         pmem::PersistObserver* observer,
                                                         const RigOptions& rig, bool late_indexes) {
  pmem::PoolOptions options;
  options.gives_back = rig.gives_back;
  options.observer = observer;
  auto pool = pmem::Pool::open_in_memory(memory, options);
  if (!pool.ok()) return std::move(pool).status();
  const engine::OpeningBudget budget(late_indexes ? 0 : engine::OpeningBudget::kBuiltAtOnce);
  auto core = engine::DatabaseCore::open(std::move(*pool), false, open_options(rig.slots), budget);
  if (!core.ok() || !late_indexes) return core;
  // As if a thread would make them later.
  for (const TableId id : (*core)->tables())
    (*core)->table(id)->index_build().set_builds_later(true);
  return core;
}

std::uint64_t crash_states_factor() {
  const char* wanted = std::getenv("FLUGS_CRASH_STATES");
  const std::uint64_t factor = wanted == nullptr ? 1 : std::strtoull(wanted, nullptr, 10);
  return factor == 0 ? 1 : factor;
}

std::set<std::string>& watched_sites() {
  static std::set<std::string> sites;
  return sites;
}

CrashRig::CrashRig(RigOptions options)
    : options_(std::move(options)), buffer_(options_.pool_bytes), trial_(options_.pool_bytes) {
  keep_zeroed_memory(64);
  // Images come and go: otherwise each would be mapped again, page fault by page fault.
  ::mallopt(M_MMAP_THRESHOLD, 256 << 20);
  ::mallopt(M_TRIM_THRESHOLD, 256 << 20);
  if (options_.watches_creation) make_explorer();
  if (Status s = create(filter_.get()); !s.ok()) fail(std::move(s));
  is_creating_ = false;
  if (explorer_ != nullptr) explorer_->crash_now("created");
}

Status CrashRig::create(pmem::PersistObserver* observer) {
  pmem::PoolOptions pool_options;
  pool_options.segment_bytes = std::uint64_t{16} << 10;
  pool_options.extent_unit_bytes = 256;
  pool_options.observer = observer;
  pool_options.gives_back = options_.gives_back;
  auto pool = pmem::Pool::create_in_memory(buffer_.span(), pool_options);
  if (!pool.ok()) return std::move(pool).status();
  OpenOptions options = open_options(options_.slots);
  options.index_place = options_.index_place;
  auto core = engine::DatabaseCore::open(std::move(*pool), true, options);
  if (!core.ok()) return std::move(core).status();
  core_ = std::move(*core);
  return {};
}

void CrashRig::make_explorer() {
  explorer_ = std::make_unique<CrashExplorer>(
      buffer_.span(),
      [this](std::span<std::byte> image, ExplorerContext& context) {
        return check_as_another(image, context);
      },
      options_.explorer);
  explorer_->set_muted(options_.mutes_script);
  filter_ = std::make_unique<Filter>(*this, buffer_.span(), explorer_.get(), explorer_.get());
}

CrashRig::~CrashRig() {
  if (core_ != nullptr) core_->pool().medium().set_observer(nullptr);
  open_.clear();
}

void CrashRig::watch() {
  if (!status_.ok() || explorer_ != nullptr) return;
  make_explorer();
  core_->pool().medium().set_observer(filter_.get());
}

void CrashRig::unmute() {
  watch();
  if (explorer_ != nullptr) explorer_->set_muted(false);
}

void CrashRig::fail(Status status) {
  if (status_.ok()) status_ = std::move(status);
}

bool CrashRig::is_done() const noexcept {
  return !status_.ok() || (explorer_ != nullptr && explorer_->is_done());
}

ExplorerReport CrashRig::report() const {
  return explorer_ == nullptr ? ExplorerReport() : explorer_->report();
}

Status CrashRig::outcome() const {
  if (explorer_ != nullptr && !explorer_->report().ok())
    return wrong(explorer_->report().to_string());
  return status_;
}

// ------------------------------------------------------------------------------ the live database

/// Work inside a fence of another transaction (before_fence) finds that transaction not committed.
template <typename Work>
void CrashRig::explored(Step step, Work&& work) {
  if (is_done()) return;
  std::vector<Pending> outer = std::exchange(now_.pending, {});
  const std::uint64_t number = announce(std::move(step));
  may_take_effect(number);
  FLUGS_CHECK(now_.outcomes.size() == 2);  // the script contradicts itself
  Status status = work();
  if (!status.ok()) return fail(std::move(status));
  settle(number);
  acknowledge();
  make_late_indexes();
  if (outer.empty()) return;
  now_.pending = std::move(outer);
  now_.find_outcomes();
}

// Does the thread's work, after some transactions have run without it.
void CrashRig::make_late_indexes() {
  if (!options_.late_indexes || steps_before_indexes_ == 0 || --steps_before_indexes_ != 0) return;
  if (Status s = core_->finish_opening(); !s.ok()) return fail(std::move(s));
  if (explorer_ != nullptr) explorer_->crash_now("indexed");
}

std::uint64_t CrashRig::announce(Step step) {
  now_.pending.push_back({next_pending_, std::move(step), false});
  return next_pending_++;
}

void CrashRig::may_take_effect(std::uint64_t pending) {
  for (Pending& one : now_.pending)
    if (one.number == pending) one.is_committing = true;
  now_.find_outcomes();
}

void CrashRig::settle(std::uint64_t pending) {
  if (filter_ != nullptr) filter_->end_late_fences();
  const auto same = [&](const Pending& one) { return one.number == pending; };
  const auto found = std::find_if(now_.pending.begin(), now_.pending.end(), same);
  if (found == now_.pending.end()) return;  // another transaction saw it before
  FLUGS_CHECK(model_step(found->step, now_.state()));
  withdraw(pending);
}

void CrashRig::withdraw(std::uint64_t pending) {
  std::erase_if(now_.pending, [&](const Pending& one) { return one.number == pending; });
  now_.find_outcomes();
}

pmem::PersistObserver* CrashRig::observer() const noexcept { return filter_.get(); }

void CrashRig::acknowledge() {
  if (explorer_ == nullptr) return;
  explorer_->crash_now("acknowledged");
  explorer_->count_unfenced();
  for (const CrashExplorer::UnflushedLine& line : explorer_->unflushed_lines())
    waiting_.try_emplace(
        line.offset,
        UnflushedSite{to_string(region_of(buffer_.span(), buffer_.span().data() + line.offset)),
                      line.last_flush == nullptr ? "-" : line.last_flush, "-"});
}

void CrashRig::note_flush(std::size_t offset, std::size_t bytes, pmem::Label label) {
  auto line = waiting_.lower_bound(offset / pmem::kLineBytes * pmem::kLineBytes);
  while (line != waiting_.end() && line->first < offset + bytes) {
    line->second.next = label;
    ++unflushed_[std::move(line->second)];
    line = waiting_.erase(line);
  }
}

void CrashRig::note_power_cut() {
  for (auto& [offset, site] : waiting_) {
    site.next = "power cut";
    ++unflushed_[std::move(site)];
  }
  waiting_.clear();
}

std::map<UnflushedSite, std::uint64_t> CrashRig::unflushed_at_acknowledgement() const {
  std::map<UnflushedSite, std::uint64_t> all = unflushed_;
  for (const auto& [offset, site] : waiting_) ++all[site];
  return all;
}

void CrashRig::create_tables(const std::vector<TableSchema>& schemas) {
  Step step;
  step.created = schemas;
  explored(step, [&] { return run_step(*core_, step, now_.timestamp); });
}

void CrashRig::alter_table(const std::string& name, const TableSchema& to) {
  const Step step{.altered = Alteration{name, to}};
  explored(step, [&] { return run_step(*core_, step, now_.timestamp); });
}

void CrashRig::drop_table(const std::string& name) {
  Step step;
  step.dropped = name;
  explored(step, [&] { return run_step(*core_, step, now_.timestamp); });
}

void CrashRig::merge(const std::string& table, bool renews) {
  Step step;
  step.merged = table;
  step.renews = renews;
  explored(step, [&] { return run_step(*core_, step, now_.timestamp); });
}

void CrashRig::merge_beside(const std::string& table, const Writes& writes) {
  const Step step{.writes = writes, .merged = table};
  explored(step, [&] { return run_step(*core_, step, now_.timestamp); });
}

void CrashRig::commit(const Writes& writes) {
  const Step step{.writes = writes};
  explored(step, [&] { return run_step(*core_, step, now_.timestamp); });
}

void CrashRig::commit_partly(const Writes& before, const Writes& undone, const Writes& after) {
  Step step{.writes = before};
  step.writes.insert(step.writes.end(), after.begin(), after.end());
  explored(std::move(step),
           [&] { return run_partly(*core_, before, undone, after, now_.timestamp); });
}

std::size_t CrashRig::begin(const Writes& writes) {
  const std::size_t number = next_open_++;
  if (is_done()) return number;
  Result<Transaction> transaction = core_->begin(AccessMode::kReadWrite);
  if (!transaction.ok()) {
    fail(std::move(transaction).status());
    return number;
  }
  RowIds row_ids(*core_);
  if (Status s = write_all(*core_, *transaction, writes, row_ids); !s.ok()) fail(std::move(s));
  open_.emplace(number, Open{std::move(*transaction), writes});
  return number;
}

void CrashRig::commit(std::size_t transaction) {
  const auto found = open_.find(transaction);
  if (found == open_.end()) return;
  Open open = std::move(found->second);
  open_.erase(found);
  explored(Step{.writes = open.writes},
           [&] { return commit_above(open.transaction, now_.timestamp); });
}

void CrashRig::abort(std::size_t transaction) {
  const auto found = open_.find(transaction);
  if (found == open_.end()) return;
  found->second.transaction.abort();  // what it flushes is explored, and checks read its writes
  open_.erase(found);
  if (explorer_ != nullptr) explorer_->crash_now("aborted");
}

void CrashRig::abort_all() {
  while (!open_.empty()) abort(open_.begin()->first);
}

void CrashRig::abort(const Writes& writes) { abort(begin(writes)); }

void CrashRig::keep_hints() {
  if (is_done()) return;
  pmem::Persister persister(core_->pool().medium());
  // Not through DatabaseCore, whose lock would keep others from finding their tables: no step drops
  // one.
  for (const TableId table : core_->tables())
    for (int i = 0; i < 2; ++i)
      while (engine::keep_hints(core_->table(table)->columns(), persister)) {
      }
}

Status CrashRig::open_live() {
  Expectation::Outcome* outcome = nullptr;
  return open_live(outcome);
}

Status CrashRig::open_live(Expectation::Outcome*& outcome) {
  auto core = open_image(buffer_.span(), filter_.get(), options_, options_.late_indexes);
  if (!core.ok()) return std::move(core).status();
  core_ = std::move(*core);
  steps_before_indexes_ = 1 + openings_++ % kStepsBeforeIndexesMax;
  nested_outcome_ = nullptr;
  nested_outcomes_differ_ = false;
  return check_recovered(*core_, 0, outcome);
}

void CrashRig::reopen(std::uint32_t slots) {
  if (is_done()) return;
  FLUGS_CHECK(open_.empty());
  core_.reset();
  if (slots != 0) options_.slots = slots;
  if (Status s = open_live(); !s.ok()) fail(std::move(s));
}

// Nothing that closing does reaches the buffer.
void CrashRig::end_process(std::span<const std::byte> left) {
  core_->pool().medium().set_observer(nullptr);
  open_.clear();
  core_.reset();
  std::memcpy(buffer_.span().data(), left.data(), left.size());
}

void CrashRig::crash(std::uint64_t choice, std::uint32_t slots) {
  if (is_done()) return;
  end_process(explorer_->crash_image(choice));
  explorer_->restart();
  note_power_cut();
  if (slots != 0) options_.slots = slots;
  if (Status s = open_live(); !s.ok())
    fail(Status(s.code(), fmt::format("after crash({}): {}", choice, s.message())));
}

// The caches keep their contents.
void CrashRig::kill() {
  if (is_done()) return;
  end_process(std::vector<std::byte>(buffer_.span().begin(), buffer_.span().end()));
  if (Status s = open_live(); !s.ok())
    fail(Status(s.code(), fmt::format("after being killed: {}", s.message())));
}

// Later work of the process is not seen: the buffer gets its content of that flush again.
void CrashRig::kill_within(Step step, std::uint64_t flush) {
  if (is_done()) return;
  FLUGS_CHECK(filter_ != nullptr);  // watched
  const std::uint64_t timestamp = now_.timestamp;
  const std::uint64_t number = announce(std::move(step));
  may_take_effect(number);
  filter_->die_before(flush);
  const Status status = run_step(*core_, now_.pending.back().step, now_.timestamp);
  const std::vector<std::byte> left = filter_->end_dying();
  if (left.empty()) {
    if (!status.ok()) return fail(status);
    settle(number);
    acknowledge();
    return kill();
  }
  now_.timestamp = timestamp;
  end_process(left);
  Expectation::Outcome* outcome = nullptr;
  if (Status s = open_live(outcome); !s.ok())
    return fail(Status(s.code(),
                       fmt::format("after being killed before flush {}: {}", flush, s.message())));
  if (outcome->taken != 0) {
    settle(number);
  } else {
    withdraw(number);
  }
  explorer_->crash_now("killed");
}

}  // namespace flugs::crash
