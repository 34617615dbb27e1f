#include "proof/rig.h"

#include <fmt/format.h>
#include <malloc.h>

#include <cstdlib>
#include <cstring>
#include <set>

#include "columns/zeroed_memory.h"
#include "pmem/check.h"
#include "pmem/extent_allocator.h"
#include "proof/probe.h"

namespace flugs::proof {

namespace {

Status wrong(std::string what) { return Status(StatusCode::kCorrupt, std::move(what)); }

OpenOptions open_options(std::uint32_t slots) {
  OpenOptions options;
  options.segment_bytes = std::uint64_t{16} << 10;
  options.grow_ahead_bytes = 0;
  options.slots_max = slots;
  options.recovery_threads = 1;
  return options;
}

Result<std::unique_ptr<engine::DatabaseCore>> open_image(std::span<std::byte> memory,
                                                         pmem::PersistObserver* observer,
                                                         std::uint32_t slots) {
  pmem::PoolOptions options;
  options.observer = observer;
  auto pool = pmem::Pool::open_in_memory(memory, options);
  if (!pool.ok()) return std::move(pool).status();
  return engine::DatabaseCore::open(std::move(*pool), false, open_options(slots));
}

std::uint64_t used_bytes(engine::DatabaseCore& core) {
  return core.pool().allocator().space().used_bytes;
}

}  // namespace

/// Passes flushes and fences on to an explorer, with the mistake that the mutation makes.
class CrashRig::Filter final : public pmem::PersistObserver {
 public:
  Filter(CrashRig& rig, std::span<const std::byte> memory, pmem::PersistObserver* next,
         CrashExplorer* live)
      : rig_(rig), memory_(memory), next_(next), live_(live) {}

  void on_flush(const void*, std::size_t, pmem::Label) override { std::abort(); }
  void on_fence(pmem::Label) override { std::abort(); }
  void on_flush_by(const pmem::Persister& by, const void* address, std::size_t bytes,
                   pmem::Label label) override {
    if (live_ != nullptr) watched_sites().insert(std::string("flush ") + label);
    if (is_mutated(address, label)) {
      switch (rig_.options_.mutation.kind) {
        case Mutation::Kind::kNoFlush:
          return;
        case Mutation::Kind::kLateFlush:
          late_.push_back({&by, address, bytes, label});
          return;
        case Mutation::Kind::kShortFlush:
          bytes = without_last_line(address, bytes);
          break;
        case Mutation::Kind::kEarlyStore:
          store_early(by, address, bytes, label);
          break;
        case Mutation::Kind::kNone:
        case Mutation::Kind::kNoFence:
          break;
      }
    }
    next_->on_flush_by(by, address, bytes, label);
  }
  void on_fence_by(const pmem::Persister& by, pmem::Label label) override {
    if (live_ != nullptr) watched_sites().insert(std::string("fence ") + label);
    if (live_ != nullptr && rig_.before_fence && !is_in_hook_) {
      is_in_hook_ = true;
      rig_.before_fence(label);
      is_in_hook_ = false;
    }
    const Mutation& mutation = rig_.options_.mutation;
    if (mutation.kind == Mutation::Kind::kEarlyStore && live_ != nullptr)
      moments_[&by] = {live_->moment(), rig_.now_, by.counters().fences};
    if (mutation.kind == Mutation::Kind::kNoFence && label == mutation.label) return;
    next_->on_fence_by(by, label);
    flush_late(by);
  }

 private:
  struct LateFlush {
    const pmem::Persister* by;
    const void* address;
    std::size_t bytes;
    pmem::Label label;
  };
  /// Just before the last fence of a Persister.
  struct BeforeFence {
    std::shared_ptr<CrashExplorer::Moment> moment;
    Expectation expectation;
    std::uint64_t fences = 0;  // a Persister may come to lie where another one lay
  };

  bool is_mutated(const void* address, pmem::Label label) const {
    const Mutation& mutation = rig_.options_.mutation;
    return label == mutation.label &&
           (mutation.region == Region::kOther || region_of(memory_, address) == mutation.region);
  }
  static std::size_t without_last_line(const void* address, std::size_t bytes) {
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    const std::uintptr_t last = (begin + bytes - 1) / pmem::kLineBytes * pmem::kLineBytes;
    return last <= begin ? bytes : last - begin;
  }
  void flush_late(const pmem::Persister& by) {
    const std::vector<LateFlush> late = std::exchange(late_, {});
    for (const LateFlush& flush : late) {
      if (flush.by == &by) {
        next_->on_flush_by(by, flush.address, flush.bytes, flush.label);
      } else {
        late_.push_back(flush);
      }
    }
  }
  void store_early(const pmem::Persister& by, const void* address, std::size_t bytes,
                   pmem::Label label) {
    const auto found = moments_.find(&by);
    if (live_ == nullptr || found == moments_.end()) return;
    BeforeFence& before = found->second;
    if (before.fences != by.counters().fences) return;
    std::swap(rig_.now_, before.expectation);
    live_->crash_then(*before.moment, address, bytes, label);
    std::swap(rig_.now_, before.expectation);
  }

  CrashRig& rig_;
  std::span<const std::byte> memory_;
  pmem::PersistObserver* next_;
  CrashExplorer* live_;  // null inside a recovery
  bool is_in_hook_ = false;
  std::vector<LateFlush> late_;
  std::map<const pmem::Persister*, BeforeFence> moments_;
};

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
    : options_(std::move(options)), buffer_(options_.pool_bytes) {
  columns::keep_zeroed_memory(64);
  // Images come and go: without it each would be mapped anew, page fault by page fault.
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
  auto pool = pmem::Pool::create_in_memory(buffer_.span(), pool_options);
  if (!pool.ok()) return std::move(pool).status();
  auto core = engine::DatabaseCore::open(std::move(*pool), true, open_options(options_.slots));
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

/// What runs inside a fence of another transaction (before_fence) finds that one not committed.
template <typename Work>
void CrashRig::explored(Step step, Work&& work) {
  if (is_done()) return;
  const bool is_inside = now_.after.has_value();
  Step outer = std::exchange(now_.in_flight, std::move(step));
  now_.after = now_.state;
  FLUGS_CHECK(model_step(now_.in_flight, *now_.after));  // the script contradicts itself
  Status status = work();
  if (!status.ok()) return fail(std::move(status));
  now_.state = std::move(*now_.after);
  now_.after.reset();
  now_.in_flight = {};
  acknowledge();
  if (!is_inside) return;
  now_.in_flight = std::move(outer);
  now_.after = now_.state;
  FLUGS_CHECK(model_step(now_.in_flight, *now_.after));
}

void CrashRig::acknowledge() {
  if (explorer_ == nullptr) return;
  explorer_->crash_now("acknowledged");
  explorer_->count_unfenced();
  for (const std::size_t offset : explorer_->unflushed_lines())
    ++unflushed_[to_string(region_of(buffer_.span(), buffer_.span().data() + offset))];
}

void CrashRig::create_table(const TableSchema& schema) {
  Step step;
  step.created = schema;
  explored(step, [&] { return run_step(step, *core_, nullptr, now_.timestamp); });
}

void CrashRig::drop_table(const std::string& name) {
  Step step;
  step.dropped = name;
  explored(step, [&] { return run_step(step, *core_, nullptr, now_.timestamp); });
}

void CrashRig::merge(const std::string& table) {
  Step step;
  step.merged = table;
  explored(step, [&] { return run_step(step, *core_, nullptr, now_.timestamp); });
}

void CrashRig::commit(const Writes& writes) {
  const Step step{.writes = writes};
  explored(step, [&] { return run_step(step, *core_, nullptr, now_.timestamp); });
}

std::size_t CrashRig::begin(const Writes& writes) {
  const std::size_t number = next_open_++;
  if (is_done()) return number;
  Result<Transaction> transaction = core_->begin(AccessMode::kReadWrite);
  if (!transaction.ok()) {
    fail(std::move(transaction).status());
    return number;
  }
  if (Status s = write_all(*core_, *transaction, writes); !s.ok()) fail(std::move(s));
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
  open_.erase(transaction);
  if (explorer_ != nullptr) explorer_->crash_now("aborted");
}

void CrashRig::abort_all() {
  while (!open_.empty()) abort(open_.begin()->first);
}

void CrashRig::abort(const Writes& writes) { abort(begin(writes)); }

Status CrashRig::open_live() {
  auto core = open_image(buffer_.span(), filter_.get(), options_.slots);
  if (!core.ok()) return std::move(core).status();
  core_ = std::move(*core);
  bool is_after = false;
  return check_recovered(*core_, 0, is_after);
}

void CrashRig::reopen(std::uint32_t slots) {
  if (is_done()) return;
  FLUGS_CHECK(open_.empty());
  core_.reset();
  if (slots != 0) options_.slots = slots;
  if (Status s = open_live(); !s.ok()) fail(std::move(s));
}

void CrashRig::crash(std::uint64_t choice, std::uint32_t slots) {
  if (is_done()) return;
  const std::vector<std::byte> image = explorer_->crash_image(choice);
  core_->pool().medium().set_observer(nullptr);
  open_.clear();
  core_.reset();
  std::memcpy(buffer_.span().data(), image.data(), image.size());
  explorer_->restart();
  if (slots != 0) options_.slots = slots;
  if (Status s = open_live(); !s.ok())
    fail(Status(s.code(), fmt::format("after crash({}): {}", choice, s.message())));
}

// ------------------------------------------------------------------------------ judging an image

/// Threads keep to their transaction slot; the checks must not move that of the live database.
Status CrashRig::check_as_another(std::span<std::byte> image, ExplorerContext& context) {
  if (context.depth() != 0) return check(image, context);
  const mvcc::OtherThread another;
  return check(image, context);
}

Status CrashRig::check_recovered(engine::DatabaseCore& core, std::uint32_t depth, bool& is_after) {
  {
    Result<Transaction> reader = core.begin(AccessMode::kReadOnly);
    if (!reader.ok()) return std::move(reader).status();
    Result<DatabaseState> found = read_state(core, *reader);
    if (!found.ok()) return std::move(found).status();
    const std::string unlike_before = difference(now_.state, *found);
    is_after = !unlike_before.empty();
    if (is_after && (!now_.after || !difference(*now_.after, *found).empty()))
      return wrong(fmt::format(
          "{}{}", unlike_before,
          now_.after ? "; nor after the step: " + difference(*now_.after, *found) : std::string()));
  }
  if (Status s = core.verify({}); !s.ok()) return s;
  if (Status s = check_space(core); !s.ok()) return s;
  const std::uint32_t outcome = is_after ? 2 : 1;
  if (depth == 0 && (nested_outcomes_ & ~outcome) != 0)
    return wrong("a crash inside this recovery made the next one decide otherwise");
  nested_outcomes_ |= outcome;
  return {};
}

Status CrashRig::run_new_transactions(engine::DatabaseCore& core, bool is_after,
                                      DatabaseState& state) {
  std::uint64_t timestamp = now_.timestamp;
  // What a transaction sees of its own is looked at in the last one of each slot.
  const auto run = [&](const Step& step, bool looks = false) -> Status {
    if (!model_step(step, state)) return {};
    return run_step(step, core, looks ? &state : nullptr, timestamp);
  };
  const bool has_step =
      !now_.in_flight.writes.empty() || now_.in_flight.created || !now_.in_flight.dropped.empty();
  if (!is_after && has_step)
    if (Status s = run(now_.in_flight); !s.ok()) return s;
  for (const auto& [number, open] : open_)
    if (Status s = run(Step{.writes = open.writes}); !s.ok()) return s;
  if (state.empty()) {
    TableSchema schema("probe");
    schema.column("id", Type::kInt32).column("text", Type::kString).primary_key({"id"});
    if (Status s = run(Step{.created = schema}); !s.ok()) return s;
  }
  std::vector<Transaction> holding;  // each keeps a slot, so that the next step takes another
  for (std::uint32_t slot = 0; slot < options_.slots; ++slot) {
    const std::vector<Writes> steps = probe_writes(core, state, slot);
    for (const Writes& writes : steps)
      if (Status s = run(Step{.writes = writes}, &writes == &steps.back()); !s.ok()) return s;
    Result<Transaction> holder = core.begin(AccessMode::kReadOnly);
    if (!holder.ok()) return std::move(holder).status();
    holding.push_back(std::move(*holder));
  }
  return {};
}

Status CrashRig::check(std::span<std::byte> image, ExplorerContext& context) {
  if (context.depth() == 0) nested_outcomes_ = 0;
  DatabaseState expected;
  std::uint64_t used = 0;
  const auto says = [](const char* when, const Status& s) {
    return Status(s.code(), fmt::format("{}: {}", when, s.message()));
  };
  {
    pmem::PersistObserver* nested = context.observer();
    Filter filter(*this, image, nested, nullptr);
    auto core = open_image(image, nested == nullptr ? nullptr : &filter, options_.slots);
    if (!core.ok() && is_creating_ &&
        core.status().message().find("no whole header") != std::string_view::npos)
      return {};
    if (!core.ok()) return says("opening", core.status());
    context.crash_now("recovered");
    (*core)->pool().medium().set_observer(nullptr);
    bool is_after = false;
    if (Status s = check_recovered(**core, context.depth(), is_after); !s.ok())
      return says("recovered", s);
    expected = is_after ? *now_.after : now_.state;
    if (Status s = run_new_transactions(**core, is_after, expected); !s.ok())
      return says("new transactions", s);
    if (Status s = (*core)->verify({}); !s.ok()) return says("audit after them", s);
    used = used_bytes(**core);
  }
  auto core = open_image(image, nullptr, options_.slots);
  if (!core.ok()) return says("opening again", core.status());
  if (used_bytes(**core) != used)
    return wrong(fmt::format("{} bytes in use before a clean restart, {} behind it", used,
                             used_bytes(**core)));
  Result<Transaction> reader = (*core)->begin(AccessMode::kReadOnly);
  if (!reader.ok()) return std::move(reader).status();
  Result<DatabaseState> found = read_state(**core, *reader);
  if (!found.ok()) return std::move(found).status();
  if (std::string unlike = difference(expected, *found); !unlike.empty())
    return wrong("second restart: " + unlike);
  reader->abort();
  if (Status s = (*core)->verify({}); !s.ok()) return says("audit of the second", s);
  return check_space(**core);
}

}  // namespace flugs::proof
