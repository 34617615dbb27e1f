// Steps that merge, look around, and end transactions from outside.
#include <algorithm>
#include <thread>

#include "test/model/exerciser.h"

namespace flugs::test {

// No transaction ends while a merge waits: if one is open, the merge only freezes chunks.
void Exerciser::merge(Open&, ModelTable& table) { merge_table(table); }

void Exerciser::merge_table(ModelTable& table) {
  MergeOptions options;
  options.scope = random_.chance(70) ? MergeScope::kEverything : MergeScope::kFullChunks;
  options.dead_percent = static_cast<std::uint32_t>(1 + random_.below(40));
  options.threads = static_cast<std::uint32_t>(1 + random_.below(2));
  if (random_.chance(30)) options.waste_bytes = 1 + random_.below(1 << 14);
  options.waste_percent = static_cast<std::uint32_t>(1 + random_.below(100));
  options.patience = {};
  calls_.add(options.scope == MergeScope::kEverything ? Call::kMergeEverything : Call::kMerge);
  const auto report = database_->merge(table.id, options);
  // An open transaction or the database's own merge may be in the way.
  const bool is_alone = open_.empty() && world_.crashes;
  expect_code(is_alone ? Outcomes() : Outcomes(StatusCode::kOk) | StatusCode::kBusy,
              report.status(), "merge");
  if (report.ok()) figures_.merged_chunks += report->chunks_merged + report->groups_merged;
}

void Exerciser::look_around(Open& open, ModelTable& table) {
  switch (random_.below(6)) {
    case 0:
      if (random_.chance(20)) grow_pool();
      return look_at_statistics(table);
    case 1:
    case 2:
      return look_names_up(table);
    case 3: {
      if (random_.chance(20)) return look_at_durability();
      calls_.add(Call::kFinishOpening);
      return expect_code({}, database_->finish_opening(), "finish_opening");
    }
    case 4:
      if (!world_.crashes) return set_policy(table);
      [[fallthrough]];
    default:
      calls_.add(Call::kVerify);
      calls_.add(Call::kId);
      expect(open.real->id() != TransactionId(), "an open transaction has no id");
      expect_code(StatusCode::kBusy, database_->check(), "check with transactions open");
  }
}

void Exerciser::look_at_durability() {
  for (const Call call :
       {Call::kDurableToken, Call::kIsDurable, Call::kWaitDurable, Call::kWhenDurable})
    calls_.add(call);
  const DurableToken token = database_->durable_token();
  expect_code({}, database_->wait_durable(token), "wait_durable");
  expect(database_->is_durable(token), "what was waited for is not durable");
  database_->when_durable(token,
                          [&](const Status& status) { expect_code({}, status, "when_durable"); });
}

void Exerciser::look_at_statistics(ModelTable& table) {
  calls_.add(Call::kStatistics);
  const Statistics statistics = database_->statistics();
  expect(statistics.transactions_open == open_.size(),
         "statistics: " + std::to_string(statistics.transactions_open) +
             " transactions open, expected " + std::to_string(open_.size()));
  expect(statistics.index_place == world_.index_place, "statistics: another index mode");
  calls_.add(Call::kTableStatistics);
  const Result<TableStatistics> of = database_->table_statistics(table.id);
  expect_code({}, of.status(), "table_statistics");
  if (of.ok()) expect(of->name == table.schema.name, "table_statistics: another name");
  calls_.add(Call::kEstimateMerge);
  const Result<MergeEstimate> estimate = database_->estimate_merge(table.id);
  expect_code({}, estimate.status(), "estimate_merge");
  if (of.ok() && estimate.ok())
    expect(estimate->rows_dead + estimate->rows_held <= of->rows_reserved,
           "estimate_merge: more rows are dead than there are");
  calls_.add(Call::kTransactions);
  const std::vector<TransactionInfo> open = database_->transactions();
  expect(open.size() == open_.size(), "transactions: another number");
}

namespace {

// The schema without the places of dropped columns and keys, as a user would write it.
TableSchema without_dropped(TableSchema schema) {
  std::erase_if(schema.columns, [](const ColumnSchema& column) { return column.dropped; });
  std::erase_if(schema.keys, [](const KeySchema& key) { return key.dropped; });
  return schema;
}

}  // namespace

void Exerciser::look_names_up(ModelTable& table) {
  calls_.add(Call::kFindTable);
  const Result<TableId> id = database_->find_table(table.schema.name);
  expect(id.ok() && *id == table.id, "find_table: not found, or another");
  calls_.add(Call::kTable);
  const Result<Table> handle = database_->table(table.schema.name);
  expect(handle.ok() && handle->id() == table.id, "table: not found, or another");
  calls_.add(Call::kEnsureTable);
  const Result<Table> ensured = database_->ensure_table(without_dropped(table.schema));
  expect(ensured.ok() && ensured->id() == table.id,
         "ensure_table: " + ensured.status().to_string());
  const auto column = pick_column(table);
  if (column) {
    calls_.add(Call::kFindColumn);
    const auto found = database_->find_column(table.id, table.schema.columns[*column].name);
    expect(found.ok() && found->value() == *column, "find_column: not found, or another");
  }
  expect_code(StatusCode::kNotFound, database_->find_column(table.id, "no such").status(),
              "find_column of no column");
  const auto key = pick_key(table, false, false);
  if (key) {
    calls_.add(Call::kFindKey);
    const auto found = database_->find_key(table.id, table.schema.keys[*key].name);
    expect(found.ok() && found->index == *key, "find_key: not found, or another");
    ModelRow values;
    for (const std::size_t c : table.keys[*key].columns)
      values.push_back(random_cell(*open_[0], table, c));
    std::vector<Value> wanted;
    for (const ModelValue& value : values) wanted.push_back(value.view());
    calls_.add(Call::kDatabasePrefetch);
    database_->prefetch({table.id, static_cast<std::uint16_t>(*key)}, wanted);
  }
  calls_.add(Call::kTables);
  const std::vector<TableId> tables = database_->tables();
  bool is_same = tables.size() == model_.tables().size();
  for (std::size_t i = 0; is_same && i < tables.size(); ++i)
    is_same = tables[i] == model_.tables()[i]->id;
  expect(is_same, "tables: others, or in another order");
}

// Merges by policy run beside everything, and change nothing visible.
void Exerciser::set_policy(ModelTable& table) {
  MergePolicy policy;
  policy.automatic = random_.chance(50);
  policy.delta_bytes = random_.below(1 << 16);
  policy.written_percent = 100;
  policy.interval = std::chrono::milliseconds(10);
  policy.patience = std::chrono::milliseconds(1);
  calls_.add(Call::kSetMergePolicy);
  expect_code({}, database_->set_merge_policy(table.id, policy), "set_merge_policy");
  calls_.add(Call::kMergePolicy);
  const Result<MergePolicy> now = database_->merge_policy(table.id);
  expect(now.ok() && now->automatic == policy.automatic && now->interval == policy.interval,
         "merge_policy: another");
  calls_.add(Call::kMergeStatus);
  expect_code({}, database_->merge_status(table.id).status(), "merge_status");
}

// The transaction's next call fails with kCancelled; its writes are gone.
void Exerciser::end_from_outside(Open& open, ModelTable& table) {
  if (open.owned == nullptr) return;
  const TransactionId id = open.real->id();
  bool may_commit = false;
  const std::uint64_t what = random_.below(100);
  if (what < 50) {
    calls_.add(Call::kCancel);
    expect_code({}, database_->cancel(id), "cancel");
  } else if (what < 70) {
    calls_.add(Call::kSetTimeLimit);
    const bool is_short = random_.chance(50);
    expect_code({}, open.real->set_time_limit(std::chrono::milliseconds(is_short ? 1 : 1'000'000)),
                "set_time_limit");
    if (!is_short) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  } else if (what < 80) {
    calls_.add(Call::kEndAbandoned);
    calls_.add(Call::kTransactions);
    static_cast<void>(database_->transactions());
    std::this_thread::sleep_for(std::chrono::milliseconds(12));
    expect_code({}, database_->end_abandoned(id, std::chrono::milliseconds(10)), "end_abandoned");
  } else {
    // All open transactions are older than the merge and are asked to end.
    if (open_.size() > 1 || !model_.has_open()) return;
    calls_.add(Call::kMergeEnding);
    MergeOptions options;
    options.patience = std::chrono::milliseconds(1);
    options.ends_old_transactions = true;
    options.scope = MergeScope::kEverything;
    const auto report = database_->merge(table.id, options);
    expect_code(Outcomes(StatusCode::kOk) | StatusCode::kBusy, report.status(),
                "merge that ends transactions");
    may_commit = true;
  }
  Outcomes expected = StatusCode::kCancelled;
  if (may_commit) expected = expected | StatusCode::kOk;
  const Result<Savepoint> after = open.real->savepoint();
  expect_code(expected, after.status(), "a call of a cancelled transaction");
  const auto place = std::find_if(open_.begin(), open_.end(),
                                  [&](const auto& other) { return other.get() == &open; });
  finish(static_cast<std::size_t>(place - open_.begin()), false);
}

void Exerciser::grow_pool() {
  constexpr std::uint64_t kLargest = std::uint64_t{512} << 20;
  const std::uint64_t bytes = database_->statistics().pool_reserved_bytes;
  const std::uint64_t wanted = bytes + random_.below(std::uint64_t{16} << 20);
  calls_.add(Call::kGrow);
  if (wanted < kLargest) expect_code({}, database_->grow(wanted), "grow");
  if (wanted < kLargest)
    expect(database_->statistics().pool_reserved_bytes == wanted / 4096 * 4096,
           "grow: another size than " + std::to_string(wanted));
  expect_code(StatusCode::kInvalidArgument, database_->grow(bytes - 4096), "grow to less");
}

}  // namespace flugs::test
