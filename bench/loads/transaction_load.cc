#include "bench/loads/transaction_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "bench/support/clock.h"
#include "bench/support/random.h"

namespace flugs::bench {

namespace {

constexpr ColumnId kBalance{1};
constexpr std::int64_t kBalanceAtFirst = 100;
constexpr ColumnId kVersion{1};
constexpr ColumnId kPayload{2};

TableSchema accounts_schema() {
  TableSchema schema("accounts");
  schema.column("id", Type::kInt64).not_null().direct();
  schema.column("balance", Type::kInt64).not_null().direct();
  schema.primary_key({"id"});
  return schema;
}

TableSchema large_schema() {
  TableSchema schema("large");
  schema.column("id", Type::kInt64).not_null().direct();
  schema.column("version", Type::kInt64).not_null().direct();
  schema.column("payload", Type::kInt64).not_null().direct();
  schema.primary_key({"id"});
  return schema;
}

/// Figures of a thread, and its first failure.
struct SkewUser {
  std::uint64_t committed = 0;
  std::uint64_t conflicts = 0;
  std::uint64_t pairs_broken = 0;
  Status status;
};

Status take_or_give(Database& database, KeyId key, std::int64_t pair, std::int64_t which,
                    Isolation isolation, bool& is_broken) {
  Result<Transaction> begun = database.begin(AccessMode::kReadWrite, isolation);
  if (!begun.ok()) return std::move(begun).status();
  Transaction t = std::move(*begun);
  const Result<Row> mine = t.get(key, {Value::int64(2 * pair + which)});
  const Result<Row> other = t.get(key, {Value::int64(2 * pair + 1 - which)});
  if (!mine.ok()) return mine.status();
  if (!other.ok()) return other.status();
  const std::int64_t balance = mine->get_unchecked<std::int64_t>(kBalance);
  const std::int64_t sum = balance + other->get_unchecked<std::int64_t>(kBalance);
  is_broken = sum < 0;
  const bool may_take = sum >= kBalanceAtFirst;
  const std::int64_t change = may_take ? -kBalanceAtFirst : kBalanceAtFirst;
  const Result<RowId> updated =
      t.update(key.table, mine->id(), {{kBalance, Value::int64(balance + change)}});
  if (!updated.ok()) return updated.status();
  return t.commit();
}

void be_user(Database& database, KeyId key, const SkewOptions& options, Isolation isolation,
             std::uint32_t number, const std::atomic<bool>& ends, SkewUser& user) {
  Random random(options.seed * 1000 + number);
  while (!ends.load(std::memory_order_relaxed)) {
    const auto pair = static_cast<std::int64_t>(random.below(options.rows / 2));
    const auto which = static_cast<std::int64_t>(random.below(2));
    bool is_broken = false;
    const Status done = take_or_give(database, key, pair, which, isolation, is_broken);
    if (done.ok()) {
      ++user.committed;
      user.pairs_broken += is_broken ? 1 : 0;
    } else if (done.code() == StatusCode::kConflict) {
      ++user.conflicts;
    } else {
      user.status = done;
      return;
    }
  }
}

/// Balances as at first.
Status reset_accounts(Database& database, KeyId key, const SkewOptions& options) {
  Result<Transaction> begun = database.begin();
  if (!begun.ok()) return std::move(begun).status();
  for (std::uint32_t id = 0; id < options.rows; ++id) {
    const Result<Row> row = begun->get(key, {Value::int64(id)});
    if (!row.ok()) return row.status();
    const Result<RowId> set =
        begun->update(key.table, row->id(), {{kBalance, Value::int64(kBalanceAtFirst)}});
    if (!set.ok()) return set.status();
  }
  return begun->commit();
}

Status load_large(Database& database, TableId table, std::uint64_t rows) {
  constexpr std::uint64_t kLoadedAtOnce = 4096;
  std::vector<Value> values;
  for (std::uint64_t first = 0; first < rows; first += kLoadedAtOnce) {
    values.clear();
    for (std::uint64_t id = first; id < std::min(rows, first + kLoadedAtOnce); ++id)
      for (const std::int64_t value :
           {static_cast<std::int64_t>(id), std::int64_t{0}, static_cast<std::int64_t>(id * 7)})
        values.push_back(Value::int64(value));
    Result<Transaction> t = database.begin();
    if (!t.ok()) return std::move(t).status();
    if (Status s = t->insert_rows(table, values); !s.ok()) return s;
    if (Status s = t->commit(); !s.ok()) return s;
  }
  return {};
}

/// Looks rows up while the phase is not kEnd, and times it by phase.
class LargeReader {
 public:
  enum Phase : int { kAlone, kStatements, kCommit, kEnd };

  LargeReader(Database& database, KeyId key, const LargeOptions& options)
      : database_(database), key_(key), rows_(options.rows), random_(options.seed + 99) {}

  void run(const std::atomic<int>& phase) {
    const Ticks& ticks = Ticks::instance();
    for (int at = phase.load(); at != kEnd && status.ok(); at = phase.load()) {
      const std::uint64_t start = ticks.now();
      read_two();
      times[static_cast<std::size_t>(at)].add(ticks.to_ns(ticks.now() - start));
    }
  }

  std::array<Histogram, 3> times;
  std::uint64_t wrong = 0;
  Status status;

 private:
  /// Both versions are of one transaction, or neither is.
  void read_two() {
    Result<Transaction> t = database_.begin(AccessMode::kReadOnly);
    if (!t.ok()) return fail(t.status());
    std::array<std::int64_t, 2> versions{};
    for (std::int64_t& version : versions) {
      const auto id = static_cast<std::int64_t>(random_.below(rows_));
      const Result<Row> row = t->get(key_, {Value::int64(id)});
      if (!row.ok()) return fail(row.status());
      version = row->get_unchecked<std::int64_t>(kVersion);
      wrong += row->get_unchecked<std::int64_t>(kPayload) != id * 7 ? 1 : 0;
    }
    wrong += versions[0] != versions[1] ? 1 : 0;
  }
  void fail(const Status& why) { status = why; }

  Database& database_;
  KeyId key_;
  std::uint64_t rows_;
  Random random_;
};

Status update_all(Database& database, KeyId key, std::uint64_t rows, std::atomic<int>& phase,
                  LargeFigures& figures) {
  Result<Transaction> t = database.begin();
  if (!t.ok()) return std::move(t).status();
  const std::uint64_t start = monotonic_ns();
  for (std::uint64_t id = 0; id < rows; ++id) {
    const Result<Row> row = t->get(key, {Value::int64(static_cast<std::int64_t>(id))});
    if (!row.ok()) return row.status();
    const Result<RowId> updated = t->update(key.table, row->id(), {{kVersion, Value::int64(1)}});
    if (!updated.ok()) return updated.status();
  }
  figures.statements_seconds = seconds_since(start);
  phase.store(LargeReader::kCommit);
  const std::uint64_t last = monotonic_ns();
  const Status committed = t->commit();
  figures.commit_ms = seconds_since(last) * 1e3;
  return committed;
}

}  // namespace

Status create_accounts(Database& database, const SkewOptions& options) {
  const Result<TableId> table = database.create_table(accounts_schema());
  if (!table.ok()) return table.status();
  Result<Transaction> t = database.begin();
  if (!t.ok()) return std::move(t).status();
  for (std::uint32_t id = 0; id < options.rows; ++id)
    if (const Result<RowId> row =
            t->insert(*table, {Value::int64(id), Value::int64(kBalanceAtFirst)});
        !row.ok())
      return row.status();
  return t->commit();
}

Result<SkewFigures> run_skew(Database& database, const SkewOptions& options, Isolation isolation) {
  const Result<TableId> table = database.find_table("accounts");
  if (!table.ok()) return table.status();
  const KeyId key{*table, 0};
  std::atomic<bool> ends{false};
  std::vector<SkewUser> users(options.users);
  std::vector<std::thread> running;
  running.reserve(options.users);
  const std::uint64_t start = monotonic_ns();
  for (std::uint32_t i = 0; i < options.users; ++i)
    running.emplace_back([&, i] { be_user(database, key, options, isolation, i, ends, users[i]); });
  while (seconds_since(start) < options.seconds)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ends = true;
  for (std::thread& thread : running) thread.join();
  SkewFigures figures;
  figures.seconds = seconds_since(start);
  for (const SkewUser& user : users) {
    if (!user.status.ok()) return user.status;
    figures.committed += user.committed;
    figures.conflicts += user.conflicts;
    figures.pairs_broken += user.pairs_broken;
  }
  if (Status s = reset_accounts(database, key, options); !s.ok()) return s;
  return figures;
}

Result<LargeFigures> run_large(Database& database, const LargeOptions& options) {
  const Result<TableId> table = database.create_table(large_schema());
  if (!table.ok()) return table.status();
  const KeyId key{*table, 0};
  LargeFigures figures;
  const std::uint64_t start = monotonic_ns();
  if (Status s = load_large(database, *table, options.rows); !s.ok()) return s;
  figures.load_seconds = seconds_since(start);
  std::atomic<int> phase{LargeReader::kAlone};
  LargeReader reader(database, key, options);
  std::thread reading([&] { reader.run(phase); });
  std::this_thread::sleep_for(std::chrono::duration<double>(options.idle_seconds));
  phase.store(LargeReader::kStatements);
  const Status updated = update_all(database, key, options.rows, phase, figures);
  phase.store(LargeReader::kEnd);
  reading.join();
  if (!updated.ok()) return updated;
  if (!reader.status.ok()) return reader.status;
  figures.idle = reader.times[LargeReader::kAlone];
  figures.during_commit = reader.times[LargeReader::kCommit];
  figures.meanwhile = reader.times[LargeReader::kStatements];
  figures.meanwhile.merge(figures.during_commit);
  figures.wrong = reader.wrong;
  return figures;
}

}  // namespace flugs::bench
