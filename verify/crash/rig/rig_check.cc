#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "pmem/space/extent_allocator.h"
#include "verify/crash/rig/probe.h"
#include "verify/crash/rig/rig.h"
#include "verify/crash/rig/rig_filter.h"

// How an image is judged, in the order of verify/crash/rig/rig.h.

namespace flugs::crash {

namespace {

Status says(const char* when, const Status& s) {
  return Status(s.code(), fmt::format("{}: {}", when, s.message()));
}

std::uint64_t used_bytes(engine::DatabaseCore& core) {
  return core.pool().allocator().space().used_bytes;
}

/// Frees what former editions of columns, and dropped columns, own without any row that has values
/// of them, as the next opening does. `core` must not be used afterwards.
void release_what_is_left_behind(engine::DatabaseCore& core, const DatabaseState& state) {
  for (const auto& [name, rows] : state) {
    const engine::Table& table = *core.table(*core.find_table(name));
    for (std::size_t i = 0; i < table.columns().size(); ++i)
      table.columns()[i]->for_each_used([&](columns::Column& column) {
        const columns::Column& newest = *table.columns()[i];
        if (column.edition() == newest.edition() && !newest.is_dropped()) return;
        if (!table.rows().has_values_of(i, column.edition())) column.release_all();
      });
  }
}

/// Writes a row into each table, with texts so long that each string heap that is about to add a
/// chunk does so.
Status write_long_texts(engine::DatabaseCore& core, const DatabaseState& state, ModelSteps& model) {
  constexpr std::int32_t kId = 80000;
  static const std::string text(4096, 'x');
  Writes writes;
  for (const auto& [name, rows] : state) {
    const TableSchema& schema = core.table(*core.find_table(name))->schema();
    std::vector<Value> row = probe_row(schema, kId, 1);
    for (std::size_t i = 1; i < row.size(); ++i)
      if (const Type type = schema.columns[i].type;
          !schema.columns[i].dropped && (type == Type::kString || type == Type::kBytes))
        row[i] = Value::from_bytes(type, text);
    writes.push_back(insert(name, std::move(row)));
  }
  RowIds row_ids(core);
  std::uint64_t timestamp = 0;
  return model.run(writes) ? run_writes(core, writes, row_ids, nullptr, timestamp) : Status();
}

}  // namespace

/// A thread keeps its transaction slot; the checks must not move that of the live database.
Status CrashRig::check_as_another(std::span<std::byte> image, ExplorerContext& context) {
  if (context.depth() != 0) return check(image, context);
  const mvcc::OtherThread another(1);
  return check(image, context);
}

Status CrashRig::check_recovered(engine::DatabaseCore& core, std::uint32_t depth,
                                 Expectation::Outcome*& outcome) {
  {
    Result<Transaction> reader = core.begin(AccessMode::kReadOnly);
    if (!reader.ok()) return std::move(reader).status();
    const Result<Expectation::Outcome*> found = now_.find(core, *reader);
    if (!found.ok()) return found.status();
    outcome = *found;
  }
  // An audit makes late indexes, so it must wait; the audit after the new transactions finds what
  // this one would find.
  if (!options_.late_indexes)
    if (Status s = core.verify({}); !s.ok()) return s;
  if (Status s = check_space(core); !s.ok()) return s;
  if (nested_outcome_ != nullptr && nested_outcome_ != outcome) nested_outcomes_differ_ = true;
  nested_outcome_ = outcome;
  if (depth == 0 && nested_outcomes_differ_)
    return wrong("a crash inside this recovery made the next one decide otherwise");
  return {};
}

Status CrashRig::run_new_transactions(engine::DatabaseCore& core, std::uint32_t taken,
                                      DatabaseState& state, ModelSteps& model) {
  std::uint64_t timestamp = now_.timestamp;
  for (std::size_t i = 0; i < now_.pending.size(); ++i) {
    const Step& step = now_.pending[i].step;
    if ((taken >> i & 1) != 0 || step.does_nothing() || !model.run(step)) continue;
    if (Status s = run_step(core, step, timestamp); !s.ok()) return s;
  }
  if (state.empty()) {
    TableSchema schema("probe");
    schema.column("id", Type::kInt32).column("text", Type::kString).primary_key({"id"});
    const Step step{.created = {schema}};
    if (model.run(step))
      if (Status s = run_step(core, step, timestamp); !s.ok()) return s;
  }
  RowIds row_ids(core);
  // Only the last transaction of each slot checks what it sees of its own writes.
  const auto run = [&](const Writes& writes, bool looks = false) -> Status {
    if (!model.run(writes)) return {};
    return run_writes(core, writes, row_ids, looks ? &state : nullptr, timestamp);
  };
  for (const auto& [number, open] : open_)
    if (Status s = run(open.writes); !s.ok()) return s;
  std::vector<Transaction> holding;  // each keeps a slot, so that the next step takes another
  for (std::uint32_t slot = 0; slot < options_.slots; ++slot) {
    const std::vector<Writes> steps = probe_writes(core, state, slot);
    for (const Writes& writes : steps)
      if (Status s = run(writes, &writes == &steps.back()); !s.ok()) return s;
    Result<Transaction> holder = core.begin(AccessMode::kReadOnly);
    if (!holder.ok()) return std::move(holder).status();
    holding.push_back(std::move(*holder));
  }
  return {};
}

bool CrashRig::has_room(std::uint64_t bytes, const std::optional<TableSchema>& another) {
  if (is_done()) return true;
  const mvcc::OtherThread other(1);
  std::memcpy(trial_.span().data(), buffer_.span().data(), buffer_.span().size());
  // A turn may open with one slot more.
  const std::uint32_t slots = std::exchange(options_.slots, options_.slots + 1);
  const bool has = has_room_after_opening(bytes, another);
  options_.slots = slots;
  return has;
}

bool CrashRig::has_room_after_opening(std::uint64_t bytes,
                                      const std::optional<TableSchema>& another) {
  auto core = open_image(trial_.span(), nullptr, options_, false);
  if (core.code() == StatusCode::kOutOfSpace) return false;
  if (!core.ok()) return true;  // the judge will say so
  ModelSteps model(now_.state());
  if (another) {
    const Step step{.created = {*another}};
    std::uint64_t timestamp = now_.timestamp;
    if (model.run(step) && run_step(**core, step, timestamp).code() == StatusCode::kOutOfSpace)
      return false;
  }
  if (write_long_texts(**core, now_.state(), model).code() == StatusCode::kOutOfSpace ||
      run_new_transactions(**core, 0, now_.state(), model).code() == StatusCode::kOutOfSpace)
    return false;
  const pmem::SpaceReport space = (*core)->pool().allocator().space();
  return space.used_bytes + space.overhead_bytes + bytes <= space.reserved_bytes;
}

Status CrashRig::check_second_restart(std::span<std::byte> image, const DatabaseState& expected,
                                      std::uint64_t used) {
  auto core = open_image(image, nullptr, options_, false);
  if (!core.ok()) return says("opening again", core.status());
  if (used_bytes(**core) != used)
    return wrong(fmt::format("{} bytes in use before a clean restart, {} behind it", used,
                             used_bytes(**core)));
  Result<Transaction> reader = (*core)->begin(AccessMode::kReadOnly);
  if (!reader.ok()) return std::move(reader).status();
  if (Status s = must_see(**core, *reader, expected); !s.ok()) return says("second restart", s);
  reader->abort();
  if (Status s = (*core)->verify({}); !s.ok()) return says("audit of the second", s);
  return check_space(**core);
}

Status CrashRig::check(std::span<std::byte> image, ExplorerContext& context) {
  if (context.depth() == 0) {
    nested_outcome_ = nullptr;
    nested_outcomes_differ_ = false;
  }
  pmem::PersistObserver* nested = context.observer();
  Filter filter(*this, image, nested, nullptr);
  auto core =
      open_image(image, nested == nullptr ? nullptr : &filter, options_, options_.late_indexes);
  if (!core.ok() && is_creating_ &&
      core.status().message().find("no intact header") != std::string_view::npos)
    return {};
  if (!core.ok()) return says("opening", core.status());
  context.crash_now("recovered");
  (*core)->pool().medium().set_observer(nullptr);
  Expectation::Outcome* outcome = nullptr;
  if (Status s = check_recovered(**core, context.depth(), outcome); !s.ok())
    return says("recovered", s);
  DatabaseState& state = outcome->state;
  ModelSteps model(state);  // undoes its steps at the end
  if (Status s = run_new_transactions(**core, outcome->taken, state, model); !s.ok())
    return says("new transactions", s);
  if (Status s = (*core)->verify({}); !s.ok()) return says("audit after them", s);
  release_what_is_left_behind(**core, state);
  const std::uint64_t used = used_bytes(**core);
  core->reset();
  return check_second_restart(image, state, used);
}

}  // namespace flugs::crash
