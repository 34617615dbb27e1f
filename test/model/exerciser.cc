#include "test/model/exerciser.h"

#include <algorithm>
#include <array>

namespace flugs::test {

WorldOptions draw_world(std::uint64_t seed) {
  Random random(seed);
  WorldOptions world;
  const bool is_crowded = random.chance(30);  // few records under many transactions
  world.records =
      is_crowded ? 5 + random.below(12) : 20 + random.below(random.chance(20) ? 300 : 60);
  world.transactions = is_crowded ? 9 : 1 + random.below(8);
  world.domain = is_crowded ? 6 : 8 + random.below(40);
  world.tables = 2 + random.below(4);
  world.rest_every = random.chance(20) ? 30'000 : 1000 + random.below(7000);
  world.crashes = random.chance(50);
  constexpr std::array<std::uint64_t, 3> kSegments = {1U << 18, 1U << 20, 1U << 22};
  world.segment_bytes = kSegments[random.below(kSegments.size())];
  world.index_place = random.chance(60) ? IndexPlace::kPool : IndexPlace::kDram;
  return world;
}

void WorldFigures::add(const WorldFigures& other) {
  steps += other.steps;
  schemas += other.schemas;
  schema_changes += other.schema_changes;
  openings += other.openings;
  crashes += other.crashes;
  commits += other.commits;
  merged_chunks += other.merged_chunks;
  for (std::size_t i = 0; i < outcomes.size(); ++i) outcomes[i] += other.outcomes[i];
}

std::string WorldFigures::to_string() const {
  std::string text = std::to_string(steps) + " steps in " + std::to_string(schemas) +
                     " schemas with " + std::to_string(schema_changes) + " changes; " +
                     std::to_string(commits) + " commits; " + std::to_string(merged_chunks) +
                     " chunks merged; " + std::to_string(openings) + " openings, " +
                     std::to_string(crashes) + " of them after a crash; outcomes:";
  for (std::size_t i = 0; i < outcomes.size(); ++i)
    if (outcomes[i] != 0)
      text += " " + std::string(flugs::to_string(static_cast<StatusCode>(i))) + " " +
              std::to_string(outcomes[i]) + ";";
  return text;
}

Exerciser::Exerciser(std::uint64_t seed)
    : random_(seed), schema_random_(seed), world_(draw_world(seed)) {
  path_.emplace();
  open_database("creation");
  for (std::size_t i = 0; i < world_.tables; ++i) make_table(true);
}

Exerciser::~Exerciser() {
  open_.clear();  // must end before their database
}

const std::vector<Exerciser::WeighedStep>& Exerciser::steps() {
  static const std::vector<WeighedStep> all = {
      {110, &Exerciser::insert},
      {50, &Exerciser::insert_named},
      {15, &Exerciser::insert_rows},
      {60, &Exerciser::insert_or_change},
      {133, &Exerciser::update},
      {7, &Exerciser::update_where},
      {7, &Exerciser::break_update_where},
      {20, &Exerciser::add},
      {20, &Exerciser::compare_and_set},
      {80, &Exerciser::remove},
      {5, &Exerciser::remove_where},
      {4, &Exerciser::remove_range},
      {5, &Exerciser::break_rules},
      {25, &Exerciser::lock_row},
      {40, &Exerciser::savepoint},
      {3, &Exerciser::misuse_savepoint},
      {90, &Exerciser::read},
      {110, &Exerciser::find},
      {50, &Exerciser::visit_rows},
      {25, &Exerciser::range},
      {30, &Exerciser::walk},
      {16, &Exerciser::scan},
      {6, &Exerciser::scan_where},
      {3, &Exerciser::compare_all},
      {6, &Exerciser::query},
      {8, &Exerciser::look_around},
      {6, &Exerciser::run},
      {2, &Exerciser::merge},
      {4, &Exerciser::change_schema},
      {1, &Exerciser::end_from_outside},
  };
  return all;
}

void Exerciser::step() {
  ++figures_.steps;
  if (figures_.steps % world_.rest_every == 0) return rest();
  const std::uint64_t what = random_.below(1000);
  if (open_.empty() || (open_.size() < world_.transactions && what < 60)) {
    // Without open transactions, schema changes that wait for them are possible.
    if (open_.empty() && random_.chance(4)) return change_schema_alone();
    return begin();
  }
  const std::size_t index = random_.below(open_.size());
  if (what < 100) {
    finish(index, !random_.chance(25));
    return;
  }
  static const unsigned total = [] {
    unsigned sum = 0;
    for (const WeighedStep& step : steps()) sum += step.weight;
    return sum;
  }();
  std::uint64_t choice = random_.below(total);
  for (const WeighedStep& step : steps()) {
    if (choice < step.weight) return (this->*step.step)(*open_[index], pick_table());
    choice -= step.weight;
  }
}

void Exerciser::begin() {
  const bool read_only = random_.chance(20);
  constexpr std::array<Isolation, 5> kLevels = {Isolation::kSnapshot, Isolation::kSnapshot,
                                                Isolation::kSnapshot, Isolation::kSerializable,
                                                Isolation::kReadCommitted};
  const Isolation isolation = kLevels[random_.below(kLevels.size())];
  calls_.add(Call::kBegin);
  if (read_only) calls_.add(Call::kBeginReadOnly);
  if (isolation == Isolation::kSerializable) calls_.add(Call::kBeginSerializable);
  if (isolation == Isolation::kReadCommitted) calls_.add(Call::kBeginReadCommitted);
  Result<Transaction> begun =
      database_->begin(read_only ? AccessMode::kReadOnly : AccessMode::kReadWrite, isolation);
  expect_code({}, begun.status(), "begin");
  if (!begun.ok()) return;
  auto open = std::make_unique<Open>();
  open->owned = std::make_unique<Transaction>(std::move(*begun));
  open->real = open->owned.get();
  calls_.add(Call::kSnapshot);
  calls_.add(Call::kIsOpen);
  expect(open->real->is_open(), "a transaction that has begun is not open");
  expect(open->real->snapshot() >= last_commit_, "a snapshot is older than an acknowledged commit");
  open->model = model_.begin(open->real->snapshot(), isolation, read_only);
  open_.push_back(std::move(open));
}

Outcomes Exerciser::finish(std::size_t index, bool commits) {
  Open& open = *open_[index];
  Outcomes outcome;
  if (commits) {
    const std::uint32_t kind = random_.below(8);
    calls_.add(kind == 0   ? Call::kCommitSoon
               : kind == 1 ? Call::kCommitProcessCrash
                           : Call::kCommit);
    const bool has_written = open.model->has_written();
    const Outcomes expected = model_.foretell_commit(*open.model);
    const Status status = kind == 0   ? open.real->commit({.durability = Durability::kSoon})
                          : kind == 1 ? open.real->commit({.durability = Durability::kProcessCrash})
                                      : open.real->commit();
    expect_code(expected, status, "commit");
    outcome = status.code();
    if (status.ok()) {
      calls_.add(Call::kCommitTimestamp);
      const std::uint64_t timestamp = open.real->commit_timestamp();
      if (has_written) {
        ++figures_.commits;
        expect(timestamp > last_commit_, "a commit time-stamp is not above the former one");
        last_commit_ = std::max(last_commit_, timestamp);
      }
      model_.commit(open.model, timestamp);
    } else {
      model_.abort(open.model);
    }
  } else {
    calls_.add(Call::kAbort);
    open.real->abort();
    model_.abort(open.model);
  }
  expect(!open.real->is_open(), "a transaction that has ended is open");
  if (!open.savepoints.empty()) gone_.push_back(open.savepoints.front());
  open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(index));
  return outcome;
}

// A transaction within Database::run. Its steps are the same. It is the only attempt, because no
// other transaction runs meanwhile.
void Exerciser::run(Open&, ModelTable&) {
  if (open_.size() >= world_.transactions) return;
  calls_.add(Call::kRun);
  const bool gives_up = random_.chance(20);
  Outcomes expected;
  std::size_t place = 0;
  RetryOptions options;
  options.attempts_max = 1;
  RetryReport report;
  const Status done = database_->run(
      [&](Transaction& transaction) -> Status {
        auto open = std::make_unique<Open>();
        open->real = &transaction;
        open->model = model_.begin(transaction.snapshot(), Isolation::kSnapshot, false);
        place = open_.size();
        open_.push_back(std::move(open));
        for (std::uint64_t i = random_.below(6); i > 0; --i) {
          Open& mine = *open_[place];
          constexpr std::array<Step, 4> kSteps = {&Exerciser::insert, &Exerciser::update,
                                                  &Exerciser::remove, &Exerciser::find};
          (this->*kSteps[random_.below(kSteps.size())])(mine, pick_table());
        }
        expected = model_.foretell_commit(*open_[place]->model);
        return gives_up ? Status(StatusCode::kNotFound, "given up") : Status();
      },
      options, &report);
  expect(report.attempts == 1, "run: more than one attempt");
  if (gives_up) expected = StatusCode::kNotFound;
  expect_code(expected, done, "run");
  ModelTransaction* model = open_[place]->model;
  if (done.ok()) {
    if (model->has_written()) last_commit_ = std::max(last_commit_, report.commit_timestamp);
    model_.commit(model, report.commit_timestamp);
  } else {
    model_.abort(model);
  }
  open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(place));
}

// ------------------------------------------------------------------------------------- savepoints

void Exerciser::savepoint(Open& open, ModelTable&) {
  const std::uint64_t what = random_.below(100);
  if (what < 50 || open.savepoints.empty()) {
    calls_.add(Call::kSavepoint);
    const Result<Savepoint> made = open.real->savepoint();
    expect_code({}, made.status(), "savepoint");
    if (!made.ok()) return;
    open.savepoints.push_back(*made);
    model_.add_savepoint(*open.model);
    return;
  }
  const std::size_t place = random_.below(open.savepoints.size());
  const bool releases = what < 60;
  if (releases) {
    calls_.add(Call::kRelease);
    expect_code({}, open.real->release(open.savepoints[place]), "release");
    model_.release(*open.model, place);
  } else {
    calls_.add(Call::kRollbackTo);
    expect_code({}, open.real->rollback_to(open.savepoints[place]), "rollback_to");
    model_.roll_back_to(*open.model, place);
  }
  while (open.savepoints.size() > place + (releases ? 0 : 1)) {
    gone_.push_back(open.savepoints.back());
    open.savepoints.pop_back();
  }
  if (gone_.size() > 100) gone_.erase(gone_.begin(), gone_.begin() + 50);
}

void Exerciser::misuse_savepoint(Open& open, ModelTable&) {
  const Open& other = *open_[random_.below(open_.size())];
  Savepoint wrong = gone_.empty() ? Savepoint() : gone_[random_.below(gone_.size())];
  if (&other != &open && !other.savepoints.empty()) wrong = other.savepoints.back();
  const Status status =
      random_.chance(50) ? open.real->rollback_to(wrong) : open.real->release(wrong);
  expect_code(StatusCode::kInvalidArgument, status, "a savepoint that is not there");
}

// ------------------------------------------------------------------- what a statement has written

// `id` is the row that the call itself has made.
void Exerciser::settle(Open& open, RowId id, const char* what) {
  const auto& unsettled = model_.unsettled();
  if (unsettled.empty()) return expect(false, std::string(what) + ": wrote without need");
  model_.settle(*unsettled.front().first, *unsettled.front().second, id);
  settle_cascades(open);
}

// Rows changed by foreign keys are identified by their content: their ids are those that no known
// row has.
void Exerciser::settle_cascades(Open& open) {
  std::map<ModelTable*, std::vector<ModelRecord*>> unknown;
  for (const auto& [table, record] : model_.unsettled()) {
    if (record->own.deleted) model_.settle(*table, *record, kUnknownRow);
    if (!record->own.deleted && record->own.id == kUnknownRow) unknown[table].push_back(record);
  }
  model_.all_settled();
  for (auto& [table, records] : unknown) {
    std::map<std::uint32_t, bool> known;
    for (const SeenRow& seen : model_.see_all(*open.model, *table)) known[seen.id.value()] = true;
    std::vector<Row> found;
    expect_code({},
                open.real->scan(table->id, {},
                                [&, in = table](const ScanBatch& batch) {
                                  for (const RowId id : batch.row_ids())
                                    if (!known.contains(id.value()))
                                      if (Result<Row> row = open.real->get(in->id, id); row.ok())
                                        found.push_back(*row);
                                  return true;
                                }),
                "scan for rows that a cascade changed");
    std::sort(records.begin(), records.end());
    records.erase(std::unique(records.begin(), records.end()), records.end());
    for (ModelRecord* record : records) {
      const auto same = std::find_if(found.begin(), found.end(), [&](const Row& row) {
        std::vector<Value> values(record->own.row.size());
        row.get_all(values);
        for (std::size_t i = 0; i < values.size(); ++i)
          if (!(values[i] == record->own.row[i].view())) return false;
        return true;
      });
      expect(same != found.end(), "a cascade has not changed a row of " + table->schema.name);
      if (same == found.end()) return;
      model_.settle(*table, *record, same->id());
      found.erase(same);
    }
  }
}

}  // namespace flugs::test
